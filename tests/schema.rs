//! A real record of every job, against plimsoll's own servers: each fits the committed schema.

use crate::process::{Ended, Place, Target, until};
use crate::record::Record;
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(120);

/// Runs a command that writes `record.json`, and returns the record if it fits the schema. What others took from the
/// machine may make a result that is not valid, but no record of another form.
#[track_caller]
fn record(place: &Place, args: &[&str]) -> Record {
    let mut words = args.to_vec();
    // The flags of `ab` end at the words of its blocks.
    let at = words.iter().position(|word| *word == "--").unwrap_or(words.len());
    words.splice(at..at, ["--json", "record.json"]);
    let ended = place.start(words).wait(LONG);
    checked(place, &ended)
}

#[track_caller]
fn checked(place: &Place, ended: &Ended) -> Record {
    assert!(
        [Some(0), Some(2), Some(3)].contains(&ended.code),
        "{}\n{}",
        ended.stdout,
        ended.stderr
    );
    let record = Record(serde_json::from_str(&place.read("record.json")).unwrap());
    record.expect_schema();
    record
}

/// The sections of a record.
fn sections(record: &Record) -> BTreeSet<String> {
    let known = all_sections();
    record.0.as_object().unwrap().keys().filter(|key| known.contains(*key)).cloned().collect()
}

/// The sections that the schema has: what no run must have, but for what all runs may have.
fn all_sections() -> BTreeSet<String> {
    let schema: Value = serde_json::from_str(include_str!("../docs/run.schema.json")).unwrap();
    let required: Vec<&str> =
        schema["required"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    let of_all =
        ["assertions", "command", "intervals", "labels", "name", "network", "outlets", "resources"];
    let names = schema["properties"].as_object().unwrap().keys();
    names
        .filter(|name| !required.contains(&name.as_str()) && !of_all.contains(&name.as_str()))
        .cloned()
        .collect()
}

fn queue(place: &Place) -> Target {
    place.serve(&["queue", "--servers", "2", "--service", "fixed:2ms"])
}

/// One command for each section, and those that have several.
#[test]
fn a_real_record_of_every_job_fits_the_schema() {
    // First: it has a place of its own.
    let by_an_agent = Record(serde_json::from_str(&crate::fleet::sample()).unwrap());
    let place = Place::quiet_for_long();
    let mut seen = BTreeSet::new();
    let mut take = |record: Record, expected: &[&str]| {
        let found = sections(&record);
        assert_eq!(found, expected.iter().map(|&name| name.to_owned()).collect());
        seen.extend(found);
    };
    by_an_agent.expect_schema();
    take(by_an_agent, &["fleet"]);
    let target = queue(&place);
    let url = target.url.as_str();
    let load = ["load", url, "--rate", "50", "--duration", "1s", "--slo", "p95=1s"];
    take(record(&place, &[&load[..], &["--assert", "global p95 < 1s"]].concat()), &[]);
    let seek = ["seek", url, "--slo", "p95=50ms", "--budget", "6s", "--max-rate", "60"];
    take(record(&place, &seek), &["seek"]);
    let users = [&seek[..], &["--users", "constant", "--user-requests", "2"]].concat();
    take(record(&place, &users), &["seek"]);
    let block = ["--", "load", "--rate", "50", "--duration", "200ms", "--warmup", "0s"];
    let sides = ["ab", "--a", url, "--b", url, "--budget", "15s"];
    take(record(&place, &[&sides[..], &block].concat()), &["ab"]);
    take(rival(&place), &["rival"]);
    take(fbench(&place), &["fbench"]);
    let wrk = concat!(env!("CARGO_MANIFEST_DIR"), "/../import/tests/files/wrk-latency.txt");
    take(record(&place, &["import", wrk]), &["import"]);
    take(
        record(&place, &["rank", "-q", "10", "-d", "2", "-w", "1", "--scale", "9", "-i", "1000"]),
        &["rank"],
    );
    let calls = ["--calls", "300", "--no-record"];
    take(record(&place, &[&["voter", "VSD"], &calls[..]].concat()), &["voter"]);
    let voter = record(&place, &[&["voter", "VSD", "--processes", "2"], &calls[..]].concat());
    take(voter, &["fleet", "voter"]);
    take(record(&place, &[&["hello"], &calls[..]].concat()), &["voter"]);
    let small = ["--sizes", "100kB", "--duration", "300ms", "--warmup", "100ms", "--users", "1,2"];
    take(record(&place, &[&["search", "--engine", "index"], &small[..]].concat()), &["search"]);
    documents(&place, &mut take);
    take(catalogue(&place), &["voter", "catalogue", "hooks"]);
    assert_eq!(seen, all_sections(), "a section has no record here");
}

/// A feed, a visit of what was fed, and a feed beside queries.
fn documents(place: &Place, take: &mut impl FnMut(Record, &[&str])) {
    let target = place.serve(&["search"]);
    let url = target.url.as_str();
    let put = |i: u32| {
        format!("{{\"put\":\"id:plimsoll:doc::{i}\",\"fields\":{{\"title\":\"number {i}\"}}}}\n")
    };
    place.file("in", (0..500).map(put).collect::<String>());
    take(record(place, &["feed", url, "in"]), &["feed"]);
    take(record(place, &["visit", url, "--cluster", "plimsoll", "--slices", "2"]), &["visit"]);
    place.file(
        "mix.toml",
        format!(
            "[feed]\ntargets = [\"{url}\"]\nfiles = [\"in\"]\nload = {{ model = \"open\", rate_per_s = 400 }}\n\
             [queries]\ntargets = [\"{url}/search/?query=number\"]\nduration = \"2s\"\n\
             load = {{ model = \"closed\", clients = 2 }}\n"
        ),
    );
    take(record(place, &["run", "mix.toml"]), &["mix", "feed"]);
}

/// Another tool's search takes minutes; one that is stopped has its section all the same.
fn rival(place: &Place) -> Record {
    let target = queue(place);
    let args = [
        "seek",
        target.url.as_str(),
        "--slo",
        "p95=50ms",
        "--strategy",
        "mutilate",
        "--json",
        "record.json",
    ];
    let running = place.start(args);
    let asked = || target.stats()["answered"].as_u64().unwrap_or(0) >= 20;
    until("the search is in its first trial", Duration::from_secs(30), asked);
    running.signal(Signal::INT);
    checked(place, &running.wait(LONG))
}

fn fbench(place: &Place) -> Record {
    let target = place.serve(&["null"]);
    let (host, port) =
        target.url.trim_start_matches("http://").trim_end_matches('/').split_once(':').unwrap();
    place.file("queries.txt", "/a\n/b\n");
    record(place, &["fbench", "-n", "2", "-s", "1", "-q", "queries.txt", host, port])
}

/// The job puts its name and its hooks into the record that its command has left.
fn catalogue(place: &Place) -> Record {
    let folders = || -> BTreeSet<PathBuf> {
        let entries = std::fs::read_dir(place.path().join("runs")).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    };
    let before = folders();
    let ended = place.start(["run", "voter", "-i", "{\"calls\": \"300\"}"]).wait(LONG);
    assert!([Some(0), Some(3)].contains(&ended.code), "{}\n{}", ended.stdout, ended.stderr);
    let folder = folders().difference(&before).next().unwrap().clone();
    let text = std::fs::read(folder.join("run.json")).unwrap();
    let record = Record(serde_json::from_slice(&text).unwrap());
    record.expect_schema();
    record
}

/// A record whose result cannot be read is one line that names the file and the field; no page without the section.
#[test]
fn a_result_that_cannot_be_read_is_an_error_that_names_file_and_field() {
    let place = Place::new();
    place.run(["voter", "VSD", "--calls", "100", "--json", "record.json"]);
    let folder =
        std::fs::read_dir(place.path().join("runs")).unwrap().next().unwrap().unwrap().path();
    let path = folder.join("run.json");
    let good: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let mut renamed = good.clone();
    let voter = renamed["voter"].as_object_mut().unwrap();
    let accepted = voter.shift_remove("accepted").unwrap();
    voter.insert("votes".to_owned(), accepted);
    let mut wrong = good;
    wrong["voter"]["processes"][0]["rate_per_s"] = Value::from("fast");
    for (record, words) in
        [(renamed, "voter: missing field `accepted`"), (wrong, "voter.processes[0].rate_per_s: ")]
    {
        std::fs::write(&path, record.to_string()).unwrap();
        for format in ["text", "json", "csv", "junit", "html", "markdown", "benchpress"] {
            let ended = place.run(["report", folder.to_str().unwrap(), "--format", format]);
            assert!(ended.code != Some(0) && ended.stdout.is_empty(), "{format}: {}", ended.stdout);
            assert!(
                ended.stderr.contains("run.json") && ended.stderr.contains(words),
                "{}",
                ended.stderr
            );
        }
    }
}
