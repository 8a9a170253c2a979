use super::*;
use crate::seek::made::{Made, goal};

const LINE: f64 = 160.0;

fn steady(_: f64) -> (f64, f64) {
    (LINE, 200.0)
}

fn faster(at_s: f64) -> (f64, f64) {
    if at_s < 150.0 { (LINE, 200.0) } else { (1.5 * LINE, 300.0) }
}

fn down_a_little(at_s: f64) -> (f64, f64) {
    if at_s < 700.0 { (LINE, 200.0) } else { (0.86 * LINE, 200.0) }
}

fn up_a_little(at_s: f64) -> (f64, f64) {
    if at_s < 700.0 { (LINE, 200.0) } else { (1.18 * LINE, 200.0) }
}

fn sluggish(at_s: f64) -> (f64, f64) {
    if at_s < 150.0 { (LINE, 200.0) } else { (0.75 * LINE, 200.0) }
}

fn follow(plant: &mut Made, budget_s: f64) -> (Finding, Vec<Watched>) {
    let mut reported = Vec::new();
    let found = watch(plant, &goal(budget_s), &mut |event| {
        if let Event::Watched(one) = event {
            reported.push(one.clone());
        }
    });
    let watched = found.watch.clone().expect("a curve, even an empty one");
    assert_eq!(reported, watched, "what is reported on the way is what the finding has");
    for pair in watched.windows(2) {
        assert_eq!(pair[0].until_s, pair[1].from_s, "a gap");
    }
    assert!(found.certified.is_none() && found.estimate_per_s.is_none());
    assert!(found.interval_per_s.is_none() && found.half_width.is_none());
    assert!(found.failing.is_none() && found.broke.is_none());
    (found, watched)
}

fn holds(one: &Watched, line: f64) -> bool {
    one.interval_per_s.is_some_and(|(low, high)| (low..=high).contains(&line))
}

#[test]
fn a_steady_target_is_in_one_state_until_the_budget_is_over() {
    let (found, watched) = follow(&mut Made::new(steady), 400.0);
    assert_eq!(found.verdict, Verdict::Ok);
    assert!(found.reason.starts_with("the line stayed between "), "{}", found.reason);
    assert!(watched.len() >= 6, "{watched:#?}");
    assert!(watched.iter().all(|one| one.state == 1 && holds(one, LINE)), "{watched:#?}");
    let last = watched.last().unwrap();
    assert!((390.0..=405.0).contains(&last.until_s), "{last:?}");
    // The interval narrows while the state lasts, because all its blocks count.
    let width = |one: &Watched| one.interval_per_s.map(|(low, high)| high - low).unwrap();
    assert!(width(last) < 0.7 * width(&watched[0]), "{watched:#?}");
    assert!(last.blocks > 2 * watched[0].blocks);
    assert!(found.changes.is_empty());
}

#[test]
fn a_capacity_that_changes_ends_the_state() {
    let (found, watched) = follow(&mut Made::new(faster), 400.0);
    assert!(found.reason.starts_with("the line moved from "), "{}", found.reason);
    let at = watched.iter().position(|one| one.until_s > 150.0).unwrap();
    // The stretch in which it showed has no line: its blocks may belong to either state.
    let noticed = watched[at..].iter().find(|one| one.note.is_some()).unwrap();
    assert!(noticed.note.as_ref().unwrap().starts_with("the target became faster"), "{noticed:?}");
    assert!(noticed.line_per_s.is_none() && noticed.interval_per_s.is_none());
    assert!(watched[..at].iter().all(|one| one.state == 1 && holds(one, LINE)), "{watched:#?}");
    let after: Vec<_> = watched.iter().filter(|one| one.state == 2).collect();
    assert!(after.len() >= 3, "{watched:#?}");
    assert!(after.iter().all(|one| holds(one, 1.5 * LINE)), "{after:#?}");
    // Nothing of the state before is behind the new line.
    assert!(after.iter().all(|one| one.blocks_from_s > noticed.from_s), "{after:#?}");
    assert_eq!(found.changes.len(), 1);
    assert!((found.changes[0].after_per_s / found.changes[0].before_per_s - 1.5).abs() < 0.05);
}

#[test]
fn a_line_that_moves_a_little_takes_no_block_of_the_old_state_along() {
    for (moves, line) in [(down_a_little as fn(f64) -> (f64, f64), 0.86), (up_a_little, 1.18)] {
        let (_, watched) = follow(&mut Made::new(moves), 2000.0);
        let after: Vec<_> = watched.iter().filter(|one| one.state > 1).collect();
        let last = after.last().expect("another state");
        assert!(holds(last, line * LINE), "{watched:#?}");
        let with_a_line = after.iter().filter(|one| one.blocks > 0);
        for one in with_a_line {
            assert!(one.blocks_from_s >= 700.0, "{one:#?}");
        }
    }
}

#[test]
fn a_line_that_moves_without_the_capacity_ends_the_state_too() {
    let (_, watched) = follow(&mut Made::new(sluggish), 500.0);
    let moved = watched.iter().any(|one| {
        one.note.as_ref().is_some_and(|note| {
            note.starts_with("the line moved without the capacity")
                || note.starts_with("nearly all")
        })
    });
    assert!(moved, "{watched:#?}");
    let last = watched.last().unwrap();
    assert!(last.state > 1 && holds(last, 0.75 * LINE), "{watched:#?}");
}

#[test]
fn an_end_that_somebody_asks_for_keeps_what_there_is() {
    let mut plant = Made { stop_s: 200.0, ..Made::new(steady) };
    let (found, watched) = follow(&mut plant, 4000.0);
    assert_eq!(found.verdict, Verdict::Ok);
    assert!(holds(watched.last().unwrap(), LINE));
    let (found, watched) = follow(&mut Made { stop_s: 5.0, ..Made::new(steady) }, 4000.0);
    assert_eq!((found.verdict, watched.len()), (Verdict::Interrupted, 0));
}

#[test]
fn a_budget_without_a_stretch_says_what_it_takes() {
    let (found, watched) = follow(&mut Made::new(steady), 5.0);
    assert_eq!((found.verdict, watched.len()), (Verdict::BudgetTooSmall, 0));
    assert!(found.reason.starts_with("no interval: it needs "), "{}", found.reason);
}

#[test]
fn a_share_that_is_late_at_every_rate_gives_no_interval() {
    let (found, watched) = follow(&mut Made { floor: 0.06, ..Made::new(steady) }, 200.0);
    assert!(watched.iter().all(|one| one.interval_per_s.is_none()), "{watched:#?}");
    assert!(matches!(found.verdict, Verdict::Infeasible | Verdict::BudgetTooSmall), "{found:?}");
}

#[test]
fn a_generator_that_is_late_is_not_the_targets_line() {
    let (found, watched) = follow(&mut Made { lag_p99_s: 0.05, ..Made::new(steady) }, 200.0);
    assert!(watched.iter().all(|one| one.line_per_s.is_none()), "{watched:#?}");
    assert_eq!(found.verdict, Verdict::GeneratorLimited);
}

#[test]
fn intervals_are_wider_than_those_of_one_fit() {
    let fit =
        Fit { estimate_per_s: 100.0, interval_per_s: (90.0, 115.0), slope: 12.0, dispersion: 10.0 };
    let (low, high) = wider(&fit);
    assert!((low - 100.0 * 0.9f64.powf(1.2)).abs() < 1e-9 && low < 90.0, "{low}");
    assert!((high - 100.0 * 1.15f64.powf(1.2)).abs() < 1e-9 && high > 115.0, "{high}");
}

#[test]
fn the_whole_is_said_by_the_last_interval_of_each_state() {
    let one = |state: u32, line: f64, half: f64| Watched {
        from_s: 0.0,
        until_s: 1.0,
        state,
        line_per_s: Some(line),
        interval_per_s: Some((line - half, line + half)),
        capacity_per_s: None,
        blocks: 8,
        blocks_from_s: 0.0,
        note: None,
    };
    let none = Watched { interval_per_s: None, ..one(2, 500.0, 1.0) };
    let stayed = how_it_went(&[one(1, 100.0, 30.0), one(1, 104.0, 5.0), none.clone()]);
    assert_eq!(stayed, "the line stayed between 99.0/s and 109.0/s");
    let moved = how_it_went(&[one(1, 100.0, 5.0), none, one(3, 150.0, 5.0)]);
    assert_eq!(moved, "the line moved from 100.0/s to 150.0/s");
    let back = how_it_went(&[one(1, 100.0, 5.0), one(2, 150.0, 5.0), one(3, 102.0, 5.0)]);
    let text =
        "the line moved from 100.0/s to 102.0/s, and was between 100.0/s and 150.0/s meanwhile";
    assert_eq!(back, text);
}
