//! Drives a codec the way the engine does and writes down what it said.

use std::collections::BTreeMap;

use plimsoll_wire::http1::{Encoding, Keep, Reply, Request};
use plimsoll_wire::http2::{Conn, Http2};
use plimsoll_wire::{Event, Fault, Protocol};

pub const KEEP_ALL: Keep = Keep { head: true, body: true, stream: false };
pub const STREAM: Keep = Keep { head: true, body: false, stream: true };

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    Reply(Seen),
    GivenUp { tag: u32, fault: Fault, unprocessed: bool },
}

/// A reply, copied out of the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub tag: u32,
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
    pub encoding: Encoding,
    pub body_bytes: u64,
    pub truncated: bool,
    pub reusable: bool,
}

/// A connection and everything that it said.
pub struct Session {
    pub codec: Http2,
    pub conn: Conn,
    /// What the codec has sent since this was last emptied.
    pub out: Vec<u8>,
    pub ended: Vec<Ended>,
    pub fault: Option<Fault>,
    streamed: BTreeMap<u32, Vec<u8>>,
}

pub fn request(method: &str, keep: Keep, body: &[u8]) -> Request {
    let head = format!("{method} /a HTTP/1.1\r\nHost: h:1\r\nUser-Agent: p\r\n");
    let length = format!("Content-Length: {}\r\n\r\n", body.len());
    let bytes = [head.as_bytes(), length.as_bytes(), body].concat();
    Request { bytes, head: method == "HEAD", keep }
}

pub fn get(keep: Keep) -> Request {
    request("GET", keep, b"")
}

impl Session {
    pub fn new(codec: Http2) -> Self {
        let mut out = Vec::new();
        let conn = codec.open(&mut out);
        Session { codec, conn, out, ended: vec![], fault: None, streamed: BTreeMap::new() }
    }

    /// A connection of the default kind with so many requests under way, tags from 0, whose greeting and
    /// requests have been sent.
    pub fn asking(requests: &[Request]) -> Self {
        let mut session = Session::new(Http2::default());
        for (tag, request) in requests.iter().enumerate() {
            session.submit(request, tag as u32);
        }
        session.out.clear();
        session
    }

    pub fn submit(&mut self, request: &Request, tag: u32) {
        assert!(self.capacity() > 0);
        self.codec.submit(&mut self.conn, request, tag, &mut self.out);
    }

    pub fn capacity(&self) -> u32 {
        self.codec.capacity(&self.conn)
    }

    pub fn cancel(&mut self, tag: u32) -> bool {
        self.codec.cancel(&mut self.conn, tag, &mut self.out)
    }

    /// Reads `piece` to its end, or to a fault.
    pub fn feed(&mut self, piece: &[u8]) {
        let mut rest = piece;
        while self.fault.is_none() {
            let consumed = match self.codec.receive(&mut self.conn, rest, &mut self.out) {
                Ok(Event::More) => break,
                Ok(Event::Progress { consumed }) => consumed,
                Ok(Event::Part { tag, bytes, consumed }) => {
                    assert!(!bytes.is_empty());
                    self.streamed.entry(tag).or_default().extend_from_slice(bytes);
                    consumed
                }
                Ok(Event::Reply { tag, reply, consumed, reusable }) => {
                    let seen = seen(tag, &reply, reusable, self.streamed.remove(&tag));
                    self.ended.push(Ended::Reply(seen));
                    consumed
                }
                Ok(Event::GivenUp { tag, fault, unprocessed, consumed }) => {
                    self.streamed.remove(&tag);
                    self.ended.push(Ended::GivenUp { tag, fault, unprocessed });
                    consumed
                }
                Err(fault) => {
                    self.fault = Some(fault);
                    assert_eq!(self.capacity(), 0);
                    break;
                }
            };
            rest = &rest[consumed..];
        }
    }

    /// The peer closes.
    pub fn end(&mut self) -> Fault {
        match self.codec.end(&mut self.conn) {
            Err(fault) => fault,
            Ok(event) => panic!("{event:?} at the end"),
        }
    }

    /// The only reply there was.
    pub fn only(&self) -> &Seen {
        match (&self.ended[..], self.fault) {
            ([Ended::Reply(seen)], None) => seen,
            other => panic!("{other:?}"),
        }
    }
}

fn seen(tag: u32, reply: &Reply<'_>, reusable: bool, streamed: Option<Vec<u8>>) -> Seen {
    let mut body = streamed.unwrap_or_default();
    body.extend_from_slice(reply.body);
    Seen {
        tag,
        status: reply.status,
        head: String::from_utf8_lossy(reply.head).into_owned(),
        body,
        encoding: reply.encoding,
        body_bytes: reply.body_bytes,
        truncated: reply.truncated,
        reusable,
    }
}
