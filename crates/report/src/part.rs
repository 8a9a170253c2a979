//! The file of an agent beside its record, from which the run can be made again: its warm-up, and the results of its job with everything
//! that their sums are made of.

use crate::error::RecordError;
use crate::folder::RunFolder;
use plimsoll_core::interval::IntervalLine;
use plimsoll_disk::durable;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::{self, ErrorKind, Read as _};
use std::path::Path;

/// Name of the file in the folder of the record.
const PART: &str = "part.json";
/// Largest one that is read.
const BYTES_MAX: u64 = 64_000_000;

/// A part of a run, beside its record.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct OwnPart {
    /// Requests before the measured stretch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup: Option<IntervalLine>,
    /// Results of the job, as the coordinator gets them.
    pub results: Vec<Value>,
}

impl OwnPart {
    /// Writes it into the folder of the record.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, folder: &RunFolder) -> Result<(), RecordError> {
        let path = folder.path().join(PART);
        let wrong = |source| RecordError::Write { path: path.clone(), source };
        let text = serde_json::to_vec(self).map_err(|error| wrong(io::Error::other(error)))?;
        let new = folder.path().join("part.json.new");
        durable::replace(&**folder.disk(), &new, &path, &text).map_err(wrong)
    }

    /// Reads that of a folder; an empty one if there is none, as after the kill of an agent.
    ///
    /// # Errors
    /// When it cannot be read, or is damaged.
    pub fn read(folder: &Path) -> Result<Self, RecordError> {
        let path = folder.join(PART);
        let file = match std::fs::File::open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(source) => return Err(RecordError::Read { path, source }),
            Ok(file) => file,
        };
        let mut text = Vec::new();
        if let Err(source) = file.take(BYTES_MAX).read_to_end(&mut text) {
            return Err(RecordError::Read { path, source });
        }
        serde_json::from_slice(&text)
            .map_err(|error| RecordError::Damaged { path, problem: error.to_string() })
    }
}
