//! plimsoll serve voter: its ready line, its flags, and what it keeps.

use crate::process::{Place, Target, curl};
use rustix::process::Signal;
use std::time::Duration;

/// A call by the HTTP JSON API: its whole answer.
fn call(target: &Target, query: &str) -> serde_json::Value {
    let url = format!("{}/api/1.0/?User=ann&Password=se:cret&Procedure={query}", target.urls[1]);
    let (status, body) = curl(&["--globoff", &url]);
    assert_eq!(status, 200, "{query}: {body}");
    serde_json::from_str(&body).unwrap()
}

/// The one number of an answer.
fn number(answer: &serde_json::Value) -> i64 {
    let cell = answer.pointer("/results/0/data/0/0").and_then(|cell| cell.as_i64());
    cell.unwrap_or_else(|| panic!("{answer}"))
}

#[test]
fn is_ready_keeps_what_it_acknowledged_and_stops_when_told() {
    let place = Place::new();
    place.file("users", "ann:se:cret\n\nbob:x\n");
    let args = [
        "voter",
        "--data",
        "data",
        "--durability",
        "sync",
        "--users",
        "users",
        "--http-port",
        "0",
        "--ready-file",
        "ready",
    ];
    let target = place.serve(&args);
    assert!(target.url.starts_with("volt://127.0.0.1:"), "{}", target.url);
    assert_eq!(place.read("ready"), format!("ready voter {}\n", target.urls.join(" ")));
    let made = call(&target, "Initialize&Parameters=[2,%22Ann,Bob%22]");
    assert_eq!(number(&made), 2);
    for phone in 0..20 {
        let voted = call(&target, &format!("Vote&Parameters=[{},1,1]", 2_125_550_000i64 + phone));
        assert_eq!(number(&voted), 0);
    }
    target.process.signal(Signal::KILL);
    let _ = target.process.wait(Duration::from_secs(30));
    let target = place.serve(&args);
    let count = "@AdHoc&Parameters=[%22select%20count(*)%20from%20votes%22]";
    assert_eq!(number(&call(&target, count)), 20, "acknowledged, and so kept");
    let (status, _) = curl(&[&format!("{}/api/1.0/?Procedure=@Ping", target.urls[1])]);
    assert_eq!(status, 401, "without a user");
    target.process.signal(Signal::TERM);
    let ended = target.process.wait(Duration::from_secs(30)).expect(0);
    assert_eq!(ended.stderr, "");
    // Fewer partitions than before, and a clean stop in between.
    let target = place.serve(&[&args[..], &["--partitions", "1"]].concat());
    assert_eq!(number(&call(&target, count)), 20);
}

#[test]
fn wrong_flags_are_one_line() {
    let place = Place::new();
    place.file("users", "ann:secret\nnobody\n");
    place.file("file", "in the way");
    let wrong: [(&[&str], &str); 11] = [
        (&["--partitions", "0"], "--partitions takes a number from 1 to 256"),
        (&["--network-threads", "0"], "--network-threads"),
        (&["--pending-calls", "0"], "--pending-calls"),
        (&["--durability", "sync"], "need --data"),
        (&["--user", "secret"], "--user (number 1): the name is missing; write NAME:PASSWORD"),
        (&["--user", "a:b", "--user", "a:c"], "the user 'a' is given twice"),
        (&["--users", "users"], "users:2: the name is missing"),
        (&["--users", "none"], "--users none"),
        (&["--users", "/dev/zero"], "--users /dev/zero: is longer than 16 MiB"),
        (&["--log-max", "0"], "--log-max takes a size from 1 byte"),
        (&["--data", "file"], "--data file: is not a folder"),
    ];
    for (flags, part) in wrong {
        let ended = place.run([&["serve", "voter"], flags].concat()).expect(64);
        assert_eq!(ended.stdout, "", "{flags:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        assert!(ended.stderr.contains(part), "{}", ended.stderr);
        assert!(!ended.stderr.contains("secret"), "{}", ended.stderr);
    }
}
