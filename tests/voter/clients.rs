//! Several clients on one database: each has a true check of its own.

use super::{database, expect_exact, run};
use crate::process::Place;
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
        &["voter", &target.url, "--calls", "3000", "--workers", "20", "--seed", "9", "--quiet"],
    );
    let args = ["voter", &target.url, "--processes", "2", "--calls", "20001", "--workers", "20"];
    let ended = place.run(args);
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
        assert!(ended.stdout.contains(part), "{part} is missing in\n{}", ended.stdout);
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
fn independent_clients_share_the_numbers_by_slices() {
    let place = Place::busy();
    let target = database(&place, &[]);
    let url = target.url.clone();
    let start = |slice: &str| {
        let args =
            ["voter", &url, "--slice", slice, "--calls", "5000", "--workers", "10", "--quiet"];
        place.start([&args[..], &["--start-delay", "1s", "--json", "-", "--no-record"]].concat())
    };
    let both = [start("1/2"), start("2/2")];
    for running in both {
        let ended = running.wait(Duration::from_secs(60));
        let record = Record::of(&ended);
        expect_exact(&record);
        assert_eq!(record.ok(), 5000);
    }
}

#[test]
fn a_process_that_dies_is_told_and_the_others_count() {
    let place = Place::busy();
    let target = database(&place, &[]);
    let args =
        ["voter", &target.url, "--processes", "2", "--workers", "4", "--duration", "4s", "--quiet"];
    let running = place.start([&args[..], &["--json", "-", "--no-record"]].concat());
    let limit = Duration::from_secs(30);
    let pid = running.wait_for_descendant("--part 1/2", limit);
    running.wait_for_descendant("--part 0/2", limit);
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
}
