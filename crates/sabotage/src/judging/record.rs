//! The statements of a record about its own run.

use super::{FIGURES, Four, Range, Reported};
use serde_json::Value;

/// Reads what matters from a `run.json`.
#[must_use]
pub fn read(record: &Value) -> Reported {
    let text = |pointer: &str| record.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let number =
        |pointer: &str| record.pointer(pointer).and_then(Value::as_f64).unwrap_or_default();
    let reasons = record.pointer("/verdict/reasons").and_then(Value::as_array);
    let limits = record.get("slo").and_then(Value::as_object);
    Reported {
        kind: text("/verdict/kind").to_owned(),
        reasons: reasons
            .into_iter()
            .flatten()
            .filter_map(|reason| reason.as_str().map(str::to_owned))
            .collect(),
        ok: number("/ledger/ok") as u64,
        figures: [
            number("/latency_ms/response/p50"),
            number("/latency_ms/response/p95"),
            number("/latency_ms/response/p99"),
            number("/rate/ok_per_s"),
        ],
        bounds: bounds(record),
        balances: balances(record),
        limits: limits
            .into_iter()
            .flatten()
            .map(|(name, limit)| (name.clone(), limit["held"].as_bool().unwrap_or(false)))
            .collect(),
    }
}

fn bounds(record: &Value) -> Option<Four<Range>> {
    let bounds = record.pointer("/verdict/bounds")?;
    // Rates and times beyond every number are written as null.
    let end = |value: &Value, other: f64| value.as_f64().unwrap_or(other);
    Some(FIGURES.map(|name| Range {
        low: bounds.get(name).map_or(f64::NAN, |both| end(&both[0], 0.0)),
        high: bounds.get(name).map_or(f64::NAN, |both| end(&both[1], f64::INFINITY)),
    }))
}

/// scheduled = sent + refused + unsent, and sent = ok + failed + unfinished.
fn balances(record: &Value) -> bool {
    let ledger = &record["ledger"];
    let sum = |value: &Value| -> u64 {
        value.as_object().map_or(0, |parts| parts.values().filter_map(Value::as_u64).sum())
    };
    let count = |name: &str| ledger[name].as_u64().unwrap_or(0);
    let begun = count("sent") + sum(&ledger["refused"]) + sum(&ledger["unsent"]);
    let ended = count("ok") + sum(&ledger["failed"]) + count("unfinished");
    ledger["scheduled"].is_u64() && count("scheduled") == begun && count("sent") == ended
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn record() -> Value {
        json!({
            "ledger": {"scheduled": 10, "sent": 8, "ok": 5, "refused": {"queue_full": 1, "queue_timeout": 0},
                       "unsent": {"stopped": 1}, "failed": {"reset": 2}, "unfinished": 1},
            "latency_ms": {"response": {"p50": 1.0, "p95": 2.0, "p99": 3.0}},
            "rate": {"ok_per_s": 4.0},
            "slo": {"p95": {"limit": 5.0, "held": false}},
            "verdict": {"kind": "valid", "reasons": ["p99 may be 1 ms too high"],
                        "bounds": {"p50_ms": [1.0, 1.0], "p95_ms": [2.0, 2.0], "p99_ms": [2.0, 3.0],
                                   "ok_per_s": [4.0, null]}}
        })
    }

    #[test]
    fn a_record_is_read() {
        let reported = read(&record());
        assert_eq!((reported.kind.as_str(), reported.ok, reported.balances), ("valid", 5, true));
        assert_eq!(reported.figures, [1.0, 2.0, 3.0, 4.0]);
        let bounds = reported.bounds.unwrap();
        assert_eq!(bounds[2], Range { low: 2.0, high: 3.0 });
        assert_eq!(bounds[3], Range { low: 4.0, high: f64::INFINITY });
        assert_eq!(reported.limits, [("p95".to_owned(), false)]);
    }

    #[test]
    fn books_that_do_not_balance_are_seen() {
        for (pointer, value) in [("/ledger/sent", 9), ("/ledger/ok", 4), ("/ledger/scheduled", 9)] {
            let mut cooked = record();
            *cooked.pointer_mut(pointer).unwrap() = json!(value);
            assert!(!read(&cooked).balances, "{pointer}");
        }
        assert!(!read(&json!({})).balances);
        assert!(read(&json!({})).bounds.is_none());
    }
}
