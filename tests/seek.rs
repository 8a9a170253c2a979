//! `plimsoll seek` against real servers whose line is known, and every way in which a search can end.

mod asking;
mod databases;
mod feeding;
mod users;
mod watch;

use crate::process::{Ended, PATIENCE, Place, Target, stolen_while};
use crate::record::Record;
use rustix::process::Signal;
use std::time::Duration;

/// Four servers of 20 ms: 163.04 requests a second hold p95 <= 100 ms (closed form, M/M/4).
const FOUR_SERVERS: [&str; 5] = ["queue", "--servers", "4", "--service", "exponential:20ms"];
const LINE_PER_S: f64 = 163.04;
/// Four servers of 5 ms: a quarter of all times, and four times the line, for p95 <= 25 ms.
const QUICK_SERVERS: [&str; 5] = ["queue", "--servers", "4", "--service", "exponential:5ms"];
const QUICK_LINE_PER_S: f64 = 4.0 * LINE_PER_S;

fn seek(place: &Place, target: &Target, flags: &[&str]) -> Ended {
    let mut args = vec!["seek", target.url.as_str(), "--json", "-"];
    args.extend(flags);
    place.start(args).wait(Duration::from_secs(120))
}

#[track_caller]
fn found(ended: &Ended) -> Record {
    let record = Record::of(ended);
    record.expect_balanced();
    assert!(record.number("/seek/elapsed_s") > 0.0);
    record
}

#[test]
fn a_known_line_is_found_within_what_the_interval_says() {
    let place = Place::quiet_for_long();
    let target = place.serve(&QUICK_SERVERS);
    let flags = ["--slo", "p95=25ms", "--budget", "70s", "--seed", "3"];
    let (ended, stolen) = stolen_while(|| seek(&place, &target, &flags));
    let record = found(&ended);
    if record.was_held_up(stolen) {
        return;
    }
    ended.expect(0);
    let estimate = record.number("/seek/estimate_per_s");
    let (low, high) =
        (record.number("/seek/interval_per_s/0"), record.number("/seek/interval_per_s/1"));
    let certified = record.number("/seek/certified_rate_per_s");
    eprintln!("certified {certified:.1}, estimate {estimate:.1} ({low:.1} to {high:.1})");
    assert!(low <= estimate && estimate <= high);
    // A minute knows the line to a tenth or so; the wide limits are for a machine that pauses.
    assert!((estimate / QUICK_LINE_PER_S - 1.0).abs() < 0.25, "{estimate}");
    assert!((certified / QUICK_LINE_PER_S - 1.0).abs() < 0.25, "{certified}");
    // What was certified was measured, in one run, and held.
    assert!(record.number("/seek/certified/late_share/0") <= 0.05);
    assert!(record.number("/seek/certified/scheduled") > 100.0);
    // A rate that fails lies above the interval, or beyond what the target completes.
    let capacity = record.number("/seek/capacity_per_s");
    if let Some(failing) = record.0["seek"]["failing"]["rate_per_s"].as_f64() {
        assert!(failing > high.min(capacity), "{failing} fails, {high} may hold");
    }
    let notes = record.0["seek"]["notes"].as_array().unwrap();
    assert!((2..=5).contains(&notes.len()), "{notes:#?}");
    assert!(record.number("/seek/basis/capacity_looks") >= 2.0, "{}", record.0["seek"]["basis"]);
    let curve = record.0["seek"]["curve"].as_array().unwrap();
    assert!(curve.len() > 5);
    let rates: Vec<f64> = curve.iter().map(|p| p["rate_per_s"].as_f64().unwrap()).collect();
    assert!(rates.windows(2).all(|pair| pair[0] <= pair[1]), "{rates:?}");
    // The books hold every request of the search, on either side.
    let seen = target.stats();
    let answered = seen["answered"].as_u64().unwrap();
    assert_eq!(answered, record.ok(), "the target's own count");
    let text = place.run(["report", "--verbose"]).expect(0).stdout;
    let parts = [
        "hold the limits",
        "Certified",
        "Estimate",
        "Rate/s",
        "Result     valid, exit 0",
        "Why        ",
        "Notes      The target is assumed to be stationary from ",
        "Arrivals were a Poisson process",
        "missed p95=25ms, where 5 % may",
    ];
    for part in parts {
        assert!(text.contains(part), "no '{part}' in\n{text}");
    }
}

#[test]
fn a_limit_below_the_floor_is_infeasible() {
    let place = Place::quiet_for_long();
    let target = place.serve(&["queue", "--servers", "0", "--service", "fixed:20ms"]);
    let ended = seek(&place, &target, &["--slo", "p95=5ms", "--budget", "60s"]);
    let record = found(&ended.expect(2));
    assert_eq!(record.verdict(), "infeasible");
    assert!(record.0["seek"]["certified_rate_per_s"].is_null());
}

#[test]
fn a_limit_that_is_never_broken_says_at_least_how_much() {
    let place = Place::quiet();
    let target = place.serve(&["queue", "--servers", "0", "--service", "fixed:1ms"]);
    let flags = ["--slo", "p95=50ms", "--budget", "30s", "--max-rate", "60"];
    let (ended, stolen) = stolen_while(|| seek(&place, &target, &flags));
    let record = found(&ended);
    if record.was_held_up(stolen) {
        return;
    }
    ended.expect(0);
    let least = record.number("/seek/verdict/never-violated/at_least_per_s");
    assert!((50.0..=60.0).contains(&least), "{least}");
    assert!(record.number("/seek/certified_rate_per_s") > 0.0);
}

#[test]
fn a_second_is_too_little_and_that_is_said() {
    let place = Place::quiet();
    let target = place.serve(&FOUR_SERVERS);
    let ended = seek(&place, &target, &["--slo", "p95=100ms", "--budget", "1s"]);
    assert!(ended.took < Duration::from_secs(30), "{:?}", ended.took);
    // Nothing is certified that was not measured for long enough, and that is no success.
    let record = found(&ended.expect(3));
    assert_eq!(record.text("/seek/verdict"), "budget-too-small");
    assert_eq!(record.verdict(), "budget-too-small");
    assert!(record.0["seek"]["certified_rate_per_s"].is_null());
    assert!(record.0["seek"]["interval_per_s"].is_null());
    let reason = record.text("/verdict/reasons/0");
    assert!(reason.contains("needs a --budget of at least "), "{reason}");
}

#[test]
fn an_interrupted_search_keeps_what_it_knows() {
    let place = Place::new();
    let target = place.serve(&FOUR_SERVERS);
    let args = ["seek", target.url.as_str(), "--slo", "p95=100ms", "--json", "-"];
    let running = place.start(args);
    let seen = || target.stats()["answered"].as_u64().unwrap_or(0) >= 100;
    crate::process::until("the search is under way", Duration::from_secs(30), seen);
    running.signal(Signal::INT);
    let ended = running.wait(PATIENCE).expect(3);
    let record = found(&ended);
    assert_eq!(record.verdict(), "partial");
    assert!(!record.0["seek"]["curve"].as_array().unwrap().is_empty());
    assert!(record.0["seek"]["certified_rate_per_s"].is_null(), "{}", record.0["seek"]);
    let text = place.run(["report", "--verbose"]).expect(0).stdout;
    for part in ["partial", "no rate was certified", "A search with these limits takes about "] {
        assert!(text.contains(part), "no '{part}' in\n{text}");
    }
    assert!(!text.contains("hold the limits"), "{text}");
}

#[test]
fn a_target_that_is_not_there_is_no_slow_target() {
    let place = Place::new();
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/");
    let args = ["seek", &url, "--slo", "p95=100ms", "--budget", "10s", "--json", "-"];
    let ended = place.start(args).wait(Duration::from_secs(60)).expect(4);
    assert!(ended.stderr.contains("nothing is listening there"), "{}", ended.stderr);
}

#[test]
fn a_target_that_dies_ends_the_search() {
    let place = Place::new();
    let target = place.serve(&FOUR_SERVERS);
    let args =
        ["seek", target.url.as_str(), "--slo", "p95=100ms", "--json", "-", "--budget", "60s"];
    let running = place.start(args);
    let seen = || target.stats()["answered"].as_u64().unwrap_or(0) >= 100;
    crate::process::until("the search is under way", Duration::from_secs(30), seen);
    drop(target);
    let ended = running.wait(Duration::from_secs(40)).expect(4);
    assert_eq!(found(&ended).verdict(), "target-failed");
}

#[test]
fn wrong_words_are_refused_before_anything_is_sent() {
    let place = Place::new();
    for (flags, word) in [
        (&[][..], "--slo"),
        (&["--slo", "p95=0s"], "p95=0"),
        (&["--slo", "max=1s"], "p99.9"),
        (&["--slo", "rate=5"], "--max-rate"),
        (&["--slo", "p95=1s", "--budget", "0s"], "--budget"),
        (&["--slo", "p95=1s", "--width", "5"], "--width"),
        (&["--slo", "errors=1%", "--strategy", "feedsim"], "percentile"),
        (&["--slo", "p95=1s", "--slo", "p99=2s", "--strategy", "mutilate"], "one --slo"),
        (&["--slo", "p95=1s", "--confidence", "100%"], "--confidence"),
        (&["--slo", "p95=1s", "--start-rate", "0"], "--start-rate"),
        (&["--slo", "p95=1s", "--start-rate", "10", "--max-rate", "5"], "--start-rate"),
    ] {
        let mut args = vec!["seek", "http://127.0.0.1:1/"];
        args.extend(flags);
        let ended = place.run(args).expect(64);
        assert_eq!(ended.stderr.trim_end().lines().count(), 1, "{}", ended.stderr);
        assert!(ended.stderr.contains(word), "no {word:?} in {}", ended.stderr);
    }
}
