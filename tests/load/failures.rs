//! Each failure in its class, with the number that the server saw.

use super::record;
use crate::certificates::Authority;
use crate::nginx::Nginx;
use crate::process::{Place, until};
use crate::record::Record;
use crate::server::{Server, Step, ok, refusing_port, reply, send};
use rustix::process::Signal;
use std::sync::OnceLock;
use std::time::Duration;

const MANY: [&str; 4] = ["--clients", "4", "--requests", "40"];

#[test]
fn each_in_its_class() {
    let cut = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this";
    let errors = "{\"root\":{\"errors\":[{\"code\":4,\"message\":\"timeout\"}]}}";
    let cases: [(&str, &[&str], Vec<Step>); 9] = [
        ("reset", &[], vec![Step::Reset]),
        ("reset", &[], vec![Step::Close]),
        ("short", &[], [send(cut), vec![Step::Close]].concat()),
        ("status", &[], vec![Step::Send(reply(503, "", b"busy"))]),
        ("status", &[], vec![Step::Send(reply(301, "Location: /\r\n", b""))]),
        ("check", &["--check", "vespa"], vec![Step::Send(ok(errors))]),
        ("protocol", &[], send("HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\nhello")),
        ("protocol", &[], send("\u{16}\u{3}\u{1} this is no HTTP at all\r\n\r\n")),
        ("timeout", &["--timeout", "200ms"], vec![Step::Hang]),
    ];
    for (kind, flags, steps) in cases {
        let (place, shown) = (Place::new(), format!("{steps:?}"));
        let server = Server::start(move |_| steps.clone());
        let flags = [&MANY, flags].concat();
        let record = record(&place, &server.url(), &flags, 4);
        assert_eq!((record.sent(), server.requests()), (40, 40), "{kind}: {shown}");
        record.expect_failed(kind, 40);
        assert_eq!(record.verdict(), "target-failed");
    }
}

#[test]
fn nobody_to_connect_to() {
    let place = Place::new();
    let there = Server::ok();
    place.file("q.txt", "/a\n");
    place.file(
        "dead.toml",
        format!("targets = [\"http://127.0.0.1:{}/\"]\nduration = \"60s\"\n", refusing_port()),
    );
    let dead = format!("http://127.0.0.1:{}", refusing_port());
    let alive = there.url();
    for (args, word) in [
        (&["load", &dead, "--duration", "60s"][..], "nothing is listening there"),
        (&["load", &dead, "--rate", "10", "--duration", "60s", "--http2"], "nothing is listening"),
        (&["load", &alive, &dead, "--duration", "60s"], "nothing is listening there"),
        (&["load", "http://no-such-host.invalid/", "--duration", "60s"], "cannot be resolved"),
        (&["seek", &dead, "--slo", "p95=1s"], "nothing is listening there"),
        (&["run", "dead.toml"], "nothing is listening there"),
        (&["load", "postgres://me@127.0.0.1:1/db", "--body", "SELECT 1"], "127.0.0.1:1"),
    ] {
        let ended = place.start(args).wait(Duration::from_secs(20)).expect(4);
        assert!(ended.stderr.starts_with("plimsoll: "), "{}", ended.stderr);
        assert!(
            ended.stderr.contains(word) && ended.stderr.lines().count() == 1,
            "{}",
            ended.stderr
        );
        assert_eq!(ended.stdout, "");
        assert!(ended.took < Duration::from_secs(15), "{args:?} took {:?}", ended.took);
    }
    assert_eq!(there.requests(), 0, "a part of the targets was loaded");
    assert!(!place.path().join("runs").exists(), "a record of nothing");
}

#[test]
fn a_target_that_goes_away_is_a_result_and_not_an_error() {
    let place = Place::new();
    let server = Server::start(|_| vec![Step::Reset]);
    record(&place, &server.url(), &MANY, 4).expect_failed("reset", 40);
}

/// A server that answers for this long after its first request, and then never again.
fn hangs_after(answers: Duration) -> Server {
    let first_ns = OnceLock::new();
    Server::start(move |seen| {
        let first_ns = *first_ns.get_or_init(|| seen.at_ns);
        if seen.at_ns < first_ns + answers.as_nanos() as u64 {
            let pause = Step::Sleep(Duration::from_millis(2));
            return [vec![pause], send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")].concat();
        }
        vec![Step::Hang]
    })
}

/// Four clients that wait to the end lose four requests of hundreds: their share says nothing of the second half.
#[test]
fn a_target_that_hangs_in_the_middle_of_closed_load_is_not_valid() {
    let (place, server) = (Place::new(), hangs_after(Duration::from_secs(1)));
    let flags = ["--clients", "4", "--duration", "3s", "--timeout", "2s"];
    let record = record(&place, &server.url(), &flags, 4);
    assert_eq!((record.verdict(), record.count("/ledger/failed/timeout")), ("target-failed", 4));
    let reasons = record.0["verdict"]["reasons"].to_string();
    assert!(reasons.contains("stopped serving") && reasons.contains("4 failed"), "{reasons}");
}

/// Ctrl-C in the drain leaves a complete stretch; what nobody answered in it is not forgotten for that.
#[test]
fn a_target_that_hung_is_not_valid_when_nobody_waits_for_its_timeouts() {
    let (place, server) = (Place::new(), hangs_after(Duration::from_millis(500)));
    let running = place.start([
        "load",
        &server.url(),
        "--rate",
        "50",
        "--duration",
        "2s",
        "--timeout",
        "60s",
        "--json",
        "-",
    ]);
    until("all of it is sent", Duration::from_secs(30), || server.requests() >= 100);
    std::thread::sleep(Duration::from_millis(500));
    running.signal(Signal::INT);
    let record = Record::of(&running.wait(Duration::from_secs(20)).expect(4));
    let unfinished = record.count("/ledger/unfinished");
    assert!((50..100).contains(&unfinished), "{unfinished}");
    let reasons = record.0["verdict"]["reasons"].to_string();
    assert!(reasons.contains(&format!("{unfinished} were still waited for")), "{reasons}");
}

#[test]
fn some_of_many() {
    // One in five of each kind; the rest is fine.
    let server = Server::start(|seen| match seen.number % 5 {
        0 => vec![Step::Send(reply(500, "", b""))],
        1 => send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
        _ => vec![Step::Send(ok("fine"))],
    });
    let place = Place::new();
    let record = record(&place, &server.url(), &["--clients", "1", "--requests", "100"], 0);
    assert_eq!((record.ok(), record.sent(), server.requests()), (60, 100, 100));
    assert_eq!(record.failures(), [("protocol".to_owned(), 20), ("status".to_owned(), 20)]);
    assert_eq!(record.count("/latency_ms/failed/count"), 40);
    assert_eq!(record.count("/latency_ms/response/count"), 60);
    assert!(record.has_warning("40.0 % of the requests failed"), "{:#}", record.0["warnings"]);
}

#[test]
fn failures_are_kept_as_samples() {
    let server = Server::start(|_| vec![Step::Send(reply(503, "", b"{\"why\":\"overload\"}"))]);
    let place = Place::new();
    let url = format!("{}/path?q=1&token=topsecret", server.url());
    let flags = ["--requests", "10", "--header", "Authorization: Bearer topsecret"];
    record(&place, &url, &flags, 4);
    let run = std::fs::read_dir(place.path().join("runs")).unwrap().next().unwrap().unwrap().path();
    let samples = std::fs::read_to_string(run.join("failures.ndjson")).unwrap();
    let first: serde_json::Value = serde_json::from_str(samples.lines().next().unwrap()).unwrap();
    assert_eq!((first["kind"].as_str(), first["status"].as_u64()), (Some("status"), Some(503)));
    assert!(first["request"].as_str().unwrap().contains("/path?q=1"), "{first:#}");
    assert_eq!(first["reply"].as_str(), Some("HTTP 503: {\"why\":\"overload\"}"));
    for file in std::fs::read_dir(&run).unwrap() {
        let path = file.unwrap().path();
        let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        assert!(!text.contains("topsecret"), "a secret in {}", path.display());
    }
}

#[test]
fn a_request_that_timed_out_shows_no_less_than_its_timeout() {
    let server = Server::start(|_| vec![Step::Hang]);
    let place = Place::new();
    let flags = ["--clients", "2", "--requests", "4", "--timeout", "300ms"];
    let record = record(&place, &server.url(), &flags, 4);
    for number in ["min", "mean", "p50", "max"] {
        let shown = record.number(&format!("/latency_ms/failed/{number}"));
        assert!((300.0..2_000.0).contains(&shown), "{number} {shown}");
    }
}

#[test]
fn https_to_a_plain_port_says_so() {
    let place = Place::new();
    let target = place.serve(&["null"]);
    let url = target.url.replace("http://", "https://");
    let record = record(&place, &url, &["--requests", "2", "--insecure"], 4);
    let reasons = record.0["verdict"]["reasons"].to_string();
    assert!(reasons.contains("it may be http://"), "{reasons}");
}

#[test]
fn tls() {
    let place = Place::new();
    let authority = Authority::new("plimsoll test CA");
    place.file("ca.pem", authority.pem());
    place.file("other.pem", Authority::new("another CA").pem());
    let signed = authority.server(&["localhost"]);
    let certificate = place.file("server.pem", &signed.certificate).display().to_string();
    let key = place.file("server.key", &signed.key).display().to_string();
    let block = format!(
        "ssl_certificate {certificate};\nssl_certificate_key {key};\nlocation / {{ return 200 'hi'; }}"
    );
    let nginx = Nginx::start(&place, "ssl", &block);
    let (named, bare) = (
        format!("https://localhost:{}/", nginx.port),
        format!("https://127.0.0.1:{}/", nginx.port),
    );
    let run = |url: &str, flags: &[&str], code| record(&place, url, &[&MANY, flags].concat(), code);
    assert_eq!(run(&named, &["--cacert", "ca.pem"], 0).ok(), 40);
    assert_eq!(nginx.wait_for(40).len(), 40);
    run(&named, &["--cacert", "other.pem"], 4).expect_failed("tls", 40);
    run(&bare, &["--cacert", "ca.pem"], 4).expect_failed("tls", 40);
    run(&named, &[], 4).expect_failed("tls", 40);
    assert_eq!(nginx.seen().len(), 40, "nothing is asked over TLS that does not hold");
    assert_eq!(run(&bare, &["--cacert", "ca.pem", "--sni", "localhost"], 0).ok(), 40);
    assert_eq!(run(&bare, &["--insecure"], 0).ok(), 40);
    let server = Server::greeting(send("220 no TLS here\r\n"));
    run(&server.url().replace("http", "https"), &["--insecure"], 4).expect_failed("tls", 40);
}
