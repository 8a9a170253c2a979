//! `plimsoll import`: files of other tools become records that are shown, listed, judged and compared.

use crate::process::Place;
use crate::record::Record;
use crate::server::Server;
use serde_json::Value;
use std::path::PathBuf;

/// Files that other tools wrote, with the formats that they have.
const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../import/tests/files");

fn file(name: &str) -> String {
    format!("{FILES}/{name}")
}

/// The folder of the newest record.
fn newest(place: &Place) -> PathBuf {
    let entries = std::fs::read_dir(place.path().join("runs")).unwrap();
    entries.map(|entry| entry.unwrap().path()).max().unwrap()
}

#[test]
fn every_file_becomes_a_record_that_fits_the_schema_and_can_be_printed_again() {
    let place = Place::new();
    let mut files = 0;
    for entry in std::fs::read_dir(FILES).unwrap() {
        let path = entry.unwrap().path();
        if path.ends_with("README.md") {
            continue;
        }
        let path = path.to_str().unwrap();
        let page = place.run(["import", path]).expect(0).stdout;
        assert!(page.starts_with("Result     imported, not judged, exit 0\n"), "{path}: {page}");
        assert_eq!(place.run(["report"]).expect(0).stdout, page, "{path}");
        let record = Record::of(&place.run(["report", "--format", "json"]).expect(0));
        record.expect_schema();
        let folder = newest(&place);
        // The seconds add up to the whole, and there is no log of times that the file does not give.
        let journal = folder.join("intervals.ndjson");
        assert_eq!(journal.exists(), record.0["import"]["has_seconds"] == true, "{path}");
        if let Ok(lines) = std::fs::read_to_string(journal) {
            let ok = |line: &str| -> u64 {
                let line: Value = serde_json::from_str(line).unwrap();
                line["ledger"]["ok"].as_u64().unwrap()
            };
            let sum: u64 = lines.lines().map(ok).sum();
            let times = ["response", "service"].map(|kind| &record.0["latency_ms"][kind]["count"]);
            let count = times.iter().find_map(|count| count.as_u64()).unwrap();
            assert_eq!(sum, count, "{path}");
            assert!(!folder.join("lag.hlog").exists(), "{path}");
        }
        files += 1;
    }
    assert!(files > 40, "{files}");
    let listed: Value =
        serde_json::from_str(&place.run(["runs", "--json"]).expect(0).stdout).unwrap();
    assert_eq!(listed["runs"].as_array().unwrap().len(), files);
    assert!(listed["runs"].as_array().unwrap().iter().all(|run| run["exit_code"] == 0));
    place.run(["report", "--all"]).expect(0);
}

#[test]
fn name_labels_files_and_assertions_are_those_of_other_commands() {
    let place = Place::new();
    let wrk = file("wrk-latency.txt");
    let flags =
        ["--name", "before", "--label", "commit=3f2a", "--json", "a.json", "--csv", "a.csv"];
    let judged = ["--junit", "a.xml", "--assert", "global service.p99 < 1s"];
    place.run([&["import", &wrk][..], &flags, &judged].concat()).expect(0);
    let record: Value = serde_json::from_str(&place.read("a.json")).unwrap();
    assert_eq!((&record["name"], &record["labels"]["commit"]), (&"before".into(), &"3f2a".into()));
    assert!(record["latency_ms"]["response"].is_null() && record["ledger"]["scheduled"].is_null());
    assert!(place.read("a.csv").lines().count() == 3 && place.read("a.xml").contains("<skipped"));
    let missed =
        place.run(["import", &wrk, "--no-record", "--assert", "global p99 < 1s"]).expect(2);
    assert!(
        missed.stdout.contains("MISSED global p99 < 1000ms: unknown, exit 2"),
        "{}",
        missed.stdout
    );
    place.run(["report", "--assert", "global service.p95 < 1s"]).expect(2);
    place.run(["report", "--exit-code"]).expect(0);
}

/// The numbers of the plots of a page.
fn plots(page: &str) -> &str {
    page.split_once("id=\"data\">").unwrap().1.split_once('<').unwrap().0
}

#[test]
fn a_page_has_its_plots_over_time_whether_a_record_is_kept_or_not() {
    let place = Place::new();
    for name in ["k6.ndjson", "hdr-tags.hlog", "pgbench-log-rate.txt"] {
        let file = file(name);
        place.run(["import", &file, "--html", "kept.html"]).expect(0);
        place.run(["import", &file, "--html", "alone.html", "--no-record"]).expect(0);
        let (kept, alone) = (place.read("kept.html"), place.read("alone.html"));
        assert!(kept.contains("Requests per second: achieved"), "{name}: no plot over time");
        assert_eq!(plots(&kept), plots(&alone), "{name}");
        let again = place.run(["report", "--format", "html"]).expect(0).stdout;
        assert_eq!(again, kept, "{name}");
    }
}

#[test]
fn what_cannot_be_imported_is_one_line() {
    let place = Place::new();
    place.file("notes", "dear diary\n");
    place.file("cut", "Running 3s test @ http://127.0.0.1/\n  1 threads and 4 connections\n");
    for (args, words) in [
        (vec!["import", "notes"], "notes: no known format begins with 'dear diary'"),
        (vec!["import", "cut"], "cut: no line 'Requests/sec:' in it"),
        (vec!["import", "nowhere"], "nowhere: cannot be read: "),
        (vec!["import", "."], ".: cannot be read: "),
        (vec!["import", "notes", "--format", "wurk"], "expected one of hlog, hgrm"),
        (vec!["import", "notes", "--format", "wrk", "--unit", "us"], "--unit is for the formats"),
        (vec!["import", "notes", "--live"], "unknown option '--live'"),
        (vec!["import", "notes", "--watch", "nginx"], "unknown option '--watch'"),
        (vec!["import", "notes", "--unit", "min"], "expected ns, us, ms or s"),
    ] {
        let ended = place.run(args.clone()).expect(64);
        assert_eq!(ended.stderr.lines().count(), 1, "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(words), "{args:?}: {}", ended.stderr);
    }
    assert!(!place.path().join("runs").exists(), "nothing is left behind");
}

#[test]
fn an_import_is_compared_with_a_run() {
    let (place, server) = (Place::new(), Server::ok());
    place.run(["import", &file("wrk-latency.txt")]).expect(0);
    let imported = newest(&place);
    let url = server.url();
    let ended = place.run(["load", &url, "--clients", "1", "--requests", "200", "--quiet"]);
    assert!([Some(0), Some(3)].contains(&ended.code), "{}", ended.stderr);
    let measured = newest(&place);
    let paths = [imported.to_str().unwrap(), measured.to_str().unwrap()];
    let text = place.run([&["compare"][..], &paths].concat()).expect(0).stdout;
    assert!(text.contains("imported, measured by wrk") && text.contains("service p99"), "{text}");
    assert!(text.contains("only B has response times; they are not compared"), "{text}");
    let json = place.run([&["compare", "--format", "json"][..], &paths].concat()).expect(0).stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    let rows = json["figures"]["figures"].as_array().unwrap();
    let row = rows.iter().find(|row| row["figure"] == "service p95").unwrap();
    assert!(row["a"].is_null() && row["b"].is_number() && row["change_pct"].is_null(), "{row}");
}
