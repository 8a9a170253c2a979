//! HTTP/2, client side (RFC 9113): many requests at a time on one connection.
//!
//! Requests and replies are those of [`http1`](crate::http1), so that a workload need not know which version
//! its words travel in. A request's text is taken apart when it is submitted: the Host line becomes
//! `:authority`, names go to lower case, and what is about the connection (`Connection`, `Keep-Alive`,
//! `Transfer-Encoding`, `TE`, `Upgrade`) is left out. A body must therefore not be chunked. A reply's header
//! lines are given in HTTP/1.1's form, where they are kept at all.
//!
//! As in HTTP/1.1, a reply that lies in one read and of which nothing is kept is neither copied nor stored.
//! Receive windows are so large that no peer has to wait for them, and are opened again in large steps. Header
//! fields and bodies of requests go as far as the peer's tables and windows let them; the rest of a body waits.
//!
//! An error in the framing of the connection ends it; a reply that is wrong in itself is given up alone. Frames
//! that belong to a request that was given up are passed over. Priorities are ignored, pushes are refused.

mod conn;
mod frame;
mod head;
mod hpack;
mod replies;
mod request;
mod send;
mod streams;

pub use conn::Conn;
pub use hpack::vectors;

use crate::http1::{Limits, Reply, Request};
use crate::{Event, Fault, Protocol};
use frame::setting;

/// Amount that a peer may send on one stream before it is given more room, bytes. It is given more after half.
pub const STREAM_WINDOW_BYTES: u32 = 16 << 20;

/// Amount that a peer may send on all streams before it is given more room, bytes. It is given more after a quarter.
pub const CONNECTION_WINDOW_BYTES: u32 = 64 << 20;

/// The protocol, with what it puts up with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Http2 {
    /// Bounds on what a reply may hold. `head_bytes` counts names and values and 32 bytes a field; a body that
    /// is streamed may be of any length.
    pub limits: Limits,
    /// Largest number of requests in flight on one connection, even if the peer accepts more.
    pub streams_max: u32,
    /// The `:scheme` of requests.
    pub scheme: Scheme,
}

/// The scheme of a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheme {
    /// `http`: over TCP, with prior knowledge of HTTP/2.
    #[default]
    Http,
    /// `https`: over TLS.
    Https,
}

impl Scheme {
    const fn name(self) -> &'static [u8] {
        match self {
            Scheme::Http => b"http",
            Scheme::Https => b"https",
        }
    }
}

impl Default for Http2 {
    /// The limits of HTTP/1.1, 100 requests at a time, `http`.
    fn default() -> Self {
        Http2 { limits: Limits::default(), streams_max: 100, scheme: Scheme::default() }
    }
}

impl Protocol for Http2 {
    type Conn = Conn;
    type Request = Request;
    type Reply<'a> = Reply<'a>;

    fn open(&self, out: &mut Vec<u8>) -> Conn {
        let head_bytes = u32::try_from(self.limits.head_bytes).unwrap_or(u32::MAX);
        let settings = [
            (setting::ENABLE_PUSH, 0),
            (setting::INITIAL_WINDOW_SIZE, STREAM_WINDOW_BYTES),
            (setting::MAX_HEADER_LIST_SIZE, head_bytes),
        ];
        out.extend_from_slice(frame::PREFACE);
        frame::put_settings(&settings, out);
        frame::put_window_update(0, CONNECTION_WINDOW_BYTES - frame::FIRST_WINDOW_BYTES, out);
        Conn::new()
    }

    fn depth(&self) -> u32 {
        self.streams_max
    }

    /// The streams that the peer and [`streams_max`](Http2::streams_max) leave; 0 after the peer's GOAWAY. A peer
    /// that has not yet sent its limit gets up to 100.
    fn capacity(&self, conn: &Conn) -> u32 {
        conn.capacity(self.streams_max)
    }

    /// Its `:authority` does.
    fn names_target(&self) -> bool {
        true
    }

    /// Call it only while [`capacity`](Protocol::capacity) is above 0. Of a body that the peer's windows do not
    /// let through the rest is copied, and sent as they open.
    fn submit(&self, conn: &mut Conn, request: &Request, tag: u32, out: &mut Vec<u8>) {
        conn.submit(self, request, tag, out);
    }

    fn receive<'a>(
        &self,
        conn: &'a mut Conn,
        input: &'a [u8],
        out: &mut Vec<u8>,
    ) -> Result<Event<'a, Reply<'a>>, Fault> {
        conn.receive(&self.limits, input, out)
    }

    /// A reply never ends with its connection: always a fault, which holds for all requests in flight.
    fn end<'a>(&self, conn: &'a mut Conn) -> Result<Event<'a, Reply<'a>>, Fault> {
        Err(conn.end())
    }

    fn began(&self, conn: &Conn, tag: u32) -> Option<bool> {
        conn.began(tag)
    }

    fn cancel(&self, conn: &mut Conn, tag: u32, out: &mut Vec<u8>) -> bool {
        conn.cancel(tag, out)
    }
}
