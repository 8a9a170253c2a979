//! The way a load went that adapts itself, in memory that does not grow with its length.

use super::tune::{TuneGoal, WINDOW_NS};
use plimsoll_record::voter::{TunePoint, TuneResult};

/// Stretches that are kept; when there would be more, two become one.
const STRETCHES_MAX: usize = 1200;

/// A stretch of time, all calls in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Stretch {
    calls: u64,
    late: u64,
    /// Allowed in flight at its end.
    allowed: u32,
    /// Shards that had gone back at least once.
    settled: u32,
    /// Shards that had calls in it.
    shards: u32,
}

impl Stretch {
    /// Takes a later piece of the same shards in.
    fn extend(&mut self, later: Stretch) {
        self.calls += later.calls;
        self.late += later.late;
        if later.shards > 0 {
            (self.allowed, self.shards) = (later.allowed, later.shards);
            self.settled = later.settled;
        }
    }

    /// Takes the same time of other shards in.
    fn add(&mut self, other: Stretch) {
        self.calls += other.calls;
        self.late += other.late;
        self.allowed += other.allowed;
        self.settled += other.settled;
        self.shards += other.shards;
    }
}

/// Calls by the time of their ends: stretches of a power of two windows, which begin at multiples of their length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Windows in a stretch.
    stride: u64,
    /// Number of the first stretch.
    first: u64,
    stretches: Vec<Stretch>,
}

impl Default for Trace {
    fn default() -> Self {
        Self { stride: 1, first: 0, stretches: Vec::new() }
    }
}

impl Trace {
    /// Counts a call that ended at `now_ns`, while this many were allowed; `settled` says whether the shard has gone
    /// back at least once.
    pub fn ended(&mut self, now_ns: u64, late: bool, allowed: u32, settled: bool) {
        let stretch = self.stretch(now_ns);
        stretch.calls += 1;
        stretch.late += u64::from(late);
        stretch.allowed = allowed;
        stretch.settled = u32::from(settled);
        stretch.shards = 1;
    }

    fn stretch(&mut self, now_ns: u64) -> &mut Stretch {
        loop {
            let number = now_ns / (WINDOW_NS * self.stride);
            if self.stretches.is_empty() {
                self.first = number;
            }
            let at = number.saturating_sub(self.first) as usize;
            if at < STRETCHES_MAX {
                if self.stretches.len() <= at {
                    self.stretches.resize(at + 1, Stretch::default());
                }
                return &mut self.stretches[at];
            }
            self.halve();
        }
    }

    /// Makes two stretches one.
    fn halve(&mut self) {
        let first = self.first / 2;
        let mut halved: Vec<Stretch> = Vec::with_capacity(self.stretches.len() / 2 + 1);
        for (number, stretch) in (self.first..).zip(&self.stretches) {
            let at = (number / 2 - first) as usize;
            if halved.len() <= at {
                halved.resize(at + 1, Stretch::default());
            }
            halved[at].extend(*stretch);
        }
        (self.stride, self.first, self.stretches) = (self.stride * 2, first, halved);
    }

    /// Adds another shard's, by time.
    pub fn merge(&mut self, other: &Trace) {
        if other.stretches.is_empty() {
            return;
        }
        let mut other = other.clone();
        if self.stretches.is_empty() {
            *self = other;
            return;
        }
        loop {
            while self.stride < other.stride {
                self.halve();
            }
            while other.stride < self.stride {
                other.halve();
            }
            let end = |trace: &Trace| trace.first + trace.stretches.len() as u64;
            let first = self.first.min(other.first);
            let length = (end(self).max(end(&other)) - first) as usize;
            if length > STRETCHES_MAX {
                self.halve();
                continue;
            }
            let mut all = vec![Stretch::default(); length];
            for trace in [&*self, &other] {
                for (number, stretch) in (trace.first..).zip(&trace.stretches) {
                    all[(number - first) as usize].add(*stretch);
                }
            }
            (self.first, self.stretches) = (first, all);
            return;
        }
    }

    /// Calls, and those of them that came late.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        let add = |(calls, late): (u64, u64), s: &Stretch| (calls + s.calls, late + s.late);
        self.stretches.iter().fold((0, 0), add)
    }

    /// Result of the load: the median over whole stretches in which every shard had settled and the limit held. Before
    /// the first retreat no one knows how far it would have gone; where there was none, the later half counts, since
    /// the load grew as far as it was allowed to.
    #[must_use]
    pub fn result(&self, goal: &TuneGoal) -> TuneResult {
        let length_s = (WINDOW_NS * self.stride) as f64 / 1e9;
        let shards = self.stretches.iter().map(|s| s.shards).max().unwrap_or(0);
        let has_settled = |s: &Stretch| s.shards == shards && s.settled == shards;
        let half = self.stretches.len() / 2;
        let from = self.stretches.iter().position(has_settled).unwrap_or(half);
        // The first and the last are no whole ones.
        let last = self.stretches.len().saturating_sub(1);
        let (mut rates, mut under_way, mut windows) = (Vec::new(), Vec::new(), 0);
        let mut trace = Vec::with_capacity(self.stretches.len());
        for (at, stretch) in self.stretches.iter().enumerate() {
            let rate_per_s = stretch.calls as f64 / length_s;
            let held = stretch.calls > 0 && goal.is_held(stretch.late, stretch.calls);
            if at >= from.max(1) && at < last {
                windows += 1;
                if held {
                    rates.push(rate_per_s);
                    under_way.push(f64::from(stretch.allowed));
                }
            }
            trace.push(TunePoint {
                at_s: (at + 1) as f64 * length_s,
                under_way: stretch.allowed,
                rate_per_s,
                late: stretch.late as f64 / stretch.calls.max(1) as f64,
                held,
            });
        }
        TuneResult {
            goal: goal.text().to_owned(),
            latency: goal.latency.name().to_owned(),
            windows,
            windows_held: rates.len() as u64,
            best_rate_per_s: median(rates),
            best_under_way: median(under_way),
            certified_rate_per_s: None,
            checks: Vec::new(),
            trace,
        }
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = values[(values.len() - 1) / 2];
    Some((lower + upper) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::rng::Rng;
    use proptest::prelude::*;

    fn goal() -> TuneGoal {
        "p90=10ms".parse().unwrap()
    }

    #[test]
    fn the_best_rate_is_the_median_of_what_held_and_not_the_luckiest_window() {
        let mut trace = Trace::default();
        // 100 ms each: growing, then settled at 50 calls with some that are too many and one that is lucky.
        let calls = [10, 20, 30, 200, 50, 50, 50, 400, 50, 50, 5];
        for (window, &calls) in (7u64..).zip(&calls) {
            for n in 0..calls {
                let late = calls == 200 && n % 2 == 0;
                trace.ended(window * WINDOW_NS + n, late, calls as u32, window >= 10);
            }
        }
        let result = trace.result(&goal());
        assert_eq!((result.windows, result.windows_held), (7, 6));
        assert_eq!((result.best_rate_per_s, result.best_under_way), (Some(500.0), Some(50.0)));
        assert_eq!(result.trace.len(), 11);
        assert!((result.trace[3].late - 0.5).abs() < 1e-9 && !result.trace[3].held);
        assert_eq!(Trace::default().result(&goal()).best_rate_per_s, None);
    }

    #[test]
    fn a_long_run_takes_no_more_memory() {
        let mut trace = Trace::default();
        for window in 0..100_000 {
            trace.ended(window * WINDOW_NS + 5, window % 10 == 0, 9, true);
        }
        assert!(
            trace.stretches.len() <= STRETCHES_MAX && trace.stretches.len() > STRETCHES_MAX / 3
        );
        assert_eq!(trace.stretches.iter().map(|s| s.calls).sum::<u64>(), 100_000);
        let result = trace.result(&goal());
        assert!(
            (result.best_rate_per_s.unwrap() - 10.0).abs() < 0.5,
            "{:?}",
            result.best_rate_per_s
        );
    }

    proptest! {
        #[test]
        fn shards_together_are_as_one(seed in any::<u64>(), windows in 1u64..3000, shards in 1usize..4) {
            let mut rng = Rng::new(seed);
            let mut parts = vec![Trace::default(); shards];
            let mut whole = 0;
            for window in 0..windows {
                for part in &mut parts {
                    for _ in 0..rng.below(4) {
                        part.ended((window + 50) * WINDOW_NS, rng.below(9) == 0, 1, true);
                        whole += 1;
                    }
                }
            }
            let mut merged = Trace::default();
            parts.iter().for_each(|part| merged.merge(part));
            prop_assert_eq!(merged.stretches.iter().map(|s| s.calls).sum::<u64>(), whole);
            prop_assert!(merged.stretches.len() <= STRETCHES_MAX);
            prop_assert!(merged.stretches.iter().all(|s| s.shards as usize <= shards));
        }
    }
}
