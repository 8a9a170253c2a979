//! Erlvolt's five runs at VoltDB itself, counted to the last vote.

use crate::engines::install;
use crate::process::Place;
use crate::record::Record;
use crate::voter::{expect_exact, rejected, run};

const CALLS: u64 = 10_000;

#[test]
fn voltdb_is_the_target_of_a_job() {
    install("voltdb");
    let place = Place::busy();
    place.file(
        "mine.toml",
        "[job]\nname = \"mine\"\ndescription = \"Votes at VoltDB.\"\n\
         command = [\"voter\", \"{target_url}\", \"--calls\", \"2000\", \"--clients\", \"20\"]\n\
         target = { serve = [\"voltdb\", \"--port\", \"0\", \"--heap\", \"256MiB\"], ready_within = \"2m\" }\n",
    );
    let ended = place.run(["run", "mine.toml", "--json", "record.json", "--quiet"]);
    // A machine that is busy may make the generator late; the votes are what matters here.
    assert!(matches!(ended.code, Some(0 | 3)), "{ended:?}");
    let record = Record(serde_json::from_str(&place.read("record.json")).unwrap());
    expect_exact(&record);
    assert_eq!(record.ok(), 2000);
    let folder = std::fs::read_dir(place.path().join("runs")).unwrap().next().unwrap().unwrap();
    let log = std::fs::read_to_string(folder.path().join("target.log")).unwrap();
    assert!(log.contains("Server completed initialization"), "{log}");
}

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
