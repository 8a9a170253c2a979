//! Name and labels that the user gives a run.

use std::collections::BTreeMap;
use std::str::FromStr;

/// Most characters of a name and of a label's key.
const WORD_CHARS_MAX: usize = 64;
/// Most characters of a label's value.
const VALUE_CHARS_MAX: usize = 1_000;

/// Name and labels of a run, as they are in its record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Naming {
    /// Name of the run; empty if it has none.
    pub name: String,
    /// Values by their keys.
    pub labels: BTreeMap<String, String>,
}

impl Naming {
    /// True if there is neither a name nor a label.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.name.is_empty() && self.labels.is_empty()
    }
}

/// The name of a run, from the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunName(pub String);

impl FromStr for RunName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fits = !text.trim().is_empty()
            && text.chars().count() <= WORD_CHARS_MAX
            && !text.chars().any(char::is_control);
        if fits {
            Ok(Self(text.to_owned()))
        } else {
            Err(format!(
                "expected 1 to {WORD_CHARS_MAX} characters without control characters, such as nightly"
            ))
        }
    }
}

/// One label of a run, `KEY=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Letters, digits, and any of `_ . - /`.
    pub key: String,
    /// Any text without control characters; may be empty.
    pub value: String,
}

impl FromStr for Label {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (key, value) =
            text.split_once('=').ok_or("expected KEY=VALUE, such as commit=3f2a9c1")?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "_.-/".contains(c);
        if key.is_empty() || key.len() > WORD_CHARS_MAX || !key.chars().all(plain) {
            return Err(format!(
                "a key has 1 to {WORD_CHARS_MAX} letters, digits and any of '_.-/', such as commit=3f2a9c1"
            ));
        }
        if value.chars().count() > VALUE_CHARS_MAX || value.chars().any(char::is_control) {
            return Err(format!(
                "a value has at most {VALUE_CHARS_MAX} characters and no control characters"
            ));
        }
        Ok(Self { key: key.to_owned(), value: value.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_a_key_and_any_value() {
        let label: Label = "commit=a=b c".parse().unwrap();
        assert_eq!((label.key.as_str(), label.value.as_str()), ("commit", "a=b c"));
        assert_eq!("a/b.c-d_e=".parse::<Label>().unwrap().value, "");
        for wrong in ["commit", "=x", "a b=x", "k=a\nb", &format!("{}=x", "k".repeat(65))] {
            assert!(wrong.parse::<Label>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_name_has_something_to_read() {
        assert_eq!("before, 2 shards".parse::<RunName>().unwrap().0, "before, 2 shards");
        for wrong in ["", "  ", "a\nb", &"n".repeat(65)] {
            assert!(wrong.parse::<RunName>().is_err(), "{wrong}");
        }
    }
}
