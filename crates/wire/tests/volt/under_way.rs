//! Calls under way on a client's connection.

use plimsoll_wire::volt::{
    Call, FRAME_HEAD_BYTES, LoginCall, Request, ResponseWriter, Status, TableView, Value, Volt,
};
use plimsoll_wire::{Event, Fault, Protocol};

use crate::session::{Seen, Session, handles, messages, ping, welcome};

fn answer(handle: i64, value: i64) -> Vec<u8> {
    let mut bytes = Vec::new();
    ResponseWriter::vote_like(&mut bytes, handle, value, 1);
    bytes
}

#[test]
fn calls_go_out_behind_a_login_that_is_not_answered() {
    let mut session = Session::new(3);
    assert_eq!(session.capacity(), 3);
    let mut request = Request::default();
    request.call("Vote", &[Value::BigInt(1)]);
    session.submit(&request, 10);
    session.submit(&ping(), 11);
    assert_eq!(session.capacity(), 1);
    assert!(!session.codec.is_ready(&session.conn));
    let said = std::mem::take(&mut session.out);
    let calls: Vec<_> = messages(&said).into_iter().map(|body| Call::read(body).unwrap()).collect();
    assert_eq!((calls[0].procedure, calls[0].version), ("Vote", 2));
    assert_eq!(calls[0].params().next().unwrap().unwrap().1, Value::BigInt(1));
    assert_eq!(calls[1].procedure, "@Ping");
    let both = [welcome(), answer(calls[1].handle, 5), answer(calls[0].handle, 6)].concat();
    session.feed(&both);
    assert!(session.codec.is_ready(&session.conn));
    assert_eq!(session.answered(), [11, 10]);
    assert_eq!(session.capacity(), 3);
    let Seen::Reply { tables, ms: 1, status: 1, bytes: 50, .. } = &session.seen[0] else {
        panic!("{:?}", session.seen)
    };
    assert_eq!(TableView::read(&tables[0]).unwrap().long(), Some(5));
}

#[test]
fn answers_come_in_any_order() {
    let mut session = Session::open(100);
    for tag in 0..100 {
        session.submit(&ping(), 1000 + tag);
    }
    assert_eq!(session.capacity(), 0);
    let handles = handles(&session.out);
    let mut different = handles.clone();
    different.sort_unstable();
    different.dedup();
    assert_eq!(different.len(), 100);
    assert!(different[0] > 0, "a server calls by 0 what it could not read");
    let order: Vec<_> = (0..100).map(|n| n * 37 % 100).collect();
    let said: Vec<_> = order.iter().flat_map(|&n| answer(handles[n], n as i64)).collect();
    session.feed(&said);
    assert_eq!(session.answered(), order.iter().map(|&n| 1000 + n as u32).collect::<Vec<_>>());
    assert_eq!(session.capacity(), 100);
}

#[test]
fn handles_do_not_come_again() {
    let mut session = Session::open(2);
    let mut seen = std::collections::HashSet::new();
    for _ in 0..1000 {
        let (one, other) = (session.ask(1), session.ask(2));
        assert!(seen.insert(one) && seen.insert(other));
        session.feed(&[answer(other, 0), answer(one, 0)].concat());
    }
    assert_eq!(session.seen.len(), 2000);
    assert!(session.seen.iter().all(|seen| matches!(seen, Seen::Reply { .. })));
}

#[test]
fn failures_are_replies() {
    let mut session = Session::open(1);
    let handle = session.ask(4);
    let mut said = Vec::new();
    ResponseWriter::failure(&mut said, handle, Status::GRACEFUL_FAILURE, "TYPE ERROR", 2);
    session.feed(&said);
    let Seen::Reply { tag: 4, status: -2, text, tables, .. } = &session.seen[0] else {
        panic!("{:?}", session.seen)
    };
    assert_eq!((text.as_deref(), tables.len()), (Some("TYPE ERROR"), 0));
}

#[test]
fn late_answers_are_dropped() {
    let mut session = Session::open(2);
    let (one, other) = (session.ask(1), session.ask(2));
    assert_eq!(session.capacity(), 0);
    assert!(session.cancel(1));
    assert_eq!(session.capacity(), 1, "another call may go out at once");
    // The engine uses its tags again, and the codec its places.
    let third = session.ask(1);
    session.feed(&answer(other, 0));
    session.feed(&answer(one, 0));
    assert_eq!(session.answered(), [2]);
    session.feed(&answer(third, 0));
    assert_eq!(session.answered(), [2, 1]);
    // Tags of no call under way change nothing.
    assert!(session.cancel(1) && session.cancel(99));
    assert_eq!(session.capacity(), 2);
    // An answer to the same call for the second time is nobody's.
    session.feed(&answer(one, 0));
    assert!(session.fault().contains("no call in flight"), "{}", session.fault());
}

#[test]
fn a_place_may_have_several_calls_that_were_given_up() {
    let mut session = Session::open(1);
    let given_up: Vec<_> = (0..50)
        .map(|tag| {
            let handle = session.ask(tag);
            assert!(session.cancel(tag));
            handle
        })
        .collect();
    let last = session.ask(7);
    for &handle in given_up.iter().rev() {
        session.feed(&answer(handle, 0));
    }
    assert_eq!(session.seen, []);
    session.feed(&answer(last, 0));
    assert_eq!(session.answered(), [7]);
}

#[test]
fn a_server_that_answers_nothing_is_given_up_in_the_end() {
    let mut session = Session::open(1);
    for n in 0..=1 << 16 {
        session.ask(0);
        assert_eq!(session.cancel(0), n < 1 << 16, "{n}");
    }
    // One that has not even answered the login is given up with its first call.
    let mut session = Session::new(1);
    session.ask(0);
    assert!(!session.cancel(0));
}

#[test]
fn answers_to_nobody_are_faults() {
    for wrong in [1, 2, -1, i64::MAX, i64::MIN, 1 << 32 | 1, 2 << 32, 0] {
        let mut session = Session::open(4);
        session.ask(0);
        session.feed(&answer(wrong, 0));
        assert!(session.fault().contains("no call in flight"), "{wrong}: {}", session.fault());
        assert_eq!(session.capacity(), 0);
        assert!(!session.cancel(0));
        session.seen.clear();
        session.feed(&answer(1, 0));
        assert!(session.fault().contains("failed before"), "{}", session.fault());
    }
    let mut session = Session::open(1);
    let handle = session.ask(0);
    session.feed(&answer(handle, 0));
    session.feed(&answer(handle, 0));
    assert!(session.fault().contains("no call in flight"), "{}", session.fault());
    // What a server says of a call that it could not read.
    let mut session = Session::open(1);
    session.ask(0);
    let mut said = Vec::new();
    let text = "Unknown ProcedureInvocationType 99";
    ResponseWriter::failure(&mut said, 0, Status::UNEXPECTED_FAILURE, text, 0);
    session.feed(&said);
    assert!(session.fault().contains("could not read a call"), "{}", session.fault());
}

#[test]
fn what_is_no_response_is_a_fault() {
    for (said, told) in [
        (&b"\0\0\0\0"[..], "the length"),
        (b"\xff\xff\xff\xff", "the length"),
        (b"\x03\x20\x00\x01", "the length"),
        (b"\0\0\0\x02\x07\0", "a version that is not known"),
        (b"\0\0\0\x02\0\0", "ends before its last part"),
    ] {
        let mut session = Session::open(1);
        session.ask(0);
        session.feed(said);
        assert!(session.fault().contains(told), "{said:?}: {}", session.fault());
    }
    let mut session = Session::open(1);
    session.codec.message_bytes_max = 49;
    let handle = session.ask(0);
    session.feed(&answer(handle, 0));
    assert!(session.fault().contains("over the limit"), "{}", session.fault());
}

#[test]
fn the_end_of_a_connection_says_how_far_it_had_come() {
    let mut session = Session::open(1);
    let handle = session.ask(0);
    assert_eq!(session.end(), Fault::Closed { began: false });
    assert_eq!(session.capacity(), 0);
    let bytes = answer(handle, 0);
    for cut in 1..bytes.len() {
        let mut session = Session::open(1);
        assert_eq!(session.ask(0), handle);
        session.feed(&bytes[..cut]);
        assert_eq!(session.end(), Fault::Closed { began: true }, "{cut}");
    }
    // A message that came in pieces and was looked at does not count as begun.
    let mut session = Session::open(1);
    session.ask(0);
    let (first, second) = bytes.split_at(20);
    let mut out = Vec::new();
    assert_eq!(session.codec.receive(&mut session.conn, first, &mut out), Ok(Event::More));
    let event = session.codec.receive(&mut session.conn, second, &mut out);
    assert!(matches!(event, Ok(Event::Reply { tag: 0, consumed: 34, .. })), "{event:?}");
    assert_eq!(session.end(), Fault::Closed { began: false });
}

#[test]
fn a_connection_takes_one_call_at_least() {
    let codec = Volt { depth: 0, ..Volt::new(plimsoll_wire::volt::Login::default()) };
    let mut out = Vec::new();
    let mut conn = codec.open(&mut out);
    assert!(LoginCall::read(&out[FRAME_HEAD_BYTES..]).unwrap().is_to_database());
    assert_eq!(codec.capacity(&conn), 1);
    codec.submit(&mut conn, &ping(), 0, &mut out);
    assert_eq!(codec.capacity(&conn), 0);
    assert_eq!(codec.with_depth(0).depth, 1);
}
