//! Counts of the rank target, in total for `/metrics` and since the last reset for `/_stats`.

use super::RankConfig;
use plimsoll_serving::arrivals::{ArrivalSummary, ArrivalTally};
use plimsoll_serving::cpu_time::process_cpu_ns;
use plimsoll_serving::http::Method;
use plimsoll_serving::sample::{Sample, SampleSummary};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The stages of a request, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Waiting for a worker, before the first stage and after the wait.
    Queue,
    Walk,
    Pagerank,
    Wait,
    Compress,
    Stories,
    Chase,
    Reply,
}

/// Their names, in the order of the discriminants.
pub(crate) const STAGES: [&str; 8] =
    ["queue", "walk", "pagerank", "wait", "compress", "stories", "chase", "reply"];

/// The time of a request, by stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    pub(crate) wall_ns: u64,
    pub(crate) cpu_ns: u64,
}

/// The stages of one request.
pub(crate) type StageTimes = [Spent; STAGES.len()];

/// Reason why bytes were not understood.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bad {
    /// The first byte begins neither a frame nor an HTTP request.
    Start,
    /// A frame of another kind than 0.
    Kind,
    /// A payload that is too long.
    Length,
    /// A frame that the end of its connection cut.
    Cut,
}

const BAD: [&str; 4] = ["start", "kind", "length", "cut"];

/// Upper bounds of the buckets in microseconds.
const BUCKETS_US: [u64; 18] = [
    100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 30_000, 50_000, 75_000, 100_000, 200_000,
    300_000, 500_000, 1_000_000, 2_000_000, 5_000_000,
];

#[derive(Debug, Default)]
struct Buckets {
    counts: [u64; BUCKETS_US.len() + 1],
    sum_ns: u128,
}

impl Buckets {
    fn record(&mut self, ns: u64) {
        let place = BUCKETS_US.partition_point(|bound| bound * 1_000 < ns);
        self.counts[place] += 1;
        self.sum_ns += u128::from(ns);
    }
}

/// One quantity: buckets since the start, a sample since the last reset.
#[derive(Debug, Default)]
struct Series {
    buckets: Buckets,
    sample: Sample,
}

impl Series {
    fn record(&mut self, ns: u64) {
        self.buckets.record(ns);
        self.sample.record(ns);
    }
}

#[derive(Debug, Default)]
struct Recorded {
    wall: [Series; STAGES.len()],
    cpu: [Series; STAGES.len()],
    /// From the request read to the reply made.
    total: Series,
    arrivals: ArrivalTally,
}

/// All counts. Counting locks once a request and does not allocate.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    recorded: Mutex<Recorded>,
    pub(crate) refused: AtomicU64,
    pub(crate) failed: AtomicU64,
    /// Requests whose client was gone when the reply was made.
    pub(crate) abandoned: AtomicU64,
    pub(crate) frame_connections: AtomicU64,
    pub(crate) http_connections: AtomicU64,
    pub(crate) open_connections: AtomicU64,
    bad: [AtomicU64; BAD.len()],
    /// CPU time of whole PageRank computations, for `/pagerank`.
    pub(crate) page_cpu_ns: AtomicU64,
    /// CPU time of the process until it was ready.
    pub(crate) setup_cpu_ns: AtomicU64,
    pub(crate) start_ns: AtomicU64,
}

/// Figures that are read on request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    pub(crate) now_ns: u64,
    pub(crate) in_flight: u64,
    pub(crate) queued: u64,
    pub(crate) waiting: u64,
}

/// The time of one stage, in `/_stats`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct StageSummary {
    /// Time that went by.
    pub wall: SampleSummary,
    /// CPU time, over all threads that worked on it.
    pub cpu: SampleSummary,
}

/// Connections of the rank target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RankConnections {
    /// Accepted since the start that spoke frames.
    pub frames: u64,
    /// Accepted since the start that spoke HTTP.
    pub http: u64,
    /// Open now.
    pub open: u64,
}

/// The counts of the rank target; the reply of `/_stats`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RankSummary {
    /// Always `"rank"`.
    pub target: &'static str,
    /// Seconds since the target was ready.
    pub uptime_s: f64,
    /// Ranking requests read since the start or the last reset; frames count as method `other`.
    #[serde(flatten)]
    pub arrivals: ArrivalSummary,
    /// Requests in the server now.
    pub in_flight: u64,
    /// Of these, those that wait for a worker.
    pub queued: u64,
    /// Of these, those in a wait that holds no worker.
    pub waiting: u64,
    /// Requests refused because the server was full, since the start.
    pub refused: u64,
    /// Requests that failed inside the server, since the start.
    pub failed: u64,
    /// Requests whose client was gone when the reply was made, since the start.
    pub abandoned: u64,
    /// Connections or requests whose bytes were not understood, since the start, by reason.
    pub bad: BTreeMap<&'static str, u64>,
    /// From a request read to its reply made, since the start or the last reset.
    pub response: SampleSummary,
    /// The same by stage.
    pub stages: BTreeMap<&'static str, StageSummary>,
    /// Connections.
    pub connections: RankConnections,
    /// CPU time of the process, s.
    pub process_cpu_s: f64,
    /// Of it, until the target was ready, s.
    pub setup_cpu_s: f64,
    /// About how much memory the configuration takes, bytes.
    pub memory_estimate_bytes: u64,
    /// The configuration.
    pub config: RankConfig,
}

impl Metrics {
    fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A ranking request was read; frames have no method.
    pub(crate) fn arrived(&self, method: Option<Method>, now_ns: u64) {
        let mut recorded = self.lock();
        let previous_ns = recorded.arrivals.last_ns();
        recorded.arrivals.add(method.unwrap_or(Method::Other), now_ns, previous_ns);
    }

    /// Counts a request that has gone through all stages, with its time.
    pub(crate) fn served(&self, times: &StageTimes, total_ns: u64) {
        let recorded = &mut *self.lock();
        for (stage, spent) in times.iter().enumerate() {
            recorded.wall[stage].record(spent.wall_ns);
            recorded.cpu[stage].record(spent.cpu_ns);
        }
        recorded.total.record(total_ns);
    }

    /// Bytes were not understood.
    pub(crate) fn count_bad(&self, bad: Bad) {
        self.bad[bad as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// The reply of `/_stats`; afterwards samples and arrivals are reset if `reset`.
    pub(crate) fn summary(&self, config: &RankConfig, now: Now, reset: bool) -> RankSummary {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let start_ns = of(&self.start_ns);
        let mut recorded = self.lock();
        let stage = |index: usize| StageSummary {
            wall: recorded.wall[index].sample.summary(),
            cpu: recorded.cpu[index].sample.summary(),
        };
        let summary = RankSummary {
            target: "rank",
            uptime_s: now.now_ns.saturating_sub(start_ns) as f64 / 1e9,
            arrivals: recorded.arrivals.summary(start_ns),
            in_flight: now.in_flight,
            queued: now.queued,
            waiting: now.waiting,
            refused: of(&self.refused),
            failed: of(&self.failed),
            abandoned: of(&self.abandoned),
            bad: BAD.iter().copied().zip(self.bad.iter().map(of)).collect(),
            response: recorded.total.sample.summary(),
            stages: STAGES.iter().enumerate().map(|(i, name)| (*name, stage(i))).collect(),
            connections: RankConnections {
                frames: of(&self.frame_connections),
                http: of(&self.http_connections),
                open: of(&self.open_connections),
            },
            process_cpu_s: process_cpu_ns() as f64 / 1e9,
            setup_cpu_s: of(&self.setup_cpu_ns) as f64 / 1e9,
            memory_estimate_bytes: config.memory_bytes(),
            config: config.clone(),
        };
        if reset {
            let Recorded { wall, cpu, total, arrivals } = &mut *recorded;
            wall.iter_mut().chain(cpu).for_each(|series| series.sample.clear());
            total.sample.clear();
            *arrivals = ArrivalTally::default();
        }
        summary
    }

    /// The page for Prometheus.
    pub(crate) fn render(&self, now: Now) -> String {
        let mut page = String::with_capacity(32 * 1024);
        let recorded = self.lock();
        for (name, text, series) in [
            ("stage_wall_seconds", "Time that a stage took.", &recorded.wall),
            (
                "stage_cpu_seconds",
                "CPU time of a stage, over all threads that worked on it.",
                &recorded.cpu,
            ),
        ] {
            heading(&mut page, name, "histogram", text);
            for (stage, series) in STAGES.iter().zip(series) {
                histogram(&mut page, name, &format!("stage=\"{stage}\""), &series.buckets);
            }
        }
        let text = "From a request read to its reply made.";
        heading(&mut page, "request_duration_seconds", "histogram", text);
        histogram(&mut page, "request_duration_seconds", "", &recorded.total.buckets);
        drop(recorded);
        self.render_counters(&mut page, now);
        page
    }

    fn render_counters(&self, page: &mut String, now: Now) {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let seconds = |ns: u64| ns as f64 / 1e9;
        let counter = "counter";
        heading(page, "bad_total", counter, "Connections or frames not understood, by reason.");
        for (reason, count) in BAD.iter().zip(&self.bad) {
            line(page, "bad_total", &format!("{{reason=\"{reason}\"}}"), of(count));
        }
        let counts = [
            ("refused_total", counter, "Requests refused by a full server.", of(&self.refused)),
            ("failed_total", counter, "Requests that failed inside.", of(&self.failed)),
            ("abandoned_total", counter, "Replies without a reader.", of(&self.abandoned)),
            ("frame_connections_total", counter, "With frames.", of(&self.frame_connections)),
            ("http_connections_total", counter, "With HTTP.", of(&self.http_connections)),
            ("open_connections", "gauge", "Connections open.", of(&self.open_connections)),
            ("in_flight", "gauge", "Requests in the server.", now.in_flight),
            ("queued", "gauge", "Requests that wait for a worker.", now.queued),
            ("waiting", "gauge", "Requests in a wait that holds no worker.", now.waiting),
        ];
        for (name, kind, text, value) in counts {
            heading(page, name, kind, text);
            line(page, name, "", value);
        }
        for (name, text, ns) in [
            ("process_cpu_seconds_total", "CPU time of the process.", process_cpu_ns()),
            ("setup_cpu_seconds_total", "Of it, until ready.", of(&self.setup_cpu_ns)),
            ("page_cpu_seconds_total", "Of it, for /pagerank.", of(&self.page_cpu_ns)),
        ] {
            heading(page, name, counter, text);
            line(page, name, "", seconds(ns));
        }
    }
}

fn histogram(page: &mut String, name: &str, label: &str, buckets: &Buckets) {
    let comma = if label.is_empty() { "" } else { "," };
    let mut sum = 0;
    for (number, count) in buckets.counts.iter().enumerate() {
        sum += count;
        let us = BUCKETS_US.get(number);
        let bound = us.map_or("+Inf".to_owned(), |us| (*us as f64 / 1e6).to_string());
        let labels = format!("{{{label}{comma}le=\"{bound}\"}}");
        line(page, &format!("{name}_bucket"), &labels, sum);
    }
    let labels = if label.is_empty() { String::new() } else { format!("{{{label}}}") };
    line(page, &format!("{name}_sum"), &labels, buckets.sum_ns as f64 / 1e9);
    line(page, &format!("{name}_count"), &labels, sum);
}

fn heading(page: &mut String, name: &str, kind: &str, text: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(page, "# HELP plimsoll_rank_{name} {text}");
    let _ = writeln!(page, "# TYPE plimsoll_rank_{name} {kind}");
}

fn line(page: &mut String, name: &str, labels: &str, value: impl std::fmt::Display) {
    let _ = writeln!(page, "plimsoll_rank_{name}{labels} {value}");
}
