//! Runs what was prepared and prints the result.

use crate::exit;
use crate::keeping::{About, Finished, JobEnd, carry_out};
use crate::postgres;
use crate::prepare::{Prepared, http_of, prepare};
use crate::progress::Progress;
use crate::usage::usage;
use anyhow::Result;
use plimsoll_core::interval::Interval;
use plimsoll_core::record::RunRecord;
use plimsoll_core::scenario::Scenario;
use plimsoll_core::verdict::VerdictKind;
use plimsoll_engine::run::{RunEnd, run};
use serde_json::{Map, Value};
use std::ffi::OsStr;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Where results go, beside stdout.
#[derive(Clone, Debug, Default)]
pub struct Output {
    /// Folder of run records; `None` keeps none.
    pub runs: Option<PathBuf>,
    /// Also write the record here as JSON; `-` is stdout, instead of the text.
    pub json: Option<PathBuf>,
    /// No progress.
    pub quiet: bool,
}

impl Output {
    /// Makes sure that the JSON can be written, before any load: a run whose result is lost was for nothing.
    ///
    /// # Errors
    /// When the file cannot be opened for writing.
    pub fn check(&self) -> Result<()> {
        let Some(path) = self.json.as_deref().filter(|path| *path != Path::new("-")) else {
            return Ok(());
        };
        let opened = std::fs::OpenOptions::new().create(true).append(true).open(path);
        opened
            .map(drop)
            .map_err(|error| usage(format!("--json {}: {error}; check the path", path.display())))
    }
}

/// Runs to the end. `each_second` sees every finished second; `job_results` makes what the job adds.
///
/// # Errors
/// When the run could not take place. A failed target is a result, not an error.
pub fn execute(
    scenario: &Scenario,
    prepared: Prepared,
    output: &Output,
    each_second: &mut (dyn FnMut(&Interval) + Send),
    job_results: &dyn Fn(&RunEnd) -> Map<String, Value>,
) -> Result<Finished> {
    let Prepared { plan, sessions, class_names, distinct_requests, troubles } = prepared;
    let about = About { plan: &plan, class_names, distinct_requests, troubles };
    let progress = Progress::new(scenario.expected_length(), output.quiet);
    let http = http_of(scenario);
    let finished = carry_out(scenario, &about, output, |keeping| {
        let mut show = |second: &Interval| {
            progress.show(second);
            each_second(second);
        };
        let end = run(&plan, || http, sessions, keeping.sink, &mut show, &keeping.stop);
        progress.done();
        let end = end?;
        let results = job_results(&end);
        Ok(JobEnd { end, results, verdict: None, warnings: Vec::new() })
    });
    progress.done();
    finished
}

/// A line on stderr.
#[allow(clippy::print_stderr)]
pub fn note(text: &str) {
    eprintln!("{text}");
}

/// A whole command: prepares the scenario, runs it, prints the result, and gives the exit code.
///
/// # Errors
/// Wrong usage, or a program failure.
pub fn run_and_print(scenario: &Scenario, output: &Output) -> Result<u8> {
    if scenario.targets.iter().any(|target| postgres::is_address(target)) {
        return postgres::run_and_print(scenario, output);
    }
    let prepared = prepare(scenario)?;
    output.check()?;
    // How many requests each user has is known when the source has been read.
    let mut scenario = scenario.clone();
    scenario.load.clone_from(&prepared.plan.model);
    let finished = execute(&scenario, prepared, output, &mut |_| {}, &|_| Map::new())?;
    if !write_json(output, &finished.record)? {
        let folder = finished.folder.as_deref();
        print_out(&plimsoll_report::text::render(&finished.record, folder, &style()))?;
    }
    Ok(code(&finished))
}

/// Writes the JSON that was asked for and says whether stdout was taken by it.
///
/// # Errors
/// When the file cannot be written.
pub fn write_json(output: &Output, record: &RunRecord) -> Result<bool> {
    match output.json.as_deref() {
        None => Ok(false),
        Some(path) if path == Path::new("-") => {
            print_out(&plimsoll_report::json::pretty(record))?;
            Ok(true)
        }
        Some(path) => {
            std::fs::write(path, plimsoll_report::json::pretty(record)).map_err(|error| {
                anyhow::anyhow!("--json {}: {error}; check the path", path.display())
            })?;
            Ok(false)
        }
    }
}

/// Writes to stdout. A reader that went away is no error of ours.
///
/// # Errors
/// When stdout cannot be written for another reason.
pub fn print_out(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(|error| anyhow::anyhow!("stdout cannot be written: {error}")),
    }
}

/// Whether a terminal of this kind is sent colours: `NO_COLOR` says no, and so does a terminal without them.
fn may_colour(no_color: Option<&OsStr>, term: Option<&OsStr>) -> bool {
    no_color.is_none() && term.is_none_or(|term| term != "dumb")
}

/// How text goes to stdout.
#[must_use]
pub fn style() -> plimsoll_report::text::Style {
    let terminal = std::io::stdout().is_terminal();
    let width = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok()).unwrap_or(100);
    plimsoll_report::text::Style {
        colour: terminal
            && may_colour(
                std::env::var_os("NO_COLOR").as_deref(),
                std::env::var_os("TERM").as_deref(),
            ),
        width: if terminal { width } else { 100 },
    }
}

/// The exit code of a finished run. Where stdout is a file or a pipe, an outcome that is not fine is also one line on
/// stderr.
#[must_use]
pub fn code(finished: &Finished) -> u8 {
    let record = &finished.record;
    let code = exit::of_record(record);
    if code != exit::FINE && !std::io::stdout().is_terminal() {
        let mut line = format!("plimsoll: {}", plimsoll_report::outcome::line(record));
        if record.verdict.kind != VerdictKind::Valid && !record.verdict.reasons.is_empty() {
            line += &format!(": {}", record.verdict.reasons.join("; "));
        }
        note(&line);
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_for_terminals_that_have_them() {
        let (dumb, good) = (Some(OsStr::new("dumb")), Some(OsStr::new("xterm")));
        assert!(may_colour(None, good) && may_colour(None, None));
        assert!(!may_colour(None, dumb));
        assert!(!may_colour(Some(OsStr::new("1")), good));
    }
}
