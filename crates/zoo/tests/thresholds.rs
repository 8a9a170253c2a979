//! The thresholds of THRESHOLDS.md with fewer seeds, each share with three binomial standard errors' allowance.

use plimsoll_zoo::models::{self, Model};
use plimsoll_zoo::parallel::map;
use plimsoll_zoo::table::{self, Outcome};

const SEEDS: u64 = 60;

fn check(model: &Model) {
    let outcomes: Vec<Outcome> = map(SEEDS, |seed| table::search(model, &model.goal(seed)).0);
    let least = |wanted: f64| wanted - 3.0 * (wanted * (1.0 - wanted) / SEEDS as f64).sqrt();
    let covered = table::share(&outcomes, |o| o.covers);
    assert!(covered >= least(0.93), "{}: intervals cover {covered}", model.name);
    if model.five_percent_s.is_some_and(|seconds| seconds <= 120.0) {
        let within = table::share(&outcomes, |o| o.error.abs() <= 0.05);
        assert!(within >= least(0.95), "{}: {within} within 5 %", model.name);
        let certified = table::share(&outcomes, |o| o.certified_error.abs() <= 0.05);
        assert!(certified >= least(0.95), "{}: {certified} certified within 5 %", model.name);
    }
    let none = table::share(&outcomes, |o| o.certified_error.is_nan());
    assert!(none <= 0.02 + 3.0 * (0.02 * 0.98 / SEEDS as f64).sqrt(), "{}: {none}", model.name);
    for outcome in &outcomes {
        assert!(outcome.certified_error.is_nan() || outcome.certified_error.abs() <= 0.2);
        assert!(outcome.error.abs() <= 0.2, "{}: {outcome:?}", model.name);
        assert!(outcome.elapsed_s <= 300.0 + 16.0 * model.limit_s + 4.0, "{outcome:?}");
    }
    let median_s = table::quantile(outcomes.iter().map(|o| o.elapsed_s), 0.5);
    assert!(median_s <= 300.0, "{}: {median_s} s", model.name);
}

#[test]
fn mm1_holds_the_thresholds() {
    check(&models::tuning()[0]);
}

#[test]
fn mm4_holds_the_thresholds() {
    check(&models::tuning()[1]);
}

#[test]
fn mm16_of_100_ms_holds_the_thresholds() {
    check(&models::tuning()[2]);
}

#[test]
fn mm16_of_5_ms_holds_the_thresholds() {
    check(&models::tuning()[3]);
}

#[test]
fn feed_holds_the_thresholds() {
    check(&models::tuning()[4]);
}

#[test]
fn mh8_holds_the_thresholds() {
    check(&models::tuning()[5]);
}

#[test]
fn mm80_with_p99_holds_the_thresholds() {
    check(&models::tuning()[6]);
}
