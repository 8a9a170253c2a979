//! Progress on stderr: a status line on a terminal, a plain line a minute elsewhere, nothing with `--quiet`.
//!
//! A [`Progress`] alone decides between these three. A job hands in how far it is and its figures, and prints no progress by
//! itself. [`RunProgress`] makes the figures of a run, [`SearchProgress`] those of a search for the load line, and [`Lines`]
//! are those of Erlvolt's benchmark, which stay.

mod heartbeat;
mod line;
mod lines;
mod parts;
mod run;
mod search;

pub use lines::{Lines, RollingLines};
pub use run::RunProgress;
pub use search::SearchProgress;

use crate::output::note;
use heartbeat::{Heartbeat, Pulse};
use line::Line;

/// Columns of the usual message: the bar gets narrower to leave as many.
const MESSAGE: usize = 62;

/// The bar of a status line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    /// Steps of the bar; `None` is a line without a bar.
    steps: Option<u64>,
    /// Columns that it leaves for the message.
    message: usize,
}

impl Bar {
    /// No bar: the duration is not known.
    pub const NONE: Self = Self { steps: None, message: MESSAGE };

    /// A bar of this many steps.
    #[must_use]
    pub const fn of(steps: u64) -> Self {
        Self { steps: Some(steps), message: MESSAGE }
    }

    /// The same beside messages of this many columns.
    #[must_use]
    pub const fn beside(self, message: usize) -> Self {
        Self { message, ..self }
    }
}

/// The plain lines.
enum Plain {
    /// Written when figures are handed in.
    Beat(Heartbeat),
    /// Written by a thread of its own.
    Pulse(Pulse),
}

/// Progress of one job.
pub struct Progress {
    line: Line,
    plain: Plain,
    quiet: bool,
}

impl Progress {
    /// For a job that begins now and hands in its figures every second.
    #[must_use]
    pub fn new(bar: Bar, quiet: bool) -> Self {
        Self::with(bar, Plain::Beat(Heartbeat::new(quiet)), quiet)
    }

    /// For a job that begins now and may hand in nothing for minutes: the plain lines then repeat the last figures.
    #[must_use]
    pub fn steady(bar: Bar, quiet: bool) -> Self {
        Self::with(bar, Plain::Pulse(Pulse::new(quiet)), quiet)
    }

    fn with(bar: Bar, plain: Plain, quiet: bool) -> Self {
        Self { line: Line::new(bar.steps, bar.message, quiet), plain, quiet }
    }

    /// Shows how far it is, and as many of the figures as have room, the first ones first. They are asked for only if someone
    /// sees them.
    pub fn show(&self, position: u64, parts: impl FnOnce() -> Vec<String>) {
        if !self.line.is_hidden() {
            return self.line.show(position, &parts());
        }
        match &self.plain {
            Plain::Beat(heartbeat) => heartbeat.beat(parts),
            Plain::Pulse(pulse) => pulse.say(&parts()),
        }
    }

    /// Writes a line above the status line; without a terminal nothing.
    pub fn above(&self, line: &str) {
        self.line.println(line);
    }

    /// Writes a line that stays, also without a terminal.
    pub fn keep(&self, line: &str) {
        match (self.quiet, self.line.is_hidden()) {
            (true, _) => {}
            (false, true) => note(line),
            (false, false) => self.line.println(line),
        }
    }

    /// Takes the status line away.
    pub fn done(&self) {
        self.line.done();
    }
}
