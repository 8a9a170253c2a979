//! What a search can ask beside one URL: classes with limits of their own, SQL, rows, HTTP/2.

use super::{LINE_PER_S, found, seek};
use crate::nginx::Nginx;
use crate::process::{Ended, PATIENCE, Place, stolen_while};
use crate::record::Record;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(90);

/// Three requests that succeed to one that fails.
const MIX: &str = "{\"path\":\"/good\",\"class\":\"good\"}\n{\"path\":\"/good\",\"class\":\"good\"}\n\
                   {\"path\":\"/good\",\"class\":\"good\"}\n{\"path\":\"/bad\",\"class\":\"bad\"}\n";
const BLOCK: &str = "location /good { return 200 'hello'; }\nlocation /bad { return 503; }";

fn search(place: &Place, url: &str, flags: &[&str]) -> Ended {
    place.start([&["seek", url, "--json", "-"], flags].concat()).wait(LIMIT)
}

#[test]
fn a_limit_on_a_class_leaves_the_failures_of_another_class_alone() {
    let place = Place::alone();
    place.file("mix.ndjson", MIX);
    let nginx = Nginx::start(&place, "", BLOCK);
    let url = format!("http://127.0.0.1:{}", nginx.port);
    let flags = ["--queries", "mix.ndjson", "--max-rate", "60", "--budget", "60s"];
    let of_all = search(&place, &url, &[&flags[..], &["--slo", "errors=10%"]].concat());
    assert_eq!(found(&of_all.expect(2)).verdict(), "infeasible");
    let of_bad = search(&place, &url, &[&flags[..], &["--slo", "errors{class=bad}=10%"]].concat());
    assert_eq!(found(&of_bad.expect(2)).verdict(), "infeasible", "all of them fail");
    let limits = ["--slo", "errors{class=good}=10%", "--slo", "mean{class=good}=500ms"];
    let record = found(&search(&place, &url, &[&flags[..], &limits].concat()));
    // A quarter of the requests fails at every rate, and none of those that the limits judge.
    let (failed, sent) = (record.count("/classes/bad/failed/status"), record.sent());
    assert!(failed * 5 > sent && failed * 3 < sent, "{failed} of {sent}");
    for point in record.0["seek"]["curve"].as_array().unwrap() {
        assert_eq!(point["late_share"], serde_json::json!([0.0, 0.0]), "{point}");
        assert!(point["failed"].as_u64().unwrap() > 0 || point["scheduled"].as_u64() < Some(40));
    }
    let least = record.number("/seek/verdict/never-violated/at_least_per_s");
    assert!((50.0..=60.0).contains(&least), "{least}");
}

/// Three tenths of the requests belong to the class that is judged; the rate is that of all classes: the line of
/// `FOUR_SERVERS`, ten times as fast. The time is too short for an estimate on most machines: each look is compared.
#[test]
fn no_look_at_a_class_contradicts_the_line_of_all() {
    let place = Place::alone();
    let target = place.serve(&["queue", "--servers", "4", "--service", "exponential:2ms"]);
    let line = |i: usize| {
        format!("{{\"path\":\"/{i}\",\"class\":\"{}\"}}\n", if i < 3 { "judged" } else { "other" })
    };
    place.file("mix.ndjson", (0..10).map(line).collect::<String>());
    let flags = ["--queries", "mix.ndjson", "--slo", "p95{class=judged}=10ms", "--budget", "45s"];
    let (ended, stolen) = stolen_while(|| seek(&place, &target, &flags));
    let record = found(&ended);
    assert_eq!(record.count("/classes/judged/ok") + record.count("/classes/other/ok"), record.ok());
    if record.was_held_up(stolen) {
        return;
    }
    let off = |per_s: f64| per_s / (10.0 * LINE_PER_S) - 1.0;
    let seek = &record.0["seek"];
    eprintln!("{}: {}, {}", record.verdict(), seek["estimate_per_s"], seek["interval_per_s"]);
    if let Some(estimate) = seek["estimate_per_s"].as_f64() {
        assert!(off(estimate).abs() < 0.25, "{estimate}");
    }
    // What broke the limit was above the line, and what held it near the line was below.
    let share = |point: &serde_json::Value| point["late_share"][0].as_f64().unwrap();
    for point in record.0["seek"]["curve"].as_array().unwrap() {
        let (rate, seconds) =
            (point["rate_per_s"].as_f64().unwrap(), point["seconds"].as_f64().unwrap());
        assert!(seconds < 0.9 || off(rate) < 0.3 || share(point) > 0.05, "{point}");
    }
}

#[test]
fn a_run_judges_limits_on_classes_as_a_search_does() {
    let place = Place::new();
    place.file("mix.ndjson", MIX);
    let nginx = Nginx::start(&place, "", BLOCK);
    let url = format!("http://127.0.0.1:{}", nginx.port);
    let args = ["load", &url, "--queries", "mix.ndjson", "--requests", "400", "--json", "-"];
    let limits =
        ["--slo", "errors{class=good}=0", "--slo", "p95{class=good}=5s", "--slo", "errors=30%"];
    let held = Record::of(&place.run([&args[..], &limits].concat()).expect(0));
    assert_eq!(held.0["slo"].as_object().unwrap().len(), 3, "{}", held.0["slo"]);
    let limits = ["--slo", "errors{class=bad}=99%", "--slo", "max{class=bad}=5s"];
    let missed = Record::of(&place.run([&args[..], &limits].concat()).expect(2));
    assert!(missed.0["slo"]["errors{class=bad}"]["measured"].as_f64() == Some(100.0));
    assert!(missed.0["slo"]["max{class=bad}"]["held"] == false, "{}", missed.0["slo"]);
    let unknown = place.run([&args[..], &["--slo", "p95{class=fuzzy}=5ms"]].concat()).expect(64);
    assert!(unknown.stderr.contains("no class 'fuzzy'; known are good, bad"), "{}", unknown.stderr);
    assert_eq!(nginx.wait_for(800).len(), 800, "nothing was sent for the unknown class");
}

#[test]
fn what_a_search_cannot_ask_is_refused_by_name() {
    let place = Place::new();
    place.file("mix.ndjson", MIX);
    place.file("rows.csv", "term\na\nb\n");
    for (flags, word) in [
        (&["--queries", "mix.ndjson", "--slo", "p95{class=fuzzy}=1s"][..], "known are good, bad"),
        (&["--class", "none=zzz", "--slo", "p95{class=none}=1s"], "no request is of class 'none'"),
        (&["--slo", "p95{fuzzy}=1s"], "p95{class=fuzzy}=50ms"),
        (&["--slo", "p95{class=all}=1s", "--strategy", "mutilate"], "know no classes"),
        (
            &["--slo", "p95{class=all}=1s", "--slo", "p95{class=all}=2s"],
            "both limits of p95{class=all}",
        ),
        (&["--slo", "p95=1s", "--users", "constant 20/s during 1m"], "plimsoll load --users"),
        (&["--slo", "p95=1s", "--rows", "rows.csv", "--rows-order", "queue"], "rows without end"),
        (&["--slo", "p95=1s", "--rows", "rows.csv", "--rows-per", "user"], "--rows-per user"),
    ] {
        let ended = place.run([&["seek", "http://127.0.0.1:1"], flags].concat()).expect(64);
        assert_eq!(ended.stderr.trim_end().lines().count(), 1, "{}", ended.stderr);
        assert!(ended.stderr.contains(word), "no {word} in {}", ended.stderr);
    }
    let help = place.run(["seek", "--help"]).expect(0).stdout;
    for word in ["--users", "--rows-per", "of users", "Of load"] {
        assert!(!help.contains(word), "{word} is offered");
    }
}

#[test]
fn statements_of_postgresql_have_a_line() {
    let place = Place::alone();
    let target = place.serve(&["postgresql", "--durability", "none"]);
    // It takes four times the limit, whatever the rate.
    let slow = [
        "--max-rate",
        "100",
        "--body",
        "SELECT pg_sleep(0.02)",
        "--slo",
        "p95=5ms",
        "--budget",
        "25s",
    ];
    let record = found(&search(&place, &target.url, &slow).expect(2));
    assert_eq!(record.verdict(), "infeasible");
    assert_eq!(record.ok(), record.sent(), "{}", record.0["ledger"]);
    assert!(record.text("/target/url").starts_with("postgres://***@127.0.0.1:"));
    // Of two statements the limit judges the one that is quick.
    place.file("q.sql", "SELECT 1\nSELECT pg_sleep(0.02)\n");
    let mixed = ["--queries", "q.sql", "--method", "prepared", "--class", "slow=pg_sleep"];
    let limit = ["--class", "quick=SELECT 1", "--slo", "p50{class=quick}=5ms"];
    let quick = ["--max-rate", "100", "--budget", "20s", "--seed", "2"];
    let record = found(&search(&place, &target.url, &[&mixed[..], &limit, &quick].concat()));
    assert!(record.number("/seek/curve/0/late_share/0") < 0.5, "{}", record.0["seek"]);
    assert!(record.number("/classes/slow/latency_ms/service/p50") >= 20.0);
    assert_ne!(record.verdict(), "infeasible");
    // As many connections in each part as a run of `load` opens.
    assert_eq!(record.count("/counters/connects") % 64, 0, "{}", record.0["counters"]);
    let wrong = ["--body", "SELECT 1", "--slo", "p95=5ms", "--check", "status=2xx"];
    let refused = search(&place, &target.url, &wrong).expect(64);
    assert!(refused.stderr.contains("--check"), "{}", refused.stderr);
}

#[test]
fn each_part_of_a_search_draws_its_rows_anew() {
    let place = Place::new();
    let nginx = Nginx::start(&place, "", "location / { return 200 'hello'; }");
    let rows: String = (0..1000).map(|i| format!("w{i:03}\n")).collect();
    place.file("rows.csv", format!("term\n{rows}"));
    let url = format!("http://127.0.0.1:{}/?q={{{{term}}}}", nginx.port);
    let flags = ["--rows", "rows.csv", "--slo", "p95=1s", "--max-rate", "40", "--budget", "12s"];
    let record = found(&search(&place, &url, &flags));
    let seen = nginx.wait_for(record.sent() as usize);
    let words = seen.iter().filter_map(|line| line.split_once("q=w")?.1.get(..3));
    let count = words.clone().count();
    let different = words.collect::<std::collections::BTreeSet<_>>().len();
    assert_eq!(count as u64, record.sent(), "{:?}", seen.first());
    // Of rows that began anew in each part, there would be as many as the longest part has requests.
    let curve = record.0["seek"]["curve"].as_array().unwrap();
    let longest = curve.iter().filter_map(|point| point["scheduled"].as_u64()).max().unwrap();
    let drawn = 1000.0 * (1.0 - (-(count as f64) / 1000.0).exp());
    eprintln!(
        "{different} of 1,000 rows in {count} requests; {drawn:.0} expected, longest {longest}"
    );
    assert!((different as f64 / drawn - 1.0).abs() < 0.2);
}

#[test]
fn http2_shares_connections_in_a_search_as_in_a_run() {
    let place = Place::new();
    let nginx = Nginx::start(&place, "http2", "location / { return 200 'hello'; }");
    let url = format!("http://127.0.0.1:{}/", nginx.port);
    let flags = ["--slo", "p95=1s", "--max-rate", "200", "--budget", "12s"];
    let shared = found(&search(&place, &url, &[&flags[..], &["--http2"]].concat()));
    // At 200/s and a limit of 1 s up to 300 requests may be in flight: 10 connections of 32, and fewer at lower rates.
    let parts = shared.0["seek"]["curve"].as_array().unwrap().len() as u64;
    let connects = shared.count("/counters/connects");
    assert!(connects <= 12 * parts.max(5), "{connects} connections in {parts} rates or more");
    assert!(shared.sent() > 3 * connects, "{} requests", shared.sent());
    let run =
        place.run(["load", &url, "--http2", "--rate", "200", "--duration", "1s", "--json", "-"]);
    assert_eq!(Record::of(&run).count("/counters/connects"), 2);
    // The same over the old version takes a connection for each request in flight.
    let nginx = Nginx::start(&place, "", "location / { return 200 'hello'; }");
    let url = format!("http://127.0.0.1:{}/", nginx.port);
    let alone =
        found(&place.start([&["seek", &url, "--json", "-"], &flags[..]].concat()).wait(PATIENCE));
    let many = alone.count("/counters/connects");
    assert!(many > 10 * connects, "{many} connections of HTTP/1.1, {connects} of HTTP/2");
}
