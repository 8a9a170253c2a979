//! Figures that the source of an import does not give, in words.

use plimsoll_record::RunRecord;
use plimsoll_record::import::ImportResult;

/// True if the source has times of this kind: `response`, `service` or `failed`.
pub fn has_times(record: &RunRecord, kind: &str) -> bool {
    let times = match kind {
        "response" => &record.latency_ms.response,
        "service" => &record.latency_ms.service,
        _ => &record.latency_ms.failed,
    };
    let is_empty = times.count == 0 && record.is_known(&format!("latency_ms.{kind}.count"));
    record.is_known(&format!("latency_ms.{kind}")) && !is_empty
}

/// All of them, a line for each part of the page.
pub fn all(record: &RunRecord, import: &ImportResult) -> Vec<String> {
    let mut lines = times(record, import);
    let lacks = |all: &[(&'static str, &'static str)]| -> Vec<&'static str> {
        let lacking = all.iter().filter(|(path, _)| !record.is_known(path));
        lacking.map(|(_, name)| *name).collect()
    };
    let mut ledger = lacks(&[
        ("ledger.scheduled", "scheduled"),
        ("ledger.sent", "sent"),
        ("ledger.ok", "ok"),
        ("ledger.refused", "refused"),
        ("ledger.unsent", "unsent"),
        ("ledger.unfinished", "unfinished"),
    ]);
    match import.failed {
        None => ledger.push("failed"),
        Some(1..) if !record.is_known("ledger.failed") && import.failures.is_empty() => {
            ledger.push("kinds of the failures");
        }
        Some(_) => {}
    }
    if !ledger.is_empty() {
        lines.push(format!("ledger: {}", ledger.join(", ")));
    }
    let rest = lacks(&[
        ("rate.offered_per_s", "offered rate"),
        ("rate.achieved_per_s", "achieved rate"),
        ("rate.ok_per_s", "rate of successful requests"),
        ("statuses", "replies by status"),
        ("bytes.sent", "bytes sent"),
        ("bytes.received", "bytes received"),
    ]);
    if !rest.is_empty() {
        lines.push(rest.join(", "));
    }
    lines.push("lag, CPU and health of the generator".to_owned());
    lines
}

/// Kinds of times that are unknown, and points of the others.
fn times(record: &RunRecord, import: &ImportResult) -> Vec<String> {
    if import.times.is_empty() {
        return vec!["response time, service time".to_owned()];
    }
    let mut lines = Vec::new();
    for kind in ["response", "service"] {
        if record.is_known(&format!("latency_ms.{kind}")) {
            let points = points(record, kind);
            if !points.is_empty() {
                lines.push(format!("{kind} time: {}", points.join(", ")));
            }
        } else if kind == "response" {
            lines.push(
                "response time: waiting before the send is in no figure (coordinated omission)"
                    .to_owned(),
            );
        } else {
            lines.push("service time".to_owned());
        }
    }
    lines
}

fn points(record: &RunRecord, kind: &str) -> Vec<&'static str> {
    let all = ["count", "min", "mean", "p50", "p90", "p95", "p99", "p99.9", "max"];
    let lacks = |point: &&str| {
        let field = point.replace('.', "_");
        !record.is_known(&format!("latency_ms.{kind}.{field}"))
    };
    all.into_iter().filter(lacks).collect()
}
