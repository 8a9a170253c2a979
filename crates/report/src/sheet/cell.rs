//! One value of a table, and the place in the record from which it comes.

use crate::number::{bytes, count, percent, significant, time};

/// Value in a table or beside a name.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Text.
    Text(String),
    /// Number.
    Number {
        /// Exact value, in the unit that the record has it in.
        value: f64,
        /// The value as people read it, with its unit.
        text: String,
        /// JSON Pointer (RFC 6901) to the value in `run.json`; empty if the page derives it.
        from: String,
    },
    /// Text that leads to another page.
    Link {
        /// The text.
        text: String,
        /// Address of the page, http or https.
        url: String,
    },
    /// Unknown: the record does not have it.
    Unknown,
}

impl Cell {
    /// Returns a text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Returns a number and its text.
    #[must_use]
    pub fn number(value: f64, text: impl Into<String>) -> Self {
        Self::Number { value, text: text.into(), from: String::new() }
    }

    /// Returns a count.
    #[must_use]
    pub fn count(value: u64) -> Self {
        Self::number(value as f64, count(value))
    }

    /// Returns a time given in ms.
    #[must_use]
    pub fn ms(value: f64) -> Self {
        Self::number(value, time(value))
    }

    /// Returns a duration given in seconds.
    #[must_use]
    pub fn seconds(value: f64) -> Self {
        Self::number(value, format!("{} s", significant(value)))
    }

    /// Returns a rate per second.
    #[must_use]
    pub fn per_s(value: f64) -> Self {
        Self::number(value, format!("{}/s", significant(value)))
    }

    /// Returns a share, 0 to 1, which is shown in percent.
    #[must_use]
    pub fn share(value: f64) -> Self {
        Self::number(value, percent(value))
    }

    /// Returns a number of bytes.
    #[must_use]
    pub fn bytes(value: f64) -> Self {
        Self::number(value, bytes(value))
    }

    /// Returns the number, or unknown.
    #[must_use]
    pub fn or_unknown<T>(value: Option<T>, known: impl FnOnce(T) -> Self) -> Self {
        value.map_or(Self::Unknown, known)
    }

    /// Says where the number is in `run.json`: the steps of a JSON Pointer, such as `["ledger", "ok"]`.
    #[must_use]
    pub fn from(mut self, steps: &[&str]) -> Self {
        if let Self::Number { from, .. } = &mut self {
            *from = steps
                .iter()
                .map(|step| format!("/{}", step.replace('~', "~0").replace('/', "~1")))
                .collect();
        }
        self
    }

    /// The value as people read it.
    #[must_use]
    pub fn shown(&self) -> &str {
        match self {
            Self::Text(text) | Self::Number { text, .. } | Self::Link { text, .. } => text,
            Self::Unknown => "unknown",
        }
    }
}
