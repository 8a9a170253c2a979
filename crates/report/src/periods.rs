//! The response times of a run by period, in bounded memory.

use plimsoll_core::clock::SECOND_NS;
use plimsoll_core::histogram::{Histogram, Packed};
use plimsoll_core::interval::Interval;

/// Most periods. When a run outgrows them, two become one: there are 120 to 240 of them in any run of two minutes or more.
pub const PERIODS_MAX: usize = 240;

/// Response times of successful requests, all classes together, by the period in which they ended.
///
/// A period is one second at first. Memory is that of [`PERIODS_MAX`] packed histograms, a few kilobytes each, however long
/// the run is.
#[derive(Clone, Debug)]
pub struct Periods {
    period_ns: u64,
    /// Those that are over.
    kept: Vec<Packed>,
    /// The one that is being filled; its index is the length of `kept`.
    open: Histogram,
}

impl Default for Periods {
    fn default() -> Self {
        Self { period_ns: SECOND_NS, kept: Vec::new(), open: Histogram::new() }
    }
}

impl Periods {
    /// Adds a second. Seconds come in the order of their ends; a later one belongs to the period in which it ends.
    pub fn add(&mut self, second: &Interval) {
        let at = |period_ns| (second.to_ns.saturating_sub(1) / period_ns) as usize;
        while at(self.period_ns) >= PERIODS_MAX {
            self.halve();
        }
        self.close_until(at(self.period_ns));
        second.classes.iter().for_each(|class| self.open.merge(&class.response));
    }

    /// Returns the periods of a run of `run_s` seconds, and the length of each, s. Replies that were waited for after its end
    /// are in the last one.
    #[must_use]
    pub fn finish(mut self, run_s: f64) -> (Vec<Packed>, f64) {
        if !self.open.is_empty() {
            self.close_until(self.kept.len() + 1);
        }
        let period_s = self.period_ns as f64 / SECOND_NS as f64;
        // The clock may have stopped a moment before the last second was over.
        let whole = ((run_s / period_s + 0.1) as usize).max(1);
        if self.kept.len() > whole {
            let late: Vec<&Packed> = self.kept[whole - 1..].iter().collect();
            let last = Packed::sum(&late);
            self.kept.truncate(whole - 1);
            self.kept.push(last);
        }
        (self.kept, period_s)
    }

    /// Makes one period of two.
    fn halve(&mut self) {
        let open_is_second = self.kept.len() % 2 == 1;
        if open_is_second && let Some(first) = self.kept.pop() {
            first.add_to(&mut self.open);
        }
        let pairs = self.kept.chunks(2);
        self.kept = pairs.map(|pair| Packed::sum(&pair.iter().collect::<Vec<_>>())).collect();
        self.period_ns *= 2;
    }

    /// Closes the periods before the one with this index.
    fn close_until(&mut self, index: usize) {
        while self.kept.len() < index {
            self.kept.push(Packed::of(&self.open));
            self.open.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn second(to_s: u64, values_ns: &[u64]) -> Interval {
        let mut interval = Interval::new(2);
        interval.to_ns = to_s * SECOND_NS;
        for (index, &value_ns) in values_ns.iter().enumerate() {
            interval.classes[index % 2].response.record(value_ns);
        }
        interval
    }

    #[test]
    fn periods_are_seconds_until_a_run_outgrows_them() {
        for (run_s, number, each_s) in
            [(1, 1, 1.0), (240, 240, 1.0), (241, 121, 2.0), (481, 121, 4.0), (7_200, 225, 32.0)]
        {
            let mut periods = Periods::default();
            (1..=run_s).for_each(|to_s| periods.add(&second(to_s, &[1_000_000 * to_s])));
            let (kept, period_s) = periods.finish(run_s as f64);
            // The last period may be shorter than the others; then it belongs to the one before.
            assert!(kept.len() == number || kept.len() + 1 == number, "{run_s}: {}", kept.len());
            assert_eq!(period_s, each_s, "{run_s}");
            assert_eq!(kept.iter().map(Packed::count).sum::<u64>(), run_s);
            assert!(kept[..kept.len() - 1].iter().all(|one| one.count() == each_s as u64));
        }
    }

    #[test]
    fn late_replies_are_in_the_last_period_and_a_silent_second_is_empty() {
        let mut periods = Periods::default();
        for to_s in [1, 2, 4, 5, 9] {
            periods.add(&second(to_s, &[5_000_000; 3]));
        }
        let (kept, _) = periods.finish(4.99);
        assert_eq!(kept.iter().map(Packed::count).collect::<Vec<_>>(), [3, 3, 0, 3, 6]);
        assert!(Periods::default().finish(0.0).0.is_empty());
    }

    proptest! {
        #[test]
        fn no_request_is_lost_and_memory_is_bounded(ends in proptest::collection::vec(1u64..4_000, 1..60)) {
            let mut ends = ends;
            ends.sort_unstable();
            let mut periods = Periods::default();
            let mut whole = Histogram::new();
            for &to_s in &ends {
                let second = second(to_s, &[to_s * 1_000, 77_000_000]);
                second.classes.iter().for_each(|class| whole.merge(&class.response));
                periods.add(&second);
            }
            let (kept, _) = periods.finish(ends[ends.len() - 1] as f64);
            prop_assert!(kept.len() <= PERIODS_MAX);
            prop_assert_eq!(Packed::sum(&kept.iter().collect::<Vec<_>>()), Packed::of(&whole));
        }
    }
}
