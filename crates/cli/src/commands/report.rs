//! `plimsoll report`: a run record, printed again.

use crate::execute::{print_out, style};
use crate::exit;
use crate::usage::usage;
use anyhow::Result;
use clap::{Args, ValueEnum};
use plimsoll_report::fbench::{FbenchResult, own_block};
use plimsoll_report::load::{latest, load};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  The newest run, as text:        plimsoll report
  A run of your choice, as JSON:  plimsoll report runs/20261121T203250Z-load-1a2b3c4d --format json
  As vespa-fbench prints it:      plimsoll report --format fbench

A run that was killed can be reported too: everything up to its last whole second is there, marked partial.";

/// Print a run record again: text, JSON, CSV or vespa-fbench's summary.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct ReportArgs {
    /// Folder of the run; the newest one under --runs when left out.
    #[arg(value_name = "RUN")]
    run: Option<PathBuf>,
    /// Folder of run records.
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
    /// What to print.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Text,
    Json,
    Csv,
    Fbench,
}

/// Runs the command.
///
/// # Errors
/// When there is no such record, or it has no such form.
pub fn run(args: &ReportArgs) -> Result<u8> {
    let folder = match &args.run {
        Some(folder) => folder.clone(),
        None => latest(&args.runs)?,
    };
    let loaded = load(&folder)?;
    let record = &loaded.record;
    let text = match args.format {
        Format::Text => plimsoll_report::text::render(record, Some(&loaded.folder), &style()),
        Format::Json => plimsoll_report::json::pretty(record),
        Format::Csv => plimsoll_report::csv::render(record),
        Format::Fbench => {
            let result = FbenchResult::of(record).ok_or_else(|| {
                usage(format!(
                    "{}: not a run of plimsoll fbench; use --format text, json or csv",
                    folder.display()
                ))
            })?;
            format!("{}{}", result.summary(), own_block(record, Some(&loaded.folder), &style()))
        }
    };
    print_out(&text)?;
    Ok(exit::FINE)
}
