//! The place of this process in its run: alone, an agent, or the coordinator.

mod agent;
mod coordinator;
mod watcher;

pub use agent::{AgentPost, AgentSink};
pub use coordinator::{CoordinatorPost, Setting};
pub use watcher::WatchOrder;

use std::sync::{Arc, OnceLock};
use thiserror::Error;

/// A run of several machines that did not take place.
#[derive(Debug, Error)]
#[error("{why}")]
pub struct Refused {
    /// One line, with the name of the agent.
    pub why: String,
    /// Exit code, if an agent gave one.
    pub code: Option<u8>,
}

/// Place of a process in its run.
#[derive(Clone)]
pub enum Place {
    /// The whole run takes place here: slice 0 of 1.
    Alone,
    /// A slice of it does.
    Agent(Arc<AgentPost>),
    /// Others carry it out; their measurements come together here.
    Coordinator(Arc<CoordinatorPost>),
}

/// Like the signals of a process, its place holds for all that it does.
static PLACE: OnceLock<Place> = OnceLock::new();

/// Returns the place of this process.
#[must_use]
pub fn place() -> &'static Place {
    PLACE.get().unwrap_or(&Place::Alone)
}

/// Sets the place of this process. The first call counts.
pub fn take_place(place: Place) {
    let _ = PLACE.set(place);
}

/// Returns true if others carry out the run of this process.
#[must_use]
pub fn is_coordinator() -> bool {
    matches!(place(), Place::Coordinator(_))
}
