//! Targets whose truth is known.

pub mod closed_form;
pub mod fate;
pub mod leak;
pub mod log;
pub mod observer;
pub mod postgres;
pub mod proxy;
pub mod server;
pub mod station;
