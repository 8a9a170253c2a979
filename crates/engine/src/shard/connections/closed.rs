//! The connections that no one uses and that must be opened first, by their targets.

use std::collections::VecDeque;

/// Targets take turns, whatever order their connections came back in: who asks again after a failure comes to
/// another target, as long as another has a connection to give, and to all of them in as many tries.
#[derive(Debug)]
pub(in crate::shard) struct ClosedConnections {
    /// Of each target, those that came back first in front.
    of_target: Vec<VecDeque<u32>>,
    /// The target whose turn it is.
    turn: usize,
    count: usize,
}

impl ClosedConnections {
    pub fn new(targets: usize) -> Self {
        let targets = targets.max(1);
        Self { of_target: vec![VecDeque::new(); targets], turn: 0, count: 0 }
    }

    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub const fn len(&self) -> usize {
        self.count
    }

    pub fn clear(&mut self) {
        *self = Self::new(self.of_target.len());
    }

    /// A connection to `target` that has been used, or never was.
    pub fn give_back(&mut self, key: u32, target: u32) {
        self.of_target[target as usize].push_back(key);
        self.count += 1;
    }

    /// A connection that was taken and not used after all: it keeps its place, and its target has its turn again.
    pub fn put_back(&mut self, key: u32, target: u32) {
        self.of_target[target as usize].push_front(key);
        self.count += 1;
        self.turn = target as usize;
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.of_target.iter().flatten().copied()
    }

    /// Takes a connection out, whatever its place; false when it was not there.
    pub fn remove(&mut self, key: u32, target: u32) -> bool {
        let queue = &mut self.of_target[target as usize];
        // It came a moment ago as a rule.
        let Some(place) = queue.iter().rposition(|&other| other == key) else { return false };
        queue.remove(place);
        self.count -= 1;
        true
    }

    /// The next connection, of the target whose turn it is, or of the next one that has any.
    pub fn take(&mut self) -> Option<u32> {
        let targets = self.of_target.len();
        let (target, key) = (0..targets).find_map(|ahead| {
            let target = (self.turn + ahead) % targets;
            Some((target, self.of_target[target].pop_front()?))
        })?;
        self.turn = (target + 1) % targets;
        self.count -= 1;
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::ClosedConnections;

    #[test]
    fn targets_take_turns_whatever_came_back_first() {
        let mut closed = ClosedConnections::new(3);
        for (key, target) in [(0, 0), (3, 0), (6, 0), (1, 1), (2, 2)] {
            closed.give_back(key, target);
        }
        let taken: Vec<u32> = std::iter::from_fn(|| closed.take()).collect();
        assert_eq!(taken, [0, 1, 2, 3, 6]);
        assert!(closed.is_empty());
    }

    #[test]
    fn what_was_not_used_keeps_its_place() {
        let mut closed = ClosedConnections::new(2);
        for (key, target) in [(0, 0), (2, 0), (1, 1)] {
            closed.give_back(key, target);
        }
        assert_eq!(closed.take(), Some(0));
        closed.put_back(0, 0);
        assert_eq!([closed.take(), closed.take(), closed.take()], [Some(0), Some(1), Some(2)]);
        assert_eq!(closed.take(), None);
    }
}
