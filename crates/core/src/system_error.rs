//! Errors of the operating system as plimsoll prints them: without their number, which says nothing to most readers.

use std::io::{Error, ErrorKind};

/// Returns the words of an error: `permission denied`, not `Permission denied (os error 13)`.
#[must_use]
pub fn words(error: &Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "no such file or folder".to_owned(),
        ErrorKind::ConnectionRefused => "connection refused: nothing is listening there".to_owned(),
        _ => {
            let text = error.to_string();
            let text = text.rsplit_once(" (os error ").map_or(text.as_str(), |(words, _)| words);
            let mut letters = text.chars();
            let first = letters.next().map(|letter| letter.to_ascii_lowercase());
            first.into_iter().chain(letters).collect()
        }
    }
}

/// Returns the words of an error at a file, and what to do about it.
#[must_use]
pub fn with_advice(error: &Error) -> String {
    let advice = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "free some space, or name another place"
        }
        _ => "check the path",
    };
    format!("{}; {advice}", words(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_depends_on_the_error() {
        let full = "no space left on device; free some space, or name another place";
        assert_eq!(with_advice(&Error::from_raw_os_error(28)), full);
        let missing = "no such file or folder; check the path";
        assert_eq!(with_advice(&Error::from_raw_os_error(2)), missing);
    }

    #[test]
    fn the_number_is_left_out() {
        assert_eq!(words(&Error::from_raw_os_error(2)), "no such file or folder");
        assert_eq!(words(&Error::from_raw_os_error(13)), "permission denied");
        assert_eq!(words(&Error::from_raw_os_error(17)), "file exists");
        let refused = "connection refused: nothing is listening there";
        assert_eq!(words(&Error::from_raw_os_error(111)), refused);
        assert_eq!(words(&Error::other("Broken by (os error")), "broken by (os error");
    }
}
