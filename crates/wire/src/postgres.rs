//! PostgreSQL's protocol, version 3: the client's side of a connection.
//!
//! A request is a run of messages that the server answers with exactly one `ReadyForQuery`: a simple query
//! ([`Request::query`]), one or several executions of prepared statements before one `Sync`
//! ([`Request::execute`]), or a bulk load ([`Request::copy_in`]). Replies come in the order of requests, so that
//! several may be in flight on a connection ([`Postgres::depth`]). Of a reply's rows the codec keeps the first
//! and counts the others; an error is a reply ([`Reply::error`]) that the session judges.
//!
//! Prepared statements belong to the run: [`Postgres::with_statements`] takes their texts, and each connection
//! has the server parse one with the first request that executes it.
//!
//! TLS, where the engine wants it, is asked for in clear first; whether a server without it is put up with says
//! [`Postgres::requires_tls`]. Authentication: trust, cleartext, MD5 and SCRAM-SHA-256 without channel binding. Not
//! supported: GSSAPI, Kerberos, replication.
//! A request cannot be given up without its connection; since the server continues it nevertheless, runs set
//! `statement_timeout` among the settings of their [`Login`].
//!
//! Source: PostgreSQL's documentation, chapter "Frontend/Backend Protocol"; messages of the login are made by
//! the crate `postgres-protocol`.

mod conn;
mod login;
mod reply;
mod request;

pub use conn::Conn;
pub use login::{Login, LoginError};
pub use reply::{Reply, ServerError, Transaction};
pub use request::{Request, RequestError, Statement};

/// The reason if a server answers the request for TLS as no PostgreSQL server does.
pub const NOT_POSTGRES: &str =
    "this is not a PostgreSQL server: it does not know the request for TLS";

use crate::{Event, Fault, Layer, Protocol};
use std::sync::Arc;

/// Longest message that is taken from a server by default, bytes.
const MESSAGE_BYTES_MAX: u32 = 64 << 20;
/// The request for TLS: its length, and in the place of the protocol's version one that there is not, 1234.5679.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// The client side of the protocol, with what it puts up with.
#[derive(Clone, Debug)]
pub struct Postgres {
    login: Arc<Login>,
    statements: Arc<[Statement]>,
    /// Requests in flight on one connection, at least 1.
    pub depth: u32,
    /// Longest message of a reply (a row, for instance), bytes. Longer is a fault. At most 64 MiB by default.
    pub message_bytes_max: u32,
    /// True if a server that does not speak TLS is refused, where the engine wants TLS at all.
    pub requires_tls: bool,
}

impl Postgres {
    /// Connections that log in as `login` says, with one request at a time and without prepared statements.
    #[must_use]
    pub fn new(login: Login) -> Self {
        Self {
            login: Arc::new(login),
            statements: Arc::from([]),
            depth: 1,
            message_bytes_max: MESSAGE_BYTES_MAX,
            requires_tls: false,
        }
    }

    /// The same with these statements, which requests name by their index.
    #[must_use]
    pub fn with_statements(mut self, statements: impl Into<Arc<[Statement]>>) -> Self {
        self.statements = statements.into();
        self
    }

    /// The same with this many requests in flight on a connection.
    #[must_use]
    pub fn with_depth(mut self, depth: u32) -> Self {
        self.depth = depth.max(1);
        self
    }

    /// The same, refusing a server without TLS or not.
    #[must_use]
    pub fn requiring_tls(mut self, requires_tls: bool) -> Self {
        self.requires_tls = requires_tls;
        self
    }
}

impl Protocol for Postgres {
    type Conn = Conn;
    type Request = Request;
    type Reply<'a> = Reply<'a>;

    fn preamble(&self) -> &[u8] {
        &SSL_REQUEST
    }

    fn preamble_answered(&self, answer: u8) -> Result<Layer, &'static str> {
        match answer {
            b'S' => Ok(Layer::Tls),
            b'N' if !self.requires_tls => Ok(Layer::Clear),
            b'N' => {
                Err("the server does not speak TLS; turn it on there, or ask with sslmode=disable")
            }
            // A machine in between can insert an error in clear: its text is not repeated (CVE-2024-10977).
            b'E' => {
                Err("the server answered the request for TLS with an error: it is full, or too old")
            }
            _ => Err(NOT_POSTGRES),
        }
    }

    fn open(&self, out: &mut Vec<u8>) -> Conn {
        out.extend_from_slice(self.login.startup());
        Conn::default()
    }

    fn is_ready(&self, conn: &Conn) -> bool {
        conn.is_ready()
    }

    fn depth(&self) -> u32 {
        self.depth.max(1)
    }

    fn capacity(&self, conn: &Conn) -> u32 {
        conn.capacity(self.depth)
    }

    fn submit(&self, conn: &mut Conn, request: &Request, tag: u32, out: &mut Vec<u8>) {
        conn.submit(&self.statements, request, tag, out);
    }

    fn receive<'a>(
        &self,
        conn: &'a mut Conn,
        input: &'a [u8],
        out: &mut Vec<u8>,
    ) -> Result<Event<'a, Reply<'a>>, Fault> {
        conn.receive(&self.login, self.message_bytes_max, input, out)
    }

    fn began(&self, conn: &Conn, tag: u32) -> Option<bool> {
        conn.began(tag)
    }

    fn end<'a>(&self, conn: &'a mut Conn) -> Result<Event<'a, Reply<'a>>, Fault> {
        Err(conn.end())
    }
}
