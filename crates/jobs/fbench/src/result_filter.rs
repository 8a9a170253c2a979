//! `plimsoll result-filter`: summaries of vespa-fbench as one line of numbers.

pub mod numbers;

use anyhow::Result;
use clap::Args;
use numbers::{Columns, filter};
use plimsoll_job::exit;
use plimsoll_job::job::{Job, Program};
use plimsoll_job::output::note;

const EXAMPLES: &str = "\
Examples:
    plimsoll fbench -n 8 -s 30 -q queries.txt 127.0.0.1 8080 | plimsoll result-filter >> results.txt
    plimsoll result-filter --old < summary.txt

Columns, newest order: clients, ran for, cycle, lower limit, skipped, failed, ok, cycles not held,
min, max, avg, p25 p50 p75 p90 p95 p98 p99 p99.5 p99.6 p99.7 p99.8 p99.9, rate, utilization,
zero hits, zero %, one per status.";

/// Turn vespa-fbench summaries on stdin into a line of numbers
///
/// As vespa-fbench-result-filter.pl does.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct FilterArgs {
    /// Print the columns documented before 2020
    ///
    /// Without p98 and p99.5 to p99.9.
    #[arg(long)]
    old: bool,
}

impl Job for FilterArgs {
    const NAME: &'static str = "result-filter";

    fn run(&self, _program: &Program) -> Result<u8> {
        run(self)
    }
}

/// Runs the command.
///
/// # Errors
/// When stdin cannot be read or stdout not written.
fn run(args: &FilterArgs) -> Result<u8> {
    let columns = if args.old { Columns::Documented } else { Columns::Newest };
    let found = filter(&mut std::io::stdin().lock(), columns, &mut std::io::stdout().lock());
    match found {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(exit::FINE),
        other => {
            if other? == 0 {
                // The empty line of the original is on stdout by now; whoever looks at exit codes hears more.
                note("plimsoll: stdin held no summary; pipe what plimsoll fbench prints into this");
                return Ok(exit::USAGE);
            }
            Ok(exit::FINE)
        }
    }
}
