//! Something is lost: no wrong number is printed as valid, nothing hangs, no agent sends load on its own.

use super::{Fleet, SOON, reasons, record, wait_until_idle};
use crate::process::{PATIENCE, Place, until};
use rustix::process::Signal;
use std::time::Duration;

const LONG: [&str; 4] = ["--rate", "200", "--duration", "60s"];

/// Ends a run after something happened to one agent; the others are still there, and free again.
fn invalid_without(happens: impl FnOnce(&Fleet), word: &str) {
    let fleet = Fleet::of(Place::busy(), 3, &["null"]);
    let url = fleet.target.url.clone();
    let running = fleet.start(&[&["load", url.as_str()], &LONG[..]].concat());
    happens(&fleet);
    let ended = running.wait(Duration::from_secs(40)).expect(3);
    let whole = record(&ended);
    assert_eq!(whole["verdict"]["kind"], "partial", "{}", whole["verdict"]);
    assert!(
        reasons(&whole).contains("agent b: ") && reasons(&whole).contains(word),
        "{}",
        reasons(&whole)
    );
    assert!(ended.stderr.contains("agent b"), "{}", ended.stderr);
    assert!(whole["ledger"]["ok"].as_u64().unwrap() > 10, "what was measured is kept");
    for name in ["a", "c"] {
        wait_until_idle(fleet.agent(name), 2);
    }
    std::thread::sleep(Duration::from_millis(500));
    let before = fleet.target_requests();
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(fleet.target_requests(), before, "no one sends load any more");
}

#[test]
fn an_agent_that_dies_makes_the_run_invalid_and_is_named() {
    invalid_without(|fleet| fleet.agent("b").signal(Signal::KILL), "silent for 10 s");
}

#[test]
fn an_agent_that_freezes_makes_the_run_invalid_and_ends_its_load_when_it_goes_on() {
    invalid_without(
        |fleet| {
            fleet.agent("b").signal(Signal::STOP);
            std::thread::sleep(Duration::from_secs(14));
            fleet.agent("b").signal(Signal::CONT);
        },
        "silent for 10 s",
    );
}

#[test]
fn a_coordinator_that_dies_leaves_no_load_behind() {
    let fleet = Fleet::of(Place::busy(), 2, &["null"]);
    let url = fleet.target.url.clone();
    let running = fleet.start(&[&["load", url.as_str()], &LONG[..]].concat());
    running.signal(Signal::KILL);
    running.wait(SOON);
    for name in ["a", "b"] {
        wait_until_idle(fleet.agent(name), 2);
        let said = fleet.agent(name).stderr_so_far();
        assert!(said.contains("the coordinator has been silent for 8 s"), "{said}");
    }
    let before = fleet.target_requests();
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(fleet.target_requests(), before);
    // They are free for the next run.
    let ended = fleet.run(&["load", &url, "--requests", "100", "--clients", "2"]);
    assert_eq!(record(&ended)["ledger"]["ok"], 100);
}

#[test]
fn a_bus_that_dies_and_comes_back_costs_nothing() {
    let mut fleet = Fleet::of(Place::busy(), 2, &["null"]);
    let url = fleet.target.url.clone();
    let running = fleet.start(&["load", &url, "--rate", "200", "--duration", "10s"]);
    fleet.server.take().unwrap().kill();
    std::thread::sleep(Duration::from_secs(2));
    fleet.server = crate::bus::Server::start_on(&fleet.place, fleet.port, "");
    assert!(fleet.server.is_some());
    let ended = running.wait(PATIENCE);
    let whole = record(&ended);
    assert_eq!(whole["ledger"]["ok"], 2_000, "{}", reasons(&whole));
    assert!(whole["fleet"].get("troubles").is_none(), "{}", whole["fleet"]);
}

#[test]
fn a_bus_that_stays_away_ends_the_run_and_the_load() {
    let mut fleet = Fleet::of(Place::busy(), 2, &["null"]);
    let url = fleet.target.url.clone();
    let running = fleet.start(&[&["load", url.as_str()], &LONG[..]].concat());
    fleet.server.take().unwrap().kill();
    let ended = running.wait(Duration::from_secs(40)).expect(3);
    let whole = record(&ended);
    assert!(
        reasons(&whole).contains("agent a: ") && reasons(&whole).contains("agent b: "),
        "{}",
        reasons(&whole)
    );
    let mut last = fleet.target_requests();
    until("the load ends", Duration::from_secs(12), || {
        std::thread::sleep(Duration::from_secs(1));
        let now = fleet.target_requests();
        std::mem::replace(&mut last, now) == now
    });
}

#[test]
fn ctrl_c_at_the_coordinator_ends_all_parts_in_order() {
    let fleet = Fleet::of(Place::busy(), 2, &["null"]);
    let url = fleet.target.url.clone();
    let running = fleet.start(&[&["load", url.as_str()], &LONG[..]].concat());
    std::thread::sleep(Duration::from_millis(1_500));
    running.signal(Signal::INT);
    let whole = record(&running.wait(Duration::from_secs(15)).expect(3));
    assert_eq!(whole["verdict"]["kind"], "partial");
    assert_eq!(whole["ledger"]["sent"], whole["ledger"]["ok"], "{}", whole["ledger"]);
    assert_eq!(whole["ledger"]["ok"], fleet.target_requests());
    for name in ["a", "b"] {
        wait_until_idle(fleet.agent(name), 2);
    }
}
