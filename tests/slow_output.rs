//! `plimsoll visit` whose output takes its time: a pipe that is not read, a disk that is full. It costs the visit time, and
//! no figure of the target.

use crate::process::{Place, Target};
use crate::record::Record;
use rustix::process::Signal;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(120);
const DOCUMENTS: u32 = 12_000;

/// A server with some 36 MB of documents: more than twice of what waits for an output.
fn filled(place: &Place) -> Target {
    let target = place.serve(&["search", "--durability", "none"]);
    let mut text = String::new();
    let body = "words of some length ".repeat(140);
    for i in 0..DOCUMENTS {
        let fields = format!("{{\"body\":\"{body}\",\"score\":{i}}}");
        let _ = writeln!(text, "{{\"put\":\"id:plimsoll:doc::{i}\",\"fields\":{fields}}}");
    }
    place.file("in", text);
    place.start(["feed", &target.url, "in", "--quiet", "--no-record"]).wait(LONG).expect(0);
    target
}

/// A pipe, and somebody who reads it to its end after this time; the lines that came.
fn pipe(place: &Place, name: &str, after: Duration) -> JoinHandle<usize> {
    let path: PathBuf = place.path().join(name);
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    std::thread::spawn(move || {
        let mut pipe = File::open(path).unwrap();
        std::thread::sleep(after);
        let mut all = Vec::new();
        pipe.read_to_end(&mut all).unwrap();
        all.iter().filter(|byte| **byte == b'\n').count()
    })
}

fn visit(place: &Place, target: &Target, form: &[&str], code: i32) -> Record {
    let args = ["visit", &target.url, "--quiet", "--slices", "2", "--json", "-"];
    let ended = place.start([&args[..], form].concat()).wait(LONG).expect(code);
    Record::of(&ended)
}

#[test]
fn a_pipe_that_is_not_read_enters_no_time_of_the_target() {
    let place = Place::alone();
    let target = filled(&place);
    for form in [&[][..], &["--chunked", "--wanted", "200"]] {
        let null = visit(&place, &target, &[form, &["--out", "/dev/null"]].concat(), 0);
        let name = if form.is_empty() { "streamed" } else { "chunked" };
        let reader = pipe(&place, name, Duration::from_secs(4));
        let slow = visit(&place, &target, &[form, &["--out", name]].concat(), 3);
        assert_eq!(reader.join().unwrap(), DOCUMENTS as usize);
        let page = place.run(["report"]).stdout;
        // A long line goes on below.
        let mut lines = page.lines().skip_while(|line| !line.starts_with("Limit "));
        let first = lines.next().unwrap();
        let below = lines.take_while(|line| line.starts_with(' '));
        let limit: Vec<_> = std::iter::once(first).chain(below).collect();
        crate::docs::expect_sample("docs/visit.md", "slow output", &limit.join("\n"));
        let limited_s = slow.number("/visit/output_limited_s");
        assert!((2.0..5.0).contains(&limited_s), "{form:?}: {limited_s} s");
        assert_eq!(null.number("/visit/output_limited_s"), 0.0);
        // All is there, and how fast it came is not the target's speed.
        assert!(slow.0["visit"]["complete"].as_bool().unwrap());
        assert_eq!(slow.verdict(), "generator-limited");
        let reason = slow.0["verdict"]["reasons"][0].as_str().unwrap();
        assert!(reason.starts_with("the output was slower than the documents"), "{reason}");
        for name in ["/visit/documents", "/visit/document_count_claimed"] {
            assert_eq!(slow.count(name), null.count(name), "{name}");
        }
        // Four seconds passed; no request has felt them, nor has the sum of all.
        let ms = |record: &Record, name: &str| record.number(name);
        for name in
            ["/visit/first_byte_ms/p50", "/latency_ms/service/p50", "/latency_ms/response/p50"]
        {
            let (slow_ms, null_ms) = (ms(&slow, name), ms(&null, name));
            assert!(slow_ms < 3.0 * null_ms + 100.0, "{form:?} {name}: {slow_ms}, {null_ms}");
        }
        let longest_ms = ms(&slow, "/latency_ms/response/max");
        assert!(longest_ms < ms(&null, "/latency_ms/response/max") * 2.0 + 1000.0, "{longest_ms}");
        // What waits is bounded, whatever the corpus is.
        let more_bytes =
            slow.number("/generator/rss_max_bytes") - null.number("/generator/rss_max_bytes");
        assert!(more_bytes < 40e6, "{more_bytes} bytes more");
        let text = place.run(["report"]).expect(0).stdout;
        assert!(text.contains("the output was the limit for"), "{text}");
    }
}

#[test]
fn a_pipe_that_nobody_reads_does_not_outlive_a_signal() {
    let place = Place::new();
    let target = filled(&place);
    let path = place.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let held = std::thread::spawn(move || File::open(path).unwrap());
    let args = ["visit", &target.url, "--quiet", "--slices", "2", "--out", "pipe"];
    let running = place.start(args);
    let held = held.join().unwrap();
    std::thread::sleep(Duration::from_secs(2));
    running.signal(Signal::INT);
    let ended = running.wait(Duration::from_secs(10)).expect(3);
    assert!(ended.took < Duration::from_secs(7), "{:?}", ended.took);
    assert!(ended.stderr.contains("stopped"), "{}", ended.stderr);
    assert!(ended.stdout.contains("the output did not accept"), "{}", ended.stdout);
    drop(held);
}

#[test]
fn a_full_disk_ends_the_visit_with_one_line() {
    let place = Place::new();
    let target = filled(&place);
    let args = ["visit", &target.url, "--quiet", "--slices", "2", "--out", "/dev/full"];
    let ended = place.start(args).wait(LONG).expect(3);
    let text = "the documents cannot be written: No space left on device";
    assert_eq!(ended.stderr.matches(text).count(), 1, "{}", ended.stderr);
    assert_eq!(ended.stderr.trim_end().lines().count(), 1, "{}", ended.stderr);
    assert!(ended.stdout.contains("Complete   NO"), "{}", ended.stdout);
}
