//! The record as CSV: a line of names, one row for the run, then one row a class; or the rows of the job itself, such as a row
//! for each cell of a search matrix.
//!
//! The columns are documented in `docs/report.md`; new ones are only ever added at the end. A field that a
//! class does not have (the schedule's columns) is empty.

use crate::forms::Forms;
use plimsoll_core::histogram::LatencySummary;
use plimsoll_record::{Latencies, RunRecord};

/// Names of the columns before the times.
const HEAD: [&str; 17] = [
    "run_id",
    "job",
    "started_at",
    "scope",
    "class",
    "verdict",
    "duration_s",
    "scheduled",
    "sent",
    "ok",
    "failed",
    "refused",
    "unsent",
    "unfinished",
    "offered_per_s",
    "achieved_per_s",
    "ok_per_s",
];
/// Each of `response`, `service`, `failed` and `lag` has these columns, in milliseconds but for the count.
const TIMES: [&str; 9] =
    ["count", "min_ms", "mean_ms", "p50_ms", "p90_ms", "p95_ms", "p99_ms", "p99_9_ms", "max_ms"];
const KINDS: [&str; 4] = ["response", "service", "failed", "lag"];
const TAIL: [&str; 4] = ["zero_hits", "hits_known", "bytes_sent", "bytes_received"];

/// All names of columns, in order.
#[must_use]
pub fn columns() -> Vec<String> {
    let times = KINDS.iter().flat_map(|kind| TIMES.iter().map(move |t| format!("{kind}_{t}")));
    let own = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>();
    own(&HEAD).into_iter().chain(times).chain(own(&TAIL)).collect()
}

/// Returns the record as CSV (RFC 4180 quoting, `\n` line ends), as the first of `jobs` writes it that has rows of its own.
#[must_use]
pub fn render(record: &RunRecord, jobs: &[Forms]) -> String {
    if let Some(rows) = jobs.iter().find_map(|job| (job.csv)(record)) {
        return written(rows);
    }
    let rows = std::iter::once(columns())
        .chain(std::iter::once(run_row(record)))
        .chain(class_names(record).map(|name| class_row(record, name)));
    written(rows)
}

fn written(rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in rows {
        writer.write_record(&row).expect("rows have one length, and memory takes all bytes");
    }
    let bytes = writer.into_inner().expect("memory takes all bytes");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The classes in the workload's order; records of other writers may lack it.
fn class_names(record: &RunRecord) -> impl Iterator<Item = &str> {
    let ordered = record.class_names.iter().filter(|name| record.classes.contains_key(*name));
    let rest = record.classes.keys().filter(|name| !record.class_names.contains(name));
    ordered.chain(rest).map(String::as_str)
}

fn run_row(record: &RunRecord) -> Vec<String> {
    let ledger = &record.ledger;
    let mut row = first_fields(record, "run", "");
    row.extend([
        ledger.scheduled.to_string(),
        ledger.sent.to_string(),
        ledger.ok.to_string(),
        ledger.failed.total().to_string(),
        (ledger.refused.queue_full + ledger.refused.queue_timeout).to_string(),
        ledger.unsent.stopped.to_string(),
        ledger.unfinished.to_string(),
        record.rate.offered_per_s.to_string(),
        record.rate.achieved_per_s.to_string(),
        record.rate.ok_per_s.to_string(),
    ]);
    row.extend(times(&record.latency_ms, Some(&record.generator.lag_ms)));
    row.extend([
        record.classes.values().map(|c| c.zero_hits).sum::<u64>().to_string(),
        record.classes.values().map(|c| c.hits_known).sum::<u64>().to_string(),
        record.bytes.sent.to_string(),
        record.bytes.received.to_string(),
    ]);
    row
}

fn class_row(record: &RunRecord, name: &str) -> Vec<String> {
    let class = &record.classes[name];
    let finished = class.ok + class.failed.total();
    // What ended after the measured stretch is in no rate; classes share the run's by what they ended.
    let ended = record.ledger.finished();
    let share = if ended > 0 { finished as f64 / ended as f64 } else { 0.0 };
    let achieved = record.rate.achieved_per_s * share;
    let mut row = first_fields(record, "class", name);
    row.extend([
        String::new(),
        class.sent.to_string(),
        class.ok.to_string(),
        class.failed.total().to_string(),
        String::new(),
        String::new(),
        class.sent.saturating_sub(finished).to_string(),
        String::new(),
        achieved.to_string(),
        class.ok_per_s.to_string(),
    ]);
    row.extend(times(&class.latency_ms, None));
    row.extend([
        class.zero_hits.to_string(),
        class.hits_known.to_string(),
        String::new(),
        String::new(),
    ]);
    row
}

fn first_fields(record: &RunRecord, scope: &str, class: &str) -> Vec<String> {
    vec![
        record.run_id.clone(),
        record.job.clone(),
        record.started_at.clone(),
        scope.to_owned(),
        class.to_owned(),
        record.verdict.kind.name().to_owned(),
        record.duration_s.to_string(),
    ]
}

fn times(latencies: &Latencies, lag: Option<&LatencySummary>) -> Vec<String> {
    let fields = |t: &LatencySummary| {
        let values = [t.min, t.mean, t.p50, t.p90, t.p95, t.p99, t.p99_9, t.max];
        std::iter::once(t.count.to_string()).chain(values.map(|v| v.to_string())).collect()
    };
    let empty = || vec![String::new(); TIMES.len()];
    let all: [Vec<String>; KINDS.len()] = [
        fields(&latencies.response),
        fields(&latencies.service),
        fields(&latencies.failed),
        lag.map_or_else(empty, fields),
    ];
    all.concat()
}

#[cfg(test)]
mod tests;
