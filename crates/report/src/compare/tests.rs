use super::*;
use crate::samples;
use plimsoll_core::verdict::VerdictKind;
use std::path::PathBuf;

/// A run with this id and these times; `minute` is when it started.
fn record(id: &str, minute: u32, p99_ms: f64) -> Loaded {
    let mut record = samples::good();
    record.run_id = id.to_owned();
    record.started_at = format!("2026-11-21T20:{minute:02}:00Z");
    record.duration_s = 3.0;
    record.latency_ms.response.p99 = p99_ms;
    Loaded { record, cut: false, folder: PathBuf::from(format!("runs/{id}")) }
}

/// Like runs with 1 % of noise.
fn past(count: u32) -> Vec<Run> {
    let run = |n: u32| {
        let noise = 1.0 + 0.01 * (f64::from(n * 7 % 5) / 2.0 - 1.0);
        let one = record(&format!("0000000{n}"), n, 10.0 * noise);
        Run::of(&one.record, &one.folder, &[Forms::LOAD])
    };
    (0..count).map(run).collect()
}

fn compared(records: &[Loaded], past: &[Run], rules: &[&str]) -> Comparison {
    let rules: Vec<Rule> = rules.iter().map(|rule| rule.parse().unwrap()).collect();
    let terms = Terms { past, rules: &rules, margin: 0.05 };
    compare(records, &terms, &[Forms::LOAD]).unwrap()
}

fn answer<'a>(comparison: &'a Comparison, metric: &str) -> &'a Against {
    &comparison.rows.iter().find(|row| row.metric == metric).unwrap().against[0]
}

#[test]
fn without_like_runs_nothing_is_claimed() {
    let both = [record("aaaaaaaa", 10, 10.0), record("bbbbbbbb", 20, 30.0)];
    for past in [vec![], past(1)] {
        let comparison = compared(&both, &past, &["p99>+5%"]);
        let p99 = answer(&comparison, "p99");
        assert_eq!(p99.words, "cannot tell: the runs share no time window");
        assert_eq!((p99.answer, p99.interval), (Some("cannot tell"), None));
        assert_eq!(comparison.judged(), Some(Judged::CannotTell));
        let text = comparison.render();
        assert!(
            text.contains("The runs were not interleaved") && text.contains("are needed; "),
            "{text}"
        );
    }
}

#[test]
fn runs_at_the_same_time_are_not_said_to_share_no_time() {
    let both = [record("aaaaaaaa", 10, 10.0), record("bbbbbbbb", 10, 30.0)];
    let words = answer(&compared(&both, &[], &[]), "p99").words.clone();
    assert_eq!(words, "cannot tell: the variance between runs is unknown");
}

#[test]
fn with_like_runs_each_figure_has_an_answer() {
    let slower = [record("aaaaaaaa", 10, 10.0), record("bbbbbbbb", 20, 13.0)];
    let comparison = compared(&slower, &past(5), &[]);
    let p99 = answer(&comparison, "p99");
    assert_eq!((p99.answer, p99.like_runs), (Some("worse"), 6));
    let [low, high] = p99.interval.unwrap();
    assert!(low > 1.2 && high < 1.4 && (p99.ratio.unwrap() - 1.3).abs() < 1e-12, "{p99:?}");
    assert_eq!(answer(&comparison, "p50").words, "same within 5 %");
    assert_eq!(answer(&comparison, "errors").words, "same: none in either");
    let faster = [record("aaaaaaaa", 10, 10.0), record("bbbbbbbb", 20, 8.0)];
    assert_eq!(answer(&compared(&faster, &past(5), &[]), "p99").answer, Some("better"));
    let near = [record("aaaaaaaa", 10, 10.0), record("bbbbbbbb", 20, 10.25)];
    let words = answer(&compared(&near, &past(5), &[]), "p99").words.clone();
    assert!(words.starts_with("cannot tell: the change is -0."), "{words}");
}

#[test]
fn rules_are_judged_and_other_metrics_have_no_answer() {
    let slower = [record("aaaaaaaa", 10, 10.0), record("bbbbbbbb", 20, 13.0)];
    for (rules, judged) in [
        (&["p99>+5%", "p50>+5%"][..], Judged::Fails),
        (&["p50>+5%", "rate<-5%"], Judged::Holds),
        (&["p99>+50%"], Judged::Holds),
        (&["p99>+30%"], Judged::CannotTell),
    ] {
        let comparison = compared(&slower, &past(5), rules);
        assert_eq!(comparison.judged(), Some(judged), "{rules:?}");
        assert_eq!(answer(&comparison, "mean").answer, None);
    }
    let text = compared(&slower, &past(5), &["p99>+5%"]).render();
    assert!(text.contains("p99>+5%  B against A: FAILS: +30.0 % ("), "{text}");
}

#[test]
fn a_run_that_is_not_valid_is_never_claimed_about() {
    let mut both = [record("aaaaaaaa", 10, 10.0), record("bbbbbbbb", 20, 30.0)];
    both[1].record.verdict.kind = VerdictKind::GeneratorLimited;
    let comparison = compared(&both, &past(5), &["p99>+5%"]);
    assert_eq!(answer(&comparison, "p99").words, "cannot tell: B is generator-limited");
    assert_eq!(comparison.judged(), Some(Judged::CannotTell));
    both[1] = record("bbbbbbbb", 20, 30.0);
    both[1].record.machine.hostname = "there".to_owned();
    let words = answer(&compared(&both, &past(5), &[]), "p99").words.clone();
    assert_eq!(words, "cannot tell: the machines differ");
}

#[test]
fn settings_that_differ_are_named_and_each_side_has_its_own_like_runs() {
    let mut both = [record("aaaaaaaa", 10, 10.0), record("bbbbbbbb", 20, 13.0)];
    both[1].record.target.url = "http://127.0.0.1:9090/".to_owned();
    let comparison = compared(&both, &past(5), &[]);
    let note = "A and B differ: target http://127.0.0.1:8080/search/ and http://127.0.0.1:9090/";
    assert!(comparison.notes.contains(&note.to_owned()), "{:?}", comparison.notes);
    assert_eq!(answer(&comparison, "p99").answer, Some("worse"));
}

#[test]
fn records_that_do_not_belong_together_are_refused_with_their_names() {
    let terms = Terms { past: &[], rules: &[], margin: 0.05 };
    let refused =
        |records: &[Loaded]| compare(records, &terms, &[Forms::LOAD]).unwrap_err().to_string();
    let a = record("aaaaaaaa", 10, 10.0);
    assert_eq!(
        refused(std::slice::from_ref(&a)),
        "compare needs 2 to 26 runs, not 1; name the baseline first"
    );
    assert!(refused(&[a.clone(), a.clone()]).contains("runs/aaaaaaaa is named twice"));
    let mut other = record("bbbbbbbb", 20, 10.0);
    other.record.job = "voter".to_owned();
    assert!(refused(&[a.clone(), other.clone()]).contains("runs/bbbbbbbb of 'voter'"));
    other.record.job = "ab".to_owned();
    assert!(refused(&[a.clone(), other]).contains("print it with 'plimsoll report runs/bbbbbbbb'"));
    let rules = ["cpu>+5%".parse().unwrap()];
    let terms = Terms { rules: &rules, ..terms };
    let error = compare(&[a, record("bbbbbbbb", 20, 1.0)], &terms, &[Forms::LOAD]).unwrap_err();
    let error = error.to_string();
    assert!(
        error.starts_with("--fail-on 'cpu>+5%': the records have no 'cpu'; they have rate, mean"),
        "{error}"
    );
}

#[test]
fn three_runs_are_a_table_each_and_one_page() {
    let all =
        [record("aaaaaaaa", 10, 10.0), record("bbbbbbbb", 20, 13.0), record("cccccccc", 30, 10.1)];
    let comparison = compared(&all, &past(5), &[]);
    let text = comparison.render();
    assert!(text.contains("B is\n") && text.contains("C is\n"), "{text}");
    let sheet = comparison.sheet(&all, &vec![crate::series::Series::new(); 3]);
    let page = samples::outline(&sheet, &["decide", "curves"]);
    for part in ["p99", "worse: +30.0 % (", "A (series-1)", "B (series-2)", "C (series-3)"] {
        assert!(page.contains(part), "no '{part}' in\n{page}");
    }
}

#[test]
fn a_run_with_a_damaged_histogram_has_no_curve() {
    let mut both = [record("aaaaaaaa", 10, 10.0), record("bbbbbbbb", 20, 13.0)];
    let curves = |both: &[Loaded; 2]| {
        let sheet = compared(both, &[], &[]).sheet(both, &vec![crate::series::Series::new(); 2]);
        samples::outline(&sheet, &["curves"])
    };
    let damage = |run: &mut Loaded| {
        run.record.histograms.insert("fuzzy/response".to_owned(), "damaged".to_owned());
    };
    damage(&mut both[1]);
    let page = curves(&both);
    assert!(page.contains("A (series-1)") && !page.contains("B (series-2)"), "{page}");
    assert!(page.contains("B has no curve: histograms.fuzzy/response: a stored"), "{page}");
    damage(&mut both[0]);
    let page = curves(&both);
    assert!(page.contains("A has no curve") && !page.contains("series"), "{page}");
}

#[test]
fn a_comment_for_a_pull_request_has_the_answers() {
    let both = [record("aaaaaaaa", 10, 10.0), record("bbbbbbbb", 20, 13.0)];
    let comparison = compared(&both, &past(5), &["p99>+5%"]);
    let sheet = comparison.sheet(&both, &vec![crate::series::Series::new(); 2]);
    let text = crate::markdown::render(&sheet);
    insta::assert_snapshot!(text);
}

#[test]
fn a_build_server_sees_rules_or_answers() {
    let both = [record("aaaaaaaa", 10, 10.0), record("bbbbbbbb", 20, 13.0)];
    let ruled =
        crate::junit::render_comparison(&compared(&both, &past(5), &["p99>+5%", "p50>+5%"]));
    assert!(ruled.contains("tests=\"2\" failures=\"1\" errors=\"0\""), "{ruled}");
    let unknown = crate::junit::render_comparison(&compared(&both, &[], &["p99>+5%"]));
    assert!(unknown.contains("failures=\"0\" errors=\"1\""), "{unknown}");
    let plain = crate::junit::render_comparison(&compared(&both, &past(5), &[]));
    assert!(
        plain.contains("failures=\"1\"") && plain.contains("name=\"B against A: p99\""),
        "{plain}"
    );
}
