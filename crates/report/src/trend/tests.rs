use super::*;
use crate::forms::Forms;
use crate::samples;
use crate::sheet::PlotKind;
use std::path::Path;

/// Runs one after another whose p99 has these values; the verdict and the machine of each can be changed.
fn runs(p99_ms: &[f64], change: impl Fn(usize, &mut plimsoll_record::RunRecord)) -> Runs {
    let run = |(index, p99): (usize, &f64)| {
        let mut record = samples::good();
        record.run_id = format!("{index:08x}");
        record.started_at = format!("2026-11-21T{:02}:{:02}:00Z", index / 60, index % 60);
        record.latency_ms.response.p99 = *p99;
        record.command = [
            "plimsoll",
            "load",
            "http://127.0.0.1:8080/",
            "--rate",
            "100",
            "--quiet",
            "--name",
            "a b",
            "--html=x",
        ]
        .map(str::to_owned)
        .into();
        change(index, &mut record);
        Run::of(&record, Path::new("runs/x"), &[Forms::LOAD])
    };
    Runs { runs: p99_ms.iter().enumerate().map(run).collect(), ..Runs::default() }
}

/// Thirty values with 1 % of noise, a third more from the twentieth on.
fn stepped() -> Vec<f64> {
    let noise = |n: usize| 1.0 + 0.01 * ((n * 7 % 11) as f64 / 5.0 - 1.0);
    (0..30).map(|n| if n < 20 { 10.0 } else { 13.0 } * noise(n)).collect()
}

#[test]
fn a_step_is_a_candidate_with_the_command_that_confirms_it() {
    let trend = Trend::of("runs", &runs(&stepped(), |_, _| {}));
    let findings: Vec<&Finding> = trend.findings().collect();
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!((findings[0].at, findings[0].direction), (20, "worse"));
    assert_eq!(findings[0].after, format!("{:08x}", 19));
    let text = trend.render();
    for part in [
        "p99 is worse since 00000014 (2026-11-21T00:20:00Z): 10.0 ms -> 13.0 ms (+30",
        "candidate: confirm with plimsoll ab --a BEFORE --b AFTER --on p99 -- load http://127.0.0.1:8080/ --rate 100\n",
        "1 change: candidates, until 'plimsoll ab' has confirmed them.\n",
    ] {
        assert!(text.contains(part), "no '{part}' in\n{text}");
    }
}

#[test]
fn runs_that_are_not_valid_are_shown_and_left_out() {
    let mut values = vec![10.0; 30];
    values[20..].fill(99.0);
    let trend = Trend::of(
        "runs",
        &runs(&values, |index, record| {
            if index >= 20 {
                record.verdict.kind = VerdictKind::GeneratorLimited;
            }
        }),
    );
    assert_eq!(trend.findings().count(), 0);
    let text = trend.render();
    assert!(
        text.contains("30 runs, ") && text.contains("10 of them not counted (generator-limited)"),
        "{text}"
    );
    let page = samples::outline(&trend.sheet(), &["group-1"]);
    assert!(page.contains("dots not counted (bad) 10 of 30"), "{page}");
}

#[test]
fn another_machine_is_another_series() {
    let trend = Trend::of(
        "runs",
        &runs(&stepped(), |index, record| {
            if index >= 20 {
                record.machine.hostname = "there".to_owned();
            }
        }),
    );
    assert_eq!(trend.groups.len(), 2);
    assert_eq!(trend.findings().count(), 0);
}

#[test]
fn ten_findings_in_one_direction_make_the_machine_suspect() {
    let values = stepped();
    let all_worse = runs(&values, |index, record| {
        let response = &mut record.latency_ms.response;
        let p99 = response.p99;
        for time in [
            &mut response.mean,
            &mut response.p50,
            &mut response.p90,
            &mut response.p95,
            &mut response.max,
        ] {
            *time = p99;
        }
        // Two targets.
        record.target.url = format!("http://127.0.0.1:{}/", 8080 + index % 2);
    });
    let twice: Vec<Run> = all_worse
        .runs
        .iter()
        .flat_map(|run| {
            let mut other = run.clone();
            other.likeness.target = "http://127.0.0.1:9090/".to_owned();
            let mut own = run.clone();
            own.likeness.target = "http://127.0.0.1:8080/".to_owned();
            [own, other]
        })
        .collect();
    let trend = Trend::of("runs", &Runs { runs: twice, ..Runs::default() });
    assert_eq!(trend.findings().count(), 12);
    assert!(trend.render().contains("suspect the machine: all 12 findings are worse"));
    let few = Trend::of("runs", &runs(&values, |_, _| {}));
    assert!(few.remarks.is_empty());
}

#[test]
fn a_page_has_the_changes_first_and_a_mark_at_each() {
    let trend = Trend::of("runs", &runs(&stepped(), |_, _| {}));
    let page = samples::outline(&trend.sheet(), &["decide", "group-1"]);
    assert!(page.contains("p99 is worse"), "{page}");
    let sheet = trend.sheet();
    let marks: Vec<f64> = sheet
        .plots()
        .filter_map(|plot| match &plot.kind {
            PlotKind::Lines(lines) => Some(lines.marks.iter().map(|mark| mark.x)),
            _ => None,
        })
        .flatten()
        .collect();
    assert_eq!(marks, [20.5]);
}

#[test]
fn a_short_history_says_from_when_on_changes_are_looked_for() {
    let text = Trend::of("runs", &runs(&[10.0, 11.0, 30.0], |_, _| {})).render();
    assert!(text.contains("plimsoll looks for changes once 10 runs count"), "{text}");
    assert!(text.contains("No change of level was found."), "{text}");
}

/// A comparison rejects what judges or ends a single run, and has every metric that a history has.
#[test]
fn the_command_that_confirms_is_one_that_ab_accepts() {
    let runs = runs(&stepped(), |index, record| {
        std::mem::swap(&mut record.latency_ms.response.p90, &mut record.latency_ms.response.p99);
        record.latency_ms.response.p99 = 20.0 + (index % 3) as f64;
        record.command.extend(["--slo", "p95=5ms", "--slo=mean=9ms", "--live"].map(str::to_owned));
    });
    let text = Trend::of("runs", &runs).render();
    let command = "--on p90 -- load http://127.0.0.1:8080/ --rate 100\n";
    assert!(text.contains(command), "{text}");
}
