//! `plimsoll compare`: two records side by side.

use anyhow::Result;
use clap::{Args, ValueEnum};
use plimsoll_job::exit;
use plimsoll_job::job::{Job, Program};
use plimsoll_job::output::print_out;
use plimsoll_job::usage::usage;
use plimsoll_report::compare::compare;
use plimsoll_report::forms::Forms;
use plimsoll_report::load::load;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  A published table, and your own:
    plimsoll search --import published.md
    plimsoll compare runs/20261122T101500.000Z-search-1a2b3c4d \\
      runs/20261122T103000.000Z-search-5e6f7a8b
  Before and after a change, for a program:
    plimsoll compare runs/BEFORE runs/AFTER --format json

Different sizes are matched if they have the same proportions (1, 5, 10 GB over 64, 320, 640 MB).";

/// Compare two run records (only `search` so far).
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct CompareArgs {
    /// Folder of the first record
    #[arg(value_name = "RUN")]
    a: PathBuf,
    /// Folder of the second record
    #[arg(value_name = "RUN")]
    b: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

impl Job for CompareArgs {
    const NAME: &'static str = "compare";

    fn run(&self, program: &Program) -> Result<u8> {
        run(self, &(program.forms)())
    }
}

/// Runs the command.
///
/// # Errors
/// When a record is not there, or the two cannot be compared.
fn run(args: &CompareArgs, forms: &[Forms]) -> Result<u8> {
    let comparison = compare(&load(&args.a)?, &load(&args.b)?, forms)
        .map_err(|error| usage(error.to_string()))?;
    print_out(&match args.format {
        Format::Text => comparison.render(),
        Format::Json => serde_json::to_string_pretty(&comparison)? + "\n",
    })?;
    Ok(exit::FINE)
}
