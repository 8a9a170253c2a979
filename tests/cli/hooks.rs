//! Each hook of a job, end to end.

use crate::process::{Place, until};
use crate::server::Server;
use serde_json::Value;
use std::time::Duration;

/// A job that loads `{url}` for three seconds after one of warm-up, with these hooks; the record and its folder.
#[track_caller]
fn run_with(place: &Place, server: &Server, hooks: &str) -> (Value, std::path::PathBuf, String) {
    let text = format!(
        "[job]\nname = \"hooked\"\ndescription = \"A test.\"\ncommand = [\"load\", \"{}\", \"--rate\", \
         \"50\", \"--warmup\", \"1s\", \"--duration\", \"3s\", \"--quiet\"]\n{hooks}",
        server.url()
    );
    place.file("hooked.toml", text);
    let mut command = place.plimsoll(["run", "hooked.toml", "--json", "-"]);
    // Programs of the test's own are found before the machine's.
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", place.path().join("bin").display()));
    let ended = crate::process::Running::start(command, b"").wait(Duration::from_secs(60));
    // A machine that is busy may make the generator late; the record is what matters here.
    assert!(matches!(ended.code, Some(0 | 3)), "{ended:?}");
    let record: Value = serde_json::from_str(&ended.stdout).unwrap();
    let folder = std::fs::read_dir(place.path().join("runs")).unwrap().next().unwrap().unwrap();
    (record, folder.path().join("hooks"), ended.stderr)
}

/// Rows of a CSV file, without its head.
fn rows(path: &std::path::Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let cells = |line: &str| line.split(',').map(str::to_owned).collect();
    text.lines().skip(1).map(cells).collect()
}

#[test]
fn monitors_sample_the_machine_and_are_cut_to_the_measured_window() {
    let (place, server) = (Place::quiet(), Server::ok());
    let (record, folder, stderr) = run_with(
        &place,
        &server,
        "[[job.hooks]]\nname = \"shell\"\noptions = { before = [\"true\"], after = [\"sleep 2\"] }\n\
         [[job.hooks]]\nname = \"perf\"\noptions = { netstat = { additional_counters = [\"Tcp.ActiveOpens\"] } }\n",
    );
    let perf = &record["hooks"]["perf"];
    let mut found = 0;
    for name in
        ["mpstat", "mem-stat", "net-stat", "cpufreq_scaling", "cpufreq_cpuinfo", "perf-stat"]
    {
        let whole = folder.join(format!("{name}.csv"));
        if !whole.is_file() {
            // What the machine does not offer is told, in the record and on stderr.
            let word = if name == "perf-stat" { "perf stat" } else { name };
            assert!(perf["warnings"].to_string().contains(word), "{name}: {perf}");
            assert!(stderr.contains(word), "{name}: {stderr}");
            continue;
        }
        found += 1;
        let (all, cut) = (rows(&whole), rows(&folder.join(format!("{name}_measured.csv"))));
        assert!((1..=4).contains(&cut.len()), "{name}: {} of three seconds", cut.len());
        assert!(cut.len() < all.len(), "{name}: the warm-up is still in it");
        let started = plimsoll_core::clock::parse_utc(record["started_at"].as_str().unwrap());
        let start_s = started.unwrap() as f64 / 1e6;
        for row in &cut {
            let at_s: f64 = row[1].parse().unwrap();
            assert!((start_s + 0.9..=start_s + 5.5).contains(&at_s), "{name}: {at_s} of {start_s}");
        }
        let samples = perf["samples_measured"][format!("{name}.csv")].as_u64();
        assert_eq!(samples, Some(cut.len() as u64));
    }
    assert!(found >= 3, "mpstat, mem-stat and net-stat need nothing but /proc");
    let averages = &perf["averages"];
    assert!(averages["mem-stat.csv"]["MemTotal_kB"].as_f64().unwrap() > 1e5);
    // Fifty requests a second of some hundred bytes each went over the loopback.
    assert!(
        averages["net-stat.csv"]["lo.rx_bytes_per_s"].as_f64().unwrap() > 2_000.0,
        "{averages}"
    );
    assert!(averages["net-stat.csv"]["Tcp.ActiveOpens_per_s"].is_number(), "{averages}");
    let idle = averages["mpstat.csv"]["%idle"].as_f64().unwrap();
    assert!((0.0..=100.0).contains(&idle));
}

/// A stand-in for the real mpstat: its arguments, its form, and its summary when it is interrupted.
const MPSTAT: &str = r#"#!/bin/sh
echo "$*" > mpstat-arguments
echo "Linux 6.1 (here) 	11/21/2026 	_x86_64_	(2 CPU)"
echo
head="     CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest  %gnice   %idle"
echo "$(date -u +%T)$head"
trap 'echo "Average:     all   42.00    0.00    1.00    0.00    0.00    0.00    0.00    0.00    0.00   57.00"; exit 0' INT
while :; do
  sleep 1
  echo "$(date -u +%T)     all   42.00    0.00    1.00    0.00    0.00    0.00    0.00    0.00    0.00   57.00"
done
"#;

#[test]
fn the_real_mpstat_is_used_where_it_is_asked_for_and_there() {
    let real =
        "[[job.hooks]]\nname = \"cpu-mpstat\"\noptions = { args = [\"-u\", \"1\"], real = true }\n";
    let (place, server) = (Place::busy(), Server::ok());
    std::fs::create_dir(place.path().join("bin")).unwrap();
    let program = place.script("bin/mpstat", MPSTAT);
    let (record, folder, stderr) = run_with(&place, &server, real);
    assert_eq!(place.read("mpstat-arguments"), "-u 1\n");
    let text = std::fs::read_to_string(folder.join("cpu-mpstat.txt")).unwrap();
    assert!(text.contains("Average:"), "it was not interrupted, but killed:\n{text}");
    let averages = &record["hooks"]["cpu-mpstat"]["averages"]["cpu-mpstat.txt"];
    assert_eq!(averages["%usr"].as_f64(), Some(42.0), "{averages} {stderr}");
    // One that cannot be run is told, and plimsoll samples by itself.
    std::fs::remove_file(&program).unwrap();
    std::fs::remove_dir_all(place.path().join("runs")).unwrap();
    std::fs::create_dir(place.path().join("bin/mpstat")).unwrap();
    let (record, _, stderr) = run_with(&place, &server, real);
    let installed = std::env::var("PATH").unwrap_or_default();
    let installed = std::env::split_paths(&installed).any(|dir| dir.join("mpstat").is_file());
    assert_eq!(stderr.contains("plimsoll samples /proc/stat itself"), !installed, "{stderr}");
    let samples = &record["hooks"]["cpu-mpstat"]["samples_measured"]["cpu-mpstat.txt"];
    assert!((1..=4).contains(&samples.as_u64().unwrap()), "{samples}");
}

#[test]
fn files_are_there_for_the_run_and_copies_come_into_the_record() {
    let (place, server) = (Place::new(), Server::ok());
    place.file("taken.log", "log");
    let (record, folder, _) = run_with(
        &place,
        &server,
        "[[job.hooks]]\nname = \"file\"\noptions = [{ type = \"dir\", path = \"scratch\" }, \
         { type = \"file\", path = \"scratch/flag\" }]\n\
         [[job.hooks]]\nname = \"shell\"\noptions = { before = [\"cd scratch\", \"ls\"], after = [\"pwd\"] }\n\
         [[job.hooks]]\nname = \"copymove\"\noptions = { is_move = true, before = [\"taken.*\"], \
         after = [\"nothing*\"] }\n",
    );
    let said = std::fs::read_to_string(folder.join("shell.txt")).unwrap();
    let place_then = place.path().canonicalize().unwrap().join("scratch");
    assert_eq!(said, format!("$ ls\nflag\n$ pwd\n{}\n", place_then.display()));
    assert!(!place.path().join("scratch").exists() && !place.path().join("taken.log").exists());
    assert_eq!(std::fs::read_to_string(folder.join("taken.log")).unwrap(), "log");
    let warned = record["hooks"]["copymove"]["warnings"].to_string();
    assert!(warned.contains("'nothing*' matches no file"), "{warned}");
}

#[test]
fn files_that_the_record_cannot_take_remain_in_the_folder_that_the_warning_names() {
    let (place, server) = (Place::new(), Server::ok());
    place.file("taken.log", "log");
    // A file in the place of the folder is in the way for root too.
    let (record, _, stderr) = run_with(
        &place,
        &server,
        "[[job.hooks]]\nname = \"shell\"\noptions = { before = [\"echo said\"], \
         after = [\"for record in runs/*; do touch $record/hooks; done\"] }\n\
         [[job.hooks]]\nname = \"copymove\"\noptions = { is_move = true, before = [\"taken.*\"] }\n",
    );
    let warned = record["hooks"]["shell"]["warnings"].to_string();
    assert!(warned.contains("files remain in"), "{warned} {stderr}");
    let (_, named) = stderr.split_once("files remain in ").unwrap();
    let folder = place.path().join(named.split(": ").next().unwrap());
    let said = std::fs::read_to_string(folder.join("shell.txt")).unwrap();
    assert!(said.starts_with("$ echo said\nsaid\n"), "{said}");
    assert_eq!(place.read("taken.log"), "log");
}

/// CPU time of a process so far, s.
fn cpu_s(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    // utime and stime, in hundredths of a second on every Linux.
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}

#[test]
fn a_limit_of_processors_holds_for_the_command_and_its_target() {
    let place = Place::alone();
    let own = rustix::thread::sched_getaffinity(None).unwrap();
    let first = (0..1024).find(|&cpu| own.is_set(cpu)).unwrap();
    place.file(
        "limited.toml",
        format!(
            "[job]\nname = \"limited\"\ndescription = \"A test.\"\n\
             command = [\"load\", \"http://{{target_host}}:{{target_port}}/rank\", \"--clients\", \"8\", \"--duration\", \"6s\"]\n\
             target = {{ serve = [\"rank\", \"--port\", \"0\", \"--scale\", \"10\", \"--wait\", \"0s\"] }}\n\
             [[job.hooks]]\nname = \"cpu-limit\"\noptions = [{first}]\n"
        ),
    );
    let running = place.start(["run", "limited.toml", "--quiet"]);
    let limit = Duration::from_secs(40);
    let load = running.wait_for_descendant(" load ", limit);
    let target = running.wait_for_descendant("serve rank", limit);
    let busy = || cpu_s(target) > 0.5;
    until("the target is under load", limit, busy);
    for pid in [load, target] {
        for task in std::fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
            let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap();
            let allowed =
                status.lines().find(|line| line.starts_with("Cpus_allowed_list:")).unwrap();
            assert_eq!(allowed.split_whitespace().nth(1).unwrap(), first.to_string());
        }
    }
    let (before_s, began_ns) = (cpu_s(load) + cpu_s(target), plimsoll_core::clock::now_ns());
    std::thread::sleep(Duration::from_secs(2));
    let used_s = cpu_s(load) + cpu_s(target) - before_s;
    let passed_s = (plimsoll_core::clock::now_ns() - began_ns) as f64 / 1e9;
    // One processor at most, and nearly all of it: eight clients leave the target no pause.
    assert!(used_s <= passed_s * 1.05 + 0.03, "{used_s} s of CPU in {passed_s} s");
    assert!(used_s >= passed_s * 0.3, "{used_s} s of CPU in {passed_s} s");
    let ended = running.wait(limit);
    assert!(matches!(ended.code, Some(0 | 3)), "{ended:?}");
}
