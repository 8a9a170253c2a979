//! Ctrl-C and worse in each phase of a job, of a benchmark and of a search: a verdict, a record, nothing left behind.

use crate::process::{Place, Running, expect_gone, until};
use rustix::process::Signal;
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(90);

/// The only record of a place, with its folder.
#[track_caller]
fn only_record(place: &Place) -> (PathBuf, Value) {
    let runs = std::fs::read_dir(place.path().join("runs")).unwrap();
    let folders: Vec<PathBuf> = runs.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(folders.len(), 1, "{folders:?}");
    let path = folders[0].to_str().unwrap();
    let json = place.run(["report", path, "--format", "json"]).expect(0).stdout;
    (folders[0].clone(), serde_json::from_str(&json).unwrap())
}

/// Whole seconds that the journal of the only run holds so far.
fn seconds_kept(place: &Place) -> usize {
    let runs = std::fs::read_dir(place.path().join("runs")).into_iter().flatten().flatten();
    let journal = |folder: std::fs::DirEntry| {
        std::fs::read_to_string(folder.path().join("intervals.ndjson")).ok()
    };
    runs.filter_map(journal).map(|text| text.lines().count()).max().unwrap_or(0)
}

/// A job that can be made to last long in each of its phases.
const PHASES: &str = r#"
[job]
name = "phases"
description = "A test."
install = [["load", "{url}", "--rate", "20", "--duration", "{install}", "--no-record", "--quiet"]]
target = { serve = ["rank", "--port", "0", "--scale", "{scale}", "--walk-calls", "100"], ready_within = "5m" }
prepare = [["load", "http://{target_host}:{target_port}/rank", "--rate", "10", "--duration", "{prepare}"]]
command = ["load", "http://{target_host}:{target_port}/rank", "--rate", "20", "--duration", "{run}"]

[[job.hooks]]
name = "file"
options = [{ type = "dir", path = "for-the-run" }]

[[job.hooks]]
name = "shell"
options = { before = ["sleep BEFORE", "touch later"], after = ["sleep AFTER; touch undone"] }

[[job.hooks]]
name = "cpu-mpstat"

[job.vars]
url = { required = true }
install = { default = "100ms" }
scale = { default = "9" }
prepare = { default = "100ms" }
run = { default = "1s" }
"#;

#[track_caller]
fn stopped_in(phase: &str, more: &[&str], hooks: [&str; 2], word: &str) -> (Place, String, Value) {
    let (place, server) = (Place::new(), crate::server::Server::ok());
    place.file("phases.toml", PHASES.replace("BEFORE", hooks[0]).replace("AFTER", hooks[1]));
    let url = format!("url={}", server.url());
    let args = [&["run", "phases.toml", "--quiet", "-i", &url], more].concat();
    let running = place.start(args);
    running.wait_for_descendant(word, SOON);
    // The process is there; what it is asked to do has begun a moment later.
    std::thread::sleep(Duration::from_millis(300));
    let started = running.descendants();
    running.signal(Signal::INT);
    let ended = running.wait(SOON).expect(3);
    assert!(ended.took < SOON, "{phase}: {:?}", ended.took);
    expect_gone(&started);
    assert!(!place.path().join("for-the-run").exists(), "{phase}: what a hook made is left");
    let (_, record) = only_record(&place);
    assert_eq!(record["catalogue"]["name"], "phases", "{phase}");
    let text = place.run(["report", "phases"]).expect(0).stdout;
    assert!(text.starts_with("Result     "), "{text}");
    (place, ended.stderr, record)
}

#[test]
fn a_job_that_is_stopped_before_its_load_says_in_which_phase() {
    let short = ["0", "0"];
    for (phase, more, hooks, word, reason) in [
        ("files", &["-i", "install=61s"][..], short, "--duration 61s", "while its files were made"),
        ("hooks", &[], ["61", "0"], "sleep 61", "while its hooks began"),
        ("target", &["-i", "scale=21"], short, "serve rank", "before the target answered"),
        ("preparation", &["-i", "prepare=62s"], short, "--duration 62s", "while preparing"),
    ] {
        let (place, stderr, record) = stopped_in(phase, more, hooks, word);
        assert_eq!(record["verdict"]["kind"], "partial", "{phase}");
        let told = record["verdict"]["reasons"][0].as_str().unwrap();
        assert!(told.contains(reason), "{phase}: {told}");
        assert!(stderr.contains("phases was stopped before its end"), "{phase}: {stderr}");
        assert_eq!(record["ledger"]["scheduled"], 0, "{phase}");
        // A hook that was cut goes no further; what undoes things afterwards is done all the same.
        let went_on = place.path().join("later").exists();
        assert_eq!(went_on, matches!(phase, "target" | "preparation"), "{phase}");
        let undone = place.path().join("undone").exists();
        assert_eq!(undone, phase != "files", "{phase}");
    }
}

#[test]
fn a_job_that_is_stopped_under_load_keeps_what_it_measured() {
    let (place, stderr, record) =
        stopped_in("run", &["-i", "run=63s"], ["0", "0"], "--duration 63s");
    assert_eq!(record["verdict"]["kind"], "partial");
    assert!(stderr.contains("phases was stopped before its end"), "{stderr}");
    assert!(place.path().join("undone").exists());
    assert!(record["hooks"]["cpu-mpstat"].is_object());
}

#[test]
fn a_job_that_is_stopped_in_its_last_hooks_keeps_its_result() {
    let (place, stderr, record) = stopped_in("after", &[], ["0", "64"], "sleep 64");
    assert!(record["ledger"]["ok"].as_u64().unwrap() > 5, "{}", record["ledger"]);
    assert_ne!(record["verdict"]["kind"], "partial");
    assert!(stderr.contains("was stopped in its last hooks"), "{stderr}");
    let warned = record["hooks"]["shell"]["warnings"].to_string();
    assert!(warned.contains("since the run was stopped"), "{warned}");
    assert!(!place.path().join("undone").exists());
}

/// Flags of a ranking server that does little.
const SMALL: [&str; 6] = ["rank", "--scale", "10", "-i", "1000", "--quiet"];

#[track_caller]
fn interrupted(place: &Place, running: Running) -> Value {
    let started = running.descendants();
    assert!(!started.is_empty());
    running.signal(Signal::INT);
    let ended = running.wait(SOON).expect(3);
    expect_gone(&started);
    assert!(ended.stderr.contains("plimsoll: NOT VALID: partial"), "{}", ended.stderr);
    let (_, record) = only_record(place);
    assert_eq!(record["verdict"]["kind"], "partial");
    record
}

#[test]
fn a_benchmark_can_be_stopped_while_its_server_starts() {
    let place = Place::new();
    let running = place.start(["rank", "--scale", "21", "--quiet"]);
    running.wait_for_descendant("serve rank", SOON);
    let record = interrupted(&place, running);
    assert!(
        record["verdict"]["reasons"][0].as_str().unwrap().contains("before the server answered")
    );
}

#[test]
fn a_benchmark_can_be_stopped_while_it_searches() {
    let place = Place::new();
    let running = place.start([&SMALL[..], &["--slo", "p95=200ms"]].concat());
    until("the search is under way", SOON, || seconds_kept(&place) >= 4);
    let record = interrupted(&place, running);
    assert_eq!(record["seek"]["verdict"], "interrupted", "{}", record["seek"]);
    assert_eq!(record["rank"]["runs"].as_array().unwrap().len(), 0);
    assert!(record["ledger"]["ok"].as_u64().unwrap() > 0);
}

#[test]
fn a_benchmark_can_be_stopped_at_a_fixed_rate() {
    let place = Place::new();
    let running = place.start([&SMALL[..], &["-q", "20,30", "-d", "60", "-w", "0"]].concat());
    until("the run is under way", SOON, || seconds_kept(&place) >= 3);
    let record = interrupted(&place, running);
    let runs = record["rank"]["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 1, "the second rate is not begun");
    // The rate is that of the time until the end, not of the sixty seconds that were asked for.
    let achieved = runs[0]["achieved_qps"].as_f64().unwrap();
    assert!((10.0..=30.0).contains(&achieved), "{achieved}");
    assert!(place.read("feedsim_results.txt").lines().count() == 2);
}

#[test]
fn a_benchmark_can_be_stopped_in_its_last_run() {
    // A search that finds a rate on any machine, in about a minute.
    let place = Place::busy();
    let flags = ["--slo", "p95=100ms", "--strategy", "mutilate", "-d", "90"];
    let running = place.start([&SMALL[..], &flags].concat());
    until("the last run is under way", Duration::from_secs(240), || seconds_kept(&place) >= 100);
    let record = interrupted(&place, running);
    let reasons = record["verdict"]["reasons"].to_string();
    assert!(reasons.contains("the run was stopped before its end"), "{reasons}");
    assert_eq!(record["rank"]["runs"].as_array().unwrap().len(), 1);
    // What was not checked to its end is not the headline.
    assert!(record["seek"]["certified_rate_per_s"].is_null(), "{}", record["seek"]);
}

#[test]
fn killed_outright_the_journal_tells_what_there_was() {
    let rank = [&SMALL[..], &["-q", "20", "-d", "60", "-w", "0"]].concat();
    let search = [&SMALL[..], &["--slo", "p95=200ms"]].concat();
    for args in [rank, search] {
        let place = Place::new();
        let running = place.start(&args);
        until("the run is under way", SOON, || seconds_kept(&place) >= 4);
        let started = running.descendants();
        running.signal(Signal::KILL);
        let ended = running.wait(SOON);
        assert_eq!(ended.code, None);
        // Nobody stops the server, and yet it ends: its parent's death is told to it.
        expect_gone(&started);
        let (folder, record) = only_record(&place);
        assert_eq!(record["verdict"]["kind"], "partial");
        let reason = record["verdict"]["reasons"][0].as_str().unwrap();
        assert!(reason.contains("the process was killed"), "{reason}");
        let ok = record["ledger"]["ok"].as_u64().unwrap();
        assert!(ok >= 4, "{ok}");
        for format in ["text", "csv", "benchpress"] {
            let folder = folder.to_str().unwrap();
            let told = place.run(["report", folder, "--format", format]).expect(0).stdout;
            assert!(told.contains("partial"), "{format}: {told}");
        }
    }
}

#[test]
fn a_job_killed_outright_ends_its_command_in_order() {
    let (place, server) = (Place::new(), crate::server::Server::ok());
    place.file("phases.toml", PHASES.replace("BEFORE", "0").replace("AFTER", "0"));
    let url = format!("url={}", server.url());
    let running = place.start(["run", "phases.toml", "--quiet", "-i", &url, "-i", "run=63s"]);
    until("the run is under way", SOON, || seconds_kept(&place) >= 3);
    let started = running.descendants();
    assert_eq!(started.len(), 2, "target and command: {started:?}");
    running.signal(Signal::KILL);
    expect_gone(&started);
    let runs = place.run(["report", "--all", "--format", "json"]).expect(0).stdout;
    assert!(runs.contains("\"partial\""), "{runs}");
}
