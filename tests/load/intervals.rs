//! The intervals of percentiles, in record and page.

use super::record;
use crate::process::Place;
use crate::record::Record;
use serde_json::Value;

const KEYS: [&str; 5] = ["p50", "p90", "p95", "p99", "p99_9"];
/// A pause of the machine can be a trend. One quiet run is enough.
const TRIES: usize = 2;

fn has_interval(record: &Record, key: &str) -> bool {
    record.0["intervals"][key].get("low").is_some()
}

/// A queue that is half busy forgets its state within 10 ms, so that half a minute tells much of it.
#[test]
fn a_run_of_half_a_minute_has_intervals() {
    let place = Place::quiet_for_long();
    let target =
        place.serve(&["queue", "--servers", "1", "--service", "exponential:1ms", "--rate", "400"]);
    let flags = ["--rate", "400", "--arrivals", "poisson", "--duration", "31s"];
    let run = || {
        let ended = super::load(&place, &target.url, &flags);
        Record::of(&ended)
    };
    let record = (0..TRIES).map(|_| run()).find(|record| has_interval(record, "p50"));
    let record = record.expect("no run had an interval of p50");
    record.expect_schema();
    for key in KEYS {
        if !has_interval(&record, key) {
            assert!(!record.text(&format!("/intervals/{key}/reason")).is_empty());
            continue;
        }
        let figure = |field: &str| record.number(&format!("/intervals/{key}/{field}"));
        let estimate = record.number(&format!("/latency_ms/response/{key}"));
        assert_eq!((figure("estimate"), figure("confidence")), (estimate, 0.95));
        assert!(figure("low") <= estimate && estimate <= figure("high"), "{:?}", record.0);
        assert!(figure("batches") >= 30.0);
    }
    let text = place.run(["report"]).expect(0).stdout;
    assert!(text.contains("95 % intervals: p50 "), "{text}");
    let page = place.run(["report", "--format", "html"]).expect(0).stdout;
    assert!(page.contains("95 % confidence intervals") && page.contains("/intervals/p50/high"));
}

#[test]
fn a_run_of_two_seconds_says_why_it_has_none() {
    let place = Place::new();
    let target = place.serve(&["null"]);
    let record = record(&place, &target.url, &["--rate", "100", "--duration", "2s"], 0);
    record.expect_schema();
    for key in KEYS {
        let reason = record.0["intervals"][key]["reason"].as_str().unwrap_or_default();
        assert_eq!(reason, "a run of 2 s is too short; it takes 30 s");
    }
    let text = place.run(["report"]).expect(0).stdout;
    assert_eq!(text.matches("no 95 % interval: a run of 2 s is too short").count(), 1, "{text}");
}

#[test]
fn a_rate_that_changes_has_no_interval() {
    let place = Place::new();
    let target = place.serve(&["null"]);
    let flags = ["--rate-profile", "50-100:1s"];
    let record = record(&place, &target.url, &flags, 0);
    assert_eq!(record.text("/intervals/p50/reason"), "the load changes during the run");
    assert!(!matches!(record.0.pointer("/intervals/p99"), None | Some(Value::Null)));
}
