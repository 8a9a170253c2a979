//! `plimsoll seek --over-time`: the line over time, of a queue that changes its speed on command.

use crate::process::{PATIENCE, Place, Target, curl, stolen_while, until};
use crate::record::Record;
use rustix::process::Signal;
use serde_json::Value;
use std::time::Duration;

/// Four servers of 4 ms: 815.2 requests a second hold p95 <= 20 ms (closed form, M/M/4).
const FOUR_SERVERS: [&str; 5] = ["queue", "--servers", "4", "--service", "exponential:4ms"];
const LINE_PER_S: f64 = 815.2;
/// When the target gets faster, s.
const FASTER_AFTER_S: u64 = 36;

fn set_speed(target: &Target, factor: &str) -> (u16, String) {
    let url = format!("{}/_speed?factor={factor}", target.url.trim_end_matches('/'));
    curl(&["-s", &url])
}

fn stretches(record: &Record) -> Vec<Value> {
    record.0["seek"]["watch"].as_array().unwrap().clone()
}

#[test]
fn a_target_that_gets_faster_gives_a_curve_until_somebody_ends_it() {
    let place = Place::quiet_for_long();
    let target = place.serve(&FOUR_SERVERS);
    let args = ["seek", target.url.as_str(), "--slo", "p95=20ms", "--over-time", "--json", "-"];
    let (ended, stolen) = stolen_while(|| {
        let running =
            place.start(args.into_iter().chain(["--budget", "104s", "--start-rate", "400"]));
        std::thread::sleep(Duration::from_secs(FASTER_AFTER_S));
        assert_eq!(set_speed(&target, "1.5"), (200, r#"{"speed":1.5}"#.to_owned()));
        std::thread::sleep(Duration::from_secs(40));
        running.signal(Signal::INT);
        running.wait(PATIENCE)
    });
    let record = Record::of(&ended);
    record.expect_balanced();
    record.expect_schema();
    assert!(record.0["seek"]["certified_rate_per_s"].is_null(), "a curve certifies no rate");
    let watched = stretches(&record);
    eprintln!("{watched:#?}\n{}", record.text("/seek/reason"));
    if record.was_held_up(stolen) {
        return;
    }
    ended.expect(0);
    assert_eq!(record.verdict(), "valid");
    let with = |state: &dyn Fn(u64) -> bool| -> Vec<f64> {
        let of_state = watched.iter().filter(|one| state(one["state"].as_u64().unwrap()));
        let told = of_state.filter(|one| one["interval_per_s"].is_array());
        told.map(|one| one["line_per_s"].as_f64().unwrap()).collect()
    };
    // The lines are 815 and 1,223/s; a state of half a minute knows its own to about a tenth.
    let (before, after) = (with(&|state| state == 1), with(&|state| state > 1));
    let (first, last) = (before.last().expect("a line"), after.last().expect("another line"));
    assert!((first / LINE_PER_S - 1.0).abs() < 0.25, "{before:?}");
    assert!((last / LINE_PER_S - 1.5).abs() < 0.35, "{after:?}");
    assert!(last / first > 1.2, "{before:?} {after:?}");
    // The change is in the stretch in which it was noticed, or in the one before.
    let noticed = watched.iter().position(|one| one["line_per_s"].is_null()).unwrap();
    let from = watched[noticed.saturating_sub(1)]["from_s"].as_f64().unwrap();
    let until = watched[noticed]["until_s"].as_f64().unwrap();
    let at = FASTER_AFTER_S as f64;
    assert!(from <= at + 2.0 && at - 2.0 <= until, "noticed between {from} and {until}");
    let notes = record.0["seek"]["notes"].to_string();
    assert!(notes.contains("Within a state") && notes.contains("Poisson"), "{notes}");
    // Stretches follow each other without a gap.
    for pair in watched.windows(2) {
        assert_eq!(pair[0]["until_s"], pair[1]["from_s"]);
    }
    assert!(record.text("/seek/reason").starts_with("the line moved from "));
    let text = place.run(["report"]).expect(0).stdout;
    for part in ["the line moved from", "From, s", "capacity/s", "the target became faster"] {
        assert!(text.contains(part), "no '{part}' in\n{text}");
    }
    let csv = place.run(["report", "--format", "csv"]).expect(0).stdout;
    assert!(csv.starts_with("from_s,until_s,state,line_per_s,low_per_s,high_per_s,"), "{csv}");
    assert_eq!(csv.lines().count(), 1 + watched.len());
}

#[test]
fn a_budget_too_small_for_a_stretch_says_what_it_takes() {
    let place = Place::quiet();
    let target = place.serve(&FOUR_SERVERS);
    let args = ["seek", target.url.as_str(), "--slo", "p95=20ms", "--over-time", "--json", "-"];
    let ended = place.start(args.into_iter().chain(["--budget", "4s"])).wait(PATIENCE);
    let record = Record::of(&ended.expect(3));
    assert_eq!(record.verdict(), "budget-too-small");
    assert!(record.text("/seek/reason").contains("no interval: it needs "));
}

#[test]
fn an_interrupt_before_the_first_interval_is_a_partial_result() {
    let place = Place::new();
    let target = place.serve(&FOUR_SERVERS);
    let args = ["seek", target.url.as_str(), "--slo", "p95=20ms", "--over-time", "--json", "-"];
    let running = place.start(args);
    let seen = || target.stats()["answered"].as_u64().unwrap_or(0) >= 20;
    until("load is offered", Duration::from_secs(30), seen);
    running.signal(Signal::INT);
    let record = Record::of(&running.wait(PATIENCE).expect(3));
    assert_eq!(record.verdict(), "partial");
}

#[test]
fn only_known_speeds_are_taken_and_one_method_follows() {
    let place = Place::new();
    let target = place.serve(&FOUR_SERVERS);
    for bad in ["0", "-1", "x", "1e9"] {
        let (status, text) = set_speed(&target, bad);
        assert!(status == 400 && text.contains("factor=NUMBER"), "{bad}: {status} {text}");
    }
    // Service times are drawn as before, and take a quarter of the time.
    set_speed(&target, "4");
    for _ in 0..200 {
        curl(&["-s", &target.url]);
    }
    let mean_ms = target.stats()["service"]["mean_ms"].as_f64().unwrap();
    assert!((0.7..1.4).contains(&mean_ms), "{mean_ms}");
    let flags = ["seek", &target.url, "--slo", "p95=20ms", "--over-time", "--strategy", "feedsim"];
    let ended = place.run(flags).expect(64);
    assert!(ended.stderr.contains("--strategy"), "{}", ended.stderr);
}
