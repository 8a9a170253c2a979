//! Several clients on one database: each has a true check of its own.

use super::{database, expect_exact, run};
use crate::process::{Place, expect_gone, until};
use crate::record::Record;
use rustix::process::{Pid, Signal, kill_process};
use std::time::Duration;

#[test]
fn two_processes_are_both_exact_and_start_together() {
    let place = Place::busy();
    let target = database(&place, &[]);
    // Votes of somebody else are no business of theirs.
    run(
        &place,
        &["voter", &target.url, "--calls", "3000", "--clients", "20", "--seed", "9", "--quiet"],
    );
    let args = ["voter", &target.url, "--processes", "2", "--calls", "20001", "--clients", "20"];
    let ended = place.run([&args[..], &["--verbose"]].concat());
    assert!(matches!(ended.code, Some(0 | 3)), "{}\n{}", ended.stdout, ended.stderr);
    for part in [
        "check writes ... 'VSD1' ok: ",
        "check writes ... 'VSD2' ok: ",
        "Client 'VSD1' overall: ",
        "Client 'VSD2' overall: ",
        "Total transactions per second: ",
        "(20,001 in ",
        "Sum of the clients' own rates: ",
        "start skew ",
    ] {
        let whole = ended.stdout.replace("\n           ", " ");
        assert!(whole.contains(part), "{part} is missing in\n{whole}");
    }
    let record = run(&place, &[&args[..], &["--seed", "2", "--quiet"]].concat());
    expect_exact(&record);
    assert_eq!(record.count("/voter/totals/transactions"), 20_001);
    let calls = |at: u32| record.count(&format!("/voter/processes/{at}/calls"));
    assert_eq!((calls(0), calls(1)), (10_001, 10_000));
    assert!(
        record.number("/voter/totals/per_s")
            <= record.number("/voter/totals/sum_of_rates_per_s") * 1.000_001
    );
    assert!(record.number("/voter/totals/start_skew_ms") >= 0.0);
    // The histograms are those of all calls.
    assert_eq!(record.count("/latency_ms/response/count"), 20_001);
    assert_eq!(record.count("/voter/server/ms/count"), 20_001);
}

#[test]
fn the_record_of_several_processes_has_its_seconds_and_its_slowest_calls() {
    let place = Place::busy();
    let target = database(&place, &[]);
    let args = ["voter", &target.url, "--processes", "2", "--clients", "8", "--duration", "30s"];
    let running = place.start([&args[..], &["--quiet", "--json", "-"]].concat());
    let journal = || {
        let folder = std::fs::read_dir(place.path().join("runs")).ok()?.next()?.ok()?.path();
        std::fs::read_to_string(folder.join("intervals.ndjson")).ok()
    };
    // Seconds are written down as they pass, and not when all is over.
    until("two seconds", Duration::from_secs(60), || {
        journal().is_some_and(|text| text.lines().count() >= 2)
    });
    running.signal(Signal::INT);
    let ended = running.wait(Duration::from_secs(60));
    assert_eq!(ended.code, Some(3), "{}\n{}", ended.stdout, ended.stderr);
    let record = Record::of(&ended);
    record.expect_balanced();
    assert_eq!((record.verdict(), record.text("/voter/check")), ("partial", "ok"));
    let lines = journal().unwrap();
    let ok: u64 = lines
        .lines()
        .map(|line| {
            let second: serde_json::Value = serde_json::from_str(line).unwrap();
            second.pointer("/ledger/ok").and_then(serde_json::Value::as_u64).unwrap()
        })
        .sum();
    assert_eq!(ok, record.ok(), "all processes are in the journal");
    let slowest = record.0["slowest"].as_array().unwrap();
    assert_eq!(slowest.len(), 20);
    let times: Vec<f64> = slowest.iter().map(|one| one["response_ms"].as_f64().unwrap()).collect();
    assert!(times.is_sorted_by(|one, next| one >= next), "{times:?}");
    assert!(slowest.iter().all(|one| one["class"] == "vote" && one["outcome"] == "ok"));
}

#[test]
fn independent_clients_share_the_numbers_by_slices() {
    let place = Place::busy();
    let target = database(&place, &[]);
    let url = target.url.clone();
    let start = |slice: &str| {
        let args =
            ["voter", &url, "--slice", slice, "--calls", "5000", "--clients", "10", "--quiet"];
        place.start([&args[..], &["--start-delay", "1s", "--json", "-", "--no-record"]].concat())
    };
    let both = [start("1/2"), start("2/2")];
    for running in both {
        let ended = running.wait(Duration::from_secs(60));
        let record = Record::of(&ended);
        expect_exact(&record);
        assert_eq!(record.ok(), 5000);
        // On the boundary of a second, and how near to it is told.
        let agreed_us = record.count("/voter/agreed_start_us");
        assert!(agreed_us.is_multiple_of(1_000_000), "{agreed_us}");
        assert!(record.count("/voter/processes/0/started_us") >= agreed_us - 1_000);
    }
}

#[test]
fn a_process_that_dies_is_told_and_the_others_count() {
    let place = Place::busy();
    let target = database(&place, &[]);
    let args =
        ["voter", &target.url, "--processes", "2", "--clients", "4", "--duration", "4s", "--quiet"];
    let running = place.start([&args[..], &["--json", "-", "--no-record"]].concat());
    let limit = Duration::from_secs(30);
    let pid = running.wait_for_descendant("--name=process-2", limit);
    running.wait_for_descendant("--name=process-1", limit);
    // Once both are ready their start is agreed; a second later they are at work.
    std::thread::sleep(Duration::from_secs(2));
    kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL).unwrap();
    let ended = running.wait(Duration::from_secs(60));
    assert_eq!(ended.code, Some(3), "{}\n{}", ended.stdout, ended.stderr);
    let record = Record::of(&ended);
    assert_eq!(record.verdict(), "partial");
    assert_eq!(record.text("/voter/processes/0/check"), "ok");
    assert_eq!(record.text("/voter/processes/1/check"), "not-checked");
    assert!(record.text("/voter/processes/1/died").contains("signal"), "{:#}", record.0["voter"]);
    assert_eq!(record.text("/voter/check"), "not-checked");
    super::line(&ended);
}

#[test]
fn processes_that_are_stopped_before_their_start_say_so_in_one_line() {
    let place = Place::busy();
    let target = database(&place, &[]);
    let args = ["voter", &target.url, "--processes", "2", "--start-delay", "60s"];
    let running = place.start([&args[..], &["--calls", "100", "--verbose"]].concat());
    until("ready", Duration::from_secs(60), || running.stderr_so_far().contains("start at"));
    let processes = running.descendants();
    running.signal(Signal::INT);
    let ended = running.wait(Duration::from_secs(30)).expect(3);
    let told = super::line(&ended);
    assert!(told.ends_with("stopped before the agreed start; nothing was measured"), "{told}");
    assert_eq!(ended.stdout, "");
    expect_gone(&processes);
}
