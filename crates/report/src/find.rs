//! The words by which a run is found again: its id or the beginning of it, its job, its name, its labels.

use crate::history::PastRun;
use crate::kept::KeptRun;
use std::collections::BTreeMap;

/// Fewest digits of an id that name a run.
pub const ID_DIGITS_MIN: usize = 4;
/// Digits of a whole id.
pub const ID_DIGITS: usize = 8;

/// The properties by which a run can be found.
#[derive(Clone, Copy, Debug)]
pub struct Handle<'a> {
    /// Its id.
    pub run_id: &'a str,
    /// Name of its job in the catalogue, or of the command.
    pub job: &'a str,
    /// Name that the user gave it; empty if none.
    pub name: &'a str,
    /// Labels that the user gave it.
    pub labels: &'a BTreeMap<String, String>,
}

impl<'a> From<&'a PastRun> for Handle<'a> {
    fn from(run: &'a PastRun) -> Self {
        Self { run_id: &run.run_id, job: &run.job, name: &run.name, labels: &run.labels }
    }
}

impl<'a> From<&'a KeptRun> for Handle<'a> {
    fn from(run: &'a KeptRun) -> Self {
        Self { run_id: &run.run_id, job: &run.job, name: &run.name, labels: &run.labels }
    }
}

impl Handle<'_> {
    /// True if the word is the beginning of its id.
    #[must_use]
    pub fn has_id(&self, word: &str) -> bool {
        may_be_id(word) && self.run_id.starts_with(&word.to_ascii_lowercase())
    }

    /// True if the word is its name, or one of its labels as `KEY=VALUE`.
    #[must_use]
    pub fn is_called(&self, word: &str) -> bool {
        let has_label =
            |(key, value): (&str, &str)| self.labels.get(key).is_some_and(|own| own == value);
        (!word.is_empty() && self.name == word) || word.split_once('=').is_some_and(has_label)
    }

    /// True if the word finds it in any of these ways.
    #[must_use]
    pub fn matches(&self, word: &str) -> bool {
        self.has_id(word) || self.job == word || self.is_called(word)
    }
}

/// True if a word has the form of an id, or of the beginning of one that is long enough.
#[must_use]
pub fn may_be_id(word: &str) -> bool {
    (ID_DIGITS_MIN..=ID_DIGITS).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_found_by_id_job_name_and_label() {
        let labels = BTreeMap::from([("commit".to_owned(), "3f2a=9".to_owned())]);
        let run = Handle { run_id: "1a2b3c4d", job: "load", name: "after, 2", labels: &labels };
        for word in ["1a2b", "1A2B3C4D", "load", "after, 2", "commit=3f2a=9"] {
            assert!(run.matches(word), "{word}");
        }
        for word in ["1a2", "2b3c", "1a2b3c4d5", "loa", "after", "commit", "commit=", "3f2a=9", ""]
        {
            assert!(!run.matches(word), "{word}");
        }
    }
}
