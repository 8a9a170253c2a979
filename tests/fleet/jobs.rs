//! Jobs with results of their own: those of all agents together are those of one machine.

use super::{Fleet, SOON, reasons, record, wait_until_idle};
use crate::process::{Ended, Place, until};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

/// The record of the same job on this machine alone.
fn alone(fleet: &Fleet, job: &[&str]) -> Value {
    record(&fleet.place.run([job, &["--json", "-", "--quiet", "--no-record"]].concat()))
}

/// Members of one section that must be the same in both records.
#[track_caller]
fn same(section: &str, names: &[&str], one: &Value, many: &Value) {
    for name in names {
        assert_eq!(many[section][name], one[section][name], "{section}.{name}: {}", reasons(many));
    }
}

/// Puts of 3,000 operations on 700 documents, a malformed one, and one that the server rejects.
fn operations(fleet: &Fleet) {
    let mut text = String::new();
    for number in 0..3000 {
        let (id, title) = (number % 700, "æ".repeat(number % 5));
        // Writing into a string does not fail.
        let _ = writeln!(
            text,
            "{{\"put\":\"id:plimsoll:doc::{id}\",\"fields\":{{\"title\":\"{title}\",\"score\":{number}}}}}"
        );
    }
    fleet.place.file("good.ndjson", &text);
    text += "{\"bogus\":1}\n{\"put\":\"id:plimsoll:nosuch::1\",\"fields\":{\"x\":1}}\n";
    fleet.place.file("all.ndjson", text);
}

/// All lines of the files that agents wrote, by the folders of their records.
fn lines(fleet: &Fleet, names: [&str; 3]) -> BTreeSet<String> {
    let agents = ["a", "b", "c"];
    let mut all = BTreeSet::new();
    for (agent, name) in agents.into_iter().zip(names) {
        let path = std::path::Path::new(&fleet.runs(agent)).join(name);
        let text = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for line in text.lines() {
            assert!(all.insert(line.to_owned()), "{line} is there twice");
        }
    }
    all
}

#[test]
fn a_feed_by_agents_sends_each_operation_once_and_in_order() {
    let fleet = Fleet::of(Place::busy(), 3, &["search"]);
    operations(&fleet);
    let url = fleet.target.url.clone();
    let one = alone(&fleet, &["feed", &url, "all.ndjson"]);
    let dump = ["visit", url.as_str(), "--slices", "4", "--out"];
    let expected = alone(&fleet, &[&dump[..], &["one.ndjson"]].concat());
    // What the agents feed is newer than what is there.
    let ended = fleet.run(&["feed", &url, "all.ndjson", "--failed", "rest.json"]).expect(3);
    let many = record(&ended);
    let counts =
        ["operations", "accepted", "refused", "malformed", "unsettled", "left", "complete"];
    same("feed", &counts, &one, &many);
    same(
        "feed",
        &["requests", "http", "body_bytes", "connections", "files", "skipped"],
        &one,
        &many,
    );
    assert_eq!(many["feed"]["operations"], 3002);
    assert_eq!(many["feed"]["codes"]["200"]["count"], 3000);
    assert_eq!(many["feed"]["examples"], one["feed"]["examples"]);
    assert_eq!(many["ledger"]["ok"], one["ledger"]["ok"], "{}", reasons(&many));
    assert_eq!(many["ledger"]["sent"], one["ledger"]["sent"]);
    assert!(reasons(&many).contains("2 of 3002 operations were not accepted; all.ndjson:3001:"));
    // The last operation on each document was the last one of the input.
    let shared = alone(&fleet, &[&dump[..], &["many.ndjson"]].concat());
    same("visit", &["documents", "id_digest"], &expected, &shared);
    let sorted = |name: &str| {
        let text = fleet.place.read(name);
        text.lines().map(str::to_owned).collect::<BTreeSet<_>>()
    };
    assert_eq!(sorted("many.ndjson"), sorted("one.ndjson"));
    // Rejected operations are in the files of the agents, each once, and can be fed again.
    let rest = lines(&fleet, ["rest-0-of-3.json", "rest-1-of-3.json", "rest-2-of-3.json"]);
    assert_eq!(rest.len(), 2, "{rest:?}");
    assert!(!fleet.place.path().join("rest.json").exists(), "the coordinator writes none");
    let files = many["feed"]["failed_files"].to_string();
    assert!(files.contains("a: ") && files.contains("rest-2-of-3.json.reasons"), "{files}");
    // Where nothing is wrong the feed is complete.
    let ended = fleet.run(&["feed", &url, "good.ndjson", "--inflight", "30", "--http1"]);
    let whole = record(&ended);
    assert_eq!(whole["feed"]["complete"], true, "{}", reasons(&whole));
    assert_eq!(whole["feed"]["accepted"], 3000);
}

#[test]
fn a_visit_by_agents_reads_each_document_once() {
    let fleet = Fleet::of(Place::busy(), 3, &["search"]);
    operations(&fleet);
    let url = fleet.target.url.clone();
    alone(&fleet, &["feed", &url, "good.ndjson"]);
    for (number, way) in [
        &["--slices", "7"][..],
        &["--slices", "3", "--chunked", "--wanted", "50"],
        &["--slices", "auto", "--selection", "doc.score < 2800"],
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("dump{number}");
        let job = |out: &'static str| [&["visit", url.as_str(), "--out", out], way].concat();
        let one = alone(&fleet, &job("one.ndjson"));
        let words = [&["visit", url.as_str(), "--out", &name], way].concat();
        let many = record(&fleet.run(&words).expect(0));
        let counts = ["documents", "removes", "duplicates", "bytes", "id_digest", "complete"];
        same("visit", &counts, &one, &many);
        let claims = ["document_count_claimed", "document_count_received", "replies", "form"];
        same("visit", &claims, &one, &many);
        same("visit", &["slices", "slices_done", "unfinished", "trouble"], &one, &many);
        assert_eq!(many["ledger"]["ok"], one["ledger"]["ok"], "{way:?}");
        let documents = |record: &Value| {
            let slices = record["visit"]["by_slice"].as_array().unwrap();
            let own = |slice: &Value| (slice["slice"].clone(), slice["documents"].clone());
            slices.iter().map(own).collect::<Vec<_>>()
        };
        assert_eq!(documents(&many), documents(&one), "{way:?}");
        let text = fleet.place.read("one.ndjson");
        let expected: BTreeSet<String> = text.lines().map(str::to_owned).collect();
        let names = [0, 1, 2].map(|index| format!("{name}-{index}-of-3"));
        let names = [names[0].as_str(), names[1].as_str(), names[2].as_str()];
        assert_eq!(lines(&fleet, names), expected, "{way:?}");
    }
    let counted = record(&fleet.run(&["visit", &url, "--out", "/dev/null"]).expect(0));
    assert_eq!(counted["visit"]["documents"], 700);
}

/// Votes and rows of an election.
const VOTES: [&str; 7] =
    ["accepted", "rejected", "unknown", "errors", "rows_before", "rows_after", "check"];

#[test]
fn an_election_by_agents_has_the_votes_of_one_client() {
    let fleet = Fleet::of(Place::busy(), 3, &["voter", "--port", "0"]);
    let other = fleet.place.serve(&["voter", "--port", "0"]);
    let (here, there) = (other.url.clone(), fleet.target.url.clone());
    for way in [
        &["--calls", "5000", "--clients", "30", "--max-votes", "100", "--seed", "5"][..],
        &[
            "--calls", "2001", "--rhythm", "burst", "--burst", "50", "--delay", "20ms", "--seed",
            "6",
        ],
        &["--calls", "1000", "--rate", "2000", "--seed", "7"],
    ] {
        let one = alone(&fleet, &[&["voter", here.as_str(), "--threads", "3"], way].concat());
        let many = record(&fleet.run(&[&["voter", there.as_str()], way].concat()));
        same("voter", &VOTES, &one, &many);
        assert_eq!(many["voter"]["check"], "ok", "{}", reasons(&many));
        // Which of three votes of one telephone is the third depends on their order at the server.
        if many["voter"]["rejected"]["limit"] == 0 {
            assert_eq!(many["voter"]["contestants"], one["voter"]["contestants"], "{way:?}");
        }
        assert_eq!(many["ledger"]["ok"], one["ledger"]["ok"], "{way:?}");
        let processes = many["voter"]["processes"].as_array().unwrap();
        let clients: Vec<&str> =
            processes.iter().map(|one| one["client"].as_str().unwrap()).collect();
        assert_eq!(clients, ["a", "b", "c"]);
        let calls: u64 = processes.iter().map(|one| one["calls"].as_u64().unwrap()).sum();
        assert_eq!(many["voter"]["totals"]["transactions"], calls);
        assert_eq!(many["ledger"]["ok"], calls);
    }
    let hello = record(&fleet.run(&["hello", &there, "--calls", "900", "--clients", "9"]));
    assert_eq!(hello["ledger"]["ok"], 900, "{}", reasons(&hello));
    assert_eq!(hello["voter"]["accepted"], 0);
}

/// Connections of agents prepare their statements, so that the tables must be there before.
#[test]
fn tables_are_made_once_before_agents_connect() {
    let place = Place::busy();
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(place.path(), open).unwrap();
    let fleet = Fleet::of(place, 3, &["postgresql", "--durability", "none"]);
    let url = fleet.target.url.clone();
    let many =
        record(&fleet.run(&["voter", &url, "--calls", "3000", "--clients", "30", "--seed", "5"]));
    assert_eq!(many["voter"]["check"], "ok", "{}", reasons(&many));
    assert_eq!(many["voter"]["rows_before"], 0);
    assert_eq!(many["ledger"]["ok"], 3000);
    assert_eq!(many["voter"]["contestants"].as_array().unwrap().len(), 6);
}

/// The votes of a lost agent are unknown: the check says so, and does not call them surplus.
#[test]
fn an_agent_that_dies_leaves_an_election_that_cannot_be_checked() {
    let fleet = Fleet::of(Place::busy(), 3, &["voter", "--port", "0"]);
    let url = fleet.target.url.clone();
    let words = fleet.words(&["voter", &url, "--rate", "300", "--duration", "60s"]);
    let running = fleet.place.start(words);
    let journals = || {
        let runs = std::fs::read_dir(fleet.place.path().join("runs")).ok()?;
        let mut texts = runs.filter_map(|run| {
            std::fs::read_to_string(run.ok()?.path().join("intervals.ndjson")).ok()
        });
        texts.next()
    };
    until("votes are counted", SOON, || {
        journals()
            .is_some_and(|text| text.lines().filter(|line| line.contains("ledger")).count() > 2)
    });
    fleet.agent("b").signal(Signal::KILL);
    let whole = record(&running.wait(Duration::from_secs(40)).expect(3));
    assert_eq!(whole["verdict"]["kind"], "partial", "{}", whole["verdict"]);
    let voter = &whole["voter"];
    assert_eq!(voter["check"], "not-checked", "{voter}");
    let lacks = "the results of 1 of 3 agents are missing: b";
    assert_eq!(voter["check_reason"], lacks);
    assert!(reasons(&whole).contains("agent b: "), "{}", reasons(&whole));
    assert!(voter["processes"][1]["died"].as_str().unwrap().contains("lost"));
    assert!(voter["accepted"].as_u64().unwrap() > 100, "what is known is kept: {voter}");
    for name in ["a", "c"] {
        wait_until_idle(fleet.agent(name), 2);
    }
}

/// One line on stderr that holds these words.
#[track_caller]
fn refused(ended: &Ended, code: i32, words: &str) {
    assert_eq!(ended.code, Some(code), "{ended:?}");
    assert_eq!(ended.stderr.trim_end().lines().count(), 1, "{}", ended.stderr);
    assert!(ended.stderr.contains(words), "no {words:?} in {}", ended.stderr);
}

#[test]
fn what_agents_cannot_do_is_refused_in_one_line() {
    let fleet = Fleet::of(Place::busy(), 2, &["search"]);
    let url = fleet.target.url.as_str();
    fleet.place.file("x.json", "[]");
    for (job, words) in [
        (vec!["visit", url, "--out", "/tmp/x"], "a file name without a folder"),
        (vec!["visit", url, "--measure"], "--measure cannot be shared out to agents"),
        (vec!["visit", url, "--out", "x", "--resume", "y"], "leave it out with --agents"),
        (vec!["visit", url, "--out", "x", "--slices", "1"], "cannot be shared out to 2 parts"),
        (vec!["feed", url, "-"], "'-' is stdin"),
        (vec!["feed", url, "none.json"], "no such file"),
        (vec!["feed", url, "x.json", "--inflight", "1"], "cannot be shared out to 2 parts"),
        (vec!["voter"], "name one with --target"),
        (vec!["voter", "volt://127.0.0.1:9", "--processes", "2"], "exclude each other"),
        (vec!["voter", "volt://127.0.0.1:9", "--auto-tune", "p99=9ms"], "follows from all answers"),
        (vec!["hello", "volt://127.0.0.1:9", "--start-delay", "9s"], "agents start together"),
    ] {
        let ended = fleet.run(&job);
        refused(&ended, 64, words);
    }
    let words = ["visit", url, "--agents", "2", "--bus", &fleet.bus(), "--quiet"];
    refused(&fleet.place.run(words), 64, "--out /dev/null to count only");
    // A target that is not there is found once, by the coordinator.
    let ended = fleet.run(&["visit", "http://127.0.0.1:9", "--out", "x"]).expect(4);
    assert!(reasons(&record(&ended)).contains("nothing is listening there"), "{ended:?}");
    for (name, _) in &fleet.agents {
        until("the agent is free again", SOON, || {
            fleet.agent(name).stderr_so_far().trim_end().ends_with("fleet default")
        });
    }
}
