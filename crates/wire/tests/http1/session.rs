//! Drives a codec the way the engine does and writes down what it said.

use plimsoll_wire::http1::{Conn, Encoding, Http1, Keep, Reply, Request};
use plimsoll_wire::{Event, Fault, Protocol};

/// A reply, copied out of the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub tag: u32,
    pub status: u16,
    pub head: Vec<u8>,
    pub body: Vec<u8>,
    pub encoding: Encoding,
    pub body_bytes: u64,
    pub truncated: bool,
    pub reusable: bool,
}

/// Everything a connection said from its opening to its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    pub replies: Vec<Seen>,
    pub fault: Option<Fault>,
}

pub const KEEP_ALL: Keep = Keep { head: true, body: true, stream: false };

pub fn get(keep: Keep) -> Request {
    Request { bytes: b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(), head: false, keep }
}

pub fn head(keep: Keep) -> Request {
    Request { head: true, ..get(keep) }
}

/// Sends `requests` one after the other, each as soon as the one before is answered, while the
/// server's bytes come in as `pieces`; then the peer closes.
pub fn converse(codec: &Http1, requests: &[Request], pieces: &[&[u8]]) -> Log {
    let mut out = Vec::new();
    let mut conn = codec.open(&mut out);
    let mut log = Log::default();
    let mut sent = 0;
    let mut streamed = Vec::new();
    submit_next(codec, &mut conn, requests, &mut sent);
    for piece in pieces {
        let mut rest = *piece;
        loop {
            match codec.receive(&mut conn, rest, &mut out) {
                Ok(Event::More) => break,
                Ok(Event::Progress { consumed }) => {
                    assert!(consumed > 0 && consumed <= rest.len(), "consumed {consumed}");
                    rest = &rest[consumed..];
                }
                Ok(Event::Part { tag, bytes, consumed }) => {
                    assert!(consumed > 0 && consumed <= rest.len(), "consumed {consumed}");
                    assert!(!bytes.is_empty() && tag == sent as u32 + 6);
                    rest = &rest[consumed..];
                    streamed.extend_from_slice(bytes);
                }
                Ok(event @ Event::GivenUp { .. }) => panic!("{event:?} in HTTP/1.1"),
                Ok(Event::Reply { tag, reply, consumed, reusable }) => {
                    // Behind its last piece nothing of a reply is left to be consumed.
                    assert!(consumed > 0 || !streamed.is_empty(), "nothing consumed");
                    assert!(consumed <= rest.len(), "consumed {consumed}");
                    rest = &rest[consumed..];
                    log.replies.push(seen(tag, &reply, reusable, &mut streamed));
                    assert_eq!(codec.capacity(&conn), u32::from(reusable));
                    submit_next(codec, &mut conn, requests, &mut sent);
                }
                Err(fault) => {
                    assert!(
                        matches!(fault, Fault::Protocol(_) | Fault::NotHttp1),
                        "{fault:?} before the end"
                    );
                    assert_eq!(codec.capacity(&conn), 0);
                    log.fault = Some(fault);
                    return log;
                }
            }
        }
    }
    match codec.end(&mut conn) {
        Ok(Event::Reply { tag, reply, consumed, reusable }) => {
            assert!(consumed == 0 && !reusable);
            log.replies.push(seen(tag, &reply, reusable, &mut streamed));
        }
        Ok(other) => panic!("{other:?} at the end"),
        Err(fault) => log.fault = Some(fault),
    }
    assert!(out.is_empty(), "HTTP/1.1 has nothing to say on its own");
    log
}

fn submit_next(codec: &Http1, conn: &mut Conn, requests: &[Request], sent: &mut usize) {
    if let Some(request) = requests.get(*sent)
        && codec.capacity(conn) == 1
    {
        let mut out = Vec::new();
        codec.submit(conn, request, *sent as u32 + 7, &mut out);
        assert_eq!(out, request.bytes);
        assert_eq!(codec.capacity(conn), 0);
        *sent += 1;
    }
}

/// The reply, with what was given out of it before.
fn seen(tag: u32, reply: &Reply<'_>, reusable: bool, streamed: &mut Vec<u8>) -> Seen {
    let mut body = std::mem::take(streamed);
    body.extend_from_slice(reply.body);
    Seen {
        tag,
        status: reply.status,
        head: reply.head.to_vec(),
        body,
        encoding: reply.encoding,
        body_bytes: reply.body_bytes,
        truncated: reply.truncated,
        reusable,
    }
}

/// `bytes` one by one.
pub fn drip(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.chunks(1).collect()
}

/// The reply that was copied, as a session would see it.
pub fn reply(seen: &Seen) -> Reply<'_> {
    Reply {
        status: seen.status,
        head: &seen.head,
        body: &seen.body,
        encoding: seen.encoding,
        body_bytes: seen.body_bytes,
        truncated: seen.truncated,
    }
}
