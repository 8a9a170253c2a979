//! Receivers that are gone, slow, or say no.

use crate::process::{Ended, Place};
use crate::record::Record;
use crate::server::{Server, Step, closed_port};
use std::time::Duration;

/// A run with an outlet.
fn run(place: &Place, seconds: u32, flags: &[&str]) -> Ended {
    let target = place.serve(&["null"]);
    let duration = format!("{seconds}s");
    let args = ["load", &target.url, "--rate", "500", "--duration", &duration, "--no-record"];
    place.run([&args[..], flags].concat())
}

#[test]
fn a_dead_receiver_costs_exports_and_nothing_else() {
    let place = Place::new();
    let otlp = format!("http://127.0.0.1:{}", closed_port());
    let record = Record::of(&run(&place, 2, &["--otlp", &otlp, "--json", "-"]));
    record.expect_schema();
    assert_eq!(record.ok(), 1_000);
    let outlet = &record.0["outlets"][0];
    assert_eq!((&outlet["sent"], &outlet["complete"]), (&outlet["lost"], &false.into()));
    assert!(outlet["sent"].as_u64().unwrap() >= 4, "{outlet}");
    assert!(record.has_warning("were lost (connection refused: nothing is listening there)"));
}

#[test]
fn a_receiver_that_never_answers_does_not_hold_up_the_end() {
    let place = Place::new();
    let server = Server::start(|_| vec![Step::Hang]);
    let otlp = format!("http://127.0.0.1:{}", server.port());
    let before_ns = plimsoll_core::clock::now_ns();
    let record = Record::of(&run(&place, 2, &["--otlp", &otlp, "--json", "-"]));
    let took_s = (plimsoll_core::clock::now_ns() - before_ns) as f64 / 1e9;
    assert_eq!(record.ok(), 1_000);
    assert!(record.has_warning("the sums there are not those of this record"));
    // Two seconds of the run, 1.5 of goodbye, and the start of two programs.
    assert!(took_s < 8.0, "{took_s}");
}

#[test]
fn a_receiver_that_comes_back_has_the_sums_of_the_whole_run() {
    let place = Place::new();
    let server = Server::start(|seen| {
        let status = if seen.number < 2 { "503 Service Unavailable" } else { "200 OK" };
        let reply = format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\n{{}}");
        vec![Step::Send(reply.into_bytes())]
    });
    let otlp = format!("http://127.0.0.1:{}", server.port());
    let record = Record::of(&run(&place, 3, &["--otlp", &otlp, "--json", "-"]));
    let outlet = &record.0["outlets"][0];
    assert_eq!((&outlet["lost"], &outlet["complete"]), (&2.into(), &true.into()));
    assert!(record.has_warning("the last one arrived, so the sums there are complete"));
    let seen = server.seen();
    let last: serde_json::Value = serde_json::from_str(&seen.last().unwrap().body()).unwrap();
    let metrics = last["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
    let count = |name: &str| -> u64 {
        let metric = metrics.iter().find(|metric| metric["name"] == name).unwrap();
        let points = metric["sum"]["dataPoints"].as_array().unwrap();
        points.iter().map(|p| p["asInt"].as_str().unwrap().parse::<u64>().unwrap()).sum()
    };
    assert_eq!((count("plimsoll.requests.ok"), count("plimsoll.exports.lost")), (record.ok(), 2));
}

#[test]
fn secrets_of_a_receiver_are_in_no_output() {
    let place = Place::quiet();
    let server = Server::start(|seen| {
        // A receiver that repeats what it was sent.
        let text = seen.text();
        let head = text.split("\r\n\r\n").next().unwrap_or_default();
        let of_user = |line: &&str| line.contains("word-of");
        let body: String =
            head.lines().filter(of_user).map(|line| line.replace("Bearer ", "")).collect();
        let reply =
            format!("HTTP/1.1 401 Unauthorized\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        vec![Step::Send(reply.into_bytes())]
    });
    place.file("secret-header", "Authorization: Bearer word-of-a-file\n");
    let otlp = format!("http://127.0.0.1:{}/v1/metrics?token=word-of-the-address", server.port());
    let target = place.serve(&["null"]);
    let mut command = place.plimsoll([
        "load",
        &target.url,
        "--rate=100",
        "--duration=1s",
        "--stream=s.ndjson",
        "--json=r.json",
        &format!("--otlp={otlp}"),
        "--otlp-header=X-Key: ${OTLP_KEY}",
        "--otlp-header=@secret-header",
        "--otlp-header=X-Own: word-of-the-line",
    ]);
    command.env("OTLP_KEY", "word-of-the-environment");
    let ended = crate::process::Running::start(command, b"").wait(Duration::from_secs(60));
    let sent = server.seen()[0].text().to_lowercase();
    let words =
        ["word-of-a-file", "word-of-the-environment", "word-of-the-line", "word-of-the-address"];
    for word in words {
        assert!(sent.contains(word), "{sent}");
    }
    let mut outputs = vec![
        ended.stdout.clone(),
        ended.stderr.clone(),
        place.read("s.ndjson"),
        place.read("r.json"),
    ];
    for path in glob::glob(&format!("{}/runs/*/*", place.path().display())).unwrap().flatten() {
        outputs.push(String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned());
    }
    assert!(outputs.len() > 6);
    for output in outputs {
        for word in words {
            assert!(!output.contains(word), "{word}: {output}");
        }
    }
    let said = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("were lost (status 401 Unauthorized"), "{said}");
}

#[test]
fn an_address_or_a_header_that_cannot_be_used_is_a_usage_error() {
    let place = Place::new();
    for (flags, word) in [
        (&["--otlp", "127.0.0.1:4318"][..], "the scheme is"),
        (&["--otlp", "http://u:hidden-word@h"], "--otlp-header 'Authorization: Basic ...'"),
        (&["--otlp-header", "A: b"], "--otlp-header needs --otlp URL"),
        (
            &["--otlp", "http://h", "--otlp-header", "A: ${NO_SUCH_WORD}"],
            "'NO_SUCH_WORD' is not set",
        ),
        (&["--stream", "-", "--json", "-"], "--json writes there too"),
        (&["--stream", "no/such/folder/s"], "--stream no/such/folder/s: no such file or folder"),
    ] {
        let ended = place.run([&["load", "http://127.0.0.1:1/"][..], flags].concat()).expect(64);
        assert!(ended.stderr.contains(word), "{flags:?}: {}", ended.stderr);
        assert!(!ended.stderr.contains("hidden-word"), "{}", ended.stderr);
    }
    let ended = place.run(["search", "--engine", "index", "--otlp", "http://h"]).expect(64);
    assert!(ended.stderr.contains("unknown option '--otlp'"), "{}", ended.stderr);
}
