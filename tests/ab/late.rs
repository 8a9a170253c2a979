//! A generator that stands still for moments: it is late, and percentiles are compared at equal delays.

use super::{LONG, STEADY, answer, is_limited};
use crate::process::{Ended, Place, Running};
use crate::record::Record;
use plimsoll_core::clock::now_ns;
use rustix::process::{Pid, Signal, kill_process};
use std::time::Duration;

/// A block in which the generator is stopped several times.
const BLOCK: [&str; 7] = ["load", "--rate", "100", "--duration", "400ms", "--warmup", "0s"];

/// Stops the generator of each block for a twelfth of the time, some fifteen times a second, until the comparison ends.
fn disturbed(mut comparison: Running) -> Ended {
    let mut free_since_ns = now_ns();
    while !comparison.has_ended() {
        std::thread::sleep(Duration::from_millis(55));
        let blocks =
            comparison.descendants().into_iter().filter(|(_, line)| line.contains(" load "));
        let blocks: Vec<Pid> = blocks.filter_map(|(pid, _)| Pid::from_raw(pid as i32)).collect();
        // One that has just ended needs neither.
        let signal = |signal: Signal| {
            for pid in &blocks {
                let _ = kill_process(*pid, signal);
            }
        };
        signal(Signal::STOP);
        std::thread::sleep(Duration::from_nanos((now_ns() - free_since_ns) / 11));
        signal(Signal::CONT);
        free_since_ns = now_ns();
    }
    comparison.wait(LONG)
}

/// Compares two queues by a generator that is late; `None` if it was the limit.
#[track_caller]
fn compare_late(services: [&str; 2], rules: &[&str]) -> Option<Record> {
    let place = Place::quiet_for_long();
    let commands = services.map(|service| format!("plimsoll {STEADY}{service}"));
    let sides = ["--a-command", &commands[0], "--b-command", &commands[1], "--budget", "24s"];
    let own = ["ab", "--json", "-", "--no-record"];
    let words = [&own[..], &sides, rules, &["--"], &BLOCK].concat();
    let ended = disturbed(place.start(words));
    let record = Record::of(&ended);
    record.expect_schema();
    if is_limited(&ended, &record) {
        return None;
    }
    place.file("run.json", &ended.stdout);
    for form in ["text", "html"] {
        let page = place.run(["report", "run.json", "--format", form]).stdout;
        assert!(
            page.contains("equal delays of both sides; A, B"),
            "no note under the table:\n{page}"
        );
    }
    assert_eq!(record.0["ab"]["generator"]["is_late"], true, "{}", record.0["ab"]["generator"]);
    assert!(record.text("/ab/generator/reason").contains("compared at equal delays"));
    let pairs = record.0["ab"]["blocks"].as_array().unwrap();
    let have_delays = |pair: &&serde_json::Value| pair["delays"].is_array();
    assert!(pairs.iter().filter(have_delays).count() >= 6, "{pairs:?}");
    Some(record)
}

#[test]
fn a_planted_difference_is_found_by_a_late_generator() {
    let rules = ["--on", "p50,rate", "--fail-on", "p50>+5%", "--fail-on", "p50>+300%"];
    let Some(record) = compare_late(["12ms", "18ms"], &rules) else { return };
    assert_eq!(answer(&record, "p50"), "worse");
    assert_eq!(record.text("/ab/rules/0/judged"), "fails");
    // A rule that holds, and a metric that is no time, are not stated at equal delays.
    assert_eq!(record.text("/ab/rules/1/judged"), "cannot-tell");
    assert_eq!(answer(&record, "rate"), "cannot-tell");
}

#[test]
fn equal_sides_are_never_called_the_same_by_a_late_generator() {
    let rules = ["--on", "p50", "--margin", "30%", "--fail-on", "p50>+30%"];
    let Some(record) = compare_late(["12ms", "12ms"], &rules) else { return };
    assert_eq!(answer(&record, "p50"), "cannot-tell");
    assert_eq!(record.text("/ab/rules/0/judged"), "cannot-tell");
}
