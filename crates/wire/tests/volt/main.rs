//! VoltDB's protocol against bytes that were seen on the wire, its two sides against each other, and bytes that
//! are no such protocol at all.
#![allow(clippy::unwrap_used)]

mod calls;
mod login;
mod made;
mod memory;
mod properties;
mod responses;
mod ring;
mod session;
mod tables;
mod under_way;
mod values;
