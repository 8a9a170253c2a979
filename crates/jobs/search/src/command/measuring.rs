//! One cell: its repeats, each a run of this program's engine.

use super::crew::{Counted, Turn, agree, put_together};
use super::filling;
use super::server::{Door, Server, closed};
use crate::asking::render;
use crate::cell::{Measured, is_generator_limited};
use crate::dialect::{Call, Dialect};
use crate::query::Query;
use crate::sessions::{
    CellPlan, CellSessions, Course, Filling, HttpAsking, Order, Outbox, SqlAsking, SqlCellSessions,
    Statements, Window,
};
use crate::spec::MatrixSpec;
use anyhow::Result;
use plimsoll_core::clock::now_ns;
use plimsoll_core::interval::Interval;
use plimsoll_core::outcome::Failure;
use plimsoll_core::scenario::RowsPer;
use plimsoll_core::schedule::{LoadModel, Pause, Slice, Think, UserProfile, UserStep};
use plimsoll_core::units::Span;
use plimsoll_engine::run::{Driven, RunEnd};
use plimsoll_engine::shard::ShardPlan;
use plimsoll_job::keeping::{Keeping, Started};
use plimsoll_job::signals::{self, Stopped};
use plimsoll_job::together::{has_agents, is_agent, is_coordinator, note_lost};
use plimsoll_job::usage::usage;
use plimsoll_record::search::CellKey;
use plimsoll_record::{FailureSample, Sink};
use plimsoll_wire::Sessions;
use plimsoll_wire::http::Http;
use plimsoll_wire::postgres::Postgres;
use plimsoll_workloads::render::RenderedSet;
use plimsoll_workloads::rows::{RowFeed, Rows};
use plimsoll_workloads::script::{Script, UserOrder};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Requests of a user who asks until the end of the run: more than any can ask.
const NO_END: u32 = 1_000_000_000;

/// Requests of a cell.
pub struct Asked<'a> {
    /// The matrix.
    pub spec: &'a MatrixSpec,
    /// The list.
    pub list: &'a [Query],
    /// For each query of it, why it is not asked, if so.
    pub refused: &'a [Option<String>],
    /// Rows that fill requests.
    pub rows: Option<&'a Arc<Rows>>,
    /// The index.
    pub index: &'a str,
    /// Key of the cell.
    pub key: &'a CellKey,
    /// The part of its users that is here.
    pub slice: Slice,
}

/// Means and places of the runs of a cell.
pub struct Way<'a> {
    /// Its engine.
    pub server: &'a Server,
    /// CPU time of the engine so far, s, if it can be known.
    pub cpu_s: &'a dyn Fn() -> Option<f64>,
    /// Sees each second.
    pub second: &'a (dyn Fn(&Interval) + Sync),
    /// Sees each finished repeat: how many of how many.
    pub repeat: &'a dyn Fn(u32, u32),
    /// Place among all runs of the matrix.
    pub turn: &'a mut Turn,
    /// Keeps the measurements of an agent.
    pub kept: Option<Kept<'a>>,
}

/// Measurements that an agent keeps of its own part.
pub struct Kept<'a> {
    /// Takes the seconds and failures.
    pub sink: &'a mut (dyn Sink + Send),
    /// Takes the end of each run.
    pub end: &'a mut Option<RunEnd>,
}

/// Keeps the first failure, and passes everything on to the record of an agent.
struct FirstFailure<'a> {
    names: Vec<String>,
    found: Option<String>,
    inner: Option<&'a mut (dyn Sink + Send)>,
}

impl Sink for FirstFailure<'_> {
    fn counts_from(&mut self, start_ns: u64) {
        if let Some(inner) = &mut self.inner {
            inner.counts_from(start_ns);
        }
    }

    fn interval(&mut self, interval: &Interval) -> std::io::Result<()> {
        self.inner.as_mut().map_or(Ok(()), |inner| inner.interval(interval))
    }

    fn failure(&mut self, sample: &FailureSample) -> std::io::Result<()> {
        if self.found.is_none() {
            let query = sample.class.parse().ok().and_then(|at: usize| self.names.get(at));
            let query = query.map_or(String::new(), |name| format!("query '{name}': "));
            let why = if sample.reason.is_empty() { &sample.kind } else { &sample.reason };
            self.found = Some(format!("{query}{why}"));
        }
        self.inner.as_mut().map_or(Ok(()), |inner| inner.failure(sample))
    }
}

/// The requests of a cell, made once.
#[derive(Clone)]
enum Requests {
    Http(HttpAsking),
    Sql(SqlAsking, Postgres),
}

/// Makes them, and says how often each is in a pass.
fn requests(server: &Server, asked: &Asked<'_>) -> Result<(Requests, Vec<u32>)> {
    let dialect = server.dialect;
    let (mut set, mut statements) = (RenderedSet::default(), Statements::default());
    let mut repeats = Vec::new();
    for ((index, query), refused) in asked.list.iter().enumerate().zip(asked.refused) {
        if refused.is_some() {
            continue;
        }
        match (&server.door, dialect.search(asked.index, query, asked.key.distance)) {
            (Door::Http(form), Ok(Call::Http(call))) => {
                set.push(index as u8, 0, |out| render(form, &call, out));
            }
            (Door::Postgres(_), Ok(Call::Sql(_))) => {
                let place = (asked.index, asked.key.distance);
                filling::add_sql(&mut statements, (index, query), place, asked.rows.map(|r| &**r))?;
            }
            _ => continue,
        }
        repeats.push(query.repeat);
    }
    let checks = HttpAsking::checks(dialect, &asked.spec.checks)?;
    let made = match &server.door {
        Door::Postgres(address) => {
            let protocol = server.postgres(address, asked.spec.timeout)?;
            Requests::Sql(SqlAsking::new(statements, checks, feed(asked)), protocol)
        }
        Door::Http(_) => {
            let filling = filled(&set, asked, dialect)?;
            Requests::Http(HttpAsking { requests: Arc::new(set), dialect, checks, filling })
        }
    };
    Ok((made, repeats))
}

fn filled(set: &RenderedSet, asked: &Asked<'_>, dialect: Dialect) -> Result<Option<Filling>> {
    let (Some(rows), Some(feed)) = (asked.rows, feed(asked)) else { return Ok(None) };
    let templates = filling::templates(dialect, set, rows)?;
    Ok(Some(Filling { templates: Arc::new(templates), feed }))
}

/// Row that comes next, where requests are filled with rows.
fn feed(asked: &Asked<'_>) -> Option<RowFeed> {
    let (rows, wanted) = (asked.rows?, asked.spec.rows.as_ref()?);
    let each = match (wanted.per, asked.spec.profile.is_some()) {
        // Users who never leave have no number of requests that rows could be counted by.
        (RowsPer::Request, false) => None,
        _ => Some(script_length(asked)),
    };
    let part = (u64::from(asked.slice.index), u64::from(asked.slice.of));
    Some(RowFeed::new(rows.clone(), (wanted.order, wanted.per), asked.spec.seed, each, part))
}

/// Requests of each user who comes and goes.
fn script_length(asked: &Asked<'_>) -> u32 {
    let pass: u32 = asked
        .list
        .iter()
        .zip(asked.refused)
        .filter(|(_, refused)| refused.is_none())
        .map(|(query, _)| query.repeat)
        .sum();
    match (asked.spec.passes, &asked.spec.profile) {
        (None, None) => NO_END,
        (passes, _) => pass.saturating_mul(passes.unwrap_or(1)),
    }
}

/// The way a cell's load comes.
struct Load {
    model: LoadModel,
    course: Course,
    window: Window,
    /// Warm-up and duration of the run; without them it ends with the last user.
    length: Option<(Span, Span)>,
    /// True if load of the same kind goes before, as a run of its own.
    warms_apart: bool,
}

fn load(asked: &Asked<'_>, repeats: &[u32]) -> Result<Load> {
    let spec = asked.spec;
    let users = asked.key.users;
    let profile = spec.profile_of(users).map_err(|error| usage(error.to_string()))?;
    let window = window_of(spec, users)?;
    let length = match window {
        Window::Fixed { .. } => Some((spec.warmup, spec.duration)),
        Window::FirstDone | Window::ToEnd(_) => None,
    };
    let per_user = spec.rows.as_ref().is_some_and(|rows| rows.per == RowsPer::User);
    let think = match spec.think {
        Pause::None => Some(Think::None),
        Pause::Fixed(span) if span.ns == 0 => Some(Think::None),
        Pause::Fixed(span) if spec.pace.ns == 0 => Some(Think::Fixed(span.ns)),
        _ => None,
    };
    let warms_apart = length.is_none();
    if let (None, Some(think), false) = (&profile, think, per_user) {
        let model = LoadModel::Closed { clients: users, think, cycle_ns: spec.pace.ns };
        let course = Course::Walks { passes: spec.passes };
        return Ok(Load { model, course, window, length, warms_apart });
    }
    let order = match spec.order {
        Order::Block => UserOrder::Block,
        Order::Interleaved => UserOrder::Interleaved,
        Order::Shuffle => UserOrder::Shuffle,
    };
    let script = Script::new(order, repeats, script_length(asked), spec.seed).map_err(usage)?;
    // All are there from the first moment, and stay.
    let there = |profile: Option<UserProfile>| match (profile, spec.passes) {
        (Some(profile), _) => Ok(profile),
        (None, Some(_)) => format!("at once {users}").parse(),
        (None, None) => {
            let during = Span { ns: spec.warmup.ns.saturating_add(spec.duration.ns) };
            UserProfile::new(vec![UserStep::Concurrent { users, during }])
        }
    };
    let model = LoadModel::Users {
        profile: there(profile).map_err(|error| usage(error.problem))?,
        requests: script.requests(),
        think: spec.think,
        pace: spec.pace,
    };
    Ok(Load { model, course: Course::Script(script), window, length, warms_apart })
}

/// Window that a cell's rate counts.
///
/// # Errors
/// When the profile cannot be read.
pub fn window_of(spec: &MatrixSpec, users: u32) -> Result<Window> {
    let profile = spec.profile_of(users).map_err(|error| usage(error.to_string()))?;
    Ok(match (&profile, spec.passes) {
        (Some(profile), _) => Window::ToEnd(loaded_ns(profile)),
        (None, Some(_)) => Window::FirstDone,
        (None, None) => Window::Fixed { warmup_ns: spec.warmup.ns, length_ns: spec.duration.ns },
    })
}

/// Time that a profile's steps last, without a beginning in which no one comes.
fn loaded_ns(profile: &UserProfile) -> u64 {
    let idle: u64 = profile
        .steps()
        .iter()
        .map_while(|step| match step {
            UserStep::Nothing { during } => Some(during.ns),
            _ => None,
        })
        .sum();
    profile.own_duration_ns().saturating_sub(idle)
}

/// Measures every repeat of a cell; ends early when nothing comes back any more.
///
/// # Errors
/// When the user stops the program, or it fails itself.
pub fn repeats(way: &mut Way<'_>, asked: &Asked<'_>) -> Result<Vec<Measured>> {
    let (requests, each) = requests(way.server, asked)?;
    if each.is_empty() {
        return Ok(Vec::new());
    }
    let spec = asked.spec;
    let load = load(asked, &each)?;
    let plan = |course: Course, window: Window| CellPlan {
        repeats: each.clone(),
        queries: asked.list.len(),
        order: spec.order,
        users: asked.key.users,
        slice: asked.slice,
        course,
        window,
        // Repeats in another order each would be another cell.
        seed: spec.seed,
    };
    let mut all = Vec::new();
    for repeat in 0..spec.repeat {
        let mut warmed = None;
        if load.warms_apart && spec.warmup.ns > 0 {
            let cell = plan(Course::Walks { passes: None }, Window::FirstDone);
            let length = Some((Span::default(), spec.warmup));
            let model = closed(asked.key.users);
            let warm = one(way, asked, &requests, cell, (model, length))?;
            if warm.given_up.is_some() {
                all.push(warm);
                break;
            }
            warmed = Some(warm);
        }
        let cell = plan(load.course.clone(), load.window);
        let own = (load.model.clone(), load.length);
        let mut measured = one(way, asked, &requests, cell, own)?;
        match warmed {
            Some(warm) => measured = measured.after(warm),
            None if !load.warms_apart => {
                measured.warming_s = spec.warmup.as_seconds().min(measured.elapsed_s);
            }
            None => {}
        }
        let over = measured.given_up.is_some();
        all.push(measured);
        (way.repeat)(repeat + 1, spec.repeat);
        if over {
            break;
        }
    }
    Ok(all)
}

/// The reason of a walk that ends because agents are missing.
const LOST: &str = "because an agent was lost";

/// Runs sessions here, as a part, or on all agents: returns also the names of the agents that began too late.
fn go<P: Driven + Clone + Send + Sync>(
    plan: &ShardPlan,
    protocol: &P,
    sessions: Box<dyn Sessions<P> + Send>,
    sink: &mut FirstFailure<'_>,
    second: &(dyn Fn(&Interval) + Sync),
) -> Result<(RunEnd, Vec<String>)> {
    let stop = signals::stop_flag()?;
    let mut keeping = Keeping { sink, stop, started: Started::default() };
    let ended =
        keeping.run_named(plan, || protocol.clone(), vec![sessions], &mut |own| second(own));
    match ended {
        Err(error) if is_coordinator() => {
            note_lost(error)?;
            signals::go_on("between two cells")?;
            Err(Stopped { during: LOST.to_owned() }.into())
        }
        Err(error) => Err(error),
        Ok((end, late)) => Ok((end, late.into_iter().map(|late| late.agent).collect())),
    }
}

/// Runs the users of a cell once.
fn run_once(
    way: &mut Way<'_>,
    (plan, cell, outbox): (&ShardPlan, CellPlan, Outbox),
    requests: &Requests,
    sink: &mut FirstFailure<'_>,
) -> Result<(RunEnd, Vec<String>)> {
    match requests.clone() {
        Requests::Http(asking) => {
            let sessions = CellSessions::new(cell, asking, outbox);
            let http: Http = way.server.http();
            go(plan, &http, Box::new(sessions), sink, way.second)
        }
        Requests::Sql(asking, protocol) => {
            let sessions = SqlCellSessions::new(cell, asking, outbox);
            go(plan, &protocol, Box::new(sessions), sink, way.second)
        }
    }
}

fn one(
    way: &mut Way<'_>,
    asked: &Asked<'_>,
    requests: &Requests,
    cell: CellPlan,
    (model, length): (LoadModel, Option<(Span, Span)>),
) -> Result<Measured> {
    let mut plan = way.server.plan(model, length, asked.slice)?;
    plan.classes = asked.list.len();
    plan.seed = asked.spec.seed;
    let (outbox, counted) = Outbox::new();
    // The end of a run that was given up should not wait for the end of a second.
    plan.part.end_early = Some(outbox.give_up.clone());
    way.turn.take(&mut plan);
    let mut kept = way.kept.take();
    let (cpu_before, mut start_ns) = ((way.cpu_s)(), now_ns());
    let (ended, found) = {
        let inner: Option<&mut (dyn Sink + Send)> = match &mut kept {
            Some(kept) => Some(&mut *kept.sink),
            None => None,
        };
        let names = asked.list.iter().map(|query| query.name.clone()).collect();
        let mut sink = FirstFailure { names, found: None, inner };
        let ended = run_once(way, (&plan, cell, outbox.clone()), requests, &mut sink);
        (ended, sink.found)
    };
    way.kept = kept;
    let (end, late) = ended?;
    if has_agents() {
        // They wait for each other before.
        start_ns = end.start_ns;
    }
    let elapsed_s = now_ns().saturating_sub(start_ns) as f64 / 1e9;
    let server_cpu_s =
        (way.cpu_s)().zip(cpu_before).map(|(after, before)| (after - before).max(0.0));
    let own = (counted.try_recv().unwrap_or_default(), outbox.give_up.load(Ordering::Relaxed));
    let own_users = asked.slice.share(asked.key.users.into()) as u32;
    let is_limited = || is_generator_limited(own_users, &end.totals, (end.health, elapsed_s));
    let counted = put_together(own, &end, is_limited);
    if let (true, Some(kept)) = (is_agent(), &mut way.kept) {
        return as_agent(way.turn, kept.end, counted, end);
    }
    signals::go_on("in the middle of a cell")?;
    let found = found.or_else(|| first_of_warmup(&end.warmup, &end.totals));
    let measured = whole(end, counted?, found);
    if !measured.is_cut {
        agree(way.turn, measured.given_up.is_some())?;
    }
    Ok(Measured { elapsed_s, server_cpu_s, late, ..measured })
}

/// The measurements of all users of a run.
fn whole(end: RunEnd, counted: Counted, found: Option<String>) -> Measured {
    let Counted { tally, is_given_up, limited, lacks } = counted;
    // An agent may be lost after it has sent everything.
    let is_cut = has_agents() && (end.interrupted || lacks.is_some());
    let cut = is_cut.then(|| lacks.unwrap_or_else(|| "an agent was lost".to_owned()));
    // Before a request was sent, so that none of them failed.
    let turned_out = end.refused.map(|why| format!("the engine refused a connection: {why}"));
    let given_up = is_given_up.then(|| {
        let first = found.clone().unwrap_or_default();
        format!("the engine no longer answers: {first}")
    });
    Measured {
        totals: end.totals,
        warmup: end.warmup,
        tally,
        generator_cpu_s: end.cpu_s,
        health: end.health,
        first_failure: found,
        given_up: cut.or(turned_out).or(given_up),
        is_cut,
        limited,
        ..Measured::default()
    }
}

/// The rest of a run of an agent: it keeps its measurements, and the coordinator says how the cell goes on.
fn as_agent(
    turn: &mut Turn,
    kept: &mut Option<RunEnd>,
    counted: Result<Counted>,
    end: RunEnd,
) -> Result<Measured> {
    match kept {
        None => *kept = Some(end),
        Some(all) => all.absorb(end),
    }
    counted?;
    let given_up = agree(turn, false)?.then(|| "the coordinator has ended the cell".to_owned());
    Ok(Measured { given_up, ..Measured::default() })
}

/// The kind of a failure that no sample reports.
fn first_of_warmup(warmup: &Option<Interval>, totals: &Interval) -> Option<String> {
    let all = warmup.iter().chain([totals]);
    all.flat_map(|interval| Failure::ALL.map(|kind| (kind, interval.ledger.failed.get(kind))))
        .find(|(_, count)| *count > 0)
        .map(|(kind, _)| kind.name().to_owned())
}

/// Returns true if connections broke, so that the engine may be dead.
#[must_use]
pub fn connections_broke(repeats: &[Measured]) -> bool {
    let broke = |interval: &Interval| {
        let failed = &interval.ledger.failed;
        failed.connect + failed.reset + failed.short > 0
    };
    repeats.iter().any(|one| {
        one.given_up.is_some() || broke(&one.totals) || one.warmup.as_ref().is_some_and(broke)
    })
}
