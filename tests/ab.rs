//! `plimsoll ab`: what it claims, what it does not, and how each comparison can end.

mod jobs;
mod late;
mod wrong;

use crate::process::{Ended, Place, until};
use crate::record::Record;
use crate::server::Server;
use rustix::process::Signal;
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(240);
/// A queue whose service takes always the same time, for any number of requests at once.
const STEADY: &str = "serve queue --servers 0 --port 0 --service fixed:";
/// Blocks of a load that are short, so that six pairs take seconds.
const BLOCK: [&str; 7] = ["load", "--rate", "100", "--duration", "200ms", "--warmup", "0s"];

/// Runs a comparison with its record on stdout.
pub fn compare(place: &Place, sides: &[&str], block: &[&str]) -> Ended {
    let words = [&["ab", "--json", "-", "--no-record"], sides, &["--"], block].concat();
    place.start(words).wait(LONG)
}

/// The answer for a metric.
#[track_caller]
pub fn answer(record: &Record, metric: &str) -> String {
    let all = record.0["ab"]["metrics"].as_array().unwrap();
    let own = all.iter().find(|one| one["name"] == metric);
    let own = own.unwrap_or_else(|| panic!("no {metric}: {}", record.0["ab"]["metrics"]));
    own["answer"].as_str().unwrap_or_default().to_owned()
}

/// True if other programs of the machine kept the generator from its processor: then nothing is claimed, as it must be.
#[track_caller]
pub fn is_limited(ended: &Ended, record: &Record) -> bool {
    if record.verdict() != "generator-limited" {
        return false;
    }
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    for metric in record.0["ab"]["metrics"].as_array().unwrap() {
        assert!(metric["answer"].is_null() || metric["answer"] == "cannot-tell", "{metric}");
    }
    eprintln!("the generator was the limit: {}", record.text("/ab/generator/reason"));
    true
}

/// A planted difference of a half, by two commands that start a queue each; the rule fails.
#[test]
fn a_planted_difference_is_found_and_fails_the_rule() {
    let place = Place::quiet();
    let a = format!("plimsoll {STEADY}10ms");
    let b = format!("plimsoll {STEADY}15ms");
    let sides = [
        "--a-command",
        &a,
        "--b-command",
        &b,
        "--on",
        "p50",
        "--fail-on",
        "p50>+5%",
        "--budget",
        "20s",
    ];
    let ended = compare(&place, &sides, &BLOCK);
    let record = Record::of(&ended);
    record.expect_schema();
    record.expect_balanced();
    if is_limited(&ended, &record) {
        return;
    }
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert_eq!(answer(&record, "p50"), "worse");
    assert_eq!(record.text("/ab/rules/0/judged"), "fails");
    let ratio = record.number("/ab/metrics/0/ratio");
    assert!((1.2..1.7).contains(&ratio), "{ratio}");
    assert!(record.count("/ab/pairs") >= 6);
    // Two queues without a seed must not share their service times.
    let notes = record.0["ab"]["notes"].to_string();
    assert!(notes.contains("--a-command: --seed") && notes.contains("--b-command: --seed"));
    // Orders are random, and each occurs.
    let blocks = record.0["ab"]["blocks"].as_array().unwrap();
    let first: Vec<bool> = blocks.iter().map(|pair| pair["b_first"] == true).collect();
    assert!(first.contains(&true) && first.contains(&false), "{first:?}");
    // The two sides are the classes of the record.
    assert_eq!(record.0["class_names"], serde_json::json!(["A", "B"]));
    assert!(record.count("/classes/A/ok") > 50 && record.count("/classes/B/ok") > 50);
}

#[test]
fn two_equal_settings_are_the_same_and_hold_the_rule() {
    let place = Place::quiet();
    let target = place.serve(&["queue", "--servers", "0", "--service", "fixed:20ms"]);
    let url = target.url.as_str();
    let sides = [
        "--b-flags",
        "--header 'X-Side: b'",
        "--on",
        "p50",
        "--margin",
        "20%",
        "--fail-on",
        "p50>+20%",
        "--budget",
        "20s",
    ];
    let ended = compare(&place, &sides, &[&BLOCK[..1], &[url], &BLOCK[1..]].concat());
    let record = Record::of(&ended);
    if is_limited(&ended, &record) {
        return;
    }
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(answer(&record, "p50"), "same");
    assert_eq!(record.text("/ab/rules/0/judged"), "holds");
    assert_eq!(record.text("/ab/b/name"), "--header 'X-Side: b'");
}

#[test]
fn one_queue_against_itself_gets_no_claim_from_measured_blocks() {
    let place = Place::quiet();
    let target = place.serve(&["queue", "--servers", "0", "--service", "exponential:5ms"]);
    let url = target.url.as_str();
    let sides =
        ["--a", url, "--b", url, "--margin", "1%", "--fail-on", "p95>+1%", "--budget", "26s"];
    let block = ["load", "--rate", "150", "--arrivals", "poisson"];
    let ended = compare(&place, &sides, &block);
    let record = Record::of(&ended);
    record.expect_schema();
    for metric in ["p50", "p95", "p99"] {
        let answer = answer(&record, metric);
        assert!(!["better", "worse"].contains(&answer.as_str()), "{metric}: {answer}");
    }
    // Lengths come from the pilots.
    assert!(record.number("/ab/plan/block_s") >= 0.5);
    assert!(record.number("/ab/a/relaxation_s") > 0.0);
    if !is_limited(&ended, &record) {
        // So few pairs cannot show a hundredth; the answer says how many would.
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        assert!(record.count("/ab/metrics/0/pairs_needed") > record.count("/ab/pairs"));
    }
}

/// The generator sends at full speed to a target that is faster than it.
#[test]
fn a_generator_that_is_the_limit_never_yields_a_claim() {
    let place = Place::alone();
    let target = place.serve(&["null"]);
    let url = target.url.as_str();
    let block =
        ["load", "--rate", "900000", "--duration", "300ms", "--warmup", "0s", "--timeout", "1s"];
    // B's requests are ten times as large: there is a difference, but it is the generator's.
    let header = format!("--header 'X-Large: {}'", "x".repeat(4000));
    let sides =
        ["--a", url, "--b", url, "--b-flags", &header, "--on", "p50,rate", "--budget", "40s"];
    let ended = compare(&place, &sides, &block);
    let record = Record::of(&ended);
    assert!(is_limited(&ended, &record), "{}", ended.stderr);
    assert!(ended.stderr.contains("cannot tell: the generator was the limit"), "{}", ended.stderr);
}

/// The same where the length of the blocks is left to the pilot: they end so late that no budget of this size has room for them, and
/// the reason is the generator.
#[test]
fn a_pilot_that_the_generator_limits_is_named() {
    let place = Place::alone();
    let (target, other) = (place.serve(&["null"]), Server::ok());
    let sides = ["--a", target.url.as_str(), "--b", &other.url(), "--budget", "30s"];
    let ended = compare(&place, &sides, &["load", "--rate", "900000", "--timeout", "10s"]);
    assert_eq!(ended.code, Some(64), "{}", ended.stderr);
    let said = "the pilot of A: the generator was the limit, and sent ";
    assert!(ended.stderr.contains(said), "{}", ended.stderr);
    assert!(!ended.stderr.contains("use --budget"), "{}", ended.stderr);
    // The pilot of B would have taken as long, for the same answer.
    assert!(other.requests() < 10, "B was asked {} times", other.requests());
}

#[test]
fn two_settings_differ_in_rate() {
    let place = Place::quiet();
    let target = place.serve(&["queue", "--servers", "0", "--service", "fixed:5ms"]);
    let sides = ["--b-flags", "--think 20ms", "--budget", "20s"];
    let block = ["load", &target.url, "--clients", "2", "--duration", "200ms", "--warmup", "0s"];
    let ended = compare(&place, &sides, &block);
    let record = Record::of(&ended);
    if !is_limited(&ended, &record) {
        assert_eq!(answer(&record, "rate"), "worse");
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    }
}

/// The page in words: the answer first, then the table; the same page comes from the kept record.
#[test]
fn the_answer_stands_first_in_words_and_stays_in_the_record() {
    let place = Place::quiet();
    let a = format!("plimsoll {STEADY}10ms");
    let b = format!("plimsoll {STEADY}20ms");
    let words =
        ["ab", "--a-command", &a, "--b-command", &b, "--on", "p50", "--budget", "20s", "--"];
    let ended = place.start([&words[..], &BLOCK].concat()).wait(LONG);
    let line = ended.stdout.lines().nth(1).unwrap().trim().to_owned();
    assert!(line.starts_with("p50: B is worse, +") || line.contains("the generator was"), "{line}");
    let again = place.run(["report"]).stdout;
    assert!(again.contains(&line), "{again}");
    assert!(place.run(["runs"]).stdout.contains("p50 "), "{}", place.run(["runs"]).stdout);
    let page = place.run(["report", "--format", "html"]).expect(0).stdout;
    for part in ["Is B better than A?", "id=\"pairs\"", "How it was measured"] {
        assert!(page.contains(part), "{part}");
    }
    let csv = place.run(["report", "--format", "csv"]).expect(0).stdout;
    assert!(csv.starts_with("metric,unit,a,b,ratio"), "{csv}");
}

/// The only record of a place.
fn only_record(place: &Place) -> Option<(PathBuf, Value)> {
    let mut runs = std::fs::read_dir(place.path().join("runs")).ok()?;
    let folder = runs.next()?.ok()?.path();
    let text = std::fs::read(folder.join("run.json")).ok()?;
    Some((folder, serde_json::from_slice(&text).ok()?))
}

fn pairs_so_far(place: &Place) -> usize {
    let record = only_record(place).map(|(_, record)| record).unwrap_or_default();
    record["ab"]["blocks"].as_array().map_or(0, Vec::len)
}

#[test]
fn ctrl_c_leaves_a_marked_partial_result() {
    let place = Place::new();
    let target = place.serve(&["queue", "--servers", "0", "--service", "fixed:5ms"]);
    let url = target.url.as_str();
    let words = ["ab", "--a", url, "--b", url, "--budget", "200s", "--"];
    let running = place.start([&words[..], &BLOCK].concat());
    until("two pairs are kept", LONG, || pairs_so_far(&place) >= 2);
    running.signal(Signal::INT);
    let ended = running.wait(LONG).expect(3);
    assert!(ended.stdout.contains("NOT VALID: partial"), "{}", ended.stdout);
    assert!(ended.stdout.contains("the comparison was stopped after"), "{}", ended.stdout);
    let (_, record) = only_record(&place).unwrap();
    assert_eq!(record["ab"]["ended"], "stopped");
    assert!(record["ab"]["blocks"].as_array().unwrap().len() >= 2);
}

#[test]
fn a_target_that_dies_ends_with_one_line() {
    let place = Place::new();
    let target = place.serve(&["queue", "--servers", "0", "--service", "fixed:5ms"]);
    let url = target.url.clone();
    let words = ["ab", "--a", &url, "--b", &url, "--budget", "200s", "--quiet", "--"];
    let running = place.start([&words[..], &BLOCK].concat());
    until("two pairs are kept", LONG, || pairs_so_far(&place) >= 2);
    drop(target);
    let ended = running.wait(LONG).expect(4);
    let lines: Vec<&str> = ended.stderr.lines().collect();
    assert!(lines.len() == 1 && lines[0].contains("a block of "), "{lines:?}");
    let (_, record) = only_record(&place).unwrap();
    assert_eq!(record["verdict"]["kind"], "target-failed");
}

#[test]
fn two_commands_are_stopped_at_the_end() {
    let place = Place::new();
    let a = format!("plimsoll {STEADY}5ms");
    let words =
        ["ab", "--a-command", &a, "--b-command", &a, "--budget", "200s", "--no-record", "--"];
    let running = place.start([&words[..], &BLOCK].concat());
    let server = running.wait_for_descendant("fixed:5ms", LONG);
    running.signal(Signal::TERM);
    running.wait(LONG).expect(3);
    crate::process::expect_gone(&[(server, a)]);
}
