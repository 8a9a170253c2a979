//! Searches without an interval name a budget that is enough for one: is it, and is it no more than that?

use crate::models::Model;
use crate::parallel::map;
use crate::table::{Outcome, quantile, search};
use plimsoll_core::seek::goal::Goal;

/// Outcome of one search, and of searches with other seeds and the budget that it named.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// The search itself.
    pub first: Outcome,
    /// The budget that it named, s, if it had no interval.
    pub enough_s: Option<f64>,
    /// True if a search with half of that, with that, and with twice that has an interval.
    pub then: [bool; 3],
}

/// The shares of the named budget that are tried.
const SHARES: [f64; 3] = [0.5, 1.0, 2.0];

/// Searches a model, and again with what the first search named.
#[must_use]
pub fn ask(model: &Model, goal: &Goal) -> Named {
    let (first, found) = search(model, goal);
    let enough_s = Some(found.basis.needs_s).filter(|_| !first.has_interval);
    let then = SHARES.map(|share| {
        enough_s.is_some_and(|enough_s| {
            let seed = goal.seed + 500_000;
            search(model, &Goal { budget_s: share * enough_s, seed, ..goal.clone() }).0.has_interval
        })
    });
    Named { first, enough_s, then }
}

/// The table's head for [`line_of()`].
pub const HEAD: &str = "model          | budget s | interval covers %  certified >10% % | names s med | interval at 0.5x  1x  2x %";

/// Asks `seeds` times and returns a line of the table.
#[must_use]
pub fn line_of(model: &Model, budget_s: f64, width: f64, first_seed: u64, seeds: u64) -> String {
    let goal = |seed| Goal { budget_s, width, ..model.goal(first_seed + seed) };
    let asked = map(seeds, |seed| ask(model, &goal(seed)));
    let share = |holds: &dyn Fn(&Named) -> bool, of: &dyn Fn(&Named) -> bool| {
        let chosen = asked.iter().filter(|one| of(one));
        let (held, all) =
            chosen.fold((0, 0), |sum, one| (sum.0 + usize::from(holds(one)), sum.1 + 1));
        if all == 0 { f64::NAN } else { 100.0 * f64::from(held as u32) / f64::from(all) }
    };
    let any = |_: &Named| true;
    let then = |at: usize| share(&|one| one.then[at], &|one| one.enough_s.is_some());
    let certified = |one: &Named| !one.first.certified_error.is_nan();
    format!(
        "{:14} | {budget_s:8.0} | {:8.1} {:6.1}    {:9.1} {:5.1}   | {:11.0} | {:16.1} {:5.1} {:5.1}",
        model.name,
        share(&|one| one.first.has_interval, &any),
        share(&|one| one.first.covers, &|one| one.first.has_interval),
        share(&certified, &any),
        share(&|one| one.first.certified_error > 0.1, &any),
        quantile(asked.iter().map(|one| one.enough_s.unwrap_or(f64::NAN)), 0.5),
        then(0),
        then(1),
        then(2),
    )
}
