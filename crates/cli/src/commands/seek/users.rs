//! Users who come at the rate that is sought.

use anyhow::Result;
use clap::Args;
use plimsoll_core::schedule::{LoadModel, Pause, UserProfile, UserStep};
use plimsoll_core::units::Span;
use plimsoll_engine::plant::PlantUsers;
use plimsoll_job::sought::Sought;
use plimsoll_job::usage::usage;
use serde_json::{Value, json};

/// The only step of which a search makes sense.
const STEP: &str = "constant";

/// The flags of users, whose rate of arrival a search seeks.
#[derive(Args, Debug, Default)]
pub struct UserFlags {
    /// Users who come, ask and leave, at a rate that is sought: write 'constant', without a rate and a time.
    #[arg(long, value_name = "STEP", help_heading = "Users")]
    pub users: Option<String>,
    /// Requests of each user, one after the other; by default all of the source, --repeat times.
    #[arg(long, value_name = "N", help_heading = "Users")]
    user_requests: Option<u32>,
    /// Times that each user sends each request [default: 1].
    #[arg(long, value_name = "N", help_heading = "Users")]
    repeat: Option<u32>,
    /// Pause between an answer and the next request: '2s', 'uniform 1s 3s', 'exponential 2s' or 'normal 2s 500ms'.
    #[arg(long, value_name = "TIME", help_heading = "Users")]
    think: Option<Pause>,
    /// Time from one intended start of a user to its next; a late user catches up.
    #[arg(long, value_name = "TIME", help_heading = "Users")]
    pace: Option<Span>,
}

impl UserFlags {
    /// Returns the number of times that each user sends each request.
    pub fn repeats(&self) -> u32 {
        self.repeat.unwrap_or(1)
    }

    /// The load, where it is one of users; `budget` is the time of the search. Their rate is a placeholder.
    ///
    /// # Errors
    /// A step that says how many come, or flags of users without users.
    pub fn load(&self, budget: Span) -> Result<Option<LoadModel>> {
        let Some(text) = &self.users else {
            let of_users = [
                ("--user-requests", self.user_requests.is_some()),
                ("--repeat", self.repeat.is_some()),
                ("--think", self.think.is_some()),
                ("--pace", self.pace.is_some()),
            ];
            return match of_users.iter().find(|(_, is)| *is) {
                Some((flag, _)) => Err(usage(format!(
                    "{flag} belongs to users; give --users {STEP}, or leave it out"
                ))),
                None => Ok(None),
            };
        };
        check_step(text)?;
        if self.user_requests == Some(0) {
            return Err(usage(
                "--user-requests 0 asks for nothing; leave it out or use at least 1",
            ));
        }
        let step = UserStep::Constant { per_s: 1.0, during: budget, randomized: true };
        let profile = UserProfile::new(vec![step])
            .map_err(|error| usage(format!("--budget: {}", error.problem)))?;
        Ok(Some(LoadModel::Users {
            profile,
            requests: self.user_requests.unwrap_or(0),
            think: self.think.unwrap_or_default(),
            pace: self.pace.unwrap_or_default(),
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
    let each = f64::from(requests);
    let Some(found) = sought.results.get_mut("seek").and_then(Value::as_object_mut) else {
        return;
    };
    let rate = |name: &str| found.get(name).and_then(Value::as_f64).map(|per_s| per_s / each);
    let (certified, estimate) = (rate("certified_rate_per_s"), rate("estimate_per_s"));
    let interval = found.get("interval_per_s").and_then(Value::as_array).map(|interval| {
        interval.iter().filter_map(|end| Some(end.as_f64()? / each)).collect::<Vec<_>>()
    });
    let users = json!({
        "requests": requests,
        "certified_per_s": certified,
        "estimate_per_s": estimate,
        "interval_per_s": interval,
    });
    found.insert("users".to_owned(), users);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(users: &str) -> UserFlags {
        UserFlags { users: Some(users.to_owned()), ..UserFlags::default() }
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
        let lonely = UserFlags { repeat: Some(2), ..UserFlags::default() };
        assert!(lonely.load(budget).unwrap_err().to_string().contains("--repeat belongs to users"));
    }

    #[test]
    fn rates_are_told_in_users_too() {
        let found = json!({
            "certified_rate_per_s": 20.0, "estimate_per_s": 25.0, "interval_per_s": [10.0, 30.0],
        });
        let mut sought = Sought {
            results: serde_json::Map::from_iter([("seek".to_owned(), found)]),
            verdict: plimsoll_core::verdict::Verdict::new(
                plimsoll_core::verdict::VerdictKind::Valid,
                Vec::new(),
            ),
            warnings: Vec::new(),
        };
        tell(&mut sought, 5);
        let users = &sought.results["seek"]["users"];
        assert_eq!(users["certified_per_s"], 4.0);
        assert_eq!(users["interval_per_s"], json!([2.0, 6.0]));
    }
}
