//! Resting connections after a failure, rejected clients, and clients without a request that is due.

use plimsoll_wire::UNTIL_CALLED;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A connection that pauses after a failure, a client that was rejected, or both together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::shard) struct Rest {
    pub until_ns: u64,
    pub connection: Option<u32>,
    /// The client, and the intended start of what it asked last, ns.
    pub client: Option<(u32, u64)>,
}

/// All who rest.
#[derive(Debug, Default)]
pub(in crate::shard) struct Resting {
    until: BinaryHeap<Reverse<Rest>>,
    /// Clients that rest until their sessions call for them, with the intended start of what they asked last, ns.
    uncalled: VecDeque<(u32, u64)>,
}

impl Resting {
    /// A connection pauses, and with it the client that asked for it.
    pub fn rest_connection(&mut self, key: u32, client: Option<(u32, u64)>, until_ns: u64) {
        self.until.push(Reverse(Rest { until_ns, connection: Some(key), client }));
    }

    /// A client rests until a time, or until it is called.
    pub fn rest_client(&mut self, client: u32, intended_ns: u64, until_ns: u64) {
        let client = (client, intended_ns);
        if until_ns == UNTIL_CALLED {
            self.uncalled.push_back(client);
        } else {
            self.until.push(Reverse(Rest { until_ns, connection: None, client: Some(client) }));
        }
    }

    /// Takes one whose pause is over.
    #[inline]
    pub fn take_rested(&mut self, now_ns: u64) -> Option<Rest> {
        if self.next_ns() > now_ns {
            return None;
        }
        self.until.pop().map(|Reverse(rest)| rest)
    }

    /// Takes the client that has waited longest to be called.
    pub fn take_called(&mut self) -> Option<(u32, u64)> {
        self.uncalled.pop_front()
    }

    #[inline]
    pub fn is_anybody_uncalled(&self) -> bool {
        !self.uncalled.is_empty()
    }

    /// The end of the first pause, ns.
    #[inline]
    pub fn next_ns(&self) -> u64 {
        self.until.peek().map_or(u64::MAX, |Reverse(rest)| rest.until_ns)
    }

    /// Forgets all pauses.
    pub fn clear(&mut self) {
        self.until.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_end_in_the_order_of_their_ends() {
        let mut resting = Resting::default();
        resting.rest_connection(7, None, 30);
        resting.rest_client(1, 5, 10);
        resting.rest_connection(8, Some((2, 6)), 20);
        assert_eq!((resting.next_ns(), resting.take_rested(9)), (10, None));
        let ends: Vec<Rest> = std::iter::from_fn(|| resting.take_rested(25)).collect();
        let connection_8 = Rest { until_ns: 20, connection: Some(8), client: Some((2, 6)) };
        let client_1 = Rest { until_ns: 10, connection: None, client: Some((1, 5)) };
        assert_eq!(ends, [client_1, connection_8]);
        resting.clear();
        assert_eq!((resting.next_ns(), resting.take_rested(u64::MAX - 1)), (u64::MAX, None));
    }

    #[test]
    fn who_waits_to_be_called_is_called_in_turn() {
        let mut resting = Resting::default();
        assert!(!resting.is_anybody_uncalled());
        [4, 2].into_iter().for_each(|client| resting.rest_client(client, 9, UNTIL_CALLED));
        assert_eq!(resting.next_ns(), u64::MAX, "no time ends it");
        assert!(resting.is_anybody_uncalled());
        assert_eq!(resting.take_called(), Some((4, 9)));
        assert_eq!((resting.take_called(), resting.take_called()), (Some((2, 9)), None));
    }
}
