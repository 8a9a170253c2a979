//! Inbox in which a network thread finds answers, and its wake-up.

use super::message::Batch;
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

/// Answers for one network thread.
#[derive(Debug)]
pub(crate) struct Inbox {
    inside: Mutex<Inside>,
    /// Readable when the thread must wake.
    pub(crate) wake: OwnedFd,
}

#[derive(Debug, Default)]
struct Inside {
    batches: Vec<Batch>,
    is_asleep: bool,
}

impl Inbox {
    pub(crate) fn new() -> io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { inside: Mutex::default(), wake })
    }

    /// Puts answers in and wakes the thread if it sleeps.
    pub(crate) fn put(&self, batch: Batch) {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        inside.batches.push(batch);
        let is_asleep = std::mem::take(&mut inside.is_asleep);
        drop(inside);
        if is_asleep {
            // A full counter is readable already.
            let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
        }
    }

    /// Takes all answers; `into` is empty before.
    pub(crate) fn take(&self, into: &mut Vec<Batch>) {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        inside.is_asleep = false;
        std::mem::swap(&mut inside.batches, into);
    }

    /// Says that the thread is about to sleep; false when there is something to do first.
    pub(crate) fn fall_asleep(&self) -> bool {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        inside.is_asleep = inside.batches.is_empty();
        inside.is_asleep
    }

    /// Takes the wake-up away.
    pub(crate) fn hear(&self) {
        let _ = rustix::io::read(&self.wake, &mut [0u8; 8]);
    }
}
