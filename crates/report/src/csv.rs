//! The record as CSV: a line of names, one row for the run, then one row a class; or the rows of the job itself, such as a row
//! for each cell of a search matrix.
//!
//! The columns are documented in `docs/report.md`; new ones are only ever added at the end. A field that a
//! class does not have (the schedule's columns) is empty, and so is one that the source of an import does not give.

use crate::forms::Forms;
use crate::plain::printable;
use plimsoll_core::histogram::LatencySummary;
use plimsoll_record::{Latencies, RunRecord};
use std::borrow::Cow;

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
    let server = TIMES.iter().map(|t| format!("server_{t}"));
    own(&HEAD).into_iter().chain(times).chain(own(&TAIL)).chain(server).collect()
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
        writer
            .write_record(row.iter().map(|cell| inert(cell).into_owned()))
            .expect("rows have one length, and memory takes all bytes");
    }
    let bytes = writer.into_inner().expect("memory takes all bytes");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A cell that a spreadsheet shows and does not calculate, and that steers no terminal: names come from elsewhere. A text that
/// begins like a formula gets an apostrophe in front. The end of a line stays one: CSV has quotes for it.
fn inert(cell: &str) -> Cow<'_, str> {
    let is_formula =
        cell.starts_with(['=', '+', '-', '@', '\t', '\r']) && cell.parse::<f64>().is_err();
    let shown = cell.split('\n').map(printable).collect::<Vec<_>>().join("\n");
    match (is_formula, shown) {
        (true, shown) => Cow::Owned(format!("'{shown}")),
        (false, shown) if shown == cell => Cow::Borrowed(cell),
        (false, shown) => Cow::Owned(shown),
    }
}

/// The classes in the workload's order; records of other writers may lack it.
fn class_names(record: &RunRecord) -> impl Iterator<Item = &str> {
    let ordered = record.class_names.iter().filter(|name| record.classes.contains_key(*name));
    let rest = record.classes.keys().filter(|name| !record.class_names.contains(name));
    ordered.chain(rest).map(String::as_str)
}

fn run_row(record: &RunRecord) -> Vec<String> {
    let ledger = &record.ledger;
    let rate = &record.rate;
    let known = Known { record };
    let mut row = first_fields(record, "run", "");
    row.extend([
        known.field("ledger.scheduled", ledger.scheduled),
        known.field("ledger.sent", ledger.sent),
        known.field("ledger.ok", ledger.ok),
        known.failed("ledger", ledger.failed.total()),
        known.field("ledger.refused", ledger.refused.queue_full + ledger.refused.queue_timeout),
        known.field("ledger.unsent", ledger.unsent.stopped),
        known.field("ledger.unfinished", ledger.unfinished),
        known.field("rate.offered_per_s", rate.offered_per_s),
        known.field("rate.achieved_per_s", rate.achieved_per_s),
        known.field("rate.ok_per_s", rate.ok_per_s),
    ]);
    row.extend(times(&known, "latency_ms", &record.latency_ms, Some(&record.generator.lag_ms)));
    let zero_hits = record.classes.values().map(|c| c.zero_hits).sum::<u64>();
    let hits_known = record.classes.values().map(|c| c.hits_known).sum::<u64>();
    row.extend([
        known.field("classes.*.zero_hits", zero_hits),
        known.field("classes.*.hits_known", hits_known),
        known.field("bytes.sent", record.bytes.sent),
        known.field("bytes.received", record.bytes.received),
    ]);
    row.extend(server(&known, "latency_ms", &record.latency_ms));
    row
}

/// Fields of a record; one that is unknown is an empty cell.
struct Known<'a> {
    record: &'a RunRecord,
}

impl Known<'_> {
    fn field(&self, path: &str, value: impl ToString) -> String {
        if self.record.is_known(path) { value.to_string() } else { String::new() }
    }

    /// All failures of the run or of a class. Their number can be known without their kinds.
    fn failed(&self, of: &str, failed: u64) -> String {
        let sum = [format!("{of}.sent"), format!("{of}.ok")];
        let is_counted = match (self.record.job_results.import(), of) {
            (Some(import), "ledger") => import.failed.is_some(),
            _ => sum.iter().all(|path| self.record.is_known(path)),
        };
        if is_counted { failed.to_string() } else { String::new() }
    }
}

fn class_row(record: &RunRecord, name: &str) -> Vec<String> {
    let class = &record.classes[name];
    let finished = class.ok + class.failed.total();
    // What ended after the measured stretch is in no rate; classes share the run's by what they ended.
    let ended = record.ledger.finished();
    let share = if ended > 0 { finished as f64 / ended as f64 } else { 0.0 };
    let achieved = record.rate.achieved_per_s * share;
    let known = Known { record };
    let counts = known.record.is_known("classes.*.sent") && known.record.is_known("classes.*.ok");
    let mut row = first_fields(record, "class", name);
    row.extend([
        String::new(),
        known.field("classes.*.sent", class.sent),
        known.field("classes.*.ok", class.ok),
        known.failed("classes.*", class.failed.total()),
        String::new(),
        String::new(),
        match counts && record.is_known("ledger.unfinished") {
            true => class.sent.saturating_sub(finished).to_string(),
            false => String::new(),
        },
        String::new(),
        match counts {
            true => known.field("rate.achieved_per_s", achieved),
            false => String::new(),
        },
        known.field("classes.*.ok_per_s", class.ok_per_s),
    ]);
    row.extend(times(&known, "classes.*.latency_ms", &class.latency_ms, None));
    row.extend([
        known.field("classes.*.zero_hits", class.zero_hits),
        known.field("classes.*.hits_known", class.hits_known),
        String::new(),
        String::new(),
    ]);
    row.extend(server(&known, "classes.*.latency_ms", &class.latency_ms));
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
        Known { record }.field("duration_s", record.duration_s),
    ]
}

/// The server's own times; empty unless they were asked for.
fn server(known: &Known<'_>, path: &str, latencies: &Latencies) -> Vec<String> {
    let of = |times| fields(known, &format!("{path}.server"), times);
    latencies.server.as_ref().map_or_else(|| vec![String::new(); TIMES.len()], of)
}

/// Count and times of one kind; `path` is their place in the record.
fn fields(known: &Known<'_>, path: &str, t: &LatencySummary) -> Vec<String> {
    let values = [
        ("min", t.min),
        ("mean", t.mean),
        ("p50", t.p50),
        ("p90", t.p90),
        ("p95", t.p95),
        ("p99", t.p99),
        ("p99_9", t.p99_9),
        ("max", t.max),
    ];
    let count = known.field(&format!("{path}.count"), t.count);
    let value = |(name, v): (&str, f64)| known.field(&format!("{path}.{name}"), v);
    std::iter::once(count).chain(values.map(value)).collect()
}

/// The columns of all times; `path` is the place of the latencies in the record.
fn times(
    known: &Known<'_>,
    path: &str,
    latencies: &Latencies,
    lag: Option<&LatencySummary>,
) -> Vec<String> {
    let fields = |path: &str, t: &LatencySummary| fields(known, path, t);
    let empty = || vec![String::new(); TIMES.len()];
    let all: [Vec<String>; KINDS.len()] = [
        fields(&format!("{path}.response"), &latencies.response),
        fields(&format!("{path}.service"), &latencies.service),
        fields(&format!("{path}.failed"), &latencies.failed),
        lag.map_or_else(empty, |lag| fields("generator.lag_ms", lag)),
    ];
    all.concat()
}

#[cfg(test)]
mod tests;
