//! `plimsoll load`: requests to any HTTP service, under any load model.

use crate::postgres;
use crate::volt;
use anyhow::Result;
use clap::Args;
use plimsoll_core::admission::AdmissionModel;
use plimsoll_core::scenario::Scenario;
use plimsoll_core::schedule::{Arrivals, LoadModel, Pause, ProfileError, Step, Think, UserProfile};
use plimsoll_core::units::Span;
use plimsoll_job::contact::reach;
use plimsoll_job::execute::{code, execute};
use plimsoll_job::flags::{ArrivalsFlag, RunFlags};
use plimsoll_job::job::{Job, Program};
use plimsoll_job::output::{Output, print_out, style, write_results};
use plimsoll_job::prepare::prepare;
use plimsoll_job::requests::RequestFlags;
use plimsoll_job::usage::usage;
use plimsoll_record::JobResults;

const EXAMPLES: &str = "\
Examples:
  Ten clients, as fast as the server answers, for ten seconds:
    plimsoll load http://127.0.0.1:8080/search/?query=ship
  A thousand requests a second that arrive like independent users, and a limit to hold:
    plimsoll load http://127.0.0.1:8080/ --rate 1000 --arrivals poisson --duration 1m --slo p95=50ms
  A query log with a table per kind of query, where a 200 with errors inside is a failure:
    plimsoll load http://127.0.0.1:8080 --queries queries.txt --class fuzzy=fuzzy --check vespa
  Up to 500 a second in ten seconds, a minute there, and down again:
    plimsoll load http://127.0.0.1:8080/ --profile 0-500:10s,500:60s,500-0:10s
  Bursts of 200 every second, at most 50 under way and 100 waiting:
    plimsoll load http://127.0.0.1:8080/ --burst 200 --every 1s --slots 50 --queue 100
  SQL statements, one a line, prepared once a connection, to PostgreSQL (password: PGPASSWORD):
    plimsoll load postgres://me@127.0.0.1:5432/db --queries queries.sql --method prepared --rate 500
  Users who come at 20 a second, ask every query twice with pauses between, and leave:
    plimsoll load http://127.0.0.1:8080 --queries q.txt --users 'constant 20/s during 1m' --repeat 2 --think 2s
  Fifty users at the same time, each request with a row of a file:
    plimsoll load http://127.0.0.1:8080/?q={{term}} --rows t.csv --users 'concurrent 50 during 1m'
  What the result must be, of each class by itself:
    plimsoll load http://127.0.0.1:8080 --queries q.txt --assert 'each p95 between 1ms and 50ms'

Exit codes: 0 fine, 2 a limit was missed, 3 not valid, 4 the target failed, 64 wrong usage.";

/// Put load on any HTTP service, or on PostgreSQL or VoltDB: closed, open, bursts or a profile; one URL, a query file or NDJSON.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, allow_negative_numbers = true)]
pub struct LoadArgs {
    #[command(flatten)]
    requests: RequestFlags,

    /// Clients that each wait for their answer before they ask again (the closed model; default 10).
    #[arg(long, value_name = "N", help_heading = "Load model (one of them)")]
    clients: Option<u32>,
    /// Clients and users: pause between an answer and the next request; of users also 'uniform 1s 3s', 'exponential 2s'
    /// or 'normal 2s 500ms'.
    #[arg(long, value_name = "TIME", help_heading = "Load model (one of them)")]
    think: Option<Pause>,
    /// Closed: time from one intended start of a client to its next; a late client catches up.
    #[arg(long, value_name = "TIME", help_heading = "Load model (one of them)")]
    cycle: Option<Span>,
    /// Requests per second, whatever the answers do (the open model: free of coordinated omission).
    #[arg(long, value_name = "PER_S", help_heading = "Load model (one of them)")]
    rate: Option<f64>,
    /// Open and profile: how requests follow each other.
    #[arg(long, value_enum, help_heading = "Load model (one of them)")]
    arrivals: Option<ArrivalsFlag>,
    /// Requests at once, every --every.
    #[arg(long, value_name = "SIZE", help_heading = "Load model (one of them)")]
    burst: Option<u32>,
    /// Time from one burst to the next.
    #[arg(long, value_name = "TIME", help_heading = "Load model (one of them)")]
    every: Option<Span>,
    /// Rates over time: RATE:TIME or FROM-TO:TIME, one after the other.
    #[arg(long, value_name = "STEPS", help_heading = "Load model (one of them)")]
    profile: Option<String>,
    /// Virtual users who come, ask and leave: 'at once 10', 'ramp 100 during 10s', 'constant 20/s during 1m randomized',
    /// 'concurrent 50 during 1m' ...; several steps, parted by commas (docs/users.md).
    #[arg(long, value_name = "STEPS", help_heading = "Load model (one of them)")]
    users: Option<String>,
    /// Users: requests of each, one after the other; by default all of the source, --repeat times.
    #[arg(long, value_name = "N", help_heading = "Load model (one of them)")]
    user_requests: Option<u32>,
    /// Users: how often each asks each request (default 1).
    #[arg(long, value_name = "N", help_heading = "Load model (one of them)")]
    repeat: Option<u32>,
    /// Users: time from one intended start of a user to its next; a late user catches up.
    #[arg(long, value_name = "TIME", help_heading = "Load model (one of them)")]
    pace: Option<Span>,

    /// Most requests under way; with it, what comes on top waits in a bounded queue or is refused.
    #[arg(long, value_name = "N", help_heading = "Admission")]
    slots: Option<u32>,
    /// Most requests waiting for a slot (default 1000).
    #[arg(long, value_name = "N", help_heading = "Admission")]
    queue: Option<u32>,
    /// Longest wait for a slot (default 10s).
    #[arg(long, value_name = "TIME", help_heading = "Admission")]
    queue_timeout: Option<Span>,

    #[command(flatten)]
    run: RunFlags,
}

impl LoadArgs {
    fn scenario(&self) -> Result<Scenario> {
        let mut scenario = self.requests.scenario()?;
        scenario.admission = self.admission()?;
        scenario.load = self.model()?;
        scenario.repeat = self.repeat.unwrap_or(1);
        self.run.fill(&mut scenario);
        Ok(scenario)
    }

    fn model(&self) -> Result<LoadModel> {
        let given = [
            ("--clients", self.clients.is_some()),
            ("--rate", self.rate.is_some()),
            ("--burst", self.burst.is_some()),
            ("--profile", self.profile.is_some()),
            ("--users", self.users.is_some()),
        ];
        let named: Vec<&str> = given.iter().filter(|(_, is)| *is).map(|(name, _)| *name).collect();
        if named.len() > 1 {
            return Err(usage(format!(
                "{} are different load models; give one of them",
                named.join(" and ")
            )));
        }
        if let Some(text) = &self.users {
            return self.users(text);
        }
        let of_users = [
            ("--user-requests", self.user_requests.is_some()),
            ("--repeat", self.repeat.is_some()),
            ("--pace", self.pace.is_some()),
        ];
        if let Some((flag, _)) = of_users.iter().find(|(_, is)| *is) {
            return Err(usage(format!("{flag} belongs to users; give --users, or leave it out")));
        }
        let closed = named.first().is_none_or(|&name| name == "--clients");
        if !closed && (self.think.is_some() || self.cycle.is_some()) {
            return Err(usage(format!(
                "--think and --cycle belong to the closed model; they contradict {}",
                named[0]
            )));
        }
        if self.think.is_some() && self.cycle.is_some() {
            return Err(usage("--think and --cycle are different load models; give one of them"));
        }
        let has_arrivals = self.rate.is_some() || self.profile.is_some();
        if self.arrivals.is_some() && !has_arrivals {
            return Err(usage("--arrivals belongs to --rate or --profile; give one of them"));
        }
        if self.every.is_some() != self.burst.is_some() {
            return Err(usage("--burst and --every go together; give both"));
        }
        let arrivals = match self.arrivals {
            Some(ArrivalsFlag::Poisson) => Arrivals::Poisson,
            Some(ArrivalsFlag::Uniform) | None => Arrivals::Uniform,
        };
        let model = match (self.rate, self.burst, &self.profile) {
            (Some(rate_per_s), _, _) => LoadModel::Open { rate_per_s, arrivals },
            (_, Some(size), _) => {
                LoadModel::Burst { size, every_ns: self.every.unwrap_or_default().ns }
            }
            (_, _, Some(text)) => LoadModel::Profile { steps: parse_profile(text)?, arrivals },
            _ => LoadModel::Closed {
                clients: self.clients.unwrap_or(10),
                think: self.fixed_think()?,
                cycle_ns: self.cycle.unwrap_or_default().ns,
            },
        };
        model.validate()?;
        Ok(model)
    }

    fn fixed_think(&self) -> Result<Think> {
        match self.think {
            None | Some(Pause::None) => Ok(Think::None),
            Some(Pause::Fixed(think)) => Ok(Think::Fixed(think.ns)),
            Some(_) => Err(usage(
                "--think: clients think for one time, such as 100ms; random times belong to --users",
            )),
        }
    }

    fn users(&self, text: &str) -> Result<LoadModel> {
        if self.cycle.is_some() || self.arrivals.is_some() || self.every.is_some() {
            return Err(usage(
                "--cycle, --arrivals and --every belong to other load models than --users; \
                 users have --think and --pace",
            ));
        }
        if self.user_requests == Some(0) {
            return Err(usage(
                "--user-requests 0 asks for nothing; leave it out or use at least 1",
            ));
        }
        let profile: UserProfile = text.parse().map_err(|error: ProfileError| {
            usage(format!("--users: column {}: {}", error.column, error.problem))
        })?;
        Ok(LoadModel::Users {
            profile,
            requests: self.user_requests.unwrap_or(0),
            think: self.think.unwrap_or_default(),
            pace: self.pace.unwrap_or_default(),
        })
    }

    fn admission(&self) -> Result<AdmissionModel> {
        match self.slots {
            Some(slots) => Ok(AdmissionModel::Managed {
                slots,
                queue_max: self.queue.unwrap_or(1000),
                queue_timeout_ns: self.queue_timeout.unwrap_or(Span::seconds(10)).ns,
            }),
            None if self.queue.is_some() || self.queue_timeout.is_some() => Err(usage(
                "--queue and --queue-timeout need --slots, which says what they wait for",
            )),
            None => Ok(AdmissionModel::Direct),
        }
    }
}

/// Reads `0-500:10s,500:60s`.
fn parse_profile(text: &str) -> Result<Vec<Step>> {
    text.split(',')
        .map(|part| {
            let wrong = |problem: &str| {
                usage(format!("--profile '{part}': {problem}; write RATE:TIME or FROM-TO:TIME"))
            };
            let (rates, time) = part.split_once(':').ok_or_else(|| wrong("there is no ':'"))?;
            let duration: Span =
                time.parse().map_err(|e: plimsoll_core::units::UnitError| wrong(&e.to_string()))?;
            let rate = |text: &str| {
                let rate: Option<f64> = text.trim().parse().ok();
                rate.filter(|r| r.is_finite() && *r >= 0.0)
                    .ok_or_else(|| wrong("the rate is no number"))
            };
            let (from, to) = rates.split_once('-').unwrap_or((rates, rates));
            Ok(Step { from_per_s: rate(from)?, to_per_s: rate(to)?, duration_ns: duration.ns })
        })
        .collect()
}

impl Job for LoadArgs {
    const NAME: &'static str = "load";

    fn run(&self, _program: &Program) -> Result<u8> {
        run(self)
    }
}

/// Runs the command.
///
/// # Errors
/// Wrong usage, or a program failure.
fn run(args: &LoadArgs) -> Result<u8> {
    let scenario = args.scenario()?;
    run_and_print(&scenario, &args.run.output.output())
}

/// A whole command: prepares the scenario, runs it, prints the result, and gives the exit code.
///
/// # Errors
/// Wrong usage, or a program failure.
pub fn run_and_print(scenario: &Scenario, output: &Output) -> Result<u8> {
    if scenario.targets.iter().any(|target| plimsoll_job::postgres::is_address(target)) {
        return postgres::run_and_print(scenario, output);
    }
    if scenario.targets.iter().any(|target| volt::is_address(target)) {
        return volt::run_and_print(scenario, output);
    }
    let prepared = prepare(scenario)?;
    output.check()?;
    reach(&prepared.plan.targets, scenario.connect_timeout)?;
    // How many requests each user has is known when the source has been read.
    let mut scenario = scenario.clone();
    scenario.load.clone_from(&prepared.plan.model);
    let finished = execute(&scenario, prepared, output, &mut |_| {}, &|_| JobResults::default())?;
    if !write_results(output, &finished.record)? {
        let folder = finished.folder.as_deref();
        print_out(&plimsoll_report::text::render(&finished.record, folder, &style()))?;
    }
    Ok(code(&finished))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_read() {
        let steps = parse_profile("0-500:10s,500:1m").unwrap();
        assert_eq!(steps.len(), 2);
        assert_eq!((steps[0].from_per_s, steps[0].to_per_s), (0.0, 500.0));
        assert_eq!(steps[1].duration_ns, 60_000_000_000);
        for wrong in ["", "500", "x:10s", "5:fast", "-1:2s"] {
            assert!(parse_profile(wrong).is_err(), "{wrong}");
        }
    }
}
