//! A few runs of `make sabotage` and `make loaded` on real sockets, of which the truth stays the same on a machine that does other things.

use crate::process::Place;
use plimsoll_sabotage::judging::Grade;
use plimsoll_sabotage::sockets::stage::Stage;
use plimsoll_sabotage::sockets::{list, loaded};

#[test]
fn verdicts_are_right_where_the_truth_is_plain() {
    let _place = Place::alone();
    let stage = Stage::of(env!("CARGO_BIN_EXE_plimsoll").into());
    for (case, grade) in list::sample() {
        let finding = stage.run_once(&case).unwrap();
        assert_eq!(finding.wrong, None, "{}: {}", case.kind, finding.said);
        assert!(finding.defects.is_empty(), "{}: {:?}", case.kind, finding);
        if grade == Some(Grade::NotTheTargets) {
            assert_eq!(finding.grade, Grade::NotTheTargets, "{}: {}", case.kind, finding.said);
        }
    }
}

#[test]
fn no_run_on_a_loaded_machine_says_more_than_its_observer_saw() {
    let _place = Place::alone();
    let stage = Stage::of(env!("CARGO_BIN_EXE_plimsoll").into());
    for case in loaded::sample() {
        let finding = stage.run_once(&case).unwrap();
        assert_eq!(finding.wrong, None, "{}: {}", case.kind, finding.said);
        assert!(finding.defects.is_empty(), "{}: {:?}", case.kind, finding);
        if case.kind == "suspended for a minute" {
            let said = "the machine was suspended for 60.0 s";
            assert!(finding.said.contains(said), "{}", finding.said);
        }
    }
}
