//! The requests of a search, for each protocol of a target.

use super::searching::{PARTS, Subject, search};
use super::{SeekArgs, Task};
use anyhow::Result;
use plimsoll_core::scenario::Scenario;
use plimsoll_core::schedule::Arrivals;
use plimsoll_job::contact::reach;
use plimsoll_job::flags::ArrivalsFlag;
use plimsoll_job::keeping::{About, Finished};
use plimsoll_job::output::Output;
use plimsoll_job::prepare::{http_of, only_whole, open};
use plimsoll_job::together::has_agents;
use plimsoll_job::usage::usage;
use plimsoll_load::postgres;
use plimsoll_load::volt;
use plimsoll_voter::{Search, seek_votes};

/// Requests of HTTP.
pub fn of_http(mut task: Task, output: &Output) -> Result<Finished> {
    let (plan, form) = open(&task.scenario)?;
    let prepared = form.prepared(&task.scenario, plan)?;
    let limits = task.limits(&prepared.class_names, |class| form.has_class(class))?;
    output.check()?;
    reach(&prepared.plan.targets, task.scenario.connect_timeout)?;
    let about = About {
        plan: &prepared.plan,
        class_names: prepared.class_names,
        distinct_requests: prepared.distinct_requests,
        troubles: prepared.troubles,
    };
    task.know_users(&prepared.plan.model);
    let http = http_of(&task.scenario);
    let scenario = task.scenario.clone();
    let mut sessions = |seed| form.sessions(&part(&scenario, seed, form.length()));
    let subject = Subject { about: &about, limits, sessions: &mut sessions };
    search(&task, subject, output, || http)
}

/// SQL statements of PostgreSQL.
pub fn of_sql(mut task: Task, output: &Output) -> Result<Finished> {
    let sql = postgres::open(&task.scenario)?;
    let limits = task.limits(sql.set.class_names(), |class| sql.set.has_class(class))?;
    output.check()?;
    task.scenario.clone_from(&sql.scenario);
    task.know_users(&sql.scenario.load);
    let scenario = task.scenario.clone();
    let about = sql.about();
    let mut sessions = |seed| sql.sessions(&part(&scenario, seed, Some(sql.set.len())));
    let subject = Subject { about: &about, limits, sessions: &mut sessions };
    search(&task, subject, output, || sql.protocol.clone())
}

/// SQL statements and procedures of VoltDB.
pub fn of_calls(mut task: Task, output: &Output) -> Result<Finished> {
    let calls = volt::open(&task.scenario)?;
    let limits = task.limits(calls.set.class_names(), |class| calls.set.has_class(class))?;
    output.check()?;
    task.scenario.clone_from(&calls.scenario);
    task.know_users(&calls.scenario.load);
    let scenario = task.scenario.clone();
    let about = calls.about();
    let mut sessions = |seed| calls.sessions(&part(&scenario, seed, Some(calls.set.len())));
    let subject = Subject { about: &about, limits, sessions: &mut sessions };
    search(&task, subject, output, || calls.protocol.clone())
}

/// Votes, by the voter's own calls, with its preparation and its check of writes.
pub fn of_votes(args: &SeekArgs, task: &Task, output: &Output) -> Result<Finished> {
    check_votes(args, &task.scenario)?;
    if !has_agents() {
        only_whole(task.scenario.slice, "a search", PARTS)?;
    }
    let scenario = &task.scenario;
    let mut words = vec![
        format!("--budget={}", scenario.length()),
        format!("--seed={}", scenario.seed),
        format!("--threads={}", scenario.threads),
        format!("--timeout={}", scenario.timeout),
        format!("--connect-timeout={}", scenario.connect_timeout),
    ];
    if !scenario.slice.is_whole() {
        words.push(format!("--part={}/{}", scenario.slice.index, scenario.slice.of));
    }
    words.extend(scenario.connections.map(|connections| format!("--connections={connections}")));
    words.extend(output.quiet.then(|| "--quiet".to_owned()));
    words.extend(output.verbose.then(|| "--verbose".to_owned()));
    words.extend(scenario.targets.iter().map(|target| format!("--target={target}")));
    let arrivals = match args.arrivals {
        ArrivalsFlag::Poisson => Arrivals::Poisson,
        ArrivalsFlag::Uniform => Arrivals::Uniform,
    };
    let search = Search {
        width: args.search.width.clone(),
        confidence: args.confidence.clone(),
        start_per_s: args.start_rate.per_s,
        most_per_s: args.max_rate.per_s,
        arrivals,
        method: args.search.strategy,
        watches: args.over_time,
    };
    seek_votes(&words, &scenario.slo, search, output)
}

/// Rejects flags that votes do not have, before anything is sent.
fn check_votes(args: &SeekArgs, scenario: &Scenario) -> Result<()> {
    let plain = Scenario::default();
    let is_http = |target: &String| target.starts_with("http");
    let wrong = if !args.votes && !scenario.targets.iter().all(|target| volt::is_address(target)) {
        "some targets are volt:// and some are not; run them apart"
    } else if scenario.targets.iter().any(is_http) {
        "--votes are calls of a database; write volt://HOST:PORT or postgres://USER@HOST:PORT/DATABASE"
    } else if scenario.queries.is_some() || scenario.has_body() {
        "--votes and --queries or --body are different requests; leave one out"
    } else if args.users.users.is_some() {
        "--users: votes are given by telephones, each call by itself; leave it out, or give --queries of calls"
    } else if scenario.order != plain.order || scenario.rows.is_some() || scenario.post {
        "votes are drawn by the seed; leave --order, --rows and --post out"
    } else if scenario.method.is_some() || !scenario.headers.is_empty() || scenario.http2 {
        "votes have no --method, --sql-mode, --header or --http2; leave them out"
    } else if !scenario.classes.is_empty()
        || !scenario.checks.is_empty()
        || scenario.hits != plain.hits
    {
        "votes have one class, 'vote', and each answer is checked; leave --class, --check and --hits out"
    } else if scenario.tls != plain.tls || !scenario.keepalive || scenario.spin != plain.spin {
        "--no-keepalive, --spin and the flags of TLS are none of votes; leave them out"
    } else {
        return Ok(());
    };
    Err(usage(wrong))
}

/// The scenario of one part of the search: a seed of its own, so that no two parts ask the same requests in the
/// same order, or with the same rows. `length` is the number of requests, where they can be asked in any order.
fn part(scenario: &Scenario, seed: u64, length: Option<usize>) -> Scenario {
    let mut part = scenario.clone();
    part.seed = seed;
    if part.order == "file" && length.is_some_and(|length| length > 1) {
        part.order = "shuffle".to_owned();
    }
    part
}
