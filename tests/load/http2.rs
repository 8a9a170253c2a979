//! HTTP/2 against real servers: nginx by prior knowledge and by ALPN, and the embedded search target.

use super::record;
use crate::certificates::Authority;
use crate::nginx::Nginx;
use crate::process::Place;
use crate::record::Record;
use crate::server::Server;
use std::fmt::Write;

/// Large enough for many frames, several windows, and more than a stream's first window of 64 KB.
fn large() -> String {
    let mut text = String::new();
    for i in 0..40_000 {
        // Writing into a string does not fail.
        let _ = write!(text, "{i:07},");
    }
    text
}

#[test]
fn prior_knowledge_with_nginx() {
    let place = Place::new();
    place.file("large", large());
    let root = place.path().display().to_string();
    let nginx = Nginx::start(
        &place,
        "http2",
        &format!("location /hello {{ return 200 'hello'; }}\nlocation / {{ root {root}; }}"),
    );
    let url = format!("http://127.0.0.1:{}/hello", nginx.port);
    let flags = ["--http2", "--clients", "50", "--requests", "2000"];
    let many = record(&place, &url, &flags, 0);
    assert_eq!((many.ok(), many.sent()), (2000, 2000));
    // Fifty clients share two connections.
    assert_eq!(many.count("/counters/connects"), 2);
    assert_eq!(many.count("/counters/bytes_body"), 2000 * 5);
    // Bodies that need the windows to be opened again and again, many at once on a connection.
    let url = format!("http://127.0.0.1:{}/large", nginx.port);
    let flags = ["--http2", "--clients", "20", "--requests", "60"];
    let large = record(&place, &url, &flags, 0);
    assert_eq!(large.ok(), 60, "{}", large.0["ledger"]);
    assert_eq!(large.count("/counters/bytes_body"), 60 * 320_000);
    assert_eq!(nginx.wait_for(2060).len(), 2060);
}

#[test]
fn nginx_that_ends_connections_now_and_then() {
    // It sends GOAWAY after this many requests of a connection; those it did not take are sent
    // again.
    let place = Place::new();
    let server = "keepalive_requests 40;\nlocation / { return 200 'hello'; }";
    let nginx = Nginx::start(&place, "http2", server);
    let url = format!("http://127.0.0.1:{}/", nginx.port);
    let flags = ["--http2", "--clients", "30", "--requests", "3000"];
    let seen = record(&place, &url, &flags, 0);
    assert_eq!((seen.ok(), seen.sent()), (3000, 3000), "{}", seen.0["ledger"]);
    assert!(seen.count("/counters/connects") >= 3000 / 80, "{}", seen.0["counters"]);
    assert_eq!(nginx.wait_for(3000).len(), 3000);
}

#[test]
fn alpn_chooses_the_version() {
    let place = Place::new();
    let authority = Authority::new("plimsoll test CA");
    place.file("ca.pem", authority.pem());
    let signed = authority.server(&["localhost"]);
    let certificate = place.file("server.pem", &signed.certificate).display().to_string();
    let key = place.file("server.key", &signed.key).display().to_string();
    let block = format!(
        "ssl_certificate {certificate};\nssl_certificate_key {key};\n\
         location / {{ return 200 'hello'; }}"
    );
    let speaks = Nginx::start(&place, "ssl http2", &block);
    let url = format!("https://localhost:{}/", speaks.port);
    let flags = ["--http2", "--clients", "40", "--cacert", "ca.pem", "--requests"];
    let seen = record(&place, &url, &[&flags[..], &["500"]].concat(), 0);
    assert_eq!(seen.ok(), 500, "{}", seen.0["ledger"]);
    assert_eq!(seen.count("/counters/connects"), 2);
    // A server that does not speak it says so in its handshake: nothing is sent to it.
    let silent = Nginx::start(&place, "ssl", &block);
    let url = format!("https://localhost:{}/", silent.port);
    // Each attempt waits longer than the one before.
    let args = [&["load", &url, "--json", "-"], &flags[..], &["40"]].concat();
    let failed = Record::of(&place.run(args).expect(4));
    assert_eq!(failed.ok(), 0);
    says_http2(&place);
    assert!(silent.seen().is_empty());
}

/// The sample of a failure names the version that the server does not speak.
#[track_caller]
fn says_http2(place: &Place) {
    let mut runs: Vec<_> = std::fs::read_dir(place.path().join("runs"))
        .unwrap()
        .map(|run| run.unwrap().path())
        .collect();
    runs.sort();
    let samples = std::fs::read_to_string(runs.last().unwrap().join("failures.ndjson")).unwrap();
    let first: serde_json::Value = serde_json::from_str(samples.lines().next().unwrap()).unwrap();
    assert!(first["reason"].to_string().contains("HTTP/2"), "{first}");
}

#[test]
fn a_server_that_speaks_only_the_old_version_is_named() {
    let place = Place::new();
    let server = Server::ok();
    let url = server.url();
    let args = ["load", &url, "--http2", "--clients", "2", "--requests", "4", "--json", "-"];
    let failed = Record::of(&place.run(args).expect(4));
    assert_eq!(failed.ok(), 0);
    says_http2(&place);
}

#[test]
fn fbench_and_an_open_loop_speak_it_too() {
    let place = Place::new();
    let nginx = Nginx::start(&place, "http2", "location / { return 200 'hello'; }");
    let port = nginx.port.to_string();
    place.file("q.txt", "/a\n/b\n/c\n");
    let args =
        ["fbench", "--http2", "-n", "8", "-r", "10", "-s", "10", "-q", "q.txt", "localhost", &port];
    let ended = place.run(args).expect(0);
    assert!(ended.stdout.contains("successful requests"), "{}", ended.stdout);
    let before = nginx.seen().len();
    assert!(before >= 80, "{before}");
    let url = format!("http://127.0.0.1:{}/", nginx.port);
    let flags = ["--http2", "--rate", "500", "--duration", "2s", "--connections", "2"];
    let open = super::record_on_time_or_late(&place, &url, &flags, 0);
    assert_eq!((open.ok(), open.sent()), (1000, 1000));
    assert_eq!(open.count("/counters/connects"), 2);
}

#[test]
fn slots_are_requests_and_not_connections() {
    let place = Place::new();
    let nginx = Nginx::start(&place, "http2", "location / { return 200 'hello'; }");
    let url = format!("http://127.0.0.1:{}/", nginx.port);
    let flags =
        ["--http2", "--clients", "20", "--slots", "20", "--queue", "0", "--requests", "600"];
    let seen = record(&place, &url, &flags, 0);
    assert_eq!((seen.ok(), seen.count("/ledger/scheduled")), (600, 600), "{}", seen.0["ledger"]);
    assert_eq!(seen.count("/counters/connects"), 1);
}
