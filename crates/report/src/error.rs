//! Errors of a record on disk; one clear line each.

use plimsoll_core::system_error::words;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// A run record that cannot be kept or read.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum RecordError {
    /// The folder cannot be made, before any load.
    #[error("cannot create the run record {}: {}; name another folder with --runs DIR", path.display(), words(source))]
    Create { path: PathBuf, source: io::Error },
    /// A file of the record cannot be written; the result itself is not in danger.
    #[error(
        "cannot write {}: {}; the result is printed but not written there \
         (free some space, or name another folder with --runs DIR)",
        path.display(),
        words(source)
    )]
    Write { path: PathBuf, source: io::Error },
    /// The folder of a record cannot be removed.
    #[error("cannot remove the run record {}: {}; check its permissions", path.display(), words(source))]
    Remove { path: PathBuf, source: io::Error },
    /// A file of the record cannot be read.
    #[error("cannot read {}: {}; name the folder of a run record, such as runs/TIME-JOB-ID", path.display(), words(source))]
    Read { path: PathBuf, source: io::Error },
    /// The path is there, but is not a folder.
    #[error("{} is not a folder; name the folder of a run record, such as runs/TIME-JOB-ID", path.display())]
    NotAFolder { path: PathBuf },
    /// A folder without `run.json`.
    #[error("{} holds no run.json, so it is not a run record; name a folder such as runs/TIME-JOB-ID", path.display())]
    NoRecord { path: PathBuf },
    /// There is nothing in the folder of all runs.
    #[error("there is no run record in {}; run something first, or name a folder", path.display())]
    NoRuns { path: PathBuf },
    /// The record is of a later shape.
    #[error(
        "{} was written by a newer plimsoll (schema {found}; this one reads {known}); update plimsoll to read it",
        path.display()
    )]
    Newer { path: PathBuf, found: String, known: &'static str },
    /// JSON, but of something else.
    #[error("{} is not a plimsoll run record (schema {found:?}; expected {known}); name a folder such as runs/TIME-JOB-ID", path.display())]
    Foreign { path: PathBuf, found: String, known: &'static str },
    /// Not JSON, or a field is missing or has another form: `problem` names it.
    #[error("{} is damaged: {problem}; intervals.ndjson beside it still holds every second", path.display())]
    Damaged { path: PathBuf, problem: String },
    /// Larger than this program takes into memory.
    #[error("{} has {bytes} bytes, more than the {limit} that a run.json may have", path.display())]
    TooLarge { path: PathBuf, bytes: u64, limit: u64 },
}
