//! Users who come at the rate that is sought.

use anyhow::Result;
use clap::Args;
use plimsoll_core::schedule::{LoadModel, UserProfile, UserStep};
use plimsoll_core::units::Span;
use plimsoll_engine::plant::PlantUsers;
use plimsoll_job::flags::UserFlags;
use plimsoll_job::sought::Sought;
use plimsoll_job::usage::usage;
use plimsoll_record::seek::SeekUsers;

/// The only step of which a search makes sense.
const STEP: &str = "constant";

/// The flags of users, whose rate of arrival a search seeks.
#[derive(Args, Debug, Default)]
pub struct SoughtUsers {
    /// Virtual users whose rate of arrival is sought: 'constant'
    ///
    /// Virtual users arrive, send requests and leave; seek finds how many can arrive per second. Write 'constant', without a
    /// rate and a time.
    #[arg(long, value_name = "STEP", help_heading = "Users")]
    pub users: Option<String>,
    #[command(flatten)]
    own: UserFlags,
}

impl SoughtUsers {
    /// Returns the number of times that each user sends each request.
    pub fn repeats(&self) -> u32 {
        self.own.passes.unwrap_or(1)
    }

    /// The load, where it is one of users; `budget` is the time of the search. The search sets the rate of
    /// users before each part.
    ///
    /// # Errors
    /// A step that says how many come, or flags of users without users.
    pub fn load(&self, budget: Span) -> Result<Option<LoadModel>> {
        let Some(text) = &self.users else {
            let think = self.own.pauses.think.map(|_| "--think");
            return match self.own.first().or(think) {
                Some(flag) => Err(usage(format!(
                    "{flag} belongs to users; give --users {STEP}, or leave it out"
                ))),
                None => Ok(None),
            };
        };
        check_step(text)?;
        let step = UserStep::Constant { per_s: 1.0, during: budget, randomized: true };
        let profile = UserProfile::new(vec![step])
            .map_err(|error| usage(format!("--budget: {}", error.problem)))?;
        Ok(Some(LoadModel::Users {
            profile,
            requests: self.own.requests()?,
            think: self.own.pauses.think.unwrap_or_default(),
            pace: self.own.pauses.pace.unwrap_or_default(),
        }))
    }
}

/// Rejects steps that say how many users come: that is what is sought.
fn check_step(text: &str) -> Result<()> {
    if text.trim().eq_ignore_ascii_case(STEP) {
        return Ok(());
    }
    let whole: Vec<String> = text.to_ascii_lowercase().split(',').map(str::to_owned).collect();
    let is_rate =
        |step: &String| step.trim().starts_with(STEP) || step.trim().parse::<f64>().is_ok();
    Err(usage(match whole.iter().all(is_rate) {
        true => format!(
            "--users '{text}': how many users come is what seek searches for; write --users {STEP} without a number, and \
             --start-rate for the requests per second to begin with"
        ),
        false => format!(
            "--users '{text}': seek changes the rate at which users come, so that only a rate can be sought; write --users \
             {STEP}, or use plimsoll load --users for these steps"
        ),
    }))
}

/// The users of a load.
pub fn of(load: &LoadModel) -> Option<PlantUsers> {
    let LoadModel::Users { requests, think, pace, .. } = load else { return None };
    Some(PlantUsers { requests: (*requests).max(1), think: *think, pace: *pace })
}

/// The load as the record keeps it: users come at this rate of requests over the requests of each, to begin with.
pub fn recorded(load: LoadModel, start_per_s: f64, budget: Span, randomized: bool) -> LoadModel {
    let LoadModel::Users { requests, think, pace, profile } = load else { return load };
    let per_s = start_per_s / f64::from(requests.max(1));
    let step = UserStep::Constant { per_s, during: budget, randomized };
    // A rate so low that nobody comes in the whole budget cannot be written.
    let profile = UserProfile::new(vec![step]).unwrap_or(profile);
    LoadModel::Users { profile, requests, think, pace }
}

/// Adds the rates in users per second: the search itself counts requests.
pub fn tell(sought: &mut Sought, requests: u32) {
    if let Some(found) = sought.results.seek_mut() {
        found.users = Some(SeekUsers::of(found, requests));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(users: &str) -> SoughtUsers {
        SoughtUsers { users: Some(users.to_owned()), ..SoughtUsers::default() }
    }

    #[test]
    fn how_many_users_come_is_sought_and_not_said() {
        let budget = Span::seconds(60);
        assert!(flags("Constant").load(budget).unwrap().is_some());
        for (text, part) in [
            ("constant 20/s during 1m", "--start-rate"),
            ("constant 20/s", "--start-rate"),
            ("20", "--start-rate"),
            ("concurrent 50 during 1m", "load --users"),
            ("ramp 100 during 10s", "load --users"),
            ("constant 2/s during 1m, at once 10", "load --users"),
            ("nonsense", "load --users"),
        ] {
            let said = flags(text).load(budget).unwrap_err().to_string();
            assert!(said.contains(part) && said.contains("--users constant"), "{said}");
        }
        let own = UserFlags { passes: Some(2), ..UserFlags::default() };
        let lonely = SoughtUsers { own, ..SoughtUsers::default() };
        assert!(lonely.load(budget).unwrap_err().to_string().contains("--passes belongs to users"));
    }
}
