//! Embedded systems under test. Each is a `run(listener, config, stop)` that takes a bound listener,
//! so that tests bind port 0, and returns when [`stop::Stop`] was requested. Nothing here imports the
//! engine: a benchmark must not share a loop with its victim.

mod accept;
pub mod arrivals;
mod http;
pub mod null;
pub mod queue;
pub mod rank;
mod sample;
pub mod search;
pub mod stop;
mod tickets;
pub mod voter;
mod write_limit;

pub use http::ConnectionCounts;
