//! The head of a page whose figures another tool measured.

use crate::page::{Page, Tone};
use crate::plain::printable;
use crate::source;
use plimsoll_record::RunRecord;
use plimsoll_record::import::ImportResult;

/// The tool, its target, its file, and when it measured.
pub(super) fn head(page: &mut Page<'_>, record: &RunRecord, import: &ImportResult) {
    let mut what = format!("{} {}", printable(&record.job), printable(&import.source()));
    if !record.target.url.is_empty() {
        what += &format!(" {}", printable(&record.target.url));
    }
    page.entry("Run", &what, Tone::Plain);
    let when = format!("{}; {}", source::measured(record, import), source::file(import));
    page.entry("", &printable(&when), Tone::Plain);
}
