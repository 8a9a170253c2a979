//! A run by several agents is the run of one machine.

use super::{Fleet, reasons, record};
use crate::process::Place;
use crate::server::Server;
use serde_json::Value;
use std::path::Path;

/// The paths that a server has seen, sorted.
fn paths(server: &Server) -> Vec<String> {
    let mut paths = server.paths();
    paths.sort();
    paths
}

#[test]
fn agents_ask_the_same_requests_as_one_machine() {
    let fleet = Fleet::of(Place::busy(), 3, &["null"]);
    let queries: String = (0..500).map(|number| format!("/q?n={number}\n")).collect();
    fleet.place.file("q.txt", queries);
    for job in [
        vec!["--requests", "900", "--clients", "9"],
        vec!["--requests", "700", "--rate", "700", "--arrivals", "poisson", "--seed", "7"],
        vec!["--requests", "601", "--rate", "600", "--order", "shuffle"],
    ] {
        let (here, there) = (Server::ok(), Server::ok());
        let (one, many) = (here.url() + "/", there.url() + "/");
        let words = |url: &str| {
            [&["load", url, "--queries", "q.txt"][..], &job]
                .concat()
                .iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>()
        };
        let alone =
            [words(&one), ["--threads", "3", "--json", "-", "--quiet"].map(str::to_owned).to_vec()]
                .concat();
        let alone = record(&fleet.place.run(alone));
        let shared: Vec<String> = words(&many);
        let shared = record(&fleet.run(&shared.iter().map(String::as_str).collect::<Vec<_>>()));
        assert_eq!(shared["ledger"], alone["ledger"], "{job:?}: {}", reasons(&shared));
        assert_eq!(paths(&there), paths(&here), "{job:?}");
        assert_eq!(shared["scenario"]["seed"], alone["scenario"]["seed"]);
    }
}

#[test]
fn each_of_320_000_requests_is_accounted_for() {
    let fleet = Fleet::of(Place::alone(), 4, &["null"]);
    let ended = fleet.run(&["load", &fleet.target.url, "--requests", "320000", "--clients", "32"]);
    let whole = record(&ended);
    assert_eq!(whole["ledger"]["ok"], 320_000, "{}", reasons(&whole));
    assert_eq!(whole["ledger"]["sent"], 320_000);
    assert_eq!(whole["latency_ms"]["response"]["count"], 320_000);
    let agents = whole["fleet"]["agents"].as_array().unwrap();
    let sent: Vec<u64> =
        agents.iter().map(|agent| agent["figures"]["sent"].as_u64().unwrap()).collect();
    assert_eq!(sent, [80_000; 4]);
    assert_eq!(fleet.target_requests(), 320_000);
    assert!(whole["fleet"].get("troubles").is_none(), "{}", whole["fleet"]);
    // Each agent keeps a record of its own part, with its place in the run.
    let parts: Vec<Value> =
        ["a", "b", "c", "d"].iter().map(|name| kept(&fleet.runs(name))).collect();
    let own: u64 = parts.iter().map(|part| part["ledger"]["ok"].as_u64().unwrap()).sum();
    assert_eq!(own, 320_000);
    for (index, part) in parts.iter().enumerate() {
        assert_eq!(part["scenario"]["slice"]["index"], index);
        assert_eq!(part["scenario"]["slice"]["of"], 4);
    }
    // The journal of the coordinator has the seconds of all.
    let folder = only_folder(&fleet.place.path().join("runs"));
    let journal = std::fs::read_to_string(folder.join("intervals.ndjson")).unwrap();
    let seconds = journal.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let ok: u64 = seconds.filter_map(|second| second["ledger"]["ok"].as_u64()).sum();
    assert_eq!(ok, 320_000);
}

/// Whoever lost the coordinator has the whole all the same.
#[test]
fn the_records_of_the_agents_make_the_same_whole_afterwards() {
    let fleet = Fleet::of(Place::quiet(), 3, &["null"]);
    let url = fleet.target.url.clone();
    let words = ["load", &url, "--rate", "300", "--duration", "4s", "--slo", "errors=1%"];
    let whole = record(&fleet.run(&words));
    // Each agent's last second ends with its own last request, and is one second of the run all the same.
    let folder = only_folder(&fleet.place.path().join("runs"));
    let journal = std::fs::read_to_string(folder.join("intervals.ndjson")).unwrap();
    let seconds: Vec<Value> =
        journal.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // The last reply may come when the four are over.
    let begins: Vec<f64> =
        seconds.iter().map(|second| second["from_s"].as_f64().unwrap()).collect();
    let each_once = [0.0, 1.0, 2.0, 3.0, 4.0];
    assert!(begins.len() >= 4 && each_once.starts_with(&begins), "{begins:?}");
    let names = ["a", "b", "c"];
    let folders: Vec<String> = names
        .iter()
        .map(|name| only_folder(Path::new(&fleet.runs(name))).display().to_string())
        .collect();
    let merge = |folders: &[String], more: &[&str]| {
        let words = [
            &["report", "--merge"][..],
            &folders.iter().map(String::as_str).collect::<Vec<_>>(),
            more,
        ];
        fleet.place.run(words.concat())
    };
    let merged = record(&merge(&folders, &["--format", "json"]).expect(0));
    for field in [
        "ledger",
        "histograms",
        "latency_ms",
        "counters",
        "statuses",
        "class_names",
        "slo",
        "bytes",
    ] {
        assert_eq!(merged[field], whole[field], "{field}");
    }
    assert_eq!(merged["fleet"]["run"], whole["fleet"]["run"]);
    assert!(merged["scenario"].get("slice").is_none());
    // In any order, as a page, and with a part that is missing.
    let page = merge(&[folders[2].clone(), folders[0].clone(), folders[1].clone()], &[]).expect(0);
    assert!(page.stdout.contains("Agents") && page.stdout.contains("1,200"), "{}", page.stdout);
    let part = record(&merge(&folders[..2], &["--format", "json"]).expect(0));
    assert_eq!(part["verdict"]["kind"], "partial");
    assert!(reasons(&part).contains("no record of part 3 of 3"), "{}", reasons(&part));
    for (words, word) in [
        (vec![folders[0].clone(), folders[0].clone()], "are both part 1/3"),
        (vec![fleet.place.path().join("runs").display().to_string()], "run.json"),
        (
            vec![only_folder(&fleet.place.path().join("runs")).display().to_string()],
            "is not the record of an agent",
        ),
    ] {
        let ended = merge(&words, &[]).expect(64);
        assert!(ended.stderr.contains(word), "{}", ended.stderr);
    }
}

/// The only record in a folder.
fn only_folder(runs: &Path) -> std::path::PathBuf {
    let mut folders: Vec<_> = std::fs::read_dir(runs)
        .unwrap_or_else(|error| panic!("{}: {error}", runs.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    assert_eq!(folders.len(), 1, "{folders:?}");
    folders.remove(0)
}

fn kept(runs: &str) -> Value {
    let text = std::fs::read_to_string(only_folder(Path::new(runs)).join("run.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Agents start together, and the page says how well; figures of agents that agree are not pointed out.
#[test]
fn the_page_has_a_line_for_each_agent_and_the_start_skew() {
    let fleet = Fleet::of(Place::quiet(), 2, &["null"]);
    let url = fleet.target.url.clone();
    let words = [
        "load",
        &url,
        "--rate",
        "200",
        "--duration",
        "3s",
        "--agents",
        "2",
        "--bus",
        &fleet.bus(),
        "--html",
        "page.html",
    ];
    let ended = fleet.place.run(words);
    let page = &ended.stdout;
    assert!(page.contains("Agents") && page.contains("start skew: p99 "), "{ended:?}");
    for name in ["a", "b"] {
        let line = page
            .lines()
            .find(|line| line.starts_with(&format!("{name} ")))
            .unwrap_or_else(|| panic!("{page}"));
        assert!(line.contains("300"), "{line}");
    }
    let html = fleet.place.read("page.html");
    assert!(html.contains("Agents") && html.contains("own verdict"));
}

#[test]
fn fbench_has_the_same_summary_from_agents() {
    let fleet = Fleet::of(Place::busy(), 3, &["null"]);
    for client in 0..6 {
        fleet.place.file(&format!("query{client:03}.txt"), format!("/c{client}/1\n/c{client}/2\n"));
    }
    let (host, port) = (fleet.target.host.clone(), fleet.target.port.to_string());
    let ended = fleet.run(&["fbench", "-n", "6", "-s", "2", "-q", "query%03d.txt", &host, &port]);
    let whole = record(&ended);
    assert_eq!(whole["fbench"]["clients"], 6, "{ended:?}");
    assert_eq!(whole["ledger"]["failed"]["status"], 0);
    assert!(whole["ledger"]["ok"].as_u64().unwrap() > 100);
    let sent: u64 = whole["fleet"]["agents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| agent["figures"]["sent"].as_u64().unwrap())
        .sum();
    assert_eq!(whole["ledger"]["sent"], sent);
}

/// Exponential times of 20 ms with no queue: 12,000 of them know p95 to about 3 % and p99 to about 5 % (standard errors 0.7 % and
/// 1.3 %, of two runs).
#[test]
fn percentiles_are_those_of_one_machine_within_sampling_error() {
    let target = ["queue", "--servers", "0", "--service", "exponential:20ms"];
    let fleet = Fleet::of(Place::quiet_for_long(), 3, &target);
    let url = fleet.target.url.clone();
    let job = ["load", &url, "--rate", "600", "--duration", "20s", "--arrivals", "poisson"];
    let alone = fleet.place.run([&job[..], &["--json", "-", "--quiet"]].concat());
    let (alone, whole) = (record(&alone), record(&fleet.run(&job)));
    assert_eq!(whole["ledger"]["sent"], alone["ledger"]["sent"]);
    for (quantile, most) in [("p50", 0.05), ("p90", 0.05), ("p95", 0.05), ("p99", 0.1)] {
        let of = |record: &Value| record["latency_ms"]["response"][quantile].as_f64().unwrap();
        let apart = of(&whole) / of(&alone) - 1.0;
        eprintln!("{quantile}: {:.2} and {:.2} ms", of(&whole), of(&alone));
        let is_limited = |record: &Value| record["verdict"]["kind"] == "generator-limited";
        if is_limited(&alone) || is_limited(&whole) {
            crate::unquiet::note("the generator was the limit, so percentiles were not compared");
            return;
        }
        assert!(apart.abs() < most, "{quantile}: {} and {} ms", of(&whole), of(&alone));
    }
}
