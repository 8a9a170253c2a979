//! Progress of a run at one load.

use super::parts::parts_of;
use super::{Bar, Progress};
use plimsoll_core::interval::Interval;
use plimsoll_core::units::Span;
use std::sync::atomic::{AtomicU64, Ordering};

/// Progress of a run whose seconds are handed in one by one.
pub struct RunProgress {
    progress: Progress,
    seconds: u64,
    /// Requests after which the run ends, and how many have ended.
    requests: Option<u64>,
    ended: AtomicU64,
}

impl RunProgress {
    /// For a run of this length, or of this many requests, whichever is over first.
    #[must_use]
    pub fn new(duration: Span, requests: Option<u64>, quiet: bool) -> Self {
        let seconds = duration.as_seconds().ceil() as u64;
        let progress = Progress::new(Bar::of(seconds), quiet);
        Self { progress, seconds, requests, ended: AtomicU64::new(0) }
    }

    /// Shows one finished second.
    pub fn show(&self, second: &Interval) {
        let now = second.ledger.ok + second.ledger.failed.total();
        let ended = self.ended.fetch_add(now, Ordering::Relaxed) + now;
        let by_time = second.to_ns / 1_000_000_000;
        let done = match self.requests {
            Some(requests) => {
                let by_requests = ended as f64 / requests.max(1) as f64 * self.seconds as f64;
                by_time.max(by_requests as u64)
            }
            None => by_time,
        };
        self.progress.show(done.min(self.seconds), || parts_of(second, ("p99", 0.99)));
    }

    /// Takes the status line away.
    pub fn done(&self) {
        self.progress.done();
    }
}
