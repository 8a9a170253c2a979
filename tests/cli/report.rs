//! plimsoll report.

use crate::process::{PATIENCE, Place, until};
use crate::record::Record;
use crate::server::Server;
use std::time::Duration;

#[test]
fn of_nothing_is_one_clear_line() {
    let place = Place::new();
    place.file("file", "x");
    std::fs::create_dir(place.path().join("empty")).unwrap();
    for (args, word) in [
        (&["report"][..], "runs"),
        (&["report", "--runs", "empty"], "empty"),
        (&["report", "empty"], "empty"),
        (&["report", "missing"], "missing"),
        (&["report", "file"], "file"),
        (&["report", "--format", "xml"], "xml"),
    ] {
        let ended = place.run(args).expect(64);
        assert_eq!(ended.stderr.lines().count(), 1, "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(word), "{args:?}: {}", ended.stderr);
        assert_eq!(ended.stdout, "");
    }
}

#[test]
fn a_run_is_found_by_its_id_repeated_and_ends_with_its_code() {
    let (place, server) = (Place::quiet(), Server::ok());
    let args = ["load", &server.url(), "--clients", "1", "--requests", "40", "--slo", "p95=1ns"];
    place.run(args).expect(2);
    let runs = std::fs::read_dir(place.path().join("runs")).unwrap();
    let folder = runs.flatten().next().unwrap().path().display().to_string();
    let id = folder.rsplit('-').next().unwrap();
    let text = place.run(["report", id]).expect(0).stdout;
    assert!(text.contains(id) && text.contains("MISSED"), "{text}");
    place.run(["report", id, "--exit-code"]).expect(2);
    assert!(place.run(["report", "--all"]).expect(0).stdout.contains(&server.url()));
    place.run(["run", &folder, "--no-record"]).expect(2);
    assert_eq!(server.requests(), 80, "the run of the record, once more");
    let json = format!("{folder}/run.json");
    let shown = place.run(["run", &json, "--dry-run"]).expect(0).stdout;
    assert!(shown.contains("p95=1ns"), "{shown}");
    assert_eq!(server.requests(), 80);
}

/// As where the disk is full: the page is there all the same, and nobody takes the run for kept.
#[test]
fn a_record_that_is_lost_ends_in_exit_code_1_with_the_page() {
    let (place, server) = (Place::new(), Server::ok());
    let args = ["load", &server.url(), "--rate", "50", "--duration", "2s"];
    let running = place.start(args);
    until("the run is under way", Duration::from_secs(30), || server.requests() >= 20);
    std::fs::rename(place.path().join("runs"), place.path().join("gone")).unwrap();
    let ended = running.wait(PATIENCE).expect(1);
    assert!(ended.stdout.contains("Latency, ms"), "{}", ended.stdout);
    let first = ended.stdout.lines().next().unwrap();
    assert!(first.ends_with("but a file of the result is lost, exit 1"), "{}", ended.stdout);
    let lines: Vec<&str> =
        ended.stderr.lines().filter(|line| line.contains("not written")).collect();
    assert_eq!(lines.len(), 1, "{}", ended.stderr);
    assert!(lines[0].starts_with("plimsoll: the record could not be written"), "{}", ended.stderr);
}

#[test]
fn a_result_is_printed_though_its_file_cannot_be_written() {
    let (place, server) = (Place::new(), Server::ok());
    let args = ["load", &server.url(), "--clients", "1", "--requests", "20", "--json", "/dev/full"];
    let ended = place.run(args).expect(1);
    assert!(ended.stdout.contains("Latency, ms"), "{}", ended.stdout);
    assert!(
        ended.stderr.contains("--json /dev/full: no space left on device; free some space"),
        "{}",
        ended.stderr
    );
}

#[test]
fn all_forms_of_the_latest_run() {
    let (place, server) = (Place::new(), Server::ok());
    let url = server.url();
    place.run(["load", &url, "--clients", "1", "--requests", "3"]).expect(0);
    let live = place.run(["load", &url, "--clients", "2", "--requests", "50"]).expect(0);
    let text = place.run(["report"]).expect(0).stdout;
    assert_eq!(text, live.stdout, "the report of a run says what the run said");
    let record = Record::of(&place.run(["report", "--format", "json"]).expect(0));
    record.expect_balanced();
    assert_eq!(record.ok(), 50);
    let csv = place.run(["report", "--format", "csv"]).expect(0).stdout;
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows[0].len(), rows[1].len());
    let column = rows[0].iter().position(|name| *name == "ok").unwrap();
    assert_eq!(rows[1][column], "50");
    let fbench = place.run(["report", "--format", "fbench"]).expect(64);
    assert!(fbench.stderr.contains("not a run of plimsoll fbench"), "{}", fbench.stderr);

    // By name, from elsewhere, and after the run's folder was moved.
    let folder = std::fs::read_dir(place.path().join("runs")).unwrap().next().unwrap().unwrap();
    std::fs::rename(folder.path(), place.path().join("moved")).unwrap();
    place.run(["report", "moved"]).expect(0);
}

/// Flags to which several runs have no answer would pass whatever was measured.
#[test]
fn several_runs_have_no_assertion_and_no_exit_code() {
    let (place, server) = (Place::quiet(), Server::ok());
    let url = server.url();
    for _ in 0..2 {
        place.run(["load", &url, "--clients", "1", "--requests", "4"]).expect(0);
    }
    let runs = std::fs::read_dir(place.path().join("runs")).unwrap();
    let folders: Vec<String> = runs.flatten().map(|run| run.path().display().to_string()).collect();
    let several = ["report", &folders[0], &folders[1], "--format", "benchpress"];
    place.run(several).expect(0);
    for flag in [&["--assert", "global p95 < 1us"][..], &["--exit-code"]] {
        for words in [&several[..], &["report", "--all"]] {
            let ended = place.run([words, flag].concat()).expect(64);
            assert!(ended.stderr.contains(flag[0]), "{}", ended.stderr);
            assert!(ended.stderr.contains("needs a single run"), "{}", ended.stderr);
        }
    }
}
