//! Progress on stderr: one line that changes on a terminal, a plain line a minute elsewhere, nothing with `--quiet`.
//!
//! A [`Progress`] alone decides between these three. A job hands in how far it is and its figures, and prints no progress by
//! itself. [`RunProgress`] makes the figures of a run, [`SearchProgress`] those of a search for the load line, and [`Lines`]
//! are those of Erlvolt's benchmark, which stay.

mod agents;
mod heartbeat;
mod line;
mod lines;
mod parts;
mod run;
mod search;
mod so_far;

pub use crate::screen::Voice;
pub use agents::AgentsProgress;
pub use lines::Lines;
pub use parts::Part;
pub use run::{RunProgress, Watched};
pub use search::SearchProgress;

use crate::screen::note;
use heartbeat::Heartbeat;
use line::Line;
use plimsoll_core::clock::now_ns;
use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Time after which the figures are shown again though none were handed in.
const SHOW_EVERY: Duration = Duration::from_secs(1);

/// Progress of a job towards its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Far {
    /// The amount of work is unknown.
    Unknown,
    /// This share of everything is done, 0 to 1.
    Share(f64),
    /// The first of these times has passed of the second, which the job takes, s.
    Seconds(f64, f64),
    /// The job takes this time, from its begin on, s.
    Clock(f64),
}

/// The state of a job that is shown.
struct Shown {
    far: Far,
    parts: Vec<Part>,
}

enum Output {
    Quiet,
    Terminal(Line),
    Log(Heartbeat),
}

impl Output {
    fn show(&self, shown: &Shown) {
        match self {
            Self::Quiet => {}
            Self::Terminal(line) => line.show(shown.far, &shown.parts),
            Self::Log(heartbeat) => heartbeat.beat(shown.far, &shown.parts),
        }
    }
}

/// Progress of one job.
pub struct Progress {
    output: Arc<Output>,
    shown: Arc<Mutex<Shown>>,
    voice: Voice,
    /// A thread waits for its end.
    _end: Option<Sender<()>>,
}

impl Progress {
    /// For a job that begins now and hands in its figures every second.
    #[must_use]
    pub fn new(voice: Voice) -> Self {
        let output = match (voice, std::io::stderr().is_terminal()) {
            (Voice::Quiet, _) => Output::Quiet,
            (_, true) => Output::Terminal(Line::begin()),
            (_, false) => Output::Log(Heartbeat::new(now_ns())),
        };
        let shown = Shown { far: Far::Unknown, parts: vec![Part::first("starting")] };
        output.show(&shown);
        let (output, shown) = (Arc::new(output), Arc::new(Mutex::new(shown)));
        Self { output, shown, voice, _end: None }
    }

    /// For a job that begins now and may hand in nothing for minutes: the last figures are then shown again, with the time.
    #[must_use]
    pub fn steady(voice: Voice) -> Self {
        let mut progress = Self::new(voice);
        if voice == Voice::Quiet {
            return progress;
        }
        let (end, ended) = channel();
        let (output, shown) = (progress.output.clone(), progress.shown.clone());
        let body = move || {
            while ended.recv_timeout(SHOW_EVERY) == Err(RecvTimeoutError::Timeout) {
                output.show(&shown.lock().unwrap_or_else(PoisonError::into_inner));
            }
        };
        // Without the thread the line stands still, and all else goes on.
        let thread = std::thread::Builder::new().name("progress".to_owned()).spawn(body);
        progress._end = thread.ok().map(|_| end);
        progress
    }

    /// True if nothing is ever shown.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        matches!(*self.output, Output::Quiet)
    }

    /// True if figures that were handed in now would be seen soon, so that they are worth making.
    #[must_use]
    pub fn wants_figures(&self) -> bool {
        match &*self.output {
            Output::Quiet => false,
            Output::Terminal(_) => true,
            Output::Log(heartbeat) => heartbeat.is_near(),
        }
    }

    /// Shows how far it is, and as many of the figures as have room.
    pub fn show(&self, far: Far, parts: Vec<Part>) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        *shown = Shown { far, parts };
        self.output.show(&shown);
    }

    /// Writes a line about a finished part, which stays, if the user wants them.
    pub fn part(&self, line: &str) {
        if self.voice == Voice::Verbose {
            note(line);
        }
    }

    /// Writes a line that a reader has to know at once, unless the user wants none.
    pub fn keep(&self, line: &str) {
        if self.voice != Voice::Quiet {
            note(line);
        }
    }

    /// Takes the line away.
    pub fn done(&self) {
        if let Output::Terminal(line) = &*self.output {
            line.end();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.done();
    }
}
