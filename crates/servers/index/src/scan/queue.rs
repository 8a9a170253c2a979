//! The one queue of the server: scans run one at a time, in the order in which they came.

use plimsoll_core::clock::now_ns;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Time between two checks whether the query was abandoned, in nanoseconds.
const LOOK_NS: u64 = 20_000_000;

/// Reason why a scan was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Too many scans wait.
    #[error("the scan queue is full: {limit} scans wait already; ask again later")]
    Full {
        /// Most requests that may wait.
        limit: usize,
    },
    /// The deadline passed.
    #[error("the scan was not done in time; allow more time or ask for less")]
    Late,
    /// The client has left.
    #[error("the scan was abandoned")]
    Abandoned,
}

/// The running scan and the waiting ones.
#[derive(Debug)]
pub struct ScanQueue {
    waiting: Mutex<Waiting>,
    moved: Condvar,
    /// The most that wait, besides the one that runs.
    limit: usize,
    /// Threads that share one scan.
    threads: usize,
}

#[derive(Debug, Default)]
struct Waiting {
    next_ticket: u64,
    /// The first one runs.
    tickets: VecDeque<u64>,
}

impl ScanQueue {
    /// A queue for at most `limit` scans that wait; each runs on `threads` threads, one at least.
    pub fn new(limit: usize, threads: usize) -> Self {
        let waiting = Mutex::default();
        Self { waiting, moved: Condvar::new(), limit, threads: threads.max(1) }
    }

    /// Threads that share one scan.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for its turn, which lasts until what is returned is dropped.
    ///
    /// # Errors
    /// When the queue is full, the deadline passes (on the scale of `now_ns`), or the search is
    /// abandoned.
    pub(crate) fn enter(
        &self,
        deadline_ns: u64,
        abandoned: &AtomicBool,
    ) -> Result<Turn<'_>, Refused> {
        let mut waiting = self.lock();
        if waiting.tickets.len() > self.limit {
            return Err(Refused::Full { limit: self.limit });
        }
        let ticket = waiting.next_ticket;
        waiting.next_ticket += 1;
        waiting.tickets.push_back(ticket);
        // From here on the ticket is given back whatever happens.
        let turn = Turn { queue: self, ticket };
        loop {
            let now = now_ns();
            let over = if abandoned.load(Ordering::Relaxed) {
                Some(Refused::Abandoned)
            } else {
                (now >= deadline_ns).then_some(Refused::Late)
            };
            if let Some(refused) = over {
                drop(waiting);
                drop(turn);
                return Err(refused);
            }
            if waiting.tickets.front() == Some(&ticket) {
                return Ok(turn);
            }
            let pause = Duration::from_nanos((deadline_ns - now).min(LOOK_NS));
            let woken = self.moved.wait_timeout(waiting, pause);
            waiting = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The number that wait or run.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.lock().tickets.len()
    }
}

/// A place in the queue.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    queue: &'a ScanQueue,
    ticket: u64,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.queue.lock().tickets.retain(|ticket| *ticket != self.ticket);
        self.queue.moved.notify_all();
    }
}
