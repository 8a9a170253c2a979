//! Conversations byte by byte.

use plimsoll_wire::Fault;
use plimsoll_wire::http1::{Encoding, Keep, Limits, Request};
use plimsoll_wire::http2::Http2;

use crate::server::*;
use crate::session::{Ended, KEEP_ALL, STREAM, Session, get, request};

const OK: &[(&str, &str)] = &[(":status", "200"), ("content-length", "2"), ("x", "y")];

#[test]
fn the_greeting_is_the_preface_settings_and_a_large_window() {
    let session = Session::new(Http2::default());
    let rest = session.out.strip_prefix(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
    let said = frames(rest);
    assert_eq!(said[0].0, SETTINGS);
    let push_off = [0, 2, 0, 0, 0, 0];
    assert_eq!(said[0].3[..6], push_off);
    let window = ((64u32 << 20) - 65_535).to_be_bytes();
    assert_eq!(said[1..], [(WINDOW_UPDATE, 0, 0, &window[..])]);
}

#[test]
fn a_request_is_translated() {
    let mut session = Session::new(Http2::default());
    session.out.clear();
    let text =
        b"PUT /p?q HTTP/1.1\r\nHost: h:8\r\nConnection: close\r\nX-Name: V w\r\nTE: trailers\r\n\
        Content-Length: 3\r\n\r\nabc";
    let request = Request { bytes: text.to_vec(), head: false, keep: KEEP_ALL };
    session.submit(&request, 9);
    let said = frames(&session.out);
    assert_eq!((said[0].0, said[0].1, said[0].2), (HEADERS, END_HEADERS, 1));
    let fields = plimsoll_wire::http2::vectors::Reader::default().read(said[0].3).unwrap();
    let expected = [
        (":method", "PUT"),
        (":scheme", "http"),
        (":path", "/p?q"),
        (":authority", "h:8"),
        ("x-name", "V w"),
        ("content-length", "3"),
    ];
    let expected = expected.map(|(n, v)| (n.as_bytes().to_vec(), v.as_bytes().to_vec()));
    assert_eq!(fields, expected);
    assert_eq!(said[1..], [(DATA, END_STREAM, 1, &b"abc"[..])]);
}

#[test]
fn a_block_larger_than_a_frame_is_continued() {
    let mut session = Session::new(Http2::default());
    session.out.clear();
    let long = format!(
        "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\nX: {}\r\n\r\n",
        "v".repeat(40_000)
    );
    session.submit(&Request { bytes: long.into_bytes(), ..Request::default() }, 1);
    let said = frames(&session.out);
    let shape: Vec<_> = said.iter().map(|f| (f.0, f.1, f.3.len() > 16_384)).collect();
    let expected = [
        (HEADERS, END_STREAM, false),
        (CONTINUATION, 0, false),
        (CONTINUATION, END_HEADERS, false),
    ];
    assert_eq!(shape, expected);
    let block = [said[0].3, said[1].3, said[2].3].concat();
    let fields = plimsoll_wire::http2::vectors::Reader::default().read(&block).unwrap();
    assert_eq!(fields.last().unwrap().1.len(), 40_000);
}

#[test]
fn a_reply_is_given_in_the_form_of_http1() {
    let mut session = Session::asking(&[get(KEEP_ALL)]);
    let mut server = Server::new(&[]);
    session.feed(&server.head(1, OK, false).data(1, b"hi", true).bytes);
    let seen = session.only();
    assert_eq!((seen.tag, seen.status, seen.body_bytes), (0, 200, 2));
    assert_eq!(seen.head, "content-length: 2\r\nx: y\r\n");
    assert_eq!(seen.body, b"hi");
    assert!(seen.reusable && !seen.truncated);
    // The answer to SETTINGS, and nothing else.
    assert_eq!(frames(&session.out), [(SETTINGS, ACK, 0, &[][..])]);
}

#[test]
fn of_a_reply_nobody_looks_at_only_the_refusal_is_kept() {
    let mut session = Session::asking(&[get(Keep::default()), get(Keep::default())]);
    let mut server = Server::new(&[]);
    server.head(1, OK, false).data(1, b"hi", true);
    server.head(3, &[(":status", "503"), ("x", "y")], false);
    session.feed(&server.data(3, &[b'e'; 600], false).data(3, b"", true).bytes);
    let [Ended::Reply(good), Ended::Reply(bad)] = &session.ended[..] else { panic!() };
    assert_eq!((good.head.as_str(), good.body.len(), good.body_bytes), ("", 0, 2));
    assert_eq!((bad.head.as_str(), bad.body.len(), bad.body_bytes), ("x: y\r\n", 512, 600));
    assert!(bad.truncated && !good.truncated);
}

#[test]
fn bodies_are_kept_up_to_the_limit_and_read_up_to_another() {
    let limits = Limits { body_bytes_kept: 5, body_bytes: 10, ..Limits::default() };
    for pieces in [vec![8], vec![4, 4], vec![5, 3], vec![8, 0]] {
        let mut session = Session::new(Http2 { limits, ..Http2::default() });
        session.submit(&get(KEEP_ALL), 0);
        let mut server = Server::new(&[]);
        server.status(1, "200");
        for (place, length) in pieces.iter().enumerate() {
            server.data(1, &vec![b'x'; *length], place + 1 == pieces.len());
        }
        session.feed(&server.bytes);
        let seen = session.only();
        assert_eq!((seen.body.len(), seen.body_bytes, seen.truncated), (5, 8, true), "{pieces:?}");
    }
    let mut session = Session::new(Http2 { limits, ..Http2::default() });
    session.submit(&get(KEEP_ALL), 0);
    session.submit(&get(STREAM), 1);
    let mut server = Server::new(&[]);
    server.status(1, "200").status(3, "200").data(3, &[0; 50], true);
    session.feed(&server.data(1, &[0; 11], true).bytes);
    let [Ended::Reply(streamed), Ended::GivenUp { tag: 0, fault, .. }] = &session.ended[..] else {
        panic!("{:?}", session.ended)
    };
    assert_eq!(streamed.body.len(), 50);
    assert_eq!(*fault, Fault::Protocol("the reply's body exceeds the limit"));
    assert!(frames(&session.out[session.out.len() - 13..])[0].0 == RST_STREAM);
}

#[test]
fn padding_priority_trailers_and_interim_heads_are_passed_over() {
    let mut session = Session::asking(&[get(KEEP_ALL)]);
    let mut server = Server::new(&[]);
    server.head(1, &[(":status", "103"), ("link", "x")], false);
    server.frame(2, 0, 1, &[0; 5]).frame(0xfa, 0xff, 77, b"unknown");
    let block = server.block(&[(":status", "200"), ("content-encoding", "gzip")]);
    let padded = [&[3][..], &[0; 5], &block, &[0; 3]].concat();
    server.frame(HEADERS, END_HEADERS | PADDED | PRIORITY, 1, &padded);
    server.frame(DATA, PADDED, 1, b"\x02hi\0\0").frame(DATA, PADDED, 1, &[0]);
    server.head(1, &[("x-sum", "1")], true);
    session.feed(&server.bytes);
    let seen = session.only();
    assert_eq!((seen.head.as_str(), &seen.body[..]), ("content-encoding: gzip\r\n", &b"hi"[..]));
    assert_eq!((seen.body_bytes, seen.encoding), (2, Encoding::Gzip));
}

#[test]
fn blocks_in_pieces_are_put_together() {
    let mut session = Session::asking(&[get(KEEP_ALL)]);
    let mut server = Server::new(&[]);
    let block = server.block(&[(":status", "204"), ("x", "y")]);
    server.frame(HEADERS, END_STREAM, 1, &block[..1]).frame(CONTINUATION, 0, 1, &[]);
    server.frame(CONTINUATION, END_HEADERS, 1, &block[1..]);
    session.feed(&server.bytes);
    assert_eq!((session.only().status, session.only().head.as_str()), (204, "x: y\r\n"));
}

#[test]
fn a_reply_to_head_has_a_length_and_no_body() {
    let mut session = Session::asking(&[request("HEAD", KEEP_ALL, b"")]);
    session.feed(&Server::new(&[]).head(1, OK, true).bytes);
    assert_eq!((session.only().status, session.only().body_bytes), (200, 0));
}

#[test]
fn headers_of_the_connection_are_left_out() {
    let mut session = Session::asking(&[get(KEEP_ALL)]);
    let fields = [(":status", "200"), ("connection", "close"), ("transfer-encoding", "chunked")];
    session.feed(&Server::new(&[]).head(1, &fields, true).bytes);
    assert_eq!((session.only().head.as_str(), session.only().encoding), ("", Encoding::Identity));
}

#[test]
fn capacity_follows_the_peer_and_what_is_under_way() {
    let codec = Http2 { streams_max: 500, ..Http2::default() };
    let mut session = Session::new(codec);
    assert_eq!(session.capacity(), 100);
    let mut server = Server::new(&[]);
    session.feed(&std::mem::take(&mut server.bytes));
    assert_eq!(session.capacity(), 500);
    session.feed(&std::mem::take(&mut server.settings(&[(3, 2)]).bytes));
    assert_eq!(session.capacity(), 2);
    session.submit(&get(KEEP_ALL), 1);
    assert_eq!(session.capacity(), 1);
    session.submit(&get(KEEP_ALL), 2);
    assert_eq!(session.capacity(), 0);
    session.feed(&std::mem::take(&mut server.settings(&[(3, 1)]).head(3, OK, false).bytes));
    assert_eq!(session.capacity(), 0);
    session.feed(&server.data(3, b"hi", true).settings(&[(3, 9)]).bytes);
    assert_eq!(session.capacity(), 8);
}

/// The fields of a head, a body, and what is wrong with them.
type Malformed<'a> = (&'a [(&'a str, &'a str)], &'a [u8], &'a str);

/// Replies that are wrong in themselves.
#[test]
fn malformed_replies_are_given_up_alone() {
    let long = "v".repeat(70_000);
    let cases: &[Malformed<'_>] = &[
        (&[("x", "y")], b"", "no :status"),
        (&[(":status", "20")], b"", "not three digits"),
        (&[(":status", "099")], b"", "not three digits"),
        (&[(":status", "200"), (":status", "200")], b"", "once and in front"),
        (&[("x", "y"), (":status", "200")], b"", "once and in front"),
        (&[(":status", "200"), (":path", "/")], b"", "pseudo-header"),
        (&[(":status", "200"), ("X", "y")], b"", "has invalid bytes"),
        (&[(":status", "200"), ("x", "a\r\nb: c")], b"", "has invalid bytes"),
        (&[(":status", "200"), ("content-length", "x")], b"", "not a number"),
        (&[(":status", "200"), ("content-length", "3")], b"hi", "shorter than its Content-Length"),
        (&[(":status", "200"), ("content-length", "1")], b"hi", "longer than it may be"),
        (&[(":status", "204")], b"hi", "longer than it may be"),
        (&[(":status", "101")], b"", "101 Switching Protocols"),
        (&[(":status", "200"), ("x", &long)], b"", "head exceeds the limit"),
    ];
    for (head, body, why) in cases {
        let mut session = Session::asking(&[get(KEEP_ALL), get(KEEP_ALL)]);
        let mut server = Server::new(&[]);
        let block = server.block(head);
        let pieces: Vec<_> = block.chunks(16_000).collect();
        for (place, piece) in pieces.iter().enumerate() {
            let end = if place + 1 == pieces.len() { END_HEADERS } else { 0 };
            server.frame(if place == 0 { HEADERS } else { CONTINUATION }, end, 1, piece);
        }
        server.data(1, body, true).head(3, OK, false).data(3, b"hi", true);
        session.feed(&server.bytes);
        let [Ended::GivenUp { tag: 0, fault, unprocessed: false }, Ended::Reply(next)] =
            &session.ended[..]
        else {
            panic!("{why}: {:?} {:?}", session.ended, session.fault)
        };
        assert!(fault.text().contains(why), "{why}: {fault:?}");
        assert!(matches!(fault, Fault::Protocol(_)));
        assert_eq!((next.tag, &next.body[..]), (1, &b"hi"[..]));
        let resets = frames(&session.out).iter().filter(|f| f.0 == RST_STREAM && f.2 == 1).count();
        assert_eq!(resets, 1, "{why}");
    }
}

#[test]
fn a_body_before_its_head_and_a_second_head_are_given_up() {
    for broken in [
        Server::new(&[]).data(1, b"hi", true).bytes.clone(),
        Server::new(&[]).status(1, "200").status(1, "200").bytes.clone(),
        Server::new(&[]).head(1, &[(":status", "100")], true).bytes.clone(),
        Server::new(&[]).status(1, "200").head(1, &[(":status", "200")], true).bytes.clone(),
        Server::new(&[]).window(1, 0).bytes.clone(),
        Server::new(&[]).window(1, 0x7fff_ffff).bytes.clone(),
    ] {
        let mut session = Session::asking(&[request("POST", KEEP_ALL, &[0; 1])]);
        session.feed(&broken);
        assert!(matches!(&session.ended[..], [Ended::GivenUp { .. }]), "{:?}", session.ended);
        assert_eq!(session.fault, None);
    }
}

/// What ends the connection, each time with a GOAWAY that says so.
#[test]
fn broken_framing_ends_the_connection() {
    let settings = || Server::new(&[]);
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), "the peer speaks HTTP/1.1, not HTTP/2"),
        (b"\x15\x03\x03\0\x02\x02\x0a\0\0".to_vec(), "speaks TLS"),
        (b"SSH-2.0-OpenSSH_9.2\r\n".to_vec(), "does not begin with SETTINGS"),
        (frame(PING, 0, 0, &[0; 8]), "does not begin with SETTINGS"),
        (frame(SETTINGS, ACK, 0, &[]), "does not begin with SETTINGS"),
        (settings().frame(PUSH_PROMISE, 4, 1, &[0; 8]).bytes.clone(), "pushes"),
        (settings().data(2, b"x", false).bytes.clone(), "never begun"),
        (settings().data(0, b"x", false).bytes.clone(), "never begun"),
        (settings().status(9, "200").bytes.clone(), "never begun"),
        (settings().reset(9, 0).bytes.clone(), "never begun"),
        (settings().window(9, 1).bytes.clone(), "never begun"),
        (settings().window(0, 0).bytes.clone(), "opens nothing"),
        (settings().window(0, 0x7fff_ffff).bytes.clone(), "beyond 2^31"),
        (settings().settings(&[(4, 1 << 31)]).bytes.clone(), "beyond 2^31"),
        (settings().settings(&[(5, 100)]).bytes.clone(), "MAX_FRAME_SIZE"),
        (settings().settings(&[(2, 1)]).bytes.clone(), "ENABLE_PUSH"),
        (settings().frame(SETTINGS, 0, 0, &[0; 5]).bytes.clone(), "impossible length"),
        (settings().frame(SETTINGS, ACK, 0, &[0; 6]).bytes.clone(), "impossible length"),
        (settings().frame(SETTINGS, 0, 1, &[]).bytes.clone(), "names a stream"),
        (settings().frame(PING, 0, 0, &[0; 7]).bytes.clone(), "not of 8 bytes"),
        (settings().frame(PING, 0, 1, &[0; 8]).bytes.clone(), "names a stream"),
        (settings().frame(GOAWAY, 0, 0, &[0; 7]).bytes.clone(), "shorter than 8"),
        (settings().frame(RST_STREAM, 0, 1, &[0; 5]).bytes.clone(), "not of 4 bytes"),
        (settings().frame(WINDOW_UPDATE, 0, 0, &[0; 3]).bytes.clone(), "not of 4 bytes"),
        (settings().frame(DATA, PADDED, 1, &[2, 0]).bytes.clone(), "shorter than their padding"),
        (settings().frame(DATA, PADDED, 1, &[]).bytes.clone(), "without a payload"),
        (settings().frame(HEADERS, 12, 1, &[2, 0]).bytes.clone(), "shorter than their padding"),
        (settings().frame(HEADERS, 0x24, 1, &[2, 0]).bytes.clone(), "shorter than their padding"),
        (settings().frame(HEADERS, 4, 1, &[0x80]).bytes.clone(), "not in the table"),
        (settings().frame(HEADERS, 0, 1, &[]).frame(DATA, 0, 1, &[]).bytes.clone(), "interrupted"),
        (
            settings().frame(HEADERS, 0, 1, &[]).frame(CONTINUATION, 0, 3, &[]).bytes.clone(),
            "interrupted",
        ),
        (settings().frame(CONTINUATION, 4, 1, &[]).bytes.clone(), "interrupted"),
        (settings().frame(CONTINUATION, 4, 0, &[]).bytes.clone(), "interrupted"),
        (settings().frame(77, 0, 0, &[0; 16_385]).bytes.clone(), "longer than 16384"),
    ];
    for (bytes, why) in cases {
        let mut session = Session::asking(&[get(KEEP_ALL), get(KEEP_ALL)]);
        session.feed(&bytes);
        let Some(Fault::Protocol(text)) = session.fault else {
            panic!("{why}: {:?}", session.ended)
        };
        assert!(text.contains(why), "{why}: {text}");
        assert_eq!(frames(&session.out).last().unwrap().0, GOAWAY, "{why}");
        session.fault = None;
        session.feed(&Server::new(&[]).bytes);
        assert_eq!(session.fault, Some(Fault::Protocol("the connection has failed before")));
    }
}

/// The end of a connection cuts only the replies that had begun.
#[test]
fn each_request_knows_whether_its_reply_had_begun() {
    use plimsoll_wire::http::Http;
    use plimsoll_wire::{Event, Protocol};

    let http = Http::Two(Http2::default());
    let mut out = Vec::new();
    let mut conn = http.open(&mut out);
    for tag in [10, 20, 30] {
        http.submit(&mut conn, &get(KEEP_ALL), tag, &mut out);
    }
    let said = Server::new(&[]).status(3, "200").data(3, b"x", false).bytes.clone();
    let mut bytes = &said[..];
    while let Ok(Event::Progress { consumed }) = http.receive(&mut conn, bytes, &mut out) {
        bytes = &bytes[consumed..];
    }
    assert_eq!(http.end(&mut conn), Err(Fault::Closed { began: true }));
    let began = [10, 20, 30, 40].map(|tag| http.began(&conn, tag));
    assert_eq!(began, [Some(false), Some(true), Some(false), None]);
}

#[test]
fn a_peer_that_closes_early_is_named_by_what_it_said() {
    let mut session = Session::asking(&[get(KEEP_ALL)]);
    session.feed(b"HTTP/1.0");
    assert_eq!(session.end(), Fault::Protocol("the peer speaks HTTP/1.1, not HTTP/2"));
    let mut session = Session::asking(&[get(KEEP_ALL)]);
    session.feed(&Server::new(&[]).bytes[..5]);
    assert_eq!(session.end(), Fault::Closed { began: false });
    let mut session = Session::asking(&[get(KEEP_ALL)]);
    session.feed(&Server::new(&[]).status(1, "200").bytes);
    assert_eq!(session.end(), Fault::Closed { began: true });
}

#[test]
fn floods_end_the_connection() {
    let ping = frame(PING, 0, 0, &[7; 8]);
    let interim = Server::default().block(&[(":status", "100")]);
    let floods = [
        ping.repeat(10_001),
        frame(SETTINGS, 0, 0, &[]).repeat(10_001),
        frame(SETTINGS, ACK, 0, &[]).repeat(10_001),
        frame(HEADERS, END_HEADERS, 1, &interim).repeat(10_001),
    ];
    for flood in floods {
        let mut session = Session::asking(&[get(KEEP_ALL)]);
        session.feed(&Server::new(&[]).bytes);
        session.feed(&flood);
        let text = session.fault.unwrap().text();
        assert!(text.contains("a flood of PING"), "{text}");
        assert!(session.out.len() <= 200_000);
    }
    // Many are fine where there is work between them.
    let mut session = Session::asking(&[get(KEEP_ALL)]);
    let mut server = Server::new(&[]);
    session.feed(&server.status(1, "200").bytes);
    for _ in 0..12_000 {
        session.feed(&ping);
        session.feed(&frame(DATA, 0, 1, b"x"));
    }
    assert_eq!(session.fault, None);
    let pings = frames(&session.out).iter().filter(|f| f.0 == PING && f.3 == [7; 8]).count();
    assert_eq!(pings, 12_000);
    // A block without end, of frames that hold nothing or much.
    for (payload, count) in [(&[][..], 100), (&[0; 16_000][..], 6)] {
        let mut session = Session::asking(&[get(KEEP_ALL)]);
        let mut server = Server::new(&[]);
        server.frame(HEADERS, 0, 1, &[]);
        for _ in 0..count {
            server.frame(CONTINUATION, 0, 1, payload);
        }
        session.feed(&server.bytes);
        assert_eq!(session.fault, Some(Fault::Protocol("the reply's head exceeds the limit")));
    }
}

/// The protocol of either version, with the same requests and replies.
#[test]
fn either_version_is_one_protocol() {
    use plimsoll_wire::http::{Conn, Http};
    use plimsoll_wire::{Event, Protocol};

    let h2 = Server::new(&[]).head(1, OK, false).data(1, b"hi", true).bytes.clone();
    let h1 = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx: y\r\n\r\nhi".to_vec();
    let two = Http::Two(Http2::default());
    for (http, bytes, capacity) in [(Http::default(), h1, 1), (two, h2, 100)] {
        let mut out = Vec::new();
        let mut conn = http.open(&mut out);
        assert_eq!((http.capacity(&conn), http.depth()), (capacity, capacity));
        http.submit(&mut conn, &get(KEEP_ALL), 5, &mut out);
        assert_eq!(http.capacity(&conn), capacity - 1);
        match http.receive(&mut conn, &bytes, &mut out) {
            Ok(Event::Reply { tag: 5, reply, consumed, reusable: true }) => {
                assert_eq!((reply.status, reply.body, consumed), (200, &b"hi"[..], bytes.len()));
                assert_eq!(reply.header("X"), Some(&b"y"[..]));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(http.cancel(&mut conn, 77, &mut out), matches!(conn, Conn::Two(_)));
        assert_eq!(http.end(&mut conn), Err(Fault::Closed { began: false }));
    }
    // A connection keeps the version that it was opened with.
    let conn = Http::default().open(&mut Vec::new());
    assert_eq!(two.capacity(&conn), 0);
}
