//! The way a request is counted. A failed request is an outcome, never an error of the program.

use serde::{Deserialize, Serialize};

/// Reason why a request failed. The order is the order of the ledger's columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// No connection: refused, unreachable, a name that does not resolve.
    Connect,
    /// The TLS handshake failed: certificate, host name, protocol version.
    Tls,
    /// A limit passed before the last byte: connecting, answering, or draining at the end.
    Timeout,
    /// The connection was reset or closed before the first byte of a reply.
    Reset,
    /// The reply began but ended before its declared end.
    Short,
    /// The bytes that came back are not the protocol.
    Protocol,
    /// A complete reply whose status says no.
    Status,
    /// A complete reply that a check of the workload refused.
    Check,
    /// The application said no inside a formally good reply.
    App,
}

impl Failure {
    /// Number of kinds.
    pub const COUNT: usize = 9;
    /// All kinds, in the order of the ledger.
    pub const ALL: [Failure; Self::COUNT] = [
        Failure::Connect,
        Failure::Tls,
        Failure::Timeout,
        Failure::Reset,
        Failure::Short,
        Failure::Protocol,
        Failure::Status,
        Failure::Check,
        Failure::App,
    ];

    /// The name used in records and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Failure::Connect => "connect",
            Failure::Tls => "tls",
            Failure::Timeout => "timeout",
            Failure::Reset => "reset",
            Failure::Short => "short",
            Failure::Protocol => "protocol",
            Failure::Status => "status",
            Failure::Check => "check",
            Failure::App => "app",
        }
    }
}

/// Cause of a failure, if the generator knows it and the user can act on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Nothing is known beyond the kind.
    #[default]
    Unknown,
    /// The peer's first bytes are not those of HTTP/1.
    NotHttp1,
    /// The peer does not choose HTTP/2 when TLS is agreed.
    NoHttp2,
    /// The peer's certificate is not trusted, or is for another name.
    Certificate,
}

/// The outcome of a request that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The target did what the workload calls success.
    Ok,
    /// It did not, for this reason.
    Failed(Failure),
}

/// The server's own time for a request, as its reply says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerTime {
    /// It took this long, ns.
    Known(u64),
    /// The reply has no such header.
    Missing,
    /// The reply has the header, and no time in it.
    Malformed,
}
