use super::*;
use crate::page::FORMS;
use plimsoll_core::histogram::LatencySummary;
use plimsoll_report::samples;
use plimsoll_report::sections::sheet as page_of;

fn moment(from_s: f64, asking: u32, first_byte: f64) -> VisitMoment {
    VisitMoment {
        from_s,
        to_s: from_s + 0.2,
        documents_per_s: 1000.0,
        mb_per_s: 12.5,
        asking,
        slices_done: 2 - asking,
        first_byte,
        receiving: 0.3,
        between: 0.01,
    }
}

fn slice(slice: u32, done: bool) -> VisitSlice {
    VisitSlice {
        slice,
        done,
        documents: 200,
        replies: 4,
        bytes: 2_500_000,
        first_byte_s: 0.2,
        receiving_s: 0.1,
        between_s: 0.004,
    }
}

fn visit() -> VisitResult {
    VisitResult {
        documents: 400,
        document_count_claimed: 400,
        document_count_received: 400,
        bytes: 5_000_000,
        id_digest: "00ff".to_owned(),
        complete: true,
        slices: 2,
        slices_done: 2,
        replies: 8,
        form: "lines".to_owned(),
        seconds: 0.4,
        documents_per_s: 1000.0,
        gbps: 0.1,
        time: TimeShares { first_byte: 0.6, receiving: 0.39, between: 0.01 },
        first_byte_ms: LatencySummary {
            count: 8,
            p50: 50.0,
            p99: 80.0,
            max: 81.0,
            ..LatencySummary::default()
        },
        slices_at_once: Some(2),
        slices_tried: vec![
            SlicesTried { slices: 1, mb_per_s: 6.0 },
            SlicesTried { slices: 2, mb_per_s: 12.0 },
        ],
        by_slice: vec![slice(0, true), slice(1, true)],
        over_time: vec![moment(0.0, 2, 1.4), moment(0.2, 0, 1.0)],
        ..VisitResult::default()
    }
}

const OWN: [&str; 5] = ["decide", "visit", "course", "slices", "at-once"];

#[test]
fn a_visit_has_its_slices_their_times_and_the_window() {
    let mut record = samples::good();
    record.job_results.put(visit());
    let page = page_of(&record, &Default::default(), &[FORMS]);
    assert!(samples::check_places(&page, &record) > 40);
    assert_eq!(samples::derived(&page, &OWN), [""; 0]);
    insta::assert_snapshot!(samples::outline(&page, &[&OWN[..], &["bottleneck"]].concat()));
}

#[test]
fn a_slice_that_did_not_finish_is_named() {
    let mut broken = visit();
    broken.complete = false;
    broken.slices_done = 1;
    broken.by_slice[1].done = false;
    broken.unfinished =
        vec![UnfinishedSlice { slice: 1, reason: "HTTP 503".to_owned(), token: None }];
    let mut record = samples::good();
    record.job_results.put(broken);
    let page = page_of(&record, &Default::default(), &[FORMS]);
    let text = samples::outline(&page, &["decide", "visit", "slices", "unfinished"]);
    for part in [
        "| 2 slices | MISSED [Bad]",
        "Bad: The visit is NOT complete",
        "NOT done [Bad]",
        "HTTP 503",
    ] {
        assert!(text.contains(part), "no '{part}' in\n{text}");
    }
    samples::check_places(&page, &record);
}

#[test]
fn counts_that_are_wrong_and_right_in_sum_are_missed() {
    let mut record = samples::good();
    record.job_results.put(VisitResult { complete: false, inconsistent_replies: 2, ..visit() });
    let page = page_of(&record, &Default::default(), &[FORMS]);
    let text = samples::outline(&page, &["decide", "visit"]);
    for part in ["replies with a wrong count | 2", "some replies do not hold as many documents"] {
        assert!(text.contains(part), "no '{part}' in\n{text}");
    }
    samples::check_places(&page, &record);
}

#[test]
fn ways_of_visiting_are_a_heat_map() {
    let cell = |slices, stream, concurrency, documents_per_s| VisitCell {
        slices,
        stream,
        concurrency,
        documents_per_s,
        ..VisitCell::default()
    };
    let mut record = samples::good();
    let matrix = vec![
        cell(1, true, None, 900.0),
        cell(4, true, None, 2500.0),
        cell(1, false, Some(8), 400.0),
    ];
    record.job_results.put(VisitResult { matrix, ..VisitResult::default() });
    let page = page_of(&record, &Default::default(), &[FORMS]);
    assert_eq!(samples::derived(&page, &["decide", "matrix"]), [""; 0]);
    let text = samples::outline(&page, &["decide", "matrix"]);
    for part in [
        "highest documents/s | 2,500/s </visit/matrix/1/documents_per_s>",
        "grid of [\"streamed\", \"chunked, 8 at once\"] by [\"1 slice\", \"4 slices\"] /s",
        "  900 | 2,500\n  400 | -\n",
    ] {
        assert!(text.contains(part), "no '{part}' in\n{text}");
    }
    samples::check_places(&page, &record);
}
