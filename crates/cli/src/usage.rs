//! Wrong input: one clear line, and exit code 64.

use std::fmt;

/// What is wrong, where, and what to do next, in one line.
#[derive(Debug)]
pub struct Usage(pub String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Makes the error.
pub fn usage(text: impl Into<String>) -> anyhow::Error {
    Usage(text.into()).into()
}

/// The target could not be reached: one clear line, and exit code 4.
#[derive(Debug)]
pub struct Unreachable(pub String);

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unreachable {}

/// Makes the error.
pub fn unreachable(text: impl Into<String>) -> anyhow::Error {
    Unreachable(text.into()).into()
}
