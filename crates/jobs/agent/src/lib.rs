//! The commands of a fleet: an agent that waits for work, and what `--agents N` adds to a job.

mod build;
mod command;
mod coordinate;
mod flags;
mod fleet;
mod targets;
mod words;

pub use command::AgentArgs;
pub use coordinate::{coordinated, is_asked};
pub use flags::with_fleet;
pub use fleet::FleetArgs;
