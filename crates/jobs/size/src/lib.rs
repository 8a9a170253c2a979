//! The job `size`: how many nodes a rate needs, from records of other numbers of nodes.
//!
//! ```
//! use clap::{Args, Command};
//! use plimsoll_size::SizeArgs;
//!
//! let size = SizeArgs::augment_args(Command::new("size"));
//! let words = ["size", "--at", "1=one", "--at", "4=four", "--rate", "700", "--headroom", "30%"];
//! assert!(size.try_get_matches_from(words).is_ok());
//! ```

mod answers;
mod check;
mod command;
mod configuration;
mod page;
mod records;
mod resources;
mod sizing;
mod text;

pub use command::SizeArgs;

#[cfg(test)]
mod tests;
