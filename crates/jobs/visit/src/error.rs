//! Errors of a visit as a whole.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why a visit cannot begin or go on.
#[derive(Debug, Error)]
pub enum VisitError {
    /// A file cannot be used.
    #[error("{path}: {error}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The resume file belongs to something else.
    #[error(
        "{path}: {what}; give the flags of the interrupted visit, or remove the file to start again"
    )]
    OtherVisit {
        /// The resume file.
        path: PathBuf,
        /// What differs.
        what: String,
    },
    /// What the documents or the state are written to takes nothing.
    #[error("{0}")]
    Output(String),
}
