use super::*;
use plimsoll_record::RunRecord;
use plimsoll_record::seek::SeekResult;
use plimsoll_report::forms::{Below, Forms};
use plimsoll_report::samples;
use plimsoll_report::text::{Style, render};

const LINE: Forms = Forms {
    page: |page, record| {
        sections(page, &record.job_results.seek()?.finding);
        page.blank();
        Some(Below::Books)
    },
    csv,
    ..Forms::LOAD
};

fn plain(record: &RunRecord) -> String {
    render(record, None, &Style { verbose: true, ..Style::default() }, &[LINE])
}

#[test]
fn a_line_that_was_followed_is_a_table_over_time() {
    let text = plain(&samples::followed());
    for part in ["3 stretches, 2 with an interval", "From, s"] {
        assert!(text.contains(part), "no '{part}' in\n{text}");
    }
    assert!(!text.contains("certified"), "{text}");
    let row = |from: &str| text.lines().find(|line| line.trim_start().starts_with(from)).unwrap();
    let cells = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(cells(row("23 "))[..6], ["23", "60", "1", "155", "149", "162"]);
    assert_eq!(cells(row("60 "))[3..6], ["-", "-", "-"]);
    assert!(text.contains("the target got faster"), "{text}");
}

/// A search that found a line of 160/s, with a rate that surely fails and one that broke a limit.
fn sought(certified: Option<f64>, interval: Option<[f64; 2]>, broke: f64) -> RunRecord {
    let run = |rate: f64, late: f64| {
        serde_json::json!({"rate_per_s": rate, "seconds": 1.5, "scheduled": 240, "late_share": [late],
            "response_mean_s": 0.05, "failed": 0})
    };
    let found = serde_json::json!({
        "verdict": "ok", "reason": "the line is known to 5.0 %", "certified_last": true,
        "certified": certified.map(|rate| run(rate, 0.04)), "failing": run(181.0, 0.3),
        "broke": run(broke, 0.08), "estimate_per_s": interval.map(|_| 160.0),
        "interval_per_s": interval, "confidence": 0.95, "curve": [], "phases": [], "elapsed_s": 120.0,
        "notes": ["The target is taken as stationary from 0 s to 120 s.", "Arrivals were even."],
    });
    let mut record = samples::good();
    let found: Finding = serde_json::from_value(found).unwrap();
    record.job_results.put(SeekResult::from(found));
    record
}

#[test]
fn a_rate_that_broke_a_limit_by_chance_is_no_rate_that_fails() {
    let text = plain(&sought(Some(158.0), Some([152.0, 168.0]), 163.0));
    for part in [
        "           158 requests/s hold the limits\n",
        "Fails at   181/s and above: late 30 % of 240 in 1.50 s, mean 50.0 ms\n",
        "Broke at   163/s: late 8.0 % of 240 in 1.50 s, mean 50.0 ms; perhaps by chance: the rate lies in the",
        "Notes      The target is taken as stationary from 0 s to 120 s.\n           Arrivals were even.\n",
    ] {
        assert!(text.contains(part), "no '{part}' in\n{text}");
    }
    let text = plain(&sought(None, None, 100.0));
    assert!(text.contains("no rate was certified\n"), "{text}");
    assert!(text.contains("perhaps by chance: the run was short"), "{text}");
    let text = plain(&sought(None, Some([152.0, 168.0]), 120.0));
    assert!(text.contains("perhaps by chance: the interval lies"), "{text}");
}

#[test]
fn the_page_of_a_search_stays_within_its_width() {
    for width in [80, 120] {
        let style = Style { width, ..Style::default() };
        let record = sought(Some(158.0), Some([152.0, 168.0]), 163.0);
        for line in render(&record, None, &style, &[LINE]).lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn a_line_that_was_followed_has_a_row_a_stretch() {
    let record = samples::followed();
    let rows = csv(&record).unwrap();
    let head = "from_s,until_s,state,line_per_s,low_per_s,high_per_s,capacity_per_s,blocks,blocks_from_s,note";
    assert_eq!(rows[0].join(","), head);
    assert_eq!(rows.len(), 4);
    assert_eq!(rows[1][3..6], ["155", "149", "162"]);
    assert_eq!(rows[2][3..6], ["", "", ""]);
    assert!(rows[2][9].contains("faster"));
}
