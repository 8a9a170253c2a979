//! The flags of `plimsoll voter` and `plimsoll hello`, and what they come to.

mod reading;

use clap::{Args, ValueEnum};
use plimsoll_core::assertion::Assertion;
use plimsoll_core::slo::Slo;
use plimsoll_core::units::{Rate, Span};
use plimsoll_job::flags::{ArrivalsFlag, OutputFlags};

/// Votes that one telephone may give where no one says otherwise.
const MAX_VOTES: u32 = 2;
/// All telephone numbers.
const WHOLE: &str = "1/1";

/// The way calls follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RhythmFlag {
    /// Workers; each sends its next call after the reply.
    Steady,
    /// A burst of calls, and a pause.
    #[value(alias = "bursts")]
    Burst,
}

/// Limit of the calls in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModeFlag {
    /// No limit: a call is sent when it is due.
    Direct,
    /// Slots, and a bounded queue in front of them.
    Managed,
}

/// Latency that tuning judges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TuneByFlag {
    /// This client's.
    Client,
    /// The server's own, in whole milliseconds; PostgreSQL reports none.
    Server,
}

/// Yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// Yes.
    On,
    /// No.
    Off,
}

/// The way a vote is said in SQL.
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
    /// Targets (volt://HOST:PORT or volt://USER@HOST:PORT, several hosts with commas;
    /// postgres://USER@HOST:PORT/DATABASE), a preset (VSD), or Erlvolt's words: run CLIENT voter|hello CALLS steady|burst
    /// SIZE DELAY direct|managed QUEUE SLOTS LIMIT VERBOSITY DUMP_MS. Without a target, plimsoll starts its own database
    /// and stops it afterwards.
    #[arg(value_name = "TARGET|PRESET|run WORDS")]
    pub words: Vec<String>,
    /// The same as a positional TARGET; may be repeated. The password comes from VOLTDB_PASSWORD or PGPASSWORD.
    #[arg(long, value_name = "URL", help_heading = "Target")]
    pub target: Vec<String>,
    /// Connections to each host [default for PostgreSQL: one per worker, at most 32].
    #[arg(long, value_name = "N", help_heading = "Target")]
    pub connections: Option<u32>,
    /// VoltDB with several hosts: send each vote to the host that leads its partition.
    #[arg(long, value_enum, default_value = "on", help_heading = "Target")]
    pub affinity: Switch,
    /// PostgreSQL: call a function, or send separate statements.
    #[arg(long, value_enum, help_heading = "Target")]
    pub sql: Option<SqlFlag>,
    /// PostgreSQL: isolation of a vote's transaction.
    #[arg(long, value_enum, help_heading = "Target")]
    pub isolation: Option<IsolationFlag>,
    /// PostgreSQL: retries of a vote after a serialisation failure.
    #[arg(long, value_name = "N", help_heading = "Target")]
    pub retries: Option<u32>,

    /// A preset of Erlvolt's Makefile: VSD, VSM, VBM, VBD or HSD. Other flags override it.
    #[arg(long, value_name = "NAME", help_heading = "Load")]
    pub preset: Option<String>,
    /// Name of the client in every line.
    #[arg(long, value_name = "NAME", help_heading = "Load")]
    pub client: Option<String>,
    /// Number of calls, divided among the processes; not rounded down to whole bursts.
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub calls: Option<u64>,
    /// Steady workers, or bursts.
    #[arg(long, value_enum, help_heading = "Load")]
    pub rhythm: Option<RhythmFlag>,
    /// Steady rhythm: clients that wait for each reply
    #[arg(long = "clients", alias = "workers", value_name = "N", help_heading = "Load")]
    pub workers: Option<u32>,
    /// Calls in a burst.
    #[arg(long, value_name = "SIZE", help_heading = "Load")]
    pub burst: Option<u32>,
    /// Pause after a burst.
    #[arg(long, value_name = "TIME", help_heading = "Load")]
    pub delay: Option<Span>,
    /// Bursts: the next one waits while more calls than this are queued (managed) or in flight (direct).
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub limit: Option<u32>,
    /// Direct calls, or slots with a bounded queue in front of them.
    #[arg(long, value_enum, help_heading = "Load")]
    pub mode: Option<ModeFlag>,
    /// Managed: largest number of waiting calls; further ones are refused and counted.
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub queue: Option<u32>,
    /// Managed: largest number of calls in flight on each connection.
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub slots: Option<u32>,
    /// Managed: longest wait in the queue.
    #[arg(long, value_name = "TIME", default_value = "10s", help_heading = "Load")]
    pub queue_timeout: Span,
    /// Open model: calls per second, such as 1000 or 1k
    ///
    /// Open model: calls per second, such as 1000, 1000/s or 1k, whether or not earlier ones were answered.
    #[arg(long, value_name = "PER_S", help_heading = "Load")]
    pub rate: Option<Rate>,
    /// With --rate: gaps between calls, equal or random.
    #[arg(long, value_enum, default_value = "uniform", help_heading = "Load")]
    pub arrivals: ArrivalsFlag,
    /// Length of the run; without --calls as many calls as fit.
    #[arg(long, value_name = "TIME", help_heading = "Load")]
    pub duration: Option<Span>,
    /// Find the largest number of calls in flight at which a limit holds, such as p99=10ms, then check it.
    #[arg(long, value_name = "LIMIT", help_heading = "Load")]
    pub auto_tune: Option<Slo>,
    /// Latency for --auto-tune: the client's, from the intended start, or the server's.
    #[arg(long, value_enum, default_value = "client", help_heading = "Load")]
    pub tune_by: TuneByFlag,
    /// Search for the highest rate at which a limit holds, with an interval and a certified rate; may be repeated.
    #[arg(long, value_name = "LIMIT", help_heading = "Load")]
    pub seek: Vec<Slo>,
    /// Time for the whole search
    #[arg(long, value_name = "TIME", default_value = "5m", help_heading = "Load")]
    pub budget: Span,

    /// Contestants, 1 to 12, by their usual names.
    #[arg(long, value_name = "N", help_heading = "Election")]
    pub contestants: Option<usize>,
    /// Names of the contestants instead, separated by commas.
    #[arg(long, value_name = "LIST", help_heading = "Election")]
    pub names: Option<String>,
    /// Largest number of votes per telephone.
    #[arg(long, value_name = "N", default_value_t = MAX_VOTES, help_heading = "Election")]
    pub max_votes: u32,
    /// Seed of all random choices
    ///
    /// Seed of all random choices. The same seed gives the same votes.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Election")]
    pub seed: u64,
    /// This client's share of the telephone numbers, 1/N to N/N: clients that share a database each count their own.
    #[arg(long, value_name = "I/N", default_value = WHOLE, help_heading = "Election")]
    pub slice: String,

    /// Client processes, each with its own connections and telephone numbers.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Run")]
    pub processes: u32,
    /// Number of generator threads
    ///
    /// Number of generator threads of each process.
    #[arg(
        long = "threads",
        alias = "cores",
        value_name = "N",
        default_value_t = 1,
        help_heading = "Run"
    )]
    pub cores: u32,
    /// Start time, UTC, such as 2026-01-31T12:00:00Z.
    #[arg(long, value_name = "TIME", help_heading = "Run")]
    pub start_at: Option<String>,
    /// Start at the first multiple of this time on the wall clock that is at least this far away.
    #[arg(long, value_name = "TIME", help_heading = "Run")]
    pub start_delay: Option<Span>,
    /// Longest time from sending a request to its last byte
    #[arg(long, value_name = "TIME", default_value = "30s", help_heading = "Run")]
    pub timeout: Span,
    /// Longest time to open a connection, TLS included
    ///
    /// Longest time to open a connection, TLS and login included.
    #[arg(long, value_name = "TIME", default_value = "5s", help_heading = "Run")]
    pub connect_timeout: Span,
    /// End the run if connections fail and nothing was answered for this long.
    #[arg(long, value_name = "TIME", default_value = "5s", help_heading = "Run")]
    pub give_up: Span,
    /// Time between two rolling lines.
    #[arg(long, value_name = "TIME", help_heading = "Run")]
    pub dump_interval: Option<Span>,
    /// Amount of output: quiet, nonverbose, verbose or veryverbose.
    #[arg(long, value_name = "WORD", help_heading = "Run")]
    pub verbosity: Option<String>,
    /// Limit on the result; exit code 2 if missed: p95=500ms
    ///
    /// Limit on the result; exit code 2 if it is missed: p99=10ms, errors=0.1%, rate=10000. May be repeated.
    #[arg(long, value_name = "LIMIT", help_heading = "Run")]
    pub slo: Vec<Slo>,
    /// Assertion on the result; exit code 2 if it fails
    ///
    /// Assertion on the result; exit code 2 if it fails: 'global p95 < 500ms'. May be repeated.
    #[arg(long = "assert", value_name = "ASSERTION", help_heading = "Run")]
    pub assertions: Vec<Assertion>,
    #[command(flatten)]
    pub output: OutputFlags,

    /// One process of several: prepares nothing, says when it is ready, and waits for its start on stdin.
    #[arg(long, hide = true)]
    pub gate: bool,
    /// Number of this process among several, I/N from 0/N.
    #[arg(long, hide = true, value_name = "I/N")]
    pub part: Option<String>,
}

#[cfg(test)]
mod tests;
