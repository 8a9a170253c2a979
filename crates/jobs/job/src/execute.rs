//! The way of a job through the engine, into the record and out as an exit code.

use crate::exit;
use crate::keeping::{About, Finished, JobEnd, carry_out};
use crate::output::{Output, has_lost_a_file, note, print_out, style, with_files};
use crate::prepare::{Prepared, http_of};
use crate::progress::RunProgress;
use crate::results::write_results;
use anyhow::Result;
use plimsoll_core::interval::Interval;
use plimsoll_core::scenario::Scenario;
use plimsoll_core::verdict::VerdictKind;
use plimsoll_engine::run::{Driven, RunEnd};
use plimsoll_record::JobResults;
use plimsoll_report::forms::Forms;
use plimsoll_report::plain::printable;
use plimsoll_report::text::render;
use plimsoll_wire::Sessions;
use std::io::IsTerminal;

/// Runs to the end. `each_second` sees every finished second; `job_results` makes what the job adds.
///
/// # Errors
/// When the run could not take place. A failed target is a result, not an error.
pub fn execute(
    scenario: &Scenario,
    prepared: Prepared,
    output: &Output,
    each_second: &mut (dyn FnMut(&Interval) + Send),
    job_results: &dyn Fn(&RunEnd) -> JobResults,
) -> Result<Finished> {
    let Prepared { plan, sessions, class_names, distinct_requests, troubles } = prepared;
    let about = About { plan: &plan, class_names, distinct_requests, troubles };
    let progress = RunProgress::new(scenario, output.voice());
    let http = http_of(scenario);
    let finished = carry_out(scenario, &about, output, |mut keeping| {
        let mut show = |second: &Interval| {
            progress.show(second);
            each_second(second);
        };
        let end = keeping.run(&plan, || http, sessions, &mut show);
        progress.done();
        let end = end?;
        let results = job_results(&end);
        Ok(JobEnd { end, results, verdict: None, warnings: Vec::new() })
    });
    progress.done();
    finished
}

/// A run of calls in another protocol than HTTP, ready to start: runs it, prints the result, and gives the exit code.
///
/// # Errors
/// A program failure.
pub fn run_calls<P: Driven>(
    scenario: &Scenario,
    about: &About<'_>,
    sessions: Vec<Box<dyn Sessions<P> + Send>>,
    protocol: impl Fn() -> P + Sync,
    output: &Output,
) -> Result<u8> {
    let progress = RunProgress::new(scenario, output.voice());
    let finished = carry_out(scenario, about, output, |mut keeping| {
        let mut show = |second: &Interval| progress.show(second);
        let end = keeping.run(about.plan, protocol, sessions, &mut show);
        progress.done();
        Ok(JobEnd {
            end: end?,
            results: JobResults::default(),
            verdict: None,
            warnings: Vec::new(),
        })
    });
    progress.done();
    print(&finished?, output, &Forms::LOAD)
}

/// Prints the result of a run in the forms of its job, and returns the exit code.
///
/// # Errors
/// When stdout cannot be written.
pub fn print(finished: &Finished, output: &Output, forms: &Forms) -> Result<u8> {
    if !write_results(output, finished, std::slice::from_ref(forms))? {
        print_out(&page(finished, output, forms))?;
    }
    Ok(code(finished))
}

/// Returns the page of a run in the forms of its job.
#[must_use]
pub fn page(finished: &Finished, output: &Output, forms: &Forms) -> String {
    let folder = finished.folder.as_deref();
    render(&finished.record, folder, &style(output.verbose), std::slice::from_ref(forms))
}

/// The exit code of a finished run. Where stdout is a file or a pipe, an outcome that is not fine is also one line on
/// stderr.
#[must_use]
pub fn code(finished: &Finished) -> u8 {
    let record = &finished.record;
    let code = exit::of_record(record);
    if code != exit::FINE && !std::io::stdout().is_terminal() {
        let mut line =
            format!("plimsoll: {}", plimsoll_report::outcome::line(record, has_lost_a_file()));
        if record.verdict.kind != VerdictKind::Valid && !record.verdict.reasons.is_empty() {
            line += &format!(": {}", printable(&record.verdict.reasons.join("; ")));
        }
        note(&line);
    }
    with_files(code)
}
