//! The HTTP/1.1 codec against byte-exact cases, a second parser, and bytes that are no HTTP at all.

mod cases;
mod decoding;
mod memory;
mod properties;
mod reference;
mod render;
mod session;
