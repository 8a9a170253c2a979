//! `plimsoll split-file`: divides the records of a query file among several files.

use anyhow::Result;
use clap::Args;
use plimsoll_job::exit;
use plimsoll_job::job::{Job, Program};
use plimsoll_job::output::{note, print_out};
use plimsoll_workloads::query_file::{
    FilePattern, LINE_MAX_BYTES_MIN, RecordKind, SplitOptions, split, split_stdin,
};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  One file for each of eight clients:
    plimsoll split-file 8 queries.txt
  From a pipe, into part00.txt to part63.txt:
    gunzip -c queries.gz | grep /search/ | plimsoll split-file -p part%02d.txt 64

Records are distributed at random, not lines: a POST record keeps its body. Files differ by at most
one record. The same --seed gives the same files. A summary goes to stderr. For each record that was
left out, a line goes to stdout, as in the original.";

/// Split a query file into one for each client
///
/// As vespa-fbench-split-file does.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct SplitArgs {
    /// Names of the output files
    ///
    /// %d, %03d or %x in the name is the number of the file.
    #[arg(short = 'p', value_name = "PATTERN", default_value = "query%03d.txt")]
    pattern: String,
    /// Length from which on a line is skipped, bytes
    #[arg(short = 'm', value_name = "BYTES", default_value_t = 131_072)]
    max_line: usize,
    /// Read URLs that are followed by the lines of their bodies
    ///
    /// By default, plimsoll detects them in the file.
    #[arg(short = 'P', long)]
    post: bool,
    /// Seed of all random choices
    ///
    /// The same seed gives the same files.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Number of output files
    #[arg(value_name = "NUMPARTS")]
    parts: u64,
    /// Query file [default: stdin]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

impl Job for SplitArgs {
    const NAME: &'static str = "split-file";

    fn run(&self, _program: &Program) -> Result<u8> {
        run(self)
    }
}

/// Runs the command.
///
/// # Errors
/// A wrong pattern or file.
fn run(args: &SplitArgs) -> Result<u8> {
    let options = SplitOptions {
        pattern: FilePattern::parse_numbered(&args.pattern)?,
        parts: args.parts,
        line_max_bytes: args.max_line,
        kind: args.post.then_some(RecordKind::Post),
        seed: args.seed,
    };
    let summary = match &args.file {
        Some(path) => split(path, &options)?,
        None => split_stdin(&options)?,
    };
    let least = summary.parts.iter().map(|(_, n)| *n).min().unwrap_or(0);
    let most = summary.parts.iter().map(|(_, n)| *n).max().unwrap_or(0);
    let (first, last) = match (summary.parts.first(), summary.parts.last()) {
        (Some((first, _)), Some((last, _))) => (first.display(), last.display()),
        _ => return Ok(exit::FINE),
    };
    // The original's line, for each of them.
    let mut left = summary.skipped;
    while left > 0 {
        let now = left.min(1000);
        print_out(&"line too long, skipping...\n".repeat(now as usize))?;
        left -= now;
    }
    let skipped = match summary.skipped {
        0 => String::new(),
        n => format!(
            "; {n} records were left out (lines of {} bytes or more)",
            args.max_line.max(LINE_MAX_BYTES_MIN)
        ),
    };
    note(&format!(
        "plimsoll: {} records in {} files of {least} to {most} records: {first} to {last}{skipped}",
        summary.records,
        summary.parts.len(),
    ));
    Ok(exit::FINE)
}
