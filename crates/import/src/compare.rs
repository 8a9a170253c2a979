//! Two records side by side, of which at least one was imported: the figures that both have.

use plimsoll_core::histogram::LatencySummary;
use plimsoll_core::verdict::VerdictKind;
use plimsoll_record::RunRecord;
use plimsoll_report::forms::Compared;
use plimsoll_report::number::{significant, time};
use serde::Serialize;
use serde_json::json;

/// One figure of both records; `None` is unknown.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Row {
    figure: String,
    unit: &'static str,
    a: Option<f64>,
    b: Option<f64>,
    /// Change from A to B, %.
    change_pct: Option<f64>,
}

/// Compares two records if one was imported. The other can be of any job that measures at one load.
#[must_use]
pub fn compare(a: &RunRecord, b: &RunRecord) -> Option<Compared> {
    let is_import = |record: &RunRecord| record.job_results.import().is_some();
    let is_load = |record: &RunRecord| {
        is_import(record) || matches!(record.job.as_str(), "load" | "fbench" | "run")
    };
    if !(is_import(a) || is_import(b)) || !is_load(a) || !is_load(b) {
        return None;
    }
    let mut rows = vec![
        row("ok", "/s", |r| r.known("rate.ok_per_s", r.rate.ok_per_s), a, b),
        row("achieved", "/s", |r| r.known("rate.achieved_per_s", r.rate.achieved_per_s), a, b),
        row("failed", "%", failed_percent, a, b),
    ];
    for kind in ["response", "service"] {
        rows.extend(times(kind, a, b));
    }
    rows.retain(|row| row.a.is_some() || row.b.is_some());
    let notes = notes(a, b);
    let text = text(&rows, &notes);
    Some(Compared {
        key: "figures",
        origins: [origin(a), origin(b)],
        value: json!({ "figures": rows, "notes": notes }),
        text,
    })
}

fn origin(record: &RunRecord) -> String {
    match record.job_results.import() {
        Some(import) => format!("imported, measured by {}", import.source()),
        None => "measured".to_owned(),
    }
}

fn row(
    figure: &str,
    unit: &'static str,
    of: impl Fn(&RunRecord) -> Option<f64>,
    a: &RunRecord,
    b: &RunRecord,
) -> Row {
    let known = |record: &RunRecord| of(record).filter(|value| value.is_finite());
    let (a, b) = (known(a), known(b));
    let change_pct =
        a.zip(b).filter(|(a, _)| *a > 0.0 && unit != "%").map(|(a, b)| (b - a) / a * 100.0);
    Row { figure: figure.to_owned(), unit, a, b, change_pct }
}

fn failed_percent(record: &RunRecord) -> Option<f64> {
    let sent = record.known("ledger.sent", record.ledger.sent).filter(|sent| *sent > 0)?;
    let failed = match record.job_results.import() {
        Some(import) => import.failed?,
        None => record.ledger.failed.total(),
    };
    Some(failed as f64 * 100.0 / sent as f64)
}

/// One of the figures of a summary, ms.
type Point = fn(&LatencySummary) -> f64;

/// The times of one kind, if both records have it.
fn times(kind: &'static str, a: &RunRecord, b: &RunRecord) -> Vec<Row> {
    let of = |record: &RunRecord| -> Option<LatencySummary> {
        let times = match kind {
            "response" => record.latency_ms.response,
            _ => record.latency_ms.service,
        };
        let is_empty = times.count == 0 && record.is_known(&format!("latency_ms.{kind}.count"));
        (record.is_known(&format!("latency_ms.{kind}")) && !is_empty).then_some(times)
    };
    if of(a).is_none() || of(b).is_none() {
        return Vec::new();
    }
    let points: [(&str, Point); 8] = [
        ("min", |t| t.min),
        ("mean", |t| t.mean),
        ("p50", |t| t.p50),
        ("p90", |t| t.p90),
        ("p95", |t| t.p95),
        ("p99", |t| t.p99),
        ("p99_9", |t| t.p99_9),
        ("max", |t| t.max),
    ];
    let one = |(name, point): (&str, Point)| {
        let known = |record: &RunRecord| {
            let times = of(record)?;
            record.known(&format!("latency_ms.{kind}.{name}"), point(&times))
        };
        row(&format!("{kind} {}", name.replace('_', ".")), "ms", known, a, b)
    };
    points.into_iter().map(one).collect()
}

/// Reasons for figures that differ though the target does not.
fn notes(a: &RunRecord, b: &RunRecord) -> Vec<String> {
    let mut notes = Vec::new();
    let has = |record: &RunRecord, kind: &str| record.is_known(&format!("latency_ms.{kind}"));
    for kind in ["response", "service"] {
        for (mark, with, without) in [("A", a, b), ("B", b, a)] {
            if has(with, kind) && !has(without, kind) {
                notes.push(format!("only {mark} has {kind} times; they are not compared"));
            }
        }
    }
    for (mark, record) in [("A", a), ("B", b)] {
        match record.job_results.import() {
            Some(import) => {
                if !import.times_from.is_empty() {
                    notes.push(format!("{mark}: times from {}", import.times_from));
                }
                if import.times_of == "all" && import.failed.is_some_and(|failed| failed > 0) {
                    notes.push(format!("{mark}: times include those of failed requests"));
                }
            }
            None if record.verdict.kind != VerdictKind::Valid => {
                notes.push(format!("{mark}: the record is {}", record.verdict.kind.name()));
            }
            None => {}
        }
    }
    notes
}

fn text(rows: &[Row], notes: &[String]) -> String {
    let shown = |value: Option<f64>, unit: &str| match (value, unit) {
        (None, _) => "unknown".to_owned(),
        (Some(value), "ms") => time(value),
        (Some(value), "/s") => format!("{}/s", significant(value)),
        (Some(value), unit) => format!("{} {unit}", significant(value)),
    };
    let mut text = format!("{:<16}{:>14}{:>14}{:>12}\n", "", "A", "B", "B against A");
    for row in rows {
        let change = row.change_pct.map_or("-".to_owned(), |pct| format!("{pct:+.1} %"));
        text += &format!(
            "{:<16}{:>14}{:>14}{change:>12}\n",
            row.figure,
            shown(row.a, row.unit),
            shown(row.b, row.unit)
        );
    }
    if !notes.is_empty() {
        text.push('\n');
    }
    for note in notes {
        text += &format!("{note}\n");
    }
    text
}
