//! File name patterns such as `query%03d.txt`.

use std::path::PathBuf;

use crate::error::InputError;

/// The widest number a pattern may ask for.
const WIDTH_MAX: usize = 18;

/// A file name with at most one printf conversion `%d`, `%5d` or `%05d`; `%%` is a percent sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePattern {
    before: String,
    number: Option<Number>,
    after: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Number {
    width: usize,
    zeros: bool,
}

impl FilePattern {
    /// Reads a pattern; without a conversion it names one file for all.
    ///
    /// # Errors
    /// [`InputError::Pattern`] for an empty pattern, a second or an unknown conversion, or a width
    /// over 18.
    pub fn parse(pattern: &str) -> Result<Self, InputError> {
        let wrong = |problem| InputError::Pattern { pattern: pattern.to_owned(), problem };
        if pattern.is_empty() {
            return Err(wrong("is empty"));
        }
        let mut parsed = Self { before: String::new(), number: None, after: String::new() };
        let mut rest = pattern;
        while let Some(at) = rest.find('%') {
            parsed.tail().push_str(&rest[..at]);
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix('%') {
                parsed.tail().push('%');
                rest = after;
                continue;
            }
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            if !matches!(rest.as_bytes().get(digits), Some(b'd' | b'i' | b'u')) {
                return Err(wrong("only %d, %5d, %05d and %% are known"));
            }
            let width = if digits == 0 { 0 } else { rest[..digits].parse().unwrap_or(usize::MAX) };
            if width > WIDTH_MAX {
                return Err(wrong("the number is wider than 18 digits"));
            }
            if parsed.number.is_some() {
                return Err(wrong("has two numbers, only one is known"));
            }
            parsed.number = Some(Number { width, zeros: rest.starts_with('0') });
            rest = &rest[digits + 1..];
        }
        parsed.tail().push_str(rest);
        Ok(parsed)
    }

    /// Reads a pattern that must hold a number, because each part needs a file of its own.
    ///
    /// # Errors
    /// As [`FilePattern::parse`], and when there is no conversion.
    pub fn parse_numbered(pattern: &str) -> Result<Self, InputError> {
        let parsed = Self::parse(pattern)?;
        if parsed.number.is_none() {
            let problem = "has no %d, so all parts would overwrite one file";
            return Err(InputError::Pattern { pattern: pattern.to_owned(), problem });
        }
        Ok(parsed)
    }

    fn tail(&mut self) -> &mut String {
        if self.number.is_some() { &mut self.after } else { &mut self.before }
    }

    /// Whether each number has a file of its own.
    #[must_use]
    pub fn is_numbered(&self) -> bool {
        self.number.is_some()
    }

    /// The file of part or client `index`, which counts from 0.
    #[must_use]
    pub fn path(&self, index: u64) -> PathBuf {
        let number = match self.number {
            None => String::new(),
            Some(Number { width, zeros: true }) => format!("{index:0width$}"),
            Some(Number { width, zeros: false }) => format!("{index:width$}"),
        };
        PathBuf::from(format!("{}{number}{}", self.before, self.after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_printed_as_printf_does() {
        let path = |pattern: &str, i| {
            FilePattern::parse(pattern).unwrap().path(i).to_string_lossy().into_owned()
        };
        assert_eq!(path("query%03d.txt", 7), "query007.txt");
        assert_eq!(path("query%03d.txt", 1234), "query1234.txt");
        assert_eq!(path("q%d", 12), "q12");
        assert_eq!(path("q%3d", 5), "q  5");
        assert_eq!(path("100%%-%d%%", 5), "100%-5%");
        assert_eq!(path("all.txt", 5), "all.txt");
    }

    #[test]
    fn wrong_patterns_are_told() {
        for bad in ["", "q%s", "q%", "q%d-%d", "q%99d", "q%-3d", "q%99999999999999999999999d"] {
            assert!(FilePattern::parse(bad).is_err(), "{bad}");
        }
        let error = FilePattern::parse_numbered("all.txt").unwrap_err().to_string();
        assert_eq!(
            error,
            "pattern 'all.txt': has no %d, so all parts would overwrite one file; \
             write for example query%03d.txt"
        );
    }
}
