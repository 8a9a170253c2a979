//! The load engine: shards that own their connections, sessions and recorder whole.
//!
//! One shard is one thread with one reactor. A shard is generic over the protocol, the network and the clock, so
//! that the same code runs against real servers and, deterministic from a seed, against simulated ones.

pub mod epoll;
pub mod exchange;
pub mod gauge;
pub mod health;
pub mod net;
pub mod plant;
pub mod run;
pub mod shard;
pub mod sim;
pub mod target;
pub mod tls;
pub mod vitals;
pub mod windows;
