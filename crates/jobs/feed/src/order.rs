//! Operations that wait because an earlier one on the same document is not settled yet.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Keys are hashes already.
#[derive(Default)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

/// The end of the line that no one stands behind.
const NOBODY: u32 = u32::MAX;

/// Lines of operations, one for each document that has any in flight. Operations are known by their slots.
#[derive(Default)]
pub struct Order {
    /// The last of each line.
    last: HashMap<u64, u32, BuildHasherDefault<AsIs>>,
    /// Operations that wait for each slot.
    behind: Vec<u32>,
}

impl Order {
    /// Adds an operation to the line of its document. Returns true if it is first and can be sent at once.
    pub fn enter(&mut self, key: u64, slot: u32) -> bool {
        if self.behind.len() <= slot as usize {
            self.behind.resize(slot as usize + 1, NOBODY);
        }
        self.behind[slot as usize] = NOBODY;
        match self.last.insert(key, slot) {
            None => true,
            Some(before) => {
                self.behind[before as usize] = slot;
                false
            }
        }
    }

    /// Removes the first operation of a line, which is settled. Returns the one whose turn it is now.
    pub fn leave(&mut self, key: u64, slot: u32) -> Option<u32> {
        let next = std::mem::replace(&mut self.behind[slot as usize], NOBODY);
        if next != NOBODY {
            return Some(next);
        }
        if self.last.get(&key) == Some(&slot) {
            self.last.remove(&key);
        }
        None
    }

    /// Documents with operations that are not settled.
    #[must_use]
    pub fn documents(&self) -> usize {
        self.last.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, VecDeque};

    proptest! {
        #[test]
        fn lines_are_first_come_first_served(
            steps in prop::collection::vec((any::<bool>(), 0u64..5, any::<u8>()), 1..300),
        ) {
            let mut order = Order::default();
            let mut lines: BTreeMap<u64, VecDeque<u32>> = BTreeMap::new();
            let mut free: Vec<u32> = (0..400).rev().collect();
            for (comes, key, pick) in steps {
                if comes {
                    let slot = free.pop().unwrap();
                    let line = lines.entry(key).or_default();
                    line.push_back(slot);
                    prop_assert_eq!(order.enter(key, slot), line.len() == 1);
                } else if let Some(&key) = lines.keys().nth(usize::from(pick) % lines.len().max(1)) {
                    let line = lines.get_mut(&key).unwrap();
                    let slot = line.pop_front().unwrap();
                    prop_assert_eq!(order.leave(key, slot), line.front().copied());
                    free.push(slot);
                    if line.is_empty() {
                        lines.remove(&key);
                    }
                }
                prop_assert_eq!(order.documents(), lines.len());
            }
        }
    }
}
