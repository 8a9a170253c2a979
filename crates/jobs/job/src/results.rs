//! The files of a result: record, CSV, JUnit XML, and the page as HTML.

use crate::keeping::Finished;
use crate::live;
use crate::output::{Output, lost_file, print_out, put_result};
use anyhow::Result;
use plimsoll_record::RunRecord;
use plimsoll_report::RecordError;
use plimsoll_report::forms::Forms;
use plimsoll_report::sections::{Course, sheet};
use plimsoll_report::sheet::Sheet;
use std::path::Path;

/// A result that is shown, and what belongs to it.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// Its record.
    pub record: &'a RunRecord,
    /// Folder of the record, if it was kept.
    pub folder: Option<&'a Path>,
    /// Seconds and failures of the run, if no record was kept that has them.
    pub course: Option<&'a Course>,
}

impl<'a> From<&'a Finished> for Shown<'a> {
    fn from(finished: &'a Finished) -> Self {
        Self {
            record: &finished.record,
            folder: finished.folder.as_deref(),
            course: finished.course.as_deref(),
        }
    }
}

/// Returns the page of a result. The page of a record is the same whenever it is made.
///
/// # Errors
/// When a file of the record cannot be read.
pub fn page(shown: Shown<'_>, forms: &[Forms]) -> std::result::Result<String, RecordError> {
    let read = match (shown.course, shown.folder) {
        (None, Some(folder)) => Some(Course::of_folder(folder)?),
        _ => None,
    };
    let none = Course::default();
    let course = shown.course.or(read.as_ref()).unwrap_or(&none);
    Ok(html(&sheet(shown.record, course, forms)))
}

/// Returns a page as HTML, such as that of several runs.
#[must_use]
pub fn html(sheet: &Sheet) -> String {
    plimsoll_html::render(sheet)
}

/// Writes the files that flags name (JSON, JUnit XML, CSV, HTML) in the forms of the jobs, and returns true if stdout is taken: by
/// the JSON, or by the stream.
///
/// If a file cannot be written, the reason goes to stderr, the page is still printed, and the exit code is 1.
///
/// # Errors
/// When stdout cannot be written.
pub fn write_results<'a>(
    output: &Output,
    shown: impl Into<Shown<'a>>,
    forms: &[Forms],
) -> Result<bool> {
    let shown = shown.into();
    let record = shown.record;
    write_page(output, shown, forms);
    if let Some(path) = &output.junit {
        put_result("--junit", path, &plimsoll_report::junit::render(record));
    }
    if let Some(path) = &output.csv {
        put_result("--csv", path, &plimsoll_report::csv::render(record, forms));
    }
    match output.json.as_deref() {
        None => Ok(output.outlets.takes_stdout()),
        Some(path) if path == Path::new("-") => {
            print_out(&plimsoll_report::json::pretty(record))?;
            Ok(true)
        }
        Some(path) => {
            put_result("--json", path, &plimsoll_report::json::pretty(record));
            Ok(output.outlets.takes_stdout())
        }
    }
}

/// Writes the page that `--html` asks for, which is also the last state of the live page.
fn write_page(output: &Output, shown: Shown<'_>, forms: &[Forms]) {
    if output.html.is_none() && !live::is_open() {
        return;
    }
    let text = page(shown, forms);
    if let Some(path) = &output.html {
        match &text {
            Ok(text) => put_result("--html", path, text),
            Err(error) => lost_file(&format!("--html {}: {error}", path.display())),
        }
    }
    live::end(text.as_deref().unwrap_or("<!doctype html><p>The page of the run cannot be made."));
}
