use super::*;
use crate::sessions::{Parts, QueryTally};

fn about() -> CellAbout {
    CellAbout {
        key: CellKey { users: 4, ..CellKey::default() },
        queries: vec!["a".to_owned(), "b".to_owned()],
        refused: vec![None, None],
        window: Window::Fixed { warmup_ns: 0, length_ns: 10_000_000_000 },
        think_ms: Some(0.0),
        ..CellAbout::default()
    }
}

/// A run in which `ok` requests of 100 ms each ended in the window.
fn run(ok: u64) -> Measured {
    let mut totals = Interval::new(2);
    for at in 0..ok {
        let class = &mut totals.classes[(at % 2) as usize];
        class.record_ok(100_000_000, 100_000_000);
    }
    totals.ledger.ok = ok;
    let query = QueryTally { ok: ok / 2, failed: 0, hits_min: Some(7), hits_max: Some(7) };
    Measured {
        totals,
        tally: Tally {
            start_ns: 1,
            window_ok: ok,
            window_sum_ns: u128::from(ok) * 100_000_000,
            queries: vec![query; 2],
            ..Tally::default()
        },
        elapsed_s: 12.0,
        server_cpu_s: Some(4.0),
        ..Measured::default()
    }
}

#[test]
fn a_cell_is_the_mean_of_its_repeats_with_an_interval() {
    let cell = cell(&about(), &[run(398), run(400), run(402)]);
    assert_eq!(cell.ok_per_s, Some(40.0));
    let [low, high] = cell.interval_per_s.unwrap();
    assert!(low < 40.0 && high > 40.0 && high - low < 1.1, "{low} {high}");
    assert_eq!((cell.ok, cell.failed, cell.mean_ms), (1200, 0, 100.0));
    // Four users at 40 a second wait 100 ms each: the books are right.
    assert_eq!(cell.implied_ms, Some(100.0));
    assert!((cell.little.unwrap() - 1.0).abs() < 1e-12);
    assert_eq!(cell.server_cpu_ms_per_request, Some(10.0));
    assert_eq!(cell.queries[1].hits, Some(7));
    assert_eq!(cell.queries[1].latency_ms.count, 600);
    assert!(cell.marks.is_empty(), "{:?}", cell.marks);
    assert_eq!(cell.elapsed_s, 36.0);
}

#[test]
fn one_failure_withholds_the_number_and_keeps_the_rest() {
    let mut bad = run(400);
    bad.tally.queries[0].failed = 2;
    bad.totals.ledger.failed.timeout = 2;
    bad.first_failure = Some("query 'a': timeout".to_owned());
    let cell = cell(&about(), &[run(400), bad]);
    assert_eq!((cell.ok_per_s, cell.raw_ok_per_s, cell.timed_out), (None, 40.0, 2));
    assert_eq!((cell.implied_ms, cell.little), (None, None), "users were busy failing too");
    let reason = cell.reason.unwrap();
    assert_eq!(reason, "2 of 802 requests failed (timeout 2); first: query 'a': timeout");
}

#[test]
fn a_failure_of_a_warm_up_of_its_own_withholds_the_number_too() {
    let mut warm = run(40);
    warm.tally.queries[1].failed = 1;
    warm.totals.ledger.failed.timeout = 1;
    warm.first_failure = Some("query 'b': timeout".to_owned());
    let cell = cell(&about(), &[run(400).after(warm)]);
    assert_eq!((cell.ok_per_s, cell.raw_ok_per_s, cell.timed_out), (None, 40.0, 1));
    let reason = "1 of 441 requests failed (timeout 1); first: query 'b': timeout";
    assert_eq!(cell.reason.as_deref(), Some(reason));
    // The figures of the window are those of the run itself; all of the time and the work counts.
    assert_eq!((cell.mean_ms, cell.latency_ms.count), (100.0, 400));
    assert_eq!((cell.elapsed_s, cell.ok, cell.server_cpu_s), (24.0, 440, Some(8.0)));
    let fine = super::cell(&about(), &[run(400).after(run(40))]);
    assert_eq!((fine.ok_per_s, fine.queries[0].hits), (Some(40.0), Some(7)));
}

#[test]
fn a_refused_query_withholds_or_is_left_out() {
    let mut about = about();
    about.refused[1] = Some("400: no".to_owned());
    let withheld = cell(&about, &[run(400)]);
    assert_eq!(withheld.reason.as_deref(), Some("query 'b' not answered: 400: no"));
    assert_eq!(withheld.queries[1].refused.as_deref(), Some("400: no"));
    about.on_refused = OnRefused::Skip;
    let skipped = cell(&about, &[run(400)]);
    assert_eq!(skipped.ok_per_s, Some(40.0));
    assert_eq!(skipped.marks, ["1 of 2 queries"]);
    about.refused[0] = Some("400: no".to_owned());
    assert_eq!(cell(&about, &[]).ok_per_s, None, "there is nothing left to count");
}

#[test]
fn what_flatters_is_marked() {
    let mut partial = run(400);
    partial.tally.queries[1] = QueryTally::default();
    partial.tally.queries[0].hits_max = Some(9);
    partial.health.busy = 0.99;
    let by_agents = |limited: &[&str]| {
        let limited = Some(limited.iter().map(|name| (*name).to_owned()).collect());
        super::cell(&about(), &[Measured { limited, ..partial.clone() }]).marks[1].clone()
    };
    assert_eq!(by_agents(&["b", "a"]), "generator busy: agent a, agent b");
    assert_eq!(by_agents(&[]), "hits varied", "each agent judges its own generator");
    let late = vec!["b".to_owned()];
    let late = Measured { late, limited: Some(Vec::new()), ..partial.clone() };
    assert_eq!(super::cell(&about(), &[late.clone(), late]).marks[1], "late start: agent b");
    let cell = cell(&about(), &[partial]);
    assert_eq!(cell.marks, ["only 1 of 2 queries came up", "generator busy", "hits varied"]);
}

#[test]
fn a_cell_that_was_still_warming_up_is_marked_with_how_much() {
    let warmed = |early: u64, late: u64| {
        let mut one = run(early + late);
        one.tally.parts = Parts::new(5_000_000_000, 2);
        (0..early).for_each(|n| one.tally.parts.add(0, n, 100_000_000));
        (0..late).for_each(|n| one.tally.parts.add(0, 6_000_000_000 + n, 100_000_000));
        one
    };
    let cold = cell(&about(), &[warmed(160, 240), warmed(200, 200)]);
    assert_eq!(cold.marks, ["second half 50 % faster: not warm yet"]);
    assert_eq!(cold.ok_per_s, Some(40.0), "the number stands");
    let gains: Vec<_> = cold.repeats.iter().map(|one| one.second_half_gain.unwrap()).collect();
    assert!((gains[0] - 0.5).abs() < 1e-9 && gains[1].abs() < 1e-9, "{gains:?}");
    assert!(cell(&about(), &[warmed(190, 210)]).marks.is_empty());
    assert_eq!(cell(&about(), &[run(400)]).repeats[0].second_half_gain, None);
}

#[test]
fn rows_that_ran_out_leave_a_window_half_full() {
    let mut out = run(400);
    out.tally.rows_used_up = true;
    let fixed = cell(&about(), std::slice::from_ref(&out));
    assert!(fixed.reason.unwrap().contains("rows were used up"));
    let to_end = CellAbout { window: Window::ToEnd(40_000_000_000), ..about() };
    assert_eq!(cell(&to_end, &[out]).marks, ["rows used up"]);
}

#[test]
fn a_window_without_an_answer_has_no_rate() {
    let nothing = cell(&about(), &[run(0)]);
    assert!(nothing.reason.unwrap().contains("longer --duration"));
    let mut passes = CellAbout { window: Window::FirstDone, ..about() };
    let mut one = run(100);
    one.tally.first_over_ns = 5_000_000_001;
    assert_eq!(cell(&passes, &[one]).ok_per_s, Some(20.0));
    // Of users who come and go all count, over the profile's own length at least.
    let mut late = run(100);
    late.tally.last_ns = 8_000_000_001;
    let all = |least_ns, one: &Measured| {
        let about = CellAbout { window: Window::ToEnd(least_ns), think_ms: None, ..about() };
        let cell = cell(&about, std::slice::from_ref(one));
        (cell.ok_per_s, cell.implied_ms)
    };
    assert_eq!(all(0, &late), (Some(12.5), None));
    assert_eq!(all(10_000_000_000, &late), (Some(10.0), None));
    passes.marks.push("clamped to 2".to_owned());
    assert_eq!(cell(&passes, &[]).reason.as_deref(), Some("not measured"));
    assert_eq!(cell(&passes, &[]).marks, ["clamped to 2"]);
}
