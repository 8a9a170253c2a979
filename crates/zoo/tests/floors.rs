//! Failures at every rate: whatever the budget, no rate and no line is named.

use plimsoll_zoo::floors::{all, names_a_rate};
use plimsoll_zoo::parallel::map;

#[test]
fn a_share_that_fails_at_every_rate_has_no_line() {
    const SEEDS: u64 = 24;
    for floor in all() {
        for budget_s in [5.0, 15.0, 30.0, 60.0, 120.0, 300.0] {
            let found = map(SEEDS, |seed| floor.search(seed, budget_s));
            let named: Vec<_> = found.iter().filter(|found| names_a_rate(found)).collect();
            // A floor of 1.2 times what is allowed is chance in a few of the searches.
            let most = if floor.times < 1.5 { 2 } else { 0 };
            let first = named.first().map(|found| &found.reason);
            assert!(
                named.len() <= most,
                "{floor:?}, {budget_s} s: {} name a rate: {first:?}",
                named.len()
            );
        }
    }
}
