//! Connections: one thread reads calls of many of them, hands them over in batches, and writes what comes back.

mod connection;
mod counts;
mod event_loop;
mod inbox;
mod messages;

pub(crate) use counts::{Calls, NetworkCounts, Registry};
pub(crate) use event_loop::Network;
pub(crate) use inbox::Inbox;
