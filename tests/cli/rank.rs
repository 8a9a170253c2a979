//! plimsoll serve rank, by raw frames and by HTTP.

use crate::process::{PATIENCE, Place, Target, curl, stolen_while};
use plimsoll_wire::rank::{KIND_RANK, RESPONSE_HEADER_BYTES, RequestHeader, ResponseHeader};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A server that is ready at once and does little.
const SMALL: [&str; 19] = [
    "rank",
    "--scale",
    "9",
    "--walk-calls",
    "1000",
    "--stories",
    "6",
    "--reply-stories",
    "6",
    "--objects",
    "4",
    "--chase-entries",
    "1000",
    "--wait",
    "3ms",
    "--compress",
    "10kB",
    "--request-max",
    "4kB",
];

fn small(more: &[&'static str]) -> Vec<&'static str> {
    SMALL.iter().chain(more).copied().collect()
}

fn connect(target: &Target) -> TcpStream {
    let stream = TcpStream::connect((target.host.as_str(), target.port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

fn frame(request_id: u64, payload: &[u8]) -> Vec<u8> {
    let payload_bytes = payload.len() as u32;
    let header = RequestHeader { kind: 0, request_id, start_time_ns: 77, payload_bytes };
    [header.encode().as_slice(), payload].concat()
}

fn reply(stream: &mut TcpStream) -> (ResponseHeader, Vec<u8>) {
    let mut header = [0; RESPONSE_HEADER_BYTES];
    stream.read_exact(&mut header).unwrap();
    let header = ResponseHeader::decode(&header);
    let mut payload = vec![0; header.payload_bytes as usize];
    stream.read_exact(&mut payload).unwrap();
    (header, payload)
}

#[test]
fn rank_says_where_it_is_in_both_languages_and_stops_when_told() {
    for signal in [Signal::TERM, Signal::INT] {
        let place = Place::new();
        let target = place.serve(&small(&["--ready-file", "ready.txt"]));
        let address = format!("{}:{}", target.host, target.port);
        let line = format!("ready rank rank://{address} http://{address}\n");
        assert_eq!(place.read("ready.txt"), line);
        // One request is under way when the signal comes.
        let mut stream = connect(&target);
        stream.write_all(&frame(1, b"")).unwrap();
        assert_eq!(reply(&mut stream).0.request_id, 1);
        target.process.signal(signal);
        let ended = target.process.wait(Duration::from_secs(10)).expect(0);
        assert_eq!((ended.stdout, ended.stderr), (line, String::new()));
    }
}

#[test]
fn rank_answers_the_same_bytes_for_the_same_seed() {
    let payloads = |seed: &'static str| -> Vec<Vec<u8>> {
        let place = Place::new();
        let target = place.serve(&small(&["--seed", seed, "--reply", "cdf:0.5=2kB,1=9kB"]));
        let mut stream = connect(&target);
        // All at once on one connection: replies come in any order, and the id names them.
        let all: Vec<u8> = (0..8).flat_map(|id| frame(id, &[b'a'; 3_000])).collect();
        stream.write_all(&all).unwrap();
        let mut replies: Vec<_> = (0..8).map(|_| reply(&mut stream)).collect();
        replies.sort_by_key(|(header, _)| header.request_id);
        for (id, (header, payload)) in replies.iter().enumerate() {
            assert_eq!((header.kind, header.request_id), (KIND_RANK, id as u64));
            assert_eq!((header.start_time_ns, payload.len() >= 2_000), (77, true));
            assert!(header.processing_time_ns >= 3_000_000, "the wait is 3 ms: {header:?}");
        }
        replies.into_iter().map(|(_, payload)| payload).collect()
    };
    let first = payloads("5");
    assert_eq!(first, payloads("5"));
    assert!(first.iter().zip(payloads("6")).all(|(a, b)| *a != b));
    assert!(first.iter().any(|payload| payload.len() > 2_000));
}

#[test]
fn rank_survives_what_is_no_frame() {
    let place = Place::new();
    let target = place.serve(&small(&[]));
    let mut wrong_kind = frame(1, b"");
    wrong_kind[0] = 0;
    wrong_kind[3] = 1;
    let mut huge = frame(1, b"");
    huge[20..].fill(0xff);
    let too_long = frame(1, &[0; 4_001]);
    for bytes in [&wrong_kind[..], &huge, &too_long[..24], b"\xff\xff\xff\xff"] {
        let mut stream = connect(&target);
        stream.write_all(bytes).unwrap();
        let mut rest = Vec::new();
        // The server closes; bytes that it has not read may turn the end into a reset.
        let _ = stream.read_to_end(&mut rest);
        assert_eq!(rest, b"");
    }
    let mut cut = connect(&target);
    cut.write_all(&frame(1, b"abc")[..20]).unwrap();
    drop(cut);
    let mut stream = connect(&target);
    stream.write_all(&frame(9, b"abc")).unwrap();
    assert_eq!(reply(&mut stream).0.request_id, 9);
    crate::process::until("bad bytes are counted", PATIENCE, || {
        let bad = target.stats()["bad"].clone();
        bad == serde_json::json!({"cut": 1, "kind": 1, "length": 2, "start": 1})
    });
    let (_, page) = curl(&[&format!("{}/metrics", target.url)]);
    assert!(page.contains("plimsoll_rank_bad_total{reason=\"length\"} 2"), "{page}");
}

#[test]
fn rank_serves_scores_that_add_up() {
    let place = Place::new();
    let target = place.serve(&small(&[]));
    let (status, body) =
        curl(&["-d", "x=1", "-o", "/dev/null", &format!("{}/rank?id=4", target.url)]);
    assert_eq!((status, body.as_str()), (200, ""));
    let (status, body) = curl(&[&format!("{}/pagerank?iterations=50&top=all", target.url)]);
    assert_eq!(status, 200, "{body}");
    let page: serde_json::Value = serde_json::from_str(&body).unwrap();
    let scores: Vec<f64> = serde_json::from_value(page["scores"].clone()).unwrap();
    assert_eq!(scores.len(), 512);
    assert!((scores.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    assert!(scores.iter().all(|score| *score > 0.15 / 512.0 * 0.99));
    assert_eq!(target.stats()["stages"]["walk"]["cpu"]["count"], 1);
}

#[test]
fn rank_refuses_numbers_that_make_no_sense() {
    let place = Place::new();
    for (args, text) in [
        (&["--scale", "40"][..], "the scale of the graph is 40, but must be between 1 and 26"),
        (&["--threads", "0"], "--threads is 0"),
        (&["--reply", "cdf:0.5=1kB"], "point 1 does not"),
        (&["--scale", "26", "--degree", "256"], "MB are available; give a smaller --scale"),
        (&["--preset", "maxi"], "write mini or feedsim"),
    ] {
        let ended = place.run(["serve", "rank"].iter().chain(args)).expect(64);
        assert!(ended.stderr.contains(text), "{args:?}: {}", ended.stderr);
    }
}

#[test]
fn fixed_rates_fill_feedsims_table_and_instances_step_together() {
    let place = Place::alone();
    let args = [
        "rank",
        "-q",
        "10,20",
        "-d",
        "3",
        "-w",
        "1",
        "-n",
        "2",
        "--scale",
        "10",
        "-i",
        "1000",
        "-o",
        "table.csv",
        "--slo",
        "p95=5s",
        "--json",
        "-",
    ];
    let (ended, stolen) = stolen_while(|| place.start(args).wait(Duration::from_secs(120)));
    // A machine that is busy may make the generator late; the figures are what matters here.
    assert!(matches!(ended.code, Some(0 | 3)), "{ended:?}");
    let table = place.read("table.csv");
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), 3, "{table}");
    assert!(lines.iter().all(|line| line.len() == 15), "{table}");
    assert_eq!((lines[0][0], lines[0][14]), ("duration_secs", "99.9p_ms"));
    // As in FeedSim's script a rate is that of each instance, and there are two.
    assert_eq!((lines[1][2], lines[2][2]), ("20", "40"));
    // A request is 3000 bytes behind a header of 24.
    let number = |text: &str| text.parse::<f64>().unwrap();
    assert_eq!(number(lines[2][5]), number(lines[2][1]) * 3024.0, "{table}");
    let record = crate::record::Record::of(&ended);
    record.expect_balanced();
    let instances = record.0["rank"]["instances"].as_array().unwrap();
    assert_eq!(instances.len(), 2);
    let answered: f64 = instances.iter().map(|one| one["achieved_per_s"].as_f64().unwrap()).sum();
    // Replies that the host holds up come after the end of a step, here of one instance, there of both.
    let allowed = if stolen > 0.02 { 20.0 } else { 2.0 };
    let overall = record.number("/rank/overall/achieved_per_s");
    assert!((answered - overall).abs() < allowed, "{answered}, {overall}, {stolen:.3} stolen");
    let runs = record.0["rank"]["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    // On one clock: each rate goes to both at the same time, in turns, so neither gets more than one more.
    let classes: Vec<u64> = ["instance 1", "instance 2"]
        .map(|name| record.count(&format!("/classes/{name}/sent")))
        .to_vec();
    assert!(classes[0].abs_diff(classes[1]) <= 6, "{classes:?}");
    // The whole is the histograms' sum, not a mean of percentiles.
    let p95 = |at: &str| record.number(&format!("/rank/{at}/p95_ms"));
    let (one, two) = (p95("instances/0"), p95("instances/1"));
    let all = p95("overall");
    assert!(one.min(two) * 0.999 <= all && all <= one.max(two) * 1.001, "{one} {two} {all}");
    assert_eq!(record.count("/rank/successful_instances"), 2);
    let text = place.run(["report", "--format", "benchpress"]).expect(0).stdout;
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    let metrics = &report["metrics"];
    assert_eq!(metrics["1"]["final_requested_qps"].as_f64(), Some(20.0));
    assert_eq!(metrics["overall"]["final_requested_qps"].as_f64(), Some(40.0));
    assert_eq!(metrics["spawned_instances"], 2);
    assert!(metrics.get("target_percentile").is_none(), "a fixed rate seeks no limit");
}

#[test]
fn instances_that_do_not_do_the_same_are_called_out() {
    let place = Place::busy();
    let whole = place.serve(&small(&[]));
    // One request at a time, so that it refuses what comes in between.
    let slow = place.serve(&["rank", "--scale", "9", "--wait", "200ms", "--in-flight-max", "1"]);
    let url = |target: &Target| target.url.replace("http://", "rank://");
    let (whole, slow) = (url(&whole), url(&slow));
    let args = [
        "rank",
        "--target",
        &whole,
        "--target",
        &slow,
        "-q",
        "15",
        "-d",
        "4",
        "-w",
        "0",
        "--verbose",
    ];
    let ended = place.start(args).wait(Duration::from_secs(60));
    assert!(matches!(ended.code, Some(2 | 3)), "{ended:?}");
    for part in ["\nInstances, last run  ", "answers lie ", "% apart"] {
        assert!(ended.stdout.contains(part), "no {part:?} in\n{}", ended.stdout);
    }
    let json = place.run(["report", "--format", "json"]).expect(0).stdout;
    let record: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(record["rank"]["spread"].as_f64().unwrap() > 0.1, "{}", record["rank"]);
    let instances = record["rank"]["instances"].as_array().unwrap();
    assert_eq!(instances[0]["failed"], 0);
    assert!(instances[1]["failed"].as_u64().unwrap() > 5, "{instances:?}");
}

#[test]
fn servers_that_do_not_answer_are_no_valid_result() {
    let place = Place::new();
    let url = format!("rank://127.0.0.1:{}", crate::server::refusing_port());
    for method in [&["-q", "20"][..], &["--strategy", "mutilate"], &[]] {
        let flags = ["rank", "--target", &url, "-d", "2", "-w", "0", "--budget", "10s"];
        let ended = place.start([&flags, method].concat()).wait(Duration::from_secs(90)).expect(4);
        assert!(ended.stderr.contains("target-failed"), "{}", ended.stderr);
    }
}

#[test]
fn a_client_that_never_reads_does_not_hold_its_connection() {
    let place = Place::new();
    let target = place.serve(&small(&["--reply", "fixed:16MiB"]));
    let mut stream = connect(&target);
    stream.write_all(b"GET /rank HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let open = || target.stats()["connections"]["open"].as_u64().unwrap();
    crate::process::until("the reply is under way", PATIENCE, || open() >= 2);
    // The connection that asks for this is one itself.
    let began_ns = plimsoll_core::clock::now_ns();
    crate::process::until("the connection is given up", Duration::from_secs(40), || open() == 1);
    assert!(plimsoll_core::clock::now_ns() - began_ns > 5_000_000_000, "given up too early");
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(rest.len() < 16 << 20, "the whole reply came in spite of it");
    assert_eq!(curl(&["-o", "/dev/null", &format!("{}/rank", target.url)]).0, 200);
}

#[test]
fn a_search_ends_with_a_run_at_the_certified_rate() {
    let place = Place::alone();
    let args = [
        "rank", "--budget", "48s", "--width", "20%", "-d", "2", "--scale", "10", "-i", "1000",
        "--slo", "p95=40ms", "--json", "-",
    ];
    let (ended, stolen) = stolen_while(|| place.start(args).wait(Duration::from_secs(300)));
    let record = crate::record::Record::of(&ended);
    record.expect_balanced();
    if record.was_held_up(stolen) {
        return;
    }
    // The runs begin at the rate that the search found, which may be its interval's lower end.
    let found = &record.0["seek"];
    let runs = record.0["rank"]["runs"].as_array().unwrap();
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    let searched = number(&found["searched_rate_per_s"]);
    assert!((number(&runs[0]["requested_qps"]) / searched - 1.0).abs() < 1e-9);
    // A run of 2 s is too short for a budget of 48 s: the last one is as long as one that certifies a rate.
    let last = runs.last().unwrap();
    assert!(number(&last["duration_secs"]) >= 4.0, "{last}");
    // The last run is the headline; if it missed, no rate is certified.
    let held = last["held"].as_bool().unwrap();
    let text = place.run(["report"]).expect(0).stdout;
    if held {
        ended.expect(0);
        assert_eq!(found["certified_rate_per_s"], last["requested_qps"]);
        assert_eq!(number(&found["certified"]["seconds"]), number(&last["duration_secs"]));
        assert!(text.contains("requests/s hold the limits"), "{text}");
    } else {
        ended.expect(3);
        assert!(found["certified_rate_per_s"].is_null() && found["certified"].is_null());
        assert!(text.contains("no rate was certified"), "{text}");
        assert!(!text.contains("hold the limits"), "{text}");
    }
    assert!(place.read("feedsim_results.txt").lines().count() == runs.len() + 1);
    let text = place.run(["report", "--format", "benchpress"]).expect(0).stdout;
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["metrics"]["target_percentile"], "95p");
    assert_eq!(report["metrics"]["target_latency_msec"].as_f64(), Some(40.0));
}

#[test]
fn a_benchmark_without_time_or_that_is_stopped_certifies_nothing() {
    let place = Place::busy();
    let target = place.serve(&small(&[]));
    let url = target.url.replace("http://", "rank://");
    let args = ["rank", "--target", &url, "--slo", "p95=100ms", "--json", "-"];
    let short = place.start([&args[..], &["--budget", "1s"]].concat()).wait(PATIENCE).expect(3);
    assert_eq!(crate::record::Record::of(&short).verdict(), "budget-too-small");
    let before = target.stats()["stages"]["walk"]["cpu"]["count"].as_u64().unwrap_or(0);
    let stopped = place.start(args);
    crate::process::until("load is offered", PATIENCE, || {
        target.stats()["stages"]["walk"]["cpu"]["count"].as_u64().unwrap_or(0) > before + 20
    });
    stopped.signal(Signal::INT);
    let stopped = stopped.wait(PATIENCE).expect(3);
    assert_eq!(crate::record::Record::of(&stopped).verdict(), "partial");
    for ended in [short, stopped] {
        let record = crate::record::Record::of(&ended);
        record.expect_schema();
        assert!(record.0["seek"]["certified_rate_per_s"].is_null(), "{}", record.0["seek"]);
        assert!(record.0["seek"]["estimate_per_s"].is_null(), "{}", record.0["seek"]);
        let text = place.run(["report", record.text("/run_id")]).expect(0).stdout;
        assert!(text.contains("no rate was certified"), "{text}");
        assert!(!text.contains("hold the limits"), "{text}");
    }
}

#[test]
fn wrong_words_for_the_benchmark_are_refused() {
    let place = Place::new();
    for (flags, word) in [
        (&["-q", "0"][..], "-q"),
        (&["-q", "ten"], "ten"),
        (&["-d", "0"], "-d"),
        (&["-t", "0"], "--threads is 0"),
        (&["--scale", "40"], "scale"),
        (&["-n", "0"], "-n"),
        (&["-n", "2", "--target", "rank://127.0.0.1:1"], "-n"),
        (&["--target", "http://127.0.0.1:1"], "rank://"),
        (&["--slo", "p95=0s"], "p95=0"),
        (&["--budget", "0s"], "--budget"),
        (&["--strategy", "guess"], "guess"),
    ] {
        let mut args = vec!["rank"];
        args.extend(flags);
        let ended = place.run(args).expect(64);
        assert_eq!(ended.stderr.trim_end().lines().count(), 1, "{}", ended.stderr);
        assert!(ended.stderr.contains(word), "no {word:?} in {}", ended.stderr);
    }
}
