//! HTTP/1.1: replies that the generator reads, requests that the servers read, and content codings.

use crate::conversation::{Conversation, Differing, split_alike};
use crate::holds::{choice, pieces};
use crate::memory::{Allowed, within};
use crate::reference::{head, hyper};
use flate2::Compression;
use flate2::read::{GzEncoder, ZlibEncoder};
use plimsoll_wire::Protocol as _;
use plimsoll_wire::http1::{Encoding, Http1, Keep, Limits, Reply, Request, decode_body};
use plimsoll_wire::{Event, Fault};
use std::io::Read as _;

const REPLY_MEMORY: Allowed = Allowed { base: 600_000, each: 60 };

/// Asks for both; the second byte of an input chooses.
fn request(kind: u8) -> Request {
    let keep = Keep { head: kind & 1 == 0, body: kind & 2 == 0, stream: kind & 4 != 0 };
    let head = kind & 8 != 0;
    let method = if head { "HEAD" } else { "GET" };
    Request { bytes: format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes(), head, keep }
}

fn shown(reply: &Reply<'_>) -> String {
    let mut read = Vec::new();
    let headers: Vec<_> = reply.headers().collect();
    headers.iter().for_each(|(name, value)| read.extend_from_slice(&[*name, *value].concat()));
    format!("{reply:?} {headers:?}")
}

fn after(codec: &Http1, conn: &mut <Http1 as plimsoll_wire::Protocol>::Conn, out: &mut Vec<u8>) {
    // Everything is kept of the second and later replies.
    if codec.capacity(conn) == 1 {
        codec.submit(conn, &request(0), 2, out);
    }
}

/// Bytes of a server of HTTP/1.1. Of the first two bytes one is the length of the pieces, the other what is asked for.
///
/// # Panics
/// When a property does not hold.
pub fn replies(bytes: &[u8]) {
    let (size, bytes) = choice(bytes);
    let (kind, bytes) = choice(bytes);
    let limits = Limits { body_bytes_kept: 2000, ..Limits::default() };
    let codec = Http1 { limits };
    let make = || {
        let mut out = Vec::new();
        let mut conn = codec.open(&mut out);
        codec.submit(&mut conn, &request(kind), 1, &mut out);
        Conversation::<Http1> { codec: &codec, conn, shown, next: after }
    };
    within(bytes.len(), REPLY_MEMORY, || split_alike(make, bytes, size.into(), Differing::Faults));
    compare(bytes, kind & 8 != 0);
}

/// The first reply, as httparse and hyper read it.
fn compare(bytes: &[u8], is_head: bool) {
    let codec = Http1::default();
    let mut out = Vec::new();
    let mut conn = codec.open(&mut out);
    codec.submit(&mut conn, &request(u8::from(is_head) << 3), 1, &mut out);
    let Some(first) = first_reply(&codec, &mut conn, bytes, &mut out) else { return };
    if let Some((status, fields)) = head::reply(bytes)
        && status >= 200
    {
        let own: Vec<_> =
            first.headers().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
        assert_eq!((first.status, own), (status, fields), "httparse reads another head");
    }
    if let Some((status, body)) = hyper::reply(bytes, is_head) {
        assert_eq!(first.status, status, "hyper reads another status");
        assert_eq!(first.body.escape_ascii().to_string(), body.escape_ascii().to_string());
    }
}

fn first_reply<'c>(
    codec: &Http1,
    conn: &'c mut <Http1 as plimsoll_wire::Protocol>::Conn,
    bytes: &'c [u8],
    out: &mut Vec<u8>,
) -> Option<Reply<'c>> {
    // Where the whole input is one reply, or begins with one, one call is enough: nothing comes before the reply's event.
    let mut rest = bytes;
    while let Ok(Event::Progress { consumed }) = peek(codec, rest) {
        if consumed == 0 {
            return None;
        }
        rest = &rest[consumed..];
    }
    match codec.receive(conn, rest, out) {
        Ok(Event::Reply { reply, .. }) => Some(reply),
        _ => None,
    }
}

/// The first event of a connection of its own: the borrow of a real one would have to last for all of a loop.
fn peek<'b>(codec: &Http1, bytes: &'b [u8]) -> Result<Event<'b, ()>, Fault> {
    let mut out = Vec::new();
    let mut conn = codec.open(&mut out);
    codec.submit(&mut conn, &request(0), 1, &mut out);
    match codec.receive(&mut conn, bytes, &mut out)? {
        Event::Progress { consumed } => Ok(Event::Progress { consumed }),
        _ => Ok(Event::More),
    }
}

/// Bytes of a client, as the stations' loop reads them. The first byte is the length of the pieces.
///
/// # Panics
/// When a property does not hold.
pub fn requests(bytes: &[u8]) {
    use plimsoll_serving::http::fuzz::{content, requests};
    let (size, bytes) = choice(bytes);
    let allowed = Allowed { base: 20_000, each: 100 };
    let whole = within(bytes.len(), allowed, || requests(std::iter::once(bytes)));
    let cut = requests(pieces(bytes, size.into()));
    assert_eq!(cut, whole, "in pieces of {size} bytes, and whole");
    for seen in &whole.heads {
        let reference = head::request(&bytes[seen.start..]);
        assert_eq!(reference.map(|(length, _)| length), Some(seen.length));
    }
    let Some(first) = whole.heads.first() else { return };
    if let (Some(end), Some(body)) = (first.end, hyper::request_body(bytes)) {
        let own = content(&bytes[first.start + first.length..end], first.is_chunked);
        let (own, theirs) = (own.escape_ascii(), body.escape_ascii());
        assert_eq!(own.to_string(), theirs.to_string(), "hyper reads another body");
    }
}

/// A coded body, and the same bytes as a body that is coded and decoded again. The first byte chooses the coding and a limit.
///
/// # Panics
/// When a property does not hold.
pub fn codings(bytes: &[u8]) {
    let (kind, body) = choice(bytes);
    let encoding = [Encoding::Gzip, Encoding::Deflate, Encoding::Identity, Encoding::Other]
        [usize::from(kind & 3)];
    let limit = [10, 1000, 100_000][usize::from(kind >> 2) % 3];
    let reply = |body, encoding| Reply {
        status: 200,
        head: b"",
        body,
        encoding,
        body_bytes: 0,
        truncated: false,
    };
    let mut scratch = Vec::new();
    let allowed = Allowed { base: 300_000, each: 4 };
    within(body.len(), allowed, || {
        match decode_body(&reply(body, encoding), &mut scratch, limit) {
            Ok(decoded) => assert!(decoded.len() <= limit),
            Err(error) => crate::holds::one_line(&error),
        }
    });
    let mut coded = Vec::new();
    let read = match encoding {
        Encoding::Gzip => GzEncoder::new(body, Compression::fast()).read_to_end(&mut coded),
        Encoding::Deflate => ZlibEncoder::new(body, Compression::fast()).read_to_end(&mut coded),
        Encoding::Identity | Encoding::Other => return,
    };
    assert!(read.is_ok());
    let decoded = decode_body(&reply(&coded, encoding), &mut scratch, body.len());
    assert_eq!(decoded, Ok(body));
}
