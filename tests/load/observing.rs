//! The server's own time and trace ids, against real servers and over both versions of HTTP.

use super::record;
use crate::nginx::Nginx;
use crate::process::{Place, until};
use crate::record::Record;
use crate::server::{Server, Step, reply};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

/// `version "-" trace-id "-" parent-id "-" trace-flags` of W3C Trace Context: 55 bytes, lower case, no id of zeros.
fn is_traceparent(value: &str) -> bool {
    let parts: Vec<&str> = value.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    let is_hex =
        |part: &&str| part.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    value.len() == 55
        && lengths == [2, 32, 16, 2]
        && parts[0] == "00"
        && parts.iter().all(is_hex)
        && parts[1..3].iter().all(|id| id.bytes().any(|b| b != b'0'))
        && matches!(parts[3], "00" | "01")
}

/// The values of `traceparent` that a real nginx logged for 200 requests, and the record of them.
fn traced(place: &Place, listen: &str, flags: &[&str]) -> (Vec<String>, Record) {
    let log = place
        .path()
        .join(format!("traces-{}.log", std::fs::read_dir(place.path()).unwrap().count()));
    let server =
        format!("access_log {} traces;\nlocation / {{ return 200 'hello'; }}", log.display());
    let nginx = Nginx::start(place, listen, &server);
    let url = format!("http://127.0.0.1:{}/", nginx.port);
    let flags = [&["--clients", "4", "--requests", "200"], flags].concat();
    let seen = record(place, &url, &flags, 0);
    assert_eq!(seen.ok(), 200);
    let lines = || -> Vec<String> {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        // A look of plimsoll before the run, which has no trace, is logged as `-`.
        text.lines().filter(|line| *line != "-").map(str::to_owned).collect()
    };
    until("nginx logs all requests", Duration::from_secs(5), || lines().len() >= 200);
    (lines(), seen)
}

/// What nginx logs is what W3C says, over both versions; the same seed gives the same ids, and the slowest keep theirs.
#[test]
fn each_request_has_a_trace_id_of_its_own() {
    let place = Place::new();
    let mut all = Vec::new();
    for (listen, more) in [("", &[][..]), ("http2", &["--http2"][..])] {
        let flags =
            [&["--traceparent", "--trace-url", "https://t.example/{trace_id}"], more].concat();
        let (values, seen) = traced(&place, listen, &flags);
        assert_eq!(values.len(), 200);
        assert!(values.iter().all(|value| is_traceparent(value)), "{values:?}");
        assert!(values.iter().all(|value| value.ends_with("-01")), "all are sampled");
        let ids: BTreeSet<String> = values.iter().map(|value| value[3..35].to_owned()).collect();
        assert_eq!(ids.len(), 200, "each has an id of its own");
        let slowest = seen.0["slowest"].as_array().unwrap();
        assert!(!slowest.is_empty());
        for slow in slowest {
            assert!(ids.contains(slow["trace_id"].as_str().unwrap()), "{slow}");
        }
        assert_eq!(seen.text("/scenario/trace_url"), "https://t.example/{trace_id}");
        seen.expect_schema();
        all.push(ids);
    }
    assert_eq!(all[0], all[1], "the same seed gives the same ids");
    let (values, _) = traced(&place, "", &["--traceparent=25%", "--seed", "2"]);
    let sampled = values.iter().filter(|value| value.ends_with("-01")).count();
    assert!((25..75).contains(&sampled), "{sampled} of 200");
    let ids: BTreeSet<String> = values.iter().map(|value| value[3..35].to_owned()).collect();
    assert!(ids.is_disjoint(&all[0]), "another seed gives other ids");
}

/// Without keep-alive, with bodies and against `serve null`; the page prints the links.
#[test]
fn trace_ids_are_patched_into_any_request() {
    let place = Place::new();
    let server = Server::ok();
    let body = "text\r\ntraceparent: 00-of the body";
    let flags = ["--traceparent=0", "--no-keepalive", "--body", body, "--requests", "20"];
    record(&place, &server.url(), &flags, 0);
    for seen in server.seen() {
        let text = seen.text();
        let (head, own) = text.split_once("\r\n\r\n").unwrap();
        let values: Vec<&str> =
            head.lines().filter_map(|line| line.strip_prefix("traceparent: ")).collect();
        assert!(values.len() == 1 && is_traceparent(values[0]), "{head}");
        assert!(values[0].ends_with("-00") && own == body, "{own}");
    }
    let null = place.serve(&["null"]);
    let flags =
        ["--traceparent", "--trace-url", "https://t.example/{trace_id}", "--requests", "50"];
    let ended = place.run([&["load", &null.url, "--verbose"], &flags[..]].concat()).expect(0);
    assert!(ended.stdout.contains("Traces     ") && ended.stdout.contains(" https://t.example/"));
    for (flags, word) in [
        (&["--trace-url", "https://t/{trace_id}"][..], "use it with --traceparent"),
        (&["--traceparent", "--trace-url", "https://t/"], "write an address with {trace_id}"),
        (&["--traceparent", "--header", "traceparent: x"], "exclude each other"),
        (&["--traceparent=2"], "a share from 0 to 1"),
    ] {
        let ended = place.run([&["load", &server.url()], flags].concat()).expect(64);
        assert!(ended.stderr.contains(word), "{}", ended.stderr);
    }
}

/// Of four replies one has no header and one nonsense in it.
fn clock() -> Server {
    Server::start(|seen| {
        let header = match seen.number % 4 {
            0 => "X-Time: 2.5\r\nServer-Timing: db;dur=1, total;dur=8\r\n",
            1 => "X-Time: 2.5\r\nServer-Timing: total;dur=8;desc=\"a, b\"\r\n",
            2 => "X-Time: soon\r\nServer-Timing: total;dur=x\r\n",
            _ => "",
        };
        vec![Step::Send(reply(200, header, b"hello"))]
    })
}

#[test]
fn the_servers_own_time_is_a_third_histogram() {
    let place = Place::new();
    let server = clock();
    for (clock, ms) in [("header:x-time", 2.5), ("header:X-Time:s", 2500.0), ("server-timing", 8.0)]
    {
        let flags = ["--server-time", clock, "--clients", "1", "--requests", "40"];
        // Whichever request came before: a quarter of them is of each kind.
        let seen = record(&place, &server.url(), &flags, 0);
        let times = &seen.0["latency_ms"]["server"];
        assert_eq!(times["count"], 20, "{clock}: {times}");
        for figure in ["min", "p50", "max"] {
            let value = times[figure].as_f64().unwrap();
            assert!((value / ms - 1.0).abs() < 0.002, "{clock}: {figure} {value}");
        }
        assert!(
            seen.has_warning("20 of 40 successful replies have the server's own time; 10 have no")
        );
        assert!(
            seen.has_warning("10 of 40 successful replies have a server's own time that is not")
        );
        assert!(
            seen.0["histograms"].as_object().unwrap().keys().any(|key| key.ends_with("/server"))
        );
        seen.expect_schema();
    }
    // The record gives the same again, also from its journal alone.
    let runs = place.path().join("runs");
    let newest = std::fs::read_dir(&runs).unwrap().map(|run| run.unwrap().path()).max().unwrap();
    let first = place.run(["report", newest.to_str().unwrap()]).expect(0).stdout;
    assert!(first.lines().any(|line| line.trim_start().starts_with("server ")), "{first}");
    assert!(newest.join("server.hlog").is_file());
    let csv = place.run(["report", newest.to_str().unwrap(), "--format", "csv"]).expect(0).stdout;
    let mut rows = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let (names, run) = (rows.next().unwrap(), rows.next().unwrap());
    let at = names.iter().position(|name| *name == "server_count").unwrap();
    assert_eq!(run[at], "20");
    let path = newest.join("run.json");
    let mut early: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    early["verdict"] = serde_json::json!({"kind": "partial", "reasons": ["the run has not ended"]});
    early["latency_ms"].as_object_mut().unwrap().remove("server");
    std::fs::write(&path, early.to_string()).unwrap();
    let again = place.run(["report", newest.to_str().unwrap(), "--format", "json"]).stdout;
    let again: Value = serde_json::from_str(&again).unwrap();
    assert_eq!(again["latency_ms"]["server"]["count"], 20, "{}", again["latency_ms"]);
}

#[test]
fn the_servers_own_time_over_http2_and_only_where_it_is_asked_for() {
    let place = Place::new();
    let server = "add_header X-Time 7;\nlocation / { return 200 'hello'; }";
    let nginx = Nginx::start(&place, "http2", server);
    let url = format!("http://127.0.0.1:{}/", nginx.port);
    let flags = ["--http2", "--clients", "8", "--requests", "200"];
    let asked =
        record(&place, &url, &[&flags[..], &["--server-time", "header:X-Time"]].concat(), 0);
    let times = &asked.0["latency_ms"]["server"];
    assert_eq!(times["count"], 200);
    assert!((times["p50"].as_f64().unwrap() - 7.0).abs() < 0.01, "{times}");
    assert!(!asked.has_warning("server's own time"));
    let plain = record(&place, &url, &flags, 0);
    assert!(plain.0["latency_ms"].get("server").is_none(), "{}", plain.0["latency_ms"]);
    let ended = place.run(["load", &url, "--server-time", "X-Time"]).expect(64);
    assert!(ended.stderr.contains("write header:NAME"), "{}", ended.stderr);
}
