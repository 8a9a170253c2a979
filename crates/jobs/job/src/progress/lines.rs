//! Lines that a run prints as it goes: each stays, on a terminal too.

use crate::output::print_out;
use crate::screen::note;

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
