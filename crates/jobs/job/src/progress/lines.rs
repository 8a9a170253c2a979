//! Lines that a run prints as it goes: each stays, on a terminal too.

use super::heartbeat::{BEAT_NS, Heartbeat};
use crate::output::{note, print_out};
use plimsoll_core::units::Span;

/// Output of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// Nowhere.
    None,
    /// With the progress, to stderr.
    Progress,
    /// With the result, to stdout.
    Result,
}

impl Lines {
    /// Prints a line.
    pub fn say(self, line: &str) {
        match self {
            Self::None => {}
            Self::Progress => note(line),
            // A closed stdout is not an error here; printing the result reports other errors.
            Self::Result => drop(print_out(&format!("{line}\n"))),
        }
    }
}

/// Lines at a fixed interval. If stderr is not a terminal and they are more than a minute apart, a plain line a minute is printed
/// between them, so that a log shows that the run continues.
pub struct RollingLines {
    lines: Lines,
    heartbeat: Heartbeat,
}

impl RollingLines {
    /// For a run that begins now, with a line after each `every`.
    #[must_use]
    pub fn new(lines: Lines, every: Span) -> Self {
        let silent = lines == Lines::None || every.ns <= BEAT_NS;
        Self { lines, heartbeat: Heartbeat::new(silent) }
    }

    /// Prints a line.
    pub fn say(&self, line: &str) {
        self.lines.say(line);
    }

    /// Shows the state between two lines.
    pub fn between(&self, state: impl FnOnce() -> String) {
        self.heartbeat.beat(|| vec![state()]);
    }
}
