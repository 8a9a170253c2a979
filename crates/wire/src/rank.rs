//! Rank frames: the framing between FeedSim's driver and its leaf server, both sides.
//!
//! A request is a header of 24 bytes and a payload, a reply a header of 32 bytes and a payload. All
//! numbers are big-endian and packed:
//!
//! | request | bytes | reply | bytes |
//! |---|---|---|---|
//! | kind, 0 | 4 | kind, 0 | 4 |
//! | request id | 8 | request id | 8 |
//! | start time, ns | 8 | start time, ns, as in the request | 8 |
//! | payload length | 4 | processing time, ns | 8 |
//! | | | payload length | 4 |
//!
//! Replies may come in any order; they are matched by the id. The original knows only kind 0. Here
//! a server that will not or cannot answer says so with [`KIND_REFUSED`] or [`KIND_FAILED`] and a line
//! of text, so that a full server differs from a dead one.

mod client;
mod server;

pub use client::Conn;
pub use server::{FrameError, Incoming, RequestReader};

use crate::{Event, Fault, Protocol};

/// Bytes of a request's header.
pub const REQUEST_HEADER_BYTES: usize = 24;
/// Bytes of a reply's header.
pub const RESPONSE_HEADER_BYTES: usize = 32;
/// The kind of a ranking request, and of the reply to one that was done.
pub const KIND_RANK: u32 = 0;
/// The kind of a reply to a request that was refused because the server was full.
pub const KIND_REFUSED: u32 = 1;
/// The kind of a reply to a request that failed inside the server.
pub const KIND_FAILED: u32 = 2;

/// The header of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestHeader {
    /// The kind of the request: [`KIND_RANK`].
    pub kind: u32,
    /// The asker's name for the request.
    pub request_id: u64,
    /// Time at which it was sent by the asker's clock, ns; the reply brings it back.
    pub start_time_ns: u64,
    /// Bytes that follow.
    pub payload_bytes: u32,
}

impl RequestHeader {
    /// The bytes of this header.
    #[must_use]
    pub fn encode(&self) -> [u8; REQUEST_HEADER_BYTES] {
        let mut bytes = [0; REQUEST_HEADER_BYTES];
        bytes[..4].copy_from_slice(&self.kind.to_be_bytes());
        bytes[4..12].copy_from_slice(&self.request_id.to_be_bytes());
        bytes[12..20].copy_from_slice(&self.start_time_ns.to_be_bytes());
        bytes[20..].copy_from_slice(&self.payload_bytes.to_be_bytes());
        bytes
    }

    /// The header that these bytes are.
    #[must_use]
    pub fn decode(bytes: &[u8; REQUEST_HEADER_BYTES]) -> Self {
        Self {
            kind: u32_at(bytes, 0),
            request_id: u64_at(bytes, 4),
            start_time_ns: u64_at(bytes, 12),
            payload_bytes: u32_at(bytes, 20),
        }
    }
}

/// The header of a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseHeader {
    /// The way it ended: [`KIND_RANK`], [`KIND_REFUSED`] or [`KIND_FAILED`].
    pub kind: u32,
    /// The request's name.
    pub request_id: u64,
    /// The request's start time, ns, by the asker's clock.
    pub start_time_ns: u64,
    /// From the request read to the reply made, ns, by the server's clock.
    pub processing_time_ns: u64,
    /// Bytes that follow.
    pub payload_bytes: u32,
}

impl ResponseHeader {
    /// The bytes of this header.
    #[must_use]
    pub fn encode(&self) -> [u8; RESPONSE_HEADER_BYTES] {
        let mut bytes = [0; RESPONSE_HEADER_BYTES];
        bytes[..4].copy_from_slice(&self.kind.to_be_bytes());
        bytes[4..12].copy_from_slice(&self.request_id.to_be_bytes());
        bytes[12..20].copy_from_slice(&self.start_time_ns.to_be_bytes());
        bytes[20..28].copy_from_slice(&self.processing_time_ns.to_be_bytes());
        bytes[28..].copy_from_slice(&self.payload_bytes.to_be_bytes());
        bytes
    }

    /// The header that these bytes are.
    #[must_use]
    pub fn decode(bytes: &[u8; RESPONSE_HEADER_BYTES]) -> Self {
        Self {
            kind: u32_at(bytes, 0),
            request_id: u64_at(bytes, 4),
            start_time_ns: u64_at(bytes, 12),
            processing_time_ns: u64_at(bytes, 20),
            payload_bytes: u32_at(bytes, 28),
        }
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_be_bytes(word)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_be_bytes(word)
}

/// The client side of the protocol, with what it puts up with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank {
    /// Requests in flight on one connection, at least 1. FeedSim's driver has 1.
    pub depth: u32,
    /// Longest payload of a reply, bytes. Longer is a fault.
    pub payload_bytes_max: u32,
}

impl Default for Rank {
    /// One request in flight, replies of at most 16 MiB.
    fn default() -> Self {
        Self { depth: 1, payload_bytes_max: 16 << 20 }
    }
}

/// One request, ready to be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Its name. No two requests in flight on one connection may have the same.
    pub request_id: u64,
    /// The start time to write into the header, ns. The server only sends it back.
    pub start_time_ns: u64,
    /// The payload, below 4 GiB. FeedSim's driver sends 3000 bytes; the server does not use them.
    pub payload: Vec<u8>,
    /// True if the session wants to see the reply's payload; passing over it is cheaper.
    pub keep: bool,
}

/// A complete reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// Its header. Whether it is a success, its kind says.
    pub header: ResponseHeader,
    /// Its payload when [`Request::keep`] asked for it, else nothing.
    pub payload: &'a [u8],
}

impl Protocol for Rank {
    type Conn = Conn;
    type Request = Request;
    type Reply<'a> = Reply<'a>;

    fn open(&self, _out: &mut Vec<u8>) -> Conn {
        Conn::default()
    }

    fn capacity(&self, conn: &Conn) -> u32 {
        conn.capacity(self.depth)
    }

    fn submit(&self, conn: &mut Conn, request: &Request, tag: u32, out: &mut Vec<u8>) {
        let header = RequestHeader {
            kind: KIND_RANK,
            request_id: request.request_id,
            start_time_ns: request.start_time_ns,
            // A payload is always below 4 GiB: the frame could not hold a longer one.
            payload_bytes: request.payload.len() as u32,
        };
        out.extend_from_slice(&header.encode());
        out.extend_from_slice(&request.payload);
        conn.expect(request, tag);
    }

    fn receive<'a>(
        &self,
        conn: &'a mut Conn,
        input: &'a [u8],
        _out: &mut Vec<u8>,
    ) -> Result<Event<'a, Reply<'a>>, Fault> {
        conn.receive(self.payload_bytes_max, input)
    }

    fn end<'a>(&self, conn: &'a mut Conn) -> Result<Event<'a, Reply<'a>>, Fault> {
        Err(conn.end())
    }
}
