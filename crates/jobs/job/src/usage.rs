//! Wrong input: one clear line, and exit code 64.

use plimsoll_core::system_error::words;
use plimsoll_report::plain::printable;
use std::fmt;

/// Error of usage: what is wrong, where, and what to do next, in one line.
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

/// A run on agents without their bus.
#[must_use]
pub fn bus_is_missing() -> anyhow::Error {
    usage(
        "--bus is missing; name the NATS server of the fleet, such as --bus nats://127.0.0.1:4222",
    )
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

/// One line for an error and its causes; a cause that is reported already is not repeated.
#[must_use]
pub fn one_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain() {
        // In the words that messages around it use, so that it is known again.
        let cause = match cause.downcast_ref::<std::io::Error>() {
            Some(error) => words(error),
            None => cause.to_string(),
        };
        if !line.contains(&cause) {
            let joint = if line.is_empty() { "" } else { ": " };
            line = line + joint + &cause;
        }
    }
    bounded(printable(&line))
}

/// Shortens a line that is too long to be read, in its middle: a value may be a whole file by mistake, and its fault is named
/// behind it.
#[must_use]
pub fn bounded(line: String) -> String {
    const FRONT: usize = 1200;
    const BACK: usize = 600;
    let length = line.chars().count();
    if length <= FRONT + BACK {
        return line;
    }
    let front: String = line.chars().take(FRONT).collect();
    let back: String = line.chars().skip(length - BACK).collect();
    format!("{front} [{} characters more] {back}", length - FRONT - BACK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_report::RecordError;

    #[test]
    fn an_error_of_the_operating_system_is_said_once_and_without_its_number() {
        let source = std::io::Error::from_raw_os_error(20);
        let error = RecordError::Create { path: "runs".into(), source };
        assert_eq!(
            one_line(&error.into()),
            "cannot create the run record runs: not a directory; name another folder with --runs DIR"
        );
        let bare =
            anyhow::Error::from(std::io::Error::from_raw_os_error(13)).context("cannot wait");
        assert_eq!(one_line(&bare), "cannot wait: permission denied");
    }

    #[test]
    fn a_value_that_is_a_whole_file_does_not_hide_what_is_wrong_with_it() {
        let short = "é".repeat(1800);
        assert_eq!(bounded(short.clone()), short);
        let told = bounded(format!("invalid value '{}' for '--workers'", "é".repeat(100_000)));
        assert!(told.starts_with("invalid value 'éé") && told.ends_with("éé' for '--workers'"));
        assert!(told.contains("[98232 characters more]"), "{told}");
        assert!(told.chars().count() < 1900);
    }
}
