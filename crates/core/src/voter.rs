//! The arithmetic that holds the writes of the voter benchmark against its answers, and its ranges of keys.
//!
//! Every vote that the database acknowledged is one row. A call without a definite answer (a timeout, a cut connection)
//! may have left one or none. So the rows that a client finds in its own range of keys have grown by a number from an
//! interval whose both ends are known exactly; any other number is a write that was lost, or one that no one asked for.

pub mod areas;

use serde::{Deserialize, Serialize};
use std::fmt;

/// One of several equal ranges of keys; each client process has one of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KeyRange {
    /// Index of the client, from 0.
    pub index: u32,
    /// Number of key ranges, at least 1.
    pub of: u32,
}

impl Default for KeyRange {
    fn default() -> Self {
        Self { index: 0, of: 1 }
    }
}

/// Result of the check of writes, in a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum WriteCheckKind {
    /// As many as must be there.
    Ok,
    /// Fewer: acknowledged votes were lost.
    Missing,
    /// More: another client wrote into the range, or a vote was written twice.
    Surplus,
    /// The rows were not counted.
    #[default]
    NotChecked,
}

/// Result of the check of writes: the rows in the database against acknowledged votes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteCheck {
    /// As many as must be there.
    Ok,
    /// This many acknowledged votes were lost, at least.
    Missing(u64),
    /// This many rows exist without a call that wrote them, at least.
    Surplus(u64),
    /// The rows were not counted.
    NotChecked,
}

impl WriteCheck {
    /// Holds the growth of the rows against `accepted` votes and `unknown` calls: right is any number from `accepted`
    /// to `accepted + unknown`.
    #[must_use]
    pub fn of(rows_before: u64, rows_after: u64, accepted: u64, unknown: u64) -> Self {
        let grown = i128::from(rows_after) - i128::from(rows_before);
        let (least, most) = (i128::from(accepted), i128::from(accepted) + i128::from(unknown));
        // Both differences are below 2^65, and reported only up to what a count can be.
        let count = |rows: i128| u64::try_from(rows).unwrap_or(u64::MAX);
        if grown < least {
            WriteCheck::Missing(count(least - grown))
        } else if grown > most {
            WriteCheck::Surplus(count(grown - most))
        } else {
            WriteCheck::Ok
        }
    }

    /// The same where one of the counts was perhaps not taken.
    #[must_use]
    pub fn of_counts(before: Option<u64>, after: Option<u64>, accepted: u64, unknown: u64) -> Self {
        match (before, after) {
            (Some(before), Some(after)) => Self::of(before, after, accepted, unknown),
            _ => WriteCheck::NotChecked,
        }
    }

    /// In a word.
    #[must_use]
    pub const fn kind(self) -> WriteCheckKind {
        match self {
            WriteCheck::Ok => WriteCheckKind::Ok,
            WriteCheck::Missing(_) => WriteCheckKind::Missing,
            WriteCheck::Surplus(_) => WriteCheckKind::Surplus,
            WriteCheck::NotChecked => WriteCheckKind::NotChecked,
        }
    }

    /// Number of rows that are missing, or too many.
    #[must_use]
    pub const fn rows(self) -> u64 {
        match self {
            WriteCheck::Ok | WriteCheck::NotChecked => 0,
            WriteCheck::Missing(rows) | WriteCheck::Surplus(rows) => rows,
        }
    }

    /// Returns true if the writes were found to be wrong.
    #[must_use]
    pub const fn is_wrong(self) -> bool {
        matches!(self, WriteCheck::Missing(_) | WriteCheck::Surplus(_))
    }

    /// Of several key ranges together: rows that are missing anywhere count before those that are too many elsewhere,
    /// which must not make up for them.
    #[must_use]
    pub fn all(checks: impl IntoIterator<Item = WriteCheck>) -> Self {
        let (mut missing, mut surplus, mut unchecked, mut any) = (0u64, 0u64, false, false);
        for check in checks {
            any = true;
            match check {
                WriteCheck::Ok => {}
                WriteCheck::Missing(rows) => missing = missing.saturating_add(rows),
                WriteCheck::Surplus(rows) => surplus = surplus.saturating_add(rows),
                WriteCheck::NotChecked => unchecked = true,
            }
        }
        match (missing, surplus) {
            (0, 0) if unchecked || !any => WriteCheck::NotChecked,
            (0, 0) => WriteCheck::Ok,
            (0, rows) => WriteCheck::Surplus(rows),
            (rows, _) => WriteCheck::Missing(rows),
        }
    }
}

/// As it is printed: `ok`, `3 missing writes`, `1 surplus row`, `not checked`.
impl fmt::Display for WriteCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |rows: u64| if rows == 1 { "" } else { "s" };
        match *self {
            WriteCheck::Ok => f.write_str("ok"),
            WriteCheck::Missing(rows) => write!(f, "{rows} missing write{}", plural(rows)),
            WriteCheck::Surplus(rows) => write!(f, "{rows} surplus row{}", plural(rows)),
            WriteCheck::NotChecked => f.write_str("not checked"),
        }
    }
}

impl WriteCheckKind {
    /// The check, with how many rows are missing or too many.
    #[must_use]
    pub const fn check(self, rows: u64) -> WriteCheck {
        match self {
            WriteCheckKind::Ok => WriteCheck::Ok,
            WriteCheckKind::Missing => WriteCheck::Missing(rows),
            WriteCheckKind::Surplus => WriteCheck::Surplus(rows),
            WriteCheckKind::NotChecked => WriteCheck::NotChecked,
        }
    }
}

#[cfg(test)]
mod tests;
