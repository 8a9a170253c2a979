//! Runs that cannot take place: one clear line, before any load.

use super::{Fleet, record};
use crate::certificates::Authority;
use crate::process::{Ended, PATIENCE, Place, Running, until};
use rustix::process::Signal;
use std::time::Duration;

/// One line on stderr that holds these words, within ten seconds, and no request at the target.
#[track_caller]
fn refused(fleet: &Fleet, ended: &Ended, code: i32, words: &[&str]) {
    assert_eq!(ended.code, Some(code), "{ended:?}");
    let line = ended.stderr.trim_end();
    assert_eq!(line.lines().count(), 1, "{line}");
    for word in words {
        assert!(line.contains(word), "no {word:?} in {line}");
    }
    assert!(ended.took < Duration::from_secs(13), "{:?}", ended.took);
    assert_eq!(fleet.target_requests(), 0);
}

#[test]
fn too_few_agents_are_counted_and_named() {
    let fleet = Fleet::of(Place::new(), 2, &["null"]);
    let (bus, url) = (fleet.bus(), fleet.target.url.clone());
    let words = ["load", &url, "--agents", "3", "--bus", &bus, "--agents-within", "2s"];
    refused(&fleet, &fleet.place.run(words), 3, &["2 of 3 agents", ": a, b;", "plimsoll agent"]);
}

#[test]
fn agents_of_another_run_are_named() {
    let fleet = Fleet::of(Place::busy(), 2, &["null"]);
    let (bus, url) = (fleet.bus(), fleet.target.url.clone());
    let running = fleet.start(&["load", &url, "--rate", "50", "--duration", "60s"]);
    until("load has begun", crate::process::PATIENCE, || fleet.target_requests() > 0);
    let second = ["load", &url, "--agents", "2", "--bus", &bus, "--agents-within", "2s"];
    let ended = fleet.place.run(second).expect(3);
    let line = ended.stderr.trim_end();
    assert_eq!(line.lines().count(), 1, "{line}");
    assert!(line.contains("0 of 2 agents answered"), "{line}");
    assert!(line.contains("2 agents carry out another run (a, b): wait for its end, or"), "{line}");
    running.signal(Signal::INT);
    let whole = record(&running.wait(crate::process::PATIENCE));
    assert!(whole["ledger"]["ok"].as_u64().unwrap() > 0, "{}", whole["ledger"]);
    // They are free again, and a run that waits gets them.
    let third =
        ["load", &url, "--requests", "10", "--clients", "2", "--agents", "2", "--bus", &bus];
    fleet.place.run(third).expect(0);
}

#[test]
fn a_second_agent_of_the_same_name_takes_no_part() {
    let mut fleet = Fleet::of(Place::new(), 1, &["null"]);
    fleet.add("a", &[]);
    let (bus, url) = (fleet.bus(), fleet.target.url.clone());
    let words = ["load", &url, "--agents", "2", "--bus", &bus, "--agents-within", "2s"];
    let ended = fleet.place.run(words).expect(3);
    assert!(ended.stderr.contains("two agents are named a"), "{}", ended.stderr);
    assert_eq!(ended.stderr.lines().count(), 2, "{}", ended.stderr);
    let words = [
        "load",
        &url,
        "--agents",
        "1",
        "--bus",
        &bus,
        "--requests",
        "50",
        "--clients",
        "1",
        "--json",
        "-",
        "--quiet",
    ];
    assert_eq!(record(&fleet.place.run(words))["ledger"]["ok"], 50);
}

#[test]
fn an_agent_sends_load_only_to_targets_that_it_allows() {
    let mut fleet = Fleet::of(Place::new(), 1, &["null"]);
    let ended = fleet.run(&["load", "http://10.255.0.1:9/", "--duration", "1s"]);
    refused(
        &fleet,
        &ended,
        64,
        &["agent a: ", "does not send load to 10.255.0.1", "--allow-target 10.255.0.1"],
    );
    // The list is the whole list.
    fleet.agents.clear();
    fleet.add("narrow", &["--allow-target", "10.0.0.0/8"]);
    let url = fleet.target.url.clone();
    let ended = fleet.run(&["load", &url, "--duration", "1s"]);
    refused(&fleet, &ended, 64, &["agent narrow: ", "does not send load to 127.0.0.1"]);
}

#[test]
fn an_agent_of_another_build_is_refused_with_both_named() {
    let mut fleet = Fleet::of(Place::new(), 0, &["null"]);
    // The same program with something behind its end is another file.
    let other = fleet.place.path().join("other");
    // Another process writes it: a file that this one has open for writing is busy in each process that a test starts meanwhile.
    let script = format!("cp '{}' other && printf other >> other", env!("CARGO_BIN_EXE_plimsoll"));
    let mut shell = std::process::Command::new("sh");
    shell.arg("-c").arg(script).current_dir(fleet.place.path());
    assert!(shell.status().unwrap().success());
    let bus = fleet.bus();
    let command = fleet.place.program(&other, ["agent", "--bus", &bus, "--name", "old"]);
    let agent = crate::process::Running::start(command, b"");
    super::wait_until_idle(&agent, 1);
    fleet.agents.push(("old".to_owned(), agent));
    let url = fleet.target.url.clone();
    let ended = fleet.run(&["load", &url, "--duration", "1s"]);
    refused(&fleet, &ended, 3, &["agent old is another build", "; this is ", "program "]);
}

#[test]
fn a_folder_that_an_agent_cannot_write_is_named_with_the_agent() {
    let mut fleet = Fleet::of(Place::new(), 0, &["null"]);
    fleet.place.file("q.txt", "/a\n/b\n");
    // A file where the folder of received files should be.
    let taken = fleet.place.file("taken", "").display().to_string();
    fleet.add("full", &["--files", &taken]);
    let url = fleet.target.url.clone();
    let ended = fleet.run(&["load", &url, "--queries", "q.txt", "--duration", "1s"]);
    refused(&fleet, &ended, 1, &["agent full: ", "taken"]);
}

/// Adds the agent `full`, whose records are on a file system of this size that it alone has; `meanwhile` is a command of the shell.
fn add_on_disk(fleet: &mut Fleet, size: &str, meanwhile: &str) {
    let disk = fleet.place.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let mount =
        format!("mount -t tmpfs -o size={size} tmpfs \"$0\" && {{ {meanwhile} exec \"$@\"; }}");
    let (disk, bus) = (disk.display().to_string(), fleet.bus());
    let agent = ["agent", "--bus", &bus, "--name", "full", "--runs", &disk];
    let plimsoll = env!("CARGO_BIN_EXE_plimsoll");
    let words = [&["-rm", "sh", "-c", &mount, &disk, plimsoll], &agent[..]].concat();
    let agent = crate::process::Running::start(fleet.place.program("unshare", words), b"");
    super::wait_until_idle(&agent, 1);
    fleet.agents.push(("full".to_owned(), agent));
}

/// The run would take an hour: a disk that is full is found before its load.
#[test]
fn a_disk_that_is_full_is_named_with_the_agent_before_any_load() {
    let mut fleet = Fleet::of(Place::new(), 1, &["null"]);
    add_on_disk(&mut fleet, "64k", "");
    let url = fleet.target.url.clone();
    let ended = fleet.run(&["load", &url, "--duration", "1h"]);
    let parts = ["agent full: its record has no room below ", "no space left on device; free some"];
    refused(&fleet, &ended, 1, &parts);
}

#[test]
fn a_disk_that_fills_during_the_run_makes_it_partial_and_is_named_with_the_agent() {
    let mut fleet = Fleet::of(Place::new(), 1, &["null"]);
    // Another program fills it a second after the record was begun.
    let fill = "(until ls \"$0\" | grep -q .; do sleep 0.1; done; sleep 1; cat /dev/zero >\"$0/fill\" 2>/dev/null) & ";
    add_on_disk(&mut fleet, "2m", fill);
    let url = fleet.target.url.clone();
    let ended = fleet.run(&["load", &url, "--rate", "200", "--duration", "4s"]).expect(3);
    let parts =
        ["partial", "agent full: its record could not be written: ", "no space left on device"];
    for part in parts {
        assert!(ended.stderr.contains(part), "no {part:?} in {}", ended.stderr);
    }
}

#[test]
fn a_flag_for_a_file_on_every_agent_is_refused() {
    let fleet = Fleet::of(Place::new(), 1, &["null"]);
    let (host, port) = (fleet.target.host.clone(), fleet.target.port.to_string());
    fleet.place.file("q.txt", "/a\n");
    let ended = fleet
        .run(&["fbench", "-n", "2", "-s", "1", "-z", "-q", "q.txt", "-o", "out%d", &host, &port]);
    refused(&fleet, &ended, 64, &["-o names a file", "leave it out with --agents"]);
}

#[test]
fn more_agents_than_clients_are_refused_with_the_number() {
    let fleet = Fleet::of(Place::new(), 3, &["null"]);
    let url = fleet.target.url.clone();
    let ended = fleet.run(&["load", &url, "--clients", "2", "--duration", "1s"]);
    refused(&fleet, &ended, 64, &["2 clients cannot be shared out to 3 parts"]);
}

#[test]
fn without_a_bus_the_way_to_start_one_is_named() {
    let fleet = Fleet::of(Place::new(), 0, &["null"]);
    let (url, port) = (fleet.target.url.clone(), crate::server::closed_port());
    let bus = format!("nats://127.0.0.1:{port}");
    let ended = fleet.place.run(["load", &url, "--agents", "1", "--bus", &bus]);
    refused(&fleet, &ended, 4, &["no NATS server at", "plimsoll serve nats"]);
    let ended = fleet.place.run(["agent", "--bus", &bus, "--wait", "1s"]);
    refused(&fleet, &ended, 4, &["no NATS server at", "plimsoll serve nats"]);
    let ended = fleet.place.run(["load", &url, "--agents", "1"]);
    refused(&fleet, &ended, 64, &["--bus"]);
}

/// A flag that describes agents, without `--agents`: such a run took place on this machine alone.
#[test]
fn flags_of_a_fleet_without_agents_are_one_line_that_says_what_to_add() {
    let fleet = Fleet::of(Place::new(), 0, &["null"]);
    let (bus, url) = (fleet.bus(), fleet.target.url.clone());
    for flags in [
        &["--watchers", "1"][..],
        &["--fleet", "other"],
        &["--agents-within", "5s"],
        &["--bus-token-file", "token"],
        &["--bus-cacert", "ca.pem"],
        &["--bus-creds", "x.creds"],
    ] {
        let ended = fleet.place.run([&["load", &url, "--requests", "5"], flags].concat());
        let add =
            "is for a run on agents; add --agents N and --bus nats://HOST:PORT, or leave it out";
        refused(&fleet, &ended, 64, &[flags[0], add]);
    }
    let ended = fleet.place.run(["load", &url, "--requests", "5", "--bus", &bus]);
    refused(&fleet, &ended, 64, &["--bus is for a run on agents; add --agents N, or leave it out"]);
    // In a file the field is named with its line.
    let text = format!("url = \"{url}\"\nrequests = 5\nwatchers = 1\n");
    fleet.place.file("f.toml", text);
    let ended = fleet.place.run(["run", "f.toml"]);
    refused(&fleet, &ended, 64, &["f.toml:3: `watchers` is for a run on agents; add --agents N"]);
    let ended = fleet.place.run(["run", "f.toml", "--processes", "2"]);
    refused(&fleet, &ended, 64, &["f.toml:3: `watchers` is for agents, and --processes starts"]);
}

/// An agent and a coordinator without the right credentials, or with a certificate that does not hold: one line each, at once.
#[test]
fn credentials_and_certificates_that_do_not_hold_are_one_line_of_agent_and_coordinator() {
    let place = Place::new();
    let guarded = crate::bus::Server::start(&place, "authorization { token: sesame }");
    let authority = Authority::new("bus");
    let ca = place.file("ca.pem", authority.pem()).display().to_string();
    let expired = authority.expired(&["127.0.0.1"]);
    let pem = place.file("server.pem", &expired.certificate).display().to_string();
    let key = place.file("server.key", &expired.key).display().to_string();
    let config = format!("tls {{ cert_file: \"{pem}\", key_file: \"{key}\" }}");
    let secured = crate::bus::Server::start(&place, &config);
    let wrong = place.file("token", "sesame-wrong\n").display().to_string();
    let guarded = format!("nats://127.0.0.1:{}", guarded.port);
    let secured = format!("tls://127.0.0.1:{}", secured.port);
    let url = "http://127.0.0.1:9/";
    for (flags, word) in [
        (vec!["--bus", &guarded], "requires credentials"),
        (vec!["--bus", &guarded, "--bus-token-file", &wrong], "rejects the token"),
        (vec!["--bus", &secured, "--bus-cacert", &ca], "has expired"),
    ] {
        for job in [&["agent", "--name", "a"][..], &["load", url, "--agents", "1"]] {
            let ended = place.run([job, &flags[..]].concat());
            assert_eq!(ended.code, Some(4), "{job:?}: {}", ended.stderr);
            assert_eq!(ended.stderr.trim_end().lines().count(), 1, "{}", ended.stderr);
            assert!(ended.stderr.contains(word), "{job:?}: {}", ended.stderr);
            assert!(!ended.stderr.contains("sesame"), "a secret in {}", ended.stderr);
            assert!(ended.took < Duration::from_secs(10), "{:?}", ended.took);
        }
    }
}

#[test]
fn credentials_that_do_not_belong_together_name_the_variable_of_the_environment() {
    let place = Place::new();
    let bus = ["--bus", "nats://127.0.0.1:1"];
    for (flags, variable) in [
        (["--bus-nkey", "seed"], "PLIMSOLL_BUS_TOKEN"),
        (["--bus-user", "ann"], "PLIMSOLL_BUS_PASSWORD"),
    ] {
        for job in [&["agent", "--name", "a"][..], &["load", "http://h/", "--agents", "1"]] {
            let mut command = place.plimsoll([job, &bus, &flags].concat());
            command.env("PLIMSOLL_BUS_TOKEN", "hidden-word").env_remove("PLIMSOLL_BUS_PASSWORD");
            let ended = Running::start(command, b"").wait(PATIENCE).expect(64);
            assert_eq!(ended.stderr.trim_end().lines().count(), 1, "{}", ended.stderr);
            assert!(ended.stderr.contains(variable), "{job:?}: {}", ended.stderr);
            assert!(!ended.stderr.contains("hidden-word"), "a secret in {}", ended.stderr);
        }
    }
}
