//! A bus inside one process: what is published is in the queues of its receivers when the call returns.

use crate::bus::{Bus, BusError, Link, Message, Subscription, check_payload};
use crate::queue::{Bounds, Queue, Reader, Receiver};
use crate::subject;
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard, Weak};
use std::time::Duration;

/// A bus of this process. Clones are connections to the same bus.
#[derive(Clone, Default)]
pub struct InProcess {
    receivers: Arc<RwLock<Receivers>>,
    bounds: Bounds,
}

/// A receiver with its number.
type Numbered = (u64, Arc<dyn Receiver>);

/// All receivers. Subjects without wildcards are found by name: a coordinator has one for each agent.
#[derive(Default)]
struct Receivers {
    next_id: u64,
    named: HashMap<String, Vec<Numbered>>,
    wild: Vec<(String, u64, Arc<dyn Receiver>)>,
}

impl InProcess {
    /// Makes a bus without receivers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a bus whose subscriptions have other limits.
    #[must_use]
    pub fn with_bounds(bounds: Bounds) -> Self {
        Self { bounds, ..Self::default() }
    }

    /// Makes another connection to the same bus, whose subscriptions have these limits.
    #[must_use]
    pub fn connection(&self, bounds: Bounds) -> Self {
        Self { receivers: Arc::clone(&self.receivers), bounds }
    }

    fn change(&self) -> RwLockWriteGuard<'_, Receivers> {
        self.receivers.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a receiver of a subject; it is one until the result is dropped.
    pub(crate) fn attach(
        &self,
        subject: &str,
        receiver: Arc<dyn Receiver>,
    ) -> Result<Leaving, BusError> {
        subject::check_subscribed(subject)?;
        let mut receivers = self.change();
        receivers.next_id += 1;
        let id = receivers.next_id;
        if subject::has_wildcard(subject) {
            receivers.wild.push((subject.to_owned(), id, receiver));
        } else {
            receivers.named.entry(subject.to_owned()).or_default().push((id, receiver));
        }
        let receivers = Arc::downgrade(&self.receivers);
        Ok(Leaving { receivers, subject: subject.to_owned(), id })
    }
}

impl Bus for InProcess {
    fn publish(&self, subject: &str, payload: &[u8]) -> Result<(), BusError> {
        subject::check_published(subject)?;
        check_payload(payload)?;
        let receivers = self.receivers.read().unwrap_or_else(PoisonError::into_inner);
        let named =
            receivers.named.get(subject).into_iter().flatten().map(|(_, receiver)| receiver);
        let wild = receivers.wild.iter();
        let wild = wild.filter(|(pattern, ..)| subject::matches(pattern, subject));
        let mut message = None;
        for receiver in named.chain(wild.map(|(_, _, receiver)| receiver)) {
            let message = message.get_or_insert_with(|| Message {
                subject: subject.to_owned(),
                payload: Bytes::copy_from_slice(payload),
            });
            receiver.take(message);
        }
        Ok(())
    }

    fn subscribe(&self, subject: &str) -> Result<Box<dyn Subscription>, BusError> {
        let queue = Queue::new(self.bounds);
        let end = self.attach(subject, queue.clone())?;
        Ok(Box::new(Reader::new(queue, end)))
    }

    fn flush(&self, _within: Duration) -> Result<(), BusError> {
        Ok(())
    }

    fn state(&self) -> Link {
        Link::Connected
    }
}

/// Takes a subscription off the bus when it is dropped.
pub(crate) struct Leaving {
    receivers: Weak<RwLock<Receivers>>,
    subject: String,
    id: u64,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        let Some(receivers) = self.receivers.upgrade() else { return };
        let mut receivers = receivers.write().unwrap_or_else(PoisonError::into_inner);
        receivers.wild.retain(|(_, id, _)| *id != self.id);
        if let Some(named) = receivers.named.get_mut(&self.subject) {
            named.retain(|(id, _)| *id != self.id);
            if named.is_empty() {
                receivers.named.remove(&self.subject);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_subscription_leaves_nothing_behind() {
        let bus = InProcess::new();
        let subscriptions = [bus.subscribe("a.b").unwrap(), bus.subscribe("a.*").unwrap()];
        bus.publish("a.b", b"1").unwrap();
        drop(subscriptions);
        let receivers = bus.receivers.read().unwrap();
        assert!(receivers.named.is_empty() && receivers.wild.is_empty());
    }

    #[test]
    fn bytes_are_a_limit_of_the_queue_too() {
        let bus = InProcess::with_bounds(Bounds { messages: 10, bytes: 5 });
        let subscription = bus.subscribe("a").unwrap();
        for payload in [&b"123"[..], b"456", b"78"] {
            bus.publish("a", payload).unwrap();
        }
        assert_eq!(subscription.lost(), 1);
        let next = || subscription.next(Duration::ZERO).unwrap().map(|m| m.payload);
        assert_eq!(next().as_deref(), Some(&b"123"[..]));
        assert_eq!(next().as_deref(), Some(&b"78"[..]));
        assert_eq!(next(), None);
    }
}
