//! The record as JSON: the file itself, or one line. Its shape is `docs/run.schema.json`.

use plimsoll_record::RunRecord;

/// The record as `run.json` has it: indented, with a newline at the end.
#[must_use]
pub fn pretty(record: &RunRecord) -> String {
    let mut text = serde_json::to_string_pretty(record)
        .expect("a record has text keys only, and writing to memory cannot fail");
    text.push('\n');
    text
}

/// The record on one line, without a newline at the end.
#[must_use]
pub fn compact(record: &RunRecord) -> String {
    serde_json::to_string(record)
        .expect("a record has text keys only, and writing to memory cannot fail")
}

#[cfg(test)]
mod tests;
