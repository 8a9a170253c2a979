//! The contract between the engine and a codec.

use plimsoll_core::outcome::{Cause, Failure};

/// A protocol as the engine's client side sees it.
///
/// The walk of one connection: [`open`](Protocol::open) when the socket is up, then any interleaving of
/// [`submit`](Protocol::submit) and [`receive`](Protocol::receive), and one [`end`](Protocol::end) when the
/// peer has closed. Requests carry a `tag` chosen by the engine, so that protocols with several requests
/// in flight may answer out of order.
pub trait Protocol {
    /// Codec state of one connection. Small: ten thousand of them must fit beside each other.
    type Conn;
    /// The request of a session.
    type Request: Default;
    /// A reply, borrowed from the input or from the connection's own buffer.
    type Reply<'a>;

    /// The request for TLS that is sent in clear, as soon as the socket is open; empty in most protocols.
    /// It is sent only if TLS is wanted, and answered with one byte.
    fn preamble(&self) -> &[u8] {
        &[]
    }

    /// The layer that this byte grants.
    ///
    /// # Errors
    /// Reason why the connection cannot be used, in words: TLS is refused but required, or the byte is not an answer.
    fn preamble_answered(&self, _answer: u8) -> Result<Layer, &'static str> {
        Ok(Layer::Tls)
    }

    /// Begins a connection. Bytes that the protocol must say first are appended to `out`.
    fn open(&self, out: &mut Vec<u8>) -> Self::Conn;

    /// Returns true if the connection has come through what the protocol wants before its first request. Until then
    /// requests may be submitted and wait inside `conn`; the engine starts its clock after it where it can.
    fn is_ready(&self, _conn: &Self::Conn) -> bool {
        true
    }

    /// The most requests that one connection ever takes at a time, where the codec knows.
    fn depth(&self) -> u32 {
        1
    }

    /// Number of more requests that this connection accepts now; 0 during a handshake of the protocol,
    /// or when the connection cannot be used again.
    fn capacity(&self, conn: &Self::Conn) -> u32;

    /// Returns true if this connection is a good one for `request`, where another may be better: one to the host that leads the
    /// partition of its key. A request is taken everywhere; it is a matter of speed.
    fn suits(&self, _conn: &Self::Conn, _request: &Self::Request) -> bool {
        true
    }

    /// Returns true if a request names the target that it was written for, so that no other target can take it.
    fn names_target(&self) -> bool {
        false
    }

    /// Appends the bytes of `request` to `out` and remembers what reply to expect for `tag`.
    fn submit(&self, conn: &mut Self::Conn, request: &Self::Request, tag: u32, out: &mut Vec<u8>);

    /// Reads from the front of `input` up to the end of the next event.
    ///
    /// Called again with the rest until it returns [`Event::More`], which means that all of `input` was
    /// consumed (kept inside `conn` where needed). Bytes to be answered at once (acknowledgements) are
    /// appended to `out`.
    ///
    /// # Errors
    /// A [`Fault`] ends the connection: every request in flight on it has failed.
    fn receive<'a>(
        &self,
        conn: &'a mut Self::Conn,
        input: &'a [u8],
        out: &mut Vec<u8>,
    ) -> Result<Event<'a, Self::Reply<'a>>, Fault>;

    /// The peer closed its side. A reply delimited by the close is complete now.
    ///
    /// # Errors
    /// [`Fault::Closed`] when a reply was cut, or when none had begun.
    fn end<'a>(&self, conn: &'a mut Self::Conn) -> Result<Event<'a, Self::Reply<'a>>, Fault>;

    /// Returns whether the peer had begun its reply to the request with this tag, on a connection that has broken: only a request
    /// without one may be sent again. `None`: what the fault says holds for all requests in flight.
    fn began(&self, _conn: &Self::Conn, _tag: u32) -> Option<bool> {
        None
    }

    /// Gives up the request with this tag; what must be said about it is appended to `out`. Returns whether the
    /// connection can go on without it: where replies come in order it cannot, and is closed by the caller.
    fn cancel(&self, _conn: &mut Self::Conn, _tag: u32, _out: &mut Vec<u8>) -> bool {
        false
    }
}

/// The carrier of a protocol once its preamble is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// TLS begins with the next byte.
    Tls,
    /// The socket as it is.
    Clear,
}

/// The engine's view of a request, whatever its protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Submission {
    /// Index of the request's class, `0..classes`.
    pub class: u16,
    /// Number of the request in the workload's own counting (the record's index in a query file, say).
    pub item: u64,
    /// True if it may be sent a second time when a kept connection turns out to be dead.
    pub idempotent: bool,
}

/// One step of decoding.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a, R> {
    /// Nothing complete yet; all input was consumed.
    More,
    /// Protocol housekeeping was done; `consumed` bytes are used up, call again with the rest.
    Progress {
        /// Bytes used from the front of the input.
        consumed: usize,
    },
    /// A piece of the body of a successful reply whose session wants it as it arrives. Such pieces
    /// are not in the reply that ends it.
    Part {
        /// The tag given to [`Protocol::submit`].
        tag: u32,
        /// The piece, not empty.
        bytes: &'a [u8],
        /// Bytes used from the front of the input.
        consumed: usize,
    },
    /// The reply to the request with this tag is complete.
    Reply {
        /// The tag given to [`Protocol::submit`].
        tag: u32,
        /// The reply.
        reply: R,
        /// Bytes used from the front of the input.
        consumed: usize,
        /// True if the connection can carry other requests, or has others in flight.
        reusable: bool,
    },
    /// The peer gave up the request with this tag; the connection goes on.
    GivenUp {
        /// The tag given to [`Protocol::submit`].
        tag: u32,
        /// The reason.
        fault: Fault,
        /// True if the peer vouches that it did nothing of what was asked, so that it may be asked again.
        unprocessed: bool,
        /// Bytes used from the front of the input.
        consumed: usize,
    },
}

/// Reason why a connection, or one request of it, cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The peer closed or reset before the reply's end.
    Closed {
        /// True if any byte of a reply had arrived.
        began: bool,
    },
    /// The bytes are not the protocol; the text says what was expected.
    Protocol(&'static str),
    /// The first bytes are not those of HTTP/1: a server of HTTP/2 alone answers so.
    NotHttp1,
    /// The peer will not have this client: its login was refused, and would be again. The text says why.
    Refused(&'static str),
    /// The peer will not have this client now, and may have it later. The text says why.
    Unready(&'static str),
    /// The peer gave up a request, or the connection, and said why.
    Reset {
        /// True if any byte of a reply had arrived.
        began: bool,
        /// The server's message.
        why: &'static str,
    },
}

impl Fault {
    /// The column of the ledger that this fault belongs to.
    #[must_use]
    pub const fn failure(self) -> Failure {
        match self {
            Fault::Closed { began: false } | Fault::Reset { began: false, .. } => Failure::Reset,
            Fault::Closed { began: true } | Fault::Reset { began: true, .. } => Failure::Short,
            Fault::Protocol(_) | Fault::NotHttp1 => Failure::Protocol,
            Fault::Refused(_) | Fault::Unready(_) => Failure::Connect,
        }
    }

    /// The cause, where the fault has one that the user can do something about.
    #[must_use]
    pub const fn cause(self) -> Cause {
        match self {
            Fault::NotHttp1 => Cause::NotHttp1,
            Fault::Closed { .. }
            | Fault::Protocol(_)
            | Fault::Refused(_)
            | Fault::Unready(_)
            | Fault::Reset { .. } => Cause::Unknown,
        }
    }

    /// The fault in words, for people.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Fault::Closed { began: false } => "closed before the first byte of a reply",
            Fault::Closed { began: true } => "closed before the end of the reply",
            Fault::NotHttp1 => "the reply does not begin with HTTP/1.",
            Fault::Protocol(why)
            | Fault::Refused(why)
            | Fault::Unready(why)
            | Fault::Reset { why, .. } => why,
        }
    }
}
