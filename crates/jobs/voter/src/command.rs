//! `plimsoll voter` and `plimsoll hello`: the phone election that VoltDB is measured with, and hello world.

mod address;
mod client;
mod contact;
mod flags;
mod laps;
mod search;
mod start;
mod stranger;
mod sums;
mod task;

use crate::page::FORMS;
pub use address::Database;
use anyhow::Result;
use clap::{Args, Parser};
use client::seeking;
pub use contact::{ping, volt_of};
use flags::BenchFlags;
use plimsoll_core::slo::ClassSlo;
use plimsoll_job::embedded::Embedded;
use plimsoll_job::execute::print;
use plimsoll_job::job::{Job, Program};
use plimsoll_job::keeping::Finished;
use plimsoll_job::output::Output;
use plimsoll_job::prepare::check_classes;
use plimsoll_job::together::share;
use plimsoll_job::usage::usage;
use plimsoll_record::bench_shape::{Bench, Rhythm};
use plimsoll_report::forms::Forms;
pub use search::Search;
use task::Task;
pub use task::VOLT_DEPTH;

const EXAMPLES: &str = "\
Examples:
  plimsoll's own database, started and stopped by the command; 200 workers, 100,000 votes:
    plimsoll voter
  Erlvolt's bursts against a cluster, and its own words:
    plimsoll voter VBD volt://db1,db2:21212
    plimsoll voter run VSD voter 100000 steady 200 x direct x x x nonverbose 500
  PostgreSQL, one function call per vote:
    PGPASSWORD=... plimsoll voter postgres://me@db/votes --clients 64
  Two processes with separate telephone numbers, started on the same full minute:
    plimsoll voter --processes 2 --start-delay 60s volt://db1
  The tuned load, and the certified rate:
    plimsoll voter --auto-tune p99=10ms
    plimsoll voter --seek p99=10ms --budget 2m

Exit codes: 0 fine, 2 a limit was missed, 3 not valid (writes wrong, partial), 4 the target failed,
64 wrong usage.";

/// Run the voter benchmark: votes as transactions, every write verified.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct VoterArgs {
    #[command(flatten)]
    flags: BenchFlags,
}

const HELLO_EXAMPLES: &str = "\
Examples:
  plimsoll's own database:       plimsoll hello
  A cluster, by 50 workers:      plimsoll hello volt://db1,db2:21212 --workers 50

The flags are those of plimsoll voter; the preset is HSD.";

/// Run the hello world benchmark: reads of one row.
#[derive(Args, Debug)]
#[command(after_help = HELLO_EXAMPLES)]
pub struct HelloArgs {
    #[command(flatten)]
    flags: BenchFlags,
}

impl Job for VoterArgs {
    const NAME: &'static str = "voter";
    const FORMS: Forms = Forms { merge: client::merge, ..FORMS };

    fn run(&self, _program: &Program) -> Result<u8> {
        run(self)
    }
}

/// Runs `plimsoll voter`.
///
/// # Errors
/// Wrong usage, a database that is not there or not ready, or a program failure.
fn run(args: &VoterArgs) -> Result<u8> {
    bench(&args.flags, Bench::Voter)
}

impl Job for HelloArgs {
    const NAME: &'static str = "hello";
    const FORMS: Forms = Forms { merge: client::merge, ..FORMS };

    fn run(&self, _program: &Program) -> Result<u8> {
        hello(self)
    }
}

/// Runs `plimsoll hello`.
///
/// # Errors
/// As [`run`].
fn hello(args: &HelloArgs) -> Result<u8> {
    bench(&args.flags, Bench::Hello)
}

/// The flags of a search of another command, as words.
#[derive(Parser, Debug)]
struct Words {
    #[command(flatten)]
    flags: BenchFlags,
}

/// Searches the line of votes for `plimsoll seek`: `words` are flags of `plimsoll voter` with its targets, `slo` the limits.
///
/// # Errors
/// If a flag or a target is wrong, if the database cannot be reached or prepared, or if the record cannot be written.
pub fn seek_votes(
    words: &[String],
    slo: &[ClassSlo],
    search: Search,
    output: &Output,
) -> Result<Finished> {
    let words = [&["seek".to_owned(), "--seek=p50=1s".to_owned()], words].concat();
    let mut flags = Words::try_parse_from(words).map_err(|error| usage(error.to_string()))?.flags;
    flags.is_of_search = true;
    let (shape, targets) = flags.shape(Bench::Voter)?;
    flags.check(&shape, &targets)?;
    output.check()?;
    let mut task = Task::new(&flags, shape, &targets)?;
    let goals: Vec<String> = slo.iter().map(ToString::to_string).collect();
    task.shape.rhythm = Rhythm::Sought { goal: goals.join(" and ") };
    task.scenario.job = "seek".to_owned();
    task.scenario.slo = slo.to_vec();
    task.search = search;
    check_classes(&task.scenario, &[task.class()])?;
    seeking::goal(&task)?;
    plimsoll_job::signals::stop_flag()?;
    task.settle()?;
    client::run(&task, output, &|| Ok(None))
}

fn bench(flags: &BenchFlags, bench: Bench) -> Result<u8> {
    let (shape, mut targets) = flags.shape(bench)?;
    flags.check(&shape, &targets)?;
    flags.start_us()?;
    let mut output = flags.output.output();
    output.verbose |= flags.asks_for_lines();
    output.check()?;
    let own = targets.is_empty();
    if own {
        // Everything else is looked at before a database is started.
        targets.push("volt://127.0.0.1".to_owned());
    }
    let mut task = Task::new(flags, shape, &targets)?;
    if matches!(task.shape.rhythm, Rhythm::Sought { .. }) {
        seeking::goal(&task)?;
    }
    // From here on Ctrl-C ends the benchmark in order, its database included.
    plimsoll_job::signals::stop_flag()?;
    let mut embedded = None;
    if own {
        // Processes of this run use the same one.
        let url = share(|| {
            let database = Embedded::start(&["voter", "--port", "0"].map(str::to_owned), &[])?;
            Ok(embedded.insert(database).url.clone())
        })?;
        task = Task::new(flags, task.shape, &[url])?;
    }
    task.settle()?;
    let finished = client::run(&task, &output, &|| flags.start_us())?;
    print(&finished, &output, &FORMS)
}
