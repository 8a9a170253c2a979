use super::*;
use crate::forms::Forms;
use crate::samples;
use crate::sections::{Course, sheet};
use crate::sheet::{Cell, Part, Table};
use crate::text::{Style, render};
use plimsoll_core::interval::Interval;
use plimsoll_core::rng::Rng;
use plimsoll_core::schedule::Arrivals;

/// A run of so many seconds with 500 exponential response times of 10 ms in each, and its periods.
fn run(seconds: u64, scale: impl Fn(u64) -> f64) -> (RunRecord, Periods) {
    let (mut rng, mut periods) = (Rng::new(1), Periods::default());
    let second = |index: u64| {
        let mut interval = samples::second(index, 1, 0);
        for _ in 0..500 {
            let response_ns = (1e7 * scale(index) * rng.exponential()) as u64;
            interval.classes[0].record_ok(response_ns, response_ns);
            interval.classes[0].ledger.ok += 1;
            interval.ledger.ok += 1;
        }
        interval
    };
    let seconds: Vec<Interval> = (0..seconds).map(second).collect();
    seconds.iter().for_each(|second| periods.add(second));
    let ending = crate::assemble::Ending {
        duration_s: Some(seconds.len() as f64),
        ..crate::assemble::Ending::default()
    };
    (samples::record_of(&seconds, ending), periods)
}

fn with_intervals(seconds: u64) -> RunRecord {
    let (mut record, periods) = run(seconds, |_| 1.0);
    record.intervals = of(periods, &record);
    record
}

#[test]
fn each_percentile_has_an_interval_about_the_figure_of_the_run() {
    let record = with_intervals(60);
    let response = record.latency_ms.response;
    let figures = [response.p50, response.p90, response.p95, response.p99, response.p99_9];
    assert_eq!(record.intervals.len(), figures.len());
    for ((key, ..), figure) in PERCENTILES.iter().zip(figures) {
        let PercentileInterval::Known { estimate, low, high, confidence, batches } =
            record.intervals[*key]
        else {
            panic!("{key}: {:?}", record.intervals)
        };
        assert_eq!((estimate, confidence, batches), (figure, 0.95, 30));
        assert!(low < figure && figure < high && high < 1.5 * low, "{key}: {low} {high}");
    }
    let read = plimsoll_record::read(&serde_json::to_vec(&record).unwrap()).unwrap();
    assert_eq!(read, record);
}

#[test]
fn text_and_page_show_the_intervals_of_the_record() {
    let record = with_intervals(60);
    let text = render(&record, None, &Style::default(), &[]);
    let PercentileInterval::Known { estimate, low, high, .. } = record.intervals["p99"] else {
        panic!("no interval")
    };
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(joined.contains("95 % intervals: p50 "), "{text}");
    let shown = format!("p99 {} ({} to {})", time(estimate), significant(low), significant(high));
    assert!(joined.contains(&shown), "{shown}: {text}");
    let sheet = sheet(&record, &Course::default(), &[Forms::LOAD]);
    let parts = &sheet.section("curve").unwrap().parts;
    let is_ours = |table: &&Table| table.caption.contains("confidence intervals");
    let mut tables = parts.iter().filter_map(|part| match part {
        Part::Table(table) => Some(table),
        _ => None,
    });
    let table = tables.rfind(is_ours).unwrap();
    assert_eq!(table.rows.len(), 5);
    let value = serde_json::to_value(&record).unwrap();
    for row in &table.rows {
        for cell in &row.cells[1..4] {
            let Cell::Number { value: shown, from, .. } = cell else { panic!("{cell:?}") };
            assert_eq!(value.pointer(from).and_then(serde_json::Value::as_f64), Some(*shown));
        }
    }
}

#[test]
fn a_run_that_is_too_short_says_so_in_one_line() {
    let record = with_intervals(2);
    assert_eq!(
        remark(&record).unwrap(),
        "no 95 % interval: a run of 2 s is too short; it takes 30 s"
    );
    let text = render(&record, None, &Style::default(), &[]);
    assert_eq!(text.matches("interval").count(), 1, "{text}");
}

#[test]
fn reasons_that_several_percentiles_share_are_said_once() {
    let mut record = with_intervals(60);
    let missing = |reason: &str| PercentileInterval::Missing { reason: reason.to_owned() };
    record.intervals.insert("p95".to_owned(), missing("a"));
    record.intervals.insert("p99".to_owned(), missing("a"));
    let text = remark(&record).unwrap();
    assert!(text.ends_with("; no interval for p95, p99: a"), "{text}");
    record.intervals.insert("p99".to_owned(), missing("b"));
    let text = remark(&record).unwrap();
    assert!(text.ends_with("; no interval for p95: a; no interval for p99: b"), "{text}");
}

#[test]
fn a_load_that_changes_has_no_interval() {
    let (mut record, periods) = run(60, |_| 1.0);
    let load = LoadModel::Profile { steps: Vec::new(), arrivals: Arrivals::Uniform };
    record.scenario = serde_json::json!({ "load": serde_json::to_value(load).unwrap() });
    record.intervals = of(periods, &record);
    assert_eq!(remark(&record).unwrap(), "no 95 % interval: the load changes during the run");
}

#[test]
fn times_of_several_stretches_and_no_times_have_no_interval() {
    let (mut record, periods) = run(60, |_| 1.0);
    record.latency_ms.response.count += 1;
    let none = of(periods.clone(), &record);
    assert!(
        matches!(&none["p50"], PercentileInterval::Missing { reason } if reason.contains("one stretch"))
    );
    record.latency_ms.response.count = 0;
    assert!(of(periods, &record).is_empty());
    record.intervals.clear();
    assert_eq!(remark(&record), None);
}

#[test]
fn a_percentile_in_microseconds_or_seconds_has_its_ends_in_the_same_unit() {
    assert_eq!(shown(0.87, 0.8, 1.02), "870 us (800 to 1,020)");
    assert_eq!(shown(12.34, 11.84, 12.91), "12.3 ms (11.8 to 12.9)");
    assert_eq!(shown(10_400.0, 9_800.0, 11_000.0), "10.4 s (9.80 to 11.0)");
}
