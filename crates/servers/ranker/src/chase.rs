//! The pointer chase: each step's address is the value of the one before, so that nothing but the
//! memory's latency counts.
//!
//! The places form one true cycle over all entries (Sattolo, "An algorithm to generate a random
//! cyclic permutation", 1986). A mere permutation, as the original has, falls into cycles, and a
//! walk that starts in a short one stays in the cache.

use plimsoll_core::rng::Rng;

/// A cycle through an array.
#[derive(Debug)]
pub(crate) struct Chase {
    next: Vec<u64>,
}

impl Chase {
    /// A random cycle over at least one entry.
    pub(crate) fn new(entries: usize, rng: &mut Rng) -> Self {
        let mut next: Vec<u64> = (0..entries.max(1) as u64).collect();
        for last in (1..next.len()).rev() {
            // Below `last`, never `last` itself: that is what makes it one cycle.
            next.swap(last, rng.below(last as u64) as usize);
        }
        Self { next }
    }

    /// Number of entries that the cycle has.
    pub(crate) fn entries(&self) -> u64 {
        self.next.len() as u64
    }

    /// Returns the end of a walk of `steps` steps.
    pub(crate) fn run(&self, from: u64, steps: u64) -> u64 {
        let mut at = from % self.entries();
        for _ in 0..steps {
            at = self.next[at as usize];
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_one_cycle_over_all_entries() {
        for entries in [1, 2, 3, 10, 1_000] {
            let chase = Chase::new(entries, &mut Rng::new(entries as u64));
            let mut seen = vec![false; entries];
            let mut at = 0;
            for _ in 0..entries {
                assert!(!std::mem::replace(&mut seen[at as usize], true), "{entries} entries");
                at = chase.run(at, 1);
            }
            assert_eq!(at, 0);
            assert_eq!(chase.run(0, entries as u64), 0);
        }
    }

    #[test]
    fn all_cycles_come_up_equally_often() {
        // Four entries have six cycles.
        let mut counts = std::collections::BTreeMap::new();
        let mut rng = Rng::new(11);
        for _ in 0..6_000 {
            *counts.entry(Chase::new(4, &mut rng).next).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 6);
        // Six standard deviations of a binomial with mean 1000.
        assert!(counts.values().all(|count| (827..1_173).contains(count)), "{counts:?}");
    }
}
