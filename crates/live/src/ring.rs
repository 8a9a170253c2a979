//! The last events, for readers that come back.

use bytes::Bytes;
use std::collections::VecDeque;

/// Most events that are kept.
pub const EVENTS_MAX: usize = 600;
/// Most bytes of the events that are kept.
pub const BYTES_MAX: usize = 8_000_000;

/// The last events in their order, each with its number.
#[derive(Debug, Default)]
pub struct Ring {
    events: VecDeque<(u64, Bytes)>,
    bytes: usize,
}

impl Ring {
    /// Keeps an event, and forgets the oldest ones that have no room.
    pub fn push(&mut self, number: u64, event: Bytes) {
        self.bytes += event.len();
        self.events.push_back((number, event));
        while self.events.len() > EVENTS_MAX || self.bytes > BYTES_MAX {
            let Some((_, oldest)) = self.events.pop_front() else { break };
            self.bytes -= oldest.len();
        }
    }

    /// The events after `seen`, if none of them is forgotten and `seen` was sent at all.
    pub fn after(&self, seen: u64) -> Option<Vec<Bytes>> {
        let (first, last) = (self.events.front()?.0, self.events.back()?.0);
        if seen > last || seen + 1 < first {
            return None;
        }
        let missed = self.events.iter().filter(|(number, _)| *number > seen);
        Some(missed.map(|(_, event)| event.clone()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_missed_comes_in_order_as_long_as_all_of_it_is_there() {
        let mut ring = Ring::default();
        assert!(ring.after(0).is_none());
        for number in 1..=10 {
            ring.push(number, Bytes::from(vec![number as u8]));
        }
        assert_eq!(ring.after(7).unwrap().concat(), [8, 9, 10]);
        assert_eq!(ring.after(0).unwrap().len(), 10);
        assert!(ring.after(10).unwrap().is_empty());
        assert!(ring.after(11).is_none(), "of another run");
    }

    #[test]
    fn memory_is_bounded_and_a_gap_is_known() {
        let mut ring = Ring::default();
        for number in 1..=2 * EVENTS_MAX as u64 {
            ring.push(number, Bytes::from(vec![0; BYTES_MAX / 100]));
        }
        assert!(ring.bytes <= BYTES_MAX && ring.events.len() <= EVENTS_MAX);
        assert!(ring.after(1_000).is_none());
        assert_eq!(ring.after(2 * EVENTS_MAX as u64 - 1).unwrap().len(), 1);
    }
}
