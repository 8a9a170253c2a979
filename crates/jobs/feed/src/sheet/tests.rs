use super::*;
use crate::page::FORMS;
use plimsoll_record::feed::{CodeTimes, Inflight};
use plimsoll_report::samples;
use plimsoll_report::sections::sheet as page_of;
use std::collections::BTreeMap;

/// A feed whose target rejected operations at first.
pub fn sample() -> FeedResult {
    let moment = |from_s: f64, window, accepted_per_s, retried_per_s| FeedMoment {
        from_s,
        to_s: from_s + 0.1,
        accepted_per_s,
        refused_per_s: 0.0,
        retried_per_s,
        window,
        in_flight: window - 1,
    };
    let times =
        LatencySummary { count: 90, p50: 1.5, p99: 9.0, max: 11.0, ..LatencySummary::default() };
    let code = |count, whole| CodeTimes { count, server: times, whole };
    FeedResult {
        operations: 91,
        accepted: 90,
        refused: 1,
        seconds: 0.2,
        accepted_per_s: 450.0,
        requests: 95,
        retries: BTreeMap::from([("429".to_owned(), 4)]),
        body_bytes: 9100,
        http: "2".to_owned(),
        connections: 8,
        inflight: Inflight { limit: 4096, most: 31, last: 22, shrinks: 1, ..Inflight::default() },
        codes: BTreeMap::from([
            ("200".to_owned(), code(90, times)),
            ("429".to_owned(), code(4, LatencySummary::default())),
        ]),
        over_time: vec![moment(0.0, 32, 600.0, 40.0), moment(0.1, 22, 300.0, 0.0)],
        examples: vec![RefusedOperation {
            operation: 7,
            file: "in.jsonl".to_owned(),
            line: 7,
            id: "id:n:t::7".to_owned(),
            status: 400,
            reason: "no such field <b>".to_owned(),
        }],
        ..FeedResult::default()
    }
}

const OWN: [&str; 5] = ["decide", "feed", "window", "statuses", "not-accepted"];

#[test]
fn a_feed_has_its_window_over_time_and_its_answers_by_status() {
    let mut record = samples::good();
    record.job_results.put(sample());
    let page = page_of(&record, &Default::default(), &[FORMS]);
    assert!(samples::check_places(&page, &record) > 40);
    assert_eq!(samples::derived(&page, &OWN), [""; 0]);
    insta::assert_snapshot!(samples::outline(&page, &[&OWN[..], &["bottleneck"]].concat()));
}

#[test]
fn a_record_of_an_earlier_version_has_no_window() {
    let mut record = samples::good();
    record.job_results.put(FeedResult { over_time: Vec::new(), ..sample() });
    let page = page_of(&record, &Default::default(), &[FORMS]);
    assert!(page.section("window").is_none() && page.section("feed").is_some());
}
