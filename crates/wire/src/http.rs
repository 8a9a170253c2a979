//! HTTP of either version as one protocol: the version is known before a run, or negotiated by ALPN.

use crate::http1::{self, Http1, Reply, Request};
use crate::http2::{self, Http2};
use crate::{Event, Fault, Protocol};

/// The version in use. Requests and replies are the same in both.
#[derive(Clone, Copy, Debug)]
pub enum Http {
    /// HTTP/1.1: one request at a time on a connection.
    One(Http1),
    /// HTTP/2: many at a time.
    Two(Http2),
}

impl Default for Http {
    fn default() -> Self {
        Http::One(Http1::default())
    }
}

/// The state of one connection, which keeps the version that it was opened with.
#[derive(Debug)]
pub enum Conn {
    /// A connection of HTTP/1.1.
    One(http1::Conn),
    /// A connection of HTTP/2; boxed, so that ten thousand of the others stay small.
    Two(Box<http2::Conn>),
}

/// A connection that was opened with the other version than the protocol it is now used with.
const MIXED: Fault = Fault::Protocol("the connection was opened for another version of HTTP");

impl Protocol for Http {
    type Conn = Conn;
    type Request = Request;
    type Reply<'a> = Reply<'a>;

    fn open(&self, out: &mut Vec<u8>) -> Conn {
        match self {
            Http::One(http) => Conn::One(http.open(out)),
            Http::Two(http) => Conn::Two(Box::new(http.open(out))),
        }
    }

    fn depth(&self) -> u32 {
        match self {
            Http::One(http) => http.depth(),
            Http::Two(http) => http.depth(),
        }
    }

    #[inline]
    fn capacity(&self, conn: &Conn) -> u32 {
        match (self, conn) {
            (Http::One(http), Conn::One(conn)) => http.capacity(conn),
            (Http::Two(http), Conn::Two(conn)) => http.capacity(conn),
            _ => 0,
        }
    }

    fn names_target(&self) -> bool {
        true
    }

    #[inline]
    fn submit(&self, conn: &mut Conn, request: &Request, tag: u32, out: &mut Vec<u8>) {
        match (self, conn) {
            (Http::One(http), Conn::One(conn)) => http.submit(conn, request, tag, out),
            (Http::Two(http), Conn::Two(conn)) => http.submit(conn, request, tag, out),
            _ => debug_assert!(false, "no capacity"),
        }
    }

    #[inline]
    fn receive<'a>(
        &self,
        conn: &'a mut Conn,
        input: &'a [u8],
        out: &mut Vec<u8>,
    ) -> Result<Event<'a, Reply<'a>>, Fault> {
        match (self, conn) {
            (Http::One(http), Conn::One(conn)) => http.receive(conn, input, out),
            (Http::Two(http), Conn::Two(conn)) => http.receive(conn, input, out),
            _ => Err(MIXED),
        }
    }

    fn end<'a>(&self, conn: &'a mut Conn) -> Result<Event<'a, Reply<'a>>, Fault> {
        match (self, conn) {
            (Http::One(http), Conn::One(conn)) => http.end(conn),
            (Http::Two(http), Conn::Two(conn)) => http.end(conn),
            _ => Err(MIXED),
        }
    }

    fn began(&self, conn: &Conn, tag: u32) -> Option<bool> {
        match (self, conn) {
            (Http::Two(http), Conn::Two(conn)) => http.began(conn, tag),
            _ => None,
        }
    }

    fn cancel(&self, conn: &mut Conn, tag: u32, out: &mut Vec<u8>) -> bool {
        match (self, conn) {
            (Http::One(http), Conn::One(conn)) => http.cancel(conn, tag, out),
            (Http::Two(http), Conn::Two(conn)) => http.cancel(conn, tag, out),
            _ => false,
        }
    }
}
