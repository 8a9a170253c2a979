use super::*;
use crate::line::csv;
use plimsoll_core::seek::finding::Finding;
use plimsoll_report::forms::Forms;
use plimsoll_report::samples;
use plimsoll_report::sections::sheet as page_of;
use serde_json::json;

const LINE: Forms = Forms { sheet: |page, record, _| sheet(page, record), csv, ..Forms::LOAD };

/// A search that found a line of 160/s with two limits, in ten steps.
fn sought() -> RunRecord {
    let run = |rate: f64, late: f64| {
        json!({"rate_per_s": rate, "seconds": 1.5, "scheduled": 240, "late_share": [late, 0.001],
            "response_mean_s": 0.05, "failed": 0})
    };
    let limit = |label: &str, allowed: f64| json!({"label": label, "bound": {"late": {"allowed": allowed}}});
    let step = |kind: &str, at_s: f64| json!({"kind": kind, "at_s": at_s});
    let look = |at_s: f64, rate: f64, held: bool| {
        let mut step = step("look", at_s);
        (step["rate_per_s"], step["held"]) = (rate.into(), held.into());
        step
    };
    let mut bracket = step("bracket", 9.0);
    (bracket["low_per_s"], bracket["high_per_s"]) = (128.0.into(), 256.0.into());
    let mut estimate = step("estimate", 60.0);
    (estimate["rate_per_s"], estimate["low_per_s"], estimate["high_per_s"]) =
        (161.0.into(), 140.0.into(), 180.0.into());
    let mut certified = look(110.0, 158.0, true);
    certified["kind"] = "run".into();
    let found = json!({
        "verdict": "ok", "reason": "the line is known to 5.0 %", "certified_last": true,
        "certified": run(158.0, 0.04), "failing": run(181.0, 0.3), "broke": run(163.0, 0.08),
        "estimate_per_s": 160.0, "interval_per_s": [152.0, 168.0], "confidence": 0.95,
        "half_width": 0.05, "capacity_per_s": 200.0, "floor_s": 0.021, "binding": "p95=100ms",
        "curve": [run(8.0, 0.0), run(64.0, 0.001), run(158.0, 0.04), run(181.0, 0.3)],
        "phases": [{"phase": "ramp", "from_s": 0.0, "until_s": 9.0}, {"phase": "focus", "from_s": 9.0, "until_s": 110.0}],
        "limits": [limit("p95=100ms", 0.05), limit("errors=1%", 0.01)],
        "steps": [look(2.0, 64.0, true), look(5.0, 256.0, false), bracket, estimate, certified],
        "elapsed_s": 120.0, "notes": ["Arrivals were even."],
    });
    let mut record = samples::good();
    "seek".clone_into(&mut record.job);
    let found: Finding = serde_json::from_value(found).unwrap();
    record.job_results.put(SeekResult::from(found));
    record
}

const OWN: [&str; 4] = ["decide", "line", "rates", "narrowing"];

#[test]
fn a_line_has_its_curve_with_limits_and_the_way_of_its_search() {
    let record = sought();
    let page = page_of(&record, &Default::default(), &[LINE]);
    assert!(samples::check_places(&page, &record) > 60);
    assert_eq!(samples::derived(&page, &OWN), [""; 0]);
    insta::assert_snapshot!(samples::outline(&page, &[&OWN[..], &["bottleneck"]].concat()));
    assert!(page.section("curve").is_none(), "times of very different loads");
}

#[test]
fn two_jobs_that_add_the_line_add_it_once() {
    let record = sought();
    let once = page_of(&record, &Default::default(), &[LINE]);
    assert_eq!(page_of(&record, &Default::default(), &[LINE, LINE]), once);
}

#[test]
fn a_line_that_was_followed_is_a_plot_over_time() {
    let record = samples::followed();
    let page = page_of(&record, &Default::default(), &[LINE]);
    assert!(samples::check_places(&page, &record) > 20);
    insta::assert_snapshot!(samples::outline(&page, &["decide", "line"]));
}

#[test]
fn a_search_that_certified_nothing_says_so_and_leaves_out_what_it_does_not_know() {
    let found = json!({
        "verdict": "budget-too-small", "reason": "too short", "certified": null, "certified_last": false,
        "failing": null, "estimate_per_s": null, "interval_per_s": null, "confidence": 0.95,
        "curve": [], "phases": [], "elapsed_s": 2.0,
    });
    let mut record = samples::good();
    let found: Finding = serde_json::from_value(found).unwrap();
    record.job_results.put(SeekResult::from(found));
    let page = page_of(&record, &Default::default(), &[LINE]);
    let text = samples::outline(&page, &["decide", "line", "rates"]);
    assert!(text.contains("certified rate | none |"), "{text}");
    assert!(!text.contains("best estimate") && !text.contains("upper end"), "{text}");
    assert!(text.contains("Warn: No rate was measured."), "{text}");
    assert!(page.section("narrowing").is_none(), "a record without steps");
    samples::check_places(&page, &record);
}
