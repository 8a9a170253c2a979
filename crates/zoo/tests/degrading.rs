//! Targets that complete less under overload than just below it, and those that only seem to.

use plimsoll_core::seek::finding::Finding;
use plimsoll_core::seek::goal::Goal;
use plimsoll_zoo::models::{Model, degrading, tuning};
use plimsoll_zoo::parallel::map;
use plimsoll_zoo::table;

const SEEDS: u64 = 100;
const BUDGET_S: f64 = 120.0;

fn search(model: &Model, seed: u64) -> Finding {
    table::search(model, &Goal { budget_s: BUDGET_S, ..model.goal(seed) }).1
}

fn named(models: Vec<Model>, name: &str) -> Model {
    models.into_iter().find(|model| model.name == name).expect("a model of that name")
}

/// M/D/1 of 1 ms completes 1,000/s until 200 requests wait, and 880/s under overload.
#[test]
fn the_line_of_a_target_that_degrades_is_above_its_capacity() {
    let model = named(degrading(), "M/D/1 -12 %");
    let found = map(SEEDS, |seed| search(&model, seed));
    let peaks = found.iter().filter_map(|found| found.peak_per_s);
    let peaks = peaks.filter(|per_s| *per_s > 930.0).count();
    assert!(peaks * 10 >= found.len() * 8, "{peaks} peaks");
    let intervals: Vec<_> = found.iter().filter_map(|found| found.interval_per_s).collect();
    let right = intervals.iter().filter(|(low, high)| (*low..=*high).contains(&model.line_per_s));
    assert!(intervals.len() * 10 >= found.len() * 8, "{} intervals", intervals.len());
    assert!(right.count() * 10 >= intervals.len() * 9, "{intervals:?} for {}", model.line_per_s);
}

/// A look at a capacity may see less than the target completes, and one above it more, by chance.
#[test]
fn chance_makes_no_peak() {
    let mut peaks = Vec::new();
    for name in ["M/M/4", "M/H2/8", "M/M/16 5ms"] {
        let model = named(tuning(), name);
        let found = map(SEEDS, |seed| search(&model, seed).peak_per_s);
        peaks.extend(found.into_iter().flatten().map(|per_s| (name, per_s)));
    }
    assert!(peaks.len() <= 3 * SEEDS as usize / 100, "{peaks:?}");
}
