//! Plan of a client, made from the flags before anything is sent.

use super::address::Database;
use super::flags::{BenchFlags, IsolationFlag, SqlFlag, Switch};
use super::search::{START_PER_S, Search};
use crate::{CONTESTANTS, Game, Isolation, RETRIES_MAX, Settings, SqlWay, TuneGoal};
use anyhow::Result;
use plimsoll_core::admission::AdmissionModel;
use plimsoll_core::scenario::Scenario;
use plimsoll_core::schedule::{LoadModel, Slice, Think};
use plimsoll_core::slo::ClassSlo;
use plimsoll_core::units::Span;
use plimsoll_core::voter::KeyRange;
use plimsoll_engine::shard::ShardPlan;
use plimsoll_engine::tls::Tls;
use plimsoll_job::prepare::{check_limits, plan_of};
use plimsoll_job::together::parts_in_all;
use plimsoll_job::usage::usage;
use plimsoll_record::bench_shape::{Bench, Rhythm, Shape};

/// Calls in flight on a connection to VoltDB where no one limits them: the server's own back-pressure does.
pub const VOLT_DEPTH: u32 = 30_000;
/// Connections to PostgreSQL, which has a process for each.
const SQL_CONNECTIONS: u32 = 32;
/// Most transactions that wait on one connection to PostgreSQL.
const SQL_DEPTH: u32 = 16;
/// Most calls in flight of a load that is tuned: what VoltDB's own client allows.
const TUNED_MAX: u32 = 3_000;
/// Length of a tuned load where no one names one.
const TUNED_LENGTH: Span = Span::seconds(30);
/// Default of `--queue-timeout`.
const QUEUE_TIMEOUT: Span = Span::seconds(10);
/// Default of `--budget`.
const BUDGET: Span = Span::seconds(300);
/// Longest run by calls.
const LONGEST: Span = Span::seconds(24 * 3600);

/// One client, ready to begin.
pub struct Task {
    /// The run in Erlvolt's words.
    pub shape: Shape,
    /// Database of the calls.
    pub database: Database,
    /// The rules, and how calls are repeated.
    pub settings: Settings,
    /// Names of the contestants.
    pub names: Vec<String>,
    /// The run as records keep it.
    pub scenario: Scenario,
    /// Calls in flight on one connection.
    pub depth: u32,
    /// Form of a vote in SQL.
    pub sql: SqlWay,
    /// Isolation level of its transaction.
    pub isolation: Isolation,
    /// True if votes go to the hosts that lead their partitions.
    pub affinity: bool,
    /// Time without an answer after which a run whose target has gone is ended.
    pub give_up: Span,
    /// TLS to PostgreSQL, where its address asks for it.
    pub tls: Option<Tls>,
    /// Number of key ranges into which that of this client is divided; at a coordinator and without processes there is none.
    own_ranges: Option<u32>,
    /// True if the process that started this one counts the rows.
    is_process: bool,
    /// The settings of the search, if there is one.
    pub search: Search,
}

/// Connections of each process, and calls in flight on each.
fn connections(
    flags: &BenchFlags,
    shape: &Shape,
    database: &Database,
    (processes, threads): (u32, u32),
) -> (u32, u32) {
    let slots = shape.managed.map(|managed| managed.slots);
    match database {
        Database::Volt(address) => {
            let hosts = address.hosts.len() as u32;
            let each = flags.connections.unwrap_or(1).saturating_mul(threads.max(1));
            (hosts.saturating_mul(each), slots.unwrap_or(VOLT_DEPTH))
        }
        Database::Postgres(_) => {
            let all = match shape.rhythm {
                Rhythm::Steady => SQL_CONNECTIONS.min(shape.size),
                _ => SQL_CONNECTIONS,
            };
            // The sum over all processes is what the server sees.
            let own = flags.connections.unwrap_or((all / processes).max(1));
            let own = own.max(threads);
            let waiting = match shape.rhythm {
                Rhythm::Steady => shape.size.div_ceil(own.saturating_mul(processes).max(1)),
                _ => SQL_DEPTH,
            };
            (own, slots.unwrap_or(waiting).clamp(1, SQL_DEPTH))
        }
    }
}

/// The load as the engine runs it.
fn load_of(shape: &Shape, in_all: u32, depth: u32) -> LoadModel {
    match &shape.rhythm {
        Rhythm::Steady => {
            LoadModel::Closed { clients: shape.size, think: Think::None, cycle_ns: 0 }
        }
        Rhythm::Burst => LoadModel::PacedBurst {
            size: shape.size,
            delay_ns: shape.delay.unwrap_or_default().ns,
            limit: shape.limit,
        },
        Rhythm::Open { rate_per_s, arrivals } => {
            LoadModel::Open { rate_per_s: *rate_per_s, arrivals: *arrivals }
        }
        Rhythm::Tuned { .. } => {
            let clients = TUNED_MAX.min(in_all.saturating_mul(depth));
            LoadModel::Closed { clients, think: Think::None, cycle_ns: 0 }
        }
        Rhythm::Sought { .. } => LoadModel::Open {
            rate_per_s: START_PER_S,
            arrivals: plimsoll_core::schedule::Arrivals::Poisson,
        },
    }
}

impl Task {
    /// Makes it, and refuses what cannot be run.
    ///
    /// # Errors
    /// Wrong flags, before anything is sent.
    pub fn new(flags: &BenchFlags, shape: Shape, targets: &[String]) -> Result<Self> {
        let (count, own_names) = flags.names()?;
        let names =
            own_names.unwrap_or_else(|| CONTESTANTS[..count].iter().map(|&n| n.into()).collect());
        let database = Database::parse(targets)?;
        let part = flags.part()?;
        let tls = match &database {
            Database::Volt(_) => None,
            Database::Postgres(sql) => sql.tls()?,
        };
        // The processes of a run have connections of their own; the parts of a larger run share those of one process.
        let parts = parts_in_all(part);
        let in_parts = if flags.has_own_ranges() { (parts, 1) } else { (1, parts) };
        let counts = (in_parts.0, flags.cores.saturating_mul(in_parts.1));
        let (own, depth) = connections(flags, &shape, &database, counts);
        let processes = counts.0;
        let in_all = own.saturating_mul(processes);
        let load = load_of(&shape, in_all, depth);
        let settings = settings(flags, count as u32, &load)?;
        let admission = match shape.managed {
            None => AdmissionModel::Direct,
            Some(managed) => AdmissionModel::Managed {
                slots: managed.slots.saturating_mul(in_all),
                queue_max: managed.queue.unwrap_or(u32::MAX),
                queue_timeout_ns: flags.queue_timeout.unwrap_or(QUEUE_TIMEOUT).ns,
            },
        };
        let tuned = matches!(shape.rhythm, Rhythm::Tuned { .. });
        let unlimited = if tuned { TUNED_LENGTH } else { LONGEST };
        let duration = match shape.rhythm {
            Rhythm::Sought { .. } => flags.budget.unwrap_or(BUDGET),
            _ => flags.duration.unwrap_or(if shape.calls.is_some() { LONGEST } else { unlimited }),
        };
        let scenario = Scenario {
            job: shape.bench.name().to_owned(),
            targets: database.shown(),
            load,
            duration: Some(duration),
            requests: shape.calls,
            connections: Some(in_all),
            threads: flags.cores,
            slice: part,
            timeout: flags.timeout,
            connect_timeout: flags.connect_timeout,
            admission,
            seed: flags.seed,
            slo: if flags.seek.is_empty() { &flags.slo } else { &flags.seek }
                .iter()
                .copied()
                .map(ClassSlo::from)
                .collect(),
            assertions: flags.assertions.clone(),
            ..Scenario::default()
        };
        check_limits(&scenario)?;
        Ok(Self {
            shape,
            database,
            settings,
            names,
            scenario,
            depth,
            sql: way(flags.sql),
            isolation: isolation(flags.isolation),
            affinity: flags.affinity == Switch::On,
            give_up: flags.give_up,
            tls,
            own_ranges: flags.has_own_ranges().then_some(parts),
            is_process: flags.own_range,
            search: Search::default(),
        })
    }

    /// Settles what its address leaves open, before anything is measured.
    ///
    /// # Errors
    /// As [`Database::settle`].
    pub fn settle(&mut self) -> Result<()> {
        self.database.settle(self.scenario.connect_timeout)?;
        if let Database::Postgres(sql) = &self.database {
            self.tls = sql.tls()?;
        }
        self.scenario.targets = self.database.shown();
        Ok(())
    }

    /// Returns true if rows are written and counted.
    #[must_use]
    pub fn is_voter(&self) -> bool {
        self.shape.bench == Bench::Voter
    }

    /// Name of the one class of requests.
    #[must_use]
    pub fn class(&self) -> String {
        if self.is_voter() { "vote" } else { "select" }.to_owned()
    }

    /// This process's part of the plan.
    #[must_use]
    pub fn plan(&self) -> ShardPlan {
        plan_of(&self.scenario, self.database.targets(), self.tls.clone(), 1)
    }

    /// Returns true if other parts of the run vote in the same key range.
    #[must_use]
    pub fn shares_range(&self) -> bool {
        !self.settings.slice.is_whole()
    }

    /// Returns true if another process counts the rows: that of all parts, or that of all processes.
    #[must_use]
    pub fn is_counted_elsewhere(&self) -> bool {
        self.shares_range() || self.is_process
    }

    /// The key range whose rows are this client's.
    #[must_use]
    pub fn range(&self) -> KeyRange {
        self.settings.game.range
    }

    /// The key ranges whose rows are counted at the coordinator: one for each process, or one for all.
    #[must_use]
    pub fn ranges(&self) -> Vec<KeyRange> {
        match self.own_ranges {
            Some(of) if !self.is_process => {
                (0..of).map(|index| share_of(self.range(), Slice { index, of })).collect()
            }
            _ => vec![self.range()],
        }
    }

    /// Returns true if each process has a key range of its own.
    #[must_use]
    pub fn has_own_ranges(&self) -> bool {
        self.own_ranges.is_some()
    }
}

/// A share of a key range: a share of a share is a share of the whole, and lies within the first one.
fn share_of(range: KeyRange, part: Slice) -> KeyRange {
    KeyRange { index: range.index * part.of + part.index, of: range.of * part.of }
}

/// Returns the form of a vote in SQL.
fn way(flag: Option<SqlFlag>) -> SqlWay {
    match flag {
        None | Some(SqlFlag::Function) => SqlWay::Function,
        Some(SqlFlag::Statements) => SqlWay::Statements,
    }
}

fn isolation(flag: Option<IsolationFlag>) -> Isolation {
    match flag {
        None | Some(IsolationFlag::ReadCommitted) => Isolation::ReadCommitted,
        Some(IsolationFlag::RepeatableRead) => Isolation::RepeatableRead,
        Some(IsolationFlag::Serializable) => Isolation::Serializable,
    }
}

fn settings(flags: &BenchFlags, contestants: u32, load: &LoadModel) -> Result<Settings> {
    let range = flags.slice()?;
    let whole = KeyRange { index: range.index, of: range.of };
    let game = Game {
        seed: flags.seed,
        contestants,
        max_votes: flags.max_votes,
        range: if flags.own_range { share_of(whole, flags.part()?) } else { whole },
        ..Game::default()
    };
    let tune = match &flags.auto_tune {
        None => None,
        Some(limit) => {
            let goal = limit.to_string().parse::<TuneGoal>();
            let latency = flags.tuned_latency();
            Some(goal.map_err(|e| usage(format!("--auto-tune: {e}")))?.of(latency))
        }
    };
    let retries = match flags.retries {
        None => RETRIES_MAX,
        Some(retries) => {
            u8::try_from(retries).map_err(|_| usage("--retries: use a number from 0 to 255"))?
        }
    };
    let under_way_max = load.clients().unwrap_or(0);
    // One process of several has a key range of its own.
    let slice = if flags.own_range { Slice::WHOLE } else { flags.part()? };
    Ok(Settings { game, tune, under_way_max, held: None, retries, slice })
}

#[cfg(test)]
pub mod tests {
    use super::super::Words;
    use super::*;
    use clap::Parser;

    pub fn task(words: &str) -> Result<Task, String> {
        let words = format!("voter {words}");
        let flags = Words::try_parse_from(words.split(' ')).unwrap().flags;
        let (shape, targets) = flags.shape(Bench::Voter).unwrap();
        let checked =
            flags.check(&shape, &targets).and_then(|()| Task::new(&flags, shape, &targets));
        checked.map_err(|error| error.to_string())
    }

    #[test]
    fn the_parts_of_a_run_share_the_connections_of_one_process() {
        for target in ["volt://127.0.0.1,127.0.0.2", "postgres://u@127.0.0.1/d"] {
            for load in ["--rhythm steady --clients 20", "--rate 100 --mode managed --slots 3"] {
                let plan = |part: &str, threads| {
                    let words = format!("--target {target} {load} --threads {threads}{part}");
                    let task = task(&words).unwrap();
                    assert_eq!(task.shares_range(), !part.is_empty());
                    task.plan()
                };
                let whole = plan("", 6);
                let parts: Vec<_> = (0..3).map(|i| plan(&format!(" --part {i}/3"), 2)).collect();
                let sum: u32 = parts.iter().map(|plan| plan.connections).sum();
                assert_eq!(sum, whole.connections, "{target} {load}");
                assert_eq!(parts[1].slice, Slice { index: 1, of: 3 });
                assert_eq!(parts[1].model, whole.model);
            }
        }
    }

    #[test]
    fn a_process_of_several_votes_in_a_key_range_of_its_own() {
        let words = "--target volt://127.0.0.1 --clients 10 --own-range --part 1/2 --slice 2/2";
        let task = task(words).unwrap();
        assert!(!task.shares_range() && task.is_counted_elsewhere());
        assert_eq!(task.range(), KeyRange { index: 3, of: 4 });
        assert_eq!(task.ranges(), [task.range()]);
        assert_eq!((task.plan().slice, task.plan().connections), (Slice { index: 1, of: 2 }, 1));
    }

    #[test]
    fn a_part_rejects_what_needs_the_whole() {
        for (words, expected) in [
            (
                "--target volt://127.0.0.1 --auto-tune p90=10ms --part 0/2",
                "follows from all answers",
            ),
            ("--clients 10 --part 0/2", "name one with --target"),
            (
                "--target volt://127.0.0.1 --clients 3 --threads 2 --part 0/2",
                "fewer than one for each thread",
            ),
        ] {
            let error = task(words).err().unwrap();
            assert!(error.contains(expected), "{words}: {error}");
        }
    }
}
