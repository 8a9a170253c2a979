//! `postgres://` targets of `load` and `seek`: SQL statements instead of HTTP requests, under the same load models.

use anyhow::Result;
use plimsoll_core::scenario::{Scenario, TlsScenario};
use plimsoll_core::schedule::{LoadModel, Slice};
use plimsoll_engine::shard::ShardPlan;
use plimsoll_engine::target::Target;
use plimsoll_job::execute::run_calls;
use plimsoll_job::keeping::About;
use plimsoll_job::output::Output;
use plimsoll_job::postgres::{Address, NoLogin, is_address, log_in, settle};
use plimsoll_job::prepare::{
    check_classes, check_limits, check_users, order_of, plan_of, script_of,
};
use plimsoll_job::usage::{unreachable, usage};
use plimsoll_wire::Sessions;
use plimsoll_wire::postgres::Postgres;
use plimsoll_workloads::classes::Classes;
use plimsoll_workloads::http::{Order, Troubles, Way, shuffled};
use plimsoll_workloads::query_file::Passes;
use plimsoll_workloads::script::Script;
use plimsoll_workloads::sql::{STATEMENTS_BYTES_MAX, SqlMode, SqlSessions, SqlSet};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// SQL statements and the servers that they go to, opened and checked.
pub struct Sql {
    /// The scenario as it is recorded: addresses without passwords, and how many requests each user has.
    pub scenario: Scenario,
    /// The plan of the generator.
    pub plan: ShardPlan,
    /// The protocol, with its login.
    pub protocol: Postgres,
    /// The statements.
    pub set: Arc<SqlSet>,
    script: Option<Script>,
}

/// Opens and checks everything that a scenario over SQL names, and logs in once to see that it can be done.
///
/// # Errors
/// Wrong usage, or a server that is not there or refuses.
pub fn open(scenario: &Scenario) -> Result<Sql> {
    check_limits(scenario)?;
    check_users(scenario)?;
    check(scenario)?;
    let mut addresses =
        scenario.targets.iter().map(|t| Address::parse(t)).collect::<Result<Vec<_>>>()?;
    let Some(first) = addresses.first() else { return Err(usage("no target; name an address")) };
    if !addresses.iter().all(|other| other.has_same_login(first)) {
        return Err(usage(
            "the targets differ in user, password, database or parameters; run them apart",
        ));
    }
    let mut classes = Classes::new(&scenario.classes)?;
    let set = Arc::new(statements(scenario, &mut classes)?);
    check_classes(scenario, set.class_names())?;
    let script = script_of(scenario, set.len())?;
    let targets: Vec<Target> =
        addresses.iter().map(|address| Target::resolve(&address.host, address.port)).collect();
    let mut secure = Vec::new();
    for (target, address) in targets.iter().zip(&addresses) {
        match log_in(target, address, scenario.timeout, scenario.connect_timeout)? {
            Ok(is_secure) => secure.push(is_secure),
            Err(NoLogin::Nobody(error)) => {
                let place = address.shown();
                return Err(unreachable(format!(
                    "{place}: {error}; check the address, or start the server. Nothing was sent"
                )));
            }
            Err(refused) => return Err(refused.told(address)),
        }
    }
    settle(&mut addresses, &secure);
    let mut shown =
        Scenario { targets: addresses.iter().map(Address::shown).collect(), ..scenario.clone() };
    // How many requests each user has is known when the statements have been read.
    if let (LoadModel::Users { requests, .. }, Some(script)) = (&mut shown.load, &script) {
        *requests = script.requests();
    }
    let first = &addresses[0];
    let protocol =
        first.protocol(scenario.timeout, &[])?.with_statements(set.to_prepare().to_vec());
    let plan = plan_of(&shown, targets, first.tls()?, set.class_names().len());
    Ok(Sql { scenario: shown, plan, protocol, set, script })
}

/// A whole run: prepares it, runs, prints.
///
/// # Errors
/// Wrong usage, a server that is not there or refuses, or a program failure.
pub fn run_and_print(scenario: &Scenario, output: &Output) -> Result<u8> {
    let sql = open(scenario)?;
    output.check()?;
    let sessions = sql.sessions(&sql.scenario)?;
    run_calls(&sql.scenario, &sql.about(), sessions, || sql.protocol.clone(), output)
}

/// Rejects flags that SQL does not have, before anything is sent.
fn check(scenario: &Scenario) -> Result<()> {
    let TlsScenario { ca_file, certificate_file, key_file, server_name, insecure } = &scenario.tls;
    let tls = ca_file.is_some() || certificate_file.is_some() || key_file.is_some();
    let wrong = if scenario.targets.iter().any(|target| !is_address(target)) {
        "some targets are postgres:// and some are not; run them apart"
    } else if !scenario.headers.is_empty() || scenario.post || scenario.http2 {
        "--header, --post and --http2 are HTTP's; leave them out for postgres://"
    } else if !scenario.checks.is_empty() || scenario.hits != "auto" {
        "--check and --hits are HTTP's: with postgres:// an error is a failure and rows are hits"
    } else if scenario.rows.is_some() {
        "--rows fills HTTP requests: for postgres:// write the values into the statements, or have plimsoll search fill them"
    } else if tls || server_name.is_some() || *insecure {
        "flags of TLS are HTTP's: write postgres://.../DATABASE?sslmode=verify-full&sslrootcert=FILE"
    } else if scenario.body_file.is_some() {
        "--body @FILE: SQL is UTF-8 text, and this file is not"
    } else if scenario.queries.is_some() && scenario.body.is_some() {
        "--queries and --body are different requests; leave one out"
    } else if scenario.queries.is_none() && scenario.body.is_none() {
        "postgres:// needs SQL: --queries FILE with one statement a line, or --body 'SELECT ...'; votes are called by \
         plimsoll voter and plimsoll seek --votes"
    } else {
        return Ok(());
    };
    Err(usage(wrong))
}

fn statements(scenario: &Scenario, classes: &mut Classes) -> Result<SqlSet> {
    let mode = match scenario.method.as_deref() {
        None | Some("simple") => SqlMode::Simple,
        Some("prepared") => SqlMode::Prepared,
        Some(other) => {
            return Err(usage(format!(
                "--method '{other}' is HTTP's; for postgres:// write --sql-mode simple (parsed and planned each time) or prepared"
            )));
        }
    };
    match (&scenario.queries, &scenario.body) {
        (Some(path), _) => {
            let shown = path.display().to_string();
            let text = read(path).map_err(|why| usage(format!("--queries {shown}: {why}")))?;
            SqlSet::parse(&text, mode, classes).map_err(|error| usage(format!("{shown}: {error}")))
        }
        (None, body) => {
            // A text of several lines is one statement here.
            let text = body.as_deref().unwrap_or_default().replace(['\r', '\n'], " ");
            SqlSet::parse(&text, mode, classes).map_err(|error| usage(format!("--body: {error}")))
        }
    }
}

/// The text of a file of statements.
///
/// # Errors
/// Why it cannot be read.
pub fn read(path: &Path) -> Result<String, String> {
    let input: Box<dyn Read> = match path == Path::new("-") {
        true => Box::new(std::io::stdin()),
        false => Box::new(File::open(path).map_err(|error| error.to_string())?),
    };
    let mut text = String::new();
    let length = input
        .take(STATEMENTS_BYTES_MAX + 1)
        .read_to_string(&mut text)
        .map_err(|error| format!("{error}; give a file of UTF-8 text"))?;
    match length as u64 > STATEMENTS_BYTES_MAX {
        true => Err("is longer than 64 MiB; split it".to_owned()),
        false => Ok(text),
    }
}

impl Sql {
    /// Description of the statements for the record.
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
    pub fn sessions(&self, scenario: &Scenario) -> Result<Vec<Box<dyn Sessions<Postgres> + Send>>> {
        sessions(scenario, &self.set, self.script.as_ref())
    }
}

fn sessions(
    scenario: &Scenario,
    set: &Arc<SqlSet>,
    script: Option<&Script>,
) -> Result<Vec<Box<dyn Sessions<Postgres> + Send>>> {
    if let Some(script) = script {
        let one = |_| {
            let own = SqlSessions::of_users(set.clone(), script.of_part(scenario.seed));
            Box::new(own) as Box<dyn Sessions<Postgres> + Send>
        };
        return Ok((0..scenario.threads).map(one).collect());
    }
    let one =
        |way| Box::new(SqlSessions::new(set.clone(), way)) as Box<dyn Sessions<Postgres> + Send>;
    Ok(ways(scenario, set.len())?.into_iter().map(one).collect())
}

/// The endless order in which every shard sends the `length` requests in memory.
///
/// # Errors
/// An unknown order.
pub fn ways(scenario: &Scenario, length: usize) -> Result<Vec<Way>> {
    let order = order_of(scenario)?;
    let permutation = (order == Order::Shuffle).then(|| shuffled(length, scenario.seed));
    let one = |slice: Slice| {
        let shard = u64::from(slice.index);
        let way = Way::new(0..length, shard, slice.of.into(), Passes::Unlimited);
        match (&permutation, order) {
            (Some(order), _) => way.shuffled(order.clone()),
            (None, Order::Random) => way.random(scenario.seed, shard),
            (None, _) => way,
        }
    };
    Ok(scenario.shards().map(one).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawn::{drawn, lines, unions_differ};

    #[test]
    fn the_statements_of_all_parts_are_those_of_one_process() {
        for seed in 0..150 {
            let scenario = drawn(seed);
            let mut classes = Classes::new::<String>(&[]).unwrap();
            let set = Arc::new(SqlSet::parse(&lines(seed), SqlMode::Simple, &mut classes).unwrap());
            let make = |scenario: &Scenario| {
                let script = script_of(scenario, set.len()).unwrap();
                sessions(scenario, &set, script.as_ref()).unwrap()
            };
            let text = |request: &plimsoll_wire::postgres::Request| format!("{request:?}");
            assert_eq!(unions_differ(&scenario, make, text), None, "seed {seed}: {scenario:?}");
        }
    }
}
