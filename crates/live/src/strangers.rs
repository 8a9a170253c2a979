//! Connections that have not shown the token. They are bounded, and the one that came first makes room for a new one: whoever has
//! the token reaches the page however many others hold a connection and say nothing.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::task::{AbortHandle, Id};

/// Most of them at once.
pub const STRANGERS_MAX: usize = 256;

/// The connections without the token, in the order in which they came.
#[derive(Default)]
pub struct Strangers(Mutex<VecDeque<AbortHandle>>);

impl Strangers {
    fn lock(&self) -> MutexGuard<'_, VecDeque<AbortHandle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a new connection in; ends the one that came first if they are too many.
    pub fn add(&self, connection: AbortHandle) {
        let mut all = self.lock();
        all.push_back(connection);
        if all.len() > STRANGERS_MAX
            && let Some(first) = all.pop_front()
        {
            first.abort();
        }
    }

    /// A connection has shown the token, or has ended.
    pub fn remove(&self, connection: Id) {
        self.lock().retain(|other| other.id() != connection);
    }
}
