//! A small blocking client for the tests of servers. It panics where a test should fail.
#![allow(clippy::unwrap_used)]

mod running;

pub use running::{Probe, Reply, Running};
