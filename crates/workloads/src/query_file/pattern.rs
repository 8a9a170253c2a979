//! File name patterns such as `query%03d.txt`.

use std::path::PathBuf;

use crate::error::InputError;

/// The widest number a pattern may ask for.
const WIDTH_MAX: usize = 18;

/// A file name with at most one printf conversion of an integer, such as `%d`, `%05d` or `%x`; `%%` is a percent sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePattern {
    before: String,
    number: Option<Conversion>,
    after: String,
}

/// One conversion of printf, of a number that is not negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Conversion {
    left: bool,
    zeros: bool,
    plus: bool,
    blank: bool,
    prefix: bool,
    width: usize,
    /// Fewest digits; where it is given, the flag for zeros has no effect.
    precision: Option<usize>,
    letter: u8,
}

/// The problem of an unknown conversion.
const UNKNOWN: &str = "only conversions of one integer, such as %d, %03d or %x, and %% are known";

impl Conversion {
    /// Reads what follows `%`; returns the conversion and what is behind it.
    fn parse(text: &str) -> Result<(Self, &str), &'static str> {
        let mut own = Self::default();
        let mut rest = text;
        while let Some(flag) = rest.bytes().next().filter(|flag| b"-0+ #".contains(flag)) {
            match flag {
                b'-' => own.left = true,
                b'0' => own.zeros = true,
                b'+' => own.plus = true,
                b' ' => own.blank = true,
                _ => own.prefix = true,
            }
            rest = &rest[1..];
        }
        (own.width, rest) = digits(rest)?;
        if let Some(after) = rest.strip_prefix('.') {
            let (precision, after) = digits(after)?;
            own.precision = Some(precision);
            rest = after;
        }
        own.letter = rest.bytes().next().filter(|l| b"diuxXo".contains(l)).ok_or(UNKNOWN)?;
        Ok((own, &rest[1..]))
    }

    fn print(self, number: u64) -> String {
        let (mut digits, mark) = match self.letter {
            b'x' => (format!("{number:x}"), "0x"),
            b'X' => (format!("{number:X}"), "0X"),
            b'o' => (format!("{number:o}"), ""),
            _ => (number.to_string(), ""),
        };
        if let Some(precision) = self.precision {
            digits = if precision == 0 && number == 0 {
                String::new()
            } else {
                format!("{digits:0>precision$}")
            };
        }
        if self.prefix && self.letter == b'o' && !digits.starts_with('0') {
            digits.insert(0, '0');
        }
        let sign = match self.letter {
            b'd' | b'i' if self.plus => "+",
            b'd' | b'i' if self.blank => " ",
            _ if self.prefix && number > 0 => mark,
            _ => "",
        };
        if self.zeros && !self.left && self.precision.is_none() {
            let room = self.width.saturating_sub(sign.len());
            digits = format!("{digits:0>room$}");
        }
        let (text, width) = (format!("{sign}{digits}"), self.width);
        if self.left { format!("{text:<width$}") } else { format!("{text:>width$}") }
    }
}

/// The number that a text begins with, 0 if with none, and the rest.
fn digits(text: &str) -> Result<(usize, &str), &'static str> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    let value = if length == 0 { 0 } else { text[..length].parse().unwrap_or(usize::MAX) };
    if value > WIDTH_MAX {
        return Err("the number is wider than 18 digits");
    }
    Ok((value, &text[length..]))
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
            let (conversion, after) = Conversion::parse(rest).map_err(wrong)?;
            if parsed.number.is_some() {
                return Err(wrong("has two numbers, but only one is supported"));
            }
            parsed.number = Some(conversion);
            rest = after;
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

    /// Returns true if each number has a file of its own.
    #[must_use]
    pub fn is_numbered(&self) -> bool {
        self.number.is_some()
    }

    /// The file of part or client `index`, which counts from 0.
    #[must_use]
    pub fn path(&self, index: u64) -> PathBuf {
        let number = self.number.map_or_else(String::new, |number| number.print(index));
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
        assert_eq!(path("q%-3dx", 5), "q5  x");
        assert_eq!(path("q%x-", 255), "qff-");
        assert_eq!((path("%#06X", 10), path("%#o", 8)), ("0X000A".into(), "010".into()));
        assert_eq!(
            (path("%+d", 0), path("% i", 7), path("%u", 7)),
            ("+0".into(), " 7".into(), "7".into())
        );
        assert_eq!((path("%5.3d", 7), path("%.0d", 0)), ("  007".into(), String::new()));
        assert_eq!(path("100%%-%d%%", 5), "100%-5%");
        assert_eq!(path("all.txt", 5), "all.txt");
    }

    #[test]
    fn wrong_patterns_are_told() {
        for bad in
            ["", "q%s", "q%", "q%d-%d", "q%99d", "q%ld", "q%.f", "q%99999999999999999999999d"]
        {
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
