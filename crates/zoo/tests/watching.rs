//! Lines that are followed over time, with few seeds: the share of intervals that hold the line of their moment.

use plimsoll_core::seek::finding::Verdict;
use plimsoll_zoo::parallel::map;
use plimsoll_zoo::watching::{Followed, Outcome, all};

const SEEDS: u64 = 24;
/// Intervals of one search share their blocks, so the share over searches is what has an error.
const ALLOWANCE: f64 = 0.07;

fn follow(name: &str) -> Vec<Outcome> {
    let plant: Followed =
        all().into_iter().find(|plant| plant.name == name).expect("a plant of that name");
    let outcomes = map(SEEDS, |seed| {
        let (outcome, found) = plant.follow(seed, 600.0);
        assert_eq!(found.verdict, Verdict::Ok, "{name} {seed}: {}", found.reason);
        assert!(found.certified.is_none() && found.interval_per_s.is_none(), "{found:?}");
        let watched = found.watch.expect("a curve");
        assert!(watched.windows(2).all(|pair| pair[0].until_s == pair[1].from_s));
        outcome
    });
    let intervals: usize = outcomes.iter().map(|o| o.intervals).sum();
    let covering: usize = outcomes.iter().map(|o| o.covering).sum();
    let share = covering as f64 / intervals.max(1) as f64;
    assert!(intervals >= 2 * SEEDS as usize, "{name}: {intervals} intervals");
    assert!(share >= 0.93 - ALLOWANCE, "{name}: {share} of {intervals}");
    outcomes
}

fn states(outcomes: &[Outcome]) -> f64 {
    outcomes.iter().map(|o| f64::from(o.states)).sum::<f64>() / outcomes.len() as f64
}

#[test]
fn a_steady_target_has_one_state_whose_interval_narrows() {
    for name in ["M/M/4", "M/M/16 5ms"] {
        let outcomes = follow(name);
        assert!(states(&outcomes) < 1.2, "{name}: {} states", states(&outcomes));
        let narrow = outcomes.iter().filter(|o| o.half_width < 0.1).count();
        assert!(narrow * 10 >= outcomes.len() * 9, "{name}: {narrow}");
    }
}

#[test]
fn a_step_begins_another_state_whose_line_is_found() {
    for name in ["-25 % at 150s", "+33 % at 150s", "cold 1.5x 150s"] {
        let outcomes = follow(name);
        assert!((1.8..2.5).contains(&states(&outcomes)), "{name}: {}", states(&outcomes));
        let late = outcomes.iter().filter(|o| o.delay_s.is_nan() || o.delay_s > 200.0).count();
        assert!(late <= 3, "{name}: {late} never found the new line");
    }
}

#[test]
fn servers_that_are_added_raise_the_line() {
    let outcomes = follow("scales out 4-8");
    assert!(states(&outcomes) >= 2.0, "{}", states(&outcomes));
}
