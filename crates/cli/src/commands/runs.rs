//! `plimsoll runs`: the run records of a folder, and the removal of old ones.

mod headline;

use anyhow::Result;
use clap::{Args, Subcommand};
use headline::headline;
use plimsoll_core::clock::wall_us;
use plimsoll_core::units::Span;
use plimsoll_core::verdict::VerdictKind;
use plimsoll_job::exit;
use plimsoll_job::job::{Job, Program};
use plimsoll_job::output::{name_left_out, note, print_out};
use plimsoll_job::usage::usage;
use plimsoll_report::find::{Handle, ID_DIGITS_MIN};
use plimsoll_report::kept::{Kept, KeptRun, Prune, kept_runs, remove};
use plimsoll_report::number::{bytes, counted};
use plimsoll_report::plain::printable;
use serde_json::json;
use std::fmt::Write;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  All runs, newest first:           plimsoll runs
  Those with a name or a label:     plimsoll runs nightly commit=3f2a9c1
  For programs:                     plimsoll runs --json
  Keep the newest 20:               plimsoll runs prune --keep 20
  Runs of last month, shown only:   plimsoll runs prune --older-than 30d --dry-run

'plimsoll report ID' prints a run; the first 4 digits of its id are enough if no other run has them.
'plimsoll report list' and 'plimsoll report prune' are the same commands.";

/// List run records, newest first, or remove old ones
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct RunsArgs {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    list: ListArgs,
    /// Folder of run records
    #[arg(long, value_name = "DIR", default_value = "runs", global = true)]
    runs: PathBuf,
}

/// Flags of the list.
#[derive(Args, Debug)]
pub(super) struct ListArgs {
    /// Only runs that one of these words names [default: all]
    ///
    /// The id of a run or its first 4 digits, its job, its name, or one of its labels as KEY=VALUE.
    #[arg(value_name = "RUN|JOB|NAME|LABEL")]
    words: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Remove old run records; folders that are not run records stay.
    Prune(PruneArgs),
}

const PRUNE_EXAMPLES: &str = "\
Examples:
  Keep the newest 20:                       plimsoll runs prune --keep 20
  Remove those older than 30 days:          plimsoll runs prune --older-than 30d
  Show what would be removed:               plimsoll runs prune --keep 20 --dry-run

A folder is a run record if its run.json can be read as one. A run that has not ended stays, if its
folder was written to within the last hour.";

/// Flags that select the run records to remove.
#[derive(Args, Debug)]
#[command(after_help = PRUNE_EXAMPLES)]
pub(super) struct PruneArgs {
    /// Keep the newest N run records, remove the others
    #[arg(
        long,
        value_name = "N",
        conflicts_with = "older_than",
        required_unless_present = "older_than"
    )]
    keep: Option<usize>,
    /// Remove runs that started longer ago, such as 30d
    #[arg(long, value_name = "TIME", value_parser = age)]
    older_than: Option<Span>,
    /// Print what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
}

/// Reads an age with its unit. A bare number is rejected: 30 s are rarely meant.
fn age(text: &str) -> Result<Span, String> {
    const DAY_S: f64 = 86_400.0;
    let wrong =
        || format!("'{text}' is not an age; expected a number and a unit, such as 30d, 12h or 90m");
    let days = text.strip_suffix('d').map(|days| days.trim().parse::<f64>());
    match days {
        Some(Ok(days)) if (0.0..36_500.0).contains(&days) => {
            Ok(Span::seconds((days * DAY_S).round() as u64))
        }
        Some(_) => Err(wrong()),
        None if text.trim().parse::<f64>().is_ok() => Err(wrong()),
        None => text.parse().map_err(|_| wrong()),
    }
}

impl Job for RunsArgs {
    const NAME: &'static str = "runs";

    fn run(&self, program: &Program) -> Result<u8> {
        match &self.what {
            Some(What::Prune(_)) if self.list.json => {
                Err(usage("--json prints the list; leave it out with prune"))
            }
            Some(What::Prune(args)) => prune(args, &self.runs, program),
            None => list(&self.list, &self.runs, program),
        }
    }
}

/// All run records of a folder; a line on stderr for each that cannot be read.
fn kept(folder: &Path, program: &Program) -> Result<Vec<KeptRun>> {
    let jobs = (program.forms)();
    let Kept { runs, left_out } = kept_runs(folder, &|record| headline(record, &jobs))?;
    for error in &left_out {
        name_left_out(error);
    }
    Ok(runs)
}

/// Prints the list.
pub(super) fn list(args: &ListArgs, folder: &Path, program: &Program) -> Result<u8> {
    let mut runs = kept(folder, program)?;
    if runs.is_empty() {
        note(&format!("plimsoll: no run record in {}", folder.display()));
    }
    let is_unknown = |word: &&String| !runs.iter().any(|run| Handle::from(run).matches(word));
    if let Some(word) = args.words.iter().find(is_unknown).filter(|_| !runs.is_empty()) {
        let removal = match word.as_str() {
            "delete" | "remove" | "rm" | "clean" => "; 'plimsoll runs prune' removes runs",
            _ => "",
        };
        return Err(usage(format!(
            "no run in {} has '{}' as its job, its name, a label, or the first {ID_DIGITS_MIN} digits or more of its id; \
             'plimsoll runs' lists them{removal}",
            folder.display(),
            printable(word)
        )));
    }
    if !args.words.is_empty() {
        runs.retain(|run| args.words.iter().any(|word| Handle::from(run).matches(word)));
    }
    if args.json {
        let all = json!({ "schema": "plimsoll.runs/1", "runs": runs });
        print_out(&format!("{all:#}\n"))?;
    } else {
        print_out(&table(&runs))?;
    }
    Ok(exit::FINE)
}

/// The verdict of a run as the list shows it.
fn verdict(run: &KeptRun) -> String {
    match (run.verdict, run.exit_code) {
        (VerdictKind::Partial, _) if !run.ended => "partial (not ended)".to_owned(),
        (VerdictKind::Valid, exit::SLO_MISSED) => "valid, MISSED a limit".to_owned(),
        (kind, _) => kind.name().to_owned(),
    }
}

/// One line for each run under a line of names; the columns of names and labels only if a run has one.
fn table(runs: &[KeptRun]) -> String {
    if runs.is_empty() {
        return String::new();
    }
    let has_names = runs.iter().any(|run| !run.name.is_empty());
    let has_labels = runs.iter().any(|run| !run.labels.is_empty());
    let row = |cells: [&str; 7]| {
        let is_shown = |at: usize| (at != 3 || has_names) && (at != 4 || has_labels);
        let cells = cells.iter().enumerate().filter(|(at, _)| is_shown(*at));
        cells.map(|(_, cell)| printable(cell)).collect::<Vec<String>>()
    };
    let mut rows = vec![row(["id", "started", "job", "name", "labels", "result", "verdict"])];
    rows.extend(runs.iter().map(|run| {
        let labels = run.labels.iter().map(|(key, value)| format!("{key}={value}"));
        let labels = labels.collect::<Vec<_>>().join(", ");
        let (verdict, about) = (verdict(run), [&run.run_id, &run.started_at, &run.job, &run.name]);
        row([about[0], about[1], about[2], about[3], &labels, &run.headline, &verdict])
    }));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..rows[0].len()).filter_map(width).collect();
    let mut out = String::new();
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            // Writing to a text cannot fail.
            let _ = write!(line, "{cell:<width$}  ");
        }
        out += line.trim_end();
        out.push('\n');
    }
    out
}

/// Removes old run records.
pub(super) fn prune(args: &PruneArgs, folder: &Path, program: &Program) -> Result<u8> {
    let runs = &kept(folder, program)?;
    let rule = match (args.keep, args.older_than) {
        (_, Some(age)) => Prune::OlderThan(age),
        (newest, None) => Prune::Keep(newest.unwrap_or(usize::MAX)),
    };
    let selected = rule.select(runs, wall_us());
    let mut code = exit::FINE;
    for run in &selected.running {
        note(&format!("plimsoll: kept, it may still be running: {}", run.folder.display()));
    }
    let (mut removed, mut freed) = (0, 0);
    for run in &selected.removed {
        if !args.dry_run
            && let Err(error) = remove(run)
        {
            note(&format!("plimsoll: {error}"));
            code = exit::FAILED;
            continue;
        }
        (removed, freed) = (removed + 1, freed + run.bytes);
        let verb = if args.dry_run { "would remove" } else { "removed" };
        print_out(&format!("{verb} {}\n", printable(&run.folder.display().to_string())))?;
    }
    let verb = if args.dry_run { "would be removed" } else { "removed" };
    let of = counted(runs.len() as u64, "run record");
    print_out(&format!("{removed} of {of} {verb}, {}\n", bytes(freed as f64)))?;
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_has_a_unit() {
        assert_eq!(age("30d"), Ok(Span::seconds(30 * 86_400)));
        assert_eq!(age("1.5 d"), Ok(Span::seconds(129_600)));
        assert_eq!(age("12h"), Ok(Span::seconds(43_200)));
        for wrong in ["30", "", "d", "-1d", "1e9d", "soon"] {
            assert!(age(wrong).is_err(), "{wrong}");
        }
    }
}
