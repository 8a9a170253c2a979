//! Erlvolt's five runs at VoltDB itself, counted to the last vote.

use crate::engines::install;
use crate::process::Place;
use crate::voter::{expect_exact, rejected, run};

const CALLS: u64 = 10_000;

#[test]
fn the_five_presets_are_exact_at_voltdb() {
    install("voltdb");
    let place = Place::busy();
    let target = place.serve(&["voltdb", "--heap", "256MiB"]);
    let calls = CALLS.to_string();
    let mut rows = 0;
    for (seed, preset) in [("1", "VSD"), ("2", "VSM"), ("3", "VBM"), ("4", "VBD")] {
        let args = ["voter", preset, &target.url, "--calls", &calls, "--seed", seed, "--quiet"];
        let record = run(&place, &args);
        expect_exact(&record);
        assert_eq!(record.count("/voter/rows_before"), rows, "{preset}");
        rows = record.count("/voter/rows_after");
        assert_eq!(record.ok(), CALLS, "{preset}");
        assert!(record.count("/voter/rejected/contestant") > 0, "{preset}");
        assert!((1..CALLS / 10).contains(&rejected(&record)), "{preset}");
        assert_eq!(record.count("/voter/server/ms/count"), CALLS, "{preset}");
    }
    let record = run(&place, &["voter", "HSD", &target.url, "--calls", &calls, "--quiet"]);
    assert_eq!((record.ok(), record.text("/job")), (CALLS, "hello"));
    // Two clients at once: each counts the rows of its own telephones, and both come out even.
    let args = ["voter", &target.url, "--processes", "2", "--calls", &calls, "--seed", "5"];
    let record = run(&place, &[&args[..], &["--quiet"]].concat());
    expect_exact(&record);
    assert_eq!(record.ok(), CALLS);
}
