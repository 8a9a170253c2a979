//! `plimsoll visit` against the embedded server: every document once, in whatever way it is asked for, and after
//! any number of kills.

mod strange;

use crate::faults::{Fault, Faults};
use crate::process::{Ended, Place, Target, curl, until};
use crate::record::Record;
use crate::server::refusing_port;
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(120);

/// Feeds documents 0 to `count` over HTTP/2 and returns their ids.
fn feed(place: &Place, target: &Target, count: u32) -> BTreeSet<String> {
    let mut requests = String::new();
    for i in 0..count {
        // Writing into a string does not fail.
        let _ = writeln!(
            requests,
            "{{\"method\":\"POST\",\"path\":\"/document/v1/plimsoll/doc/docid/{i}\",\
             \"body\":{{\"fields\":{{\"title\":\"number {i} \\u00e6 \\\"}}\",\"score\":{i}}}}}}}"
        );
    }
    let file = place.file("feed.ndjson", requests);
    let requests = count.to_string();
    let args = [
        "load",
        target.url.as_str(),
        "--http2",
        "--queries",
        file.to_str().unwrap(),
        "--clients",
        "64",
        "--requests",
        &requests,
        "--duration",
        "100s",
        "--json",
        "-",
    ];
    let record = Record::of(&place.start(args).wait(LONG).expect(0));
    assert_eq!((record.ok(), record.sent()), (u64::from(count), u64::from(count)));
    // Sixty-four clients share two connections.
    assert_eq!(record.count("/counters/connects"), 2, "{}", record.0["counters"]);
    (0..count).map(|i| format!("id:plimsoll:doc::{i}")).collect()
}

fn visit(place: &Place, target: &Target, flags: &[&str]) -> Ended {
    let mut args = vec!["visit", target.url.as_str(), "--cluster", "plimsoll", "--quiet"];
    args.extend(flags);
    place.start(args).wait(LONG)
}

/// The ids of a file of documents, each of which must be there once.
fn ids(text: &str, key: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for line in text.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(line["fields"].is_object(), "{line}");
        let id = line[key].as_str().unwrap().to_owned();
        assert!(all.insert(id.clone()), "{id} is there twice");
    }
    all
}

fn unpacked(place: &Place, program: &str, file: &str) -> String {
    let mut command = std::process::Command::new(program);
    let output = command.args(["-dc", file]).current_dir(place.path()).output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_way_brings_the_same_documents() {
    let place = Place::new();
    let target = place.serve(&["search"]);
    let fed = feed(&place, &target, 3000);
    let mut digests = BTreeSet::new();
    let ways: [&[&str]; 5] = [
        &["--slices", "1"],
        &["--slices", "8"],
        &["--slices", "3", "--threads", "2", "--concurrency", "4"],
        &["--slices", "5", "--chunked", "--wanted", "100"],
        &["--slices", "auto"],
    ];
    for (index, way) in ways.into_iter().enumerate() {
        let name = format!("dump-{index}.ndjson");
        let mut flags = vec!["--out", &name, "--json", "-"];
        flags.extend(way);
        let record = Record::of(&visit(&place, &target, &flags).expect(0));
        assert_eq!(record.count("/visit/documents"), 3000, "{way:?}");
        assert_eq!(record.0["visit"]["complete"], true);
        assert_eq!(record.count("/visit/duplicates"), 0);
        assert_eq!(
            record.count("/visit/document_count_claimed"),
            record.count("/visit/document_count_received")
        );
        let form = if way.contains(&"--chunked") { "object" } else { "lines" };
        assert_eq!(record.text("/visit/form"), form);
        digests.insert(record.text("/visit/id_digest").to_owned());
        assert_eq!(ids(&place.read(&name), "id"), fed, "{way:?}");
        record.expect_balanced();
    }
    assert_eq!(digests.len(), 1, "{digests:?}");
    let text = place.run(["report", "--verbose"]).expect(0).stdout;
    for part in ["3,000 documents", "Complete", "digest", "first byte"] {
        assert!(text.contains(part), "no '{part}' in\n{text}");
    }
}

#[test]
fn documents_go_where_they_are_wanted() {
    let place = Place::new();
    let target = place.serve(&["search"]);
    let fed = feed(&place, &target, 500);
    let out = visit(&place, &target, &["--slices", "2"]).expect(0);
    assert_eq!(ids(&out.stdout, "id"), fed);
    visit(&place, &target, &["--slices", "2", "--out", "d.json.gz"]).expect(0);
    assert_eq!(ids(&unpacked(&place, "gzip", "d.json.gz"), "id"), fed);
    visit(&place, &target, &["--slices", "4", "--out-dir", "parts"]).expect(0);
    let mut parts = String::new();
    for entry in std::fs::read_dir(place.path().join("parts")).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        assert!(!text.is_empty());
        parts += &text;
    }
    assert_eq!(ids(&parts, "id"), fed);
    let flags = ["--slices", "2", "--format", "vespa-feed", "--selection", "doc.score < 10"];
    let out = visit(&place, &target, &flags).expect(0);
    let expected: BTreeSet<String> = (0..10).map(|i| format!("id:plimsoll:doc::{i}")).collect();
    assert_eq!(ids(&out.stdout, "put"), expected);
}

#[test]
fn a_visit_that_is_killed_goes_on_where_it_was() {
    let place = Place::new();
    let target = place.serve(&["search"]);
    let fed = feed(&place, &target, 4000);
    let mut kills = 0;
    for round in 0..40 {
        let args = [
            "visit",
            target.url.as_str(),
            "--cluster",
            "plimsoll",
            "--quiet",
            "--no-record",
            "--slices",
            "4",
            "--chunked",
            "--wanted",
            "20",
            "--out",
            "dump.ndjson",
            "--resume",
            "state",
        ];
        let mut running = place.start(args);
        let pause = Duration::from_millis(20 + 37 * (round % 7));
        std::thread::sleep(pause);
        if !running.is_running() {
            running.wait(LONG).expect(0);
            break;
        }
        running.signal(Signal::KILL);
        running.wait(LONG);
        kills += 1;
    }
    // However fast the machine is, it ends in order in the end.
    let flags = ["--slices", "4", "--out", "dump.ndjson", "--resume", "state", "--json", "-"];
    let record = Record::of(&visit(&place, &target, &flags).expect(0));
    assert_eq!(record.count("/visit/documents"), 4000, "after {kills} kills");
    assert_eq!(ids(&place.read("dump.ndjson"), "id"), fed, "after {kills} kills");
}

#[test]
fn a_container_that_goes_takes_nothing_with_it() {
    let place = Place::new();
    let target = place.serve(&["search", "--containers", "2"]);
    let fed = feed(&place, &target, 6000);
    let second = &target.urls[1];
    let args = [
        "visit",
        &target.url,
        second,
        "--cluster",
        "plimsoll",
        "--quiet",
        "--slices",
        "6",
        "--chunked",
        "--wanted",
        "10",
        "--out",
        "dump.ndjson",
        "--json",
        "-",
    ];
    let running = place.start(args);
    let some = || place.path().join("dump.ndjson").exists();
    until("the visit has begun", Duration::from_secs(20), some);
    let (status, _) = curl(&["-X", "POST", &format!("{second}/plimsoll/v1/container/stop")]);
    assert_eq!(status, 200);
    let record = Record::of(&running.wait(LONG).expect(0));
    assert_eq!(record.0["visit"]["complete"], true);
    assert_eq!(ids(&place.read("dump.ndjson"), "id"), fed);
}

/// The same where one is gone from the beginning, whichever it is, and one slice must find the other.
#[test]
fn a_container_that_is_gone_is_passed_by() {
    let place = Place::new();
    let target = place.serve(&["search"]);
    let fed = feed(&place, &target, 100);
    let gone = format!("http://127.0.0.1:{}", refusing_port());
    for urls in [[gone.as_str(), target.url.as_str()], [target.url.as_str(), gone.as_str()]] {
        let args = ["--cluster", "plimsoll", "--quiet", "--slices", "1", "--retries", "2"];
        let more = ["--chunked", "--wanted", "10", "--out", "dump.ndjson", "--json", "-"];
        let args = [&["visit"], &urls[..], &args, &more].concat();
        let record = Record::of(&place.start(args).wait(LONG).expect(0));
        assert_eq!(record.0["visit"]["complete"], true, "{urls:?}");
        assert_eq!(ids(&place.read("dump.ndjson"), "id"), fed, "{urls:?}");
    }
}

/// Everything in the end, whatever happens to the replies on their way.
#[track_caller]
fn complete_in_spite_of(
    what: &str,
    form: &[&str],
    plan: impl Fn(usize, &str) -> Fault + Send + Sync + 'static,
) {
    let place = Place::new();
    let target = place.serve(&["search"]);
    let fed = feed(&place, &target, 2000);
    let proxy = Faults::start(&format!("{}:{}", target.host, target.port), plan);
    let mut args = vec!["visit", "--cluster", "plimsoll", "--quiet", "--out", "dump.ndjson"];
    let url = proxy.url();
    args.extend(["--json", "-", "--slices", "2", &url]);
    args.extend(form);
    let record = Record::of(&place.start(args).wait(LONG).expect(0));
    assert!(proxy.spoilt() > 0, "{what}: nothing was spoilt");
    assert_eq!(record.count("/visit/documents"), 2000, "{what}");
    assert_eq!(record.0["visit"]["complete"], true, "{what}");
    assert_eq!(ids(&place.read("dump.ndjson"), "id"), fed, "{what}");
    record.expect_balanced();
}

const CHUNKED: [&str; 3] = ["--chunked", "--wanted", "100"];

/// Every third reply of a visit is spoilt, somewhere else each time; requests of other kinds pass.
fn every_third(fault: fn(usize) -> Fault) -> impl Fn(usize, &str) -> Fault + Send + Sync {
    move |number, head| {
        let is_visit = head.contains("sliceId");
        if is_visit && number % 3 == 0 { fault(1 + number * 7919 % 20_000) } else { Fault::None }
    }
}

#[test]
fn replies_that_are_cut_are_asked_for_again() {
    for form in [&[][..], &CHUNKED] {
        complete_in_spite_of("cut", form, every_third(Fault::Cut));
        complete_in_spite_of("reset", form, every_third(Fault::Reset));
    }
}

#[test]
fn replies_that_end_too_early_in_order_are_recognised() {
    for form in [&[][..], &CHUNKED] {
        complete_in_spite_of("truncated", form, every_third(Fault::Truncate));
    }
}

#[test]
fn an_error_in_the_middle_of_a_stream_is_no_end() {
    complete_in_spite_of("error line", &[], every_third(Fault::ErrorLine));
}

#[test]
fn bursts_of_rejections_are_waited_out() {
    for form in [&[][..], &CHUNKED] {
        complete_in_spite_of("429 and 503", form, |number, _| match number {
            1..=3 => Fault::Status(429),
            5..=7 => Fault::Status(503),
            _ => Fault::None,
        });
    }
}

#[test]
fn a_slice_that_never_comes_is_named() {
    let place = Place::new();
    let target = place.serve(&["search"]);
    let fed = feed(&place, &target, 500);
    let upstream = format!("{}:{}", target.host, target.port);
    let proxy = Faults::start(&upstream, |_, head| {
        if head.contains("sliceId=1") { Fault::Status(503) } else { Fault::None }
    });
    let url = proxy.url();
    let args = [
        "visit",
        &url,
        "--cluster",
        "plimsoll",
        "--slices",
        "2",
        "--retries",
        "2",
        "--out",
        "dump.ndjson",
    ];
    let ended = place.start(args).wait(LONG).expect(3);
    assert!(ended.stderr.contains("slice 1"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("slice 0"), "{}", ended.stderr);
    let some = ids(&place.read("dump.ndjson"), "id");
    assert!(some.is_subset(&fed) && !some.is_empty() && some.len() < fed.len());
}

#[test]
fn what_is_missing_is_named() {
    let place = Place::new();
    let target = place.serve(&["search"]);
    feed(&place, &target, 50);
    let ended = visit(&place, &target, &["--selection", "doc.score >", "--slices", "2"]).expect(4);
    assert!(ended.stderr.contains("HTTP 400"), "{}", ended.stderr);
    let url = target.url.clone();
    drop(target);
    let out = ["--out", "dump.ndjson"];
    let args = [&["visit", &url, "--slices", "2", "--no-record", "--quiet"], &out[..]].concat();
    let ended = place.start(args).wait(LONG).expect(4);
    assert!(ended.stderr.contains("nothing is listening there"), "{}", ended.stderr);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    assert!(ended.took < Duration::from_secs(6), "{:?}", ended.took);
    // What was visited before is still there.
    assert!(!place.path().join("dump.ndjson").exists());
}

#[test]
fn slices_are_visited_one_by_one() {
    let place = Place::new();
    let target = place.serve(&["search"]);
    let fed = feed(&place, &target, 900);
    let mut union = BTreeSet::new();
    for id in ["0", "1", "2"] {
        let out = visit(&place, &target, &["--slices", "3", "--slice-id", id]).expect(0);
        let part = ids(&out.stdout, "id");
        assert!(!part.is_empty() && union.is_disjoint(&part), "slice {id}");
        union.extend(part);
    }
    assert_eq!(union, fed);
    // Packed replies bring the same.
    let flags = ["--gzip", "--slices", "2", "--out", "dump", "--json", "-"];
    let packed = Record::of(&visit(&place, &target, &flags).expect(0));
    assert_eq!(ids(&place.read("dump"), "id"), fed);
    let plain = Record::of(&visit(&place, &target, &flags[1..]).expect(0));
    assert!(packed.count("/visit/bytes") * 2 < plain.count("/visit/bytes"));
    assert_eq!(packed.text("/visit/id_digest"), plain.text("/visit/id_digest"));
}

#[test]
fn wrong_words_are_refused_before_anything_is_asked() {
    let place = Place::new();
    for (flags, word) in [
        (&["--slices", "0"][..], "--slices"),
        (&["--slices", "x"], "--slices"),
        (&["--from", "yesterday"], "--from"),
        (&["--bucket-space", "outer"], "outer"),
        (&["--json", "-"], "--out"),
        (&["--resume", "state"], "--out"),
        (&["--compress", "gzip"], "--out"),
        (&["--threads", "0"], "--threads"),
        (&["--request-timeout", "0s"], "--request-timeout"),
        (&["--slices", "4", "--selection", "id.user == 7"], "--slices 1"),
        (&["--slice-id", "1"], "--slices N"),
        (&["--slices", "2", "--slice-id", "2"], "below --slices"),
        (&["--from", "2026-11-22T10:00:00+25:00"], "+02:00"),
    ] {
        let mut args = vec!["visit", "http://127.0.0.1:1/"];
        args.extend(flags);
        let ended = place.run(args).expect(64);
        assert_eq!(ended.stderr.trim_end().lines().count(), 1, "{}", ended.stderr);
        assert!(ended.stderr.contains(word), "no {word:?} in {}", ended.stderr);
    }
    let document = "http://127.0.0.1:1/document/v1/plimsoll/doc/docid/7";
    let ended = place.run(["visit", document]).expect(64);
    assert!(ended.stderr.contains("is a document, not a collection"), "{}", ended.stderr);
    let ended = place.run(["visit", "http://127.0.0.1:1/search/"]).expect(64);
    assert!(ended.stderr.contains("is not a collection"), "{}", ended.stderr);
}
