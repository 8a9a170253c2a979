//! `plimsoll report`: prints run records, and summaries over several runs of a job.

use anyhow::Result;
use clap::{Args, ValueEnum};
use plimsoll_catalogue::names;
use plimsoll_catalogue::near_miss::unknown;
use plimsoll_core::assertion::{Assertion, Scope};
use plimsoll_fbench::summary::{own_block, summary};
use plimsoll_job::exit;
use plimsoll_job::job::{Job, Program};
use plimsoll_job::output::{note, print_out, style};
use plimsoll_job::usage::usage;
use plimsoll_record::{Judge, RunRecord};
use plimsoll_report::benchpress;
use plimsoll_report::forms::Forms;
use plimsoll_report::history::{History, Past, PastRun, past_runs};
use plimsoll_report::load::{Loaded, latest, load};
use plimsoll_report::text;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  The newest run, as text:        plimsoll report
  A run by the start of its id:   plimsoll report 1a2b
  A run by its folder, as JSON:
    plimsoll report runs/20261121T203250.123Z-load-1a2b3c4d --format json
  As vespa-fbench prints it:      plimsoll report --format fbench
  For a build server, with an assertion; with the exit code of the run:
    plimsoll report --format junit --assert 'global failed.percent is 0%'
    plimsoll report --exit-code
  As DCPerf's benchpress does:    plimsoll report feedsim_mini --format benchpress
  All runs of a job, median and spread; several jobs, with the geometric mean of their scores:
    plimsoll report feedsim_mini --all
    plimsoll report fbench feedsim_mini --all --format json

Exit codes: 0 printed, 2 an assertion failed; with --exit-code that of the run itself.
'plimsoll runs' lists the ids.

A killed run can be reported too. It has everything up to its last whole second, and is marked
partial.";

/// Print recorded runs, or the history of a job
///
/// As text, JSON, CSV, JUnit XML, vespa-fbench's summary or benchpress's JSON.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct ReportArgs {
    /// Runs or jobs [default: the newest run]
    ///
    /// A run is named by its folder or its id; the first 4 digits of the id are enough. A job is named as in plimsoll list.
    #[arg(value_name = "RUN|JOB")]
    runs_or_jobs: Vec<String>,
    /// Report all runs of the jobs, not the newest only
    ///
    /// Without a name, the runs of every job.
    #[arg(long)]
    all: bool,
    /// Folder of run records
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
    /// Output: text, json, csv, junit, ...
    ///
    /// text, json, csv, junit, fbench (vespa-fbench's summary) or benchpress (DCPerf's JSON).
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
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
    Csv,
    Fbench,
    Benchpress,
    Junit,
}

impl Job for ReportArgs {
    const NAME: &'static str = "report";

    fn run(&self, program: &Program) -> Result<u8> {
        run(self, &(program.forms)())
    }
}

/// Runs the command.
///
/// # Errors
/// When there is no such record, or it has no such form.
fn run(args: &ReportArgs, forms: &[Forms]) -> Result<u8> {
    let is_job = |name: &String| !name.contains('/') && !Path::new(name).exists();
    let past = || past_runs(&args.runs).map(all_but_unreadable).unwrap_or_default();
    let by_id = with_ids(&args.runs_or_jobs, &args.runs)?;
    let (text, code) = match by_id.as_slice() {
        [] if args.all => history(args, forms, &all_but_unreadable(past_runs(&args.runs)?))?,
        [] => one(args, forms, &latest(&args.runs)?)?,
        [folder] if !args.all && !is_job(folder) => one(args, forms, Path::new(folder))?,
        several if several.iter().all(|name| !is_job(name)) => {
            if args.format != Format::Benchpress {
                return Err(usage("several folders: use --format benchpress, or name one of them"));
            }
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

/// The runs whose records can be read; a line on stderr for each of the others.
fn all_but_unreadable(past: Past) -> Vec<PastRun> {
    for error in &past.left_out {
        note(&format!("plimsoll: left out: {error}"));
    }
    past.runs
}

/// Fewest digits of an id that name a run.
const ID_DIGITS_MIN: usize = 4;
/// Digits of a whole id.
const ID_DIGITS: usize = 8;

/// The words that name runs, with ids of runs, or their first digits, replaced by folders.
///
/// # Errors
/// If no run or several runs have an id that begins so.
fn with_ids(words: &[String], runs: &Path) -> Result<Vec<String>> {
    let catalogue = names();
    let may_be_id = |word: &str| {
        (ID_DIGITS_MIN..=ID_DIGITS).contains(&word.len())
            && word.bytes().all(|b| b.is_ascii_hexdigit())
            && !catalogue.contains(&word)
            && !Path::new(word).exists()
    };
    if !words.iter().any(|word| may_be_id(word)) {
        return Ok(words.to_owned());
    }
    let past = past_runs(runs).map(|past| past.runs).unwrap_or_default();
    let is_job = |word: &str| past.iter().any(|run| run.job == word);
    let folder = |word: &String| {
        if may_be_id(word) && !is_job(word) { by_id(word, &past, runs) } else { Ok(word.clone()) }
    };
    words.iter().map(folder).collect()
}

/// The folder of the run whose id begins with `word`; the word itself if it may be the name of a job.
fn by_id(word: &str, past: &[PastRun], runs: &Path) -> Result<String> {
    let begin = word.to_ascii_lowercase();
    let found: Vec<&PastRun> = past.iter().filter(|run| run.run_id.starts_with(&begin)).collect();
    match found.as_slice() {
        [run] => Ok(run.folder.to_string_lossy().into_owned()),
        [] if word.bytes().any(|b| b.is_ascii_digit()) => Err(usage(format!(
            "there is no run '{word}' in {}; 'plimsoll runs' lists the ids",
            runs.display()
        ))),
        [] => Ok(word.to_owned()),
        several => {
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

/// The runs of jobs; of one job without --all, its newest run.
fn history(args: &ReportArgs, forms: &[Forms], past: &[PastRun]) -> Result<(String, u8)> {
    let mut jobs = with_ids(&args.runs_or_jobs, &args.runs)?;
    let mut known: Vec<&str> = names();
    known.extend(past.iter().map(|run| run.job.as_str()));
    known.sort_unstable();
    known.dedup();
    if let Some(name) = jobs.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(unknown("run or job", name, &known));
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
    if !args.assertions.is_empty() {
        return Err(usage("--assert needs a single run; name its folder"));
    }
    let text = match args.format {
        Format::Text => Ok(history.render()),
        Format::Json => Ok(serde_json::to_string_pretty(&history)? + "\n"),
        Format::Benchpress => {
            let loaded = folders.map(|folder| load(folder).map(|loaded| loaded.record));
            let records = loaded.collect::<Result<Vec<RunRecord>, _>>()?;
            if records.is_empty() { Err(none()) } else { Ok(benchpress::render(&records)) }
        }
        Format::Csv | Format::Fbench | Format::Junit => {
            Err(usage("--format: several runs can be printed as text, json or benchpress"))
        }
    };
    Ok((text?, exit::FINE))
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
    let Loaded { mut record, folder, .. } = load(folder)?;
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
        Format::Text => text::render(&record, Some(&folder), &style(), forms),
        Format::Json => plimsoll_report::json::pretty(&record),
        Format::Csv => plimsoll_report::csv::render(&record, forms),
        Format::Benchpress => benchpress::render(&[record]),
        Format::Junit => plimsoll_report::junit::render(&record),
        Format::Fbench => {
            let result = record.job_results.fbench().ok_or_else(|| {
                usage(format!(
                    "{}: not a run of plimsoll fbench; use --format text, json or csv",
                    folder.display()
                ))
            })?;
            format!("{}{}", summary(result), own_block(&record, Some(&folder), &style()))
        }
    };
    Ok((text, code))
}
