//! One run by several processes of this machine: the same as on several machines, without a bus to install.

use super::{SOON, reasons, record};
use crate::process::{Ended, PATIENCE, Place, Running, expect_gone, until};
use crate::server::Server;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::time::Duration;

fn words(parts: &[&[&str]]) -> Vec<String> {
    parts.concat().into_iter().map(str::to_owned).collect()
}

fn sorted_paths(server: &Server) -> Vec<String> {
    let mut paths = server.paths();
    paths.sort();
    paths
}

/// The folders that runs by processes have left in the folder for temporary files.
fn left_behind(place: &Place) -> Vec<String> {
    let entries = std::fs::read_dir(place.path().join("tmp")).unwrap().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Starts plimsoll with a folder for temporary files of its own.
fn start(place: &Place, words: &[String]) -> Running {
    let temporary = place.path().join("tmp");
    std::fs::create_dir_all(&temporary).unwrap();
    let mut command = place.plimsoll(words);
    command.env("TMPDIR", temporary);
    Running::start(command, b"")
}

fn run(place: &Place, words: &[String]) -> Ended {
    start(place, words).wait(PATIENCE)
}

#[test]
fn processes_ask_the_same_requests_as_one() {
    let place = Place::busy();
    let queries: String = (0..500).map(|number| format!("/q?n={number}\n")).collect();
    place.file("q.txt", queries);
    for job in [
        &["--requests", "900", "--clients", "9"][..],
        &["--requests", "700", "--rate", "700", "--arrivals", "poisson", "--seed", "7"],
        &["--requests", "601", "--rate", "600", "--order", "shuffle"],
    ] {
        let (here, there) = (Server::ok(), Server::ok());
        let common = |url: &str, more: &[&str]| {
            let url = url.to_owned() + "/";
            let fixed = ["load", &url, "--queries", "q.txt", "--json", "-", "--quiet"];
            words(&[&fixed, job, more])
        };
        let alone = record(&run(&place, &common(&here.url(), &["--threads", "3"])));
        let ended = run(&place, &common(&there.url(), &["--processes", "3"]));
        let shared = record(&ended);
        assert_eq!(shared["ledger"], alone["ledger"], "{job:?}: {}", reasons(&shared));
        assert_eq!(sorted_paths(&there), sorted_paths(&here), "{job:?}");
        assert_eq!(shared["class_names"], alone["class_names"]);
        assert!(shared["fleet"].get("troubles").is_none(), "{}", shared["fleet"]);
        let names: Vec<&str> = shared["fleet"]["agents"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["process-1", "process-2", "process-3"]);
    }
    // One record each, and nothing else stays.
    assert_eq!(std::fs::read_dir(place.path().join("runs")).unwrap().count(), 6);
    assert_eq!(left_behind(&place), Vec::<String>::new());
}

#[test]
fn one_process_is_the_run_itself() {
    let (place, server) = (Place::new(), Server::ok());
    let url = server.url();
    let job = ["load", &url, "--requests", "50", "--clients", "2", "--processes", "1"];
    let whole = record(&run(&place, &words(&[&job, &["--json", "-", "--quiet"]])));
    assert_eq!(whole["ledger"]["ok"], 50);
    assert!(whole.get("fleet").is_none(), "{}", whole["fleet"]);
}

/// A long run by three processes, once all of them send load, and the ids of the three.
fn long_run(place: &Place, url: &str) -> (Running, Vec<(u32, String)>) {
    let job = ["load", url, "--rate", "300", "--duration", "60s", "--processes", "3"];
    let running = start(place, &words(&[&job, &["--json", "-", "--quiet"]]));
    for name in ["process-1", "process-2", "process-3"] {
        running.wait_for_descendant(&format!("--name={name}"), SOON);
    }
    let processes = running.descendants();
    assert_eq!(processes.len(), 3, "{processes:?}");
    (running, processes)
}

fn requests(target: &crate::process::Target) -> u64 {
    target.stats()["requests"].as_u64().unwrap()
}

fn of<'a>(processes: &'a [(u32, String)], name: &str) -> &'a (u32, String) {
    processes.iter().find(|(_, line)| line.contains(&format!("--name={name} "))).unwrap()
}

#[test]
fn a_process_that_is_killed_makes_the_run_partial_and_is_named() {
    let place = Place::busy();
    let target = place.serve(&["null"]);
    let (running, processes) = long_run(&place, &target.url);
    until("load comes", SOON, || requests(&target) > 200);
    let pid = i32::try_from(of(&processes, "process-2").0).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    let ended = running.wait(Duration::from_secs(30)).expect(3);
    let whole = record(&ended);
    assert_eq!(whole["verdict"]["kind"], "partial", "{}", whole["verdict"]);
    let why = "process 2: it has ended (signal: 9 (SIGKILL))";
    assert!(reasons(&whole).contains(why), "{}", reasons(&whole));
    assert!(ended.stderr.contains("process 2"), "{}", ended.stderr);
    assert!(whole["ledger"]["ok"].as_u64().unwrap() > 100, "what was measured is kept");
    expect_gone(&processes);
    assert_eq!(left_behind(&place), Vec::<String>::new());
    let before = requests(&target);
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(requests(&target), before, "no one sends load any more");
}

#[test]
fn processes_end_with_the_one_that_started_them() {
    let place = Place::busy();
    let target = place.serve(&["null"]);
    for (signal, is_frozen) in [(Signal::KILL, false), (Signal::KILL, true), (Signal::STOP, false)]
    {
        let (running, processes) = long_run(&place, &target.url);
        let began = requests(&target);
        until("load comes", SOON, || requests(&target) > began + 100);
        if is_frozen {
            let pid = i32::try_from(of(&processes, "process-1").0).unwrap();
            kill_process(Pid::from_raw(pid).unwrap(), Signal::STOP).unwrap();
        }
        running.signal(signal);
        if signal == Signal::STOP {
            // They find the silence of one that stands still.
            until("the load ends", Duration::from_secs(20), || {
                let before = requests(&target);
                std::thread::sleep(Duration::from_secs(1));
                requests(&target) == before
            });
            running.signal(Signal::KILL);
        }
        running.wait(SOON);
        expect_gone(&processes);
        // The last process takes along what the one that was killed has left.
        assert_eq!(left_behind(&place), Vec::<String>::new(), "{signal:?}, frozen: {is_frozen}");
    }
}

#[test]
fn ctrl_c_ends_all_processes_in_order() {
    let place = Place::busy();
    let target = place.serve(&["null"]);
    let (running, processes) = long_run(&place, &target.url);
    until("load comes", SOON, || requests(&target) > 100);
    running.signal(Signal::INT);
    let whole = record(&running.wait(Duration::from_secs(20)).expect(3));
    assert_eq!(whole["verdict"]["kind"], "partial");
    assert_eq!(whole["ledger"]["sent"], whole["ledger"]["ok"], "{}", whole["ledger"]);
    assert_eq!(whole["ledger"]["ok"], requests(&target));
    expect_gone(&processes);
    assert_eq!(left_behind(&place), Vec::<String>::new());
}

#[test]
fn flags_that_do_not_go_with_processes_are_refused_in_one_line() {
    let place = Place::new();
    place.file("x.json", "[]");
    let (url, bus) = ("http://127.0.0.1:9", "nats://127.0.0.1:9");
    for (job, part) in [
        (
            vec!["load", url, "--processes", "2", "--agents", "2", "--bus", bus],
            "exclude each other",
        ),
        (vec!["load", url, "--processes", "2", "--bus", bus], "needs no --bus"),
        (vec!["load", url, "--processes", "1", "--bus", bus], "needs no --bus"),
        (vec!["load", url, "--processes", "2", "--watchers", "1"], "--watchers is for agents"),
        (vec!["load", url, "--processes", "2", "--fleet", "a"], "--fleet is for agents"),
        (vec!["load", url, "--processes", "2", "--agents-within", "5s"], "--agents-within is for"),
        (vec!["load", url, "--processes", "0"], "from 1 to 64"),
        (vec!["load", url, "--processes", "65"], "from 1 to 64"),
        (vec!["load", url, "--processes", "2", "--queries", "none.txt"], "no such file"),
        (
            vec!["load", url, "--processes", "2", "--clients", "1"],
            "cannot be shared out to 2 parts",
        ),
        (vec!["feed", url, "-", "--processes", "2"], "'-' is stdin"),
        (
            vec!["feed", url, "x.json", "--inflight", "1", "--processes", "2"],
            "shared out to 2 parts",
        ),
        (
            vec!["visit", url, "--out", "-", "--processes", "2"],
            "with --processes, write a file name",
        ),
        (vec!["visit", url, "--measure", "--processes", "2"], "--measure cannot be shared out"),
        (vec!["hello", "--processes", "2", "--auto-tune", "p99=9ms"], "follows from all answers"),
        (vec!["load", url, "--agents", "2", "--bus", "unix:/tmp/x"], "needs a NATS server"),
    ] {
        let ended = run(&place, &words(&[&job]));
        assert_eq!(ended.code, Some(64), "{job:?} {ended:?}");
        assert_eq!(ended.stderr.trim_end().lines().count(), 1, "{job:?} {}", ended.stderr);
        assert!(ended.stderr.contains(part), "{job:?}: no {part:?} in {}", ended.stderr);
    }
    // In the file that the processes read, the rest of a variable would be a header of its own.
    let job = ["load", url, "--processes", "2", "--header", "A: ${SPLIT}"];
    let mut command = place.plimsoll(job);
    command.env("SPLIT", "abc\nX-Role: admin");
    let ended = Running::start(command, b"").wait(PATIENCE).expect(64);
    assert!(!ended.stderr.contains("admin"), "{}", ended.stderr);
    assert_eq!(left_behind(&place), Vec::<String>::new());
}

/// A secret in a header comes from the environment, reaches the target, and is in no list of processes and no record.
#[test]
fn a_secret_of_the_environment_is_on_no_command_line_and_in_no_record() {
    let (place, server) = (Place::new(), Server::ok());
    let job = ["load", &server.url(), "--header", "Authorization: Bearer ${TOKEN}"];
    let more = ["--requests", "400", "--rate", "200", "--processes", "2", "--quiet"];
    let mut command = place.plimsoll([&job[..], &more].concat());
    command.env("TOKEN", "hunter2-of-the-test");
    let running = Running::start(command, b"");
    running.wait_for_descendant("--name=process-2", SOON);
    for (_, line) in running.descendants() {
        assert!(!line.contains("hunter2"), "{line}");
    }
    let ended = running.wait(PATIENCE);
    assert!(!ended.stdout.contains("hunter2") && !ended.stderr.contains("hunter2"), "{ended:?}");
    let seen = server.seen();
    assert_eq!(seen.len(), 400, "{ended:?}");
    assert!(seen.iter().all(|one| one.text().contains("Bearer hunter2-of-the-test")));
    let grep = place.program("grep", ["-r", "hunter2", "runs"]);
    Running::start(grep, b"").wait(SOON).expect(1);
}

/// The other jobs: each process has a part, and files of its own beside the one that was named.
#[test]
fn documents_are_fed_and_visited_by_processes() {
    let place = Place::busy();
    let target = place.serve(&["search"]);
    let url = target.url.as_str();
    let operations: String = (0..900)
        .map(|n| {
            format!("{{\"put\":\"id:plimsoll:doc::{n}\",\"fields\":{{\"title\":\"t\",\"score\":{n}}}}}\n")
        })
        .collect();
    place.file("docs.ndjson", operations);
    let end = ["--json", "-", "--quiet"];
    let feed = ["feed", url, "docs.ndjson", "--failed", "failed.ndjson", "--processes", "3"];
    let fed = record(&run(&place, &words(&[&feed, &end])));
    assert_eq!(fed["ledger"]["ok"], 900, "{}", reasons(&fed));
    let visit = ["visit", url, "--out", "dump.ndjson", "--slices", "4"];
    let visited = record(&run(&place, &words(&[&visit, &["--processes", "2"], &end])));
    let alone = record(&run(&place, &words(&[&["visit", url, "--out", "alone.ndjson"], &end])));
    for name in ["documents", "id_digest"] {
        assert!(!alone["visit"][name].is_null(), "{}", alone["visit"]);
        assert_eq!(visited["visit"][name], alone["visit"][name], "{}", reasons(&visited));
    }
    let lines =
        |name: &str| -> Vec<String> { place.read(name).lines().map(str::to_owned).collect() };
    let mut both = [lines("dump-0-of-2.ndjson"), lines("dump-1-of-2.ndjson")].concat();
    both.sort();
    let mut whole = lines("alone.ndjson");
    whole.sort();
    assert_eq!(both.len(), 900);
    assert!(both == whole, "the files of the processes are that of one");
}

/// fbench reads its files by client, from where the user is.
#[test]
fn fbench_has_the_same_summary_from_processes() {
    let place = Place::busy();
    let target = place.serve(&["null"]);
    for client in 0..4 {
        place.file(&format!("query{client:03}.txt"), format!("/c{client}/1\n/c{client}/2\n"));
    }
    let (host, port) = (target.host.clone(), target.port.to_string());
    let job = ["fbench", "-n", "4", "-s", "2", "-q", "query%03d.txt"];
    let end = ["--processes", "2", "--json", "-", "--quiet", &host, &port];
    let whole: Value = record(&run(&place, &words(&[&job, &end])));
    assert_eq!(whole["fbench"]["clients"], 4, "{whole:#}");
    assert_eq!(whole["ledger"]["failed"]["status"], 0);
    assert!(whole["ledger"]["ok"].as_u64().unwrap() > 100);
    assert_eq!(whole["ledger"]["ok"], requests(&target));
}
