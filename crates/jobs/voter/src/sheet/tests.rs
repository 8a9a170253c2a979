use super::*;
use crate::page::FORMS;
use crate::page::tests::{one, voter};
use plimsoll_core::histogram::LatencySummary;
use plimsoll_record::bench_shape::preset;
use plimsoll_record::voter::{TuneCheck, TunePoint, TuneResult};
use plimsoll_report::samples;
use plimsoll_report::sections::sheet as page_of;

fn lap(from_s: f64, queued: u64) -> VoterLap {
    VoterLap {
        from_s,
        at_s: from_s + 0.2,
        lap_per_s: 19_000.0,
        total_per_s: 19_500.0,
        success: 4000,
        fails: 2,
        pending: 111,
        client_mean_ms: 5.7,
        client_max_ms: 25.0,
        server_mean_ms: Some(0.286),
        server_max_ms: Some(3.0),
        queued: Some(queued),
        queue_wait_max_ms: Some(40.0),
    }
}

#[test]
fn a_benchmark_has_its_laps_its_queue_and_the_check_of_its_writes() {
    let mut client = one(0, 20_000, (5, 20_005));
    client.laps = vec![lap(0.0, 7), lap(0.2, 0)];
    let mut result = voter(vec![client]);
    result.server.ms = LatencySummary {
        count: 20_000,
        mean: 0.3,
        p99: 2.0,
        max: 3.0,
        ..LatencySummary::default()
    };
    result.errors.insert("-2: connection lost".to_owned(), 2);
    let mut record = samples::good();
    record.job_results.put(result);
    let page = page_of(&record, &Default::default(), &[FORMS]);
    let own = ["decide", "laps", "writes", "clients", "votes", "server"];
    assert!(samples::check_places(&page, &record) > 50);
    assert_eq!(samples::derived(&page, &own[1..]), [""; 0]);
    insta::assert_snapshot!(samples::outline(&page, &own));
}

#[test]
fn a_missing_row_is_the_first_thing_to_read() {
    let mut record = samples::good();
    record.job_results.put(voter(vec![one(0, 20_000, (5, 20_004)), one(1, 10, (5, 15))]));
    let page = page_of(&record, &Default::default(), &[FORMS]);
    let text = samples::outline(&page, &["decide", "writes"]);
    for part in [
        "  rows missing | 1 </voter/check_rows> | 0 | MISSED [Bad]\n",
        "Bad: The check FAILED:",
        "client 'VSD1' | 20,000 </voter/processes/0/accepted>",
    ] {
        assert!(text.contains(part), "no '{part}' in\n{text}");
    }
}

#[test]
fn a_tuned_load_has_its_trace_and_its_checks() {
    let point = |at_s, late, held| TunePoint { at_s, under_way: 40, rate_per_s: 900.0, late, held };
    let mut result = voter(vec![one(0, 200, (0, 200))]);
    result.auto_tune = Some(TuneResult {
        goal: "p99=10ms".to_owned(),
        latency: "client".to_owned(),
        best_rate_per_s: Some(880.0),
        best_under_way: Some(38.0),
        windows: 9,
        windows_held: 8,
        certified_rate_per_s: Some(850.0),
        checks: vec![TuneCheck {
            under_way: 36,
            rate_per_s: 850.0,
            held: true,
            counts: true,
            ..TuneCheck::default()
        }],
        trace: vec![point(1.0, 0.0, true), point(2.0, 0.03, false)],
    });
    let mut record = samples::good();
    record.job_results.put(result);
    let page = page_of(&record, &Default::default(), &[FORMS]);
    assert_eq!(samples::derived(&page, &["tuning"]), [""; 0]);
    let text = samples::outline(&page, &["decide", "tuning"]);
    for part in [
        "calls/s that hold p99=10ms | 850/s </voter/auto_tune/certified_rate_per_s>",
        "mark at 2: missed",
        "3.0 % </voter/auto_tune/trace/1/late>",
        "| held [Good]",
    ] {
        assert!(text.contains(part), "no '{part}' in\n{text}");
    }
    samples::check_places(&page, &record);
}

#[test]
fn hello_has_no_votes_and_no_writes() {
    let mut result = voter(vec![one(0, 200, (0, 0))]);
    result.shape = preset("VSD").map(|shape| Shape { bench: Bench::Hello, ..shape });
    result.contestants.clear();
    let mut record = samples::good();
    record.job_results.put(result);
    let page = page_of(&record, &Default::default(), &[FORMS]);
    assert!(page.section("writes").is_none() && page.section("votes").is_none());
    let text = samples::outline(&page, &["decide"]);
    assert!(!text.contains("votes") && text.contains("transactions/s"), "{text}");
}
