//! One client, from its first connection to the check of its writes.

mod by_agents;
pub use by_agents::merge;
mod rolling;
pub mod seeking;
mod tuning;

use super::address::Database;
use super::contact::{Contact, routes, volt_of};
use super::laps::{Watch, lines_of};
use super::start::{wait_for, wall_of};
use super::task::Task;
use crate::{
    PostgresHello, PostgresVotes, Routes, Settings, VoltHello, VoltVotes, VoterTally, Voting,
    hello_statements, vote_statements,
};
use anyhow::Result;
use plimsoll_core::interval::Interval;
use plimsoll_core::verdict::{Verdict, VerdictKind};
use plimsoll_core::voter::{WriteCheck, WriteCheckKind};
use plimsoll_engine::run::{Driven, RunEnd};
use plimsoll_engine::shard::ShardPlan;
use plimsoll_job::keeping::{About, Finished, JobEnd, Keeping, carry_out};
use plimsoll_job::output::Output;
use plimsoll_job::progress::{Lines, RunProgress};
use plimsoll_job::together::{has_agents, is_coordinator, share};
use plimsoll_record::JobResults;
use plimsoll_record::bench_shape::Rhythm;
use plimsoll_record::voter::{Totals, TuneResult, VoterLap, VoterProcess, VoterResult};
use plimsoll_wire::Sessions;
use plimsoll_workloads::http::Troubles;
use rolling::Rolling;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};

/// Sessions of one shard of this many, which send what they counted at the end.
pub type MakeSessions<P> =
    dyn Fn(&Arc<Voting>, u32, u32, Sender<VoterTally>) -> Box<dyn Sessions<P> + Send>;

/// Facts known when the calls begin.
pub struct Before {
    /// Rows of each key range that is counted here or at the coordinator; none for reads.
    pub rows: Vec<u64>,
    /// Lines of the preparation.
    pub prepared: Vec<String>,
    /// Time at which they are due by an agreement with others, us since the Unix epoch.
    pub agreed_us: Option<u64>,
    /// Time at which the first calls are due, ns; `None` is at once.
    pub start_ns: Option<u64>,
    /// Host that a vote belongs to, where there are several.
    pub routes: Option<Arc<Routes>>,
    /// Outputs for the lines about phases.
    pub lines: Lines,
}

/// Counts of a client.
pub struct Counted {
    /// Its calls.
    pub tally: VoterTally,
    /// The way the load was tuned.
    pub tuned: Option<TuneResult>,
    /// Time at which its first call was made, ns.
    pub first_ns: Option<u64>,
    /// Reason why it ended before its time.
    pub trouble: Option<String>,
    /// Its laps.
    pub laps: Vec<VoterLap>,
}

/// Runs it; `start_us` says when, where there is an agreed start.
///
/// # Errors
/// The database is not there, not ready, or not what it should be; or the run could not take place.
pub fn run(
    task: &Task,
    output: &Output,
    start_us: &dyn Fn() -> Result<Option<u64>>,
) -> Result<Finished> {
    let taken = output.takes_stdout();
    let lines = lines_of(&task.shape, output.voice(), taken);
    // Agents wait for the tables: they are made once.
    let (prepared, rows) = share(|| {
        lines.say("connect ...");
        let mut contact = Contact::open(&task.database, task.scenario.connect_timeout)?;
        lines.say("preparation ...");
        let prepared = contact.prepare(task.shape.bench, &task.names)?;
        let ranges = if task.is_voter() { task.ranges() } else { Vec::new() };
        let rows = ranges.into_iter().map(|range| contact.count(range)).collect::<Result<_>>()?;
        Ok((prepared, rows))
    })?;
    let routes = match &task.database {
        Database::Volt(address) if task.affinity && task.is_voter() && address.hosts.len() > 1 => {
            routes(address, &task.database.targets(), task.scenario.connect_timeout)?.map(Arc::new)
        }
        _ => None,
    };
    let agreed_us = start_us()?;
    if let Some(start_us) = agreed_us {
        lines.say(&format!("start at {} ...", plimsoll_core::clock::format_utc(start_us)));
    }
    let start_ns = agreed_us.map(wait_for).transpose()?;
    lines.say("calls ...");
    let before = Before { rows, prepared, agreed_us, start_ns, routes, lines };
    match &task.database {
        Database::Volt(address) => {
            let protocol = volt_of(address, task.depth);
            let is_voter = task.is_voter();
            let routes = before.routes.clone();
            let make: Box<MakeSessions<_>> = Box::new(move |voting, shard, shards, counted| {
                if is_voter {
                    let votes = VoltVotes::new(voting.clone(), shard, shards, counted);
                    match &routes {
                        Some(routes) => Box::new(votes.routed(routes.clone())),
                        None => Box::new(votes),
                    }
                } else {
                    Box::new(VoltHello::new(voting.clone(), shard, shards, counted))
                }
            });
            measure(task, output, &before, &|| protocol.clone(), &*make)
        }
        Database::Postgres(sql) => {
            let statements =
                if task.is_voter() { vote_statements(task.sql)? } else { hello_statements()? };
            let protocol = sql.protocol(task.scenario.timeout, &[task.isolation.setting()])?;
            let protocol = protocol.with_statements(statements).with_depth(task.depth);
            let (is_voter, way) = (task.is_voter(), task.sql);
            let make: Box<MakeSessions<_>> = Box::new(move |voting, shard, shards, counted| {
                if is_voter {
                    Box::new(PostgresVotes::new(voting.clone(), way, shard, shards, counted))
                } else {
                    Box::new(PostgresHello::new(voting.clone(), shard, shards, counted))
                }
            });
            measure(task, output, &before, &|| protocol.clone(), &*make)
        }
    }
}

fn measure<P: Driven, F: Fn() -> P + Sync>(
    task: &Task,
    output: &Output,
    before: &Before,
    protocol: &F,
    make: &MakeSessions<P>,
) -> Result<Finished> {
    let mut plan = task.plan();
    plan.part.start_ns = before.start_ns;
    let end_early = Arc::new(AtomicBool::new(false));
    plan.part.end_early = Some(end_early.clone());
    plan.part.gauges = (0..task.scenario.threads).map(|_| Arc::default()).collect();
    let about = About {
        plan: &plan,
        class_names: vec![task.class()],
        distinct_requests: None,
        troubles: Troubles::default(),
    };
    carry_out(&task.scenario, &about, output, |keeping| {
        if let Rhythm::Sought { .. } = task.shape.rhythm {
            return seeking::search(
                task,
                before,
                about.plan,
                output.voice(),
                protocol,
                make,
                keeping,
            );
        }
        let progress = RunProgress::new(&task.scenario, output.voice());
        let mut watched = progress.watching(keeping.sink);
        let mut keeping =
            Keeping { sink: &mut watched, stop: keeping.stop, started: keeping.started };
        let run = Run { task, before, plan: about.plan, end_early: &end_early, protocol, make };
        if let Some(goal) = &task.settings.tune {
            return tuning::tune(&run, goal, &mut keeping);
        }
        let (end, counted) = run.calls(about.plan, task.settings.clone(), &mut keeping)?;
        before.lines.say("cool down ... check writes ...");
        let result = match has_agents() {
            true => by_agents::conclude(task, before, &end, counted)?,
            false => conclude(task, before, &end, counted),
        };
        let verdict = verdict(task, &result.0, result.1, &end);
        let warnings = [before.prepared.clone(), worn_out(&result.0)].concat();
        Ok(JobEnd { end, results: JobResults::of(result.0), verdict, warnings })
    })
}

/// Share of the answers from which on votes above the limit are too many to be the game's own.
const WORN_OUT: f64 = 0.2;

/// Says so when most telephones have voted before: such a vote is two reads and no write.
#[must_use]
pub fn worn_out(result: &VoterResult) -> Vec<String> {
    let answered = result.accepted + result.rejected.total();
    let share = result.rejected.limit as f64 / answered.max(1) as f64;
    let text = format!(
        "{:.0} % of the votes came from telephones that had already cast their last vote, and wrote nothing: an earlier run \
         with the same --seed used them up; use another --seed, or a higher --max-votes",
        share * 100.0
    );
    (share > WORN_OUT).then_some(text).into_iter().collect()
}

/// The parts that all calls of a client share.
pub struct Run<'a, P: Driven, F: Fn() -> P + Sync> {
    /// The task.
    pub task: &'a Task,
    /// The state before the first call.
    pub before: &'a Before,
    /// The whole run.
    pub plan: &'a ShardPlan,
    /// Ends the schedule when the target has gone.
    pub end_early: &'a AtomicBool,
    /// The protocol of the target.
    pub protocol: &'a F,
    /// Makes the sessions of a shard.
    pub make: &'a MakeSessions<P>,
}

impl<P: Driven, F: Fn() -> P + Sync> Run<'_, P, F> {
    /// Makes the calls of this plan, and watches them.
    ///
    /// # Errors
    /// When they could not be made.
    pub fn calls(
        &self,
        plan: &ShardPlan,
        settings: Settings,
        keeping: &mut Keeping<'_>,
    ) -> Result<(RunEnd, Counted)> {
        let task = self.task;
        let shards = task.scenario.threads;
        let voting = Arc::new(Voting::new(settings, shards)?);
        let (sender, counted) = channel();
        let one = |shard| (self.make)(&voting, shard, shards, sender.clone());
        let sessions = (0..shards).map(one).collect();
        let done = AtomicBool::new(false);
        let watch = Watch {
            voting: &voting,
            shape: &task.shape,
            server_reports: matches!(task.database, Database::Volt(_)),
            give_up: task.give_up,
            lines: self.before.lines,
            has_queue: task.shape.managed.is_some(),
            gauges: &plan.part.gauges,
            end_early: self.end_early,
            done: &done,
        };
        let (end, laps) = std::thread::scope(|scope| {
            let watching = scope.spawn(|| watch.run());
            // A coordinator has no calls of its own to look at; it has the seconds of all.
            let mut rolling = is_coordinator().then(|| Rolling::new(task, self.before.lines));
            let mut progress = |second: &Interval| {
                if let Some(rolling) = &mut rolling {
                    rolling.take(second);
                }
            };
            let end = keeping.run(plan, self.protocol, sessions, &mut progress);
            done.store(true, Ordering::Relaxed);
            // A watch that broke has no laps to show, and the calls are as good as with it.
            (end, watching.join().unwrap_or_default())
        });
        let end = end?;
        let tally = VoterTally::of_shards(&counted);
        let counted = Counted {
            tuned: voting.tuned(&tally),
            tally,
            first_ns: voting.first_call_ns(),
            trouble: voting.trouble(),
            laps,
        };
        Ok((end, counted))
    }
}

/// Counts the rows, asks for the results, and puts everything together. Returns why the run ended before its time, too.
pub fn conclude(
    task: &Task,
    before: &Before,
    end: &RunEnd,
    counted: Counted,
) -> (VoterResult, Option<String>) {
    let mut result = counted.tally.result();
    result.auto_tune = counted.tuned;
    result.rows_before = before.rows.first().copied();
    result.key_range = task.range();
    result.agreed_start_us = before.agreed_us;
    result.shape = Some(task.shape.clone());
    result.hosts = task.database.hosts();
    if task.is_voter() && task.is_counted_elsewhere() {
        result.rows_before = None;
        result.check_reason = match task.shares_range() {
            true => {
                "all parts of the run vote in one key range, so that only their sum can be checked"
            }
            false => "the process that started this one counts the rows",
        }
        .to_owned();
    } else if task.is_voter() {
        let after = Contact::open(&task.database, task.scenario.connect_timeout)
            .and_then(|mut contact| Ok((contact.count(task.range())?, contact.results()?)));
        match after {
            Ok((rows, contestants)) => {
                (result.rows_after, result.contestants) = (Some(rows), contestants);
            }
            Err(error) => result.check_reason = plimsoll_job::usage::one_line(&error),
        }
        let (before, after) = (result.rows_before, result.rows_after);
        result.set_check(WriteCheck::of_counts(before, after, result.accepted, result.unknown));
    } else {
        result.check_reason = "hello only reads".to_owned();
        (result.accepted, result.unknown) = (0, 0);
    }
    let process = process(task, end, &result, counted.first_ns);
    result.processes = vec![VoterProcess { laps: counted.laps, ..process }];
    result.totals = Totals::of(&result.processes);
    (result, counted.trouble)
}

fn process(task: &Task, end: &RunEnd, result: &VoterResult, first_ns: Option<u64>) -> VoterProcess {
    let ledger = &end.totals.ledger;
    let refused = ledger.refused.queue_full + ledger.refused.queue_timeout;
    let started_ns = first_ns.unwrap_or(end.start_ns);
    let ended_ns = (end.start_ns + (end.measured_s * 1e9) as u64).max(started_ns);
    let seconds = (ended_ns - started_ns) as f64 / 1e9;
    VoterProcess {
        index: task.scenario.slice.index,
        calls: ledger.ok,
        accepted: result.accepted,
        rejected: result.rejected,
        unknown: result.unknown,
        started_us: wall_of(started_ns),
        ended_us: wall_of(ended_ns),
        rate_per_s: if seconds > 0.0 { ledger.ok as f64 / seconds } else { 0.0 },
        check: result.check,
        check_rows: result.check_rows,
        client: task.shape.client.clone(),
        fails: ledger.failed.total() + refused + ledger.unfinished,
        rows_before: result.rows_before,
        rows_after: result.rows_after,
        laps: Vec::new(),
        died: String::new(),
    }
}

/// Meaning of a failed check.
#[must_use]
pub fn wrong_writes(check: WriteCheck) -> String {
    match check {
        WriteCheck::Surplus(_) => format!(
            "check writes: {check}: the database holds votes that this client has not given; where others vote in it at \
             the same time, give each its --slice"
        ),
        _ => format!("check writes: {check}: the database does not hold what it acknowledged"),
    }
}

/// The verdict where a run's usual one does not fit: writes that are wrong or could not be counted, a target that went.
#[must_use]
pub fn verdict(
    task: &Task,
    result: &VoterResult,
    trouble: Option<String>,
    end: &RunEnd,
) -> Option<Verdict> {
    // Where nothing was answered, the usual verdict says more.
    if end.totals.ledger.ok == 0 {
        return None;
    }
    let mut reasons: Vec<String> = trouble.into_iter().collect();
    let check = result.write_check();
    let mut kind = VerdictKind::Partial;
    if check.is_wrong() {
        kind = VerdictKind::Void;
        reasons.insert(0, wrong_writes(check));
    } else if task.is_voter()
        && !task.is_counted_elsewhere()
        && result.check == WriteCheckKind::NotChecked
    {
        reasons.push(format!("the writes could not be checked: {}", result.check_reason));
    }
    if reasons.is_empty() {
        return None;
    }
    if end.interrupted {
        reasons.push("the run was stopped before its end".to_owned());
    }
    Some(Verdict::new(kind, reasons))
}
