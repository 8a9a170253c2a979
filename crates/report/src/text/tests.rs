use super::verdict::{headline_points, samples_needed};
use super::*;
use crate::assemble::Ending;
use crate::samples;
use insta::assert_snapshot;

fn plain(record: &RunRecord) -> String {
    let folder = Path::new("runs/20261121T204822.123Z-load-1a2b3c4d");
    render(record, Some(folder), &Style::default(), &[])
}

#[test]
fn a_good_run() {
    assert_snapshot!(plain(&samples::good()));
}

#[test]
fn a_good_run_on_a_narrow_page_stays_within_it() {
    let style = Style { width: 64, ..Style::default() };
    let text = render(&samples::good(), None, &style, &[]);
    for line in text.lines() {
        assert!(line.chars().count() <= 64, "{line}");
    }
    assert_snapshot!(text);
}

#[test]
fn a_run_in_which_everything_failed() {
    assert_snapshot!(plain(&samples::failed()));
}

#[test]
fn the_headline_names_what_was_never_answered() {
    let mut record = samples::good();
    let headline = |record: &RunRecord| plain(record).lines().nth(3).unwrap().to_owned();
    assert!(!headline(&record).contains("unfinished"));
    record.ledger.unfinished = record.ledger.sent * 3 / 5;
    record.ledger.ok = record.ledger.sent - record.ledger.unfinished;
    record.rate.ok_per_s = record.rate.offered_per_s * 0.4;
    assert!(headline(&record).contains("60 % unfinished"), "{}", headline(&record));
}

#[test]
fn a_run_that_was_interrupted() {
    let mut seconds = samples::seconds();
    seconds.truncate(2);
    seconds[1].ledger.scheduled += 12;
    seconds[1].ledger.sent += 9;
    seconds[1].ledger.failed.timeout += 4;
    seconds[1].ledger.failed.reset += 2;
    seconds[1].ledger.unfinished += 3;
    seconds[1].ledger.unsent.stopped += 1;
    seconds[1].ledger.refused.queue_full += 2;
    let class = &mut seconds[1].classes[1];
    class.ledger.sent += 9;
    class.ledger.failed = Failed { timeout: 4, reset: 2, ..Failed::default() };
    for after_ms in [5_000, 5_000, 5_000, 5_000, 12, 14] {
        class.failed.record(after_ms * 1_000_000);
    }
    seconds[1].counters.ended_in_time += 6;
    let reason = "interrupted by Ctrl-C after 2.0 s of 20 s";
    let ending = Ending {
        verdict: samples::verdict(VerdictKind::Partial, reason),
        warnings: vec![
            "target and generator share this machine: they compete for its cores".into(),
        ],
        ..samples::ending()
    };
    assert_snapshot!(plain(&samples::record_of(&seconds, ending)));
}

#[test]
fn a_run_that_the_generator_limited() {
    let mut seconds = samples::seconds();
    for second in &mut seconds {
        second.ledger.scheduled += 900;
        second.ledger.unsent.stopped += 900;
    }
    let reason = "the busiest generator thread used 99 % of its core and p99 of lag is 48 ms; \
                  use more threads or more machines";
    let mut ending = samples::ending();
    ending.verdict = samples::verdict(VerdictKind::GeneratorLimited, reason);
    ending.generator.busiest_thread = 0.99;
    assert_snapshot!(plain(&samples::record_of(&seconds, ending)));
}

#[test]
fn a_target_that_falls_behind_is_named_beside_the_rate() {
    let mut seconds = samples::seconds();
    // 30 of 300 requests were waited for after the end: in the ledger, not in the rate.
    seconds[3].counters.ended_in_time -= 30;
    seconds[3].counters.ok_in_time -= 30;
    let mut record = samples::record_of(&seconds, samples::ending());
    assert_eq!((record.rate.offered_per_s, record.rate.ok_per_s), (100.0, 90.0));
    let classes: f64 = record.classes.values().map(|class| class.ok_per_s).sum();
    assert!((classes - 90.0).abs() < 1e-9);
    // In a closed model nothing can be behind: what is missing was in flight at the end.
    assert!(!plain(&record).contains("fell behind"));
    record.scenario["load"] = serde_json::json!({"model": "open", "rate_per_s": 100.0});
    assert!(plain(&record).contains("the target fell behind"), "{}", plain(&record));
    assert!(plain(&record).contains("90.0 ok/s of 100/s"), "{}", plain(&record));
    // As much as is in flight at any time is no backlog either.
    record.latency_ms.response.mean = 150.0;
    assert!(!plain(&record).contains("fell behind"));
}

#[test]
fn books_that_do_not_balance_void_the_run_in_words() {
    let mut seconds = samples::seconds();
    seconds[2].ledger.sent += 1;
    seconds[2].ledger.scheduled += 1;
    let text = plain(&samples::record_of(&seconds, samples::ending()));
    assert!(text.contains("VOID, do not use"), "{text}");
    assert!(text.contains("DOES NOT BALANCE"), "{text}");
    assert!(text.contains("Verdict    void: do not use these numbers"), "{text}");
}

#[test]
fn times_that_do_not_belong_to_the_ok_requests_void_the_run() {
    let mut seconds = samples::seconds();
    seconds[2].classes[0].response.record(1);
    let record = samples::record_of(&seconds, samples::ending());
    assert_eq!(record.verdict.kind, VerdictKind::Void);
}

#[test]
fn colour_only_adds_escapes() {
    let record = samples::good();
    let colour = Style { colour: true, ..Style::default() };
    let mut text = render(&record, None, &colour, &[]);
    assert!(text.contains("\u{1b}[32m"), "a valid verdict is green");
    for code in ["0", "1", "31", "32", "33"] {
        text = text.replace(&format!("\u{1b}[{code}m"), "");
    }
    assert_eq!(text, render(&record, None, &Style::default(), &[]));
}

#[test]
fn percentiles_need_samples() {
    let summary = |count| LatencySummary { count, ..LatencySummary::default() };
    let names =
        |count| headline_points(&summary(count)).iter().map(|point| point.0).collect::<Vec<_>>();
    assert_eq!(names(1), ["max"]);
    assert_eq!(names(9), ["p50", "max"]);
    assert_eq!(names(99), ["p50", "max"]);
    assert_eq!(names(100), ["p50", "p95", "p99"]);
    assert_eq!(samples_needed("p99.9"), 1_000);
}
