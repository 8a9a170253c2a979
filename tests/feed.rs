//! `plimsoll feed` against the embedded server and against one that refuses, cuts and never answers.

mod answers;
mod limits;
mod mix;

use crate::process::{Ended, Place, Target, curl};
use crate::record::Record;
use crate::server::{Seen, Server, Step, refusing_port, reply};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Mutex;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(120);

/// Puts of documents `from` to `to`, one a line.
fn puts(from: u32, to: u32) -> String {
    let mut text = String::new();
    for i in from..to {
        // Writing into a string does not fail.
        let _ = writeln!(
            text,
            "{{\"put\":\"id:plimsoll:doc::{i}/\\u00e6 +\",\"fields\":{{\"title\":\"number {i} \
             \\\"}}\",\"score\":{i}}}}}"
        );
    }
    text
}

fn feed(place: &Place, url: &str, flags: &[&str]) -> Ended {
    let mut args = vec!["feed", url, "--quiet"];
    args.extend(flags);
    place.start(args).wait(LONG)
}

/// The documents that a server has, by their ids.
fn documents(place: &Place, target: &Target) -> BTreeMap<String, Value> {
    let args =
        ["visit", &target.url, "--cluster", "plimsoll", "--quiet", "--no-record", "--slices", "2"];
    let out = place.start(args).wait(LONG).expect(0);
    let lines = out.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.map(|line| (line["id"].as_str().unwrap().to_owned(), line["fields"].clone())).collect()
}

fn gzip(text: &str) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    out.write_all(text.as_bytes()).unwrap();
    out.finish().unwrap()
}

#[test]
fn every_form_of_input_brings_its_documents() {
    let place = Place::new();
    let target = place.serve(&["search"]);
    let array = |text: &str| format!("[\n{}\n]\n", text.trim_end().replace('\n', ",\n"));
    place.file("lines", puts(0, 1000));
    place.file("array", array(&puts(1000, 1500)));
    place.file("one-line", array(&puts(1500, 1600)).replace('\n', ""));
    place.file("packed", gzip(&puts(1600, 1900)));
    let flags = ["lines", "array", "one-line", "packed", "--json", "-"];
    let record = Record::of(&feed(&place, &target.url, &flags).expect(0));
    assert_eq!(record.count("/feed/operations"), 1900);
    assert_eq!(record.count("/feed/accepted"), 1900);
    assert_eq!(record.0["feed"]["complete"], true);
    // The server speaks HTTP/2, and nobody had to say so.
    assert_eq!(record.text("/feed/http"), "2");
    assert!(record.count("/counters/connects") <= 8);
    assert_eq!(record.count("/feed/codes/200/count"), 1900);
    record.expect_balanced();
    // Its own packing, its other version of HTTP, more threads, standard input.
    let zstd = {
        place.file("plain", puts(1900, 2100).replace("\"put\"", "\"id\""));
        let mut command = std::process::Command::new("zstd");
        let packed = command.args(["-q", "plain"]).current_dir(place.path()).status();
        packed.is_ok_and(|status| status.success())
    };
    let file = if zstd { "plain.zst" } else { "plain" };
    let flags = [file, "--http1", "--compression", "gzip", "--threads", "2", "--json", "-"];
    let record = Record::of(&feed(&place, &target.url, &flags).expect(0));
    assert_eq!((record.text("/feed/http"), record.count("/feed/accepted")), ("1.1", 200));
    let args = ["feed", target.url.as_str(), "-", "--inflight", "7", "--json", "-", "--quiet"];
    let record = Record::of(&place.run_with_input(args, puts(2100, 2200).as_bytes()).expect(0));
    assert_eq!(record.count("/feed/accepted"), 100);
    assert!(record.count("/feed/inflight/most") <= 7);
    let found = documents(&place, &target);
    let expected: BTreeSet<String> =
        (0..2200).map(|i| format!("id:plimsoll:doc::{i}/\u{e6} +")).collect();
    assert_eq!(found.keys().cloned().collect::<BTreeSet<_>>(), expected);
    assert_eq!(found["id:plimsoll:doc::1999/\u{e6} +"]["title"], "number 1999 \"}");
    let text = place.run(["report", "--verbose"]).expect(0).stdout;
    for part in ["all 100 operations accepted", "Answers, ms", "at most 7 (fixed)"] {
        assert!(text.contains(part), "no '{part}' in\n{text}");
    }
}

#[test]
fn what_a_visit_writes_a_feed_reads() {
    let place = Place::new();
    let (first, second) = (place.serve(&["search"]), place.serve(&["search"]));
    place.file("in", puts(0, 800));
    feed(&place, &first.url, &["in"]).expect(0);
    for format in ["documents", "vespa-feed"] {
        let out = format!("{format}.ndjson.zst");
        let args = [
            "visit",
            &first.url,
            "--cluster",
            "plimsoll",
            "--quiet",
            "--format",
            format,
            "--out",
            &out,
        ];
        place.start(args).wait(LONG).expect(0);
        let ended = feed(&place, &second.url, &[&out]).expect(0);
        assert!(ended.stdout.contains("all 800 operations"), "{}", ended.stdout);
        assert_eq!(documents(&place, &first), documents(&place, &second));
    }
}

#[test]
fn operations_on_one_document_keep_their_order() {
    let place = Place::new();
    let target = place.serve(&["search", "--containers", "2"]);
    let mut text = String::new();
    for round in 0..100 {
        for id in 0..5 {
            let id = format!("id:plimsoll:doc::{id}");
            let score = "\"score\":{\"increment\":1}";
            let _ = match round % 10 {
                0 => writeln!(
                    text,
                    "{{\"put\":\"{id}\",\"fields\":{{\"title\":\"t\",\"score\":0}}}}"
                ),
                9 => writeln!(text, "{{\"remove\":\"{id}\"}}"),
                _ => writeln!(text, "{{\"update\":\"{id}\",\"fields\":{{{score}}}}}"),
            };
        }
    }
    // The last ten rounds without the remove at their end: eight increments are left.
    let lines: Vec<_> = text.lines().collect();
    place.file("in", lines[..lines.len() - 5].join("\n"));
    let (host, port) = target.url.rsplit_once(':').unwrap();
    let other = format!("{host}:{}", port.parse::<u16>().unwrap() + 1);
    let args = ["feed", &target.url, &other, "in", "--quiet", "--inflight", "200"];
    place.start(args).wait(LONG).expect(0);
    let found = documents(&place, &target);
    assert_eq!(found.len(), 5);
    for fields in found.values() {
        assert_eq!(fields["score"], 8, "{fields}");
    }
}

#[test]
fn what_is_refused_is_named_and_can_be_fed_again() {
    let place = Place::new();
    let target = place.serve(&["search"]);
    let text = puts(0, 20)
        + "{\"put\":\"id:plimsoll:nosuch::1\",\"fields\":{\"title\":\"x\"}}\n\
           {\"update\":\"id:plimsoll:doc::none\",\"condition\":\"doc.score == 7\",\"fields\":{\"score\":{\"assign\":1}}}\n\
           {\"put\":\"id:plimsoll:doc::bad\",\"fields\":{\"score\":\"no number\"}}\n\
           {\"put\":\"id:plimsoll:doc::cut\",\"fields\":{\"title\":\n\
           {\"put\":\"id:plimsoll:doc::last\",\"fields\":{\"title\":\"last\"}}\n\
           {\"put\":\"id:plimsoll:doc::key\",\"feilds\":{}}\n";
    place.file("in", text);
    let ended = feed(&place, &target.url, &["in", "--failed", "rest", "--json", "-"]).expect(3);
    let record = Record::of(&ended);
    let count = |name: &str| record.count(&format!("/feed/{name}"));
    assert_eq!((count("operations"), count("accepted"), count("malformed")), (26, 21, 2));
    assert_eq!((count("refused"), count("unsettled"), count("codes/412/count")), (3, 0, 1));
    assert_eq!(record.verdict(), "partial");
    assert!(ended.stderr.contains("5 of 26 operations were not accepted"), "{}", ended.stderr);
    let rest = place.read("rest");
    assert_eq!(rest.lines().count(), 5, "{rest}");
    let reasons: Vec<Value> =
        place.read("rest.reasons").lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let reason = |line: u64| {
        let found = reasons.iter().find(|reason| reason["line"] == line);
        found.unwrap_or_else(|| panic!("nothing of line {line}"))["reason"].as_str().unwrap()
    };
    assert!(reason(21).contains("HTTP 400") && reason(21).contains("nosuch"), "{}", reason(21));
    assert!(reason(22).contains("HTTP 412"), "{}", reason(22));
    assert!(reason(24).contains("not closed"), "{}", reason(24));
    assert!(reason(26).contains("key 'feilds' is not known"), "{}", reason(26));
    let text = place.run(["report"]).expect(0).stdout;
    for part in ["NO: 21 of 26 operations; 3 refused, 2 malformed", "in:24", "rest.reasons"] {
        assert!(text.contains(part), "no '{part}' in\n{text}");
    }
    // The condition may fail, if one says so; the rest is as bad as before.
    let flags = ["rest", "--accept", "404,412", "--failed", "again", "--json", "-"];
    let record = Record::of(&feed(&place, &target.url, &flags).expect(3));
    assert_eq!(record.count("/feed/accepted"), 1);
    assert_eq!(place.read("again").lines().count(), 4);
}

/// What the document API answers to an operation on this path.
fn done(target: &str) -> String {
    format!("{{\"pathId\":\"{}\"}}", target.split('?').next().unwrap())
}

/// Answers as `status` says of the request's number, and writes down which paths were accepted, in their order.
fn picky(
    accepted: &'static Mutex<Vec<String>>,
    status: impl Fn(&Seen) -> u16 + Send + Sync + 'static,
) -> Server {
    Server::start(move |seen| {
        let path = seen.path();
        // The question for the version of HTTP.
        let asked = path.starts_with("/document/v1/");
        match if asked { status(seen) } else { 404 } {
            200 => {
                accepted.lock().unwrap().push(format!("{path} {}", seen.body()));
                vec![Step::Send(reply(200, "", done(&path).as_bytes()))]
            }
            0 => vec![Step::Reset],
            1 => vec![
                Step::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n{\"pa".to_vec()),
                Step::Close,
            ],
            other => vec![Step::Send(reply(other, "", b"{\"message\":\"not now\"}"))],
        }
    })
}

#[test]
fn bursts_of_refusals_and_cut_connections_lose_nothing() {
    static ACCEPTED: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let place = Place::new();
    let server = picky(&ACCEPTED, |seen| match seen.number % 400 {
        50..58 => 429,
        150..155 => 503,
        220..224 => 0,
        240..244 => 1,
        _ => 200,
    });
    let mut text = String::new();
    for i in 0..1500 {
        let _ = writeln!(text, "{{\"put\":\"id:a:b::{}\",\"fields\":{{\"n\":{i}}}}}", i % 300);
    }
    place.file("in", text);
    let flags = ["in", "--retries", "50", "--json", "-", "--failed", "rest"];
    let record = Record::of(&feed(&place, &server.url(), &flags).expect(0));
    assert_eq!(record.count("/feed/accepted"), 1500);
    // The server does not speak HTTP/2, and it was found out without a word.
    assert_eq!(record.text("/feed/http"), "1.1");
    assert!(record.count("/feed/retries/429") > 0 && record.count("/feed/retries/503") > 0);
    assert!(record.count("/feed/retries/reset") + record.count("/feed/retries/short") > 0);
    let refusals = record.count("/feed/codes/429/count");
    assert_eq!(refusals, record.count("/feed/retries/429"));
    assert_eq!(record.count("/feed/codes/429/whole/count"), 0);
    assert_eq!(place.read("rest"), "");
    let mut last: BTreeMap<String, u32> = BTreeMap::new();
    for line in ACCEPTED.lock().unwrap().iter() {
        let (path, body) = line.split_once(' ').unwrap();
        let body: Value = serde_json::from_str(body).unwrap();
        let number = body["fields"]["n"].as_u64().unwrap() as u32;
        let before = last.insert(path.to_owned(), number);
        assert!(before.is_none_or(|before| before <= number), "{path}: {number} behind {before:?}");
    }
    assert!(last.values().all(|last| *last >= 1200), "{last:?}");
    let answered = server.requests() as u64;
    // The words that asked for the version of HTTP look like two requests.
    assert!(answered.abs_diff(record.count("/feed/requests")) <= 2, "{answered}");
}

#[test]
fn what_a_server_will_not_take_ends_the_tries_of_each_operation() {
    static ACCEPTED: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let place = Place::new();
    let server = picky(&ACCEPTED, |seen| if seen.path().ends_with("/7") { 500 } else { 200 });
    place.file(
        "in",
        (0..40).fold(String::new(), |text, i| {
            text + &format!("{{\"put\":\"id:a:b::{i}\",\"fields\":{{}}}}\n")
        }),
    );
    let flags = ["in", "--retries", "2", "--json", "-", "--failed", "rest"];
    let record = Record::of(&feed(&place, &server.url(), &flags).expect(3));
    assert_eq!((record.count("/feed/accepted"), record.count("/feed/retries/500")), (39, 2));
    assert_eq!(place.read("rest"), "{\"put\":\"id:a:b::7\",\"fields\":{}}\n");
    assert!(place.read("rest.reasons").contains("HTTP 500: not now; sent 3 times"));
}

#[test]
fn a_dead_target_is_told_and_everything_is_kept() {
    let place = Place::new();
    place.file("in", puts(0, 3000));
    let url = format!("http://127.0.0.1:{}", refusing_port());
    let ended = feed(&place, &url, &["in", "--failed", "rest", "--json", "-"]).expect(4);
    assert!(ended.stderr.contains("accepted nothing"), "{}", ended.stderr);
    assert!(ended.took < Duration::from_secs(40), "{:?}", ended.took);
    let record = Record::of(&ended);
    assert_eq!(record.verdict(), "target-failed");
    let rest = place.read("rest");
    let left = record.0["feed"]["unread"]["skip"].as_u64().unwrap_or(3000);
    assert_eq!(rest.lines().count() as u64, left);
    assert_eq!(record.count("/feed/operations"), left);
    // A target that comes and goes does not take the whole feed with it; that of a deadline does.
    let server = Server::silent();
    let flags = ["in", "--http1", "--deadline", "1s", "--failed", "rest"];
    let ended = feed(&place, &server.url(), &flags).expect(4);
    assert!(ended.stderr.contains("nothing was accepted for 1s (--deadline)"), "{}", ended.stderr);
    assert!(ended.took < Duration::from_secs(10), "{:?}", ended.took);
    assert_eq!(place.read("rest").lines().count(), 3000);
}

#[test]
fn a_feed_that_is_interrupted_keeps_what_is_left() {
    static ACCEPTED: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let place = Place::new();
    let server = Server::start(|seen| {
        if seen.number > 500 {
            return vec![Step::Hang];
        }
        ACCEPTED.lock().unwrap().push(seen.path());
        vec![Step::Send(reply(200, "", done(&seen.path()).as_bytes()))]
    });
    // More than is read ahead.
    place.file("in", puts(0, 30_000));
    let url = server.url();
    let args = ["feed", url.as_str(), "in", "--http1", "--failed", "rest", "--quiet"];
    let running = place.start(args);
    crate::process::until("500 are accepted", LONG, || server.requests() > 500);
    running.signal(Signal::INT);
    let ended = running.wait(LONG).expect(3);
    assert!(ended.took < Duration::from_secs(30), "{:?}", ended.took);
    assert!(ended.stderr.contains("the feed was stopped before its end"), "{}", ended.stderr);
    let record: Value =
        serde_json::from_str(&place.run(["report", "--format", "json"]).expect(0).stdout).unwrap();
    let feed = &record["feed"];
    let rest = place.read("rest");
    let accepted = feed["accepted"].as_u64().unwrap();
    let skip = feed["unread"]["skip"].as_u64().unwrap();
    assert_eq!(rest.lines().count() as u64, skip - accepted);
    let hint = format!("--skip {skip}");
    assert!(ended.stdout.contains(&hint), "{}", ended.stdout);
    // What was accepted, what is left, and what was not read are everything.
    let fed = |text: &str| -> BTreeSet<String> {
        let id = |line: &str| {
            serde_json::from_str::<Value>(line).unwrap()["put"].as_str().unwrap().to_owned()
        };
        text.lines().map(id).collect()
    };
    let mut all = fed(&rest);
    assert_eq!(all.len() as u64, skip - accepted);
    let input = place.read("in");
    let unread: String =
        input.lines().skip(skip as usize).fold(String::new(), |text, line| text + line + "\n");
    all.extend(fed(&unread));
    assert_eq!(all.len() as u64, 30_000 - accepted);
    // And the two commands that the page names bring them to a server.
    let target = place.serve(&["search"]);
    let skip = skip.to_string();
    self::feed(&place, &target.url, &["rest"]).expect(0);
    self::feed(&place, &target.url, &["in", "--skip", &skip]).expect(0);
    assert_eq!(documents(&place, &target).len() as u64, 30_000 - accepted);
}

#[test]
fn statistics_are_those_of_vespa_feed() {
    let place = Place::new();
    let target = place.serve(&["search"]);
    place.file("in", puts(0, 300));
    let ended = feed(&place, &target.url, &["in", "--vespa-statistics", "-"]).expect(0);
    let stats: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(stats["feeder.operation.count"], 300);
    assert_eq!(stats["feeder.ok.count"], 300);
    assert_eq!(stats["http.response.code.counts"]["200"], 300);
    let (rate, seconds) = (stats["feeder.ok.rate"].as_f64(), stats["feeder.seconds"].as_f64());
    // Both are rounded to three digits.
    let (rate, seconds) = (rate.unwrap(), seconds.unwrap());
    assert!((rate * seconds - 300.0).abs() < 0.0006 * rate, "{rate} for {seconds} s");
    feed(&place, &target.url, &["in", "--vespa-statistics", "stats.json"]).expect(0);
    let stats: Value = serde_json::from_str(&place.read("stats.json")).unwrap();
    assert_eq!(stats["feeder.error.count"], 0);
}

#[test]
fn a_rate_is_held_and_a_dry_run_writes_nothing() {
    let place = Place::quiet();
    let target = place.serve(&["search"]);
    place.file("in", puts(0, 600));
    let flags = ["in", "--rate", "300", "--dry-run", "--json", "-"];
    let record = Record::of(&feed(&place, &target.url, &flags).expect(0));
    let seconds = record.number("/feed/seconds");
    assert!((1.9..2.6).contains(&seconds), "{seconds}");
    assert_eq!(record.count("/feed/accepted"), 600);
    assert!(documents(&place, &target).is_empty());
}

#[test]
fn wrong_words_are_refused_before_anything_is_sent() {
    let place = Place::new();
    place.file("in", puts(0, 1));
    let url = "http://127.0.0.1:1";
    for (args, word) in [
        (&[url][..], "no file"),
        (&["in"], "no target"),
        (&[url, "none"], "no such file"),
        (&[url, "."], "permissions"),
        (&["http://127.0.0.1:1/document/v1/", "in"], "scheme, host and port"),
        (&[url, "in", "--inflight", "0"], "--inflight"),
        (&[url, "in", "--connections", "0"], "--connections"),
        (&[url, "in", "--threads", "0"], "--threads"),
        (&[url, "in", "--accept", "500"], "--accept"),
        (&[url, "in", "--timeout", "0s"], "--timeout"),
        (&[url, "in", "--rate", "0"], "rate"),
        (&[url, "-", "-"], "stdin"),
        (&[url, "in", "--json", "-", "--vespa-statistics", "-"], "stdout"),
        (&[url, "in", "--failed", "none/x"], "--failed"),
        (&[url, "in", "--http1", "--http2"], "--http2"),
        (&[url, "in", "--insecure"], "https://"),
    ] {
        let mut all = vec!["feed", "--quiet"];
        all.extend(args);
        let ended = place.run(all).expect(64);
        assert_eq!(ended.stderr.trim_end().lines().count(), 1, "{}", ended.stderr);
        assert!(ended.stderr.contains(word), "no {word:?} in {}", ended.stderr);
    }
}

#[test]
fn an_input_that_ends_in_rubbish_is_told() {
    let place = Place::new();
    let target = place.serve(&["search"]);
    let mut packed = gzip(&puts(0, 5000));
    packed.truncate(packed.len() - 2000);
    place.file("cut.gz", packed);
    let ended = feed(&place, &target.url, &["cut.gz", "--failed", "rest"]).expect(3);
    assert!(ended.stderr.contains("cut.gz: "), "{}", ended.stderr);
    place.file("empty", "");
    // Whoever feeds nothing has most likely made nothing to feed: `vespa feed` fails, too.
    let ended = feed(&place, &target.url, &["empty"]).expect(3);
    assert!(ended.stderr.contains("the input holds no operation"), "{}", ended.stderr);
    // What was fed before is another matter.
    place.file("one", puts(0, 1));
    feed(&place, &target.url, &["one", "--skip", "1"]).expect(0);
    let (status, _) =
        curl(&[&format!("{}/document/v1/plimsoll/doc/docid/0%2F%C3%A6%20%2B", target.url)]);
    assert_eq!(status, 200, "what came before the cut is fed");
}
