//! `plimsoll compare`: records side by side.

use super::report::found;
use anyhow::Result;
use clap::{Args, ValueEnum};
use plimsoll_core::verdict::VerdictKind;
use plimsoll_decide::rule::{Judged, Rule};
use plimsoll_job::exit;
use plimsoll_job::job::{Job, Program};
use plimsoll_job::output::{name_left_out, print_out};
use plimsoll_job::usage::usage;
use plimsoll_report::compare::{Comparison, Terms, compare};
use plimsoll_report::forms::Forms;
use plimsoll_report::load::{Loaded, load};
use plimsoll_report::past::{Run, runs};
use plimsoll_report::series::Series;
use plimsoll_report::{junit, markdown};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  Before and after a change, by folders or by the first digits of their ids:
    plimsoll compare 1a2b 5e6f
  For a build server: exit code 1 if p99 rose by more than 5 %, 2 if it cannot be judged:
    plimsoll compare runs/BEFORE runs/AFTER --fail-on 'p99>+5%' --fail-on 'rate<-5%' --format junit
  As a comment for a pull request, and as a web page with the runs laid over each other:
    plimsoll compare runs/BEFORE runs/AFTER --format markdown
    plimsoll compare runs/BEFORE runs/AFTER runs/ANOTHER --format html > compared.html
  A published table, and your own:
    plimsoll search --import published.md
    plimsoll compare runs/20261122T101500.000Z-search-1a2b3c4d \\
      runs/20261122T103000.000Z-search-5e6f7a8b

The first run is the baseline. Answers are better, worse, same within a margin, or cannot tell. The
variance between runs comes from valid runs with the same job, settings, target and machine in the
folder of runs: at least 3, the baseline included. Without them the answer is 'cannot tell';
'plimsoll ab' measures two targets in turn and needs no history.

Exit codes: 0 compared; with --fail-on: 0 every rule holds, 1 a rule fails, 2 a rule cannot be
judged.";

/// Compare run records of a job, and tell better from worse
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct CompareArgs {
    /// Two or more runs; the first one is the baseline
    ///
    /// A run is named by its folder, by its id or the first 4 digits of it, by the name that --name gave it, or by a label as
    /// KEY=VALUE; of several with a name or a label it is the newest.
    #[arg(value_name = "RUN", num_args = 1.., required = true)]
    runs: Vec<String>,
    /// Folder of run records, with like runs [default: as the runs]
    #[arg(long = "runs", value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Output: text, json, html, markdown or junit
    ///
    /// html: a page that needs nothing else; markdown: for a pull request; junit: JUnit XML for a build server.
    #[arg(long, value_enum, hide_possible_values = true, default_value = "text")]
    format: Format,
    /// Rule; exit code 1 if it fails, 2 if that cannot be judged: 'p99>+5%'
    ///
    /// May be repeated. The exit code is 1 if a rule fails, 2 if one cannot be judged. Metrics: rate, max-rate, accepted,
    /// documents, bytes, mean, p50, p90, p95, p99, p99.9, max, errors, cpu.
    #[arg(long, value_name = "RULE")]
    fail_on: Vec<Rule>,
    /// Two sides are the same if they differ by less
    #[arg(long, value_name = "PERCENT", value_parser = margin, default_value = "5%")]
    margin: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
    Html,
    Markdown,
    Junit,
}

/// Reads a margin in percent as a share.
fn margin(text: &str) -> Result<f64, String> {
    let number =
        text.strip_suffix('%').map(str::trim).and_then(|number| number.parse::<f64>().ok());
    number
        .filter(|percent| *percent > 0.0 && *percent < 100.0)
        .map(|percent| percent / 100.0)
        .ok_or_else(|| format!("'{text}' is not a margin; write a percentage such as 5%"))
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
/// When a record is not there, or the records cannot be compared.
fn run(args: &CompareArgs, forms: &[Forms]) -> Result<u8> {
    let own = PathBuf::from("runs");
    let folders = found(&args.runs, args.folder.as_ref().unwrap_or(&own))?;
    let loaded = folders.iter().map(|folder| load(Path::new(folder)));
    let records: Vec<Loaded> = loaded.collect::<Result<_, _>>()?;
    let past = past(args, &records, forms);
    let terms = Terms { past: &past, rules: &args.fail_on, margin: args.margin };
    let comparison = compare(&records, &terms, forms).map_err(|error| usage(error.to_string()))?;
    print_out(&shown(args.format, &comparison, &records)?)?;
    Ok(match comparison.judged() {
        None | Some(Judged::Holds) => exit::FINE,
        Some(Judged::Fails) => exit::FAILED,
        Some(Judged::CannotTell) => exit::SLO_MISSED,
    })
}

fn shown(format: Format, comparison: &Comparison, records: &[Loaded]) -> Result<String> {
    let sheet = || -> Result<_> {
        let series = records.iter().map(|one| Series::of_folder(&one.folder));
        Ok(comparison.sheet(records, &series.collect::<Result<Vec<_>, _>>()?))
    };
    Ok(match format {
        Format::Text => comparison.render(),
        Format::Json => serde_json::to_string_pretty(comparison)? + "\n",
        Format::Html => plimsoll_job::results::html(&sheet()?),
        Format::Markdown => markdown::render(&sheet()?),
        Format::Junit => junit::render_comparison(comparison),
    })
}

/// Valid runs of the same jobs in the folder that the flag names, or beside the records.
fn past(args: &CompareArgs, records: &[Loaded], forms: &[Forms]) -> Vec<Run> {
    let beside = |one: &Loaded| {
        let parent = one.folder.parent().filter(|parent| !parent.as_os_str().is_empty());
        parent.unwrap_or(Path::new(".")).to_owned()
    };
    let mut folders: Vec<PathBuf> = match &args.folder {
        Some(folder) => vec![folder.clone()],
        None => records.iter().map(beside).collect(),
    };
    folders.sort();
    folders.dedup();
    let is_wanted = |job: &str, verdict| {
        let named = |one: &Loaded| {
            let entry = one.record.job_results.catalogue();
            entry.map_or(one.record.job.as_str(), |entry| entry.name.as_str()) == job
        };
        verdict == VerdictKind::Valid && records.iter().any(named)
    };
    let mut past = Vec::new();
    for folder in folders {
        // A folder without records has no like runs; the records themselves may lie anywhere.
        let Ok(read) = runs(&folder, forms, is_wanted) else { continue };
        read.left_out.iter().for_each(name_left_out);
        past.extend(read.runs);
    }
    past
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_margin_is_a_percentage() {
        assert_eq!(margin("5%"), Ok(0.05));
        assert_eq!(margin("2.5 %"), Ok(0.025));
        for wrong in ["5", "0.05", "0%", "100%", "-1%", "x%", "", "nan%"] {
            assert!(margin(wrong).is_err(), "{wrong}");
        }
    }
}
