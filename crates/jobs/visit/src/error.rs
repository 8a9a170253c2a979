//! Errors of a visit as a whole.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Reason why a visit cannot begin or go on.
#[derive(Debug, Error)]
pub enum VisitError {
    /// A file cannot be used.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// The resume file belongs to something else.
    #[error(
        "{path}: {what}; give the flags of the interrupted visit, or remove the file to start again"
    )]
    OtherVisit {
        /// The resume file.
        path: PathBuf,
        /// Setting that differs.
        what: String,
    },
    /// The output for documents or state accepts nothing.
    #[error("{0}")]
    Output(String),
}
