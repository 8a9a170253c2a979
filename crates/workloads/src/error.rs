//! Errors of a file of requests: what, where, and what to do next.

use std::path::{Path, PathBuf};

/// A place in an input: the file and, where one is known, the line (1 is the first).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file as the user named it, or `<stdin>`.
    pub file: PathBuf,
    /// The line, counted from 1.
    pub line: u64,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file.display(), self.line)
    }
}

/// Reason why an input of requests cannot be used. Each message is one line and ends with the next step.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The file is not there.
    #[error("{}: no such file or folder; check the path", path.display())]
    Missing {
        /// The file as the user named it.
        path: PathBuf,
    },
    /// The operating system would not read or write it.
    #[error("{}: {}; check the path and its permissions", path.display(), plimsoll_core::system_error::words(source))]
    Io {
        /// The file as the user named it.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A folder or a device where a file is needed.
    #[error("{}: not a regular file, which is needed to read it more than once; name a file", path.display())]
    NotRegular {
        /// The file as the user named it.
        path: PathBuf,
    },
    /// A pipe or device that does not end.
    #[error(
        "{}: over {most_mib} MiB of a pipe or device, and it has not ended; write the requests to a file, which may be of any size",
        path.display()
    )]
    Endless {
        /// The file as the user named it.
        path: PathBuf,
        /// Size up to which it is read, MiB.
        most_mib: u64,
    },
    /// A file that would be written is the one that is read.
    #[error("{}: it is the input and would be overwritten; give the parts other names with -p", path.display())]
    Overwritten {
        /// The file, by the name of the part.
        path: PathBuf,
    },
    /// There is not one request in it.
    #[error("{}: holds no request; write one, such as /search/?query=test", path.display())]
    Empty {
        /// The file as the user named it.
        path: PathBuf,
    },
    /// A line is wrong.
    #[error("{place}: {problem}")]
    Line {
        /// Location of the error.
        place: Place,
        /// The problem, and its remedy.
        problem: Problem,
    },
    /// A file name pattern is wrong.
    #[error("pattern '{pattern}': {problem}; write for example query%03d.txt")]
    Pattern {
        /// The pattern as the user wrote it.
        pattern: String,
        /// The problem.
        problem: &'static str,
    },
    /// An option's value is out of range.
    #[error("{option}: {value} is out of range; use {range}")]
    Range {
        /// The option's name.
        option: &'static str,
        /// Given value.
        value: u64,
        /// Allowed range.
        range: &'static str,
    },
}

impl InputError {
    /// An operating system's refusal, distinguished into "not there" and everything else.
    #[must_use]
    pub fn io(path: &Path, source: std::io::Error) -> Self {
        if source.kind() == std::io::ErrorKind::NotFound {
            return Self::Missing { path: path.to_owned() };
        }
        Self::Io { path: path.to_owned(), source }
    }

    /// A wrong line.
    #[must_use]
    pub fn line(file: &Path, line: u64, problem: Problem) -> Self {
        Self::Line { place: Place { file: file.to_owned(), line }, problem }
    }
}

/// Error of one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// A NUL byte: the file is binary, or UTF-16.
    #[error("NUL byte; this is not a text file, convert it (for UTF-16: iconv -f UTF-16 -t UTF-8)")]
    Nul,
    /// A line of a format that cannot leave out lines.
    #[error("line of {max_bytes} bytes or more; split what it holds over several lines")]
    LineTooLong {
        /// The limit.
        max_bytes: usize,
    },
    /// A POST body before the first URL.
    #[error("body without a URL; begin each POST record with a line that starts with '/'")]
    BodyWithoutUrl,
    /// A blank in a request target ends it early in the request line.
    #[error("blank in the URL at column {column}; write %20 instead")]
    BlankInUrl {
        /// Counted in bytes from 1.
        column: usize,
    },
    /// A line that is neither a path nor a URL of the server.
    #[error("{0}")]
    NotATarget(String),
    /// A control character in a request target would break the request line.
    #[error("control character 0x{byte:02x} in the URL at column {column}; percent-encode it")]
    ControlInUrl {
        /// The byte.
        byte: u8,
        /// Counted in bytes from 1.
        column: usize,
    },
    /// A body that should be base64 is not.
    #[error("body is not base64 ({0}); encode it (base64 -w0), or leave out -d")]
    BadBase64(String),
    /// A line of requests in JSON is not what it should be.
    #[error("{0}")]
    Json(String),
    /// A file of rows is not what it should be.
    #[error("{0}")]
    Rows(String),
    /// A header that would break the request.
    #[error("{0}")]
    Header(String),
}
