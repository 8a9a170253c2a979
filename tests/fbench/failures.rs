//! A failed request is counted as failed, in the class that it belongs to.

use super::{counts, fbench, lines};
use crate::process::Place;
use crate::record::Record;
use crate::server::{Server, Step, closed_port, ok, reply, send};
use std::time::Duration;

/// One pass of 20 queries by each of two clients with the record on stdout.
fn record_of(server: &Server, flags: &[&str]) -> Record {
    let place = Place::new();
    place.file("q.txt", lines(20));
    let mut all = vec!["-n", "2", "-r", "0", "-s", "20", "-q", "q.txt", "--json", "-"];
    all.extend(flags);
    let record = Record::of(&fbench(&place, server, &all).expect(4));
    record.expect_balanced();
    assert_eq!(record.ok(), 0);
    assert_eq!(record.verdict(), "target-failed");
    record
}

#[test]
fn a_closed_port_is_failed_requests_and_exit_4() {
    let place = Place::new();
    place.file("q.txt", lines(5));
    let port = closed_port();
    let args = ["fbench", "-n", "2", "-s", "2", "-q", "q.txt", "--json", "run.json"];
    let ended = place.run(args.into_iter().chain(["127.0.0.1", &port])).expect(4);
    let (ok, failed) = counts(&ended);
    assert_eq!(ok, 0);
    assert!(failed > 0, "{}", ended.stdout);
    assert!(ended.stderr.contains("no request succeeded"), "{}", ended.stderr);
    let record = Record(serde_json::from_str(&place.read("run.json")).unwrap());
    record.expect_balanced();
    record.expect_failed("connect", failed);
    // The refusals are listed as "no answer", and a dead server is not hammered with tens of
    // thousands of tries.
    assert!(ended.stdout.contains(&format!("         0 : {failed:>8} \n")), "{}", ended.stdout);
    assert!(failed < 4000, "{failed} connections to a dead server in 2 s");
    assert!(ended.took < Duration::from_secs(6), "{:?}", ended.took);
}

#[test]
fn a_host_that_does_not_resolve_fails_to_connect() {
    let place = Place::new();
    place.file("q.txt", lines(3));
    let args = ["fbench", "-n", "2", "-r", "0", "-s", "5", "-q", "q.txt", "--json", "-"];
    let ended = place.run(args.into_iter().chain(["no-such-host.invalid", "80"])).expect(4);
    let record = Record::of(&ended);
    record.expect_balanced();
    record.expect_failed("connect", 6);
    assert!(ended.stderr.contains("no-such-host.invalid"), "no name in {:?}", ended.stderr);
}

#[test]
fn a_status_is_a_failure_and_keeps_its_number() {
    let server = Server::start(|_| vec![Step::Send(reply(503, "", b"busy"))]);
    let record = record_of(&server, &[]);
    assert_eq!(server.requests(), 40);
    record.expect_failed("status", 40);
    assert_eq!(record.count("/statuses/503"), 40);
}

#[test]
fn a_reset_is_a_reset() {
    let server = Server::start(|_| vec![Step::Reset]);
    let record = record_of(&server, &[]);
    assert_eq!(server.requests(), 40);
    record.expect_failed("reset", 40);
}

#[test]
fn a_cut_body_is_short() {
    let cut = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this";
    let server = Server::start(move |_| [send(cut), vec![Step::Close]].concat());
    let record = record_of(&server, &[]);
    assert_eq!(server.requests(), 40);
    record.expect_failed("short", 40);
}

#[test]
fn a_reset_in_the_middle_of_a_reply_is_short() {
    let cut = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this";
    let pause = vec![Step::Sleep(Duration::from_millis(20)), Step::Reset];
    let server = Server::start(move |_| [send(cut), pause.clone()].concat());
    let record = record_of(&server, &[]);
    assert_eq!(server.requests(), 40);
    record.expect_failed("short", 40);
}

#[test]
fn a_chunked_body_without_its_end_is_short() {
    let cut = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";
    let server = Server::start(move |_| [send(cut), vec![Step::Close]].concat());
    record_of(&server, &[]).expect_failed("short", 40);
    assert_eq!(server.requests(), 40);
}

#[test]
fn what_is_no_http_is_a_protocol_failure() {
    let server =
        Server::start(|_| [send("220 smtp.example ESMTP\r\n"), vec![Step::Close]].concat());
    record_of(&server, &[]).expect_failed("protocol", 40);
    assert_eq!(server.requests(), 40);
}

#[test]
fn no_answer_in_time_is_a_timeout_that_took_its_time() {
    let server = Server::silent();
    let place = Place::new();
    place.file("q.txt", lines(3));
    let flags =
        ["-n", "2", "-r", "0", "-s", "20", "-q", "q.txt", "--timeout", "300ms", "--json", "-"];
    let record = Record::of(&fbench(&place, &server, &flags).expect(4));
    record.expect_balanced();
    record.expect_failed("timeout", 6);
    assert_eq!(server.requests(), 6);
    // The histogram's cells are a little wide: the smallest value is the lower end of one.
    let least_ms = record.number("/latency_ms/failed/min");
    assert!(least_ms >= 299.7, "{least_ms}");
}

#[test]
fn a_body_below_the_limit_is_a_failed_check() {
    let server = Server::start(|seen| {
        vec![Step::Send(ok(if seen.number < 5 { "long enough" } else { "short" }))]
    });
    let place = Place::new();
    place.file("q.txt", lines(20));
    let flags = ["-n", "1", "-r", "0", "-l", "6", "-q", "q.txt"];
    let ended = fbench(&place, &server, &flags).expect(4);
    assert_eq!(counts(&ended), (5, 15));
    assert!(ended.stdout.contains("lower response limit:          6 bytes\n"), "{}", ended.stdout);
}

#[test]
fn a_status_is_never_carried_over_to_the_next_request() {
    // The original prints the last status again for each refused connection that follows.
    let server = Server::start(|seen| match seen.number {
        0..10 => vec![Step::Send(ok("x"))],
        _ => vec![Step::Reset],
    });
    let place = Place::new();
    place.file("q.txt", lines(30));
    let ended = fbench(&place, &server, &["-n", "1", "-r", "0", "-q", "q.txt"]).expect(4);
    assert_eq!(counts(&ended), (10, 20));
    let breakdown = ended.stdout.split_once("http request status breakdown:\n").unwrap().1;
    let expected = "         0 :       20 \n       200 :       10 \n";
    assert!(breakdown.starts_with(expected), "{breakdown}");
}
