//! Settings of a machine that disturb measurements: each thing good, bad or unknown, with why and what to do.

mod load_now;
mod settings;

use serde::Serialize;
use std::path::{Path, PathBuf};

/// State of one setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It does not disturb.
    Good,
    /// It does.
    Bad,
    /// This machine does not report it.
    Unknown,
}

impl State {
    /// As it is printed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            State::Good => "good",
            State::Bad => "BAD",
            State::Unknown => "unknown",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// Its name.
    pub name: &'static str,
    /// Its state.
    pub state: State,
    /// Value found.
    pub found: String,
    /// Reason why it matters.
    pub why: &'static str,
    /// The command that fixes it, when it is bad.
    pub fix: Option<String>,
}

impl Check {
    /// Returns a check; `is_good` is `None` if the state is unknown.
    fn new(
        name: &'static str,
        is_good: Option<bool>,
        found: impl Into<String>,
        why: &'static str,
        fix: impl Into<String>,
    ) -> Self {
        let state = match is_good {
            Some(true) => State::Good,
            Some(false) => State::Bad,
            None => State::Unknown,
        };
        let fix = (state == State::Bad).then(|| fix.into());
        Self { name, state, found: found.into(), why, fix }
    }
}

/// `/proc` and `/sys` of a machine, or of a test.
#[derive(Clone, Debug)]
struct Root(PathBuf);

impl Root {
    /// A file's text, trimmed; `None` when there is none.
    fn read(&self, path: &str) -> Option<String> {
        let text = std::fs::read_to_string(self.0.join(path)).ok()?;
        Some(text.trim().to_owned())
    }

    /// A file's whole number.
    fn number(&self, path: &str) -> Option<i64> {
        self.read(path)?.parse().ok()
    }

    /// The folders of the processors, by number.
    fn processors(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.0.join("sys/devices/system/cpu"));
        let number =
            |path: &PathBuf| path.file_name()?.to_str()?.strip_prefix("cpu")?.parse::<u32>().ok();
        let mut found: Vec<PathBuf> = entries
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| number(path).is_some())
            .collect();
        found.sort_by_key(number);
        found
    }
}

/// Looks at everything; takes a second, since load can only be seen over time.
#[must_use]
pub fn checks(root: &Path) -> Vec<Check> {
    let root = Root(root.to_owned());
    let mut checks = settings::checks(&root);
    checks.extend(load_now::checks());
    checks
}
