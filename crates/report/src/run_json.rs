//! The files of a run's folder, and its `run.json` as it is.

use crate::error::RecordError;
use plimsoll_record::{RunRecord, SCHEMA};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// The record, whole.
pub const RUN_JSON: &str = "run.json";
/// The journal of seconds.
pub const INTERVALS: &str = "intervals.ndjson";
/// The sample of failures.
pub const FAILURES: &str = "failures.ndjson";

/// The reason by which an early `run.json` is known: the run has not written its last one yet.
pub const NOT_ENDED: &str = "the run has not ended";

/// Largest `run.json` that is read.
const RUN_JSON_BYTES_MAX: u64 = 256_000_000;

/// Reads the `run.json` of a folder as it is.
///
/// # Errors
/// Not a folder, no `run.json` in it, a newer or foreign schema, damaged JSON.
pub fn read_run_json(folder: &Path) -> Result<RunRecord, RecordError> {
    let path = folder.join(RUN_JSON);
    let unreadable = |path: &Path, source| RecordError::Read { path: path.to_owned(), source };
    let about = fs::metadata(folder).map_err(|e| unreadable(folder, e))?;
    if !about.is_dir() {
        return Err(RecordError::NotAFolder { path: folder.to_owned() });
    }
    let bytes = match fs::metadata(&path) {
        Ok(about) => about.len(),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            return Err(RecordError::NoRecord { path: folder.to_owned() });
        }
        Err(e) => return Err(unreadable(&path, e)),
    };
    if bytes > RUN_JSON_BYTES_MAX {
        return Err(RecordError::TooLarge { path, bytes, limit: RUN_JSON_BYTES_MAX });
    }
    let text = fs::read(&path).map_err(|e| unreadable(&path, e))?;
    let damaged = |problem| RecordError::Damaged { path: path.clone(), problem };
    // The schema comes first: a newer record may well lack fields that this one expects.
    let value: Value = serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
    check_schema(&path, &value)?;
    plimsoll_record::read(&text).map_err(damaged)
}

fn check_schema(path: &Path, value: &Value) -> Result<(), RecordError> {
    let found = value.get("schema").and_then(Value::as_str).unwrap_or_default().to_owned();
    if found == SCHEMA {
        return Ok(());
    }
    let path = path.to_owned();
    let version = |schema: &str| schema.strip_prefix("plimsoll.run/")?.parse::<u32>().ok();
    match (version(&found), version(SCHEMA)) {
        (Some(theirs), Some(ours)) if theirs > ours => {
            Err(RecordError::Newer { path, found, known: SCHEMA })
        }
        _ => Err(RecordError::Foreign { path, found, known: SCHEMA }),
    }
}
