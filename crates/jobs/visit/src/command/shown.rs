//! The figures that show how far a visit has come.

use crate::{Visit, VisitTotals};
use plimsoll_core::clock::now_ns;
use plimsoll_job::progress::{Far, Part, Progress, Voice};
use plimsoll_report::number::{count, lasting, significant};
use std::sync::{Arc, Mutex, PoisonError};

/// Progress of a visit.
pub struct VisitProgress {
    visit: Arc<Visit>,
    progress: Progress,
    /// Time at which it was looked at first and last, and what was seen then.
    seen: Mutex<[(u64, VisitTotals); 2]>,
}

impl VisitProgress {
    /// For a visit that begins now.
    #[must_use]
    pub fn new(visit: Arc<Visit>, voice: Voice) -> Self {
        let first = (now_ns(), visit.totals());
        let seen = Mutex::new([first.clone(), first]);
        Self { visit, progress: Progress::steady(voice), seen }
    }

    /// Shows where it stands.
    pub fn show(&self) {
        let now = (now_ns(), self.visit.totals());
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let parts = parts(&seen[0], &seen[1], &now);
        let far = Far::Share(now.1.percent / 100.0);
        seen[1] = now;
        self.progress.show(far, parts);
    }

    /// Takes the status line away.
    pub fn done(&self) {
        self.progress.done();
    }
}

type Look = (u64, VisitTotals);

fn parts(first: &Look, last: &Look, now: &Look) -> Vec<Part> {
    let seconds = |from: u64| ((now.0 - from) as f64 / 1e9).max(1e-9);
    let entries = |totals: &VisitTotals| totals.documents + totals.removes;
    let come = now.1.percent - first.1.percent;
    let left = if come > 0.0 {
        let left_s = seconds(first.0) * (100.0 - now.1.percent) / come;
        format!("{} left", lasting(left_s))
    } else {
        "time left unknown".to_owned()
    };
    let per_s = (entries(&now.1) - entries(&last.1)) as f64 / seconds(last.0);
    let gbps = (now.1.bytes - last.1.bytes) as f64 * 8.0 / 1e9 / seconds(last.0);
    vec![
        Part::first(format!("{} documents", count(entries(&now.1)))).at_least(19),
        Part::new(format!("{}/s", significant(per_s)), 1).at_least(9),
        Part::new(format!("{} Gbit/s", significant(gbps)), 3),
        Part::new(left, 2),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_rate_and_time_left() {
        let at = |percent, documents, bytes| VisitTotals {
            percent,
            documents,
            bytes,
            ..VisitTotals::default()
        };
        let second = 1_000_000_000;
        let parts = parts(
            &(0, at(0.0, 0, 0)),
            &(9 * second, at(20.0, 900, 0)),
            &(10 * second, at(25.0, 1000, 125_000_000)),
        );
        let expected = ["1,000 documents", "100/s", "1.00 Gbit/s", "30.0 s left"];
        assert_eq!(parts.iter().map(Part::text).collect::<Vec<_>>(), expected);
    }
}
