//! Answers from records of searches and matrices, which take too long to measure in a test.

use crate::answers::{Known, Question, answer, users};
use crate::configuration::{Configuration, Limit, users_of};
use crate::records::Sized;
use crate::sizing::{Answer, Sizing};
use crate::{page, text};
use plimsoll_record::search::{Cell, CellKey, SearchResult};
use plimsoll_record::seek::SeekResult;
use plimsoll_record::{JobResults, RunRecord};
use plimsoll_report::load::Loaded;
use plimsoll_report::samples;
use serde_json::json;

fn sized(n: f64, job_results: JobResults) -> Sized {
    let record = RunRecord { job_results, ..samples::good() };
    Sized {
        n,
        unit: None,
        loaded: Loaded { record, cut: false, folder: format!("runs/{n}").into() },
    }
}

/// A search that found this line, 2 % on each side, with a late share that doubles with each 10 %.
fn seek(n: f64, line_per_s: f64) -> Sized {
    let point = |share: f64| {
        json!({
            "rate_per_s": share * line_per_s, "seconds": 10.0, "scheduled": 10_000,
            "late_share": [0.05 * 2f64.powf(10.0 * (share - 1.0))], "response_mean_s": 0.01, "failed": 0
        })
    };
    let section = json!({
        "verdict": "ok", "reason": "", "certified": null, "certified_last": true, "failing": null,
        "certified_rate_per_s": null, "estimate_per_s": line_per_s,
        "interval_per_s": [0.98 * line_per_s, 1.02 * line_per_s], "confidence": 0.95, "half_width": 0.02,
        "forecast": null, "forecast_first": null, "capacity_per_s": null, "floor_s": null,
        "binding": "p95=100ms", "slope": null, "phases": [], "elapsed_s": 60.0,
        "curve": ([0.2, 0.5, 0.8, 0.9, 1.0, 1.1].map(point)),
        "limits": [{ "label": "p95=100ms", "bound": { "late": { "allowed": 0.05 } } }]
    });
    let result: SeekResult = serde_json::from_value(section).unwrap();
    sized(n, JobResults::of(result))
}

fn limit(text: &str) -> Option<Limit> {
    Some(Limit::of(&text.parse().unwrap(), text).unwrap())
}

fn question(rate_per_s: Option<f64>) -> Question {
    Question { rate_per_s, headroom: 0.2, limit: limit("p95=100ms"), unit: "nodes", nodes: None }
}

fn asked(records: &[Sized], question: &Question) -> Sizing {
    let of = |one: &Sized| {
        Configuration::of(one.n, &[one], question.limit.as_ref(), question.unit).unwrap()
    };
    let configurations: Vec<Configuration> = records.iter().map(of).collect();
    answer(&Known::of(&configurations, question))
}

fn find<'a>(sizing: &'a Sizing, name: &str) -> &'a Answer {
    sizing.answers.iter().find(|answer| answer.question == name).unwrap()
}

#[test]
fn searches_answer_for_nodes_that_were_not_measured() {
    let records: Vec<Sized> = [(1.0, 100.0), (2.0, 195.0), (3.0, 285.0), (4.0, 370.0)]
        .map(|(n, line)| seek(n, line))
        .into();
    let sizing = asked(&records, &question(Some(400.0)));
    let nodes = find(&sizing, "nodes").figures["nodes"].as_f64().unwrap();
    assert!((6.0..=8.0).contains(&nodes), "480/s: {nodes}");
    let lost = find(&sizing, "one-lost");
    assert!(
        lost.figures["nodes"].as_f64().unwrap() >= nodes && lost.words.contains("within 100 ms")
    );
    let more = find(&sizing, "more-traffic");
    let level = |name: &str| more.figures[name].as_f64().unwrap();
    assert!(level("level_after") < level("level_before"), "{}", more.words);
    assert!(sizing.declined.is_none() && sizing.held.len() == 8 && sizing.models.len() == 4);
    let text = text::render(&sizing);
    assert!(
        text.contains("Models for 8 nodes:") && text.lines().all(|line| line.chars().count() < 130)
    );
    assert_eq!(page::sheet(&sizing).verdict, "answered");
    // Resources are not in these records.
    assert!(!find(&sizing, "first-resource").answered);
}

#[test]
fn one_search_answers_for_its_own_node_and_declines_more() {
    let records = [seek(1.0, 100.0)];
    let sizing = asked(&records, &question(Some(70.0)));
    assert_eq!(find(&sizing, "nodes").figures["nodes"], 1.0);
    assert!(
        find(&sizing, "nodes").words.starts_with("1 node for 70.0/s at p95=100ms with room for")
    );
    assert_eq!(find(&sizing, "one-lost").figures["nodes"], 2.0, "each of two holds the rate alone");
    assert_eq!(sizing.declined, None);
    let sizing = asked(&records, &question(Some(120.0)));
    let words = sizing.declined.unwrap();
    assert!(
        words.starts_with("144/s at p95=100ms cannot be sized: 1 number of nodes was"),
        "{words}"
    );
    let sizing = asked(&records, &question(None));
    assert!(find(&sizing, "more-traffic").words.contains("within 100 ms instead of"));
    assert!(sizing.declined.unwrap().starts_with("1 number of nodes was measured"));
}

#[test]
fn a_limit_that_was_not_sought_is_refused() {
    let own = seek(1.0, 100.0);
    let other = limit("p99=100ms");
    let error = Configuration::of(1.0, &[&own], other.as_ref(), "nodes").unwrap_err().to_string();
    assert!(error.contains("the search had the limit p95=100ms, not p99=100ms"), "{error}");
}

#[test]
fn a_matrix_of_users_reaches_a_limit_and_answers_for_more_users() {
    let cell = |users: u32, per_s: f64, p95: f64| {
        let mut cell = Cell { ok_per_s: Some(per_s), ok: 1_000, ..Cell::default() };
        cell.key = CellKey { engine: "e".to_owned(), users, ..CellKey::default() };
        cell.latency_ms.p95 = p95;
        cell
    };
    let cells =
        vec![cell(1, 50.0, 20.0), cell(2, 98.0, 25.0), cell(4, 180.0, 50.0), cell(8, 260.0, 200.0)];
    let search = SearchResult { cells, ..SearchResult::default() };
    let own = sized(1.0, JobResults::of(search.clone()));
    let found = Configuration::of(1.0, &[&own], limit("p95=100ms").as_ref(), "nodes").unwrap();
    let per_s = found.points[0].per_s;
    assert!((per_s - 220.0).abs() < 1.0, "half way in the logarithm: {per_s}");
    let error = Configuration::of(1.0, &[&own], limit("p95=1s").as_ref(), "nodes").unwrap_err();
    assert!(error.to_string().contains("the curve of 1 node does not reach 1,000 ms"), "{error}");
    let found = Configuration::of(1.0, &[&own], None, "nodes").unwrap();
    assert_eq!(found.points[0].per_s, 260.0);
    let more = users(&users_of(&search));
    assert!(
        more.answered && more.words.starts_with("8 users get 260/s; 16 users would get"),
        "{}",
        more.words
    );
}

#[test]
fn a_limit_needs_the_response_times_of_every_class() {
    let mut own = sized(1.0, JobResults::default());
    let refused = |own: &Sized| {
        Configuration::of(1.0, &[own], limit("p95=10ms").as_ref(), "nodes").unwrap_err().to_string()
    };
    let histograms = &mut own.loaded.record.histograms;
    histograms.insert("fuzzy/response".to_owned(), "damaged".to_owned());
    let error = refused(&own);
    let place = "runs/1: histograms.fuzzy/response: a stored histogram cannot be decoded";
    assert!(error.starts_with(place), "{error}");
    // An import of service times: none of its requests is known to be in time.
    own.loaded.record.histograms.retain(|name, _| !name.ends_with("/response"));
    let error = refused(&own);
    assert!(error.starts_with("runs/1: the record has no histogram of response times"), "{error}");
}

#[test]
fn a_run_with_which_the_target_kept_up_does_not_show_its_throughput() {
    let mut own = sized(1.0, JobResults::default());
    own.loaded.record.scenario = json!({ "load": { "model": "open" } });
    let rate = &mut own.loaded.record.rate;
    (rate.offered_per_s, rate.ok_per_s) = (100.0, 99.0);
    let error = Configuration::of(1.0, &[&own], None, "nodes").unwrap_err().to_string();
    assert!(error.contains("the target kept up with the 100/s offered"), "{error}");
    own.loaded.record.rate.ok_per_s = 80.0;
    let found = Configuration::of(1.0, &[&own], None, "nodes").unwrap();
    assert_eq!(found.points[0].per_s, 80.0, "overloaded");
}
