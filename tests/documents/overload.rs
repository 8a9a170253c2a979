//! More writers than the server takes: it says so at once and in Vespa's words, and loses nothing.

use super::clients::{Fed, LONG, vespa};
use super::sets::{dump, expect_equal, puts, some};
use crate::process::{Place, curl};
use crate::record::Record;
use serde_json::Value;
use std::fmt::Write;

/// A server that has its hands full with little.
const SMALL: [&str; 7] =
    ["search", "--durability", "sync", "--operations", "32", "--throttled", "8"];

#[test]
fn overload_is_429_and_never_a_stall() {
    let place = Place::new();
    let target = place.serve(&SMALL);
    let mut requests = String::new();
    let body = "words of some length ".repeat(100);
    for n in 0..8000 {
        // Writing into a string does not fail.
        let _ = writeln!(
            requests,
            "{{\"method\":\"POST\",\"path\":\"/document/v1/plimsoll/doc/docid/{n}\",\
             \"body\":{{\"fields\":{{\"body\":\"{body}\",\"score\":{n}}}}}}}"
        );
    }
    place.file("feed.ndjson", requests);
    // Eight thousand at a time, where 40 may be under way.
    let args = ["load", target.url.as_str(), "--http2", "--queries", "feed.ndjson"];
    let more = ["--clients", "8000", "--connections", "100", "--requests", "16000"];
    let limits = ["--duration", "60s", "--timeout", "20s", "--max-failed", "100%", "--json", "-"];
    let ended = place.start(args.into_iter().chain(more).chain(limits)).wait(LONG).expect(0);
    let record = Record::of(&ended);
    let failures = record.failures();
    assert!(!failures.is_empty(), "nothing was refused: {}", record.ok());
    // Each request was answered, and nothing but a status says no.
    assert_eq!((failures.len(), failures[0].0.as_str()), (1, "status"), "{failures:?}");
    assert_eq!(record.ok() + failures[0].1, 16_000);
    for kind in ["response", "failed"] {
        let longest_ms = record.number(&format!("/latency_ms/{kind}/max"));
        assert!(longest_ms < 15_000.0, "{kind}: {longest_ms} ms");
    }
    let run = std::fs::read_dir(place.path().join("runs")).unwrap().next().unwrap().unwrap();
    let text = std::fs::read_to_string(run.path().join("failures.ndjson")).unwrap();
    for line in text.lines() {
        let failure: Value = serde_json::from_str(line).unwrap();
        assert_eq!(failure["status"], 429);
        let said = failure["reply"].as_str().unwrap();
        let reason = said.split_once("Rejecting execution due to overload: ").unwrap().1;
        assert!(
            reason.starts_with("8 requests already enqueued")
                || reason.contains(" seconds worth of work enqueued"),
            "{said}"
        );
    }
    // And then it goes on as before.
    let url = format!("{}/document/v1/plimsoll/doc/docid/later", target.url);
    assert_eq!(curl(&["-d", "{\"fields\":{}}", &url]).0, 200);
}

#[test]
fn a_client_that_asks_for_too_much_gets_everything_in_the_end() {
    let place = Place::new();
    let target = place.serve(&SMALL);
    let documents = some(3000);
    place.file("feed.jsonl", puts(&documents));
    let args = ["feed", "--inflight", "600", "--connections", "4", "feed.jsonl"];
    let fed = Fed::of(&vespa(&place, &target, args).expect(0));
    fed.expect_ok(3000);
    let all = fed.count("http.response.count");
    assert_eq!(fed.status(200) + fed.status(429), all);
    assert!(fed.status(429) > 0, "nothing was refused");
    expect_equal(&dump(&place, &target, &["--slices", "4"]).0, &documents);
}
