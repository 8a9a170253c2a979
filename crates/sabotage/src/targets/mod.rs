//! Targets whose truth is known.

pub mod closed_form;
pub mod fate;
pub mod log;
pub mod postgres;
pub mod proxy;
pub mod server;
pub mod station;
