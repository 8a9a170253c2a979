//! `plimsoll report`: run records, printed again, and what several runs of a job say together.

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
  A run by its id:                plimsoll report 1a2b3c4d
  A run of your choice, as JSON:  plimsoll report runs/20261121T203250.123Z-load-1a2b3c4d --format json
  As vespa-fbench prints it:      plimsoll report --format fbench
  For a build server, with what it must say:
    plimsoll report --format junit --assert 'global failed.percent is 0%'
  As DCPerf's benchpress does:    plimsoll report feedsim_mini --format benchpress
  All runs of a job, median and spread; several jobs, with the geometric mean of their scores:
    plimsoll report feedsim_mini --all
    plimsoll report fbench feedsim_mini --all --format json

Exit codes: 0 printed, 2 an assertion of --assert does not hold; with --exit-code that of the run itself.

A run that was killed can be reported too: everything up to its last whole second is there, marked partial.";

/// Print run records again: text, JSON, CSV, JUnit XML, vespa-fbench's summary or benchpress's JSON; the history of a job.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct ReportArgs {
    /// Folders or ids of runs, or names of jobs; the newest run under --runs when left out.
    #[arg(value_name = "RUN|JOB")]
    runs_or_jobs: Vec<String>,
    /// All runs of the jobs, not only the newest of each; without a name, of every job there is.
    #[arg(long)]
    all: bool,
    /// Folder of run records.
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
    /// What to print.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// What the record must say, in the place of what was asserted when it was made; exit code 2 when it does not. May be
    /// repeated.
    #[arg(long = "assert", value_name = "ASSERTION")]
    assertions: Vec<Assertion>,
    /// End with the exit code that the run itself had; without it, 0 when the record could be printed.
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
    let by_id = with_ids(&args.runs_or_jobs, &args.runs);
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

/// The words that name runs, with ids of runs as `report --all` prints them made folders.
fn with_ids(words: &[String], runs: &Path) -> Vec<String> {
    let is_id = |word: &str| word.len() == 8 && word.bytes().all(|b| b.is_ascii_hexdigit());
    if !words.iter().any(|word| is_id(word)) {
        return words.to_owned();
    }
    let past = past_runs(runs).map(|past| past.runs).unwrap_or_default();
    let folder = |word: &String| {
        let found = past.iter().find(|run| is_id(word) && run.run_id == *word);
        found.map_or(word.clone(), |run| run.folder.to_string_lossy().into_owned())
    };
    words.iter().map(folder).collect()
}

/// The runs of jobs; of one job without --all, its newest run.
fn history(args: &ReportArgs, forms: &[Forms], past: &[PastRun]) -> Result<(String, u8)> {
    let mut jobs = with_ids(&args.runs_or_jobs, &args.runs);
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
        return Err(usage("--assert is held against one run; name its folder"));
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
            Err(usage("--format: several runs are told as text, json or benchpress"))
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
