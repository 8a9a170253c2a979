//! Blocking clients for the tests of servers. They panic where a test should fail.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod running;
mod search;

pub use running::{Probe, Reply, Running};
pub use search::{Client, JSON, Numbers, TestReply, TestServer, document, encode};
