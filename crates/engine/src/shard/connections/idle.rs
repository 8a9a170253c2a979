//! The open connections that no one uses.
//!
//! The one that has been idle longest is used first: requests go over all connections in turn. Connections that were opened
//! because they were needed once stand behind the others and are used when none of those is idle. After a moment in which
//! many requests were in flight they rest: to walk over all of them would cost the generator and the target more than
//! the same rate did before.
//!
//! Servers close a connection after a number of requests (Apache after 100, nginx after 1,000, unless configured). Connections
//! that were opened together and are used in strict turn would reach that number together: all would be closed within
//! one turn, and the handshakes of those that replace them would meet the target at once. So at random a connection is passed
//! over, and their numbers drift apart. By chance alone they would drift by the square root of the number of requests, too little where that
//! is a thousand: so some are passed over a little more often than others. Several targets are each asked in strict turn: the connection
//! that is used instead leads to the same one.

use plimsoll_core::rng::{Rng, derive_seed};
use std::collections::VecDeque;

/// A connection is passed over in at least this many of [`TURNS`] turns.
const PASSED_OVER_MIN: u64 = 48;
/// A quarter of them on average, as connections differ by up to 32.
const TURNS: u64 = 256;
/// This many may end together: their handshakes are no load.
const FEW: usize = 8;

#[derive(Debug)]
pub(in crate::shard) struct IdleOpen {
    first: VecDeque<u32>,
    grown: VecDeque<u32>,
    /// The first key of those that were opened when they were needed.
    grown_from: u32,
    /// Number of targets.
    targets: usize,
    /// Decides which are passed over.
    lots: Rng,
}

impl IdleOpen {
    /// An empty one for connections to this many targets; connections from `grown_from` on are opened when they are needed. `seed`
    /// decides which are passed over.
    pub fn new(grown_from: u32, targets: usize, seed: u64) -> Self {
        let lots = Rng::new(derive_seed(seed, "connections passed over"));
        Self { first: VecDeque::new(), grown: VecDeque::new(), grown_from, targets, lots }
    }

    #[inline]
    fn queue_of(&mut self, key: u32) -> &mut VecDeque<u32> {
        if key < self.grown_from { &mut self.first } else { &mut self.grown }
    }

    /// A connection that has been used.
    #[inline]
    pub fn give_back(&mut self, key: u32) {
        self.queue_of(key).push_back(key);
    }

    /// A connection that was taken and not used.
    pub fn put_back(&mut self, key: u32) {
        self.queue_of(key).push_front(key);
    }

    /// The one that is taken next.
    #[inline]
    pub fn front(&self) -> Option<u32> {
        self.first.front().or_else(|| self.grown.front()).copied()
    }

    /// Takes it. At random, the one behind it loses its turn. `target_of` is the target of a connection.
    #[inline]
    pub fn take(&mut self, target_of: impl Fn(u32) -> u32) -> Option<u32> {
        let queue = if self.first.is_empty() { &mut self.grown } else { &mut self.first };
        let key = queue.pop_front()?;
        if queue.len() >= FEW && self.lots.below(TURNS) < passed_over(queue[0]) {
            if self.targets == 1 {
                queue.rotate_left(1);
            } else {
                exchange(queue, self.targets, target_of);
            }
        }
        Some(key)
    }

    /// Takes a connection out, whatever its place.
    pub fn remove(&mut self, key: u32) {
        let queue = self.queue_of(key);
        if let Some(place) = queue.iter().position(|&other| other == key) {
            queue.remove(place);
        }
    }

    /// All of them, in the order in which they are taken.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.first.iter().chain(&self.grown).copied()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first.is_empty() && self.grown.is_empty()
    }

    pub fn clear(&mut self) {
        self.first.clear();
        self.grown.clear();
    }
}

/// Lets the first one change places with one to the same target that was used a moment ago.
fn exchange(queue: &mut VecDeque<u32>, targets: usize, target_of: impl Fn(u32) -> u32) {
    let target = target_of(queue[0]);
    // Targets take turns, so that one of the last connections leads to each.
    let mut last = (1..queue.len()).rev().take(targets);
    if let Some(place) = last.find(|&place| target_of(queue[place]) == target) {
        queue.swap(0, place);
    }
}

/// Number of [`TURNS`] in which a connection is passed over.
#[inline]
fn passed_over(key: u32) -> u64 {
    // The upper bits of multiples of the golden ratio are spread evenly.
    PASSED_OVER_MIN + (u64::from(key).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 59)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses of each of 64 connections to this many targets after 6,400 requests. Targets must have been asked in turn.
    fn uses(targets: u32) -> [u32; 64] {
        let mut idle = IdleOpen::new(64, targets as usize, 1);
        (0..64).for_each(|key| idle.give_back(key));
        let mut uses = [0; 64];
        for turn in 0..6_400 {
            let key = idle.take(|key| key % targets).unwrap();
            assert_eq!(key % targets, turn % targets);
            uses[key as usize] += 1;
            idle.give_back(key);
        }
        uses
    }

    #[test]
    fn many_connections_are_used_about_equally_often_and_their_targets_in_turn() {
        for targets in [1, 2, 4] {
            let some = uses(targets);
            let [least, most] = [some.iter().min(), some.iter().max()].map(|uses| *uses.unwrap());
            assert!(least > 70 && most < 130, "{least} to {most}");
            assert!(most - least > 10, "{least} to {most}: they would end together");
        }
    }

    #[test]
    fn a_connection_that_was_needed_once_waits_until_it_is_needed_again() {
        let mut idle = IdleOpen::new(2, 1, 1);
        [5, 1, 0, 4].into_iter().for_each(|key| idle.give_back(key));
        idle.put_back(6);
        assert_eq!(idle.iter().collect::<Vec<_>>(), [1, 0, 6, 5, 4]);
        assert_eq!((idle.take(|_| 0), idle.front()), (Some(1), Some(0)));
        idle.give_back(1);
        idle.remove(0);
        idle.remove(5);
        idle.remove(3);
        let taken: Vec<u32> = std::iter::from_fn(|| idle.take(|_| 0)).collect();
        assert_eq!(taken, [1, 6, 4]);
        assert!(idle.is_empty() && idle.front().is_none());
    }
}
