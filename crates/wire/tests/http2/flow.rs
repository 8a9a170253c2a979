//! Windows, goodbyes, resets: requests that end otherwise than in order.

use plimsoll_wire::Fault;
use plimsoll_wire::http2::{CONNECTION_WINDOW_BYTES, Http2};

use crate::server::*;
use crate::session::{Ended, KEEP_ALL, STREAM, Session, get, request};

/// The payloads of DATA frames in `out` and whether the stream ended.
fn data(out: &[u8], id: u32) -> (usize, bool) {
    let found = frames(out);
    let of_stream = found.iter().filter(|f| f.0 == DATA && f.2 == id);
    of_stream.fold((0, false), |(sum, _), f| (sum + f.3.len(), f.1 & END_STREAM != 0))
}

#[test]
fn a_body_waits_for_both_windows() {
    let mut session = Session::new(Http2::default());
    session.submit(&request("POST", KEEP_ALL, &[b'x'; 100_000]), 1);
    session.submit(&request("POST", KEEP_ALL, &[b'y'; 10]), 2);
    let sent = &session.out[session.out.iter().position(|&b| b == b'\n').unwrap()..];
    assert!(sent.len() > 65_535);
    session.out.clear();
    session.feed(&Server::new(&[]).bytes);
    session.out.clear();
    // The connection's window was all used by the first: the stream's alone does not help.
    session.feed(&frame(WINDOW_UPDATE, 0, 1, &1000u32.to_be_bytes()));
    assert!(session.out.is_empty());
    session.feed(&frame(WINDOW_UPDATE, 0, 0, &2000u32.to_be_bytes()));
    assert_eq!((data(&session.out, 1), data(&session.out, 3)), ((1000, false), (10, true)));
    session.out.clear();
    // A larger window for every stream counts for those under way, too.
    session.feed(&Server::new(&[(4, 65_535 + 500)]).bytes);
    assert_eq!(data(&session.out, 1), (500, false));
    session.out.clear();
    // A smaller one makes what there is negative.
    session.feed(&Server::new(&[(4, 65_535 - 100)]).bytes);
    session.feed(&frame(WINDOW_UPDATE, 0, 1, &600u32.to_be_bytes()));
    assert_eq!(data(&session.out, 1), (0, false));
    session.out.clear();
    session.feed(&frame(WINDOW_UPDATE, 0, 1, &1_000_000u32.to_be_bytes()));
    session.feed(&frame(WINDOW_UPDATE, 0, 0, &1_000_000u32.to_be_bytes()));
    assert_eq!(data(&session.out, 1), (100_000 - 65_535 - 1500, true));
    assert_eq!((session.fault, session.ended.len()), (None, 0));
}

#[test]
fn an_answer_before_the_end_of_the_request_stops_the_request() {
    let mut session = Session::asking(&[request("POST", KEEP_ALL, &[b'x'; 100_000])]);
    let mut server = Server::new(&[]);
    server.head(1, &[(":status", "413")], true).reset(1, 0).window(0, 1 << 20).window(1, 1 << 20);
    session.feed(&server.bytes);
    assert_eq!(session.only().status, 413);
    assert_eq!(data(&session.out, 1), (0, false));
    let cancel = 8u32.to_be_bytes();
    assert!(frames(&session.out).contains(&(RST_STREAM, 0, 1, &cancel[..])));
}

#[test]
fn receive_windows_open_in_large_steps_and_are_kept() {
    let mut session = Session::asking(&[get(STREAM)]);
    session.feed(&Server::new(&[]).status(1, "200").bytes);
    session.out.clear();
    let piece = frame(DATA, 0, 1, &[7; 16_384]);
    let mut given = [0u64; 2];
    let pieces = 3 * CONNECTION_WINDOW_BYTES / 16_384;
    let mut updates = 0;
    for _ in 0..pieces {
        session.feed(&piece);
        for (kind, _, id, payload) in frames(&std::mem::take(&mut session.out)) {
            assert_eq!(kind, WINDOW_UPDATE);
            given[id as usize] += u64::from(u32::from_be_bytes(payload.try_into().unwrap()));
            updates += 1;
        }
    }
    let received = u64::from(pieces) * 16_384;
    assert_eq!(given[0], received);
    assert_eq!(given[1], received);
    assert_eq!(updates, 12 + 24);
    session.feed(&frame(DATA, END_STREAM, 1, b""));
    assert_eq!(session.only().body.len() as u64, received);
    assert_eq!(session.only().body_bytes, received);
}

#[test]
fn cancelled_requests_are_forgotten_and_their_bytes_still_counted() {
    let mut session = Session::asking(&[get(KEEP_ALL), request("POST", KEEP_ALL, &[1; 80_000])]);
    let mut server = Server::new(&[]);
    server.status(1, "200").data(1, &[1; 1000], false);
    session.feed(&std::mem::take(&mut server.bytes));
    session.out.clear();
    assert!(session.cancel(0) && session.cancel(1));
    let cancel = 8u32.to_be_bytes();
    let expected = [(RST_STREAM, 0, 1, &cancel[..]), (RST_STREAM, 0, 3, &cancel[..])];
    assert_eq!(frames(&session.out), expected);
    assert_eq!(session.capacity(), 100);
    session.out.clear();
    // Late frames: the table of header fields and the connection's window go on.
    server.data(1, &[1; 1000], true).status(3, "200").window(3, 9999).window(0, 9999).reset(3, 5);
    session.feed(&std::mem::take(&mut server.bytes));
    for _ in 0..CONNECTION_WINDOW_BYTES / 4 / 16_384 {
        session.feed(&frame(DATA, 0, 3, &[7; 16_384]));
    }
    assert_eq!((session.fault, session.ended.len()), (None, 0));
    let (kind, _, id, payload) = frames(&session.out)[0];
    assert_eq!((kind, id), (WINDOW_UPDATE, 0));
    let given = u32::from_be_bytes(payload.try_into().unwrap());
    assert!((CONNECTION_WINDOW_BYTES / 4..CONNECTION_WINDOW_BYTES / 4 + 16_384).contains(&given));
    session.submit(&get(KEEP_ALL), 2);
    session.feed(&server.status(5, "200").data(5, b"x", true).bytes);
    assert_eq!((session.only().tag, session.only().head.as_str()), (2, "server: s\r\n"));
}

#[test]
fn a_request_cancelled_inside_of_its_frames_leaves_the_rest_in_step() {
    let mut server = Server::new(&[]);
    server.status(1, "200").frame(DATA, PADDED, 1, b"\x03abcdef\0\0\0").status(3, "200");
    let bytes = server.data(3, b"hi", true).bytes.clone();
    for cut in 0..bytes.len() {
        let mut session = Session::asking(&[get(KEEP_ALL), get(KEEP_ALL)]);
        session.feed(&bytes[..cut]);
        assert!(session.cancel(0));
        session.feed(&bytes[cut..]);
        let Some(Ended::Reply(seen)) = session.ended.last() else { panic!("{cut}") };
        assert_eq!((seen.tag, &seen.body[..], session.ended.len()), (1, &b"hi"[..], 1));
    }
}

#[test]
fn a_goodbye_lets_what_was_taken_finish() {
    let mut session = Session::asking(&[get(KEEP_ALL), get(KEEP_ALL), get(KEEP_ALL)]);
    let mut server = Server::new(&[]);
    session.feed(&std::mem::take(&mut server.goaway(0x7fff_ffff, 0).bytes));
    assert_eq!((session.capacity(), session.ended.len()), (0, 0));
    session.feed(&std::mem::take(&mut server.goaway(1, 0).bytes));
    let given_up = |tag| Ended::GivenUp {
        tag,
        fault: Fault::Reset { began: false, why: "the peer gave up the connection: NO_ERROR" },
        unprocessed: true,
    };
    assert_eq!(session.ended, [given_up(1), given_up(2)]);
    session.feed(&server.status(1, "200").data(1, b"x", true).bytes);
    let Some(Ended::Reply(seen)) = session.ended.last() else { panic!() };
    assert!(seen.tag == 0 && !seen.reusable);
    assert_eq!(session.fault, Some(Fault::Closed { began: false }));
}

#[test]
fn a_goodbye_to_nobody_closes() {
    let mut session = Session::new(Http2::default());
    session.feed(&Server::new(&[]).goaway(0, 0).bytes);
    assert_eq!(session.fault, Some(Fault::Closed { began: false }));
    // All requests refused, or the last one cancelled: the connection has no use any more.
    let mut session = Session::asking(&[get(KEEP_ALL)]);
    session.feed(&Server::new(&[]).goaway(0, 11).bytes);
    assert_eq!(session.ended.len(), 1);
    let why = "the peer gave up the connection: ENHANCE_YOUR_CALM";
    assert_eq!(session.fault, Some(Fault::Reset { began: false, why }));
    let mut session = Session::asking(&[get(KEEP_ALL), get(KEEP_ALL)]);
    session.feed(&Server::new(&[]).goaway(3, 2).bytes);
    assert!(session.cancel(0));
    assert!(!session.cancel(1));
    // A goodbye with a reason is the reason of what the close cuts.
    let mut session = Session::asking(&[get(KEEP_ALL)]);
    session.feed(&Server::new(&[]).goaway(1, 2).status(1, "200").bytes);
    let why = "the peer gave up the connection: INTERNAL_ERROR";
    assert_eq!(session.end(), Fault::Reset { began: true, why });
}

#[test]
fn resets_say_whether_anything_was_done() {
    let mut session = Session::asking(&[get(KEEP_ALL), get(KEEP_ALL), get(KEEP_ALL), get(STREAM)]);
    let mut server = Server::new(&[]);
    server.status(5, "200").data(5, b"half", false).status(7, "200").data(7, b"half", false);
    session.feed(&server.reset(1, 7).reset(3, 2).reset(5, 8).reset(7, 999).reset(7, 7).bytes);
    let given_up = |tag, began, why, unprocessed| Ended::GivenUp {
        tag,
        fault: Fault::Reset { began, why },
        unprocessed,
    };
    let expected = [
        given_up(0, false, "the peer reset the request: REFUSED_STREAM", true),
        given_up(1, false, "the peer reset the request: INTERNAL_ERROR", false),
        given_up(2, true, "the peer reset the request: CANCEL", false),
        given_up(3, true, "the peer reset the request: a code that HTTP/2 does not know", false),
    ];
    assert_eq!(session.ended, expected);
    assert_eq!((session.fault, session.capacity()), (None, 100));
}
