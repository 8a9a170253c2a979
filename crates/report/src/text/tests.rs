use super::*;
use crate::assemble::Ending;
use crate::forms::Forms;
use crate::number::samples_needed;
use crate::plain::columns_of;
use crate::samples;
use crate::sections::Course;
use insta::assert_snapshot;
use plimsoll_core::ledger::Failed;
use plimsoll_core::verdict::{Bounds, VerdictKind};
use plimsoll_record::{AssertionResult, ClassRecord, SloResult};

fn plain(record: &RunRecord) -> String {
    let folder = Path::new("runs/20261121T204822.123Z-load-1a2b3c4d");
    render(record, Some(folder), &Style::default(), &[])
}

fn verbose(record: &RunRecord, width: usize) -> String {
    render(record, None, &Style { width, verbose: true, ..Style::default() }, &[])
}

/// A page with its lines joined: where they break is not the matter.
fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_good_run() {
    assert_snapshot!(plain(&samples::good()));
}

#[test]
fn a_good_run_with_all_details() {
    assert_snapshot!(verbose(&samples::good(), 100));
}

#[test]
fn a_good_run_on_a_narrow_page_stays_within_it() {
    let text = verbose(&samples::good(), 64);
    for line in text.lines() {
        assert!(line.chars().count() <= 64, "{line}");
    }
    assert_snapshot!(text);
}

#[test]
fn the_outcome_is_said_first_and_once() {
    for text in [plain(&samples::good()), verbose(&samples::failed(), 100)] {
        assert!(text.starts_with("Result     "), "{text}");
        assert_eq!(text.matches("exit ").count(), 1, "{text}");
        assert!(!text.contains("\n\n\n") && !text.ends_with("\n\n"), "{text}");
    }
}

#[test]
fn a_limit_is_named_once_whether_it_held_or_not() {
    let slo = |measured, held| SloResult {
        limit: "100ms".to_owned(),
        measured,
        unit: "ms".to_owned(),
        held,
        ..SloResult::default()
    };
    let mut record = samples::good();
    record.slo = [("p50".to_owned(), slo(3.4, true)), ("p95".to_owned(), slo(612.0, false))].into();
    let text = plain(&record);
    assert!(text.starts_with("Result     MISSED p95: 612 ms > 100 ms, exit 2\n"), "{text}");
    assert!(text.contains("Held       p50 100ms: 3.40 ms\n"), "{text}");
    assert_eq!(text.matches("612").count(), 1, "{text}");
}

/// Many misses would bury the outcome in itself.
#[test]
fn the_outcome_names_the_first_misses_and_counts_the_others() {
    let one = |index: u64, held| AssertionResult {
        scope: "global".to_owned(),
        metric: format!("metric{index}"),
        condition: "< 1".to_owned(),
        actual: Some(index as f64),
        held,
        ..AssertionResult::default()
    };
    let mut record = samples::good();
    record.slo.clear();
    record.assertions = (0..7).map(|index| one(index, false)).collect();
    record.assertions.extend((7..20).map(|index| one(index, true)));
    let text = plain(&record);
    assert!(joined(&text).contains("metric3 < 1: 3.00; and 3 more, exit 2"), "{text}");
    for index in 0..7 {
        assert_eq!(text.matches(&format!("metric{index} ")).count(), 1, "{index}: {text}");
    }
    assert!(text.contains("Missed     global metric4") && text.contains("and 8 more"), "{text}");
    let text = verbose(&record, 100);
    assert!(text.contains("metric19") && !text.contains("and 8 more"), "{text}");
}

/// A page of 25,000 classes is read by nobody.
#[test]
fn the_heaviest_classes_have_lines_and_the_others_one_together() {
    let mut record = samples::good();
    let class = record.classes.values().next().unwrap().clone();
    let of = |index: u64| {
        let mut class = ClassRecord { sent: 10, ok: 9, ok_per_s: 3.0, ..class.clone() };
        class.failed = Failed { timeout: 1, ..Failed::default() };
        class.latency_ms.service.mean = index as f64;
        (format!("class{index}"), class)
    };
    record.classes = (0..25_000).map(of).collect();
    let text = plain(&record);
    assert!(text.lines().count() < 40, "{text}");
    assert!(text.contains("  class24999 ") && !text.contains("class24991 "), "{text}");
    let others = text.lines().find(|line| line.starts_with("  24,992 others")).unwrap();
    let cells: Vec<&str> = others.split_whitespace().collect();
    assert_eq!(cells[2..6], ["249,920", "224,928", "24,992", "74,976"], "{others}");
    assert_eq!(verbose(&record, 100).matches("\n  class").count(), 200);
    // One more than fits is shown rather than called the others.
    record.classes = (0..9).map(of).collect();
    assert!(!plain(&record).contains("others"), "{}", plain(&record));
}

#[test]
fn the_name_and_the_labels_of_a_run_stand_below_its_target() {
    let mut record = samples::good();
    record.name = "nightly".to_owned();
    record.labels = [("commit".to_owned(), "3f2a9c1".to_owned())].into();
    assert!(plain(&record).contains("\n           name nightly, commit=3f2a9c1\n"));
}

#[test]
fn a_warning_that_two_parts_of_a_run_made_is_said_once() {
    let mut record = samples::good();
    record.warnings = vec!["the run was short".to_owned(), "the run was short".to_owned()];
    assert_eq!(plain(&record).matches("the run was short").count(), 1);
}

#[test]
fn class_names_of_any_length_and_script_stay_on_the_page() {
    let mut record = samples::good();
    let class = record.classes.values().next().unwrap().clone();
    for name in [
        "日本語の検索クエリの種類を表す長い名前です",
        "x".repeat(300).as_str(),
        "\u{202e}a\u{1b}[2J",
    ] {
        record.classes.insert(name.to_owned(), class.clone());
    }
    for width in [60, 80, 100, 140, 200] {
        let text = verbose(&record, width);
        let wide = text.lines().filter(|line| columns_of(line) > width).collect::<Vec<_>>();
        assert!(wide.is_empty(), "{width}: {wide:?}");
    }
}

#[test]
fn a_run_in_which_everything_failed() {
    assert_snapshot!(plain(&samples::failed()));
}

#[test]
fn the_headline_names_what_was_never_answered() {
    let mut record = samples::good();
    let headline = |record: &RunRecord| plain(record).lines().nth(1).unwrap().to_owned();
    assert!(!headline(&record).contains("unfinished"));
    record.ledger.unfinished = record.ledger.sent * 3 / 5;
    record.ledger.ok = record.ledger.sent - record.ledger.unfinished;
    record.rate.ok_per_s = record.rate.offered_per_s * 0.4;
    assert!(headline(&record).contains("60 % unfinished"), "{}", headline(&record));
}

/// The grade is valid, and yet nothing is known of a target that a closed run may have asked half of what it can do.
#[test]
fn a_rate_that_may_be_half_of_the_targets_is_a_lower_bound() {
    let mut record = samples::good();
    record.scenario["load"] = serde_json::json!({"model": "closed", "clients": 8});
    let headline = |record: &RunRecord| plain(record).lines().nth(1).unwrap().trim().to_owned();
    let with = |record: &mut RunRecord, times: f64| {
        let ok_per_s = [record.rate.ok_per_s, record.rate.ok_per_s * times];
        record.verdict.bounds = Some(Bounds { ok_per_s, ..Bounds::default() });
    };
    with(&mut record, 1.9);
    let exact = headline(&record);
    assert!(!exact.contains("at least"), "{exact}");
    with(&mut record, 2.1);
    assert_eq!(headline(&record), format!("at least {exact}"));
    let sheet = crate::sections::sheet(&record, &Course::default(), &[Forms::LOAD]);
    let table = format!("{:?}", sheet.section("decide").unwrap());
    assert!(table.contains("at least"), "{table}");
    // A schedule of its own asked what it was to ask.
    record.scenario["load"] = serde_json::json!({"model": "open"});
    assert!(!headline(&record).contains("at least"));
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
    assert!(text.starts_with("Result     NOT VALID: void, exit 3"), "{text}");
    assert!(text.contains("DOES NOT BALANCE"), "{text}");
    assert!(text.contains("Why        do not use these numbers"), "{text}");
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
    let names = ["p50", "p90", "p95", "p99", "p99.9", "max"];
    assert_eq!(names.map(samples_needed), [2, 10, 100, 100, 1_000, 1]);
}
