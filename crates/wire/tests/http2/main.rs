//! The HTTP/2 codec against the RFCs' examples, byte-exact cases, a second implementation (`h2`), and bytes that
//! are no HTTP/2 at all.
#![allow(clippy::unwrap_used)]

mod cases;
mod conversation;
mod flow;
mod hpack;
mod memory;
mod properties;
mod server;
mod session;
