//! Resources of target and generator in the record of a run.

use super::record;
use crate::process::{Place, Running};
use crate::record::Record;
use crate::server::Server;
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

fn lines(place: &Place) -> Vec<Value> {
    let runs = place.path().join("runs");
    let newest: PathBuf =
        std::fs::read_dir(runs).unwrap().map(|run| run.unwrap().path()).max().unwrap();
    let text = std::fs::read_to_string(newest.join("resources.ndjson")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn names(record: &Record) -> Vec<String> {
    let watched = record.0["resources"]["watched"].as_array().unwrap();
    watched.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}

/// The process that listens on the target's port is found by itself, and the lines count on the clock of the seconds.
#[test]
fn the_target_and_the_generator_are_watched_by_themselves() {
    // A look at the processes that comes half a second late is no line of the first half second.
    let place = Place::quiet();
    let target = place.serve(&["null"]);
    // The kernel counts a process's time in steps of 10 ms, which few requests do not fill.
    let flags = ["--rate", "2000", "--duration", "2s", "--warmup", "1s"];
    let ended = place.run([&["load", &target.url, "--json", "-"], &flags[..]].concat());
    let seen = Record::of(&ended);
    seen.expect_schema();
    assert_eq!(names(&seen), ["serve-null", "generator"]);
    let resources = &seen.0["resources"];
    assert!(resources["samples"].as_u64().unwrap() >= 1, "{resources}");
    let of = |index: usize, figure: &str| resources["watched"][index][figure]["mean"].as_f64();
    for index in [0, 1] {
        assert!(of(index, "cpu_cores").is_some_and(|cores| cores > 0.0), "{resources}");
        assert!(of(index, "rss_bytes").is_some_and(|bytes| bytes > 1e6), "{resources}");
        assert!(of(index, "network_sent_bytes_per_s").is_none(), "unknown is absent");
        let why = resources["watched"][index]["unknown"]["network_sent_bytes"].as_str().unwrap();
        assert!(why.contains("shares the network"), "{why}");
    }
    assert!(resources["machine"]["cores_busy"].as_array().is_some_and(|cores| !cores.is_empty()));
    let lines = lines(&place);
    let at = |line: &Value| line["at_s"].as_f64().unwrap();
    assert!(at(&lines[0]) < 0.5 && lines.iter().any(|line| at(line) > 0.9), "{lines:?}");
    for line in &lines {
        assert_eq!(line["watched"][0]["name"], "serve-null");
        assert!(line["watched"][0].get("network_sent_bytes").is_none(), "{line}");
    }
}

#[test]
fn what_the_user_names_is_watched_and_what_is_not_there_is_an_error_before_any_load() {
    let place = Place::new();
    let server = Server::ok();
    let sleeper = Running::start(place.program("sleep", ["600"]), b"");
    let flags = ["--requests", "50", "--watch", "quiet=sleep", "--watch", "1"];
    let seen = record(&place, &server.url(), &flags, 0);
    let own = names(&seen);
    assert!(own.len() == 3 && own[0] == "quiet" && own[2] == "generator", "{own:?}");
    let before = server.requests();
    for (watch, word) in [
        ("slep", "no process is called 'slep'"),
        ("slep", "similar programs run: "),
        ("2147483646", "no process has the number"),
        ("generator=sleep", "plimsoll's own"),
        ("", "expected a PID"),
    ] {
        let ended = place.run(["load", &server.url(), "--watch", watch]).expect(64);
        assert!(ended.stderr.contains(word), "{}", ended.stderr);
    }
    let ended =
        place.run(["load", &server.url(), "--watch", "sleep", "--watch", "sleep"]).expect(64);
    assert!(ended.stderr.contains("give one of them a label"), "{}", ended.stderr);
    assert_eq!(server.requests(), before, "nothing was sent");
    let none = record(&place, &server.url(), &["--requests", "50", "--watch", "none"], 0);
    assert!(none.0.get("resources").is_none());
    drop(sleeper);
}

/// A process that ends while it is watched is a remark on the page; the run is as good as without it.
#[test]
fn a_watched_process_that_ends_is_a_remark() {
    let place = Place::new();
    let server = Server::ok();
    let sleeper = Running::start(place.program("sleep", ["600"]), b"");
    let pid = sleeper.id().to_string();
    let run = place.start([
        "load",
        &server.url(),
        "--rate",
        "20",
        "--duration",
        "4s",
        "--watch",
        &pid,
        "--json",
        "run.json",
    ]);
    std::thread::sleep(Duration::from_millis(1500));
    drop(sleeper);
    let ended = run.wait(Duration::from_secs(30));
    let told = format!("sleep: no process any more, process {pid} ended, at ");
    assert!(ended.stdout.replace("\n           ", " ").contains(&told), "{}", ended.stdout);
    let record = Record(serde_json::from_str(&place.read("run.json")).unwrap());
    assert!(record.0["resources"]["remarks"][0].as_str().unwrap().starts_with(&told));
    let last = lines(&place).pop().unwrap();
    assert_eq!(last["watched"][0]["processes"], 0);
    assert!(last["watched"][0].get("rss_bytes").is_none(), "gone is not zero: {last}");
}
