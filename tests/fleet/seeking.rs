//! A search whose load agents send: the coordinator leads it, and judges what all of them saw together.

use super::{Fleet, SOON, reasons, record, wait_until_idle};
use crate::process::{PATIENCE, Place, stolen_while, until};
use crate::record::Record;
use rustix::process::Signal;
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// Four servers of 5 ms: 652.16 requests a second hold p95 <= 25 ms (closed form, M/M/4).
const SERVERS: [&str; 5] = ["queue", "--servers", "4", "--service", "exponential:5ms"];
const LINE_PER_S: f64 = 652.16;

/// The only record of an agent, and its folder.
fn own_record(fleet: &Fleet, name: &str) -> (Value, PathBuf) {
    let runs = fleet.runs(name);
    let folder = std::fs::read_dir(runs).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(folder.join("run.json")).unwrap();
    (serde_json::from_str(&text).unwrap(), folder)
}

#[test]
fn agents_find_a_known_line_and_each_follows_the_same_search() {
    let fleet = Fleet::of(Place::quiet_for_long(), 2, &SERVERS);
    let url = fleet.target.url.clone();
    let words = ["seek", &url, "--slo", "p95=25ms", "--budget", "60s", "--start-rate", "200"];
    let (ended, stolen) = stolen_while(|| fleet.run(&words));
    let whole = record(&ended);
    let seek = &whole["seek"];
    for name in ["a", "b"] {
        wait_until_idle(fleet.agent(name), 2);
    }
    let ((a, folder_a), (b, folder_b)) = (own_record(&fleet, "a"), own_record(&fleet, "b"));
    for own in [&a, &b] {
        assert_eq!(&own["seek"], seek, "an agent followed another search");
        assert_eq!(own["verdict"]["kind"], whole["verdict"]["kind"]);
    }
    let sent = |record: &Value| record["ledger"]["sent"].as_u64().unwrap();
    assert_eq!(sent(&a) + sent(&b), sent(&whole));
    assert_eq!(sent(&whole), fleet.target_requests());
    let (least, most) = (sent(&a).min(sent(&b)) as f64, sent(&a).max(sent(&b)) as f64);
    assert!(least > 0.8 * most, "half of the load each: {least} and {most}");
    assert_eq!(whole["fleet"]["agents"][0]["figures"]["sent"], sent(&a), "of all rates");
    // What a rate is judged by are the requests of all agents: as many as were due at it.
    let curve = seek["curve"].as_array().unwrap();
    for point in curve.iter().filter(|point| point["scheduled"].as_u64() > Some(500)) {
        let number = |key: &str| point[key].as_f64().unwrap();
        let due = number("rate_per_s") * number("seconds");
        let sigmas = (number("scheduled") - due).abs() / due.sqrt();
        assert!(sigmas < 5.0, "{point}");
    }

    let folders = [folder_a, folder_b].map(|folder| folder.display().to_string());
    let merged =
        fleet.place.start(["report", "--merge", &folders[0], &folders[1], "--format", "json"]);
    let merged = record(&merged.wait(PATIENCE));
    assert_eq!(&merged["seek"], seek);
    assert_eq!(merged["verdict"], whole["verdict"]);
    assert_eq!(merged["ledger"], whole["ledger"]);

    let record = Record::of(&ended);
    record.expect_balanced();
    if record.was_held_up(stolen) {
        return;
    }
    // In a minute one search in a few certifies no rate.
    ended.expect(if record.0["seek"]["certified_rate_per_s"].is_null() { 3 } else { 0 });
    let estimate = record.number("/seek/estimate_per_s");
    eprintln!("estimate {estimate:.1}");
    assert!((estimate / LINE_PER_S - 1.0).abs() < 0.25, "{estimate}");
}

#[test]
fn an_agent_that_dies_in_a_search_ends_it_and_what_was_measured_is_kept() {
    let fleet = Fleet::of(Place::busy(), 3, &SERVERS);
    let url = fleet.target.url.clone();
    let running =
        fleet.start(&["seek", &url, "--slo", "p95=25ms", "--budget", "90s", "--start-rate", "100"]);
    until("several rates were offered", SOON, || fleet.target_requests() > 500);
    fleet.agent("b").signal(Signal::KILL);
    let ended = running.wait(Duration::from_secs(60)).expect(3);
    let whole = record(&ended);
    assert_eq!(whole["verdict"]["kind"], "partial", "{}", whole["verdict"]);
    assert!(reasons(&whole).contains("agent b: it has been silent"), "{}", reasons(&whole));
    assert!(ended.stderr.contains("agent b"), "{}", ended.stderr);
    assert!(whole["ledger"]["ok"].as_u64().unwrap() > 100, "what was measured is kept");
    assert!(whole["seek"]["certified_rate_per_s"].is_null());
    for name in ["a", "c"] {
        wait_until_idle(fleet.agent(name), 2);
    }
}

#[test]
fn ctrl_c_in_a_search_ends_it_on_all_agents() {
    let fleet = Fleet::of(Place::busy(), 2, &SERVERS);
    let url = fleet.target.url.clone();
    let running =
        fleet.start(&["seek", &url, "--slo", "p95=25ms", "--budget", "90s", "--start-rate", "100"]);
    until("several rates were offered", SOON, || fleet.target_requests() > 300);
    running.signal(Signal::INT);
    let whole = record(&running.wait(Duration::from_secs(15)).expect(3));
    assert_eq!(whole["verdict"]["kind"], "partial", "{}", whole["verdict"]);
    assert!(whole["fleet"].get("troubles").is_none(), "{}", whole["fleet"]);
    assert!(whole["ledger"]["ok"].as_u64().unwrap() > 100);
    for name in ["a", "b"] {
        wait_until_idle(fleet.agent(name), 2);
    }
    // They are free for the next run.
    let ended = fleet.run(&["load", &url, "--requests", "100", "--clients", "2"]);
    assert_eq!(record(&ended)["ledger"]["ok"], 100);
}

#[test]
fn blocks_of_a_comparison_are_runs_of_the_agents() {
    let fleet = Fleet::of(
        Place::quiet_for_long(),
        2,
        &["queue", "--servers", "0", "--service", "fixed:2ms"],
    );
    let (url, bus) = (fleet.target.url.clone(), fleet.bus());
    let sides = ["ab", "--a", &url, "--b", &url, "--budget", "42s", "--json", "-", "--on", "p50"];
    let job = ["--", "load", "--rate", "200", "--agents", "2", "--bus", &bus];
    let ended = fleet.place.run([&sides[..], &job[..]].concat());
    assert!([Some(0), Some(3)].contains(&ended.code), "{}", ended.stderr);
    let whole = record(&ended);
    let pairs = whole["ab"]["blocks"].as_array().unwrap();
    assert!(pairs.len() >= 6, "{} pairs", pairs.len());
    // Two pilots and two blocks a pair, each kept by both agents.
    let kept = |name: &str| std::fs::read_dir(fleet.runs(name)).unwrap().count();
    assert!(kept("a") >= 2 + 2 * pairs.len(), "{} records", kept("a"));
    assert_eq!(kept("a"), kept("b"));
}

#[test]
fn feedsims_load_comes_from_agents_to_servers_that_run() {
    let fleet = Fleet::of(Place::busy(), 2, &["rank"]);
    // It names its address twice: for frames, then for HTTP.
    let url = fleet.target.url.replacen("http://", "rank://", 1);
    let out = fleet.place.path().join("table.csv").display().to_string();
    let fixed = ["rank", "--target", &url, "-q", "6", "-d", "3", "-w", "1", "-o", &out];
    let ended = fleet.run(&fixed);
    let whole = record(&ended);
    let run = &whole["rank"]["runs"][0];
    assert_eq!(run["requested_qps"], 6.0, "{}", ended.stderr);
    let sent = |agent: usize| whole["fleet"]["agents"][agent]["figures"]["sent"].as_u64().unwrap();
    assert_eq!(sent(0) + sent(1), whole["ledger"]["sent"].as_u64().unwrap());
    assert!(sent(0) > 0 && sent(1) > 0);
    let table = std::fs::read_to_string(&out).unwrap();
    assert!(table.starts_with("duration_secs,") && table.lines().count() == 2, "{table}");
    let agents = fleet.agents.len().to_string();
    let flags = ["-q", "6", "--agents", &agents, "--bus", &fleet.bus()];
    let refused = fleet.place.run([&["rank"][..], &flags].concat()).expect(64);
    assert!(refused.stderr.contains("--target: name running servers"), "{}", refused.stderr);
}

/// Votes are shared out as those of an election: no ballot is given twice, and every accepted one is a row.
#[test]
fn a_rate_of_votes_is_sought_on_agents_and_the_rows_are_those_of_all() {
    let fleet = Fleet::of(Place::quiet(), 2, &["voter", "--port", "0"]);
    let url = fleet.target.url.clone();
    let words = ["seek", &url, "--slo", "p95=200ms", "--budget", "12s", "--max-rate", "400"];
    let whole = record(&fleet.run(&words));
    let voter = &whole["voter"];
    assert_eq!(voter["check"], "ok", "{}", reasons(&whole));
    let number = |key: &str| voter[key].as_u64().unwrap();
    assert_eq!(number("rows_after") - number("rows_before"), number("accepted"));
    assert!(number("accepted") > 200, "{voter}");
    let sent = |record: &Value| record["ledger"]["sent"].as_u64().unwrap();
    for name in ["a", "b"] {
        wait_until_idle(fleet.agent(name), 2);
    }
    let ((a, folder_a), (b, folder_b)) = (own_record(&fleet, "a"), own_record(&fleet, "b"));
    for own in [&a, &b] {
        assert_eq!(own["seek"], whole["seek"], "an agent followed another search");
        assert!(own["voter"]["check_reason"].as_str().unwrap().contains("only their sum"), "{own}");
    }
    assert_eq!(sent(&a) + sent(&b), sent(&whole));
    let calls = |index: usize| voter["processes"][index]["calls"].as_u64().unwrap();
    assert_eq!(
        (calls(0), calls(1)),
        (a["ledger"]["ok"].as_u64().unwrap(), b["ledger"]["ok"].as_u64().unwrap())
    );
    // Two agents with the same ballots would use the telephones up: more of their votes would be above the limit.
    let (limit, answered) = (voter["rejected"]["limit"].as_u64().unwrap(), number("accepted"));
    assert!(limit * 20 < answered, "{voter}");
    let folders = [folder_a, folder_b].map(|folder| folder.display().to_string());
    let merged =
        fleet.place.start(["report", "--merge", &folders[0], &folders[1], "--format", "json"]);
    let merged = record(&merged.wait(PATIENCE));
    assert_eq!(merged["seek"], whole["seek"]);
    assert_eq!(merged["voter"]["accepted"], voter["accepted"]);
    assert_eq!(merged["voter"]["rejected"], voter["rejected"]);
}

/// Processes share one range too: the coordinator counts its rows once.
#[test]
fn a_rate_of_votes_is_sought_by_processes() {
    let fleet = Fleet::of(Place::busy(), 0, &["voter", "--port", "0"]);
    let url = fleet.target.url.clone();
    let words = ["seek", &url, "--slo", "p95=200ms", "--budget", "12s", "--max-rate", "200"];
    let more = ["--processes", "2", "--json", "-", "--quiet"];
    let whole = record(&fleet.place.start([&words[..], &more].concat()).wait(PATIENCE));
    assert_eq!(whole["voter"]["check"], "ok", "{}", reasons(&whole));
    assert_eq!(whole["fleet"]["members"], "processes");
    assert_eq!(whole["voter"]["processes"].as_array().unwrap().len(), 2);
}
