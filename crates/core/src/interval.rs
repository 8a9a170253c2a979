//! Measurements of a period: histograms and counts that merge exactly.
//!
//! The same type holds one second of one worker thread, one second of the run, and the whole run.

mod compact;
mod fingerprint;
mod line;

pub use compact::Compact;
pub use fingerprint::Fingerprint;
pub use line::{ClassLine, IntervalLine, ServerLine};

use crate::clock::{MILLISECOND_NS, SECOND_NS};
use crate::delays::Delays;
use crate::histogram::{Histogram, LatencySummary, Run};
use crate::ledger::Ledger;
use crate::outcome::ServerTime;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Most classes of requests in one run. Each costs about 0.6 MB a worker thread.
pub const CLASSES_MAX: usize = 64;

/// Latencies and counts of one class of requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClassPart {
    /// Sent, ok and failed requests of this class (scheduled and refused are kept for the whole run only).
    pub ledger: Ledger,
    /// Successful requests that found nothing.
    pub zero_hits: u64,
    /// Successful requests whose number of hits was known.
    pub hits_known: u64,
    /// Exact sum of the service times of successful requests, ns; the histogram keeps three digits.
    pub service_sum_ns: u64,
    /// Exact smallest service time of a successful request, ns; 0 while there is none.
    pub service_min_ns: u64,
    /// Exact largest service time of a successful request, ns; 0 while there is none.
    pub service_max_ns: u64,
    /// Exact smallest time of a failed request, ns; 0 while there is none. The histogram's own is the lower
    /// end of a cell, which for timeouts would be less than what was waited.
    pub failed_min_ns: u64,
    /// Intended start to last byte, successful requests, ns.
    pub response: Histogram,
    /// Send to last byte, successful requests, ns.
    pub service: Histogram,
    /// Intended start to failure, failed requests, ns; a timed-out request counts at least its timeout.
    pub failed: Histogram,
    /// The server's own times as its replies say them, successful requests; `None` unless they were asked for.
    pub server: Option<Box<ServerTimes>>,
}

/// The server's own times, as its replies say them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerTimes {
    /// The times, ns.
    pub times: Histogram,
    /// Successful replies without the header.
    pub missing: u64,
    /// Successful replies whose header has no time that can be read.
    pub malformed: u64,
}

impl ServerTimes {
    /// Counts a successful reply.
    pub fn record(&mut self, said: ServerTime) {
        match said {
            ServerTime::Known(ns) => self.times.record(ns),
            ServerTime::Missing => self.missing += 1,
            ServerTime::Malformed => self.malformed += 1,
        }
    }

    /// Adds those of another part: the histogram by cells, counts by sum.
    pub fn merge(&mut self, other: &Self) {
        self.times.merge(&other.times);
        self.missing += other.missing;
        self.malformed += other.malformed;
    }

    fn clear(&mut self) {
        self.times.clear();
        (self.missing, self.malformed) = (0, 0);
    }
}

/// The last times of a class's successful requests, as far as they are not in its histograms.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OkRuns {
    response: Run,
    service: Run,
}

impl ClassPart {
    /// Counts the two times of a successful request, ns; the ledger is kept apart.
    #[inline]
    pub fn record_ok(&mut self, response_ns: u64, service_ns: u64) {
        let mut runs = OkRuns::default();
        self.record_ok_in(&mut runs, response_ns, service_ns);
        self.flush(&mut runs);
    }

    /// The same where [`ClassPart::flush`] comes before the histograms are looked at.
    #[inline]
    pub(crate) fn record_ok_in(&mut self, runs: &mut OkRuns, response_ns: u64, service_ns: u64) {
        let is_first = runs.service.is_empty() && self.service.is_empty();
        self.service_min_ns =
            if is_first { service_ns } else { self.service_min_ns.min(service_ns) };
        self.service_max_ns = self.service_max_ns.max(service_ns);
        self.service_sum_ns = self.service_sum_ns.saturating_add(service_ns);
        runs.response.record(response_ns, &mut self.response);
        runs.service.record(service_ns, &mut self.service);
    }

    /// Lets the times enter their histograms.
    pub(crate) fn flush(&mut self, runs: &mut OkRuns) {
        runs.response.flush(&mut self.response);
        runs.service.flush(&mut self.service);
    }

    /// Counts the time of a failed request, ns; the ledger is kept apart.
    #[inline]
    pub fn record_failed(&mut self, failed_ns: u64) {
        self.failed_min_ns =
            if self.failed.is_empty() { failed_ns } else { self.failed_min_ns.min(failed_ns) };
        self.failed.record(failed_ns);
    }

    /// The times of failed requests as reports print them, the smallest exactly.
    #[must_use]
    pub fn failed_summary(&self) -> LatencySummary {
        let mut summary = self.failed.summary();
        if self.failed_min_ns > 0 {
            summary.min = self.failed_min_ns as f64 / MILLISECOND_NS as f64;
            // The mean is made from the middles of cells, and may fall just below.
            summary.mean = summary.mean.max(summary.min);
        }
        summary
    }

    /// Adds another part of the same class: histograms by cells, counts by sum.
    pub fn merge(&mut self, other: &ClassPart) {
        self.ledger.merge(&other.ledger);
        self.zero_hits += other.zero_hits;
        self.hits_known += other.hits_known;
        if !other.service.is_empty() {
            self.service_min_ns = if self.service.is_empty() {
                other.service_min_ns
            } else {
                self.service_min_ns.min(other.service_min_ns)
            };
        }
        if !other.failed.is_empty() {
            self.failed_min_ns = if self.failed.is_empty() {
                other.failed_min_ns
            } else {
                self.failed_min_ns.min(other.failed_min_ns)
            };
        }
        self.service_max_ns = self.service_max_ns.max(other.service_max_ns);
        self.service_sum_ns = self.service_sum_ns.saturating_add(other.service_sum_ns);
        self.response.merge(&other.response);
        self.service.merge(&other.service);
        self.failed.merge(&other.failed);
        if let Some(server) = &other.server {
            self.server.get_or_insert_default().merge(server);
        }
    }

    fn clear(&mut self) {
        self.ledger = Ledger::default();
        self.zero_hits = 0;
        self.hits_known = 0;
        self.service_sum_ns = 0;
        self.service_min_ns = 0;
        self.service_max_ns = 0;
        self.failed_min_ns = 0;
        self.response.clear();
        self.service.clear();
        self.failed.clear();
        if let Some(server) = &mut self.server {
            server.clear();
        }
    }
}

/// Plain counts of an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Counters {
    /// Bytes handed to the kernel.
    pub bytes_sent: u64,
    /// Bytes taken from the kernel.
    pub bytes_received: u64,
    /// Body bytes of successful replies, as transferred.
    pub bytes_body: u64,
    /// Connections opened.
    pub connects: u64,
    /// Requests that were answered on a connection that had carried one before.
    pub reused: u64,
    /// Requests sent a second time because a kept connection was dead.
    pub retries: u64,
    /// Requests that were due while no connection was free.
    pub waited: u64,
    /// Cycles longer than the schedule's cycle time or the users' pace.
    pub cycles_late: u64,
    /// Requests that came to an end in the measured stretch, also those that were due in the warm-up.
    pub ended_in_time: u64,
    /// Successful ones among them: what the headline rate counts.
    pub ok_in_time: u64,
    /// Connections that could not be made, and that broke, because this machine had no descriptor, port or memory left.
    pub exhausted: u64,
    /// Requests that admission refused, or that its queue gave up, while the generator itself was late.
    pub refused_late: u64,
}

/// Number of [`Counters`].
const COUNTERS: usize = 12;

impl Counters {
    /// All counts, in one order.
    fn all(mut self) -> [u64; COUNTERS] {
        let mut all = [0; COUNTERS];
        for (own, count) in all.iter_mut().zip(self.each()) {
            *own = *count;
        }
        all
    }

    /// The counters with these counts.
    fn of_all(all: [u64; COUNTERS]) -> Self {
        let mut own = Self::default();
        for (own, count) in own.each().into_iter().zip(all) {
            *own = count;
        }
        own
    }

    fn each(&mut self) -> [&mut u64; COUNTERS] {
        let Self {
            bytes_sent,
            bytes_received,
            bytes_body,
            connects,
            reused,
            retries,
            waited,
            cycles_late,
            ended_in_time,
            ok_in_time,
            exhausted,
            refused_late,
        } = self;
        [
            bytes_sent,
            bytes_received,
            bytes_body,
            connects,
            reused,
            retries,
            waited,
            cycles_late,
            ended_in_time,
            ok_in_time,
            exhausted,
            refused_late,
        ]
    }

    /// Adds another set, count by count.
    pub fn merge(&mut self, other: &Counters) {
        for (own, count) in self.each().into_iter().zip(other.all()) {
            *own += count;
        }
    }
}

/// Measurements between two moments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interval {
    /// Start, ns since the run's start.
    pub from_ns: u64,
    /// End, ns since the run's start.
    pub to_ns: u64,
    /// Index of the run's phase to which it belongs.
    pub phase: u32,
    /// Requests in flight at the end.
    pub in_flight: u32,
    /// The ledger of this stretch alone.
    pub ledger: Ledger,
    /// Plain counts.
    pub counters: Counters,
    /// Lag of each sent request, ns.
    pub lag: Histogram,
    /// Other delays of the generator.
    pub delays: Delays,
    /// Requests refused, never sent or unfinished: how long they had waited when they were given up, ns.
    pub unserved: Histogram,
    /// Replies by status code.
    pub statuses: BTreeMap<u16, u64>,
    /// One part a class, in the order of the workload's class names.
    pub classes: Vec<ClassPart>,
}

impl Interval {
    /// An empty interval for `classes` classes.
    #[must_use]
    pub fn new(classes: usize) -> Self {
        Self { classes: vec![ClassPart::default(); classes.min(CLASSES_MAX)], ..Self::default() }
    }

    /// Adds another interval: histograms by cells, counts by sum, time by union.
    ///
    /// An interval that has no end yet (`to_ns` 0) takes the other's start, so that a sum begun with
    /// [`Interval::new`] covers what was added and not the warm-up before it.
    pub fn merge(&mut self, other: &Interval) {
        self.from_ns =
            if self.to_ns == 0 { other.from_ns } else { self.from_ns.min(other.from_ns) };
        self.to_ns = self.to_ns.max(other.to_ns);
        self.in_flight = self.in_flight.saturating_add(other.in_flight);
        self.ledger.merge(&other.ledger);
        self.counters.merge(&other.counters);
        self.lag.merge(&other.lag);
        self.delays.merge(&other.delays);
        self.unserved.merge(&other.unserved);
        for (&status, &count) in &other.statuses {
            *self.statuses.entry(status).or_default() += count;
        }
        while self.classes.len() < other.classes.len() {
            self.classes.push(ClassPart::default());
        }
        for (mine, theirs) in self.classes.iter_mut().zip(&other.classes) {
            mine.merge(theirs);
        }
    }

    /// End of the second that it is, ns since the run's start. The seconds of a phase count from its start, and its last one is mostly
    /// shorter: the parts of a run agree in this end, and not in the moment at which each of them came to its own.
    #[must_use]
    pub fn second_end_ns(&self) -> u64 {
        // Text has times to the nanosecond, as floating point numbers.
        let length_ns = self.to_ns.saturating_sub(self.from_ns).saturating_sub(1_000);
        self.from_ns.saturating_add(length_ns.div_ceil(SECOND_NS).saturating_mul(SECOND_NS))
    }

    /// Empties the interval and keeps its memory, so that a recorder can use it again.
    pub fn clear(&mut self) {
        self.ledger = Ledger::default();
        self.counters = Counters::default();
        self.lag.clear();
        self.delays.clear();
        self.unserved.clear();
        self.statuses.clear();
        self.classes.iter_mut().for_each(ClassPart::clear);
    }

    /// Returns true if nothing was recorded in it, or all of it was cleared.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ledger == Ledger::default()
            && self.counters == Counters::default()
            && self.lag.is_empty()
            && self.delays.is_empty()
            && self.unserved.is_empty()
            && self.statuses.is_empty()
    }

    /// All classes together.
    #[must_use]
    pub fn all_classes(&self) -> ClassPart {
        let mut all = ClassPart::default();
        self.classes.iter().for_each(|class| all.merge(class));
        all
    }

    /// The length, s.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.to_ns.saturating_sub(self.from_ns) as f64 / 1e9
    }
}

#[cfg(test)]
mod tests;
