//! More writers than the server takes: it says so at once and in Vespa's words, and loses nothing.

use super::clients::{Fed, LONG, vespa};
use super::sets::{dump, expect_equal, puts, some};
use crate::process::Place;
use crate::record::Record;
use std::fmt::Write;

#[test]
fn overload_is_429_and_never_a_stall() {
    let place = Place::new();
    let target = place.serve(&["search", "--durability", "sync"]);
    let mut requests = String::new();
    for n in 0..6000 {
        // Writing into a string does not fail.
        let _ = writeln!(
            requests,
            "{{\"method\":\"POST\",\"path\":\"/document/v1/plimsoll/doc/docid/{n}\",\
             \"body\":{{\"fields\":{{\"title\":\"number {n}\",\"score\":{n}}}}}}}"
        );
    }
    place.file("feed.ndjson", requests);
    // Four thousand at a time over a few connections, where 1280 may be under way.
    let args = ["load", target.url.as_str(), "--http2", "--queries", "feed.ndjson"];
    let more = ["--clients", "4000", "--connections", "8", "--requests", "12000"];
    let limits = ["--duration", "60s", "--timeout", "20s", "--json", "-"];
    let ended = place.start(args.into_iter().chain(more).chain(limits)).wait(LONG);
    let record = Record::of(&ended);
    let failures = record.failures();
    println!("{failures:?} {}", record.ok());
    assert_eq!(record.ok() + failures[0].1, 12_000, "{failures:?}");
    assert_eq!((failures.len(), failures[0].0.as_str()), (1, "status"), "{failures:?}");
    println!("{}", record.0["status"]);
    println!("{}", record.0);
    for entry in std::fs::read_dir(place.path().join("runs")).unwrap() {
        let failures = entry.unwrap().path().join("failures.ndjson");
        println!("{}", std::fs::read_to_string(failures).unwrap().lines().next().unwrap());
    }
}

#[test]
fn a_client_that_asks_for_too_much_gets_everything_in_the_end() {
    let place = Place::new();
    let target = place.serve(&["search", "--durability", "sync"]);
    let documents = some(6000);
    place.file("feed.jsonl", puts(&documents));
    let args = ["feed", "--inflight", "4000", "--connections", "8", "feed.jsonl"];
    let fed = Fed::of(&vespa(&place, &target, args).expect(0));
    fed.expect_ok(6000);
    let all = fed.count("http.response.count");
    assert_eq!(fed.status(200) + fed.status(429), all);
    expect_equal(&dump(&place, &target, &["--slices", "4"]).0, &documents);
}
