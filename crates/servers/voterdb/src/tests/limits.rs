//! Back-pressure, peers that do not read, and messages that are not whole.

use super::{Client, TestServer};
use crate::VoterConfig;
use plimsoll_core::clock::now_ns;
use plimsoll_wire::volt::{Request, Value};
use std::io::{ErrorKind, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[test]
fn few_calls_under_way_are_enough_for_many() {
    // The limits are reached by every single read, so that reading stops and begins all the time.
    let server = TestServer::start(VoterConfig {
        partitions: 2,
        pending_calls: 3,
        pending_bytes: 200,
        network_threads: 2,
        ..VoterConfig::default()
    });
    server.voter();
    let mut clients: Vec<Client> = (0..8).map(|_| server.client()).collect();
    for (number, client) in (0i64..).zip(&mut clients) {
        for vote in 0..200 {
            let phone = 2_120_000_000 + number * 1_000 + vote;
            client.submit("Vote", &[Value::BigInt(phone), Value::Integer(1), Value::BigInt(1)]);
        }
        client.submit("Results", &[]);
    }
    for client in &mut clients {
        let mut votes = 0;
        for _ in 0..201 {
            let answer = client.answer();
            assert_eq!(answer.status, 1);
            votes += usize::from(answer.tables[0].0 == [""]);
        }
        assert_eq!(votes, 200);
    }
    assert_eq!(clients[0].cell("select count(*) from votes"), "1600");
}

#[test]
fn who_does_not_read_is_not_read_and_disturbs_nobody() {
    let server = TestServer::plain();
    let mut client = server.voter();
    let deaf = server.client();
    deaf.stream.set_write_timeout(Some(Duration::from_secs(2))).unwrap();
    let mut request = Request::default();
    // Each answer is 131 KB.
    request.call("@Statistics", &[Value::String("TOPO"), Value::Integer(0)]);
    let mut bytes = Vec::new();
    for handle in 0..1_000 {
        request.put(handle, &mut bytes);
    }
    let mut sent = 0;
    let stopped = (0..10_000).any(|_| match (&deaf.stream).write(&bytes[sent % bytes.len()..]) {
        Ok(count) => {
            sent += count;
            false
        }
        Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
    });
    assert!(stopped, "{sent} bytes of calls were taken from who reads no answer");
    assert_eq!(client.vote(2_120_000_000, 1, 1), 0);
    drop(deaf);
    assert_eq!(client.vote(2_120_000_001, 1, 1), 0);
}

#[test]
fn who_never_reads_is_let_go_and_who_reads_slowly_is_not() {
    let unread = Duration::from_secs(2);
    let server = TestServer::start(VoterConfig { unread, ..VoterConfig::default() });
    let mut client = server.voter();
    let connections = |client: &mut Client| {
        let answer = client.call("@Statistics", &[Value::String("INITIATOR"), Value::Integer(0)]);
        let (columns, rows) = &answer.tables[0];
        let place = columns.iter().position(|name| name == "CONNECTION_ID").unwrap();
        let ids: std::collections::BTreeSet<&str> =
            rows.iter().map(|row| row[place].as_str()).collect();
        ids.len()
    };
    let mut both: Vec<Client> = (0..2).map(|_| server.client()).collect();
    // 200 answers of 131 KB each: more than sockets hold.
    for one in &mut both {
        for _ in 0..200 {
            one.submit("@Statistics", &[Value::String("TOPO"), Value::Integer(0)]);
        }
    }
    let mut slow = both.remove(0);
    // Read over a longer time than the limit, never longer than it without a byte.
    for _ in 0..200 {
        assert_eq!(slow.answer().status, 1);
        std::thread::sleep(Duration::from_millis(15));
    }
    let until_ns = now_ns() + super::LIMIT.as_nanos() as u64;
    while connections(&mut client) > 2 {
        assert!(now_ns() < until_ns, "the connection is still there");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(slow.vote(2_120_000_000, 1, 1), 0);
}

/// The honest client has its answers while others send more calls than are ever answered. The limit of a client that waits for an
/// answer, a minute, is what fails: nobody's turn is that far away.
fn an_honest_client_has_its_turn(config: VoterConfig, greedy_call: impl Fn(i64) -> Request) {
    let server = TestServer::start(config);
    let mut honest = server.voter();
    let is_done = AtomicBool::new(false);
    let connections: Vec<Client> = (0..8).map(|_| server.client()).collect();
    std::thread::scope(|scope| {
        for greedy in &connections {
            let mut bytes = Vec::new();
            for handle in 0..2_000 {
                greedy_call(handle).put(handle, &mut bytes);
            }
            scope.spawn({
                let is_done = &is_done;
                move || {
                    while !is_done.load(Ordering::Relaxed)
                        && (&greedy.stream).write_all(&bytes).is_ok()
                    {}
                }
            });
            scope.spawn(move || {
                let mut answers = [0; 65_536];
                while matches!((&greedy.stream).read(&mut answers), Ok(1..)) {}
            });
        }
        for vote in 0..20 {
            assert_eq!(honest.vote(2_120_000_000 + vote, 1, 1), 0);
        }
        assert_eq!(honest.call("Results", &[]).status, 1);
        is_done.store(true, Ordering::Relaxed);
        for greedy in &connections {
            greedy.stream.shutdown(std::net::Shutdown::Both).unwrap();
        }
    });
}

#[test]
fn calls_over_all_partitions_without_end_leave_others_their_turn() {
    let config = VoterConfig { partitions: 2, network_threads: 1, ..VoterConfig::default() };
    an_honest_client_has_its_turn(config, |_| {
        let mut request = Request::default();
        request.call("@Statistics", &[Value::String("TOPO"), Value::Integer(0)]);
        request
    });
}

#[test]
fn votes_without_end_leave_others_their_turn() {
    let config = VoterConfig {
        partitions: 2,
        network_threads: 1,
        pending_calls: 8,
        ..VoterConfig::default()
    };
    an_honest_client_has_its_turn(config, |number| {
        let mut request = Request::default();
        let phone = Value::BigInt(2_130_000_000 + number);
        request.call("Vote", &[phone, Value::Integer(1), Value::BigInt(1)]);
        request
    });
}

#[test]
fn what_is_no_call_ends_its_connection_only() {
    let server = TestServer::plain();
    let mut client = server.voter();
    let mut other = server.client();
    // An unknown version is told; a call that is cut ends the connection.
    other.send(b"\0\0\0\x02\x63\0");
    let answer = other.answer();
    assert_eq!((answer.handle, answer.status), (0, -3));
    assert_eq!(answer.text, "Unknown ProcedureInvocationType 99");
    other.send(b"\0\0\0\x06\0\0\0\0\x10V");
    assert_eq!(other.message(), None);
    // So does a client that goes away in the middle of a message, or with calls under way.
    let mut gone = server.client();
    gone.send(b"\0\0\x10\0\0");
    drop(gone);
    let mut gone = server.client();
    for _ in 0..100 {
        gone.submit("Results", &[]);
    }
    drop(gone);
    assert_eq!(client.vote(2_120_000_000, 1, 1), 0);
}

#[test]
fn a_stop_answers_what_is_under_way() {
    let server = TestServer::plain();
    let mut client = server.voter();
    for number in 0..500 {
        let phone = Value::BigInt(2_120_000_000 + number);
        client.submit("Vote", &[phone, Value::Integer(1), Value::BigInt(1)]);
    }
    // The first answer says that the server has read what came with it.
    assert_eq!(client.answer().status, 1);
    server.stop();
    let mut answers = 1;
    while client.message().is_some() {
        answers += 1;
    }
    assert!((1..=500).contains(&answers));
}
