//! The error rates of comparisons by pairs, on fewer sessions than `make ab-zoo` has.

use plimsoll_zoo::ab::models::{self, Model};
use plimsoll_zoo::ab::rivals::{Claim, claims};
use plimsoll_zoo::ab::session::{Outcome, Plant, SESSION_S, Session};
use plimsoll_zoo::ab::table::Row;
use plimsoll_zoo::parallel::map;

fn model(name: &str) -> Model {
    models::all().into_iter().find(|model| model.name == name).expect("a model of the zoo")
}

fn sessions(name: &str, plant: Plant, budget_s: f64, count: u64) -> Vec<Outcome> {
    let model = model(name);
    map(count, |seed| Session { model, plant, seed, budget_s, may_end_early: true }.at_fixed_rate())
}

#[test]
fn equal_sides_are_rarely_called_different_and_five_percent_is_found() {
    for name in ["lognormal", "bimodal"] {
        let row = Row::of(model(name), 40, 0);
        // With 5 % of the sessions wrong, 7 of 40 have a probability below 0.4 %.
        for (metric, share) in row.false_claims().iter().enumerate() {
            assert!(share.count <= 6, "{name}, {metric}: {share:?}");
        }
        for (metric, share) in row.found().iter().enumerate() {
            assert!(share.count >= 34, "{name}, {metric}: {share:?}");
        }
        for (column, share) in row.covered().iter().enumerate() {
            assert!(share.count >= 33, "{name}, {column}: {share:?}");
        }
    }
}

#[test]
fn a_clear_difference_ends_a_session_in_a_third_of_the_time() {
    let all = sessions("exponential", Plant::CLEAR, SESSION_S, 20);
    let time = all.iter().map(|one| one.took_s).sum::<f64>() / 20.0;
    assert!(time < 65.0, "{time}");
}

#[test]
fn a_queue_that_remembers_for_long_gets_longer_blocks() {
    // In the 180 s of the table, 80 pairs leave no room for longer ones.
    let block = |name| {
        let all = sessions(name, Plant::NONE, 300.0, 20);
        all.iter().map(|one| one.plan.block_s).sum::<f64>() / 20.0
    };
    let (short, long) = (block("M/M/1 at 0.5"), block("M/M/1 at 0.95"));
    assert!(short < 1.1 && long > 1.25, "{short} {long}");
}

#[test]
fn one_run_after_the_other_is_wrong_where_pairs_are_right() {
    let all = map(30, |seed| claims(model("lognormal"), Plant::NONE, seed));
    for rival in 0..5 {
        let wrong = all.iter().filter(|one| one[rival] != Claim::No).count();
        // 5 % would be one or two.
        assert!(wrong >= 7, "rival {rival}: {wrong} of 30");
    }
}
