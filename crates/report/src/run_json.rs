//! The files of a run's folder, and its `run.json` as it is.

use crate::error::RecordError;
use plimsoll_record::{RunRecord, SCHEMA};
use serde::Deserialize;
use serde_json::Value;
use std::fs::{self, File};
use std::io::{self, Read};
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
const RUN_JSON_BYTES_MAX: u64 = 64_000_000;
/// Most values of a `run.json`: a value takes far more memory than its text.
const VALUES_MAX: usize = 4_000_000;

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
    let text = match run_json_text(&path) {
        Err(RecordError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            return Err(RecordError::NoRecord { path: folder.to_owned() });
        }
        text => text?,
    };
    let damaged = |problem| RecordError::Damaged { path: path.clone(), problem };
    // The schema comes first: a newer record may well lack fields that this one expects.
    let front: Front = serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
    check_schema(&path, front.schema.as_str().unwrap_or_default())?;
    plimsoll_record::read(&text).map_err(damaged)
}

/// The part of a record that any version has.
#[derive(Deserialize)]
struct Front {
    #[serde(default)]
    schema: Value,
}

/// The bytes of a `run.json`, if they are not too many.
///
/// # Errors
/// When it cannot be read, is no regular file, or is too large.
pub(crate) fn run_json_text(path: &Path) -> Result<Vec<u8>, RecordError> {
    let failed = |source| RecordError::Read { path: path.to_owned(), source };
    let file = open_file(path).map_err(failed)?;
    let bytes = file.metadata().map_err(failed)?.len();
    let too_large =
        |bytes| RecordError::TooLarge { path: path.to_owned(), bytes, limit: RUN_JSON_BYTES_MAX };
    if bytes > RUN_JSON_BYTES_MAX {
        return Err(too_large(bytes));
    }
    let mut text = Vec::new();
    file.take(RUN_JSON_BYTES_MAX + 1).read_to_end(&mut text).map_err(failed)?;
    if text.len() as u64 > RUN_JSON_BYTES_MAX {
        return Err(too_large(text.len() as u64));
    }
    let values = text.iter().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count();
    if values > VALUES_MAX {
        return Err(RecordError::Damaged {
            path: path.to_owned(),
            problem: format!("it has more than {VALUES_MAX} values"),
        });
    }
    Ok(text)
}

/// Opens a file of a record. A pipe or a device is none: reading one may never end.
pub(crate) fn open_file(path: &Path) -> io::Result<File> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    File::open(path)
}

fn check_schema(path: &Path, found: &str) -> Result<(), RecordError> {
    let found = found.to_owned();
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
