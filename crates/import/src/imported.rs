//! Figures of another tool, each of them known or not.

use crate::seconds::Seconds;
use plimsoll_core::histogram::{Histogram, LatencySummary};
use plimsoll_core::ledger::Failed;
use std::collections::BTreeMap;

/// Moments that a time is counted from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Basis {
    /// The send.
    #[default]
    Service,
    /// The intended start.
    Response,
}

/// Requests that a source has times of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimesOf {
    /// Every reply, whatever its status.
    #[default]
    All,
    /// Successful requests.
    Successful,
}

/// A distribution of times, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    /// Number of times.
    pub count: Option<u64>,
    /// Shortest, ms.
    pub min: Option<f64>,
    /// Mean, ms.
    pub mean: Option<f64>,
    /// Median, ms.
    pub p50: Option<f64>,
    /// 90th percentile, ms.
    pub p90: Option<f64>,
    /// 95th percentile, ms.
    pub p95: Option<f64>,
    /// 99th percentile, ms.
    pub p99: Option<f64>,
    /// 99.9th percentile, ms.
    pub p99_9: Option<f64>,
    /// Longest, ms.
    pub max: Option<f64>,
    /// All values, if the source has them.
    pub histogram: Option<Histogram>,
}

impl Times {
    /// The times of a histogram.
    #[must_use]
    pub fn of(histogram: Histogram) -> Self {
        let s = histogram.summary();
        Self {
            count: Some(s.count),
            min: Some(s.min),
            mean: Some(s.mean),
            p50: Some(s.p50),
            p90: Some(s.p90),
            p95: Some(s.p95),
            p99: Some(s.p99),
            p99_9: Some(s.p99_9),
            max: Some(s.max),
            histogram: Some(histogram),
        }
    }

    /// The known points, by the names of the record's fields.
    #[must_use]
    pub fn points(&self) -> [(&'static str, Option<f64>); 8] {
        [
            ("min", self.min),
            ("mean", self.mean),
            ("p50", self.p50),
            ("p90", self.p90),
            ("p95", self.p95),
            ("p99", self.p99),
            ("p99_9", self.p99_9),
            ("max", self.max),
        ]
    }

    /// Takes a percentile that the source printed.
    pub fn put(&mut self, percentile: f64, ms: f64) {
        let is = |p: f64| (percentile - p).abs() < 1e-6;
        for (p, place) in [
            (50.0, &mut self.p50),
            (90.0, &mut self.p90),
            (95.0, &mut self.p95),
            (99.0, &mut self.p99),
            (99.9, &mut self.p99_9),
            (100.0, &mut self.max),
        ] {
            if is(p) {
                *place = Some(ms);
            }
        }
    }

    /// True if nothing at all is known.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        self.count.is_none() && self.points().iter().all(|(_, value)| value.is_none())
    }

    /// The times as a record has them; an unknown one is not a number (NaN).
    #[must_use]
    pub fn summary(&self) -> LatencySummary {
        let of = |value: Option<f64>| value.unwrap_or(f64::NAN);
        LatencySummary {
            count: self.count.unwrap_or(0),
            min: of(self.min),
            mean: of(self.mean),
            p50: of(self.p50),
            p90: of(self.p90),
            p95: of(self.p95),
            p99: of(self.p99),
            p99_9: of(self.p99_9),
            max: of(self.max),
        }
    }
}

/// Requests by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that the schedule made due.
    pub scheduled: Option<u64>,
    /// Requests that were sent.
    pub sent: Option<u64>,
    /// Requests that succeeded.
    pub ok: Option<u64>,
    /// Requests that failed.
    pub failed: Option<u64>,
    /// The same by kind, if all kinds are known.
    pub kinds: Option<Failed>,
    /// Requests that were due and not sent.
    pub unsent: Option<u64>,
    /// Requests still in flight at the end.
    pub unfinished: Option<u64>,
}

impl Counts {
    /// Counts of replies: all of them ended.
    #[must_use]
    pub fn ended(ok: u64, failed: u64) -> Self {
        Self { sent: Some(ok + failed), ok: Some(ok), failed: Some(failed), ..Self::default() }
    }
}

/// The requests of one class: a request's name, a transaction, a tag.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// Its requests.
    pub counts: Counts,
    /// Its successful requests per second.
    pub ok_per_s: Option<f64>,
    /// Times from the intended start.
    pub response: Times,
    /// Times from the send.
    pub service: Times,
    /// Times of failed requests.
    pub failed: Times,
}

/// A file of another tool, read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Imported {
    /// The tool that measured.
    pub tool: String,
    /// Its version, if the file gives it.
    pub tool_version: Option<String>,
    /// Start of the measurement, us since the Unix epoch.
    pub started_us: Option<u64>,
    /// Its length, s.
    pub duration_s: Option<f64>,
    /// The target's address.
    pub target: Option<String>,
    /// Settings that the file gives.
    pub settings: BTreeMap<String, String>,
    /// Moment that a time is counted from, in words.
    pub times_from: String,
    /// Requests that the times are of.
    pub times_of: TimesOf,
    /// Precision of the times, in words.
    pub exact_to: String,
    /// A time that the source gives as 0 is shorter than this, ms; `None` if it does not round times to 0.
    pub below_ms: Option<f64>,
    /// Percentiles as the source printed them, with their times, ms.
    pub percentiles: Vec<(f64, f64)>,
    /// Requests by what became of them.
    pub counts: Counts,
    /// Failures in the words of the source.
    pub failures: BTreeMap<String, u64>,
    /// Requests due per second.
    pub offered_per_s: Option<f64>,
    /// Requests that ended per second.
    pub achieved_per_s: Option<f64>,
    /// Requests that succeeded per second.
    pub ok_per_s: Option<f64>,
    /// Bytes sent.
    pub bytes_sent: Option<u64>,
    /// Bytes received.
    pub bytes_received: Option<u64>,
    /// Replies by status code.
    pub statuses: Option<BTreeMap<u16, u64>>,
    /// Times from the intended start.
    pub response: Times,
    /// Times from the send.
    pub service: Times,
    /// Times of failed requests.
    pub failed: Times,
    /// The classes; none if the source does not distinguish any.
    pub classes: Vec<Class>,
    /// The seconds of the measurement, if the source has single requests or seconds.
    pub seconds: Option<Seconds>,
    /// Warnings for the reader.
    pub warnings: Vec<String>,
}

impl Imported {
    /// Takes the rates from counts and length where the source prints none.
    pub fn rates_from_counts(&mut self) {
        let Some(duration_s) = self.duration_s.filter(|s| *s > 0.0) else { return };
        let per_s = |count: u64| count as f64 / duration_s;
        let ended = self.counts.ok.zip(self.counts.failed).map(|(ok, failed)| ok + failed);
        self.achieved_per_s = self.achieved_per_s.or(ended.map(per_s));
        self.ok_per_s = self.ok_per_s.or(self.counts.ok.map(per_s));
        for class in &mut self.classes {
            class.ok_per_s = class.ok_per_s.or(class.counts.ok.map(per_s));
        }
    }

    /// Says that the times are of all replies if some of them failed.
    pub fn warn_of_mixed_times(&mut self) {
        let has_times = !(self.response.is_unknown() && self.service.is_unknown());
        if has_times
            && self.times_of == TimesOf::All
            && self.counts.failed.is_some_and(|failed| failed > 0)
        {
            self.warnings.push(format!(
                "the times include failed requests: {} does not keep them apart",
                self.tool
            ));
        }
    }
}
