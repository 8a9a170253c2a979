//! Plain lines if stderr is not a terminal: one a minute, so that a log shows that the run continues.

use super::parts::{fitting, one_blank};
use crate::output::note;
use plimsoll_core::clock::now_ns;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Pause between two plain lines. Build servers end a job that prints nothing for ten minutes.
pub(super) const BEAT_NS: u64 = 60_000_000_000;

/// Plain lines for a run whose stderr is not a terminal.
pub(super) struct Heartbeat {
    /// Time at which the next line is due, ns; 0 where none ever is.
    due_ns: AtomicU64,
    started_ns: u64,
}

impl Heartbeat {
    /// For a run that begins now.
    #[must_use]
    pub fn new(quiet: bool) -> Self {
        let silent = quiet || std::io::stderr().is_terminal();
        Self::at(now_ns(), silent)
    }

    fn at(started_ns: u64, silent: bool) -> Self {
        let due_ns = if silent { 0 } else { started_ns + BEAT_NS };
        Self { due_ns: AtomicU64::new(due_ns), started_ns }
    }

    /// Writes the line when it is due.
    pub fn beat(&self, state: impl FnOnce() -> Vec<String>) {
        if let Some(line) = self.line(now_ns(), state) {
            note(&line);
        }
    }

    fn line(&self, now_ns: u64, state: impl FnOnce() -> Vec<String>) -> Option<String> {
        let due_ns = self.due_ns.load(Ordering::Relaxed);
        if due_ns == 0 || now_ns < due_ns {
            return None;
        }
        self.due_ns.store(now_ns + BEAT_NS, Ordering::Relaxed);
        let minutes = (now_ns - self.started_ns) / BEAT_NS;
        // Nothing is under a log's line that its columns could be aligned with.
        let parts: Vec<String> = state().iter().map(|part| one_blank(part)).collect();
        Some(format!("plimsoll: {minutes} min: {}", fitting(&parts, usize::MAX)))
    }
}

/// A heartbeat from a thread of its own, for work with long stretches in which no second is shown. Dropping it ends the thread.
pub(super) struct Pulse {
    now: Arc<Mutex<Vec<String>>>,
    /// The thread waits for its end.
    _end: Option<Sender<()>>,
}

impl Pulse {
    /// For work that begins now.
    #[must_use]
    pub fn new(quiet: bool) -> Self {
        const LOOK_EVERY: Duration = Duration::from_secs(1);
        let now = Arc::new(Mutex::new(vec!["starting".to_owned()]));
        let heartbeat = Heartbeat::new(quiet);
        if heartbeat.due_ns.load(Ordering::Relaxed) == 0 {
            return Self { now, _end: None };
        }
        let (end, ended) = channel();
        let shown = now.clone();
        let body = move || {
            while ended.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
                heartbeat.beat(|| shown.lock().unwrap_or_else(PoisonError::into_inner).clone());
            }
        };
        // Without the thread there are no lines, and all else goes on.
        let thread = std::thread::Builder::new().name("heartbeat".to_owned()).spawn(body);
        Self { now, _end: thread.ok().map(|_| end) }
    }

    /// Keeps the parts of the next line.
    pub fn say(&self, parts: &[String]) {
        parts.clone_into(&mut self.now.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_a_minute_where_nobody_watches() {
        let start = 5_000_000_000;
        let beat = Heartbeat::at(start, false);
        let line = |s: u64| beat.line(start + s * 1_000_000_000, || vec!["      12/s".to_owned()]);
        assert_eq!((line(1), line(59)), (None, None));
        assert_eq!(line(60).as_deref(), Some("plimsoll: 1 min: 12/s"));
        assert_eq!(line(61), None);
        assert_eq!(line(130).as_deref(), Some("plimsoll: 2 min: 12/s"));
        let silent = Heartbeat::at(start, true);
        assert_eq!(silent.line(start + 1_000_000_000_000, Vec::new), None);
    }
}
