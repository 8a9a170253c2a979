//! What a search can ask beside one URL: classes with limits of their own, SQL, rows, HTTP/2.

use super::found;
use crate::nginx::Nginx;
use crate::process::{Ended, PATIENCE, Place, stolen_while};
use crate::record::Record;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);

/// Three requests that succeed to one that fails.
const MIX: &str = "{\"path\":\"/good\",\"class\":\"good\"}\n{\"path\":\"/good\",\"class\":\"good\"}\n\
                   {\"path\":\"/good\",\"class\":\"good\"}\n{\"path\":\"/bad\",\"class\":\"bad\"}\n";
const BLOCK: &str = "location /good { return 200 'hello'; }\nlocation /bad { return 503; }";

pub fn search(place: &Place, url: &str, flags: &[&str]) -> Ended {
    place.start([&["seek", url, "--json", "-"], flags].concat()).wait(LIMIT)
}

#[test]
fn a_limit_on_a_class_leaves_the_failures_of_another_class_alone() {
    let place = Place::quiet();
    place.file("mix.ndjson", MIX);
    let nginx = Nginx::start(&place, "", BLOCK);
    let url = format!("http://127.0.0.1:{}", nginx.port);
    let place = &place;
    let of = |limits: [&str; 2]| {
        let rates = ["--start-rate", "100", "--max-rate", "200", "--budget", "30s"];
        let slo = ["--queries", "mix.ndjson", "--slo", limits[0], "--slo", limits[1]];
        search(place, &url, &[&slo[..], &rates].concat())
    };
    let of_all = of(["errors=10%", "mean=100ms"]);
    assert_eq!(found(&of_all.expect(2)).verdict(), "infeasible");
    let of_bad = of(["errors{class=bad}=10%", "mean=100ms"]);
    assert_eq!(found(&of_bad.expect(2)).verdict(), "infeasible", "all of them fail");
    let (ended, stolen) = stolen_while(|| of(["errors{class=good}=10%", "mean{class=good}=100ms"]));
    let record = found(&ended);
    // A quarter of the requests fails at every rate, and none of those that the limits judge.
    let (failed, sent) = (record.count("/classes/bad/failed/status"), record.sent());
    assert!(failed * 5 > sent && failed * 3 < sent, "{failed} of {sent}");
    for point in record.0["seek"]["curve"].as_array().unwrap() {
        assert_eq!(point["late_share"], serde_json::json!([0.0, 0.0]), "{point}");
        assert!(point["failed"].as_u64().unwrap() > 0 || point["scheduled"].as_u64() < Some(40));
    }
    if record.was_held_up(stolen) {
        return;
    }
    let least = record.number("/seek/verdict/never-violated/at_least_per_s");
    assert!((150.0..=200.0).contains(&least), "{least}");
}

/// One request of twenty goes to one server of 5 ms, and is judged by p95 <= 25 ms: by the closed form of M/M/1 they may
/// come at 200 - ln(20) / 25 ms = 80/s, so that all come at 1,604/s. The others are answered at once: judged together, no
/// more than 5 % can be late at any rate, and the limit would hold at the highest.
#[test]
fn a_slow_class_has_a_line_of_its_own() {
    let place = Place::quiet_for_long();
    let target = place.serve(&["queue", "--servers", "1", "--service", "exponential:5ms"]);
    let block = format!(
        "location /quick {{ return 200 'hello'; }}\n\
         location /slow {{ proxy_pass {}/; proxy_http_version 1.1; }}",
        target.url
    );
    let nginx = Nginx::start(&place, "", &block);
    let class = |i: usize| if i == 0 { "slow" } else { "quick" };
    let line = |i: usize| format!("{{\"path\":\"/{0}\",\"class\":\"{0}\"}}\n", class(i));
    place.file("mix.ndjson", (0..20).map(line).collect::<String>());
    let (own, most) = ((200.0 - 20f64.ln() / 0.025) * 20.0, 6000.0);
    let url = format!("http://127.0.0.1:{}", nginx.port);
    let flags = ["--queries", "mix.ndjson", "--order", "random", "--budget", "40s"];
    let limit = ["--slo", "p95{class=slow}=25ms", "--start-rate", "200", "--max-rate", "6000"];
    let (ended, stolen) = stolen_while(|| search(&place, &url, &[&flags[..], &limit].concat()));
    let record = found(&ended);
    assert_eq!(record.count("/classes/slow/ok") + record.count("/classes/quick/ok"), record.ok());
    let seek = &record.0["seek"];
    let (verdict, certified) = (record.verdict(), seek["certified_rate_per_s"].as_f64());
    eprintln!("{verdict}: certified {certified:?}, {}", seek["interval_per_s"]);
    // A machine that stands still makes the target slower, and never faster.
    assert!(certified.is_none_or(|certified| certified < 1.3 * own), "{certified:?}");
    let low = seek["interval_per_s"][0].as_f64();
    assert!(low.is_none_or(|low| low < 1.3 * own), "{low:?}");
    if record.was_held_up(stolen) {
        return;
    }
    assert!(seek["verdict"]["never-violated"].is_null(), "the limit broke");
    // Others are in time, however many there are.
    assert!(record.number("/classes/quick/latency_ms/response/p50") < 25.0);
    let number = |point: &serde_json::Value, at: &str| point.pointer(at).unwrap().as_f64().unwrap();
    let curve = seek["curve"].as_array().unwrap();
    let far = curve.iter().filter(|point| number(point, "/rate_per_s") > 0.8 * most);
    let late = far.map(|point| number(point, "/late_share/0")).fold(0.0, f64::max);
    assert!(late > 0.3, "far above its line nearly all of the class is late: {late}, {curve:?}");
    let Some(certified) = certified else {
        return crate::unquiet::note(&format!("{verdict}, and no rate was certified"));
    };
    assert!(certified > 0.5 * own, "{certified}");
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
    assert!(
        unknown.stderr.contains("unknown class 'fuzzy'; write one of good, bad"),
        "{}",
        unknown.stderr
    );
    assert_eq!(nginx.wait_for(800).len(), 800, "nothing was sent for the unknown class");
}

#[test]
fn what_a_search_cannot_ask_is_refused_by_name() {
    let place = Place::new();
    place.file("mix.ndjson", MIX);
    place.file("rows.csv", "term\na\nb\n");
    place.file("ops.json", "{\"put\":\"id:n:t::1\",\"fields\":{}}");
    for (flags, word) in [
        (
            &["--queries", "mix.ndjson", "--slo", "p95{class=fuzzy}=1s"][..],
            "unknown class 'fuzzy'; write one of good, bad",
        ),
        (&["--class", "none=zzz", "--slo", "p95{class=none}=1s"], "no request is of class 'none'"),
        (&["--slo", "p95{fuzzy}=1s"], "p95{class=fuzzy}=50ms"),
        (&["--slo", "p95{class=all}=1s", "--strategy", "mutilate"], "do not support classes"),
        (
            &["--slo", "p95{class=all}=1s", "--slo", "p95{class=all}=2s"],
            "both limits of p95{class=all}",
        ),
        (&["--slo", "p95=1s", "--users", "constant 20/s during 1m"], "write --users constant"),
        (&["--slo", "p95=1s", "--users", "20"], "write --users constant without a number"),
        (&["--slo", "p95=1s", "--users", "constant", "--rate", "20"], "--start-rate"),
        (&["--slo", "p95=1s", "volt://127.0.0.1:1"], "run them apart"),
        (&["--slo", "p95=1s", "--users", "concurrent 5 during 1m"], "plimsoll load --users"),
        (&["--slo", "p95=1s", "--think", "1s"], "--think belongs to users"),
        (&["--slo", "p95=1s", "--votes"], "write volt://"),
        (&["--slo", "p95=1s", "--accept", "404"], "--accept goes with --feed"),
        (&["--slo", "p95=1s", "--feed", "mix.ndjson"], "mix.ndjson: line 1: key 'path'"),
        (&["--slo", "p95=1s", "--feed", "none.json"], "none.json"),
        (&["--slo", "p95=1s", "--feed", "ops.json", "--users", "constant"], "--users ask requests"),
        (
            &["--slo", "p95{class=update}=1s", "--feed", "ops.json"],
            "unknown class 'update'; write one of put",
        ),
        (&["--slo", "p95=1s", "--rows", "rows.csv", "--rows-order", "queue"], "rows without end"),
        (&["--slo", "p95=1s", "--rows", "rows.csv", "--rows-per", "user"], "--rows-per user"),
    ] {
        let ended = place.run([&["seek", "http://127.0.0.1:1"], flags].concat()).expect(64);
        assert_eq!(ended.stderr.trim_end().lines().count(), 1, "{}", ended.stderr);
        assert!(ended.stderr.contains(word), "no {word:?} in {}", ended.stderr);
    }
    let help = place.run(["seek", "--help"]).expect(0).stdout;
    for word in ["--users", "--rows-per", "volt://", "--feed", "--votes"] {
        assert!(help.contains(word), "{word} is not offered");
    }
}

#[test]
fn statements_of_postgresql_have_a_line() {
    let place = Place::quiet();
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
    let mixed = ["--queries", "q.sql", "--sql-mode", "prepared", "--class", "slow=pg_sleep"];
    let limit = ["--class", "quick=SELECT 1", "--slo", "p50{class=quick}=5ms"];
    let quick = ["--max-rate", "100", "--budget", "20s", "--seed", "2"];
    let record = found(&search(&place, &target.url, &[&mixed[..], &limit, &quick].concat()));
    // Half of the requests take longer than the limit, and do not count.
    let curve = record.0["seek"]["curve"].as_array().unwrap();
    let late = curve.iter().map(|seen| seen["late_share"][0].as_f64().unwrap());
    assert!(late.fold(1.0, f64::min) < 0.5, "{}", record.0["seek"]);
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

/// The number of parts of a search, each of which opens connections of its own: the seconds of a record know theirs.
fn parts(place: &Place, record: &Record) -> u64 {
    let folders = std::fs::read_dir(place.path().join("runs")).unwrap();
    let mut names = folders.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let own = names.find(|name| name.ends_with(record.text("/run_id"))).unwrap();
    let lines = place.read(&format!("runs/{own}/intervals.ndjson"));
    let phases = lines.lines().filter_map(|line| {
        let second: serde_json::Value = serde_json::from_str(line).ok()?;
        second["phase"].as_u64()
    });
    phases.max().unwrap() + 1
}

#[test]
fn http2_shares_connections_in_a_search_as_in_a_run() {
    let place = Place::new();
    let nginx = Nginx::start(&place, "http2", "location / { return 200 'hello'; }");
    let url = format!("http://127.0.0.1:{}/", nginx.port);
    let flags = ["--slo", "p95=100ms", "--max-rate", "200", "--budget", "12s"];
    let shared = found(&search(&place, &url, &[&flags[..], &["--http2"]].concat()));
    let run =
        place.run(["load", &url, "--http2", "--rate", "200", "--duration", "1s", "--json", "-"]);
    let of_load = Record::of(&run).count("/counters/connects");
    assert_eq!(of_load, 2);
    // At 200/s and a limit of 100 ms up to 30 requests may be in flight, which share a connection.
    let (connects, parts_of_shared) = (shared.count("/counters/connects"), parts(&place, &shared));
    assert!(parts_of_shared > 2 && connects >= parts_of_shared, "{connects}, {parts_of_shared}");
    assert!(connects <= of_load * parts_of_shared, "{connects} in {parts_of_shared} parts");
    // The same over the old version takes a connection for each request in flight.
    let nginx = Nginx::start(&place, "", "location / { return 200 'hello'; }");
    let url = format!("http://127.0.0.1:{}/", nginx.port);
    let alone =
        found(&place.start([&["seek", &url, "--json", "-"], &flags[..]].concat()).wait(PATIENCE));
    let (many, parts_of_alone) = (alone.count("/counters/connects"), parts(&place, &alone));
    assert!(many >= 32 * parts_of_alone, "{many} in {parts_of_alone} parts");
}
