use super::*;
use plimsoll_report::forms::Forms;
use plimsoll_report::samples;
use plimsoll_report::sections::sheet as page_of;
use std::collections::BTreeMap;

const FORMS: Forms = Forms { sheet, ..Forms::LOAD };

fn result(cycle_ms: i64, cycles_not_held: u64) -> FbenchResult {
    let point = |percentile, ms| Percentile { percentile, ms };
    FbenchResult {
        clients: 32,
        ran_for_s: 4,
        cycle_ms,
        failed: 2,
        ok: 300,
        cycles_not_held,
        reuse_count: 268,
        keepalive: true,
        min_ms: 0.02,
        max_ms: 108.38,
        avg_ms: 1.71,
        percentiles: vec![point(50.0, 1.3), point(99.5, 6.7)],
        rate_per_s: 75.25,
        utilization_pct: 99.94,
        zero_hits: 3,
        zero_hit_pct: 1.0,
        statuses: BTreeMap::from([(0, 1), (200, 300), (503, 1)]),
        ..FbenchResult::default()
    }
}

#[test]
fn an_fbench_run_has_the_figures_of_its_summary() {
    let mut record = samples::good();
    record.job_results.put(result(0, 302));
    let page = page_of(&record, &Default::default(), &[FORMS]);
    assert!(samples::check_places(&page, &record) > 25);
    assert_eq!(samples::derived(&page, &["summary", "cycles"]), [""; 0]);
    insta::assert_snapshot!(samples::outline(&page, &["decide", "summary", "cycles"]));
}

#[test]
fn cycles_that_were_not_kept_are_told() {
    for (cycle_ms, late, words) in [
        (250, 0, "Good: Every request took less than the cycle of 250 ms."),
        (250, 12, "Warn: Some requests took 250 ms or longer"),
        (250, 290, "the rate is that of the target, not of the schedule"),
        (-1, 0, "Plain: The cycle time is negative"),
    ] {
        let mut record = samples::good();
        record.job_results.put(result(cycle_ms, late));
        let page = page_of(&record, &Default::default(), &[FORMS]);
        let text = samples::outline(&page, &["cycles"]);
        assert!(text.contains(words), "no '{words}' in\n{text}");
    }
}
