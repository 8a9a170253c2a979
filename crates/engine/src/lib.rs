//! The generator: shards that own their connections, sessions and recorder whole.
//!
//! One shard is one thread with one reactor. A shard is generic over the protocol, the network and the clock, so
//! that the same code runs against real servers and, deterministic from a seed, against simulated ones.
//!
//! ```
//! use plimsoll_engine::target::Target;
//!
//! let target = Target::resolve("127.0.0.1", 8080);
//! assert_eq!(target.port, 8080);
//! assert!(target.is_this_machine());
//! ```

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
