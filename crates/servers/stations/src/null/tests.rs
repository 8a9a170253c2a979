use super::*;
use plimsoll_probe::{Probe, Running};
use std::time::Duration;

const GET: &str = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

fn start(config: NullConfig) -> Running<NullSummary> {
    Running::start(move |listener, stop| run(listener, config, stop))
}

#[test]
fn a_head_split_at_every_byte_is_answered_once() {
    let target = start(NullConfig::default());
    let mut probe = target.probe();
    for byte in GET.chars() {
        probe.send(&byte.to_string());
        std::thread::sleep(Duration::from_micros(200));
    }
    let reply = probe.reply();
    assert_eq!((reply.status, reply.body.len()), (200, 64));
    probe.send(GET);
    assert_eq!(probe.reply().status, 200);
    let summary = target.stop();
    assert_eq!((summary.arrivals.requests, summary.connections.accepted), (2, 1));
}

#[test]
fn pipelined_requests_of_all_kinds_are_answered_in_order() {
    let target = start(NullConfig { body_bytes: 5, ..NullConfig::default() });
    let mut probe = target.probe();
    probe.send(&format!(
        "{GET}HEAD / HTTP/1.1\r\n\r\nPOST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nGET {GET}\
         PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n\
         DELETE / HTTP/1.1\r\nConnection: close\r\n\r\n{GET}"
    ));
    assert_eq!(probe.reply().body, "plims");
    let head = probe.reply_to_head();
    assert!(head.head.contains("Content-Length: 5"));
    for _ in 0..4 {
        assert_eq!(probe.reply().body, "plims");
    }
    assert!(probe.is_closed());
    let summary = target.stop();
    // What follows the request that closes is not served.
    assert_eq!(summary.arrivals.requests, 6);
    assert_eq!(summary.arrivals.by_method["GET"], 2);
    assert_eq!(summary.arrivals.by_method["DELETE"], 1);
    assert_eq!((summary.connections.accepted, summary.connections.open), (1, 0));
}

#[test]
fn a_body_is_read_before_the_reply_and_may_be_large() {
    let target = start(NullConfig { body_bytes: 0, ..NullConfig::default() });
    let mut probe = target.probe();
    probe.send("POST / HTTP/1.1\r\nContent-Length: 3000000\r\n\r\n");
    probe.send(&"x".repeat(2_999_999));
    probe.stream().set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let early = probe.stream().peek(&mut [0; 1]);
    assert!(early.is_err(), "answered before the last byte");
    probe.stream().set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    probe.send("x");
    let reply = probe.reply();
    assert_eq!((reply.status, reply.body.as_str()), (200, ""));
    assert_eq!(target.stop().arrivals.requests, 1);
}

#[test]
fn expect_continue_is_answered_when_the_body_waits_for_it() {
    let target = start(NullConfig::default());
    let mut probe = target.probe();
    probe.send("POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    assert_eq!(probe.reply().status, 100);
    probe.send("ab");
    assert_eq!(probe.reply().status, 200);
    probe.send("POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nab");
    assert_eq!(probe.reply().status, 200, "the body was there, nobody waits");
    target.stop();
}

#[test]
fn old_clients_are_closed_or_told_that_they_are_kept() {
    let target = start(NullConfig::default());
    let mut probe = target.probe();
    probe.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert!(probe.reply().head.contains("Connection: keep-alive"));
    probe.send("GET / HTTP/1.0\r\n\r\n");
    assert!(probe.reply().head.contains("Connection: close"));
    assert!(probe.is_closed());
    target.stop();
}

#[test]
fn nonsense_is_refused_and_the_connection_closed() {
    let target = start(NullConfig::default());
    for (text, status) in [
        ("nonsense\r\n\r\n".to_owned(), 400),
        ("POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n".to_owned(), 400),
        ("POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n".to_owned(), 501),
        ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n".to_owned(), 400),
        (format!("GET / HTTP/1.1\r\nA: {}\r\n\r\n", "x".repeat(70_000)), 431),
    ] {
        let mut probe = target.probe();
        probe.send(&text);
        assert_eq!(probe.reply().status, status);
        assert!(probe.is_closed());
    }
    assert_eq!(target.stats("")["connections"]["bad_requests"], 5);
    assert_eq!(target.stop().arrivals.requests, 0);
}

#[test]
fn replies_larger_than_the_socket_takes_arrive_whole() {
    let size = 6_000_000;
    let target = start(NullConfig { body_bytes: size, ..NullConfig::default() });
    let mut probe = target.probe();
    probe.send(&GET.repeat(3));
    std::thread::sleep(Duration::from_millis(50));
    for _ in 0..3 {
        let body = probe.reply().body;
        assert_eq!(body.len(), size);
        assert!(body.starts_with("plimsoll\nplimsoll\n"));
    }
    assert_eq!(target.stop().arrivals.requests, 3);
}

#[test]
fn a_half_closed_client_gets_its_answer() {
    let target = start(NullConfig::default());
    let mut probe = target.probe();
    probe.send(GET);
    probe.stream().shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(probe.reply().status, 200);
    assert!(probe.is_closed());
    target.stop();
}

fn audit(config: NullConfig) {
    let target = start(config);
    let mut probes: Vec<Probe> = (0..4).map(|_| target.probe()).collect();
    let mut ask = |times: usize| {
        for i in 0..times {
            let probe = &mut probes[i % 4];
            probe.send(GET);
            assert_eq!(probe.reply().status, 200);
        }
    };
    ask(40);
    let stats = target.stats("?reset=1");
    assert_eq!(stats["target"], "null");
    assert_eq!(stats["requests"], 40);
    assert_eq!(stats["gaps"]["count"], 39);
    assert!(stats["gaps"]["cv"].as_f64().unwrap() > 0.0);
    let first = stats["first_arrival_ms"].as_f64().unwrap();
    assert!(stats["last_arrival_ms"].as_f64().unwrap() > first);
    ask(3);
    let stats = target.stats("");
    assert_eq!(
        stats["requests"], 3,
        "the reset forgets, and the statistics do not count themselves"
    );
    assert_eq!(stats["by_method"]["GET"], 3);
    assert_eq!(stats["gaps"]["count"], 2);
    assert_eq!(stats["connections"]["accepted"], 6);
    let mut probe = target.probe();
    probe.send("GET /_stats?rate=5 HTTP/1.1\r\n\r\n");
    assert_eq!(probe.reply().status, 400);
    assert_eq!(target.stop().arrivals.requests, 3);
}

#[test]
fn arrivals_are_audited_with_one_thread() {
    audit(NullConfig::default());
}

#[test]
fn arrivals_are_audited_with_three_threads_and_while_spinning() {
    audit(NullConfig { threads: 3, ..NullConfig::default() });
    audit(NullConfig { busy_poll: true, ..NullConfig::default() });
}

#[test]
fn out_of_range_configurations_are_refused_before_anything_starts() {
    for config in [
        NullConfig { threads: 0, ..NullConfig::default() },
        NullConfig { threads: 65, ..NullConfig::default() },
        NullConfig { body_bytes: BODY_BYTES_MAX + 1, ..NullConfig::default() },
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let error = run(listener, config, Stop::new().unwrap()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
