//! Admission: the only place that may refuse a request.
//!
//! *Direct*: a due request takes a free connection or waits for one, for as long as the run lasts.
//! *Managed*: at most `slots` requests are in flight; up to `queue_max` more wait, each no longer than
//! `queue_timeout_ns`; further ones are refused and counted, by reason.

use crate::schedule::time_ns;
use crate::units::Span;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The way due requests are let in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "kebab-case", try_from = "WrittenAdmission")]
pub enum AdmissionModel {
    /// Wait for a connection without limit.
    #[default]
    Direct,
    /// Slots and a bounded queue.
    Managed {
        /// Largest number of requests in flight, over the whole run.
        slots: u32,
        /// Most requests waiting, over the whole run.
        queue_max: u32,
        /// Longest wait, ns.
        queue_timeout_ns: u64,
    },
}

/// Admission as it is written: the longest wait as a text, or in the older field as a number of nanoseconds.
#[derive(Deserialize)]
#[serde(tag = "mode", rename_all = "kebab-case", deny_unknown_fields)]
enum WrittenAdmission {
    Direct,
    Managed {
        slots: u32,
        queue_max: u32,
        queue_timeout: Option<Span>,
        queue_timeout_ns: Option<u64>,
    },
}

impl TryFrom<WrittenAdmission> for AdmissionModel {
    type Error = String;

    fn try_from(written: WrittenAdmission) -> Result<Self, String> {
        Ok(match written {
            WrittenAdmission::Direct => Self::Direct,
            WrittenAdmission::Managed { slots, queue_max, queue_timeout, queue_timeout_ns } => {
                let queue_timeout_ns = time_ns("queue_timeout", queue_timeout, queue_timeout_ns)?;
                Self::Managed { slots, queue_max, queue_timeout_ns }
            }
        })
    }
}

/// A request that is due and not yet sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// Its intended start.
    pub intended_ns: u64,
    /// Its client in a closed model.
    pub client: u32,
}

/// The result of offering a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// It waits and will be handed out by [`ManagedQueue::take`].
    Queued,
    /// The queue is full.
    Refused,
}

/// The bounded queue in front of the slots.
#[derive(Clone, Debug)]
pub struct ManagedQueue {
    slots: u32,
    queue_max: usize,
    queue_timeout_ns: u64,
    waiting: VecDeque<Due>,
}

impl ManagedQueue {
    /// A queue for one slice's share of slots and places.
    #[must_use]
    pub fn new(slots: u32, queue_max: u32, queue_timeout_ns: u64) -> Self {
        Self { slots, queue_max: queue_max as usize, queue_timeout_ns, waiting: VecDeque::new() }
    }

    /// Offers a due request while `in_flight` are in flight. A request that finds a free slot is queued
    /// even when the queue has no places: it will be taken at once.
    pub fn offer(&mut self, due: Due, in_flight: u32) -> Offer {
        let free = self.slots.saturating_sub(in_flight) as usize;
        if self.waiting.len() < self.queue_max.saturating_add(free) {
            self.waiting.push_back(due);
            Offer::Queued
        } else {
            Offer::Refused
        }
    }

    /// Returns true if a slot is free while `in_flight` requests are in flight.
    #[must_use]
    pub const fn has_slot(&self, in_flight: u32) -> bool {
        in_flight < self.slots
    }

    /// The longest-waiting request, if a slot is free.
    pub fn take(&mut self, in_flight: u32) -> Option<Due> {
        if self.has_slot(in_flight) { self.waiting.pop_front() } else { None }
    }

    /// Takes out one request that has waited too long at `now_ns`.
    pub fn expired(&mut self, now_ns: u64) -> Option<Due> {
        let first = self.waiting.front()?;
        if now_ns.saturating_sub(first.intended_ns) > self.queue_timeout_ns {
            self.waiting.pop_front()
        } else {
            None
        }
    }

    /// Time at which the longest-waiting request expires.
    #[must_use]
    pub fn next_expiry_ns(&self) -> Option<u64> {
        Some(self.expiry_ns(*self.waiting.front()?))
    }

    /// Time at which a request has waited too long.
    #[must_use]
    pub const fn expiry_ns(&self, due: Due) -> u64 {
        due.intended_ns.saturating_add(self.queue_timeout_ns.saturating_add(1))
    }

    /// Number of waiting requests.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns true if no request waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn due(intended_ns: u64) -> Due {
        Due { intended_ns, client: 0 }
    }

    #[test]
    fn slots_then_places_then_refusal() {
        let mut queue = ManagedQueue::new(1, 1, 10);
        assert_eq!(queue.offer(due(0), 0), Offer::Queued);
        assert_eq!(queue.take(0), Some(due(0)));
        assert_eq!(queue.offer(due(1), 1), Offer::Queued);
        assert_eq!(queue.offer(due(2), 1), Offer::Refused);
        assert_eq!(queue.take(1), None);
        assert_eq!(queue.expired(11), None);
        assert_eq!(queue.next_expiry_ns(), Some(12));
        assert_eq!(queue.expired(12), Some(due(1)));
    }

    #[test]
    fn a_queue_without_a_timeout_expires_nobody() {
        let mut queue = ManagedQueue::new(1, 1, u64::MAX);
        queue.offer(due(7), 1);
        assert_eq!(queue.next_expiry_ns(), Some(u64::MAX));
        assert_eq!(queue.expired(u64::MAX), None);
    }

    proptest! {
        #[test]
        fn nobody_is_lost_and_limits_hold(slots in 1u32..5, places in 0u32..5, timeout in 1u64..50,
                                          events in proptest::collection::vec((0u8..3, 0u64..20), 1..300)) {
            let mut queue = ManagedQueue::new(slots, places, timeout);
            let (mut now, mut in_flight) = (0, 0);
            let (mut offered, mut refused, mut late, mut sent) = (0, 0, 0, 0);
            for (event, step) in events {
                now += step;
                match event {
                    0 => {
                        offered += 1;
                        if queue.offer(due(now), in_flight) == Offer::Refused {
                            refused += 1;
                        }
                    }
                    1 => while queue.expired(now).is_some() {
                        late += 1;
                    },
                    _ => in_flight = in_flight.saturating_sub(1),
                }
                while queue.take(in_flight).is_some() {
                    in_flight += 1;
                    sent += 1;
                }
                prop_assert!(in_flight <= slots);
                prop_assert!(queue.len() <= places as usize);
            }
            prop_assert_eq!(offered, refused + late + sent + queue.len());
        }
    }
}
