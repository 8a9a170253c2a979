//! Problems besides failed requests, reported after the run.

use std::sync::{Arc, Mutex, PoisonError};

/// Messages from all sessions of a run: an output file that cannot be written, a source that changed.
#[derive(Clone, Debug, Default)]
pub struct Troubles(Arc<Mutex<Vec<String>>>);

impl Troubles {
    /// Adds a message.
    pub fn add(&self, message: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(message);
    }

    /// Adds a message that several sessions may have, once.
    pub fn add_once(&self, message: String) {
        let mut messages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !messages.contains(&message) {
            messages.push(message);
        }
    }

    /// Takes all messages; complete when the run has ended.
    #[must_use]
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
