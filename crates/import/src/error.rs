//! A file that cannot be imported: one line that says what, and where.

use plimsoll_core::system_error::words;
use std::io;
use thiserror::Error;

/// The reason why a file cannot be imported, without its name.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum ImportError {
    /// The file cannot be read.
    #[error("cannot be read: {}", words(.0))]
    Read(#[from] io::Error),
    /// A line is not as the format has it.
    #[error("line {line}: {problem}")]
    Line { line: u64, problem: String },
    /// The file ends early, or has another form.
    #[error("{0}")]
    Form(String),
}

impl ImportError {
    /// A file that lacks something that the format always has.
    pub(crate) fn lacks(tool: &str, what: &str) -> Self {
        Self::Form(format!(
            "no {what} in it, which a whole output of {tool} has; the file is cut, or --format names another format"
        ))
    }

    /// A line that is not as the format has it.
    pub(crate) fn line(line: u64, problem: impl Into<String>) -> Self {
        Self::Line { line, problem: problem.into() }
    }
}
