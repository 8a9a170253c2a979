//! The same election over PostgreSQL: one function call, or four statements in a transaction.

use super::{expect_exact, run};
use crate::process::Place;
use std::os::unix::fs::PermissionsExt;

#[test]
fn presets_functions_statements_and_processes_are_exact() {
    let place = Place::busy();
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(place.path(), open).unwrap();
    let target = place.serve(&["postgresql", "--durability", "none"]);
    let url = target.url.as_str();
    let few = ["voter", url, "--calls", "2000", "--quiet"];
    let runs: [&[&str]; 7] = [
        &["VSD", "--seed", "1"],
        &["VSM", "--seed", "2"],
        &["VBM", "--seed", "3"],
        &["VBD", "--seed", "4"],
        &["--workers", "50", "--connections", "8", "--seed", "5"],
        &["--workers", "10", "--seed", "6", "--sql", "statements"],
        &["--workers", "10", "--seed", "7", "--processes", "2"],
    ];
    let mut rows = 0;
    for own in runs {
        let record = run(&place, &[&few[..], own].concat());
        assert_eq!(record.count("/voter/rows_before"), rows, "{own:?}");
        rows = record.count("/voter/rows_after");
        assert_eq!(record.ok(), 2000, "{own:?}");
        // Under read committed two transactions of one telephone may both pass the limit, and both are rows.
        expect_exact(&record);
    }
    let strict =
        ["--workers", "16", "--seed", "8", "--sql", "statements", "--isolation", "serializable"];
    let record = run(&place, &[&few[..], &strict].concat());
    assert_eq!(record.text("/voter/check"), "ok");
    assert_eq!(record.0["voter"]["contestants"].as_array().unwrap().len(), 6);
    let again = ["voter", "HSD", url, "--calls", "2000", "--quiet"];
    assert_eq!(run(&place, &again).ok(), 2000);
}

#[test]
fn a_role_that_is_not_let_in_is_told_in_the_servers_words() {
    let place = Place::new();
    let target = place.serve(&["postgresql", "--durability", "none"]);
    let url = format!("postgres://nobody:x@127.0.0.1:{}/plimsoll", target.port);
    let ended = place.run(["voter", &url]).expect(64);
    let told = super::line(&ended);
    assert!(told.contains("nobody") && !told.contains("nobody:x"), "{told}");
}
