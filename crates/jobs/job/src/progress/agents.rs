//! Progress of a run by agents, where the coordinator sees their seconds alone.

use super::{Far, Part, Progress};
use crate::screen::Voice;
use crate::together::is_coordinator;
use plimsoll_core::interval::Interval;
use plimsoll_report::number::{count, significant};
use std::sync::{Mutex, PoisonError};

/// Progress of a run by agents.
pub struct AgentsProgress {
    progress: Progress,
    /// Requests answered so far, and failed ones.
    seen: Mutex<(u64, u64)>,
}

impl AgentsProgress {
    /// For a run that begins now; none if this process carries it out itself.
    #[must_use]
    pub fn new(voice: Voice) -> Option<Self> {
        is_coordinator()
            .then(|| Self { progress: Progress::steady(voice), seen: Mutex::new((0, 0)) })
    }

    /// Shows a second of all agents.
    pub fn show(&self, second: &Interval) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.0 += second.ledger.ok;
        seen.1 += second.ledger.failed.total();
        let length_s = second.to_ns.saturating_sub(second.from_ns) as f64 / 1e9;
        let per_s = second.ledger.ok as f64 / length_s.max(1e-9);
        let parts = vec![
            Part::first(format!("{} answered", count(seen.0))).at_least(19),
            Part::new(format!("{}/s", significant(per_s)), 1).at_least(9),
            Part::new(format!("failed {}", count(seen.1)), 2),
        ];
        self.progress.show(Far::Unknown, parts);
    }

    /// Takes the status line away.
    pub fn done(&self) {
        self.progress.done();
    }
}
