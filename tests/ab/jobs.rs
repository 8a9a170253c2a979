//! Each job as the block of a comparison, and programs that are not plimsoll.

use super::{answer, compare, is_limited};
use crate::process::Place;
use crate::record::Record;
use serde_json::Value;

/// Runs a comparison that may end with any answer, and expects values of the metric in every pair.
#[track_caller]
fn expect_pairs(place: &Place, sides: &[&str], block: &[&str], metric: &str) -> Record {
    let ended = compare(place, sides, block);
    let code = ended.code;
    assert!([Some(0), Some(3)].contains(&code), "{block:?}: {code:?}\n{}", ended.stderr);
    let record = Record::of(&ended);
    record.expect_schema();
    is_limited(&ended, &record);
    let all = record.0["ab"]["metrics"].as_array().unwrap();
    let at = all.iter().position(|one| one["name"] == metric).unwrap_or_else(|| panic!("{all:?}"));
    let pairs = record.0["ab"]["blocks"].as_array().unwrap();
    assert!(pairs.len() >= 6, "{block:?}: {} pairs", pairs.len());
    let is_value = |side: &Value| side[at].as_f64().is_some_and(|value| value > 0.0);
    let measured = pairs.iter().filter(|pair| is_value(&pair["a"]) && is_value(&pair["b"]));
    assert!(measured.count() * 10 >= pairs.len() * 9, "{block:?}: {metric}");
    record
}

#[test]
fn fbench_clients() {
    let place = Place::quiet_for_long();
    let target = place.serve(&["queue", "--servers", "0", "--service", "fixed:2ms"]);
    place.file("q.txt", "/a\n");
    let url = target.url.as_str();
    let block = ["fbench", "-n", "2", "-q", "q.txt", "-s", "1", "host", "1"];
    expect_pairs(&place, &["--a", url, "--b", url, "--budget", "44s"], &block, "rate");
}

#[test]
fn votes() {
    let place = Place::quiet_for_long();
    let target = place.serve(&["voter"]);
    let url = target.url.as_str();
    let block = ["voter", "VSD", "--rate", "500", "--duration", "1s"];
    let sides = ["--a", url, "--b", url, "--on", "p50", "--budget", "42s"];
    let record = expect_pairs(&place, &sides, &block, "p50");
    // Each block has telephones of its own, so that no vote is rejected.
    assert_eq!(record.count("/ledger/failed/app"), 0);
}

#[test]
fn feeds_and_visits() {
    let place = Place::quiet_for_long();
    let target = place.serve(&["search"]);
    let put = |i: u32| {
        format!("{{\"put\":\"id:plimsoll:doc::{i}\",\"fields\":{{\"title\":\"number {i}\"}}}}\n")
    };
    place.file("in", (0..300).map(put).collect::<String>());
    let url = target.url.as_str();
    let sides = ["--a", url, "--b", url, "--budget", "25s"];
    let fed = expect_pairs(&place, &sides, &["feed", "in"], "rate");
    assert_eq!(fed.0["ab"]["plan"]["block_s"], Value::Null);
    let block = ["visit", "--cluster", "plimsoll", "--out", "out.ndjson"];
    let visited = expect_pairs(&place, &sides, &block, "documents");
    assert_eq!(visited.text("/ab/metrics/0/unit"), "/s");
}

#[test]
fn ranking_at_a_fixed_rate() {
    let place = Place::quiet_for_long();
    let target = place.serve(&["rank", "--scale", "9"]);
    let url = &format!("rank://{}:{}", target.host, target.port);
    let block = ["rank", "-q", "20", "-d", "1", "-w", "0"];
    expect_pairs(&place, &["--a", url, "--b", url, "--budget", "30s"], &block, "p95");
}

#[test]
fn two_search_engines() {
    let place = Place::quiet_for_long();
    let block =
        ["search", "--sizes", "100kB", "--users", "1", "--duration", "300ms", "--warmup", "100ms"];
    let sides = ["--a", "index", "--b", "scan", "--on", "rate", "--budget", "80s"];
    expect_pairs(&place, &sides, &block, "rate");
}

/// The line of B is far below that of A; steps in turn find it.
#[test]
fn the_highest_rate_by_steps_in_turn() {
    let place = Place::quiet_for_long();
    let queue = |ms: &str| format!("plimsoll serve queue --port 0 --service exponential:{ms}");
    let (a, b) = (queue("4ms"), queue("8ms"));
    let sides = ["--a-command", &a, "--b-command", &b, "--budget", "100s"];
    let ended = compare(&place, &sides, &["seek", "--slo", "p95=50ms"]);
    let record = Record::of(&ended);
    record.expect_schema();
    if is_limited(&ended, &record) {
        return;
    }
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    // By theory 190 and 65 requests/s.
    assert_eq!(answer(&record, "max-rate"), "worse");
    let ratio = record.number("/ab/metrics/0/ratio");
    assert!((0.2..0.6).contains(&ratio), "{ratio}");
    // All pairs are stated with the slope that is known in the end, so that they give the ratio.
    let pairs = record.0["ab"]["blocks"].as_array().unwrap();
    let counted = pairs.iter().filter(|pair| pair["left_out"].as_str().unwrap_or("").is_empty());
    let line = |side: &Value| side[0].as_f64().unwrap();
    let logs: Vec<f64> = counted.map(|pair| (line(&pair["b"]) / line(&pair["a"])).ln()).collect();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    assert!((mean.exp() / ratio - 1.0).abs() < 1e-6, "{ratio}, and {} by the pairs", mean.exp());
}

#[test]
fn other_programs_by_their_time_or_a_number_that_they_print() {
    let place = Place::new();
    let numbers = ["--command", "--a", "100", "--b", "150", "--number", "value ([0-9]+)"];
    let sides = [&numbers[..], &["--higher-is-better", "--budget", "8s"]].concat();
    let ended = compare(&place, &sides, &["echo", "value {target}"]).expect(0);
    let record = Record::of(&ended);
    record.expect_schema();
    assert_eq!(answer(&record, "number"), "better");
    assert!((record.number("/ab/metrics/0/ratio") - 1.5).abs() < 1e-9);
    assert_eq!(record.text("/ab/job"), "command");
    let times = ["--command", "--a", "0.05", "--b", "0.25", "--budget", "12s"];
    let ended = compare(&place, &times, &["sleep", "{target}"]).expect(0);
    assert_eq!(answer(&Record::of(&ended), "time"), "worse");
    // A program that fails is not measured.
    let ended = compare(&place, &times, &["sh", "-c", "echo no {target} >&2; exit 7"]).expect(1);
    assert!(ended.stderr.contains("a block of A: no 0.05"), "{}", ended.stderr);
}

#[test]
fn two_generators_are_compared_by_their_own_cpu_time() {
    let place = Place::new();
    let target = place.serve(&["null"]);
    let own = env!("CARGO_BIN_EXE_plimsoll");
    let block = [
        "load",
        &target.url,
        "--clients",
        "2",
        "--think",
        "2ms",
        "--duration",
        "200ms",
        "--warmup",
        "0s",
    ];
    let sides = ["--a-bin", own, "--b-bin", own, "--on", "rate,cpu", "--budget", "20s"];
    let record = expect_pairs(&place, &sides, &block, "cpu");
    assert_eq!(record.0["ab"]["generator"]["is_judged"], false);
    assert!(record.text("/ab/a/tool").starts_with(env!("CARGO_PKG_VERSION")));
}
