//! The queue of a subscription: bounded by messages and bytes, and what does not fit is counted.

use crate::bus::{BusError, Message, Subscription};
use plimsoll_core::clock::now_ns;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Limits of the queue of each subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Most messages.
    pub messages: usize,
    /// Most bytes of payloads.
    pub bytes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { messages: 65_536, bytes: 64 * 1024 * 1024 }
    }
}

/// Something that messages of a bus go to. It takes them at once, whatever becomes of them: a bus does not wait for a reader.
pub trait Receiver: Send + Sync {
    /// Takes a message.
    fn take(&self, message: &Message);
}

impl Receiver for Queue {
    fn take(&self, message: &Message) {
        self.push(message.clone());
    }
}

#[derive(Default)]
struct Held {
    messages: VecDeque<Message>,
    bytes: usize,
    lost: u64,
    is_closed: bool,
}

/// A queue between a sender and a reader.
pub struct Queue {
    held: Mutex<Held>,
    has_come: Condvar,
    bounds: Bounds,
}

impl Queue {
    pub fn new(bounds: Bounds) -> Arc<Self> {
        Arc::new(Self { held: Mutex::default(), has_come: Condvar::new(), bounds })
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a message, or counts it as lost. The newest is dropped, as a NATS client does.
    pub fn push(&self, message: Message) {
        let mut held = self.held();
        let bytes = held.bytes + message.payload.len();
        if held.messages.len() >= self.bounds.messages || bytes > self.bounds.bytes {
            held.lost += 1;
            return;
        }
        held.bytes = bytes;
        held.messages.push_back(message);
        drop(held);
        self.has_come.notify_one();
    }

    /// Counts messages that were dropped before they reached this queue.
    pub fn count_lost(&self, messages: u64) {
        self.held().lost += messages;
    }

    /// Ends the queue; what it holds can still be read.
    pub fn close(&self) {
        self.held().is_closed = true;
        self.has_come.notify_all();
    }

    pub fn lost(&self) -> u64 {
        self.held().lost
    }

    /// Waits for the next message.
    pub fn next(&self, within: Duration) -> Result<Option<Message>, BusError> {
        let within_ns = u64::try_from(within.as_nanos()).unwrap_or(u64::MAX);
        let deadline_ns = now_ns().saturating_add(within_ns);
        let mut held = self.held();
        loop {
            if let Some(message) = held.messages.pop_front() {
                held.bytes -= message.payload.len();
                return Ok(Some(message));
            }
            if held.is_closed {
                return Err(BusError::Closed);
            }
            let left = Duration::from_nanos(deadline_ns.saturating_sub(now_ns()));
            if left.is_zero() {
                return Ok(None);
            }
            let waited = self.has_come.wait_timeout(held, left);
            held = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// A subscription that reads a queue, and takes something along when it ends.
pub struct Reader<E: Send> {
    queue: Arc<Queue>,
    /// Dropped with the subscription, and ends it at the sender.
    _end: E,
}

impl<E: Send> Reader<E> {
    pub fn new(queue: Arc<Queue>, end: E) -> Self {
        Self { queue, _end: end }
    }
}

impl<E: Send> Subscription for Reader<E> {
    fn next(&self, within: Duration) -> Result<Option<Message>, BusError> {
        self.queue.next(within)
    }

    fn lost(&self) -> u64 {
        self.queue.lost()
    }
}
