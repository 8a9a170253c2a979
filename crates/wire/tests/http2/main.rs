//! The HTTP/2 codec against the RFCs' examples, byte-exact cases, a second implementation (`h2`), and bytes that
//! are no HTTP/2 at all.

mod cases;
mod flow;
mod hpack;
mod server;
mod session;
