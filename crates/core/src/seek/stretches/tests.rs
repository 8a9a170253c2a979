use super::*;
use crate::seek::goal::Goal;
use crate::seek::made::{Made, goal};

fn steady(_: f64) -> (f64, f64) {
    (160.0, 200.0)
}

/// Runs `test` on a search that has not begun.
fn on<T>(plant: &mut Made, goal: &Goal, test: impl FnOnce(&mut Search<'_>) -> T) -> T {
    let mut observe = |_: &Event| ();
    let mut search = Search::new(plant, goal, &mut observe);
    test(&mut search)
}

fn stretch(rate_per_s: f64, scheduled: u64, late: u64, at_s: f64) -> Stretch {
    let mut counts = Window { scheduled, ..Window::default() };
    counts.late[0] = late;
    Stretch { rate_per_s, counts, seconds: 4.0, at_s }
}

#[test]
fn a_line_below_half_of_the_capacity_needs_requests_in_time_below_it() {
    let capacity = Some(Capacity::of(200.0, 0.01));
    let said = |line: f64, capacity, curve: &[Stretch]| {
        on(&mut Made::new(steady), &goal(300.0), |search| {
            (search.capacity, search.curve) = (capacity, curve.to_vec());
            search.late_below(line)
        })
    };
    // Three late ones of 60 are what the limit allows: that it holds there is not shown.
    let few = [stretch(30.0, 60, 3, 0.0)];
    let many = [stretch(30.0, 600, 6, 0.0)];
    assert!(
        said(80.0, capacity, &few)
            .is_some_and(|why| why.contains("too few requests at rates well below the line"))
    );
    assert_eq!(said(80.0, capacity, &many), None);
    // Nearer to capacity theory says that lateness comes from load; without a capacity nobody does.
    assert_eq!(said(120.0, capacity, &few), None);
    assert!(said(120.0, None, &few).is_some());
    // Requests at the line itself show nothing of what is below it.
    assert!(said(80.0, capacity, &[stretch(75.0, 6000, 6, 0.0)]).is_some());
}

#[test]
fn a_limit_that_is_broken_well_below_the_line_is_named() {
    let said = |late: u64| {
        on(&mut Made::new(steady), &goal(300.0), |search| {
            search.capacity = Some(Capacity::of(200.0, 0.01));
            search.curve = vec![stretch(60.0, 400, late, 0.0), stretch(155.0, 400, 300, 0.0)];
            search.late_below(160.0)
        })
    };
    assert_eq!(said(20), None, "as many as the limit allows");
    let why = said(30).expect("more than the limit allows");
    assert_eq!(why, "no interval: p95=100ms was also missed at rates well below the line");
}

#[test]
fn a_lost_line_is_bracketed_from_above_and_from_below() {
    for from in [20.0, 160.0, 1500.0] {
        on(&mut Made::new(steady), &goal(300.0), |search| {
            search.bracket_from(from).unwrap();
            let (low, high) = search.bracket;
            assert!(low < 170.0 && high > 155.0 && high / low < 1.7, "{from}: {low} {high}");
        });
    }
    let capped = Goal { most_per_s: 100.0, ..goal(300.0) };
    let stop = on(&mut Made::new(steady), &capped, |search| search.bracket_from(60.0));
    assert_eq!(stop, Err(Stop::NeverViolated));
    let mut floor = Made { floor: 0.5, ..Made::new(steady) };
    let stop = on(&mut floor, &goal(300.0), |search| search.bracket_from(60.0));
    assert_eq!(stop, Err(Stop::Infeasible));
    let mut late = Made { lag_p99_s: 1.0, ..Made::new(steady) };
    let stop = on(&mut late, &goal(300.0), |search| search.bracket_from(60.0));
    assert_eq!(stop, Err(Stop::GeneratorLimited));
}

#[test]
fn what_is_left_goes_into_stretches_of_about_the_same_length() {
    on(&mut Made::new(steady), &goal(400.0), |search| {
        search.elapsed_s = 397.0;
        assert_eq!(search.next_half(), None, "too short for a block on either side");
        search.elapsed_s = 0.0;
        let half = search.next_half().unwrap();
        let least = LEAST_BLOCKS.div_ceil(2);
        assert!((least..=least + 2).contains(&half), "{half}");
        // The last stretch takes what would be too short for another one.
        search.elapsed_s = 400.0 - 1.6 * (search.order_s(0) + 6.0 * search.block_s);
        assert!(search.next_half().unwrap() > half);
    });
}

#[test]
fn a_state_that_is_over_takes_its_blocks_with_it() {
    on(&mut Made::new(steady), &goal(400.0), |search| {
        let all: Vec<Stretch> =
            (0..10u32).map(|i| stretch(160.0, 100, 5, f64::from(i) * 10.0)).collect();
        (search.blocks, search.runs, search.curve) = (all.clone(), all.clone(), all);
        search.elapsed_s = 100.0;
        let before = Some(Capacity::of(200.0, 0.01));
        let after = Capacity::of(300.0, 0.01);
        search.forget((70.0, 70.0), None, Known::Near(160.0));
        assert_eq!((search.blocks.len(), search.runs.len(), search.curve.len()), (3, 3, 3));
        assert_eq!((search.since_s, search.changes.len()), (70.0, 0));
        search.forget((80.0, f64::INFINITY), before, Known::Capacity(after, 150.0));
        assert_eq!((search.blocks.len(), search.curve.len()), (0, 0));
        assert_eq!((search.since_s, search.fit), (100.0, None));
        let change =
            Change { from_s: 80.0, until_s: 100.0, before_per_s: 200.0, after_per_s: 300.0 };
        assert_eq!(search.changes, [change]);
    });
}

#[test]
fn a_state_is_known_by_its_newest_blocks() {
    on(&mut Made::new(steady), &goal(400.0), |search| {
        let all: Vec<Stretch> = (0..2500u32).map(|i| stretch(160.0, 1, 0, f64::from(i))).collect();
        (search.blocks, search.runs, search.curve) = (all.clone(), all.clone(), all);
        search.keep_the_newest();
        assert_eq!((search.blocks.len(), search.runs.len()), (BLOCKS_MAX, BLOCKS_MAX));
        assert_eq!((search.curve.len(), search.curve[0].at_s), (CURVE_MAX, 500.0));
        assert_eq!(search.blocks[0].at_s, 1900.0);
    });
}

#[test]
fn lines_are_apart_when_their_errors_do_not_explain_it() {
    on(&mut Made::new(steady), &goal(400.0), |search| {
        let of = |line: f64, half: f64| Fit {
            estimate_per_s: line,
            interval_per_s: (line * (1.0 - half), line * (1.0 + half)),
            slope: 12.0,
            dispersion: 10.0,
        };
        // Half-widths of 5 % are standard errors of 2.55 %; of both 3.6 %, and 3.5 times that is 12.6 %.
        assert!(!search.are_apart(&of(100.0, 0.05), &of(112.0, 0.05)));
        assert!(search.are_apart(&of(100.0, 0.05), &of(115.0, 0.05)));
        assert!(search.are_apart(&of(115.0, 0.05), &of(100.0, 0.05)));
        assert!(!search.are_apart(&of(100.0, 0.05), &of(115.0, 0.10)));
    });
}

#[test]
fn an_order_ends_early_only_after_a_long_time_of_late_requests() {
    on(&mut Made::new(steady), &goal(400.0), |search| {
        let abort = search.nearly_all_late(160.0);
        assert!((abort.excess * 0.05 - ALL_LATE).abs() < 1e-9);
        let block = 160.0 * search.block_s;
        let late = abort.late_min as f64;
        assert!((LATE_BLOCKS.0 * block - 1.0..=LATE_BLOCKS.1 * block).contains(&late), "{late}");
        assert_eq!(search.nearly_all_late(0.5).late_min, 100, "so few that they say nothing");
    });
}
