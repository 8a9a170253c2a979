//! NATS: the server of the message bus, built by Go from its makers' source, and started on loopback.

mod config;
mod install;
mod pin;
mod serve;

pub use config::NatsTls;
pub use install::{clean, install};
pub use pin::{installed, version};
pub use serve::{NatsServe, serve_nats};
