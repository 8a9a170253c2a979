//! Connections: one thread reads calls of many of them, hands them over in batches, and writes what comes back.

mod connection;
mod event_loop;

pub(crate) use event_loop::Network;
