//! Byte-exact cases: each is tried whole, byte by byte, and with nothing kept.

use plimsoll_wire::Fault;
use plimsoll_wire::http1::{Encoding, Http1, Keep, Limits, Request};

use crate::session::{self, KEEP_ALL, Log, converse, drip, get, head};

/// What one reply must come to: status, body, whether the connection may go on.
type Expected = (u16, &'static [u8], bool);

/// Replies to GET, and what they are.
const GOOD: &[(&[u8], Expected)] = &[
    (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", (200, b"hi", true)),
    (b"HTTP/1.1 200 OK\r\nContent-Length:2\r\n\r\nhi", (200, b"hi", true)),
    (b"HTTP/1.1 200 OK\r\ncontent-length:\t 2 \t\r\n\r\nhi", (200, b"hi", true)),
    (b"HTTP/1.1 200 OK\r\nCONTENT-LENGTH: 0002\r\n\r\nhi", (200, b"hi", true)),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nhi", (200, b"hi", true)),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 02\r\n\r\nhi", (200, b"hi", true)),
    (b"HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nhi", (200, b"hi", true)),
    (b"HTTP/1.1 200 OK\r\nContent-Length:\r\n 2\r\n\r\nhi", (200, b"hi", true)),
    (b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\tc\r\nContent-Length: 2\r\n\r\nhi", (200, b"hi", true)),
    (b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nhi", (200, b"hi", true)),
    (b"HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nhi", (200, b"hi", true)),
    (b"HTTP/1.1 200 OK\nContent-Length: 2\n\nhi", (200, b"hi", true)),
    (b"HTTP/1.1 200 \xc3\xa9\r\nX: \xff\r\nContent-Length: 2\r\n\r\nhi", (200, b"hi", true)),
    (b"\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", (200, b"hi", true)),
    (b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", (503, b"", true)),
    (b"HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n", (999, b"", true)),
    (b"HTTP/1.1 204 No\r\n\r\n", (204, b"", true)),
    (b"HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\n", (204, b"", true)),
    (b"HTTP/1.1 304 Not\r\nContent-Length: 1000\r\n\r\n", (304, b"", true)),
    (b"HTTP/1.1 304 Not\r\nTransfer-Encoding: chunked\r\n\r\n", (304, b"", true)),
    (b"HTTP/1.1 304 Not\r\nContent-Length: x\r\n\r\n", (304, b"", true)),
    (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No\r\n\r\n", (204, b"", true)),
    (
        b"HTTP/1.1 103 Early\r\nContent-Length: 9\r\nLink: a\r\n\r\nHTTP/1.1 102 P\r\n\r\n\
          HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
        (200, b"x", true),
    ),
    // Chunks.
    (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n3\r\nyou\r\n0\r\n\r\n",
        (200, b"hiyou", true),
    ),
    (b"HTTP/1.1 200 OK\r\ntransfer-encoding:CHUNKED\r\n\r\n0\r\n\r\n", (200, b"", true)),
    (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
          00A;n=\"v;\"\r\n0123456789\r\n0b \t;x\r\nabcdefghijk\r\n000;end\r\nT: 1\r\nU: 2\r\n\r\n",
        (200, b"0123456789abcdefghijk", true),
    ),
    (b"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n2\nhi\n0\nT: 1\n\n", (200, b"hi", true)),
    (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 2\r\n\r\nhi",
        (200, b"hi", true),
    ),
    (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: , chunked\r\n\r\n\
          2\r\nhi\r\n0\r\n\r\n",
        (200, b"hi", true),
    ),
    // Both lengths: the chunks count, and the connection is not used again.
    (
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n\
          2\r\nhi\r\n0\r\n\r\n",
        (200, b"hi", false),
    ),
    (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: -\r\n\r\n0\r\n\r\n",
        (200, b"", false),
    ),
    (
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n\
          2\r\nhi\r\n0\r\n\r\n",
        (200, b"hi", false),
    ),
    // Bodies that the close ends.
    (b"HTTP/1.1 200 OK\r\n\r\nhi there", (200, b"hi there", false)),
    (b"HTTP/1.1 200 OK\r\n\r\n", (200, b"", false)),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhi", (200, b"hi", false)),
    (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: br\r\nContent-Length: 1\r\n\r\nhi",
        (200, b"hi", false),
    ),
    (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nhi", (200, b"hi", false)),
    // Whether the connection may go on.
    (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi", (200, b"hi", false)),
    (
        b"HTTP/1.1 200 OK\r\nConnection: upgrade , CLOSE,,\r\nContent-Length: 2\r\n\r\nhi",
        (200, b"hi", false),
    ),
    (
        b"HTTP/1.1 200 OK\r\nConnection: disclosed\r\nContent-Length: 2\r\n\r\nhi",
        (200, b"hi", true),
    ),
    (
        b"HTTP/1.1 200 OK\r\nConnection: a\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi",
        (200, b"hi", false),
    ),
    (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", (200, b"hi", false)),
    (
        b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\nhi",
        (200, b"hi", true),
    ),
    (
        b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive, close\r\nContent-Length: 2\r\n\r\nhi",
        (200, b"hi", false),
    ),
    (b"HTTP/1.1 204 No\r\nConnection: close\r\n\r\n", (204, b"", false)),
    // Names that only resemble the ones that matter.
    (
        b"HTTP/1.1 200 K\r\nContent-Lengthy: 9\r\nXontent-Length: 9\r\nContent-Length:2\r\n\r\nhi",
        (200, b"hi", true),
    ),
];

/// Replies to GET that are no replies.
const BAD: &[&[u8]] = &[
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhi",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2, 3\r\n\r\nhi",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2,\r\n\r\nhi",
    b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nhi",
    b"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nhi",
    b"HTTP/1.1 200 OK\r\nContent-Length: 0x2\r\n\r\nhi",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2 2\r\n\r\nhi",
    b"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nhi",
    b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\nhi",
    b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\nhi",
    b"HTTP/1.1 200 OK\r\nContent-Length: 1073741825\r\n\r\nhi",
    b"HTTP/1.1 200 OK\r\nNo colon here\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n: no name\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n folded: at once\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nA\x00: b\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nA: b\x00\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nA: b\r\n \x00\r\n\r\n",
    b"HTTP/1.1 200 OK\x00\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n\rA: b\r\n\r\n",
    b"HTTP/1.1 2000 OK\r\n\r\n",
    b"HTTP/1.1 20 OK\r\n\r\n",
    b"HTTP/1.1 099 OK\r\n\r\n",
    b"HTTP/1.1  200 OK\r\n\r\n",
    b"HTTP/1.x 200 OK\r\n\r\n",
    b"HTTP/2 200\r\nContent-Length: 0\r\n\r\n",
    b"http/1.1 200 OK\r\n\r\n",
    b"SSH-2.0-OpenSSH_9.2p1\r\n",
    b"\x15\x03\x01\x00\x02\x02\x50",
    b"<html>HTTP/0.9</html>",
    b" HTTP/1.1 200 OK\r\n\r\n",
    b"\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\nHTTP/1.1 204 No\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n 1\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1 1\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n;\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\rhi\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi2\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\rx",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\rx",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\nffffffffffffffff\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40000001\r\n",
];

/// Replies that the close cuts, and whether anything of them had come.
const CUT: &[(&[u8], bool)] = &[
    (b"", false),
    (b"\r\n", false),
    (b"H", true),
    (b"HTTP/1.1 200 OK\r\nContent-Le", true),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r", true),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", true),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nh", true),
    (b"HTTP/1.1 100 Continue\r\n\r\n", true),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", true),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n", true),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n", true),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nT: 1\r\n", true),
];

/// The same conversation with every combination of keeping and of cutting the bytes.
fn in_every_way(bytes: &[u8], request: fn(Keep) -> Request, check: impl Fn(&Log, Keep)) {
    let codec = Http1::default();
    for keep in [(false, false), (true, false), (false, true), (true, true)] {
        let keep = Keep { head: keep.0, body: keep.1, stream: false };
        check(&converse(&codec, &[request(keep)], &[bytes]), keep);
        check(&converse(&codec, &[request(keep)], &drip(bytes)), keep);
        for cut in 0..bytes.len() {
            let (front, back) = bytes.split_at(cut);
            check(&converse(&codec, &[request(keep)], &[front, back]), keep);
        }
    }
}

fn show(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

#[test]
fn good_replies_are_read_to_the_byte() {
    for (bytes, (status, body, reusable)) in GOOD {
        in_every_way(bytes, get, |log, keep| {
            let [reply] = &log.replies[..] else { panic!("{}: {log:?}", show(bytes)) };
            assert_eq!(reply.status, *status, "{}", show(bytes));
            assert_eq!(reply.body_bytes, body.len() as u64, "{}", show(bytes));
            assert_eq!(reply.reusable, *reusable, "{}", show(bytes));
            let refused = !matches!(status, 200..=299);
            let kept_body: &[u8] = if keep.body || refused { body } else { b"" };
            assert_eq!(reply.body, kept_body, "{}", show(bytes));
            assert!(keep.head || refused || reply.head.is_empty(), "{}", show(bytes));
            assert_eq!((reply.tag, reply.truncated), (7, false));
        });
    }
}

#[test]
fn how_a_refusal_begins_is_kept_unasked() {
    let said = "no ".repeat(300);
    let bytes = format!("HTTP/1.1 503 Busy\r\nContent-Length: 900\r\nA: b\r\n\r\n{said}");
    in_every_way(bytes.as_bytes(), get, |log, keep| {
        let [reply] = &log.replies[..] else { panic!("{log:?}") };
        assert_eq!(reply.head, b"Content-Length: 900\r\nA: b\r\n");
        assert_eq!(reply.body, &said.as_bytes()[..if keep.body { 900 } else { 512 }]);
        assert_eq!((reply.body_bytes, reply.truncated), (900, !keep.body));
    });
}

#[test]
fn what_is_no_reply_is_a_fault() {
    for bytes in BAD {
        in_every_way(bytes, get, |log, _| {
            let protocol = matches!(log.fault, Some(Fault::Protocol(_) | Fault::NotHttp1));
            assert!(protocol && log.replies.is_empty(), "{}: {log:?}", show(bytes));
        });
    }
}

#[test]
fn a_cut_reply_says_whether_it_had_begun() {
    for (bytes, began) in CUT {
        in_every_way(bytes, get, |log, _| {
            let closed = Log { replies: vec![], fault: Some(Fault::Closed { began: *began }) };
            assert_eq!(*log, closed, "{}", show(bytes));
        });
    }
}

#[test]
fn a_reply_to_head_has_no_body() {
    for bytes in [
        &b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"[..],
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
    ] {
        in_every_way(bytes, head, |log, _| {
            let [reply] = &log.replies[..] else { panic!("{log:?}") };
            assert!(reply.reusable && reply.body_bytes == 0, "{log:?}");
        });
    }
}

#[test]
fn bytes_that_nobody_asked_for_are_a_fault() {
    let extra = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi\r\nHTTP/1.1 204 No\r\n\r\n";
    in_every_way(extra, get, |log, _| {
        assert_eq!(log.replies.len(), 1);
        assert!(matches!(log.fault, Some(Fault::Protocol(_) | Fault::NotHttp1)), "{log:?}");
    });
    // The empty line alone is forgiven.
    in_every_way(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi\r\n", get, |log, _| {
        assert_eq!(log.replies.len(), 1);
        assert_eq!(log.fault, Some(Fault::Closed { began: false }));
    });
}

#[test]
fn one_reply_after_another() {
    let stream = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na\
        HTTP/1.1 204 No\r\n\r\n\r\n\
        HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 404 No\r\n\
        Transfer-Encoding: chunked\r\n\r\n1\r\nb\r\n0\r\n\r\n\
        HTTP/1.1 200 OK\r\nX: y\r\n\r\nthe rest";
    let requests = vec![get(KEEP_ALL); 4];
    let whole = converse(&Http1::default(), &requests, &[stream]);
    let statuses: Vec<_> = whole.replies.iter().map(|r| (r.tag, r.status, r.reusable)).collect();
    assert_eq!(statuses, [(7, 200, true), (8, 204, true), (9, 404, true), (10, 200, false)]);
    assert_eq!(whole.replies[3].body, b"the rest");
    assert_eq!(whole.replies[3].head, b"X: y\r\n");
    assert_eq!(whole.fault, None);
    assert_eq!(converse(&Http1::default(), &requests, &drip(stream)), whole);
}

#[test]
fn headers_keep_their_spelling() {
    let bytes = b"HTTP/1.1 200 OK\r\nX-One:  a b \r\nx-one: c\r\nFold: d\r\n  e\r\nEmpty:\r\n\
        Content-Length: 0\r\n\r\n";
    in_every_way(bytes, get, |log, keep| {
        let reply = session::reply(&log.replies[0]);
        let headers: Vec<_> = reply.headers().collect();
        if keep.head {
            let expected: [(&[u8], &[u8]); 5] = [
                (b"X-One", b"a b"),
                (b"x-one", b"c"),
                (b"Fold", b"d\r\n  e"),
                (b"Empty", b""),
                (b"Content-Length", b"0"),
            ];
            assert_eq!(headers, expected);
            assert_eq!(reply.header("X-ONE"), Some(&b"a b"[..]));
            assert_eq!(reply.header("content-length"), Some(&b"0"[..]));
            assert_eq!(reply.header("content"), None);
        } else {
            assert!(headers.is_empty());
        }
    });
}

#[test]
fn codings_are_named() {
    let cases: &[(&str, Encoding)] = &[
        ("Content-Encoding: gzip", Encoding::Gzip),
        ("content-encoding: X-GZIP", Encoding::Gzip),
        ("Content-Encoding: deflate", Encoding::Deflate),
        ("Content-Encoding: identity", Encoding::Identity),
        ("Content-Encoding: identity, gzip", Encoding::Gzip),
        ("Content-Encoding: br", Encoding::Other),
        ("Content-Encoding: gzip, gzip", Encoding::Other),
        ("Content-Encoding: gzip\r\nContent-Encoding: deflate", Encoding::Other),
        ("X: gzip", Encoding::Identity),
        ("Transfer-Encoding: gzip, chunked", Encoding::Gzip),
        ("Transfer-Encoding: gzip;q=1, chunked\r\nContent-Encoding: br", Encoding::Other),
    ];
    for (line, encoding) in cases {
        let chunked = line.contains("chunked");
        let framing = if chunked { "" } else { "Content-Length: 5\r\n" };
        let bytes = format!("HTTP/1.1 200 OK\r\n{line}\r\n{framing}\r\n0\r\n\r\n");
        in_every_way(bytes.as_bytes(), get, |log, _| {
            assert_eq!(log.replies[0].encoding, *encoding, "{line}");
        });
    }
}

#[test]
fn limits_are_kept_to_the_byte() {
    let reply = |blank: usize| {
        let pad = "a".repeat(blank);
        format!("HTTP/1.1 200 OK\r\nX: {pad}\r\nContent-Length: 4\r\n\r\nbody").into_bytes()
    };
    let limits = Limits { head_bytes: 64, body_bytes_kept: 3, body_bytes: 4 };
    let codec = Http1 { limits };
    // The head without its padding has 17 + 5 + 19 + 2 = 43 bytes.
    for (pad, fits) in [(0, true), (21, true), (22, false), (5000, false)] {
        let bytes = reply(pad);
        for pieces in [vec![&bytes[..]], drip(&bytes), bytes.chunks(7).collect()] {
            let log = converse(&codec, &[get(KEEP_ALL)], &pieces);
            if fits {
                let [reply] = &log.replies[..] else { panic!("{log:?}") };
                assert_eq!((&reply.body[..], reply.truncated), (&b"bod"[..], true));
                assert_eq!(reply.body_bytes, 4);
            } else {
                let long = Fault::Protocol("the reply's head exceeds the limit");
                assert_eq!(log.fault, Some(long), "{pad}");
            }
        }
    }
    for (bytes, fits) in [
        (&b"HTTP/1.1 200 OK\r\n\r\n1234"[..], true),
        (b"HTTP/1.1 200 OK\r\n\r\n12345", false),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12345", false),
        (b"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n2\nab\n2\ncd\n0\n\n", true),
        (b"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n2\nab\n3\ncde\n0\n\n", false),
    ] {
        for pieces in [vec![bytes], drip(bytes)] {
            let log = converse(&codec, &[get(KEEP_ALL)], &pieces);
            let long = Fault::Protocol("the reply's body exceeds the limit");
            assert_eq!(log.fault == Some(long), !fits, "{}: {log:?}", show(bytes));
            assert_eq!(log.replies.len(), usize::from(fits));
            assert!(log.replies.iter().all(|r| r.truncated && r.body.len() == 3));
        }
    }
}

#[test]
fn framing_without_end_is_cut_off() {
    let codec = Http1 { limits: Limits { head_bytes: 64, ..Limits::default() } };
    let begin = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let zeros = "0".repeat(65);
    let extension = format!("1;{}", "x".repeat(65));
    let trailers = format!("0\r\n{}", "T: 1\r\n".repeat(12));
    for endless in [zeros, extension, trailers] {
        let bytes = format!("{begin}{endless}").into_bytes();
        for pieces in [vec![&bytes[..]], drip(&bytes)] {
            let log = converse(&codec, &[get(KEEP_ALL)], &pieces);
            let long = Fault::Protocol("a chunk's size line or the trailers exceed the limit");
            assert_eq!(log.fault, Some(long), "{endless}");
        }
    }
}

#[test]
fn a_connection_is_small() {
    let bytes = size_of::<plimsoll_wire::http1::Conn>();
    assert!(bytes <= 160, "{bytes}");
}
