//! The open connections that no one uses.
//!
//! The one that has been idle longest is used first: requests go over all connections in turn. Connections that were opened
//! because they were needed once stand behind the others and are used when none of those is idle. After a moment in which
//! many requests were in flight they rest: to walk over all of them would cost the generator and the target more than
//! the same rate did before.

use std::collections::VecDeque;

#[derive(Debug)]
pub(in crate::shard) struct IdleOpen {
    first: VecDeque<u32>,
    grown: VecDeque<u32>,
    /// The first key of those that were opened when they were needed.
    grown_from: u32,
}

impl IdleOpen {
    /// An empty one; connections from `grown_from` on are opened when they are needed.
    pub fn new(grown_from: u32) -> Self {
        Self { first: VecDeque::new(), grown: VecDeque::new(), grown_from }
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

    /// Takes it.
    #[inline]
    pub fn take(&mut self) -> Option<u32> {
        self.first.pop_front().or_else(|| self.grown.pop_front())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_was_needed_once_waits_until_it_is_needed_again() {
        let mut idle = IdleOpen::new(2);
        [5, 1, 0, 4].into_iter().for_each(|key| idle.give_back(key));
        idle.put_back(6);
        assert_eq!(idle.iter().collect::<Vec<_>>(), [1, 0, 6, 5, 4]);
        assert_eq!((idle.take(), idle.front()), (Some(1), Some(0)));
        idle.give_back(1);
        idle.remove(0);
        idle.remove(5);
        idle.remove(3);
        let taken: Vec<u32> = std::iter::from_fn(|| idle.take()).collect();
        assert_eq!(taken, [1, 6, 4]);
        assert!(idle.is_empty() && idle.front().is_none());
    }
}
