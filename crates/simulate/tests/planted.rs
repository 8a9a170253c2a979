//! The judge finds what is planted: a judge who never finds anything would be content with every engine.

use plimsoll_simulate::driver::{first_found, silence_panics};
use plimsoll_simulate::parts::Part;
use plimsoll_simulate::planted::Planted;

#[test]
fn each_planted_defect_is_found_within_a_thousand_runs() {
    silence_panics();
    let part = |name: &str| Part::named(name).expect("a part");
    for planted in Planted::ALL {
        // Of two requests on one connection only a protocol with several can confuse the answers.
        let name = if planted == Planted::SwappedAnswers { "http2" } else { "http1" };
        let found = first_found(part(name), planted, 1_000);
        assert!(found.is_some(), "not found in {name}: {}", planted.words());
    }
}

#[test]
fn nothing_is_found_where_nothing_is_planted() {
    silence_panics();
    let postgres = Part::named("postgres").expect("a part");
    assert_eq!(first_found(postgres, Planted::Nothing, 200), None);
}
