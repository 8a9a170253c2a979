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

/// Form of a vote in SQL.
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
    /// Targets, a preset such as VSD, or run WORDS
    ///
    /// A target is volt://HOST:PORT or volt://USER@HOST:PORT (several hosts with commas), or
    /// postgres://USER@HOST:PORT/DATABASE. Without one, plimsoll starts its own database and stops it afterwards. run WORDS
    /// are Erlvolt's: run CLIENT voter|hello CALLS steady|burst SIZE DELAY direct|managed QUEUE SLOTS LIMIT VERBOSITY
    /// DUMP_MS.
    #[arg(value_name = "TARGET|PRESET|run WORDS")]
    pub words: Vec<String>,
    /// The same as a positional TARGET
    ///
    /// The password comes from VOLTDB_PASSWORD or PGPASSWORD. May be repeated.
    #[arg(long, value_name = "URL", help_heading = "Target")]
    pub target: Vec<String>,
    /// Number of connections to each host
    ///
    /// VoltDB: for each thread, 1 by default. PostgreSQL: in each process; by default one per client, at most 32 over all
    /// processes.
    #[arg(long, value_name = "N", help_heading = "Target")]
    pub connections: Option<u32>,
    /// Send each vote to the leader of its partition: on, off
    ///
    /// For VoltDB with several hosts.
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        default_value = "on",
        help_heading = "Target"
    )]
    pub affinity: Switch,
    /// PostgreSQL: function or statements [default: function]
    ///
    /// function: each vote is one call of a stored function; statements: four statements in one transaction.
    #[arg(long, value_enum, hide_possible_values = true, help_heading = "Target")]
    pub sql: Option<SqlFlag>,
    /// PostgreSQL: isolation of the transaction of a vote
    ///
    /// read-committed (the default), repeatable-read or serializable.
    #[arg(long, value_enum, hide_possible_values = true, help_heading = "Target")]
    pub isolation: Option<IsolationFlag>,
    /// PostgreSQL: retries after a serialisation failure [default: 10]
    #[arg(long, value_name = "N", help_heading = "Target")]
    pub retries: Option<u32>,

    /// Preset of Erlvolt: VSD, VSM, VBM, VBD or HSD
    ///
    /// The presets are those of Erlvolt's Makefile. Other flags override it.
    #[arg(long, value_name = "NAME", help_heading = "Load")]
    pub preset: Option<String>,
    /// Name of the client in every line
    #[arg(long, value_name = "NAME", help_heading = "Load")]
    pub client: Option<String>,
    /// Number of calls, divided among the processes
    ///
    /// It is not rounded down to whole bursts.
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub calls: Option<u64>,
    /// Rhythm of the calls: steady or burst
    ///
    /// steady: clients, each of which sends its next call after the reply; burst: a burst of calls, and a pause.
    #[arg(long, value_enum, hide_possible_values = true, help_heading = "Load")]
    pub rhythm: Option<RhythmFlag>,
    /// Closed model: clients that wait for each reply
    ///
    /// For the steady rhythm.
    #[arg(long = "clients", alias = "workers", value_name = "N", help_heading = "Load")]
    pub workers: Option<u32>,
    /// Bursts: number of requests sent at once
    ///
    /// Each call is a request.
    #[arg(long, value_name = "SIZE", help_heading = "Load")]
    pub burst: Option<u32>,
    /// Bursts: pause after a burst
    #[arg(long, value_name = "TIME", help_heading = "Load")]
    pub delay: Option<Span>,
    /// Bursts: largest backlog at which the next may start
    ///
    /// The next burst waits while more calls than this are queued (managed) or in flight (direct).
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub limit: Option<u32>,
    /// Admission of the calls: direct or managed
    ///
    /// direct: no limit, a call is sent when it is due; managed: slots, and a bounded queue in front of them.
    #[arg(long, value_enum, hide_possible_values = true, help_heading = "Load")]
    pub mode: Option<ModeFlag>,
    /// Managed: largest number of calls that wait
    ///
    /// Further calls are rejected and counted. No limit by default.
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub queue: Option<u32>,
    /// Managed: largest number in flight on a connection
    ///
    /// In calls; 200 by default.
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub slots: Option<u32>,
    /// Longest wait in the queue [default: 10s]
    ///
    /// For the managed mode.
    #[arg(long, value_name = "TIME", help_heading = "Load")]
    pub queue_timeout: Option<Span>,
    /// Open model: requests per second, such as 1000 or 1k
    ///
    /// Each call is a request. Requests arrive at their own time, even if earlier ones were not answered.
    #[arg(long, value_name = "PER_S", help_heading = "Load")]
    pub rate: Option<Rate>,
    /// Gaps between requests, uniform or poisson [default: uniform]
    ///
    /// For --rate. uniform: equal gaps; poisson: independent exponential gaps, as of many independent users.
    #[arg(long, value_enum, hide_possible_values = true, help_heading = "Load")]
    pub arrivals: Option<ArrivalsFlag>,
    /// Length of the run
    ///
    /// Without --calls, as many calls as fit are sent.
    #[arg(long, value_name = "TIME", help_heading = "Load")]
    pub duration: Option<Span>,
    /// Find the most calls in flight at which a limit holds
    ///
    /// A limit such as p99=10ms. plimsoll checks the load that it found.
    #[arg(long, value_name = "LIMIT", help_heading = "Load")]
    pub auto_tune: Option<Slo>,
    /// Latency for --auto-tune: client or server [default: client]
    ///
    /// client: this client's, from the intended start; server: the server's own, in whole milliseconds. PostgreSQL reports
    /// none.
    #[arg(long, value_enum, hide_possible_values = true, help_heading = "Load")]
    pub tune_by: Option<TuneByFlag>,
    /// Find the highest rate at which a limit holds
    ///
    /// With an interval and a certified rate. May be repeated.
    #[arg(long, value_name = "LIMIT", help_heading = "Load")]
    pub seek: Vec<Slo>,
    /// Time for the whole search [default: 5m]
    ///
    /// For --seek.
    #[arg(long, value_name = "TIME", help_heading = "Load")]
    pub budget: Option<Span>,

    /// Number of contestants, 1 to 12 [default: 6]
    ///
    /// They have their usual names.
    #[arg(long, value_name = "N", help_heading = "Election")]
    pub contestants: Option<usize>,
    /// Names of the contestants, separated by commas
    #[arg(long, value_name = "LIST", help_heading = "Election")]
    pub names: Option<String>,
    /// Largest number of votes per telephone
    #[arg(long, value_name = "N", default_value_t = MAX_VOTES, help_heading = "Election")]
    pub max_votes: u32,
    /// Seed of all random choices
    ///
    /// The same seed gives the same votes.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Election")]
    pub seed: u64,
    /// This client's share of the telephones, 1/N to N/N
    ///
    /// Clients that share a database each count their own votes.
    #[arg(long, value_name = "I/N", default_value = WHOLE, help_heading = "Election")]
    pub slice: String,

    /// Number of generator threads
    ///
    /// In each process.
    #[arg(
        long = "threads",
        alias = "cores",
        value_name = "N",
        default_value_t = 1,
        help_heading = "Run"
    )]
    pub cores: u32,
    /// Start time, UTC, such as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", help_heading = "Run")]
    pub start_at: Option<String>,
    /// Start at a multiple of this time on the wall clock
    ///
    /// The first multiple that is at least this far away.
    #[arg(long, value_name = "TIME", help_heading = "Run")]
    pub start_delay: Option<Span>,
    /// Longest time from sending a request to its last byte
    #[arg(long, value_name = "TIME", default_value = "30s", help_heading = "Run")]
    pub timeout: Span,
    /// Longest time to open a connection, TLS included
    ///
    /// Login included.
    #[arg(long, value_name = "TIME", default_value = "5s", help_heading = "Run")]
    pub connect_timeout: Span,
    /// End the run after this time without an answer
    ///
    /// Only if calls fail.
    #[arg(long, value_name = "TIME", default_value = "5s", help_heading = "Run")]
    pub give_up: Span,
    /// Time between two rolling lines
    #[arg(long, value_name = "TIME", help_heading = "Run")]
    pub dump_interval: Option<Span>,
    /// Output: quiet, nonverbose, verbose or veryverbose
    ///
    /// quiet: the result in a few lines; nonverbose: the parameters, and rolling lines on stderr; verbose: phases, hosts and
    /// contestants too; veryverbose: the rolling lines on stdout.
    #[arg(long, value_name = "WORD", help_heading = "Run")]
    pub verbosity: Option<String>,
    /// Limit on the result; exit code 2 if missed: p95=500ms
    ///
    /// A limit is p99=10ms, errors=0.1% or rate=10000. May be repeated.
    #[arg(long, value_name = "LIMIT", help_heading = "Run")]
    pub slo: Vec<Slo>,
    /// Assertion on the result; exit code 2 if it fails
    ///
    /// Such as 'global p95 < 500ms'. May be repeated.
    #[arg(long = "assert", value_name = "ASSERTION", help_heading = "Run")]
    pub assertions: Vec<Assertion>,
    #[command(flatten)]
    pub output: OutputFlags,

    /// One process of several: it votes in a key range of its own, whose rows the process that started it counts.
    #[arg(long, hide = true)]
    pub own_range: bool,
    /// True for a search of another command: all parts of it vote in one key range, and the coordinator leads it.
    #[arg(skip)]
    pub is_of_search: bool,
    /// Number of this process among several, I/N from 0/N.
    #[arg(long, hide = true, value_name = "I/N")]
    pub part: Option<String>,
}

#[cfg(test)]
mod tests;
