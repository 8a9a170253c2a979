//! The record as JSON: the file itself, or one line. Its shape is `docs/run.schema.json`.

use plimsoll_record::RunRecord;

/// The record as `run.json` has it, unknown fields as `null`: indented, with a newline at the end.
#[must_use]
pub fn pretty(record: &RunRecord) -> String {
    let text = match record.with_unknown_as_null() {
        Some(value) => serde_json::to_string_pretty(&value),
        None => serde_json::to_string_pretty(record),
    };
    let mut text = text.expect("a record has text keys only, and writing to memory cannot fail");
    text.push('\n');
    text
}

/// The record on one line, without a newline at the end.
#[must_use]
pub fn compact(record: &RunRecord) -> String {
    let text = match record.with_unknown_as_null() {
        Some(value) => serde_json::to_string(&value),
        None => serde_json::to_string(record),
    };
    text.expect("a record has text keys only, and writing to memory cannot fail")
}

#[cfg(test)]
mod tests;
