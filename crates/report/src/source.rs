//! Source of figures that another tool measured, in words.

use crate::number::lasting;
use plimsoll_record::RunRecord;
use plimsoll_record::import::ImportResult;

/// When the tool measured, and for how long: `measured from 2026-11-25T10:00:11Z for 3.0 s`.
#[must_use]
pub fn measured(record: &RunRecord, import: &ImportResult) -> String {
    match (&import.measured_from, record.known("duration_s", record.duration_s)) {
        (Some(from), Some(s)) => format!("measured from {from} for {}", lasting(s)),
        (Some(from), None) => format!("measured from {from}, for an unknown time"),
        (None, Some(s)) => format!("measured for {} at an unknown time", lasting(s)),
        (None, None) => "measured at an unknown time".to_owned(),
    }
}

/// The file that was read, and its format: `read from wrk.txt (wrk)`.
#[must_use]
pub fn file(import: &ImportResult) -> String {
    let format = match import.format.as_str() {
        "" => String::new(),
        format => format!(" ({format})"),
    };
    format!("read from {}{format}", import.file)
}

/// Words for the times of a source: the requests that they are of, and their first moment.
#[must_use]
pub fn times(import: &ImportResult) -> String {
    let of = match import.times_of.as_str() {
        "successful" => "successful requests",
        _ => "all replies",
    };
    format!("{}: times of {of}, counted from {}", import.times.join(" and "), import.times_from)
}

/// A sentence on response times, if the source does not have them.
#[must_use]
pub fn response(import: &ImportResult) -> &'static str {
    if import.times.iter().any(|kind| kind == "response") {
        return "";
    }
    "The response time is unknown: waiting before the send is in no figure (coordinated omission)."
}

/// A time that the source gives as 0, or `None` if it does not round times off: `<0.5`, in ms.
#[must_use]
pub fn below(import: &ImportResult) -> Option<String> {
    import.below_ms.map(|ms| format!("<{ms}"))
}
