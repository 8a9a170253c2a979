//! Assertions against records whose figures are known.

use super::*;
use crate::{Generator, Latencies, Rates};
use plimsoll_core::ledger::Ledger;
use plimsoll_core::verdict::Verdict;

/// A record of two classes: `fast` with 90 requests of 1 to 90 ms, `slow` with 10 of 100 ms, of which 4 failed; 5 more were
/// refused.
fn record() -> RunRecord {
    let value = serde_json::json!({
        "schema": "plimsoll.run/1", "tool": {"version": "", "commit": ""}, "run_id": "", "job": "load",
        "started_at": "", "duration_s": 10.0, "scenario": {"timeout": "2s"}, "target": {"url": "", "same_host": true},
        "machine": {"cpu": "", "cpus": 1, "memory_bytes": 0, "kernel": "", "os": "", "hostname": ""},
        "ledger": Ledger::default(), "rate": Rates::default(),
        "bytes": {"sent": 0, "received": 0}, "latency_ms": Latencies::default(),
        "generator": Generator::default(), "verdict": Verdict::default(),
        "warnings": [], "classes": {}, "class_names": [], "phases": [], "slo": {}, "statuses": {},
        "counters": plimsoll_core::interval::Counters::default(), "slowest": [], "histograms": {}
    });
    let mut record: RunRecord = serde_json::from_value(value).unwrap();
    let mut all = Histogram::new();
    for (name, sent, ok, times_ms) in
        [("fast", 90, 90, (1..=90).collect::<Vec<u64>>()), ("slow", 10, 6, vec![100; 6])]
    {
        let mut times = Histogram::new();
        times_ms.iter().for_each(|ms| times.record(ms * 1_000_000));
        all.merge(&times);
        let mut class =
            ClassRecord { sent, ok, ok_per_s: ok as f64 / 10.0, ..ClassRecord::default() };
        class.latency_ms.response = times.summary();
        class.latency_ms.service = times.summary();
        record.classes.insert(name.to_owned(), class);
        record.histograms.insert(format!("{name}/response"), times.encode());
        record.histograms.insert(format!("{name}/service"), times.encode());
    }
    record.ledger.scheduled = 105;
    record.ledger.ok = 96;
    record.rate.ok_per_s = 9.6;
    record.latency_ms.response = all.summary();
    record.latency_ms.service = all.summary();
    record
}

#[track_caller]
fn held(text: &str) -> Vec<bool> {
    let assertion: Assertion = text.parse().unwrap_or_else(|error| panic!("{error}"));
    assertion.judge(&record()).iter().map(|result| result.held).collect()
}

#[test]
fn scopes_metrics_and_conditions() {
    for (text, expected) in [
        ("global p90 <= 101ms", vec![true]),
        ("global p90 < 90ms", vec![false]),
        // 9 of 105 did not succeed: the 92nd percentile and all above it are later than anything.
        ("global p95 < 500ms", vec![false]),
        ("global p95 < 1h", vec![false]),
        ("global p95 >= 2s", vec![true]),
        ("global p95 is 2s", vec![false]),
        ("global max < 1h", vec![false]),
        ("global mean > 200ms", vec![true]),
        ("global mean < 300ms", vec![true]),
        // What was never sent has no service time: 4 of 100 are left.
        ("global service.p95 <= 101ms", vec![true]),
        ("global service.p97 <= 101ms", vec![false]),
        ("global p50 between 52ms and 54ms", vec![true]),
        ("class fast max is 90ms", vec![true]),
        ("class fast max < 90ms", vec![false]),
        ("global min around 1ms by 10us", vec![true]),
        ("class fast mean deviates 47ms by 5%", vec![true]),
        ("class fast mean deviates 50ms by 5%", vec![false]),
        ("class slow mean > 850ms", vec![true]),
        ("class slow p60 <= 101ms", vec![true]),
        ("class slow p61 <= 1h", vec![false]),
        ("class slow stddev < 1ms", vec![true]),
        ("class fast stddev between 25ms and 27ms", vec![true]),
        ("class fast service.p99 >= 89ms", vec![true]),
        ("each p99 < 95ms", vec![true, false]),
        ("each class failed.percent <= 1%", vec![true, false]),
        ("global requests is 105", vec![true]),
        ("global requests in 100, 105, 110", vec![true]),
        ("global failed.count is 9", vec![true]),
        ("global failed.percent < 9%", vec![true]),
        ("global failed.percent < 8.5%", vec![false]),
        ("global ok.percent >= 91", vec![true]),
        ("class slow ok.count > 6", vec![false]),
        ("class slow failed is 4", vec![true]),
        ("global rate between 9/s and 10/s", vec![true]),
        ("class slow rate <= 0.6/s", vec![true]),
        ("class absent requests is 0", vec![true]),
        ("class absent p95 < 1s", vec![false]),
        ("class absent failed.percent is 0", vec![false]),
    ] {
        assert_eq!(held(text), expected, "{text}");
    }
}

#[test]
fn a_result_says_what_was_asked_and_what_was_found() {
    let assertion: Assertion = "each   p99.9<95ms".parse().unwrap();
    let results = assertion.judge(&record());
    let slow = &results[1];
    assert_eq!((slow.scope.as_str(), slow.metric.as_str()), ("class slow", "p99.9"));
    assert_eq!((slow.condition.as_str(), slow.unit.as_str()), ("< 95ms", "ms"));
    assert!((slow.actual.unwrap() - 2_000.0).abs() < 2.0 && !slow.held, "{slow:?}");
    assert!(slow.at_least && !results[0].at_least, "a failure of this class is among them");
    let missing: Assertion = "class absent p95 < 1s".parse().unwrap();
    assert_eq!(missing.judge(&record())[0].actual, None);
}

#[test]
fn a_damaged_histogram_of_requests_that_failed_leaves_their_times_unknown() {
    for name in ["slow/failed", "unserved"] {
        let mut record = record();
        record.histograms.insert(name.to_owned(), "damaged".to_owned());
        let judge = |text: &str| text.parse::<Assertion>().unwrap().judge(&record).remove(0);
        for text in ["global mean > 1ms", "global p95 >= 1ms", "global max >= 1ms"] {
            let result = judge(text);
            assert_eq!((result.actual, result.held), (None, false), "{name}: {text}");
        }
        assert!(judge("class fast p95 >= 1ms").held, "{name}: no time of this class comes from it");
    }
}

/// One request is not answered by the end, after 100 s: it counts with its wait, as for a limit of `--slo`.
#[test]
fn the_wait_of_an_unfinished_request_is_in_the_mean() {
    let mut record = record();
    record.ledger.scheduled = 100;
    let mut waited = Histogram::new();
    waited.record(100_000_000_000);
    record.histograms.insert("unserved".to_owned(), waited.encode());
    let assertion: Assertion = "global mean between 1.1s and 1.11s".parse().unwrap();
    let results = assertion.judge(&record);
    assert!(results[0].held, "{results:?}");
}
