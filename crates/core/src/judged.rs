//! The requests that a limit judges: every one that was scheduled in the measured stretch.
//!
//! This is the only definition, for `--slo`, assertions, searches, jobs and JUnit:
//!
//! | what became of a request | time that is judged |
//! |---|---|
//! | succeeded | its response time |
//! | failed or timed out | at least its timeout; it is late for every limit |
//! | refused, never sent, or unfinished | at least as long as it had waited when it was given up; late for every limit |
//!
//! In a mean each of them counts with its timeout at least: requests that are refused at once must not lower it.
//!
//! The latency that is shown remains that of the successful requests: a target that fails fast must not look fast,
//! and one that fails must not look slow where it answers.

use crate::histogram::{Histogram, LatencySummary};
use crate::interval::{ClassPart, Interval};
use crate::ledger::Ledger;

/// The judged times of a set of requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judged {
    /// Response times of successful requests.
    pub ok: Histogram,
    /// Least waiting times of the others.
    pub lost: Histogram,
    /// Time that each of the others counts with at least in the mean, ns.
    pub timeout_ns: u64,
}

/// A time of the judged distribution, ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Point {
    /// The response time of a successful request.
    Exactly(f64),
    /// The figure depends on requests that did not succeed: it is this at least.
    AtLeast(f64),
}

impl Point {
    /// The time, or what it is at least, ns.
    #[must_use]
    pub const fn ns(self) -> f64 {
        match self {
            Self::Exactly(ns) | Self::AtLeast(ns) => ns,
        }
    }

    /// Returns whether a limit holds: one that depends on a request that did not succeed never does.
    #[must_use]
    pub fn is_within(self, limit_ns: f64) -> bool {
        matches!(self, Self::Exactly(ns) if ns <= limit_ns)
    }
}

impl Judged {
    /// All requests of a stretch whose requests time out after `timeout_ns`.
    #[must_use]
    pub fn of(totals: &Interval, timeout_ns: u64) -> Self {
        let mut judged = Self { timeout_ns, ..Self::default() };
        for class in &totals.classes {
            judged.add_ended(class, timeout_ns);
        }
        judged.add_unserved(&totals.unserved, &totals.ledger, timeout_ns);
        judged
    }

    /// The requests of one class that were sent and ended. Requests that were never sent have no class.
    #[must_use]
    pub fn of_class(class: &ClassPart, timeout_ns: u64) -> Self {
        let mut judged = Self { timeout_ns, ..Self::default() };
        judged.add_ended(class, timeout_ns);
        let unfinished = class.ledger.unfinished;
        judged.lost.record_many(timeout_ns, unfinished);
        judged
    }

    fn add_ended(&mut self, class: &ClassPart, timeout_ns: u64) {
        self.ok.merge(&class.response);
        for (failed_ns, count) in class.failed.cells() {
            self.lost.record_many(failed_ns.max(timeout_ns), count);
        }
    }

    /// Adds those that were refused, never sent or unfinished. Records of earlier versions do not know how long they
    /// waited; there, a timeout stands for each.
    fn add_unserved(&mut self, waited: &Histogram, ledger: &Ledger, timeout_ns: u64) {
        self.lost.merge(waited);
        let refused = ledger.refused.queue_full + ledger.refused.queue_timeout;
        let all = refused + ledger.unsent.stopped + ledger.unfinished;
        let unknown = all.saturating_sub(waited.count());
        self.lost.record_many(timeout_ns, unknown);
    }

    /// Returns how many requests are judged.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.ok.count() + self.lost.count()
    }

    /// Share of the requests that did not succeed, 0 to 1.
    #[must_use]
    pub fn lost_share(&self) -> f64 {
        self.lost.count() as f64 / self.count().max(1) as f64
    }

    /// The time that `quantile` (0 to 1) of all requests did not exceed; nothing where there was no request. Those that
    /// did not succeed stand behind all that did.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> Option<Point> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        // What is a rounding error above a whole number is that number.
        let rank = (quantile.clamp(0.0, 1.0) * count as f64 - 1e-9 * count as f64).ceil() as u64;
        let (rank, ok) = (rank.max(1), self.ok.count());
        if rank <= ok {
            return Some(Point::Exactly(self.ok.at_rank_ns(rank) as f64));
        }
        let waited_ns = self.lost.at_rank_ns(rank - ok);
        // It is later than every success, whatever it is.
        Some(Point::AtLeast(waited_ns.max(self.ok.max_ns()) as f64))
    }

    /// The mean over all requests, in which those that did not succeed count with what they waited, and with their timeout at
    /// least.
    #[must_use]
    pub fn mean(&self) -> Option<Point> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let sum_ns = |times: &Histogram| times.mean_ns() * times.count() as f64;
        let cells = self.lost.cells();
        let more_ns: f64 =
            cells.map(|(ns, count)| self.timeout_ns.saturating_sub(ns) as f64 * count as f64).sum();
        let mean_ns = (sum_ns(&self.ok) + sum_ns(&self.lost) + more_ns) / count as f64;
        Some(if self.lost.is_empty() { Point::Exactly(mean_ns) } else { Point::AtLeast(mean_ns) })
    }

    /// The longest of all.
    #[must_use]
    pub fn max(&self) -> Option<Point> {
        self.quantile(1.0)
    }

    /// All times in one histogram, those of requests that did not succeed with what they waited at least.
    #[must_use]
    pub fn merged(&self) -> Histogram {
        let mut all = self.ok.clone();
        all.merge(&self.lost);
        all
    }

    /// The same as reports print it; the percentiles are those of [`Judged::quantile`].
    #[must_use]
    pub fn summary(&self) -> LatencySummary {
        let ms = |point: Option<Point>| point.map_or(0.0, |point| point.ns() / 1e6);
        LatencySummary {
            count: self.count(),
            min: self.merged().summary().min,
            mean: ms(self.mean()),
            p50: ms(self.quantile(0.5)),
            p90: ms(self.quantile(0.9)),
            p95: ms(self.quantile(0.95)),
            p99: ms(self.quantile(0.99)),
            p99_9: ms(self.quantile(0.999)),
            max: ms(self.max()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{MILLISECOND_NS as MS, SECOND_NS};

    fn totals(ok: &[u64], failed: &[u64], unsent: &[u64]) -> Interval {
        let mut totals = Interval::new(1);
        for &ns in ok {
            totals.classes[0].record_ok(ns, ns);
        }
        for &ns in failed {
            totals.classes[0].record_failed(ns);
        }
        for &ns in unsent {
            totals.unserved.record(ns);
        }
        totals.ledger.ok = ok.len() as u64;
        totals.ledger.failed.status = failed.len() as u64;
        totals.ledger.unsent.stopped = unsent.len() as u64;
        totals
    }

    /// Every twelfth request is never answered: the 92nd percentile and all above it are late, and no limit on them holds.
    #[test]
    fn a_request_that_failed_is_late_for_every_limit() {
        let judged = Judged::of(&totals(&[MS; 11], &[SECOND_NS], &[]), SECOND_NS);
        let within = |quantile: f64, limit_ns: u64| {
            judged.quantile(quantile).unwrap().is_within(limit_ns as f64)
        };
        assert!(within(0.9, 2 * MS) && !within(0.95, 100 * MS));
        // Also beyond the timeout: how long it would have taken is unknown.
        assert!(!within(0.95, 3600 * SECOND_NS) && !judged.max().unwrap().is_within(1e15));
    }

    /// A failure after 2 ms does not count as 2 ms.
    #[test]
    fn failing_fast_is_not_fast() {
        let judged = Judged::of(&totals(&[8 * MS; 2], &[2 * MS; 2], &[]), SECOND_NS);
        assert_eq!(judged.lost_share(), 0.5);
        assert!(judged.quantile(0.75).unwrap().ns() >= 0.999e9);
        assert!((judged.mean().unwrap().ns() - 504e6).abs() < 1e6, "{:?}", judged.mean());
    }

    /// 90 % are refused after no time: the mean of all is not a tenth of that of the others.
    #[test]
    fn requests_that_are_refused_at_once_do_not_lower_a_mean() {
        let mut refused = totals(&[400 * MS; 10], &[], &[]);
        refused.unserved.record_many(0, 90);
        refused.ledger.refused.queue_full = 90;
        let judged = Judged::of(&refused, SECOND_NS);
        assert!((judged.mean().unwrap().ns() - 940e6).abs() < 1e6, "{:?}", judged.mean());
        // How long they waited is known nevertheless.
        assert!(judged.lost.max_ns() < MS);
    }

    #[test]
    fn a_request_that_was_never_sent_counts_with_its_wait() {
        let judged = Judged::of(&totals(&[MS; 90], &[], &[5 * SECOND_NS; 10]), SECOND_NS);
        assert_eq!(judged.quantile(0.9).map(|p| p.is_within(2e6)), Some(true));
        let p95 = judged.quantile(0.95).unwrap();
        assert!(matches!(p95, Point::AtLeast(ns) if (4.99e9..5.01e9).contains(&ns)), "{p95:?}");
        // A record that does not know the waits takes a timeout for each.
        let mut older = totals(&[MS; 90], &[], &[]);
        older.ledger.unsent.stopped = 10;
        let judged = Judged::of(&older, SECOND_NS);
        assert_eq!(judged.count(), 100);
        assert!(!judged.quantile(0.95).unwrap().is_within(1e15));
    }

    /// 15/29 of 29 is a little more than 15 in floating point.
    #[test]
    fn a_percentile_has_its_rank_for_any_number_of_requests() {
        for count in 1..=200usize {
            let times: Vec<u64> = (1..=count as u64).map(|i| i * MS).collect();
            let median = Judged::of(&totals(&times, &[], &[]), SECOND_NS).quantile(0.5).unwrap();
            let expected = times[count.div_ceil(2) - 1] as f64;
            assert!((median.ns() / expected - 1.0).abs() < 0.002, "{count}: {median:?}");
        }
    }

    #[test]
    fn without_failures_it_is_the_distribution_that_is_shown() {
        let times: Vec<u64> = (1..=1000).map(|i| i * MS).collect();
        let totals = totals(&times, &[], &[]);
        let (judged, shown) = (Judged::of(&totals, SECOND_NS), &totals.classes[0].response);
        for quantile in [0.001, 0.01, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0] {
            let ns = shown.quantile_ns(quantile) as f64;
            assert_eq!(judged.quantile(quantile), Some(Point::Exactly(ns)), "{quantile}");
        }
        assert_eq!(judged.summary().p99, shown.summary().p99);
        assert_eq!(Judged::default().quantile(0.5), None);
    }
}
