//! A thread's letters: put in one by one, taken out all at once.

use std::sync::{Condvar, Mutex, PoisonError};

/// The inbox of a thread. It is bounded by the calls that the network threads accept.
#[derive(Debug)]
pub(crate) struct Mailbox<T> {
    inside: Mutex<Inside<T>>,
    arrived: Condvar,
}

#[derive(Debug)]
struct Inside<T> {
    letters: Vec<T>,
    /// The owner sleeps; only then it must be woken, which costs a system call.
    is_asleep: bool,
    is_closed: bool,
}

impl<T> Default for Mailbox<T> {
    fn default() -> Self {
        let inside = Inside { letters: Vec::new(), is_asleep: false, is_closed: false };
        Self { inside: Mutex::new(inside), arrived: Condvar::new() }
    }
}

impl<T> Mailbox<T> {
    pub(crate) fn put(&self, letter: T) {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        inside.letters.push(letter);
        let is_asleep = std::mem::take(&mut inside.is_asleep);
        drop(inside);
        if is_asleep {
            self.arrived.notify_one();
        }
    }

    /// Nothing more will come.
    pub(crate) fn close(&self) {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner).is_closed = true;
        self.arrived.notify_all();
    }

    /// Waits for letters and appends all of them. False when there are none and nothing more will come.
    pub(crate) fn take(&self, into: &mut Vec<T>) -> bool {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if !inside.letters.is_empty() {
                if into.is_empty() {
                    std::mem::swap(into, &mut inside.letters);
                } else {
                    into.append(&mut inside.letters);
                }
                return true;
            }
            if inside.is_closed {
                return false;
            }
            inside.is_asleep = true;
            inside = self.arrived.wait(inside).unwrap_or_else(PoisonError::into_inner);
            inside.is_asleep = false;
        }
    }
}
