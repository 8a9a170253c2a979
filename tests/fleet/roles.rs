//! Agents that watch their machines beside agents that send load.

use super::{Fleet, SOON, reasons, record, wait_until_idle};
use crate::process::{PATIENCE, Place, Running, until};
use crate::record::Record;
use rustix::process::Signal;
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// CPU time of a process, s.
fn cpu_s(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let rest = stat.rsplit_once(')').unwrap().1;
    let ticks =
        |index: usize| rest.split_ascii_whitespace().nth(index).unwrap().parse::<f64>().unwrap();
    (ticks(11) + ticks(12)) / rustix::param::clock_ticks_per_second() as f64
}

/// The folder of the coordinator's record.
fn folder(fleet: &Fleet) -> PathBuf {
    let runs = fleet.place.path().join("runs");
    std::fs::read_dir(runs).unwrap().map(|run| run.unwrap().path()).max().unwrap()
}

fn lines(fleet: &Fleet, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(folder(fleet).join(name)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn at(line: &Value) -> f64 {
    line["at_s"].as_f64().unwrap()
}

/// CPU time of a watched thing in a line, s.
fn used(line: &Value, index: usize) -> f64 {
    let one = &line["watched"][index];
    one["cpu_user_s"].as_f64().unwrap() + one["cpu_system_s"].as_f64().unwrap()
}

/// Starts agents that watch beside those for the load.
fn watched(place: Place, target: &[&str], watchers: &[(&str, &[&str])]) -> (Fleet, Vec<Running>) {
    let fleet = Fleet::of(place, 1, target);
    let start = |(name, flags): &(&str, &[&str])| {
        let agent = fleet.start_agent(name, &[&["--role", "watch"], *flags].concat());
        wait_until_idle(&agent, 1);
        agent
    };
    let agents = watchers.iter().map(start).collect();
    (fleet, agents)
}

/// A process that is always busy.
fn burner(place: &Place) -> Running {
    Running::start(place.program("sh", ["-c", "while :; do :; done"]), b"")
}

#[test]
fn the_record_has_the_resources_of_the_watched_machine_on_the_axis_of_the_run() {
    let place = Place::quiet();
    let burner = burner(&place);
    let busy = format!("busy={}", burner.id());
    let fleet = Fleet::of(place, 1, &["null"]);
    let target = format!("target={}", fleet.target.process.id());
    let watcher =
        fleet.start_agent("db", &["--role", "watch", "--watch", &target, "--watch", &busy]);
    wait_until_idle(&watcher, 1);
    let began_s = cpu_s(burner.id());
    let url = fleet.target.url.clone();
    let load = ["--rate", "4000", "--warmup", "2s", "--duration", "4s"];
    let words = fleet.words(&[&["load", url.as_str()], &load[..], &["--watchers", "1"]].concat());
    let words: Vec<String> = words.into_iter().filter(|word| word != "--quiet").collect();
    let ended = fleet.place.start(words).wait(PATIENCE);
    let burnt_s = cpu_s(burner.id()) - began_s;
    assert!(ended.stderr.contains("watched by agent db on "), "{}", ended.stderr);
    let whole = record(&ended);
    Record(whole.clone()).expect_schema();
    // An agent that watches has no part of the load.
    assert_eq!(whole["ledger"]["ok"], 16_000, "{}", reasons(&whole));
    let agents = whole["fleet"]["agents"].as_array().unwrap();
    let roles: Vec<_> =
        agents.iter().map(|one| (&one["name"], &one["role"], &one["part"])).collect();
    assert_eq!(
        format!("{roles:?}"),
        r#"[(String("a"), String("load"), String("1/1")), (String("db"), String("watch"), String(""))]"#
    );
    assert!(agents[1]["round_trip_ms"].as_f64().unwrap() > 0.0);
    assert!(agents[1].get("figures").is_none());
    // The own machine and the watched one are apart.
    let watchers = whole["resources"]["watchers"].as_array().unwrap();
    assert_eq!(watchers.len(), 1);
    let db = &watchers[0];
    assert_eq!((&db["agent"], &db["file"]), (&"db".into(), &"resources-db.ndjson".into()));
    assert_eq!(db["host"], whole["machine"]["hostname"]);
    let names: Vec<&Value> =
        db["watched"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["db: target", "db: busy"]);
    assert_eq!(db["watched"][1]["pids"][0], burner.id());
    let own = whole["resources"]["watched"].as_array().unwrap();
    assert!(own.iter().all(|one| !one["name"].as_str().unwrap().contains("db")), "{own:?}");
    // The curve: CPU time of the right size, and load in the warm-up and in the measured stretch.
    let lines = lines(&fleet, "resources-db.ndjson");
    let all_s: f64 = lines.iter().map(|line| used(line, 1)).sum();
    assert!(all_s <= burnt_s + 0.05, "{all_s} of {burnt_s} s");
    let cores = db["watched"][1]["cpu_cores"]["mean"].as_f64().unwrap();
    assert!(cores > 0.3 && cores < 1.1, "{cores}");
    let during = |from_s: f64, to_s: f64| -> f64 {
        let within = |line: &&Value| at(line) > from_s && at(line) <= to_s;
        lines.iter().filter(within).map(|line| used(line, 0)).sum()
    };
    assert!(during(-1.5, 0.1) > 0.0, "the load of the warm-up: {lines:?}");
    assert!(during(0.1, 4.1) > during(-1.5, 0.1), "{lines:?}");
    assert!(at(lines.last().unwrap()) < 6.0 && at(lines.last().unwrap()) > 3.0);
    assert!(db["samples"].as_u64().unwrap() >= 2 && db["samples"].as_u64().unwrap() <= 5, "{db}");
    // It is free again, and nothing was written on its machine.
    wait_until_idle(&watcher, 2);
    assert!(!PathBuf::from(fleet.runs("db")).exists());
}

/// Each process has a clock of its own, which counts from its start; that of the watcher is seconds ahead. Its lines are where the load was.
#[test]
fn a_clock_that_is_ahead_is_corrected() {
    let place = Place::quiet();
    let fleet = Fleet::of(place, 1, &["null"]);
    let target = format!("target={}", fleet.target.process.id());
    let watcher = fleet.start_agent("db", &["--role", "watch", "--watch", &target]);
    wait_until_idle(&watcher, 1);
    std::thread::sleep(Duration::from_secs(4));
    let url = fleet.target.url.clone();
    let load = ["--rate", "4000", "--duration", "3s", "--watchers", "1"];
    let whole = record(&fleet.run(&[&["load", url.as_str()], &load[..]].concat()));
    let ahead_ms = whole["fleet"]["agents"][1]["clock_ahead_ms"].as_f64().unwrap();
    assert!(ahead_ms > 4_000.0, "{ahead_ms}");
    let lines = lines(&fleet, "resources-db.ndjson");
    let seconds: Vec<f64> = lines.iter().map(at).collect();
    // Without the correction the line of the load's last second would be at 7 s or later.
    assert!(seconds.iter().all(|at_s| *at_s < 3.0 + ahead_ms / 1e3 - 1.0), "{seconds:?}");
    let during = |line: &&Value| at(line) > 0.1 && at(line) <= 3.1;
    let used_s: f64 = lines.iter().filter(during).map(|line| used(line, 0)).sum();
    let before = |line: &&Value| at(line) <= -0.1;
    let before_s: f64 = lines.iter().filter(before).map(|line| used(line, 0)).sum();
    assert!(used_s > 0.0 && used_s > before_s, "{used_s} and {before_s}: {lines:?}");
}

#[test]
fn the_page_says_to_which_machine_a_curve_belongs() {
    let (fleet, agents) =
        watched(Place::quiet(), &["null"], &[("db", &["--watch", "plimsoll"]), ("cache", &[])]);
    let url = fleet.target.url.clone();
    let words = ["load", &url, "--rate", "100", "--duration", "2s", "--agents", "1", "--bus"];
    let more = ["--html", "page.html", "--verbose"];
    let bus = fleet.bus();
    let ended = fleet.place.run([&words[..], &[&bus], &more].concat());
    let page = &ended.stdout;
    for word in ["db (watch)", "cache (watch)", "db: plimsoll: CPU ", "(agent cache): "] {
        assert!(page.contains(word), "{word}: {page}");
    }
    let html = fleet.place.read("page.html");
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    for word in [
        format!("Resources of {host}, watched by agent db"),
        format!("Resources of {host}, watched by agent cache"),
        format!("Resources of the coordinator's machine, {host}"),
        "db: plimsoll".to_owned(),
    ] {
        assert!(html.contains(&word) || html.contains(&word.replace('\'', "&#39;")), "{word}");
    }
    // A page that is made later is the same.
    let folder = folder(&fleet).display().to_string();
    let later = fleet.place.run(["report", &folder, "--format", "html"]).expect(0);
    assert_eq!(later.stdout, html);
    agents.iter().for_each(|agent| wait_until_idle(agent, 2));
}

#[test]
fn a_watcher_that_dies_is_named_and_the_verdict_stays() {
    let (fleet, agents) = watched(Place::busy(), &["null"], &[("db", &[]), ("cache", &[])]);
    let url = fleet.target.url.clone();
    let running = fleet.start(&["load", &url, "--rate", "200", "--duration", "18s"]);
    let path = || folder(&fleet).join("resources-db.ndjson");
    until("lines come", SOON, || {
        std::fs::read_to_string(path()).is_ok_and(|text| text.lines().count() > 3)
    });
    agents[0].signal(Signal::KILL);
    let whole = record(&running.wait(PATIENCE));
    assert_ne!(whole["verdict"]["kind"], "partial", "{}", reasons(&whole));
    assert_eq!(whole["ledger"]["ok"], 3_600, "{}", reasons(&whole));
    let warnings = whole["warnings"].to_string();
    assert!(
        warnings.contains("agent db, which watches ")
            && warnings.contains("silent for 10 s; the resources of "),
        "{warnings}"
    );
    let watchers = &whole["resources"]["watchers"];
    let until_s = |index: usize| watchers[index]["until_s"].as_f64().unwrap();
    assert_eq!((&watchers[0]["agent"], &watchers[1]["agent"]), (&"cache".into(), &"db".into()));
    assert!(until_s(1) < until_s(0) - 5.0 && until_s(0) > 16.0, "{watchers}");
    assert!(watchers[1]["trouble"].is_string() && watchers[0].get("trouble").is_none());
    assert!(watchers[1]["samples"].as_u64().unwrap() >= 2, "{watchers}");
    assert!(watchers[1]["machine"]["cores_busy"][0]["mean"].is_number(), "{watchers}");
}

#[test]
fn too_few_watchers_are_counted_and_named_before_any_load() {
    let (fleet, agents) = watched(Place::new(), &["null"], &[("db", &[])]);
    let (bus, url) = (fleet.bus(), fleet.target.url.clone());
    let words = ["load", &url, "--agents", "1", "--bus", &bus];
    let more = ["--agents-within", "2s", "--watchers", "2"];
    let ended = fleet.place.run([&words[..], &more].concat()).expect(3);
    assert_eq!(ended.stderr.trim_end().lines().count(), 1, "{}", ended.stderr);
    for word in ["1 of 2 agents that watch answered", ": db;", "--role watch"] {
        assert!(ended.stderr.contains(word), "{}", ended.stderr);
    }
    // An agent that watches is none for the load.
    let ended =
        fleet.place.run(["load", &url, "--agents", "2", "--bus", &bus, "--agents-within", "2s"]);
    assert!(ended.expect(3).stderr.contains("1 of 2 agents answered"));
    assert_eq!(fleet.target_requests(), 0);
    drop(agents);
}

#[test]
fn a_thing_that_is_gone_leaves_the_watcher_out_unless_it_is_needed() {
    let place = Place::new();
    let sleeper = Running::start(place.program("sleep", ["600"]), b"");
    let pid = sleeper.id().to_string();
    let (fleet, agents) = watched(place, &["null"], &[("db", &["--watch", &pid])]);
    drop(sleeper);
    let url = fleet.target.url.clone();
    let load = ["load", &url, "--requests", "50", "--clients", "2"];
    let ended = fleet.run(&[&load[..], &["--watchers", "1"]].concat()).expect(3);
    let words = "0 of 1 agents watch; agent db: --watch ";
    assert!(ended.stderr.contains(words), "{}", ended.stderr);
    assert_eq!(fleet.target_requests(), 0);
    // Between two runs it says so, and waits.
    wait_until_idle(&agents[0], 2);
    let said = agents[0].stderr_so_far();
    assert!(said.contains("looked for again in the next run"), "{said}");
    wait_until_idle(fleet.agent("a"), 2);
    let whole = record(&fleet.run(&load));
    assert_eq!(whole["ledger"]["ok"], 50, "{}", reasons(&whole));
    let warnings = whole["warnings"].to_string();
    assert!(warnings.contains("agent db, which was to watch "), "{warnings}");
}

#[test]
fn a_watch_agent_is_started_with_things_that_exist_and_sends_no_load() {
    let fleet = Fleet::of(Place::new(), 0, &["null"]);
    let bus = fleet.bus();
    let agent = |flags: &[&str]| {
        fleet.place.run([&["agent", "--bus", &bus, "--once"], flags].concat()).expect(64)
    };
    let ended = agent(&["--role", "watch", "--watch", "no-such-program"]);
    assert!(ended.stderr.contains("no process is called 'no-such-program'"), "{}", ended.stderr);
    let ended = agent(&["--watch", "plimsoll"]);
    assert!(ended.stderr.contains("add --role watch"), "{}", ended.stderr);
}

/// It ends when its coordinator is gone, as agents for the load do.
#[test]
fn a_coordinator_that_dies_frees_its_watchers() {
    let (fleet, agents) = watched(Place::busy(), &["null"], &[("db", &[])]);
    let url = fleet.target.url.clone();
    let running = fleet.start(&["load", &url, "--rate", "200", "--duration", "60s"]);
    running.signal(Signal::KILL);
    running.wait(Duration::from_secs(5));
    wait_until_idle(&agents[0], 2);
    let said = agents[0].stderr_so_far();
    assert!(said.contains("the coordinator has been silent for 8 s"), "{said}");
}
