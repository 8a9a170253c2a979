//! The commands of a fleet: an agent that waits for work, and what `--agents N` and `--processes N` add to a job.
//!
//! ```
//! let command = plimsoll_agent::with_fleet(clap::Command::new("load"));
//! let words = ["load", "--agents", "3", "--bus", "nats://127.0.0.1:4222"];
//! let matches = command.try_get_matches_from(words)?;
//! assert!(plimsoll_agent::is_asked(&matches));
//! # Ok::<(), clap::Error>(())
//! ```

mod build;
mod command;
mod coordinate;
mod flags;
mod fleet;
mod roles;
mod targets;
mod words;

pub use command::AgentArgs;
pub use coordinate::{coordinated, is_asked};
pub use flags::{check_fleet, with_fleet};
pub use fleet::FleetArgs;
pub use roles::run_roles;
