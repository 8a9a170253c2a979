//! Files on agents: a mix, of which one group feeds and the other one sends queries, and a file of a single job.

use super::{Fleet, SOON, reasons, record, wait_until_idle};
use crate::process::{Ended, PATIENCE, Place, until};
use crate::record::Record;
use rustix::process::Signal;
use std::time::Duration;

/// Documents in the input.
const DOCUMENTS: u32 = 600;

fn fleet(agents: usize) -> Fleet {
    let fleet = Fleet::of(Place::busy(), agents, &["search"]);
    let put = |i| format!("{{\"put\":\"id:plimsoll:doc::{i}\",\"fields\":{{\"title\":\"a\"}}}}\n");
    fleet.place.file("docs.ndjson", (0..DOCUMENTS).map(put).collect::<String>());
    fleet.place.file("q.txt", "/search/?query=a\n");
    fleet
}

/// Writes a mix: 600 documents at 200/s take 3 s.
fn file(fleet: &Fleet, head: &str, queries: &str) {
    let url = &fleet.target.url;
    let text = format!(
        "{head}\n[feed]\nurl = \"{url}\"\nfiles = [\"docs.ndjson\"]\nrate = 200\n[queries]\nurl = \"{url}\"\n\
         queries = \"q.txt\"\n{queries}\n"
    );
    fleet.place.file("mix.toml", text);
}

fn words(fleet: &Fleet, agents: usize, more: &[&str]) -> Vec<String> {
    let (agents, bus) = (agents.to_string(), fleet.bus());
    let own = ["run", "mix.toml", "--json", "-", "--quiet", "--agents", &agents, "--bus", &bus];
    own.iter().chain(more).map(|word| (*word).to_owned()).collect()
}

fn run(fleet: &Fleet, agents: usize, more: &[&str]) -> Ended {
    fleet.place.start(words(fleet, agents, more)).wait(PATIENCE)
}

/// The documents that the target has.
fn documents(fleet: &Fleet) -> u64 {
    let url = format!(
        "{}/document/v1/plimsoll/doc/docid/?cluster=plimsoll&wantedDocumentCount=1000",
        fleet.target.url
    );
    let (_, body) = crate::process::curl(&[&url]);
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    body["documents"].as_array().map_or(0, |all| all.len() as u64)
}

#[test]
fn one_agent_feeds_and_the_others_send_the_queries() {
    let fleet = fleet(3);
    file(&fleet, "", "rate = 100\nduration = \"6s\"");
    let ended = run(&fleet, 3, &[]);
    assert!(ended.stderr.contains("the feed is by agent a, the load by b, c"), "{}", ended.stderr);
    let whole = record(&ended);
    Record(whole.clone()).expect_schema();
    assert_eq!(whole["ledger"]["ok"], 600, "{}", reasons(&whole));
    assert_eq!(whole["feed"]["accepted"], DOCUMENTS, "{}", whole["feed"]);
    assert_eq!(whole["feed"]["complete"], true, "{}", whole["feed"]);
    assert_eq!(documents(&fleet), u64::from(DOCUMENTS));
    // Each second is in one of the two parts.
    let mix = &whole["mix"];
    let number = |part: &str, field: &str| mix[part][field].as_f64().unwrap();
    assert_eq!(number("while_feeding", "ok") + number("without", "ok"), 600.0, "{mix}");
    let feed_s = whole["feed"]["seconds"].as_f64().unwrap();
    let fed_s = number("while_feeding", "seconds");
    assert!(fed_s <= feed_s && fed_s > feed_s - 1.5 && fed_s >= 1.0, "{fed_s} of {feed_s}: {mix}");
    let agents = whole["fleet"]["agents"].as_array().unwrap();
    let roles: Vec<String> = agents
        .iter()
        .map(|one| format!("{} {} {}", one["name"], one["role"], one["part"]).replace('"', ""))
        .collect();
    assert_eq!(roles, ["b load 1/2", "c load 2/2", "a feed 1/1"]);
    let sent: Vec<_> = agents.iter().map(|one| one["figures"]["sent"].as_u64().unwrap()).collect();
    assert_eq!((sent[0], sent[1]), (300, 300));
    assert!(sent[2] >= u64::from(DOCUMENTS));
    assert!(whole["fleet"].get("troubles").is_none(), "{}", whole["fleet"]);
    for name in ["a", "b", "c"] {
        wait_until_idle(fleet.agent(name), 2);
    }
}

#[test]
fn several_agents_feed_and_each_document_is_fed_once() {
    let fleet = fleet(3);
    file(&fleet, "feed_agents = 2", "rate = 100\nduration = \"1s\"");
    let whole = record(&run(&fleet, 3, &[]));
    assert_eq!(whole["feed"]["accepted"], DOCUMENTS, "{}", whole["feed"]);
    assert_eq!(whole["feed"]["requests"], DOCUMENTS);
    assert_eq!(whole["ledger"]["ok"], 100, "{}", reasons(&whole));
    // A flag goes before the file.
    let ended = run(&fleet, 3, &["--feed-agents", "1"]);
    assert!(ended.stderr.contains("the feed is by agent a, the load by b, c"), "{}", ended.stderr);
}

#[test]
fn a_mix_ends_with_its_feed_or_with_its_queries() {
    let fleet = fleet(2);
    file(&fleet, "until = \"feed\"", "rate = 100\nduration = \"60s\"");
    let whole = record(&run(&fleet, 2, &[]));
    assert_eq!(whole["feed"]["accepted"], DOCUMENTS, "{}", whole["feed"]);
    let ok = whole["ledger"]["ok"].as_u64().unwrap();
    assert!((200..1_500).contains(&ok), "{ok}: {}", reasons(&whole));
    assert_ne!(whole["verdict"]["kind"], "partial", "{}", reasons(&whole));
    wait_until_idle(fleet.agent("a"), 2);
    wait_until_idle(fleet.agent("b"), 2);
    file(&fleet, "until = \"queries\"", "rate = 100\nduration = \"1s\"");
    let whole = record(&run(&fleet, 2, &[]));
    assert_eq!(whole["ledger"]["ok"], 100, "{}", reasons(&whole));
    let accepted = whole["feed"]["accepted"].as_u64().unwrap();
    assert!((100..u64::from(DOCUMENTS)).contains(&accepted), "{accepted}");
    assert_eq!(whole["feed"]["complete"], true, "{}", whole["feed"]);
    assert_ne!(whole["verdict"]["kind"], "partial", "{}", reasons(&whole));
}

#[test]
fn a_mix_that_agents_cannot_carry_out_is_refused_in_a_line() {
    let fleet = fleet(2);
    file(&fleet, "", "rate = 100\nduration = \"1s\"");
    let bus = fleet.bus();
    let refused = |words: &[&str], code: i32, word: &str| {
        let ended = fleet.place.run([&["run", "mix.toml", "--quiet"], words].concat()).expect(code);
        assert_eq!(ended.stderr.trim_end().lines().count(), 1, "{}", ended.stderr);
        assert!(ended.stderr.contains(word), "{}", ended.stderr);
    };
    refused(
        &["--agents", "1", "--bus", &bus],
        64,
        "at least one must feed and one must load; use --agents 2",
    );
    refused(&["--agents", "2", "--bus", &bus, "--feed-agents", "2"], 64, "use --agents 3");
    refused(
        &["--agents", "3", "--bus", &bus, "--agents-within", "1s"],
        3,
        "2 of 3 agents answered",
    );
    refused(&["--bus", &bus], 64, "needs --agents N");
    refused(&["--rate", "5"], 64, "--rate");
    let url = &fleet.target.url;
    fleet.place.file(
        "mix.toml",
        format!(
            "[feed]\ntargets = [\"{url}\"]\nfiles = [\"docs.ndjson\"]\nload = {{ model = \"open\", rate_per_s = 100 }}\n\
             [queries]\nurl = \"{url}\"\nrate = 10\nduration = \"1s\"\n"
        ),
    );
    refused(&["--agents", "2", "--bus", &bus], 64, "fields of flags");
    // One side that cannot begin ends the other one.
    file(&fleet, "", "rate = 100\nduration = \"1s\"");
    let text = fleet.place.read("mix.toml").replacen(url, "http://10.255.0.1:9", 1);
    fleet.place.file("mix.toml", text);
    let ended = run(&fleet, 2, &[]).expect(64);
    assert!(
        ended.stderr.contains("agent a: ") && ended.stderr.contains("10.255.0.1"),
        "{}",
        ended.stderr
    );
    for name in ["a", "b"] {
        wait_until_idle(fleet.agent(name), 2);
    }
    assert_eq!(documents(&fleet), 0);
}

#[test]
fn an_agent_of_a_mix_that_dies_is_named_and_the_rest_ends() {
    let fleet = fleet(3);
    file(&fleet, "", "rate = 100\nduration = \"60s\"");
    let text = fleet.place.read("mix.toml").replace("rate = 200", "rate = 10");
    fleet.place.file("mix.toml", text);
    let running = fleet.place.start(words(&fleet, 3, &[]));
    until("documents come", SOON, || documents(&fleet) > 5);
    fleet.agent("a").signal(Signal::KILL);
    let whole = record(&running.wait(Duration::from_secs(40)).expect(3));
    assert_eq!(whole["verdict"]["kind"], "partial");
    assert!(
        reasons(&whole).contains("agent a: it has been silent for 10 s"),
        "{}",
        reasons(&whole)
    );
    for name in ["b", "c"] {
        wait_until_idle(fleet.agent(name), 2);
    }
}

#[test]
fn ctrl_c_ends_both_groups_of_a_mix() {
    let fleet = fleet(2);
    file(&fleet, "", "rate = 100\nduration = \"60s\"");
    let text = fleet.place.read("mix.toml").replace("rate = 200", "rate = 10");
    fleet.place.file("mix.toml", text);
    let running = fleet.place.start(words(&fleet, 2, &[]));
    until("documents come", SOON, || documents(&fleet) > 5);
    running.signal(Signal::INT);
    let whole = record(&running.wait(Duration::from_secs(20)).expect(3));
    assert_eq!(whole["verdict"]["kind"], "partial");
    let accepted = whole["feed"]["accepted"].as_u64().unwrap();
    assert_eq!(accepted, documents(&fleet), "{}", whole["feed"]);
    assert_eq!(whole["ledger"]["sent"], whole["ledger"]["ok"], "{}", whole["ledger"]);
    for name in ["a", "b"] {
        wait_until_idle(fleet.agent(name), 2);
    }
}

/// Before, a file ran on this machine alone, whatever its flags said.
#[test]
fn a_file_of_a_single_job_is_carried_out_by_agents() {
    let fleet = Fleet::of(Place::busy(), 2, &["null"]);
    let (url, bus) = (&fleet.target.url, fleet.bus());
    let head = format!("url = \"{url}\"\nrequests = 100\nclients = 2\n");
    fleet.place.file("load.toml", &head);
    let flags = ["run", "load.toml", "--json", "-", "--quiet", "--agents", "2", "--bus", &bus];
    let whole = record(&fleet.place.run(flags));
    assert_eq!(whole["fleet"]["agents"].as_array().unwrap().len(), 2);
    assert_eq!(whole["ledger"]["ok"], 100, "{}", reasons(&whole));
    for name in ["a", "b"] {
        wait_until_idle(fleet.agent(name), 2);
    }
    // The same as fields.
    fleet.place.file("load.toml", format!("{head}agents = 2\nbus = \"{bus}\"\n"));
    let whole = record(&fleet.place.run(["run", "load.toml", "--json", "-", "--quiet"]));
    assert_eq!(whole["fleet"]["agents"].as_array().unwrap().len(), 2);
    assert_eq!(fleet.target_requests(), 200);
}
