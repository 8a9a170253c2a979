//! Contents of a window's parts, so that its halves can be compared once its end is known.

use crate::statistics::{Gain, Half, gain};
use serde::{Deserialize, Serialize};

/// Parts of a window: when they are used up, two become one.
const PARTS: usize = 64;

/// Successful requests of a window by part and query, in a fixed room however long it gets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Parts {
    width_ns: u64,
    queries: usize,
    /// Part after part, a count for each query.
    counts: Vec<u64>,
    /// Response times by query, ns.
    sums_ns: Vec<u128>,
}

impl Parts {
    /// Parts of this length to begin with, at least 1 ns.
    #[must_use]
    pub fn new(width_ns: u64, queries: usize) -> Self {
        Self {
            width_ns: width_ns.max(1),
            queries,
            counts: vec![0; PARTS * queries],
            sums_ns: vec![0; queries],
        }
    }

    /// A request ended this long after the window began.
    #[inline]
    pub fn add(&mut self, query: u16, after_ns: u64, response_ns: u64) {
        let query = usize::from(query);
        if query >= self.queries {
            return;
        }
        while after_ns / self.width_ns >= PARTS as u64 {
            self.halve();
        }
        let part = (after_ns / self.width_ns) as usize;
        self.counts[part * self.queries + query] += 1;
        self.sums_ns[query] += u128::from(response_ns);
    }

    /// Puts each two parts together.
    fn halve(&mut self) {
        let queries = self.queries;
        for part in 0..PARTS / 2 {
            for query in 0..queries {
                let (left, right) = (2 * part * queries + query, (2 * part + 1) * queries + query);
                self.counts[part * queries + query] = self.counts[left] + self.counts[right];
            }
        }
        self.counts[PARTS / 2 * queries..].fill(0);
        self.width_ns = self.width_ns.saturating_mul(2);
    }

    /// Adds the contents of the same window that others counted. The finer of the two becomes as coarse as the other one.
    pub fn beside(&mut self, mut other: Self) {
        if other.width_ns == 0 || self.queries != other.queries {
            return;
        }
        while self.width_ns < other.width_ns {
            self.halve();
        }
        while other.width_ns < self.width_ns {
            other.halve();
        }
        for (own, more) in self.counts.iter_mut().zip(&other.counts) {
            *own += more;
        }
        for (own, more) in self.sums_ns.iter_mut().zip(&other.sums_ns) {
            *own += more;
        }
    }

    /// Speed-up of the second half of a window of this length over the first. The halves meet where the parts do that
    /// are nearest to its middle.
    #[must_use]
    pub fn gain(&self, length_ns: u64) -> Option<Gain> {
        if self.width_ns == 0 {
            return None;
        }
        let middle = ((length_ns as f64 / 2.0 / self.width_ns as f64).round() as usize).min(PARTS);
        let first_ns = middle as u64 * self.width_ns;
        let halves = self.counts.split_at(middle * self.queries);
        let first = self.half(halves.0, first_ns);
        gain(&first, &self.half(halves.1, length_ns.saturating_sub(first_ns)))
    }

    fn half(&self, counts: &[u64], length_ns: u64) -> Half {
        let mut half = Half { seconds: length_ns as f64 / 1e9, ..Half::default() };
        for (at, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let query = at % self.queries;
            let all: u64 = self.counts.iter().skip(query).step_by(self.queries).sum();
            let mean_s = self.sums_ns[query] as f64 / all as f64 / 1e9;
            half.work_s += *count as f64 * mean_s;
            half.variance_s2 += *count as f64 * mean_s * mean_s;
        }
        half
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_cold_start_shows_and_a_dear_query_does_not() {
        // Cold: 10 ms each at first, then 5 ms.
        let mut cold = Parts::new(500 * MS, 1);
        (0..50).for_each(|n| cold.add(0, n * 10 * MS, 10 * MS));
        (0..100).for_each(|n| cold.add(0, 500 * MS + n * 5 * MS, 5 * MS));
        let gained = cold.gain(1000 * MS).unwrap();
        assert!(gained.is_clear && (gained.share - 1.0).abs() < 1e-9, "{gained:?}");
        // A block of a dear query, and then one of a cheap one: the same user, as busy as before.
        let mut blocks = Parts::new(500 * MS, 2);
        (0..50).for_each(|n| blocks.add(0, n * 10 * MS, 10 * MS));
        (0..500).for_each(|n| blocks.add(1, 500 * MS + n * MS, MS));
        let gained = blocks.gain(1000 * MS).unwrap();
        assert!(!gained.is_clear && gained.share.abs() < 1e-9, "{gained:?}");
    }

    #[test]
    fn parts_that_several_processes_counted_are_those_of_one() {
        let mut whole = Parts::new(MS, 2);
        let mut own = [Parts::new(MS, 2), Parts::new(MS, 2)];
        for n in 0..900u64 {
            // The first process comes to an end early, and is still as fine as at the beginning.
            let (query, at) = ((n % 2) as u16, usize::from(n >= 60));
            whole.add(query, n * MS, n);
            own[at].add(query, n * MS, n);
        }
        assert_eq!(own.each_ref().map(|parts| parts.width_ns), [MS, 16 * MS]);
        let [first, second] = own;
        let (mut forth, mut back) = (first.clone(), second.clone());
        forth.beside(second);
        back.beside(first);
        assert!(forth == whole && back == whole);
        let line = serde_json::to_value(&whole).unwrap();
        assert_eq!(serde_json::from_value::<Parts>(line).unwrap(), whole);
        whole.beside(Parts::default());
        assert_eq!(whole, forth, "nothing was counted");
    }

    #[test]
    fn the_end_need_not_be_known_before() {
        let mut parts = Parts::new(MS, 1);
        // 300 ms at 1 a ms, 300 ms at 2 a ms: far more than 64 parts of a millisecond.
        (0..300).for_each(|n| parts.add(0, n * MS, MS));
        (0..600).for_each(|n| parts.add(0, 300 * MS + n * MS / 2, MS));
        assert_eq!((parts.width_ns, parts.counts.iter().sum::<u64>()), (16 * MS, 900));
        // Halves meet at 19 parts of 16 ms, 304 of the 600 ms.
        let gained = parts.gain(600 * MS).unwrap();
        assert!(gained.is_clear && (0.9..1.0).contains(&gained.share), "{gained:?}");
        parts.add(7, 0, 0);
        assert_eq!(Parts::default().gain(600 * MS), None);
        assert_eq!(Parts::new(MS, 1).gain(600 * MS), None, "nothing was done");
    }
}
