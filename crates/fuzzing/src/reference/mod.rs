//! Readers of the same bytes by other people, for comparison.

pub mod head;
pub mod http2;
pub mod hyper;
mod wire;
