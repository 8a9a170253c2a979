//! The place of this process in its run: alone, an agent, or the coordinator.

mod agent;
mod coordinator;
mod watcher;

pub use agent::{AgentPost, AgentSink};
pub use coordinator::{Conducted, CoordinatorPost, Setting, start_together};
pub use watcher::WatchOrder;

use std::cell::Cell;
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

thread_local! {
    /// Place for what this thread does, if that is not the place of its process.
    static WITHIN: Cell<Option<&'static Place>> = const { Cell::new(None) };
}

/// Returns the place of this process, or that of what this thread does [`within`] another.
#[must_use]
pub fn place() -> &'static Place {
    WITHIN.get().or_else(|| PLACE.get()).unwrap_or(&Place::Alone)
}

/// Does something in another place than that of the process, on this thread: a coordinator with two groups of agents has a place for
/// each.
pub fn within<T>(place: &'static Place, action: impl FnOnce() -> T) -> T {
    let before = WITHIN.replace(Some(place));
    let done = action();
    WITHIN.set(before);
    done
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
