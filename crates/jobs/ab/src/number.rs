//! The number that a program prints: by a JSON pointer, or by a regular expression with one group.

use plimsoll_job::usage::usage;
use regex::Regex;

/// Place of a number in an output.
#[derive(Clone, Debug)]
pub enum Number {
    /// A JSON pointer (RFC 6901).
    Pointer(String),
    /// A regular expression; its first group is the number.
    Pattern(Regex),
}

impl Number {
    /// Reads the place.
    ///
    /// # Errors
    /// A text that is neither of the two.
    pub fn of(text: &str) -> anyhow::Result<Self> {
        if text.starts_with('/') {
            return Ok(Self::Pointer(text.to_owned()));
        }
        let pattern = Regex::new(text).map_err(|error| {
            let line = error.to_string();
            let line = line.lines().last().unwrap_or_default();
            usage(format!(
                "--number '{text}': {}; write a JSON pointer such as /p99, or a regular expression",
                line.trim()
            ))
        })?;
        match pattern.captures_len() {
            2 => Ok(Self::Pattern(pattern)),
            _ => Err(usage(format!(
                "--number '{text}': needs exactly one group in parentheses, which is the number"
            ))),
        }
    }

    /// Finds the number in an output; `None` if it is not there, or not a number above 0.
    #[must_use]
    pub fn find(&self, output: &str) -> Option<f64> {
        let found = match self {
            Self::Pointer(pointer) => {
                let value: serde_json::Value = serde_json::from_str(output).ok()?;
                match value.pointer(pointer)? {
                    serde_json::Value::String(text) => text.parse().ok(),
                    value => value.as_f64(),
                }
            }
            Self::Pattern(pattern) => {
                let text = pattern.captures(output)?.get(1)?.as_str();
                text.replace(',', "").parse().ok()
            }
        };
        found.filter(|number: &f64| number.is_finite() && *number > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Number;

    #[test]
    fn a_number_is_found_by_pointer_or_pattern() {
        let find = |place: &str, text: &str| Number::of(place).unwrap().find(text);
        assert_eq!(find("/a/1", r#"{"a":[1,2.5]}"#), Some(2.5));
        assert_eq!(find("/a", r#"{"a":"7"}"#), Some(7.0));
        assert_eq!(find("/b", r#"{"a":1}"#), None);
        assert_eq!(find(r"rate: ([\d.,]+)", "x\nrate: 1,234.5/s"), Some(1234.5));
        assert_eq!(find(r"rate: (\d+)", "none"), None);
        assert_eq!(find(r"(\d+)", "0"), None);
        assert!(Number::of("no group").unwrap_err().to_string().contains("exactly one group"));
        assert!(Number::of("(").unwrap_err().to_string().contains("unclosed group"));
    }
}
