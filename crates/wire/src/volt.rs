//! VoltDB's protocol: the client's side of a connection, and the messages of both sides.
//!
//! All messages are frames with four bytes of length ([`frame_length`]); all numbers are big-endian. The first
//! message of a connection is a login ([`Login`], [`LoginCall`], [`LoginReply`]), every other one a call
//! ([`Request`], [`Call`]) or the response to one ([`Response`], [`ResponseWriter`]). Responses come in any
//! order and are matched by a handle of the caller's choice. Values ([`Value`]) and tables ([`TableView`],
//! [`TableWriter`]) look the same in both directions. Everything that is read is borrowed from the bytes it came
//! in; nothing is allocated for it.
//!
//! Calls are written in version 2 and read in versions 0, 1 and 2; logins in versions 0 and 1. [`Ring`] tells
//! the partition of a key as servers do, [`Topology`] who leads it. Not spoken: Kerberos.
//!
//! A failed call is a response ([`Status`]) that the session judges. A login that is refused is a fault; calls
//! go out behind a login that is not answered yet, as servers allow. A call that is given up keeps its
//! connection: the late response is dropped.
//!
//! Source: messages seen between clients and servers of versions 5 to 13.

mod answer;
mod call;
mod calls;
mod conn;
mod frame;
mod kind;
mod login;
mod murmur;
mod request;
mod response;
mod ring;
mod scan;
mod status;
mod topology;
mod value;

pub use answer::{Answer, ResponseWriter};
pub use call::{Call, CallError, Params};
pub use conn::{Conn, Host};
pub use frame::{FRAME_HEAD_BYTES, FrameError, MESSAGE_BYTES_MAX, frame_length};
pub use kind::{DecodeError, Kind};
pub use login::{
    Login, LoginCall, LoginCallError, LoginCode, LoginForm, LoginReply, Password, Scheme, Welcome,
};
pub use request::{Form, ParamPlace, Request};
pub use response::{NO_APP_STATUS, Refusal, Response, Tables};
pub use ring::Ring;
pub use status::Status;
pub use topology::{MULTI_PARTITION, Topology};
pub use value::{ArrayView, ArrayWriter, Column, Row, Rows, TableView, TableWriter, Value, Values};

use crate::{Event, Fault, Protocol};
use std::sync::Arc;

/// The client side of the protocol, with what it puts up with.
#[derive(Clone, Debug)]
pub struct Volt {
    /// The login.
    pub login: Arc<Login>,
    /// Calls in flight on one connection, at least 1. Those that were given up are not counted; when more than 65,536 of
    /// them are unanswered, the connection is given up too.
    pub depth: u32,
    /// The leader of each partition; calls with a key go to the leader's connections if one is free. Without
    /// it they go to any.
    pub topology: Option<Arc<Topology>>,
    /// Longest message of a server, bytes. Longer is a fault. At most 50 MiB by default.
    pub message_bytes_max: u32,
}

impl Volt {
    /// Connections that log in as `login` says, with one call at a time.
    #[must_use]
    pub fn new(login: Login) -> Self {
        Self {
            login: Arc::new(login),
            depth: 1,
            topology: None,
            message_bytes_max: MESSAGE_BYTES_MAX,
        }
    }

    /// The same with this many calls in flight on a connection.
    #[must_use]
    pub fn with_depth(mut self, depth: u32) -> Self {
        self.depth = depth.max(1);
        self
    }

    /// The same with calls sent to the leaders of their keys' partitions. Where one host leads them all there is nothing
    /// to choose.
    #[must_use]
    pub fn with_topology(mut self, topology: Topology) -> Self {
        let mut hosts: Vec<i32> = topology.leaders().iter().map(|&(_, host)| host).collect();
        hosts.sort_unstable();
        hosts.dedup();
        self.topology = (hosts.len() > 1).then(|| Arc::new(topology));
        self
    }
}

impl Protocol for Volt {
    type Conn = Conn;
    type Request = Request;
    type Reply<'a> = Response<'a>;

    fn open(&self, out: &mut Vec<u8>) -> Conn {
        out.extend_from_slice(self.login.message());
        Conn::default()
    }

    fn is_ready(&self, conn: &Conn) -> bool {
        conn.is_ready()
    }

    fn depth(&self) -> u32 {
        self.depth.max(1)
    }

    #[inline]
    fn capacity(&self, conn: &Conn) -> u32 {
        conn.capacity(self.depth)
    }

    #[inline]
    fn suits(&self, conn: &Conn, request: &Request) -> bool {
        let Some(topology) = &self.topology else { return true };
        let leader = request.partition_key().and_then(|key| topology.leader_of_long(key));
        // A key or a host that is not known has no better place.
        leader.is_none_or(|leader| conn.host().is_none_or(|host| host.id == leader))
    }

    #[inline]
    fn submit(&self, conn: &mut Conn, request: &Request, tag: u32, out: &mut Vec<u8>) {
        conn.submit(request, tag, out);
    }

    #[inline]
    fn receive<'a>(
        &self,
        conn: &'a mut Conn,
        input: &'a [u8],
        _out: &mut Vec<u8>,
    ) -> Result<Event<'a, Response<'a>>, Fault> {
        conn.receive(self.message_bytes_max, input)
    }

    fn end<'a>(&self, conn: &'a mut Conn) -> Result<Event<'a, Response<'a>>, Fault> {
        Err(conn.end())
    }

    fn cancel(&self, conn: &mut Conn, tag: u32, _out: &mut Vec<u8>) -> bool {
        conn.cancel(tag)
    }
}
