//! HTTP/1.1, client side: whole requests out, replies in (RFC 9110 and RFC 9112).
//!
//! The codec is built for one thing: to know, as cheaply as can be, where a reply ends and what its
//! status was. A reply that lies in one read and of which nothing is kept is neither copied nor
//! stored; a body is skipped by arithmetic. A session says in [`Request::keep`] which bytes it
//! needs.
//!
//! Leniency: if servers differ from the letter of the RFC and the meaning is plain, the codec
//! accepts bare line feeds, folded header lines, blanks before the colon, empty lines between
//! replies. Where the length of a reply is in doubt it is strict, because a wrong length would give
//! one request the answer of another.
//!
//! One request at a time is in flight on a connection: most servers answer pipelined requests one
//! after the other anyway, and the time of the second would then hold the service of the first.

mod chunked;
mod conn;
mod encoding;
mod fields;
mod head;
mod inflate;
mod reply;
mod scan;

pub use conn::Conn;
pub use encoding::Encoding;
pub use inflate::{DecodeError, decode_body};
pub use reply::{Headers, Reply};

// What HTTP/2 has in common with HTTP/1.1.
pub(crate) use conn::{REFUSAL_BYTES, RETAINED_BYTES, is_refusal};
pub(crate) use fields::{Fields, Length, trim};

use crate::{Event, Fault, Protocol};

/// The body is longer than [`Limits::body_bytes`].
pub(crate) const BODY_TOO_LONG: Fault = Fault::Protocol("the reply's body exceeds the limit");

/// The protocol, with what it puts up with.
#[derive(Clone, Copy, Debug, Default)]
pub struct Http1 {
    /// Bounds on what a reply may hold.
    pub limits: Limits,
}

/// Bounds on what a reply may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest head (status line, header lines and the empty line), in bytes; the same bound holds
    /// for the trailers of a chunked body and for the line before each chunk. Longer is a fault.
    pub head_bytes: usize,
    /// Longest part of a body that is kept for a session, in bytes. A longer body is read to its
    /// end all the same, but the kept copy is cut here and [`Reply::truncated`] is set.
    pub body_bytes_kept: usize,
    /// Longest body, in bytes as transferred but without the chunk framing. Longer is a fault.
    pub body_bytes: u64,
}

impl Default for Limits {
    /// 64 KiB of head, 4 MiB of kept body, 1 GiB of body.
    fn default() -> Self {
        Limits { head_bytes: 64 << 10, body_bytes_kept: 4 << 20, body_bytes: 1 << 30 }
    }
}

/// One request, ready to be sent.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The whole request as it goes over the wire: request line, header lines, empty line, body.
    pub bytes: Vec<u8>,
    /// True if the method is HEAD, whose replies have no body whatever their headers say.
    pub head: bool,
    /// The parts of the reply that the session needs.
    pub keep: Keep,
}

/// The parts of a reply that a session needs. Nothing, by default: that is the fast way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// The header lines.
    pub head: bool,
    /// The body, up to [`Limits::body_bytes_kept`].
    pub body: bool,
    /// The body of a successful (2xx) reply in pieces as they arrive ([`Event::Part`]) and not with the reply.
    pub stream: bool,
}

impl Protocol for Http1 {
    type Conn = Conn;
    type Request = Request;
    type Reply<'a> = Reply<'a>;

    fn open(&self, _out: &mut Vec<u8>) -> Conn {
        Conn::default()
    }

    fn capacity(&self, conn: &Conn) -> u32 {
        conn.capacity()
    }

    /// Its `Host` does.
    fn names_target(&self) -> bool {
        true
    }

    /// One request at a time: call it only while [`capacity`](Protocol::capacity) is 1.
    fn submit(&self, conn: &mut Conn, request: &Request, tag: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(&request.bytes);
        conn.expect(request, tag);
    }

    /// Bytes behind a reply stay in the input. Offer them again before the next
    /// [`submit`](Protocol::submit): nothing was asked for them, so they must end the connection,
    /// and not be taken for the next request's reply.
    fn receive<'a>(
        &self,
        conn: &'a mut Conn,
        input: &'a [u8],
        _out: &mut Vec<u8>,
    ) -> Result<Event<'a, Reply<'a>>, Fault> {
        conn.receive(&self.limits, input)
    }

    fn end<'a>(&self, conn: &'a mut Conn) -> Result<Event<'a, Reply<'a>>, Fault> {
        conn.end()
    }
}
