//! `plimsoll report`: prints run records, and summaries over several runs of a job.

use super::runs::{ListArgs, PruneArgs, list, prune};
use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use plimsoll_catalogue::names;
use plimsoll_catalogue::near_miss::unknown;
use plimsoll_core::assertion::{Assertion, Scope};
use plimsoll_fbench::summary::{own_block, summary};
use plimsoll_job::exit;
use plimsoll_job::job::{Job, Program};
use plimsoll_job::output::{name_left_out, print_out, style};
use plimsoll_job::results::{Shown, page};
use plimsoll_job::usage::usage;
use plimsoll_record::{Judge, RunRecord};
use plimsoll_report::benchpress;
use plimsoll_report::find::{Handle, may_be_id};
use plimsoll_report::forms::Forms;
use plimsoll_report::history::{History, Past, PastRun, past_runs};
use plimsoll_report::load::{Loaded, latest, load};
use plimsoll_report::markdown;
use plimsoll_report::merge::merge;
use plimsoll_report::past::runs;
use plimsoll_report::plain::printable;
use plimsoll_report::sections::{Course, sheet};
use plimsoll_report::text;
use plimsoll_report::trend::Trend;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  The newest run, as text:        plimsoll report
  A run by the start of its id:   plimsoll report 1a2b
  The newest one of a name, or with a label:
    plimsoll report nightly
    plimsoll report commit=3f2a9c1
  All runs, newest first; remove all but the newest 20:
    plimsoll report list
    plimsoll report prune --keep 20
  A run by its folder, as JSON:
    plimsoll report runs/20261121T203250.123Z-load-1a2b3c4d --format json
  As vespa-fbench prints it:      plimsoll report --format fbench
  For a build server, with an assertion; with the exit code of the run:
    plimsoll report --format junit --assert 'global failed.percent is 0%'
    plimsoll report --exit-code
  As a web page, and as a comment for a pull request:
    plimsoll report 1a2b --format html > report.html
    plimsoll report 1a2b --format markdown
  One run from the records of its agents:
    plimsoll report --merge a/TIME-load-ID b/TIME-load-ID
  As DCPerf's benchpress does:    plimsoll report feedsim_mini --format benchpress
  All runs of a job, median and spread; several jobs, with the geometric mean of their scores:
    plimsoll report feedsim_mini --all
    plimsoll report fbench feedsim_mini --all --format json
  Trends and changes of level in a folder of runs, for each job and machine:
    plimsoll report --history runs
    plimsoll report --history runs load --format html > history.html

Exit codes: 0 printed, 2 an assertion failed; with --exit-code that of the run itself.

A killed run can be reported too. It has everything up to its last whole second, and is marked
partial.";

const LIST_EXAMPLES: &str = "\
Examples:
  All runs:                         plimsoll report list
  Those with a name or a label:     plimsoll report list nightly commit=3f2a9c1";

const PRUNE_EXAMPLES: &str = "\
Examples:
  Keep the newest 20:               plimsoll report prune --keep 20
  Show what would be removed:       plimsoll report prune --older-than 30d --dry-run";

/// Print, list or remove recorded runs, or print the history of a job
///
/// As text, web page, Markdown, JSON, CSV, JUnit XML, vespa-fbench's summary or benchpress's JSON.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct ReportArgs {
    #[command(subcommand)]
    what: Option<What>,
    /// Runs or jobs [default: the newest run]
    ///
    /// A run is named by its folder, by its id or the first 4 digits of it, by the name that --name gave it, or by a label as
    /// KEY=VALUE; of several with a name or a label it is the newest. A job is named as in plimsoll list.
    #[arg(value_name = "RUN|JOB")]
    runs_or_jobs: Vec<String>,
    /// Report all runs of the jobs, not the newest only
    ///
    /// Without a name, the runs of every job.
    #[arg(long)]
    all: bool,
    /// Print trends and changes of level in a folder of runs
    ///
    /// For each job, target, settings and machine, or for the named jobs only, as text, json, html or markdown. A change is a
    /// candidate, until plimsoll ab has confirmed it.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["all", "assertions", "exit_code"])]
    history: Option<PathBuf>,
    /// Make one run from the records that its agents keep; name each of them
    ///
    /// A run of several machines, from the folders below the --runs of each agent, also if the coordinator was lost.
    #[arg(long, value_name = "DIR", num_args = 1.., conflicts_with_all = ["all", "history", "runs_or_jobs"])]
    merge: Vec<PathBuf>,
    /// Folder of run records
    #[arg(long, value_name = "DIR", default_value = "runs", global = true)]
    runs: PathBuf,
    /// Output: text, json, csv, junit, html, markdown, ...
    ///
    /// text, json, csv, junit, html (a page that needs nothing else), markdown (for a pull request), fbench (vespa-fbench's
    /// summary) or benchpress (DCPerf's JSON).
    #[arg(long, value_enum, hide_possible_values = true, default_value = "text")]
    format: Format,
    /// Assertion on the result; exit code 2 if it fails
    ///
    /// It replaces the assertions of the run. May be repeated.
    #[arg(long = "assert", value_name = "ASSERTION")]
    assertions: Vec<Assertion>,
    /// Return the exit code of the run itself
    ///
    /// Without it, the exit code is 0 if the record could be printed.
    #[arg(long)]
    exit_code: bool,
    /// Print all details of the result
    ///
    /// The slowest requests, traffic, statuses, network, generator, phases, and more classes and rows.
    #[arg(long)]
    verbose: bool,
}

#[derive(Subcommand, Debug)]
enum What {
    /// List run records, newest first, as 'plimsoll runs' does
    #[command(after_help = LIST_EXAMPLES)]
    List(ListArgs),
    /// Remove old run records, as 'plimsoll runs prune' does
    #[command(after_help = PRUNE_EXAMPLES)]
    Prune(PruneArgs),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
    Csv,
    Fbench,
    Benchpress,
    Junit,
    Html,
    Markdown,
}

impl Job for ReportArgs {
    const NAME: &'static str = "report";

    fn run(&self, program: &Program) -> Result<u8> {
        match &self.what {
            Some(What::List(args)) => list(args, &self.runs, program),
            Some(What::Prune(args)) => prune(args, &self.runs, program),
            None => run(self, &(program.forms)()),
        }
    }
}

/// Runs the command.
///
/// # Errors
/// When there is no such record, or it has no such form.
fn run(args: &ReportArgs, forms: &[Forms]) -> Result<u8> {
    if !args.merge.is_empty() {
        let (text, code) = merged(args, forms)?;
        print_out(&text)?;
        return Ok(code);
    }
    if let Some(folder) = &args.history {
        print_out(&trend(args, folder, forms)?)?;
        return Ok(exit::FINE);
    }
    let is_job = |name: &String| !name.contains('/') && !Path::new(name).exists();
    let past = || past_runs(&args.runs).map(all_but_unreadable).unwrap_or_default();
    if let Some(called) = all_called(args) {
        let (text, code) = history(args, forms, &called)?;
        print_out(&text)?;
        return Ok(code);
    }
    let found = found(&args.runs_or_jobs, &args.runs)?;
    let (text, code) = match found.as_slice() {
        [] if args.all => history(args, forms, &all_but_unreadable(past_runs(&args.runs)?))?,
        [] => one(args, forms, &latest(&args.runs)?)?,
        [folder] if !args.all && !is_job(folder) => one(args, forms, Path::new(folder))?,
        several if several.iter().all(|name| !is_job(name)) => {
            if args.all {
                return Err(usage("--all is for all runs of a job; name jobs, or leave it out"));
            }
            if args.format != Format::Benchpress {
                return Err(usage("several folders: use --format benchpress, or name one of them"));
            }
            only_of_one(args)?;
            let loaded = several.iter().map(|folder| load(Path::new(folder)));
            let records = loaded.map(|loaded| loaded.map(|one| one.record));
            (benchpress::render(&records.collect::<Result<Vec<_>, _>>()?), exit::FINE)
        }
        several if several.iter().all(is_job) => history(args, forms, &past())?,
        _ => return Err(usage("name folders of runs, or names of jobs, not both")),
    };
    print_out(&text)?;
    Ok(code)
}

/// Rejects flags about a single run where there are several: an exit code would be 0 whatever they measured.
fn only_of_one(args: &ReportArgs) -> Result<()> {
    let given = [("--assert", !args.assertions.is_empty()), ("--exit-code", args.exit_code)];
    match given.iter().find(|(_, is)| *is) {
        Some((flag, _)) => Err(usage(format!("{flag} needs a single run; name its folder"))),
        None => Ok(()),
    }
}

/// The runs whose records can be read; a line on stderr for each of the others.
fn all_but_unreadable(past: Past) -> Vec<PastRun> {
    for error in &past.left_out {
        name_left_out(error);
    }
    past.runs
}

/// The words that name runs, with ids, names and labels replaced by folders.
///
/// # Errors
/// If no run or several runs have an id that begins so, or no run has such a label.
pub(super) fn found(words: &[String], runs: &Path) -> Result<Vec<String>> {
    let catalogue = names();
    let is_folder = |word: &str| Path::new(word).exists();
    let may_be_run = |word: &&String| !catalogue.contains(&word.as_str()) && !is_folder(word);
    if !words.iter().any(|word| may_be_run(&word)) {
        return Ok(words.to_owned());
    }
    let past = past_runs(runs).map(|past| past.runs).unwrap_or_default();
    let is_job = |word: &str| past.iter().any(|run| run.job == word);
    let folder = |word: &String| {
        if may_be_run(&word) && !is_job(word) {
            one_of(word, &past, runs)
        } else {
            Ok(word.clone())
        }
    };
    words.iter().map(folder).collect()
}

/// The folder of the run that a word names; the word itself if it may be the name of a job.
fn one_of(word: &str, past: &[PastRun], runs: &Path) -> Result<String> {
    let folder = |run: &PastRun| run.folder.to_string_lossy().into_owned();
    let by_id: Vec<&PastRun> = past.iter().filter(|run| Handle::from(*run).has_id(word)).collect();
    // Oldest first: of several with a name the last one is meant.
    let called = past.iter().rfind(|run| Handle::from(*run).is_called(word));
    match (by_id.as_slice(), called) {
        (_, Some(run)) => Ok(folder(run)),
        ([run], None) => Ok(folder(run)),
        ([], None) if may_be_id(word) && word.bytes().any(|b| b.is_ascii_digit()) => {
            Err(usage(format!(
                "there is no run '{word}' in {}; 'plimsoll runs' lists the ids",
                runs.display()
            )))
        }
        ([], None) if word.contains('=') && !word.contains('/') => Err(usage(format!(
            "no run in {} has the label '{}'; 'plimsoll runs' lists the labels",
            runs.display(),
            printable(word)
        ))),
        ([], None) => Ok(word.to_owned()),
        (several, None) => {
            let ids: Vec<String> = several
                .iter()
                .map(|run| format!("{} ({}, {})", run.run_id, run.job, run.started_at))
                .collect();
            Err(usage(format!(
                "'{word}' is the beginning of {} run ids: {}; write more digits, or the folder",
                ids.len(),
                ids.join(", ")
            )))
        }
    }
}

/// With --all, the runs of which each has one of the words as its name or a label; none if a word is something else.
fn all_called(args: &ReportArgs) -> Option<Vec<PastRun>> {
    let words = &args.runs_or_jobs;
    if !args.all || words.is_empty() {
        return None;
    }
    let past = past_runs(&args.runs).ok()?.runs;
    let is_job =
        |word: &String| names().contains(&word.as_str()) || past.iter().any(|run| run.job == *word);
    let called = |run: &PastRun, word: &String| Handle::from(run).is_called(word);
    let are_names =
        words.iter().all(|word| !is_job(word) && past.iter().any(|run| called(run, word)));
    let chosen = |run: &PastRun| words.iter().any(|word| called(run, word));
    are_names.then(|| past.iter().filter(|run| chosen(run)).cloned().collect())
}

/// The runs of jobs; of one job without --all, its newest run. Words that are names of runs have chosen among `past` already.
fn history(args: &ReportArgs, forms: &[Forms], past: &[PastRun]) -> Result<(String, u8)> {
    let mut jobs = match all_called(args) {
        Some(_) => Vec::new(),
        None => found(&args.runs_or_jobs, &args.runs)?,
    };
    let mut known: Vec<&str> = names();
    known.extend(past.iter().map(|run| run.job.as_str()));
    let called = past.iter().map(|run| run.name.as_str()).filter(|name| !name.is_empty());
    let with_names: Vec<&str> = known.iter().copied().chain(called).collect();
    known.sort_unstable();
    known.dedup();
    if let Some(name) = jobs.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(unknown("run or job", name, &with_names));
    }
    if jobs.is_empty() {
        jobs = past.iter().map(|run| run.job.clone()).collect();
        jobs.sort_unstable();
        jobs.dedup();
    }
    let history = History::of(&jobs, past, !args.all);
    let mut folders = history.jobs.iter().flat_map(|job| &job.runs).map(|run| &run.folder);
    let none = || {
        usage(format!("{} has no run in {}; run it first", jobs.join(", "), args.runs.display()))
    };
    if let ([_], false) = (jobs.as_slice(), args.all) {
        return one(args, forms, folders.next().ok_or_else(none)?);
    }
    only_of_one(args)?;
    let text = match args.format {
        Format::Text => Ok(history.render()),
        Format::Json => Ok(serde_json::to_string_pretty(&history)? + "\n"),
        Format::Benchpress => {
            let loaded = folders.map(|folder| load(folder).map(|loaded| loaded.record));
            let records = loaded.collect::<Result<Vec<RunRecord>, _>>()?;
            if records.is_empty() { Err(none()) } else { Ok(benchpress::render(&records)) }
        }
        Format::Html => Ok(plimsoll_job::results::html(&history.sheet())),
        Format::Markdown => Ok(markdown::render(&history.sheet())),
        Format::Csv | Format::Fbench | Format::Junit => Err(usage(
            "--format: several runs can be printed as text, html, markdown, json or benchpress",
        )),
    };
    Ok((text?, exit::FINE))
}

/// The trends of a folder of runs.
fn trend(args: &ReportArgs, folder: &Path, forms: &[Forms]) -> Result<String> {
    let jobs = &args.runs_or_jobs;
    let read = runs(folder, forms, |job, _| jobs.is_empty() || jobs.iter().any(|own| own == job))?;
    read.left_out.iter().for_each(name_left_out);
    if read.runs.is_empty() {
        let what = if jobs.is_empty() {
            "readable run".to_owned()
        } else {
            format!("run of {}", jobs.join(", "))
        };
        let known = past_runs(folder)?.runs;
        let mut known: Vec<&str> = known.iter().map(|run| run.job.as_str()).collect();
        known.sort_unstable();
        known.dedup();
        return Err(usage(format!(
            "no {what} in {}; it has runs of {}",
            folder.display(),
            known.join(", ")
        )));
    }
    let trend = Trend::of(&folder.display().to_string(), &read);
    match args.format {
        Format::Text => Ok(trend.render()),
        Format::Json => Ok(serde_json::to_string_pretty(&trend)? + "\n"),
        Format::Html => Ok(plimsoll_job::results::html(&trend.sheet())),
        Format::Markdown => Ok(markdown::render(&trend.sheet())),
        Format::Csv | Format::Fbench | Format::Junit | Format::Benchpress => {
            Err(usage("--format: a history can be printed as text, html, markdown or json"))
        }
    }
}

/// Refuses an assertion about a class that the record does not have: of no requests none has failed, so that it might hold.
fn check_assertions(assertions: &[Assertion], record: &RunRecord) -> Result<()> {
    for assertion in assertions {
        if let Scope::Class(name) = &assertion.scope
            && !record.classes.contains_key(name)
        {
            let known: Vec<&str> = record.classes.keys().map(String::as_str).collect();
            return Err(usage(format!(
                "--assert '{assertion}': the record has no class '{name}'; it has {}",
                known.join(", ")
            )));
        }
    }
    Ok(())
}

fn one(args: &ReportArgs, forms: &[Forms], folder: &Path) -> Result<(String, u8)> {
    let Loaded { record, folder, .. } = load(folder)?;
    shown(args, forms, record, (Some(&folder), None))
}

/// One run from the records of its agents.
fn merged(args: &ReportArgs, forms: &[Forms]) -> Result<(String, u8)> {
    let (record, course) = merge(&args.merge, forms).map_err(|error| usage(error.to_string()))?;
    shown(args, forms, record, (None, Some(&course)))
}

/// A record in the form that is asked for; its seconds are in its folder, or in `course`.
fn shown(
    args: &ReportArgs,
    forms: &[Forms],
    mut record: RunRecord,
    (folder, course): (Option<&Path>, Option<&Course>),
) -> Result<(String, u8)> {
    if !args.assertions.is_empty() {
        check_assertions(&args.assertions, &record)?;
        let judged = args.assertions.iter().flat_map(|assertion| assertion.judge(&record));
        record.assertions = judged.collect();
    }
    let missed = !args.assertions.is_empty() && record.assertions.iter().any(|one| !one.held);
    let code = match (missed, args.exit_code) {
        (_, true) => exit::of_record(&record),
        (true, false) => exit::SLO_MISSED,
        (false, false) => exit::FINE,
    };
    let text = match args.format {
        Format::Text => text::render(&record, folder, &style(args.verbose), forms),
        Format::Json => plimsoll_report::json::pretty(&record),
        Format::Csv => plimsoll_report::csv::render(&record, forms),
        Format::Benchpress => benchpress::render(&[record]),
        Format::Junit => plimsoll_report::junit::render(&record),
        Format::Html => page(Shown { record: &record, folder, course }, forms)?,
        Format::Markdown => match (folder, course) {
            (Some(folder), _) => {
                markdown::render(&sheet(&record, &Course::of_folder(folder)?, forms))
            }
            (None, course) => {
                let none = Course::default();
                markdown::render(&sheet(&record, course.unwrap_or(&none), forms))
            }
        },
        Format::Fbench => {
            let result = record.job_results.fbench().ok_or_else(|| {
                usage(format!(
                    "{}: not a run of plimsoll fbench; use --format text, json or csv",
                    folder.unwrap_or(Path::new("--merge")).display()
                ))
            })?;
            format!("{}{}", summary(result), own_block(&record, folder, &style(args.verbose)))
        }
    };
    Ok((text, code))
}
