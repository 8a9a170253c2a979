//! A fingerprint that adds up: that of a sum of intervals is the sum of their fingerprints.
//!
//! With it, a receiver of intervals can prove that they are the whole, and needs 16 bytes for it instead of all histograms. Each
//! count is multiplied with two fixed random odd numbers of its place and added modulo 2^64 (a linear hash, after Carter and
//! Wegman, "Universal classes of hash functions", 1979); for a cell of a histogram, the number of its place is that of the cell times
//! that of the histogram. Sums that differ in one place always have different fingerprints; those
//! that differ in several have the same one with a probability of about 2^-128.

use super::{ClassPart, Counters, Interval};
use crate::histogram::Histogram;
use crate::ledger::Ledger;
use crate::rng::splitmix64;

/// A sum over all counts of intervals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fingerprint {
    sums: [u64; 2],
}

impl Fingerprint {
    /// Returns the fingerprint of one interval.
    ///
    /// Times of its ends, its phase and requests in flight at its end are not in it: they do not add up. Nor are the smallest and
    /// largest exact times of a class.
    #[must_use]
    pub fn of(interval: &Interval) -> Self {
        let mut print = Self::default();
        print.ledger(1, &interval.ledger);
        print.counters(&interval.counters);
        print.histogram(2, &interval.lag);
        let delays = &interval.delays;
        let parts = [&delays.receive, &delays.send, &delays.starved, &delays.connection];
        (3..).zip(parts).for_each(|(place, part)| print.histogram(place, part));
        print.count(7, 0, delays.disturbed);
        print.histogram(8, &interval.unserved);
        for (&status, &count) in &interval.statuses {
            print.count(9, status.into(), count);
        }
        for (index, class) in (1..).zip(&interval.classes) {
            print.class(index << 8, class);
        }
        print
    }

    /// Adds another one.
    pub fn add(&mut self, other: Self) {
        for (sum, other) in self.sums.iter_mut().zip(other.sums) {
            *sum = sum.wrapping_add(other);
        }
    }

    fn class(&mut self, place: u64, class: &ClassPart) {
        self.ledger(place | 1, &class.ledger);
        let counts = [class.zero_hits, class.hits_known, class.service_sum_ns];
        (0..).zip(counts).for_each(|(index, count)| self.count(place | 2, index, count));
        self.histogram(place | 3, &class.response);
        self.histogram(place | 4, &class.service);
        self.histogram(place | 5, &class.failed);
        if let Some(server) = &class.server {
            self.histogram(place | 6, &server.times);
            self.count(place | 7, 0, server.missing);
            self.count(place | 7, 1, server.malformed);
        }
    }

    fn histogram(&mut self, place: u64, histogram: &Histogram) {
        if !histogram.is_empty() {
            for (sum, own) in self.sums.iter_mut().zip(histogram.fingerprint()) {
                let key = splitmix64(place) | 1;
                *sum = sum.wrapping_add(own.wrapping_mul(key));
            }
        }
    }

    fn ledger(&mut self, place: u64, ledger: &Ledger) {
        (0..).zip(ledger.columns()).for_each(|(index, count)| self.count(place, index, count));
    }

    fn counters(&mut self, counters: &Counters) {
        (0..).zip(counters.all()).for_each(|(index, count)| self.count(0, index, count));
    }

    fn count(&mut self, place: u64, index: u64, count: u64) {
        self.count_at(splitmix64(place), index, count);
    }

    #[inline]
    fn count_at(&mut self, key: u64, index: u64, count: u64) {
        if count == 0 {
            return;
        }
        let first = splitmix64(key ^ index) | 1;
        let second = splitmix64(first) | 1;
        self.sums[0] = self.sums[0].wrapping_add(count.wrapping_mul(first));
        self.sums[1] = self.sums[1].wrapping_add(count.wrapping_mul(second));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn interval(rng: &mut Rng) -> Interval {
        let mut interval = Interval::new(1 + rng.below(3) as usize);
        interval.ledger.scheduled = rng.below(1000);
        interval.ledger.failed.reset = rng.below(3);
        interval.counters.bytes_sent = rng.next_u64() >> 20;
        interval.delays.disturbed = rng.below(2);
        interval.statuses.insert(200 + rng.below(4) as u16, rng.below(100));
        for class in &mut interval.classes {
            for _ in 0..rng.below(50) {
                class.record_ok(rng.below(1 << 40), rng.below(1 << 30));
            }
        }
        interval
    }

    #[test]
    fn the_fingerprint_of_a_sum_is_the_sum_of_the_fingerprints() {
        let mut rng = Rng::new(7);
        for _ in 0..200 {
            let (mut sum, mut print) = (Interval::default(), Fingerprint::default());
            for _ in 0..rng.below(6) {
                let one = interval(&mut rng);
                print.add(Fingerprint::of(&one));
                sum.merge(&one);
            }
            assert_eq!(Fingerprint::of(&sum), print);
        }
    }

    /// A part that is lost, counted twice, or changed in one place.
    #[test]
    fn a_sum_that_differs_in_one_place_has_another_fingerprint() {
        let mut rng = Rng::new(8);
        for _ in 0..200 {
            let mut one = interval(&mut rng);
            one.lag.record(5_000);
            let print = Fingerprint::of(&one);
            let changes: [fn(&mut Interval); 9] = [
                |it| it.lag.record(5_000),
                |it| it.ledger.unfinished += 1,
                |it| it.counters.refused_late += 1,
                |it| it.unserved.record(7),
                |it| it.delays.starved.record(20_000),
                |it| *it.statuses.entry(599).or_default() += 1,
                |it| it.classes[0].response.record(1),
                |it| it.classes[0].server.get_or_insert_default().missing += 1,
                |it| it.merge(&it.clone()),
            ];
            for (index, change) in changes.iter().enumerate() {
                let mut other = one.clone();
                change(&mut other);
                assert_ne!(Fingerprint::of(&other), print, "change {index}");
            }
        }
    }
}
