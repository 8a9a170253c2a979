//! Single requests of a log, put together: histograms of the whole and of each class, and the seconds.

use crate::imported::{Basis, Class, Counts, Imported, Times, TimesOf};
use crate::seconds::{Ends, Kind, Seconds};
use plimsoll_core::histogram::Histogram;
use plimsoll_core::ledger::Failed;
use plimsoll_core::outcome::Failure;
use std::collections::{BTreeMap, HashMap};

/// Most classes; the requests of further names are in one class together.
pub const CLASSES_MAX: usize = 64;
/// Name of the class of further names.
const OTHERS: &str = "(others)";
/// Most different failures that are kept in the words of the source.
const FAILURES_MAX: usize = 50;

/// End of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It succeeded.
    Ok,
    /// It failed, and the source gives the kind.
    Failed(Failure),
    /// It failed; the source does not give the kind.
    FailedSomehow,
}

/// One request of a log.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// Its class; empty if the source has none.
    pub class: &'a str,
    /// Time of its end on the clock of the source, ns; `None` if the log does not give it.
    pub end_ns: Option<u64>,
    /// Its time on the basis of the log, ns.
    pub time_ns: u64,
    /// Its time from the send, ns, if the log has both.
    pub service_ns: Option<u64>,
    /// Its end: success or failure.
    pub end: End,
    /// Status code of the reply.
    pub status: Option<u16>,
}

#[derive(Clone, Debug, Default)]
struct Part {
    ok: u64,
    failed: u64,
    exact: Exact,
    exact_service: Exact,
    exact_failed: Exact,
    times: Histogram,
    service: Histogram,
    failed_times: Histogram,
}

/// Shortest, longest and sum, ns, which a histogram knows to three digits.
#[derive(Clone, Copy, Debug, Default)]
struct Exact {
    count: u64,
    min_ns: u64,
    max_ns: u64,
    sum_ns: f64,
}

impl Exact {
    fn add(&mut self, ns: u64) {
        self.min_ns = if self.count == 0 { ns } else { self.min_ns.min(ns) };
        self.max_ns = self.max_ns.max(ns);
        self.count += 1;
        self.sum_ns += ns as f64;
    }

    fn merge(&mut self, other: &Self) {
        if other.count > 0 {
            self.min_ns =
                if self.count == 0 { other.min_ns } else { self.min_ns.min(other.min_ns) };
            self.max_ns = self.max_ns.max(other.max_ns);
            self.count += other.count;
            self.sum_ns += other.sum_ns;
        }
    }

    /// The times of a histogram, with these ends and this mean; no percentile lies outside of them.
    fn times(&self, histogram: Histogram) -> Times {
        let mut times = Times::of(histogram);
        if self.count == 0 {
            return times;
        }
        let ms = |ns: f64| (ns / 1e6 * 1e9).round() / 1e9;
        let (min, max) = (ms(self.min_ns as f64), ms(self.max_ns as f64));
        for point in
            [&mut times.p50, &mut times.p90, &mut times.p95, &mut times.p99, &mut times.p99_9]
        {
            *point = point.map(|value| value.clamp(min, max));
        }
        times.mean = Some(ms(self.sum_ns / self.count as f64));
        (times.min, times.max) = (Some(min), Some(max));
        times
    }
}

/// The requests of a log so far.
#[derive(Debug)]
pub struct Samples {
    basis: Basis,
    names: Vec<String>,
    index: HashMap<String, usize>,
    parts: Vec<Part>,
    kinds: Failed,
    has_unknown_kind: bool,
    has_service: bool,
    statuses: BTreeMap<u16, u64>,
    failures: BTreeMap<String, u64>,
    seconds: Seconds,
    bounds_ns: Option<(u64, u64)>,
    lacks_ends: bool,
}

impl Samples {
    /// No requests yet.
    #[must_use]
    pub fn new(basis: Basis) -> Self {
        Self {
            basis,
            names: Vec::new(),
            index: HashMap::new(),
            parts: Vec::new(),
            kinds: Failed::default(),
            has_unknown_kind: false,
            has_service: false,
            statuses: BTreeMap::new(),
            failures: BTreeMap::new(),
            seconds: Seconds::default(),
            bounds_ns: None,
            lacks_ends: false,
        }
    }

    /// Number of requests.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.parts.iter().map(|part| part.ok + part.failed).sum()
    }

    /// Adds a request.
    pub fn add(&mut self, sample: &Sample<'_>) {
        let class = self.class(sample.class);
        let part = &mut self.parts[class];
        let main = match self.basis {
            Basis::Service => Kind::Service,
            Basis::Response => Kind::Response,
        };
        let (kind, failure) = match sample.end {
            End::Ok => {
                part.ok += 1;
                part.times.record(sample.time_ns);
                part.exact.add(sample.time_ns);
                (main, None)
            }
            End::Failed(failure) => (Kind::Failed, Some(failure)),
            End::FailedSomehow => {
                self.has_unknown_kind = true;
                (Kind::Failed, Some(Failure::Check))
            }
        };
        if let Some(failure) = failure {
            part.failed += 1;
            part.failed_times.record(sample.time_ns);
            part.exact_failed.add(sample.time_ns);
            *self.kinds.column(failure) += 1;
        }
        if let (Some(service_ns), None) = (sample.service_ns, failure) {
            self.has_service = true;
            part.service.record(service_ns);
            part.exact_service.add(service_ns);
        }
        if let Some(status) = sample.status {
            *self.statuses.entry(status).or_default() += 1;
        }
        self.time(sample, class, kind, failure);
    }

    fn time(&mut self, sample: &Sample<'_>, class: usize, kind: Kind, failure: Option<Failure>) {
        let Some(end_ns) = sample.end_ns else {
            self.lacks_ends = true;
            return;
        };
        let start_ns = end_ns.saturating_sub(sample.time_ns);
        let bounds = self.bounds_ns.get_or_insert((start_ns, end_ns));
        *bounds = (bounds.0.min(start_ns), bounds.1.max(end_ns));
        let ends = Ends {
            class,
            ok: u64::from(failure.is_none()),
            failed: failure.map(|failure| (failure, 1)),
            status: sample.status,
        };
        self.seconds.count(end_ns, &ends);
        self.seconds.time(end_ns, class, kind, sample.time_ns, 1);
        if let (Some(service_ns), None) = (sample.service_ns, failure) {
            self.seconds.time(end_ns, class, Kind::Service, service_ns, 1);
        }
    }

    /// Counts a failure in the words of the source.
    pub fn failure(&mut self, words: &str) {
        let words: String = words.chars().take(200).collect();
        let is_full = self.failures.len() >= FAILURES_MAX;
        let key = if is_full && !self.failures.contains_key(&words) {
            "(others)".to_owned()
        } else {
            words
        };
        *self.failures.entry(key).or_default() += 1;
    }

    fn class(&mut self, name: &str) -> usize {
        if let Some(&index) = self.index.get(name) {
            return index;
        }
        let name = if self.names.len() + 1 >= CLASSES_MAX { OTHERS } else { name };
        let next = self.names.len();
        let index = *self.index.entry(name.to_owned()).or_insert(next);
        if index == next {
            self.names.push(name.to_owned());
            self.parts.push(Part::default());
        }
        index
    }

    /// Puts the requests into an import: counts, times, classes, seconds, start and length. `is_wall` says that the clock
    /// of the log counts from the Unix epoch.
    pub fn finish(mut self, imported: &mut Imported, is_wall: bool) {
        let (ok, failed) = self
            .parts
            .iter()
            .fold((0, 0), |(ok, failed), part| (ok + part.ok, failed + part.failed));
        imported.times_of = TimesOf::Successful;
        imported.counts = Counts {
            kinds: (!self.has_unknown_kind).then_some(self.kinds),
            ..Counts::ended(ok, failed)
        };
        if !self.statuses.is_empty() {
            imported.statuses = Some(std::mem::take(&mut self.statuses));
        }
        imported.failures.append(&mut self.failures);
        if let Some((start_ns, end_ns)) = self.bounds_ns.filter(|_| !self.lacks_ends) {
            imported.duration_s = Some((end_ns - start_ns) as f64 / 1e9);
            if is_wall {
                imported.started_us = Some(start_ns / 1_000);
            }
            self.seconds.close((start_ns, end_ns), self.names.len());
            imported.seconds = Some(self.seconds.clone());
        }
        let mut all = Part::default();
        for part in &self.parts {
            all.times.merge(&part.times);
            all.service.merge(&part.service);
            all.failed_times.merge(&part.failed_times);
            all.exact.merge(&part.exact);
            all.exact_service.merge(&part.exact_service);
            all.exact_failed.merge(&part.exact_failed);
        }
        (imported.response, imported.service, imported.failed) = self.split(all);
        self.classes(imported);
        // The first address of a log is the target only if there is no other.
        if imported.classes.len() > 1 {
            imported.target = None;
        }
        imported.rates_from_counts();
    }

    /// Response, service and failed times.
    fn split(&self, part: Part) -> (Times, Times, Times) {
        let main = part.exact.times(part.times);
        let failed = part.exact_failed.times(part.failed_times);
        match self.basis {
            Basis::Service => (Times::default(), main, failed),
            Basis::Response if self.has_service => {
                (main, part.exact_service.times(part.service), failed)
            }
            Basis::Response => (main, Times::default(), failed),
        }
    }

    fn classes(&mut self, imported: &mut Imported) {
        for (name, part) in
            std::mem::take(&mut self.names).into_iter().zip(std::mem::take(&mut self.parts))
        {
            let counts = Counts::ended(part.ok, part.failed);
            let (response, service, failed) = self.split(part);
            imported.classes.push(Class {
                name,
                counts,
                ok_per_s: None,
                response,
                service,
                failed,
            });
        }
    }
}
