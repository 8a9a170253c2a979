//! The data: two small tables that every partition knows, votes with their two views, and the greetings.

mod hashing;
mod partition;
mod replicated;
mod state;

pub(crate) use hashing::NumberMap;
pub(crate) use partition::{Greeting, Partition, Vote, Votes};
pub(crate) use replicated::{InitializeError, Replicated};
pub(crate) use state::State;
