//! The HTTP/1 server loop of the targets that must cost next to nothing or answer on time.
//!
//! One thread owns its connections and one `epoll` queue, level-triggered: a request costs one
//! `recv` and one `send`, no `epoll_ctl`, and no second `recv` only to learn that there is nothing.
//! Waits have nanosecond resolution (`epoll_pwait2`, timer slack 1 ns).
//!
//! Requests of one connection are answered one after another and in order, as in most servers: a
//! pipelined request is looked at when the one before it has been answered.
//!
//! Limits: a head of 64 KiB and 128 fields (431), sizes of chunks of 16 digits, 64 KiB of chunk
//! extensions or trailers (400). Bodies may have any size, because they are counted and dropped. Of
//! pipelined bytes at most 128 KiB are kept for a connection; then its socket fills up. Idle
//! connections are never closed. Replies carry no `Date`, as the loop reads no wall clock.

mod body;
mod connection;
mod event_loop;
pub mod fuzz;
mod head;
mod intake;
mod refusal;
mod reply;

pub use crate::tickets::Ticket;
pub use event_loop::{EventLoop, Options, Service, Step};
pub use head::{Asked, Method, Route, StatsArrivals, StatsQuery};
pub use intake::{Inbox, Intake, raise_descriptor_limit};
pub use reply::{Canned, write_json};

use serde::Serialize;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of connections, shared by all threads of a target. They change once a connection, not
/// once a request.
#[derive(Debug, Default)]
pub struct ConnectionCounters {
    accepted: AtomicU64,
    closed: AtomicU64,
    refused: AtomicU64,
    bad_requests: AtomicU64,
}

/// Number of connections that a target has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ConnectionCounts {
    /// Connections accepted since the start.
    pub accepted: u64,
    /// Connections open now.
    pub open: u64,
    /// Connections closed at once because the process had no file descriptor left.
    pub refused: u64,
    /// Requests refused with 400, 431 or 501, each of which also ended its connection.
    pub bad_requests: u64,
}

impl ConnectionCounters {
    /// The counts as they are now.
    pub fn counts(&self) -> ConnectionCounts {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ConnectionCounts {
            accepted: of(&self.accepted),
            open: of(&self.accepted).saturating_sub(of(&self.closed)),
            refused: of(&self.refused),
            bad_requests: of(&self.bad_requests),
        }
    }
}
