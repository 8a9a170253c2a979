//! Plain lines if stderr is not a terminal: one a minute, so that a log shows that the run continues.

use super::Far;
use super::line::in_words;
use super::parts::{Part, in_a_row};
use crate::screen::note;
use plimsoll_core::clock::{format_utc, now_ns, wall_us};
use std::sync::atomic::{AtomicU64, Ordering};

/// Pause between two plain lines. Build servers end a job that prints nothing for ten minutes.
const BEAT_NS: u64 = 60_000_000_000;
/// Figures of the last seconds are wanted for this time before a line.
const NEAR_NS: u64 = 10_000_000_000;

/// Plain lines for a run whose stderr is not a terminal.
pub(super) struct Heartbeat {
    started_ns: u64,
    /// Time at which the next line is due, ns.
    due_ns: AtomicU64,
}

impl Heartbeat {
    /// For a run that begins at this time.
    #[must_use]
    pub fn new(started_ns: u64) -> Self {
        Self { started_ns, due_ns: AtomicU64::new(started_ns + BEAT_NS) }
    }

    /// True if a line is due soon.
    pub fn is_near(&self) -> bool {
        now_ns() + NEAR_NS >= self.due_ns.load(Ordering::Relaxed)
    }

    /// Writes the line when it is due.
    pub fn beat(&self, far: Far, parts: &[Part]) {
        if let Some(line) = self.line(now_ns(), far, parts) {
            note(&format!("{} {line}", format_utc(wall_us())));
        }
    }

    fn line(&self, now_ns: u64, far: Far, parts: &[Part]) -> Option<String> {
        let due_ns = self.due_ns.load(Ordering::Relaxed);
        if now_ns < due_ns {
            return None;
        }
        // A minute after the last one was due; what was missed, as while the process was stopped, is not made up for.
        let missed = (now_ns - due_ns) / BEAT_NS;
        self.due_ns.store(due_ns + (missed + 1) * BEAT_NS, Ordering::Relaxed);
        let elapsed_s = (now_ns - self.started_ns) as f64 / 1e9;
        Some(format!("plimsoll: {}: {}", in_words(elapsed_s, far), in_a_row(parts)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_a_minute_where_nobody_watches() {
        let start = 5_000_000_000;
        let beat = Heartbeat::new(start);
        let line = |s: u64| {
            let parts = [Part::first("12/s").at_least(9), Part::first("failed 0")];
            beat.line(start + s * 1_000_000_000, Far::Seconds(s as f64, 600.0), &parts)
        };
        assert_eq!((line(1), line(59)), (None, None));
        assert_eq!(line(60).as_deref(), Some("plimsoll: 1 min of 10 min: 12/s, failed 0"));
        assert_eq!(line(61), None);
        // The lines keep their times though one of them was late.
        assert_eq!(line(124).as_deref(), Some("plimsoll: 2 min of 10 min: 12/s, failed 0"));
        assert_eq!((line(179), line(180).is_some()), (None, true));
        // A process that was stopped for an hour does not catch up.
        assert!(line(4_000).is_some());
        assert_eq!(line(4_001), None);
    }
}
