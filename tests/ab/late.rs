//! A generator whose processor others take for moments: it is late, and percentiles are compared at equal delays.

use super::{BLOCK, LONG, STEADY, answer, is_limited};
use crate::process::{Place, Running};
use crate::record::Record;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A thread that takes one processor for 5 ms, ten times a second, until it is dropped.
struct Neighbour {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Neighbour {
    fn on(cpu: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut own = CpuSet::new();
            own.set(cpu);
            sched_setaffinity(None, &own).unwrap();
            while !seen.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(95));
                let begun = Instant::now();
                while begun.elapsed() < Duration::from_millis(5) {
                    std::hint::spin_loop();
                }
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Runs a comparison with generator, targets and neighbour on one processor.
#[track_caller]
fn beside_a_neighbour(place: &Place, services: [&str; 2], rules: &[&str]) -> Option<Record> {
    let mask = sched_getaffinity(None).unwrap();
    let last = (0..CpuSet::MAX_CPU).rev().find(|&cpu| mask.is_set(cpu)).unwrap();
    let _neighbour = Neighbour::on(last);
    let commands = services.map(|service| format!("plimsoll {STEADY}{service}"));
    let sides = ["--a-command", &commands[0], "--b-command", &commands[1], "--budget", "24s"];
    let cpu = last.to_string();
    let own = ["-c", &cpu, env!("CARGO_BIN_EXE_plimsoll"), "ab", "--json", "-", "--no-record"];
    let words = [&own[..], &sides, rules, &["--"], &BLOCK].concat();
    let ended = Running::start(place.program("taskset", words), b"").wait(LONG);
    let record = Record::of(&ended);
    record.expect_schema();
    if is_limited(&ended, &record) {
        return None;
    }
    assert_eq!(record.0["ab"]["generator"]["is_late"], true, "{}", record.0["ab"]["generator"]);
    assert!(record.text("/ab/generator/reason").contains("compared at equal delays"));
    let pairs = record.0["ab"]["blocks"].as_array().unwrap();
    let have_delays = |pair: &&serde_json::Value| pair["delays"].is_array();
    assert!(pairs.iter().filter(have_delays).count() >= 6, "{pairs:?}");
    Some(record)
}

#[test]
fn a_planted_difference_is_found_beside_a_busy_neighbour() {
    let place = Place::quiet_for_long();
    let rules = ["--on", "p50,rate", "--fail-on", "p50>+5%", "--fail-on", "p50>+300%"];
    let Some(record) = beside_a_neighbour(&place, ["20ms", "30ms"], &rules) else { return };
    assert_eq!(answer(&record, "p50"), "worse");
    assert_eq!(record.text("/ab/rules/0/judged"), "fails");
    // A rule that holds, and a metric that is no time, are not stated at equal delays.
    assert_eq!(record.text("/ab/rules/1/judged"), "cannot-tell");
    assert_eq!(answer(&record, "rate"), "cannot-tell");
}

#[test]
fn equal_sides_are_never_called_the_same_beside_a_busy_neighbour() {
    let place = Place::quiet_for_long();
    let rules = ["--on", "p50", "--margin", "30%", "--fail-on", "p50>+30%"];
    let Some(record) = beside_a_neighbour(&place, ["20ms", "20ms"], &rules) else { return };
    assert_eq!(answer(&record, "p50"), "cannot-tell");
    assert_eq!(record.text("/ab/rules/0/judged"), "cannot-tell");
}
