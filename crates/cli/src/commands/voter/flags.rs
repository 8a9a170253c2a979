//! The flags of `plimsoll voter` and `plimsoll hello`, and what they come to.

use super::start::start_us;
use crate::catalogue::near_miss::unknown;
use crate::commands::common::{ArrivalsFlag, OutputFlags};
use crate::postgres;
use crate::usage::usage;
use anyhow::Result;
use clap::{Args, ValueEnum};
use plimsoll_core::assertion::Assertion;
use plimsoll_core::bench_shape::{
    Bench, Managed, PRESETS, Rhythm, SLOTS, Shape, Verbosity, WORDS, preset,
};
use plimsoll_core::clock::wall_us;
use plimsoll_core::schedule::{Arrivals, Slice};
use plimsoll_core::slo::Slo;
use plimsoll_core::units::Span;
use plimsoll_workloads::voter::TunedLatency;

/// Calls in a burst where only the rhythm was named.
const BURST: u32 = 100;
/// Contestants that there are names for.
const NAMES_MAX: usize = 12;
/// Most processes of a run.
const PROCESSES_MAX: u32 = 64;
/// Most key ranges that one database is shared out in.
const SLICES_MAX: u32 = 1_000;

/// How calls follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RhythmFlag {
    /// Workers that call one at a time.
    Steady,
    /// So many calls at once, and a pause.
    #[value(alias = "bursts")]
    Burst,
}

/// Who lets calls in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModeFlag {
    /// Nobody: a call goes out when it is due.
    Direct,
    /// Slots, and a bounded queue in front of them.
    Managed,
}

/// Whose latency is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TuneByFlag {
    /// This client's.
    Client,
    /// The server's own, in whole milliseconds; PostgreSQL reports none.
    Server,
}

/// How a vote is said in SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SqlFlag {
    /// One call of a stored function.
    Function,
    /// Four statements in one transaction.
    Statements,
}

/// Isolation of a vote's transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum IsolationFlag {
    /// READ COMMITTED.
    ReadCommitted,
    /// REPEATABLE READ.
    RepeatableRead,
    /// SERIALIZABLE.
    Serializable,
}

/// Arguments of `plimsoll voter` and `plimsoll hello`.
#[derive(Args, Debug)]
pub struct BenchFlags {
    /// Targets (volt://[USER@]HOST:PORT[,HOST:PORT], postgres://USER@HOST:PORT/DATABASE), a preset (VSD), or Erlvolt's
    /// words: run CLIENT voter|hello CALLS steady|burst SIZE DELAY direct|managed QUEUE SLOTS LIMIT VERBOSITY DUMP_MS.
    /// Without a target a database of plimsoll's own is started, and ended afterwards.
    #[arg(value_name = "TARGET|PRESET|run WORDS")]
    pub words: Vec<String>,
    /// The same as a positional TARGET; may be repeated. The password comes from VOLTDB_PASSWORD or PGPASSWORD.
    #[arg(long, value_name = "URL", help_heading = "Target")]
    pub target: Vec<String>,
    /// Connections to each host; to PostgreSQL one a worker, at most 32.
    #[arg(long, value_name = "N", help_heading = "Target")]
    pub connections: Option<u32>,
    /// PostgreSQL: how a vote is said.
    #[arg(long, value_enum, help_heading = "Target")]
    pub sql: Option<SqlFlag>,
    /// PostgreSQL: isolation of a vote's transaction.
    #[arg(long, value_enum, help_heading = "Target")]
    pub isolation: Option<IsolationFlag>,
    /// PostgreSQL: how often a vote is tried again after a serialisation failure.
    #[arg(long, value_name = "N", help_heading = "Target")]
    pub retries: Option<u32>,

    /// A run as Erlvolt's Makefile has it: VSD, VSM, VBM, VBD or HSD. Other flags change parts of it.
    #[arg(long, value_name = "NAME", help_heading = "Load")]
    pub preset: Option<String>,
    /// What the client is called in every line.
    #[arg(long, value_name = "NAME", help_heading = "Load")]
    pub client: Option<String>,
    /// Calls in all; each process has its share. All are made: none is rounded away to whole bursts.
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub calls: Option<u64>,
    /// Workers that call one at a time, or bursts.
    #[arg(long, value_enum, help_heading = "Load")]
    pub rhythm: Option<RhythmFlag>,
    /// Workers of the steady rhythm.
    #[arg(long, visible_alias = "clients", value_name = "N", help_heading = "Load")]
    pub workers: Option<u32>,
    /// Calls in a burst.
    #[arg(long, value_name = "SIZE", help_heading = "Load")]
    pub burst: Option<u32>,
    /// Pause after a burst.
    #[arg(long, value_name = "TIME", help_heading = "Load")]
    pub delay: Option<Span>,
    /// The next burst waits while more calls than this are queued (managed) or under way (direct).
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub limit: Option<u32>,
    /// Direct calls, or slots with a bounded queue in front of them.
    #[arg(long, value_enum, help_heading = "Load")]
    pub mode: Option<ModeFlag>,
    /// Managed: most calls that wait; what comes on top is refused and counted.
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub queue: Option<u32>,
    /// Managed: most calls under way on each connection.
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub slots: Option<u32>,
    /// Managed: longest wait in the queue.
    #[arg(long, value_name = "TIME", default_value = "10s", help_heading = "Load")]
    pub queue_timeout: Span,
    /// Calls at this rate, whatever the answers do.
    #[arg(long, value_name = "PER_S", help_heading = "Load")]
    pub rate: Option<f64>,
    /// How calls at a rate follow each other.
    #[arg(long, value_enum, default_value = "uniform", help_heading = "Load")]
    pub arrivals: ArrivalsFlag,
    /// Measure for this long; without --calls as many calls as fit.
    #[arg(long, value_name = "TIME", help_heading = "Load")]
    pub duration: Option<Span>,
    /// Find the best load by itself: as many calls at a time as hold a limit, such as p99=10ms.
    #[arg(long, value_name = "LIMIT", help_heading = "Load")]
    pub auto_tune: Option<Slo>,
    /// Whose latency is tuned by: this client's, from the intended start, or what the server reports.
    #[arg(long, value_enum, default_value = "client", help_heading = "Load")]
    pub tune_by: TuneByFlag,
    /// Search for the highest rate that holds a limit, with an interval and a certified answer; may be repeated.
    #[arg(long, value_name = "LIMIT", help_heading = "Load")]
    pub seek: Vec<Slo>,
    /// Time for the search.
    #[arg(long, value_name = "TIME", default_value = "2m", help_heading = "Load")]
    pub budget: Span,

    /// Contestants, 1 to 12, by their usual names.
    #[arg(long, value_name = "N", help_heading = "Election")]
    pub contestants: Option<usize>,
    /// Names of the contestants instead, separated by commas.
    #[arg(long, value_name = "LIST", help_heading = "Election")]
    pub names: Option<String>,
    /// Votes that one telephone may give.
    #[arg(long, value_name = "N", default_value_t = 2, help_heading = "Election")]
    pub max_votes: u32,
    /// Seed of every random choice; the same seed gives the same votes.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Election")]
    pub seed: u64,
    /// This client's share of the telephone numbers, I/N from 1/N to N/N: clients that share a database each count
    /// their own.
    #[arg(long, value_name = "I/N", default_value = "1/1", help_heading = "Election")]
    pub slice: String,

    /// Client processes, each with connections and telephone numbers of its own.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Run")]
    pub processes: u32,
    /// Threads of each process.
    #[arg(
        long,
        visible_alias = "threads",
        value_name = "N",
        default_value_t = 1,
        help_heading = "Run"
    )]
    pub cores: u32,
    /// Begin at this time, UTC, such as 2026-01-31T12:00:00Z.
    #[arg(long, value_name = "TIME", help_heading = "Run")]
    pub start_at: Option<String>,
    /// Begin on a boundary of the wall clock: the first multiple of this that leaves at least as much time before it.
    #[arg(long, value_name = "TIME", help_heading = "Run")]
    pub start_delay: Option<Span>,
    /// Longest time of a call.
    #[arg(long, value_name = "TIME", default_value = "10s", help_heading = "Run")]
    pub timeout: Span,
    /// Longest time for a connection and its login.
    #[arg(long, value_name = "TIME", default_value = "5s", help_heading = "Run")]
    pub connect_timeout: Span,
    /// End the run when connections fail and nothing has been answered for so long.
    #[arg(long, value_name = "TIME", default_value = "5s", help_heading = "Run")]
    pub give_up: Span,
    /// Time between two rolling lines.
    #[arg(long, value_name = "TIME", help_heading = "Run")]
    pub dump_interval: Option<Span>,
    /// How much is printed: quiet, nonverbose, verbose or veryverbose.
    #[arg(long, value_name = "WORD", help_heading = "Run")]
    pub verbosity: Option<String>,
    /// A limit the run must hold, or exit code 2: p99=10ms, errors=0.1%, rate=10000.
    #[arg(long, value_name = "LIMIT", help_heading = "Run")]
    pub slo: Vec<Slo>,
    /// What the record must say, or exit code 2: 'global p95 < 500ms'; may be repeated.
    #[arg(long = "assert", value_name = "ASSERTION", help_heading = "Run")]
    pub assertions: Vec<Assertion>,
    #[command(flatten)]
    pub output: OutputFlags,

    /// One process of several: prepares nothing, says when it is ready, and waits for its start on stdin.
    #[arg(long, hide = true)]
    pub gate: bool,
    /// Which of several processes this is, I/N from 0/N.
    #[arg(long, hide = true, value_name = "I/N")]
    pub part: Option<String>,
}

/// The words without a flag, told apart.
#[derive(Debug, Default, PartialEq)]
struct Words {
    targets: Vec<String>,
    preset: Option<String>,
    shape: Option<Shape>,
}

impl Words {
    fn read(words: &[String]) -> Result<Self> {
        let mut read = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if word == "run" && read.shape.is_none() {
                let rest: Vec<&str> = words.as_slice().iter().map(String::as_str).collect();
                let end = rest.iter().position(|word| word.contains("://")).unwrap_or(rest.len());
                let own = &rest[..end];
                let shape = Shape::of_words(own).map_err(|error| usage(error.to_string()))?;
                read.shape = Some(shape);
                words.nth(WORDS - 1);
            } else if word.contains("://") {
                read.targets.push(word.clone());
            } else if word.contains(':') {
                return Err(usage(format!(
                    "target '{}': write volt://{0} or postgres://USER@HOST:PORT/DATABASE",
                    plimsoll_core::secrets::without_address_secrets(word)
                )));
            } else if read.preset.is_none() {
                read.preset = Some(word.clone());
            } else {
                return Err(usage(format!("'{word}': one preset is enough")));
            }
        }
        Ok(read)
    }
}

/// Whether a short name may be a slip of another: one letter is wrong, or two have changed places.
fn is_slip(word: &str, name: &str) -> bool {
    let sorted = |text: &str| {
        let mut letters: Vec<u8> = text.bytes().collect();
        letters.sort_unstable();
        letters
    };
    let wrong = word.bytes().zip(name.bytes()).filter(|(one, other)| one != other).count();
    word.len() == name.len() && (wrong == 1 || sorted(word) == sorted(name))
}

/// A preset by its name.
fn known_preset(name: &str) -> Result<Shape> {
    let known = PRESETS.map(|(name, _)| name);
    let word = name.to_ascii_uppercase();
    preset(name).ok_or_else(|| match known.iter().find(|known| is_slip(&word, known)) {
        Some(near) => usage(format!("there is no preset '{name}'; did you mean '{near}'?")),
        None => unknown("preset", name, &known),
    })
}

impl BenchFlags {
    /// The shape of the run, and the targets that were named.
    ///
    /// # Errors
    /// Words and flags that make no run, or contradict each other.
    pub fn shape(&self, bench: Bench) -> Result<(Shape, Vec<String>)> {
        let words = Words::read(&self.words)?;
        let targets = [&words.targets[..], &self.target].concat();
        let named = match (words.preset, &self.preset) {
            (Some(_), Some(_)) => return Err(usage("the preset is named twice; name it once")),
            (word, flag) => word.or_else(|| flag.clone()),
        };
        let own = if bench == Bench::Hello { "HSD" } else { "VSD" };
        let mut shape = match (words.shape, &named) {
            (Some(_), Some(name)) => {
                return Err(usage(format!(
                    "'{name}': the words after run say all that a preset says"
                )));
            }
            (Some(shape), None) => shape,
            (None, Some(name)) => known_preset(name)?,
            (None, None) => known_preset(own)?,
        };
        if bench == Bench::Hello && shape.bench != bench {
            return Err(usage(format!(
                "'{}' calls voter; write plimsoll voter, or use HSD",
                shape.client
            )));
        }
        self.change(&mut shape)?;
        shape.check().map_err(|error| usage(error.to_string()))?;
        Ok((shape, targets))
    }

    /// Puts the flags into a preset.
    fn change(&self, shape: &mut Shape) -> Result<()> {
        if let Some(client) = &self.client {
            shape.client.clone_from(client);
        }
        match (self.calls, self.duration) {
            (Some(calls), _) => shape.calls = Some(calls),
            (None, Some(_)) => shape.calls = None,
            // A load that is tuned takes its time.
            (None, None) if self.auto_tune.is_some() => shape.calls = None,
            (None, None) => {}
        }
        self.change_rhythm(shape)?;
        self.change_mode(shape)?;
        shape.limit = self.limit.or(shape.limit);
        if let Some(word) = &self.verbosity {
            shape.verbosity = Verbosity::of_word(word).map_err(|e| usage(format!("--{e}")))?;
        }
        shape.dump_interval = self.dump_interval.unwrap_or(shape.dump_interval);
        Ok(())
    }

    fn change_rhythm(&self, shape: &mut Shape) -> Result<()> {
        let other = self.rate.is_some() || self.auto_tune.is_some() || !self.seek.is_empty();
        let wish = [self.rate.is_some(), self.auto_tune.is_some(), !self.seek.is_empty()];
        if wish.iter().filter(|wished| **wished).count() > 1 {
            return Err(usage("--rate, --auto-tune and --seek exclude each other; give one"));
        }
        if other && (self.rhythm.is_some() || self.workers.is_some() || self.burst.is_some()) {
            return Err(usage(
                "--rate, --auto-tune and --seek set the pace; leave out --rhythm, --workers and --burst",
            ));
        }
        match self.rhythm {
            Some(RhythmFlag::Burst) if shape.rhythm != Rhythm::Burst => {
                (shape.rhythm, shape.size, shape.delay) = (Rhythm::Burst, BURST, None);
            }
            Some(RhythmFlag::Steady) if shape.rhythm != Rhythm::Steady => {
                (shape.rhythm, shape.size, shape.delay) = (Rhythm::Steady, 200, None);
            }
            _ => {}
        }
        let is_burst = shape.rhythm == Rhythm::Burst && !other;
        if !is_burst && (self.burst.is_some() || self.delay.is_some()) {
            return Err(usage("--burst and --delay go with --rhythm burst"));
        }
        if is_burst && self.workers.is_some() {
            return Err(usage("--workers goes with --rhythm steady; a burst has a size, --burst"));
        }
        shape.size = self.workers.or(self.burst).unwrap_or(shape.size);
        shape.delay = self.delay.or(shape.delay);
        if let Some(rate_per_s) = self.rate {
            let arrivals = match self.arrivals {
                ArrivalsFlag::Uniform => Arrivals::Uniform,
                ArrivalsFlag::Poisson => Arrivals::Poisson,
            };
            shape.rhythm = Rhythm::Open { rate_per_s, arrivals };
        } else if let Some(goal) = &self.auto_tune {
            shape.rhythm = Rhythm::Tuned { goal: goal.to_string() };
        } else if !self.seek.is_empty() {
            let goals: Vec<String> = self.seek.iter().map(ToString::to_string).collect();
            shape.rhythm = Rhythm::Sought { goal: goals.join(" and ") };
            shape.calls = None;
        }
        Ok(())
    }

    fn change_mode(&self, shape: &mut Shape) -> Result<()> {
        match self.mode {
            Some(ModeFlag::Direct) => shape.managed = None,
            Some(ModeFlag::Managed) if shape.managed.is_none() => {
                shape.managed = Some(Managed { queue: None, slots: SLOTS });
            }
            _ => {}
        }
        match &mut shape.managed {
            Some(managed) => {
                managed.queue = self.queue.or(managed.queue);
                managed.slots = self.slots.unwrap_or(managed.slots);
            }
            None if self.queue.is_some() => {
                return Err(usage("--queue goes with --mode managed"));
            }
            None if self.slots.is_some() => {
                return Err(usage("--slots goes with --mode managed"));
            }
            None => {}
        }
        if shape.managed.is_some() && self.auto_tune.is_some() {
            return Err(usage(
                "--auto-tune sets how many calls are under way; leave out --mode managed",
            ));
        }
        Ok(())
    }

    /// The names of the contestants, where they are not the usual ones, and how many there are.
    ///
    /// # Errors
    /// A list that is too long, empty, or has an empty name.
    pub fn names(&self) -> Result<(usize, Option<Vec<String>>)> {
        let too_long = |n: usize| {
            usage(format!("{n} contestants: the list is too long; use 1 to {NAMES_MAX}"))
        };
        let Some(list) = &self.names else {
            return match self.contestants.unwrap_or(6) {
                0 => Err(usage("--contestants 0: nobody can be voted for; use 1 to 12")),
                n if n > NAMES_MAX => Err(too_long(n)),
                n => Ok((n, None)),
            };
        };
        let names: Vec<String> = list.split(',').map(|name| name.trim().to_owned()).collect();
        if names.len() > NAMES_MAX {
            return Err(too_long(names.len()));
        }
        if names.iter().any(|name| name.is_empty() || name.len() > 50) {
            return Err(usage("--names: a name has 1 to 50 bytes; write A,B,C"));
        }
        if (1..names.len()).any(|at| names[..at].contains(&names[at])) {
            return Err(usage("--names: two contestants have the same name"));
        }
        if self.contestants.is_some_and(|n| n != names.len()) {
            return Err(usage(format!("--contestants: --names names {}", names.len())));
        }
        Ok((names.len(), Some(names)))
    }

    /// This client's share of the telephone numbers.
    ///
    /// # Errors
    /// When it is no share.
    pub fn slice(&self) -> Result<Slice> {
        let wrong = || {
            usage(format!(
                "--slice '{}': write I/N from 1/N to N/N, N at most {SLICES_MAX}",
                self.slice
            ))
        };
        let (index, of) = self.slice.split_once('/').ok_or_else(wrong)?;
        let (index, of): (u32, u32) = index.parse().ok().zip(of.parse().ok()).ok_or_else(wrong)?;
        if index == 0 || index > of || of > SLICES_MAX {
            return Err(wrong());
        }
        Ok(Slice { index: index - 1, of })
    }

    /// Which of several processes this is.
    ///
    /// # Errors
    /// When it is no part.
    pub fn part(&self) -> Result<Slice> {
        let Some(text) = &self.part else { return Ok(Slice::WHOLE) };
        let parts =
            text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
        match parts {
            Some((index, of)) if index < of => Ok(Slice { index, of }),
            _ => Err(usage(format!("--part '{text}': write I/N from 0/N"))),
        }
    }

    /// Whose latency the load is tuned by.
    #[must_use]
    pub const fn tuned_latency(&self) -> TunedLatency {
        match self.tune_by {
            TuneByFlag::Client => TunedLatency::Client,
            TuneByFlag::Server => TunedLatency::Server,
        }
    }

    /// When the calls begin, microseconds since the Unix epoch; `None` is at once.
    ///
    /// # Errors
    /// As [`start_us`].
    pub fn start_us(&self) -> Result<Option<u64>> {
        start_us(self.start_at.as_deref(), self.start_delay, wall_us())
    }

    /// Refuses numbers and combinations that make no sense for these targets.
    ///
    /// # Errors
    /// The first of them.
    pub fn check(&self, shape: &Shape, targets: &[String]) -> Result<()> {
        let is_sql = targets.iter().any(|target| postgres::is_address(target));
        let sql_only = self.sql.is_some() || self.isolation.is_some() || self.retries.is_some();
        let several = self.processes > 1;
        let wrong = if sql_only && !is_sql {
            "--sql, --isolation and --retries are PostgreSQL's; name a postgres:// target"
        } else if is_sql && self.tune_by == TuneByFlag::Server {
            "--tune-by server: PostgreSQL reports no times with its answers; leave it out"
        } else if self.processes == 0 || self.processes > PROCESSES_MAX {
            "--processes: use a number from 1 to 64"
        } else if self.connections == Some(0) {
            "--connections 0 cannot carry a call; use at least 1"
        } else if several && (self.auto_tune.is_some() || !self.seek.is_empty()) {
            "--auto-tune and --seek steer one process; leave out --processes, and use --cores"
        } else if !self.seek.is_empty() && (self.calls.is_some() || self.duration.is_some()) {
            "--seek takes as long as its --budget; leave out --calls and --duration"
        } else if self.max_votes == 0 {
            "--max-votes 0 lets nobody vote; use at least 1"
        } else if several && shape.calls.is_some_and(|calls| calls < self.processes.into()) {
            "--calls: fewer than one for each of the processes"
        } else if several && shape.size < self.processes && shape.rhythm == Rhythm::Steady {
            "--workers: fewer than one for each of the processes"
        } else {
            return Ok(());
        };
        Err(usage(wrong))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        flags: BenchFlags,
    }

    fn flags(text: &str) -> BenchFlags {
        let words = std::iter::once("voter").chain(text.split(' ').filter(|word| !word.is_empty()));
        Cli::try_parse_from(words).unwrap().flags
    }

    fn shape(text: &str) -> Result<(Shape, Vec<String>), String> {
        let flags = flags(text);
        let read = flags.shape(Bench::Voter).and_then(|(shape, targets)| {
            flags.check(&shape, &targets)?;
            flags.names()?;
            flags.slice()?;
            Ok((shape, targets))
        });
        read.map_err(|error| error.to_string())
    }

    #[test]
    fn presets_words_and_flags_come_to_the_same_shape() {
        let (named, targets) = shape("VSM volt://a:1 --target volt://b:2").unwrap();
        assert_eq!((Some(&named), targets.len()), (preset("VSM").as_ref(), 2));
        let words = "run VSM voter 100000 steady 200 x managed 100000 200 100 verbose 100 volt://h";
        assert_eq!(shape(words).unwrap(), (named.clone(), vec!["volt://h".to_owned()]));
        let flags = "--client VSM --mode managed --queue 100000 --slots 200 --limit 100 --dump-interval 100ms";
        assert_eq!(shape(flags).unwrap().0, named);
        let burst =
            shape("--preset vsd --rhythm bursts --delay 5ms --burst 7 --calls 10").unwrap().0;
        assert_eq!((burst.size, burst.calls, burst.rhythm), (7, Some(10), Rhythm::Burst));
        assert_eq!(shape("--duration 3s").unwrap().0.calls, None);
        assert_eq!(shape("--clients 3").unwrap().0.size, 3);
        assert_eq!(flags_of_hello().client, "HSD");
    }

    fn flags_of_hello() -> Shape {
        let told = flags("VSD").shape(Bench::Hello).unwrap_err().to_string();
        assert!(told.contains("calls voter"), "{told}");
        flags("").shape(Bench::Hello).unwrap().0
    }

    #[test]
    fn every_contradiction_has_its_line() {
        let cases = [
            ("VDS", "did you mean 'VSD'"),
            ("127.0.0.1:21212", "write volt://127.0.0.1:21212"),
            ("VSD VSM", "one preset"),
            ("VSD --preset VSM", "named twice"),
            ("run VSD voter", "has 2"),
            ("--rhythm burst", "needs a delay"),
            ("VBD --workers 5", "a burst has a size"),
            ("VSD --delay 5ms", "go with --rhythm burst"),
            ("--queue 5", "--queue goes with --mode managed"),
            ("--slots 5", "--slots goes with"),
            ("--mode managed --slots 0", "slots 0 admit nothing"),
            ("--rate 5 --workers 5", "set the pace"),
            ("--rate 5 --seek p99=10ms", "exclude each other"),
            ("--seek p99=10ms --calls 5", "leave out --calls"),
            ("--auto-tune p99=10ms --processes 2", "steer one process"),
            ("--contestants 13", "list is too long"),
            ("--contestants 0", "nobody can be voted for"),
            ("--names a,b,c,d,e,f,g,h,i,j,k,l,m", "13 contestants: the list is too long"),
            ("--names a,,b", "1 to 50 bytes"),
            ("--names a,a", "the same name"),
            ("--names a,b --contestants 3", "names 2"),
            ("--slice 0/2", "from 1/N to N/N"),
            ("--slice 3/2", "from 1/N to N/N"),
            ("--sql function", "name a postgres:// target"),
            ("--processes 0", "from 1 to 64"),
            ("--processes 3 --workers 2", "fewer than one"),
            ("--verbosity loud", "write quiet"),
            ("--tune-by server --auto-tune p99=1ms postgres://h", "reports no times"),
        ];
        for (text, part) in cases {
            let told = shape(text).unwrap_err();
            assert!(told.contains(part), "{text}: {told}");
        }
    }
}
