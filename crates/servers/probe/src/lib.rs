//! Blocking clients for the tests of servers. They panic where a test should fail.
//!
//! ```no_run
//! let address = "127.0.0.1:8080".parse()?;
//! let reply = plimsoll_probe::Client::connect(address).get("/status.html");
//! assert_eq!(reply.status, 200);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod running;
mod search;

pub use running::{Probe, Reply, Running};
pub use search::{Client, JSON, Numbers, TestReply, TestServer, document, encode};
