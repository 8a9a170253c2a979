//! Connections that are kept, lost, dealt out and named.

use super::{on_time_or_late, record, record_on_time_or_late};
use crate::process::Place;
use crate::record::Record;
use crate::server::{Server, Step, ok};
use std::time::Duration;

/// Answers the first request of each connection and drops it at the second.
fn forgetful(last: Step) -> Server {
    Server::start(move |seen| match seen.on_connection {
        0 => vec![Step::Send(ok("x"))],
        _ => vec![last.clone()],
    })
}

const TEN: [&str; 4] = ["--clients", "1", "--requests", "10"];

#[test]
fn an_idempotent_request_on_a_kept_connection_is_sent_once_more() {
    for last in [Step::Reset, Step::Close] {
        let (place, server) = (Place::new(), forgetful(last));
        let record = record(&place, &server.url(), &TEN, 0);
        assert_eq!((record.ok(), record.sent()), (10, 10));
        // The first goes through; each of the others is asked twice.
        assert_eq!(record.count("/counters/retries"), 9);
        assert_eq!((server.requests(), server.connections()), (19, 10));
    }
}

#[test]
fn a_post_is_never_sent_twice() {
    let (place, server) = (Place::new(), forgetful(Step::Reset));
    let flags = [TEN.as_slice(), &["--method", "POST", "--body", "x"]].concat();
    let record = record(&place, &server.url(), &flags, 0);
    assert_eq!((record.ok(), server.requests()), (5, 10));
    record.expect_failed("reset", 5);
    assert_eq!(record.count("/counters/retries"), 0);
}

#[test]
fn a_retry_is_not_repeated() {
    let server = Server::start(|seen| match seen.number {
        0 => vec![Step::Send(ok("x"))],
        _ => vec![Step::Reset],
    });
    let place = Place::new();
    let record = record(&place, &server.url(), &TEN, 4);
    assert_eq!(record.ok(), 1);
    record.expect_failed("reset", 9);
    assert_eq!((record.count("/counters/retries"), server.requests()), (1, 11));
}

#[test]
fn a_kept_connection_that_dies_between_requests_fails_nothing() {
    // Closed in order, without a word of it in the reply, while the client pauses.
    let server = Server::start(|_| vec![Step::Send(ok("x")), Step::Close]);
    let place = Place::new();
    let flags = ["--clients", "2", "--think", "30ms", "--requests", "20"];
    let record = record_on_time_or_late(&place, &server.url(), &flags, 0);
    assert_eq!((record.ok(), server.requests()), (20, 20));
    assert!((20..=22).contains(&server.connections()), "{}", server.connections());
}

#[test]
fn keep_alive_is_used_or_not() {
    let (place, server) = (Place::new(), Server::ok());
    record(&place, &server.url(), &["--clients", "4", "--requests", "100"], 0);
    assert_eq!((server.requests(), server.connections()), (100, 4));
    assert!(!server.seen()[0].text().contains("Connection: close"));
    let server = Server::start(|_| vec![Step::Send(ok("x")), Step::Close]);
    let flags = ["--clients", "4", "--requests", "100", "--no-keepalive"];
    record(&place, &server.url(), &flags, 0);
    assert_eq!((server.requests(), server.connections()), (100, 100));
    assert!(server.seen()[0].text().contains("\r\nConnection: close\r\n"));
}

#[test]
fn targets_are_asked_in_turn() {
    let servers: Vec<Server> = (0..3).map(|_| Server::ok()).collect();
    let place = Place::new();
    let urls: Vec<String> = servers.iter().map(Server::url).collect();
    let mut args = vec!["load"];
    args.extend(urls.iter().map(String::as_str));
    args.extend(["--clients", "6", "--requests", "60", "--json", "-"]);
    let record = crate::record::Record::of(&place.run(args).expect(0));
    assert_eq!(record.ok(), 60);
    let connections: Vec<usize> = servers.iter().map(Server::connections).collect();
    assert_eq!(connections, [2, 2, 2]);
    assert_eq!(servers.iter().map(Server::requests).sum::<usize>(), 60);
    assert!(servers.iter().all(|server| server.requests() > 0));
    for (server, url) in servers.iter().zip(&urls) {
        let host = url.strip_prefix("http://").unwrap();
        assert!(server.seen()[0].text().contains(&format!("\r\nHost: {host}\r\n")));
    }
}

#[test]
fn an_ipv6_address() {
    let (place, server) = (Place::new(), Server::on("[::1]:0", |_| vec![Step::Send(ok("x"))]));
    assert_eq!(record(&place, &format!("{}/", server.url()), &TEN, 0).ok(), 10);
    let host = format!("\r\nHost: [::1]:{}\r\n", server.port());
    assert!(server.seen()[0].text().contains(&host), "{}", server.seen()[0].text());
}

#[test]
fn a_name_whose_other_address_nobody_listens_on() {
    // localhost is both 127.0.0.1 and ::1 on most machines; only one of them answers here.
    for address in ["127.0.0.1:0", "[::1]:0"] {
        use std::net::ToSocketAddrs;
        let (place, server) = (Place::new(), Server::on(address, |_| vec![Step::Send(ok("x"))]));
        let port: u16 = server.port().parse().unwrap();
        let known = ("localhost", port)
            .to_socket_addrs()
            .unwrap()
            .any(|a| a.to_string() == address.replace(":0", &format!(":{port}")));
        if !known {
            // This machine does not call that address localhost, so there is nothing to find.
            continue;
        }
        let url = format!("http://localhost:{port}/");
        let record = record(&place, &url, &["--clients", "4", "--requests", "40"], 0);
        assert_eq!((record.ok(), server.requests()), (40, 40), "{address}");
        assert_eq!(record.failures(), []);
    }
}

#[test]
fn a_server_that_comes_back_is_asked_again() {
    let place = Place::new();
    let first = Server::ok();
    let (port, url) = (first.port(), first.url());
    let args = ["load", &url, "--rate", "50", "--duration", "4s", "--json", "-"];
    let running = place.start(args);
    crate::process::until("the first requests", Duration::from_secs(20), || first.requests() > 5);
    // Its connections go with it: what is asked next finds nobody.
    drop(first);
    std::thread::sleep(Duration::from_millis(1000));
    let server = Server::on(&format!("127.0.0.1:{port}"), |_| vec![Step::Send(ok("x"))]);
    let record = on_time_or_late(running.wait(Duration::from_secs(20)), 0);
    assert_eq!(record.count("/ledger/scheduled"), 200);
    assert!(server.requests() >= 50, "{:#}", record.0["ledger"]);
    assert!(record.ok() >= server.requests() as u64 + 5, "{:#}", record.0["ledger"]);
    let failed = record.failures();
    assert!(failed.iter().any(|(kind, count)| kind == "connect" && *count > 10), "{failed:?}");
}

#[test]
fn all_connections_are_opened_though_few_are_needed() {
    let few = ["--rate", "5", "--duration", "1s", "--connections", "16"];
    let (place, server) = (Place::new(), Server::ok());
    record_on_time_or_late(&place, &server.url(), &few, 0);
    assert_eq!((server.requests(), server.connections()), (5, 16));
    // Without keep-alive there is nothing that could be opened before it is needed.
    let server = Server::ok();
    record_on_time_or_late(&place, &server.url(), &[&few[..], &["--no-keepalive"]].concat(), 0);
    assert_eq!((server.requests(), server.connections()), (5, 5));
}

/// The line of the report about the network.
fn network_line(place: &Place) -> String {
    let text = place.run(["report", "--verbose"]).expect(0).stdout;
    let line = text.lines().find(|line| line.starts_with("Network"));
    line.unwrap_or_else(|| panic!("nothing about the network in\n{text}")).to_owned()
}

#[test]
fn each_connection_tells_its_round_trips() {
    for (flags, connections) in [
        (&["--clients", "7", "--requests", "70"][..], 7),
        (&["--clients", "7", "--requests", "70", "--threads", "3"], 7),
        (&["--clients", "2", "--requests", "30", "--no-keepalive"], 30),
    ] {
        let (place, server) = (Place::new(), Server::ok());
        let record = record(&place, &server.url(), flags, 0);
        assert_eq!(record.count("/network/connections"), connections, "{flags:?}");
        let us = |figure: &str| record.number(&format!("/network/{figure}"));
        let (least, floor, median) =
            (us("rtt_min_us"), us("rtt_floor_median_us"), us("rtt_median_us"));
        assert!(0.0 < least && least <= floor && floor <= median, "{:#}", record.0["network"]);
        // The kernel's floor is below what any request can take.
        assert!(floor / 1e3 <= record.number("/latency_ms/service/max"));
        let line = network_line(&place);
        assert!(line.contains("round-trip floor"), "{line}");
        assert!(line.contains(&format!("median of {connections} connections")), "{line}");
    }
}

#[test]
fn without_a_connection_there_is_no_round_trip() {
    let place = Place::new();
    place.file("q.txt", "/a\n");
    let port = crate::server::closed_port();
    let args = ["fbench", "-n", "1", "-s", "1", "-q", "q.txt", "--json", "run.json"];
    place.run(args.into_iter().chain(["127.0.0.1", &port])).expect(4);
    let record = Record(serde_json::from_str(&place.read("run.json")).unwrap());
    assert!(record.0.get("network").is_none_or(serde_json::Value::is_null));
    let text = place.run(["report"]).expect(0).stdout;
    assert!(!text.contains("round-trip"), "{text}");
}
