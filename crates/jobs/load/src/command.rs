//! `plimsoll load`: requests to any HTTP service, under any load model.

use crate::postgres;
use crate::volt;
use anyhow::Result;
use clap::Args;
use plimsoll_core::admission::AdmissionModel;
use plimsoll_core::scenario::Scenario;
use plimsoll_core::schedule::{Arrivals, LoadModel, ProfileError, Step, UserProfile};
use plimsoll_core::units::{Rate, Span, UnitError};
use plimsoll_job::contact::reach;
use plimsoll_job::execute::{execute, print};
use plimsoll_job::flags::{ArrivalsFlag, RunFlags, UserFlags};
use plimsoll_job::job::{Job, Program};
use plimsoll_job::output::Output;
use plimsoll_job::prepare::prepare;
use plimsoll_job::requests::RequestFlags;
use plimsoll_job::usage::usage;
use plimsoll_record::JobResults;

const SHORT: &str = "plimsoll load --help explains each option and has examples.";

const EXAMPLES: &str = "\
Examples:
  10 clients at full speed for 10 s:
    plimsoll load http://127.0.0.1:8080/search/?query=ship
  1000 requests per second that arrive like independent users, and a limit on the result:
    plimsoll load http://127.0.0.1:8080/ --rate 1k --arrivals poisson --duration 1m --slo p95=50ms
  A query log with a table for each kind of query; a reply with errors inside is a failure:
    plimsoll load http://127.0.0.1:8080 --queries queries.txt --class fuzzy=fuzzy --check vespa
  A ramp to 500 requests per second in 10 s, 60 s at this rate, and down again:
    plimsoll load http://127.0.0.1:8080/ --rate-profile 0-500:10s,500:60s,500-0:10s
  Bursts of 200 every second, at most 50 requests in flight and 100 waiting:
    plimsoll load http://127.0.0.1:8080/ --burst 200 --every 1s --slots 50 --queue 100
  50 clients that pause for 2 s on average between a reply and the next request:
    plimsoll load http://127.0.0.1:8080/ --clients 50 --think 'exponential 2s'
  SQL statements of PostgreSQL, one a line, prepared once a connection (password: PGPASSWORD):
    plimsoll load postgres://me@127.0.0.1:5432/db --queries queries.sql --sql-mode prepared \\
      --rate 500
  Users who arrive at 20 per second, send every query twice with pauses between, and leave:
    plimsoll load http://127.0.0.1:8080 --queries q.txt --users 'constant 20/s during 1m' \\
      --passes 2 --think 2s
  50 users at the same time; each request has a row of a file:
    plimsoll load http://127.0.0.1:8080/?q={{term}} --rows t.csv \\
      --users 'concurrent 50 during 1m'
  An assertion on each class of the result:
    plimsoll load http://127.0.0.1:8080 --queries q.txt --assert 'each p95 between 1ms and 50ms'
  A secret that is neither on the command line nor in the record:
    plimsoll load http://127.0.0.1:8080/ --header 'Authorization: Bearer ${TOKEN}'

Exit codes: 0 fine, 2 a limit was missed, 3 not valid, 4 the target failed, 64 wrong usage.";

/// Put load on any HTTP service, or on PostgreSQL or VoltDB
///
/// The load model is a number of clients, an arrival rate, bursts, a rate profile or virtual users. The requests are one
/// URL, or a file of requests.
#[derive(Args, Debug)]
#[command(after_help = SHORT, after_long_help = EXAMPLES, allow_negative_numbers = true)]
pub struct LoadArgs {
    #[command(flatten)]
    requests: RequestFlags,

    /// Closed model: clients that wait for each reply [default: 10]
    ///
    /// Each client waits for its reply before it sends again.
    #[arg(long, value_name = "N", help_heading = "Load model (one of them)")]
    clients: Option<u32>,
    /// Closed model: time between a client's intended starts
    ///
    /// A client whose reply is late sends at once and catches up.
    #[arg(long, value_name = "TIME", help_heading = "Load model (one of them)")]
    cycle: Option<Span>,
    /// Open model: requests per second, such as 1000 or 1k
    ///
    /// Requests arrive at their own time, even if earlier ones were not answered (no coordinated omission).
    #[arg(long, value_name = "PER_S", help_heading = "Load model (one of them)")]
    rate: Option<Rate>,
    /// Bursts: number of requests sent at once
    ///
    /// Also give --every.
    #[arg(long, value_name = "SIZE", help_heading = "Load model (one of them)")]
    burst: Option<u32>,
    /// Bursts: time from one to the next
    #[arg(long, value_name = "TIME", help_heading = "Load model (one of them)")]
    every: Option<Span>,
    /// Rate profile: RATE:TIME or FROM-TO:TIME, comma-separated
    ///
    /// Rates are in requests per second, such as 0-500:10s,500:60s,500-0:10s.
    #[arg(
        long,
        alias = "profile",
        value_name = "STEPS",
        help_heading = "Load model (one of them)"
    )]
    rate_profile: Option<String>,
    /// Virtual users: 'ramp 100 during 10s' (docs/users.md)
    ///
    /// Virtual users arrive, send requests and leave: 'at once 10', 'ramp 100 during 10s', 'constant 20/s during 1m
    /// randomized', 'concurrent 50 during 1m'. Several steps are separated by commas.
    #[arg(long, value_name = "STEPS", help_heading = "Load model (one of them)")]
    users: Option<String>,
    /// Gaps between requests, uniform or poisson [default: uniform]
    ///
    /// For --rate and --rate-profile. uniform: equal gaps; poisson: independent exponential gaps, as of many independent
    /// users.
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "GAPS",
        help_heading = "Load model (one of them)"
    )]
    arrivals: Option<ArrivalsFlag>,
    #[command(flatten)]
    own: UserFlags,

    /// Largest number of requests in flight; others wait
    ///
    /// Other requests wait in a bounded queue (--queue). Beyond that, they are rejected and counted.
    #[arg(long, value_name = "N", help_heading = "Admission")]
    slots: Option<u32>,
    /// Largest number of requests that wait [default: 1000]
    #[arg(long, value_name = "N", help_heading = "Admission")]
    queue: Option<u32>,
    /// Longest wait in the queue [default: 10s]
    #[arg(long, value_name = "TIME", help_heading = "Admission")]
    queue_timeout: Option<Span>,

    #[command(flatten)]
    run: RunFlags,
}

impl LoadArgs {
    /// The flags as a scenario.
    ///
    /// # Errors
    /// Flags that contradict each other.
    pub fn scenario(&self) -> Result<Scenario> {
        let mut scenario = self.requests.scenario()?;
        scenario.admission = self.admission()?;
        scenario.load = self.model()?;
        scenario.repeat = self.own.passes.unwrap_or(1);
        self.run.fill(&mut scenario);
        Ok(scenario)
    }

    fn model(&self) -> Result<LoadModel> {
        let given = [
            ("--clients", self.clients.is_some()),
            ("--rate", self.rate.is_some()),
            ("--burst", self.burst.is_some()),
            ("--rate-profile", self.rate_profile.is_some()),
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
        if let Some(flag) = self.own.first() {
            return Err(usage(format!("{flag} belongs to users; give --users, or leave it out")));
        }
        let think = self.own.pauses.think;
        let closed = named.first().is_none_or(|&name| name == "--clients");
        if !closed && (think.is_some() || self.cycle.is_some()) {
            return Err(usage(format!(
                "--think and --cycle belong to the closed model; they contradict {}",
                named[0]
            )));
        }
        if think.is_some() && self.cycle.is_some() {
            return Err(usage("--think and --cycle are different load models; give one of them"));
        }
        let has_arrivals = self.rate.is_some() || self.rate_profile.is_some();
        if self.arrivals.is_some() && !has_arrivals {
            return Err(usage("--arrivals belongs to --rate or --rate-profile; give one of them"));
        }
        if self.every.is_some() != self.burst.is_some() {
            return Err(usage("--burst and --every go together; give both"));
        }
        let arrivals = match self.arrivals {
            Some(ArrivalsFlag::Poisson) => Arrivals::Poisson,
            Some(ArrivalsFlag::Uniform) | None => Arrivals::Uniform,
        };
        let model = match (self.rate.map(|rate| rate.per_s), self.burst, &self.rate_profile) {
            (Some(rate_per_s), _, _) => LoadModel::Open { rate_per_s, arrivals },
            (_, Some(size), _) => {
                LoadModel::Burst { size, every_ns: self.every.unwrap_or_default().ns }
            }
            (_, _, Some(text)) => LoadModel::Profile { steps: parse_profile(text)?, arrivals },
            _ => LoadModel::Closed {
                clients: self.clients.unwrap_or(10),
                think: think.unwrap_or_default().into(),
                cycle_ns: self.cycle.unwrap_or_default().ns,
            },
        };
        let flag = named.first().copied().unwrap_or("--clients");
        model.validate().map_err(|problem| usage(format!("{flag}: {problem}")))?;
        Ok(model)
    }

    fn users(&self, text: &str) -> Result<LoadModel> {
        if self.cycle.is_some() || self.arrivals.is_some() || self.every.is_some() {
            return Err(usage(
                "--cycle, --arrivals and --every belong to other load models than --users; \
                 users have --think and --pace",
            ));
        }
        let profile: UserProfile = text.parse().map_err(|error: ProfileError| {
            usage(format!("--users: column {}: {}", error.column, error.problem))
        })?;
        Ok(LoadModel::Users {
            profile,
            requests: self.own.requests()?,
            think: self.own.pauses.think.unwrap_or_default(),
            pace: self.own.pauses.pace.unwrap_or_default(),
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
                usage(format!(
                    "--rate-profile '{part}': {problem}; write RATE:TIME or FROM-TO:TIME"
                ))
            };
            let (rates, time) = part.split_once(':').ok_or_else(|| wrong("there is no ':'"))?;
            let duration: Span =
                time.parse().map_err(|error: UnitError| wrong(&error.to_string()))?;
            let rate = |text: &str| {
                let rate = text.trim().parse::<Rate>();
                rate.map(|rate| rate.per_s).map_err(|error| wrong(&error.to_string()))
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
    print(&finished, output, &LoadArgs::FORMS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_read() {
        let steps = parse_profile("0-500/s:10s,0.5k:1m").unwrap();
        assert_eq!(steps.len(), 2);
        assert_eq!((steps[0].from_per_s, steps[0].to_per_s), (0.0, 500.0));
        assert_eq!(steps[1].duration_ns, 60_000_000_000);
        for wrong in ["", "500", "x:10s", "5:fast", "-1:2s"] {
            assert!(parse_profile(wrong).is_err(), "{wrong}");
        }
    }
}
