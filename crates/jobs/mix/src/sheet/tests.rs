use super::*;
use crate::page::FORMS;
use plimsoll_record::feed::FeedResult;
use plimsoll_report::samples;
use plimsoll_report::sections::sheet as page_of;

#[test]
fn queries_beside_a_feed_are_compared_with_those_without() {
    let times = |count, p95| LatencySummary {
        count,
        p50: 2.0,
        p95,
        p99: 2.0 * p95,
        max: 3.0 * p95,
        ..LatencySummary::default()
    };
    let part = |ok, p95| MixPart {
        seconds: 4.0,
        ok,
        failed: 0,
        response: times(ok, p95),
        service: times(ok, p95),
    };
    let mut record = samples::good();
    record.job_results.put(MixResult { while_feeding: part(400, 30.0), without: part(500, 10.0) });
    record.job_results.put(FeedResult {
        operations: 9,
        accepted: 9,
        complete: true,
        seconds: 4.0,
        ..FeedResult::default()
    });
    let page = page_of(&record, &Default::default(), &[FORMS, plimsoll_feed::page::FORMS]);
    assert!(samples::check_places(&page, &record) > 30);
    assert_eq!(samples::derived(&page, &["beside", "feed"]), [""; 0]);
    insta::assert_snapshot!(samples::outline(&page, &["decide", "beside", "feed", "bottleneck"]));
    // Of a few requests nothing is said.
    record.job_results.put(MixResult { while_feeding: part(40, 30.0), without: part(500, 10.0) });
    let page = page_of(&record, &Default::default(), &[FORMS]);
    let said = page.section("bottleneck").map(|section| format!("{section:?}"));
    assert!(said.is_none_or(|said| !said.contains("slows")));
}
