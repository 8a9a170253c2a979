//! Counters of the server, in the text form of Prometheus.

use hyper::StatusCode;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

/// The kinds of request that are counted separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A search.
    Search,
    /// Reading a document.
    Get,
    /// Writing a document.
    Put,
    /// Changing a document.
    Update,
    /// Removing a document.
    Remove,
    /// Reading a collection.
    Visit,
    /// Copying, changing or removing a collection.
    Rewrite,
    /// Health, metrics and everything else.
    State,
}

const KINDS: [(Kind, &str); 8] = [
    (Kind::Search, "search"),
    (Kind::Get, "get"),
    (Kind::Put, "put"),
    (Kind::Update, "update"),
    (Kind::Remove, "remove"),
    (Kind::Visit, "visit"),
    (Kind::Rewrite, "rewrite"),
    (Kind::State, "state"),
];
/// The statuses that the server sends.
const STATUSES: [u16; 14] = [200, 204, 400, 404, 405, 408, 412, 413, 415, 429, 500, 503, 504, 507];
/// Upper bounds of the latency buckets, in microseconds.
const BUCKETS_US: [u64; 15] = [
    50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000,
    1_000_000, 5_000_000,
];

#[derive(Debug, Default)]
struct KindMetrics {
    /// By position in [`STATUSES`]; the last one is for any other.
    by_status: [AtomicU64; STATUSES.len() + 1],
    /// By position in [`BUCKETS_US`]; the last one is for anything slower.
    by_latency: [AtomicU64; BUCKETS_US.len() + 1],
    sum_us: AtomicU64,
}

/// All counters. Recording neither locks nor allocates.
#[derive(Debug, Default)]
pub struct Metrics {
    kinds: [KindMetrics; KINDS.len()],
    /// Requests that were refused because a queue was full.
    pub rejected: AtomicU64,
}

/// The figures of the metrics page besides the counters.
pub struct Gauges {
    /// Documents stored.
    pub documents: u64,
    /// Removed documents that are remembered.
    pub tombstones: u64,
    /// Operations of this port that were accepted and not answered yet.
    pub under_way: u64,
    /// Visits in flight.
    pub visits: u64,
    /// Documents that can be found.
    pub searchable_documents: u64,
    /// Segments of the index.
    pub segments: u64,
    /// Searches that wait for a thread.
    pub waiting: u64,
    /// Group commits of the store.
    pub commits: u64,
    /// Sequence number of the last write on the disk.
    pub committed: u64,
    /// Sequence number of the last write that can be found.
    pub indexed: u64,
}

impl Metrics {
    /// Counts one request.
    pub fn record(&self, kind: Kind, status: StatusCode, latency_ns: u64) {
        let metrics = &self.kinds[kind as usize];
        let status = STATUSES.iter().position(|known| *known == status.as_u16());
        metrics.by_status[status.unwrap_or(STATUSES.len())].fetch_add(1, Ordering::Relaxed);
        let us = latency_ns / 1_000;
        let bucket = BUCKETS_US.partition_point(|bound| *bound < us);
        metrics.by_latency[bucket].fetch_add(1, Ordering::Relaxed);
        metrics.sum_us.fetch_add(us, Ordering::Relaxed);
    }

    /// Number of answered requests of every kind.
    pub fn requests(&self) -> u64 {
        let counters = self.kinds.iter().flat_map(|kind| &kind.by_status);
        counters.map(|counter| counter.load(Ordering::Relaxed)).sum()
    }

    /// The page for Prometheus.
    pub fn render(&self, gauges: &Gauges) -> String {
        let mut page = String::with_capacity(8 * 1024);
        heading(&mut page, "requests_total", "counter", "Requests answered, by kind and status.");
        for ((_, name), metrics) in KINDS.iter().zip(&self.kinds) {
            for (number, counter) in metrics.by_status.iter().enumerate() {
                let count = counter.load(Ordering::Relaxed);
                if count > 0 {
                    let status = STATUSES.get(number).map_or("other".to_owned(), u16::to_string);
                    let labels = format!("{{kind=\"{name}\",status=\"{status}\"}}");
                    line(&mut page, "requests_total", &labels, count);
                }
            }
        }
        let text = "Time from the request's head to its reply.";
        heading(&mut page, "request_duration_seconds", "histogram", text);
        for ((_, name), metrics) in KINDS.iter().zip(&self.kinds) {
            metrics.render_latency(&mut page, name);
        }
        let single = [
            (
                "rejected_total",
                "counter",
                "Requests refused by a full queue.",
                self.rejected.load(Ordering::Relaxed),
            ),
            ("documents", "gauge", "Documents stored.", gauges.documents),
            ("tombstones", "gauge", "Removed documents remembered.", gauges.tombstones),
            ("operations_under_way", "gauge", "Document operations accepted.", gauges.under_way),
            ("visits", "gauge", "Visits in progress.", gauges.visits),
            (
                "searchable_documents",
                "gauge",
                "Documents that can be found.",
                gauges.searchable_documents,
            ),
            ("segments", "gauge", "Segments of the index.", gauges.segments),
            ("waiting_searches", "gauge", "Searches that wait for a thread.", gauges.waiting),
            ("store_commits_total", "counter", "Group commits of the store.", gauges.commits),
            ("committed_sequence", "gauge", "The last write on the disk.", gauges.committed),
            ("searchable_sequence", "gauge", "The last write that can be found.", gauges.indexed),
        ];
        for (name, kind, text, value) in single {
            heading(&mut page, name, kind, text);
            line(&mut page, name, "", value);
        }
        page
    }
}

impl KindMetrics {
    fn render_latency(&self, page: &mut String, kind: &str) {
        let counts = self.by_latency.each_ref().map(|counter| counter.load(Ordering::Relaxed));
        if counts.iter().all(|count| *count == 0) {
            return;
        }
        let mut sum = 0;
        for (number, count) in counts.iter().enumerate() {
            sum += count;
            let bound = BUCKETS_US
                .get(number)
                .map_or("+Inf".to_owned(), |us| (*us as f64 / 1e6).to_string());
            let labels = format!("{{kind=\"{kind}\",le=\"{bound}\"}}");
            line(page, "request_duration_seconds_bucket", &labels, sum);
        }
        let seconds = self.sum_us.load(Ordering::Relaxed) as f64 / 1e6;
        let labels = format!("{{kind=\"{kind}\"}}");
        line(page, "request_duration_seconds_sum", &labels, seconds);
        line(page, "request_duration_seconds_count", &labels, sum);
    }
}

fn heading(page: &mut String, name: &str, kind: &str, text: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(page, "# HELP plimsoll_search_{name} {text}");
    let _ = writeln!(page, "# TYPE plimsoll_search_{name} {kind}");
}

fn line(page: &mut String, name: &str, labels: &str, value: impl std::fmt::Display) {
    let _ = writeln!(page, "plimsoll_search_{name}{labels} {value}");
}
