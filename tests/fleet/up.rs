//! `plimsoll fleet up`: a fleet on this machine, from its start to its end.

use super::record;
use crate::engines::install;
use crate::process::{PATIENCE, Place, Running, expect_gone};
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(60);

/// A fleet that is ready, and its URL.
#[track_caller]
fn up(place: &Place, words: &[&str]) -> (Running, String) {
    install("nats");
    let fleet = place.start([&["fleet", "up"], words].concat());
    let text = fleet.wait_for("\n", SOON);
    let url = text.strip_prefix("ready fleet ").unwrap_or_else(|| panic!("{text}"));
    (fleet, url.trim_end().to_owned())
}

#[test]
fn a_local_fleet_carries_out_a_run_and_leaves_nothing_behind() {
    let place = Place::busy();
    let (fleet, bus) = up(&place, &["--local", "3", "--fleet", "night", "--data", "fleet"]);
    let mode = place.path().join("fleet/bus.token").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // The printed command is the one to use.
    crate::process::until("the command is printed", SOON, || {
        fleet.stderr_so_far().contains("to use it: ")
    });
    let said = fleet.stderr_so_far();
    let words = said.split("to use it: plimsoll ").nth(1).unwrap().lines().next().unwrap();
    assert!(words.contains(&format!("--agents 3 --bus {bus} --fleet night ")), "{words}");
    let target = place.serve(&["null"]);
    let words: Vec<&str> = words.split(' ').collect();
    let words: Vec<&str> =
        words.iter().map(|word| if *word == "URL" { &target.url } else { *word }).collect();
    let more = ["--requests", "600", "--clients", "6", "--json", "-", "--quiet"];
    for _ in 0..2 {
        let ended = place.start(words.iter().chain(&more)).wait(PATIENCE);
        let whole = record(&ended);
        assert_eq!(whole["ledger"]["ok"], 600, "{ended:?}");
        assert_eq!(whole["fleet"]["agents"].as_array().unwrap().len(), 3);
    }
    // Without the token, the bus is closed.
    let words = ["load", &target.url, "--agents", "3", "--bus", &bus, "--fleet", "night"];
    let refused = place.run(words).expect(4);
    assert!(refused.stderr.contains("requires credentials"), "{}", refused.stderr);
    let token = place.read("fleet/bus.token");
    let all = fleet.descendants();
    assert!(all.len() >= 5, "{all:?}");
    assert!(all.iter().all(|(_, line)| !line.contains(token.trim())), "{all:?}");
    fleet.signal(Signal::TERM);
    fleet.wait(SOON).expect(0);
    expect_gone(&all);
    for agent in ["agent-1", "agent-2", "agent-3"] {
        let runs = std::fs::read_dir(place.path().join("fleet").join(agent).join("runs")).unwrap();
        assert_eq!(runs.count(), 2, "{agent}");
    }
}

#[test]
fn a_fleet_ends_with_the_first_of_its_processes() {
    let place = Place::new();
    for (word, name) in [("--name=agent-2", "agent-2"), ("serve nats", "the bus")] {
        let (fleet, _) = up(&place, &["--local", "2"]);
        let all = fleet.descendants();
        let id = fleet.wait_for_descendant(word, SOON);
        kill_process(Pid::from_raw(id as i32).unwrap(), Signal::KILL).unwrap();
        let ended = fleet.wait(SOON).expect(1);
        let line = ended.stderr.lines().last().unwrap_or_default();
        assert!(line.contains(&format!("{name} ended by itself (signal: 9")), "{}", ended.stderr);
        expect_gone(&all);
    }
    // A process that is killed cannot remove a temporary folder.
    let (fleet, _) = up(&place, &["--local", "2", "--data", "killed"]);
    let all = fleet.descendants();
    fleet.signal(Signal::KILL);
    fleet.wait(SOON);
    expect_gone(&all);
}

#[test]
fn without_nats_server_the_way_to_install_it_is_named() {
    let place = Place::new();
    let mut command = place.plimsoll(["fleet", "up", "--local", "1"]);
    command.env("PATH", place.path()).env("PLIMSOLL_HOME", place.path().join("home"));
    let ended = Running::start(command, b"").wait(SOON).expect(64);
    // Before it, the line about the new token.
    assert!(ended.stderr.lines().count() <= 2, "{}", ended.stderr);
    assert!(ended.stderr.ends_with("run: plimsoll install nats\n"), "{}", ended.stderr);
}

#[test]
fn a_token_file_that_cannot_be_read_is_named() {
    let place = Place::new();
    let words = ["agent", "--bus", "nats://127.0.0.1:9", "--bus-token-file", "missing"];
    let ended = place.run(words).expect(64);
    assert!(ended.stderr.contains("--bus-token-file missing: no such file"), "{}", ended.stderr);
}
