//! `volt://` targets of `load` and `seek`: SQL statements and calls of procedures instead of HTTP requests.

use crate::postgres::ways;
use anyhow::Result;
use plimsoll_core::scenario::{Scenario, TlsScenario};
use plimsoll_core::schedule::LoadModel;
use plimsoll_engine::shard::ShardPlan;
use plimsoll_job::execute::run_calls;
use plimsoll_job::keeping::About;
use plimsoll_job::output::Output;
use plimsoll_job::prepare::{check_classes, check_limits, check_users, plan_of, script_of};
use plimsoll_job::usage::usage;
use plimsoll_voter::{Database, VOLT_DEPTH, ping, volt_of};
use plimsoll_wire::Sessions;
use plimsoll_wire::volt::Volt;
use plimsoll_workloads::classes::Classes;
use plimsoll_workloads::course::Course;
use plimsoll_workloads::http::Troubles;
use plimsoll_workloads::script::Script;
use plimsoll_workloads::volt_calls::{CallSessions, CallSet};
use std::sync::Arc;

/// True if an address is one of VoltDB's.
#[must_use]
pub fn is_address(text: &str) -> bool {
    text.starts_with("volt://")
}

/// Calls and the hosts that they go to, opened and checked.
pub struct Calls {
    /// The scenario as it is recorded: addresses without passwords, and how many requests each user has.
    pub scenario: Scenario,
    /// The plan of the engine.
    pub plan: ShardPlan,
    /// The protocol of the hosts.
    pub protocol: Volt,
    /// The calls.
    pub set: Arc<CallSet>,
    script: Option<Script>,
}

/// Opens and checks everything that a scenario of calls names, and logs in once to see that it can be done.
///
/// # Errors
/// Wrong usage, or a host that is not there or refuses.
pub fn open(scenario: &Scenario) -> Result<Calls> {
    check(scenario)?;
    let database = Database::parse(&scenario.targets)?;
    let Database::Volt(address) = &database else {
        return Err(usage("some targets are volt:// and some are not; run them apart"));
    };
    let mut shown = Scenario { targets: database.shown(), ..scenario.clone() };
    // A connection carries many calls: as many as there are hosts, for each thread.
    let own = (address.hosts.len() as u32).saturating_mul(scenario.threads_in_all().max(1));
    shown.connections = Some(scenario.connections.unwrap_or(own));
    check_limits(&shown)?;
    check_users(&shown)?;
    let mut classes = Classes::new(&scenario.classes)?;
    let set = Arc::new(calls(scenario, &mut classes)?);
    check_classes(scenario, set.class_names())?;
    let script = script_of(scenario, set.len())?;
    if let (LoadModel::Users { requests, .. }, Some(script)) = (&mut shown.load, &script) {
        *requests = script.requests();
    }
    let targets = database.targets();
    ping(address, &targets, scenario.connect_timeout)?;
    let plan = plan_of(&shown, targets, None, set.class_names().len());
    let protocol = volt_of(address, VOLT_DEPTH);
    Ok(Calls { scenario: shown, plan, protocol, set, script })
}

/// A whole run: prepares it, runs, prints.
///
/// # Errors
/// Wrong usage, a host that is not there or refuses, or a program failure.
pub fn run_and_print(scenario: &Scenario, output: &Output) -> Result<u8> {
    let calls = open(scenario)?;
    output.check()?;
    let sessions = calls.sessions(&calls.scenario)?;
    run_calls(&calls.scenario, &calls.about(), sessions, || calls.protocol.clone(), output)
}

/// Rejects flags that calls do not have, before anything is sent.
fn check(scenario: &Scenario) -> Result<()> {
    let TlsScenario { ca_file, certificate_file, key_file, server_name, insecure } = &scenario.tls;
    let tls = ca_file.is_some() || certificate_file.is_some() || key_file.is_some();
    let wrong = if scenario.targets.iter().any(|target| !is_address(target)) {
        "some targets are volt:// and some are not; run them apart"
    } else if !scenario.headers.is_empty() || scenario.post || scenario.http2 || !scenario.keepalive
    {
        "--header, --post, --http2 and --no-keepalive are HTTP's; leave them out for volt://"
    } else if scenario.method.is_some() {
        "--method is HTTP's; leave it out for volt://, or write exec PROCEDURE VALUE ..."
    } else if !scenario.checks.is_empty() || scenario.hits != "auto" {
        "--check and --hits are HTTP's: with volt:// a status is a failure and rows are hits"
    } else if scenario.rows.is_some() {
        "--rows fills HTTP requests: for volt:// write the values into the statements"
    } else if tls || server_name.is_some() || *insecure {
        "TLS is not supported for volt://; leave out the flags of TLS"
    } else if scenario.body_file.is_some() {
        "--body @FILE: a call is UTF-8 text, and this file is not"
    } else if scenario.queries.is_some() && scenario.body.is_some() {
        "--queries and --body are different requests; leave one out"
    } else if scenario.queries.is_none() && scenario.body.is_none() {
        "volt:// needs calls: --queries FILE with one a line, or --body 'SELECT ...' or 'exec PROCEDURE VALUE ...'; votes \
         are called by plimsoll voter and plimsoll seek"
    } else {
        return Ok(());
    };
    Err(usage(wrong))
}

fn calls(scenario: &Scenario, classes: &mut Classes) -> Result<CallSet> {
    match (&scenario.queries, &scenario.body) {
        (Some(path), _) => {
            let shown = path.display().to_string();
            let text = crate::postgres::read(path)
                .map_err(|why| usage(format!("--queries {shown}: {why}")))?;
            CallSet::parse(&text, classes).map_err(|error| usage(format!("{shown}: {error}")))
        }
        (None, body) => {
            // A text of several lines is one call here.
            let text = body.as_deref().unwrap_or_default().replace(['\r', '\n'], " ");
            CallSet::parse(&text, classes).map_err(|error| usage(format!("--body: {error}")))
        }
    }
}

impl Calls {
    /// Returns the description of the calls for the record.
    pub fn about(&self) -> About<'_> {
        About {
            plan: &self.plan,
            class_names: self.set.class_names().to_vec(),
            distinct_requests: Some(self.set.len() as u64),
            troubles: Troubles::default(),
        }
    }

    /// Sessions for every shard, in the order and with the seed of `scenario`.
    ///
    /// # Errors
    /// An unknown order.
    pub fn sessions(&self, scenario: &Scenario) -> Result<Vec<Box<dyn Sessions<Volt> + Send>>> {
        sessions(scenario, &self.set, self.script.as_ref())
    }
}

fn sessions(
    scenario: &Scenario,
    set: &Arc<CallSet>,
    script: Option<&Script>,
) -> Result<Vec<Box<dyn Sessions<Volt> + Send>>> {
    let courses: Vec<Course> = match script {
        Some(script) => {
            let own = Course::of_users(script.of_part(scenario.seed));
            vec![own; scenario.threads as usize]
        }
        None => ways(scenario, set.len())?.into_iter().map(Course::new).collect(),
    };
    let one =
        |course| Box::new(CallSessions::new(set.clone(), course)) as Box<dyn Sessions<Volt> + Send>;
    Ok(courses.into_iter().map(one).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawn::{drawn, lines, unions_differ};

    #[test]
    fn the_calls_of_all_parts_are_those_of_one_process() {
        for seed in 0..150 {
            let scenario = drawn(seed);
            let mut classes = Classes::new::<String>(&[]).unwrap();
            let set = Arc::new(CallSet::parse(&lines(seed), &mut classes).unwrap());
            let make = |scenario: &Scenario| {
                let script = script_of(scenario, set.len()).unwrap();
                sessions(scenario, &set, script.as_ref()).unwrap()
            };
            let text = |request: &plimsoll_wire::volt::Request| format!("{request:?}");
            assert_eq!(unions_differ(&scenario, make, text), None, "seed {seed}: {scenario:?}");
        }
    }
}
