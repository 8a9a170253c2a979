//! Ledger, diary and times of a run that is over.

use crate::diary::Diary;
use plimsoll_core::clock::MILLISECOND_NS;
use plimsoll_core::interval::{Interval, IntervalLine};
use plimsoll_core::seek::plant::Window;
use plimsoll_engine::gauge::Reading;
use plimsoll_engine::shard::ShardEnd;
use std::fmt::Write;

/// A response time that some requests exceed, ns.
pub const WINDOW_LIMIT_NS: u64 = 20 * MILLISECOND_NS;

/// The length of the windows in which requests are counted by when they were due, ns.
pub const WINDOW_NS: u64 = 100 * MILLISECOND_NS;

/// Ledger, diary and times of a run that is over.
pub struct Played {
    /// The end of the shard.
    pub end: ShardEnd,
    /// Its seconds.
    pub seconds: Vec<Interval>,
    /// The client's diary.
    pub diary: Diary,
    /// Time at which the run should have started, ns.
    pub start_ns: u64,
    /// Time at which it was over, ns.
    pub over_ns: u64,
    /// Samples of failures: the request, and why it failed.
    pub failures_told: Vec<(String, String)>,
    /// Counts by when requests were due.
    pub windows: Vec<Window>,
    /// The last reading of the gauge.
    pub gauge: Reading,
}

impl Played {
    /// The measured part, merged.
    #[must_use]
    pub fn totals(&self) -> Interval {
        let mut totals = Interval::new(self.end.rest.classes.len());
        self.seconds.iter().for_each(|second| totals.merge(second));
        totals.merge(&self.end.rest);
        totals
    }

    /// The measured part and the warm-up.
    #[must_use]
    pub fn all(&self) -> Interval {
        let mut all = self.totals();
        self.end.warmup.iter().for_each(|warmup| all.merge(warmup));
        all
    }

    /// Everything that must be the same when the run is done again.
    #[must_use]
    pub fn record(&self) -> String {
        let mut lines: Vec<IntervalLine> = self.seconds.iter().map(IntervalLine::from).collect();
        lines.push((&self.end.rest).into());
        lines.extend(self.end.warmup.iter().map(IntervalLine::from));
        let mut record = serde_json::to_string(&lines).unwrap_or_default();
        // Writing to a text does not fail.
        let _ = write!(record, " {:?} {:?} {}", self.diary.asked, self.windows, self.over_ns);
        record
    }
}
