//! Search methods of other tools, on the same plants: for comparison, and for users who want their number.
//!
//! The algorithms are rewritten from their descriptions. All have in common: one trial a rate, a decision
//! by what that trial showed, and no interval.

mod feedsim;
mod mlperf;
mod mutilate;
mod nighthawk;

use super::plant::{LIMITS_MAX, Order, Plant, Segment, Window};
use crate::rng::splitmix64;
use serde::{Deserialize, Serialize};

/// A method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Rival {
    /// FeedSim's `search_qps.sh`: bisection with 120 s a rate, then steps down, then a final run.
    Feedsim,
    /// mutilate's `--search`: bisection with 5 s a rate.
    Mutilate,
    /// Nighthawk's adaptive stage: doubling and bisection with 30 s a rate, then a testing stage of 60 s.
    Nighthawk,
    /// MLPerf LoadGen's rule: 600 s a rate and a binomial bound on the late share that takes requests for independent.
    Mlperf,
}

impl Rival {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Feedsim, Self::Mutilate, Self::Nighthawk, Self::Mlperf];

    /// Its name in flags and records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Feedsim => "feedsim",
            Self::Mutilate => "mutilate",
            Self::Nighthawk => "nighthawk",
            Self::Mlperf => "mlperf",
        }
    }
}

/// Ratios of a quantile to the target that FeedSim's search needs.
pub const RATIOS: [f64; LIMITS_MAX] = [0.995, 1.0, 1.05, 1.12, 1.2, 1.3, 1.4, 1.5];

/// Task of another tool's search method.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Task {
    /// Share of requests that may be late.
    pub allowed: f64,
    /// The plant's limit that is searched for; for FeedSim's method the plant has all of [`RATIOS`] times it.
    pub limit: usize,
    /// The time limit, s.
    pub limit_s: f64,
    /// Seed of the arrivals.
    pub seed: u64,
    /// First rate of a search without a peak, requests per second.
    pub start_per_s: f64,
    /// Highest rate that may be offered, requests per second.
    pub most_per_s: f64,
}

/// Answer of the method.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The rate, requests per second; 0 if none.
    pub rate_per_s: f64,
    /// Late share of the last trial.
    pub last_late_share: f64,
    /// Time, with the pauses that the method makes, s.
    pub elapsed_s: f64,
    /// Trials.
    pub trials: u32,
}

/// Trials of one method on one plant.
struct Bench<'a> {
    plant: &'a mut dyn Plant,
    task: Task,
    elapsed_s: f64,
    trials: u32,
    last: Window,
    /// Requests per second that were completed in the second half of the last trial.
    completed_per_s: f64,
    interrupted: bool,
}

impl Bench<'_> {
    /// One trial; `around_s` is what the method adds to it in starts, pauses and drains.
    fn trial(&mut self, rate_per_s: f64, seconds: f64, around_s: f64) -> Window {
        self.trials += 1;
        let window_s = seconds / 10.0;
        let trial = self.plant.run(&Order {
            segments: vec![Segment {
                rate_per_s: rate_per_s.min(self.task.most_per_s),
                duration_s: seconds,
            }],
            window_s,
            seed: splitmix64(self.task.seed ^ splitmix64(u64::from(self.trials))),
            abort: None,
            allowed: vec![self.task.allowed; self.plant.limits()],
        });
        self.interrupted |= trial.interrupted;
        self.elapsed_s +=
            (seconds + around_s).max(if around_s > 0.0 { 0.0 } else { trial.elapsed_s });
        self.last = Window::default();
        trial.windows.iter().for_each(|window| self.last.add(window));
        let half = &trial.windows[trial.windows.len() / 2..];
        let completed: u64 = half.iter().map(|window| window.completed).sum();
        self.completed_per_s = completed as f64 / (half.len().max(1) as f64 * window_s);
        self.last
    }

    fn late_share(&self, window: &Window) -> f64 {
        window.late[self.task.limit] as f64 / window.scheduled.max(1) as f64
    }

    fn holds(&mut self, rate_per_s: f64, seconds: f64, around_s: f64) -> bool {
        let window = self.trial(rate_per_s, seconds, around_s);
        self.late_share(&window) <= self.task.allowed && !self.interrupted
    }

    /// Largest rate that the target completes: these methods drive it as fast as a closed loop can. Short overloads
    /// find it here, and the method's own time is charged.
    fn peak(&mut self, seconds: f64, around_s: f64) -> f64 {
        let (spent_s, trials) = (self.elapsed_s, self.trials);
        let mut rate = self.task.start_per_s;
        let mut peak = 0.0;
        let length_s = (8.0 * self.task.limit_s).max(2.0).min(seconds);
        while !self.interrupted {
            let window = self.trial(rate, length_s, 1e-9);
            peak = self.completed_per_s;
            if window.completed * 10 < window.scheduled * 8 || rate >= self.task.most_per_s {
                break;
            }
            rate *= 2.0;
        }
        self.elapsed_s = spent_s + seconds + around_s;
        self.trials = trials + 1;
        peak
    }

    fn answer(&self, rate_per_s: f64) -> Answer {
        Answer {
            rate_per_s,
            last_late_share: self.late_share(&self.last),
            elapsed_s: self.elapsed_s,
            trials: self.trials,
        }
    }
}

/// Runs a method to its end.
pub fn search(rival: Rival, plant: &mut dyn Plant, task: Task) -> Answer {
    let last = Window::default();
    let mut bench = Bench {
        plant,
        task,
        elapsed_s: 0.0,
        trials: 0,
        last,
        completed_per_s: 0.0,
        interrupted: false,
    };
    match rival {
        Rival::Feedsim => feedsim::search(&mut bench),
        Rival::Mutilate => mutilate::search(&mut bench),
        Rival::Nighthawk => nighthawk::search(&mut bench),
        Rival::Mlperf => mlperf::search(&mut bench),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seek::made::{ALLOWED, LIMIT_S, Made};

    #[test]
    fn no_method_finds_a_rate_above_the_highest_that_it_may_offer() {
        for (rival, start_per_s) in Rival::ALL.into_iter().flat_map(|r| [(r, 8.0), (r, 100.0)]) {
            let mut made = Made::new(|_| (160.0, 200.0));
            let [allowed, limit_s, most_per_s] = [ALLOWED, LIMIT_S, 100.0];
            let task = Task { allowed, limit: 0, limit_s, seed: 1, start_per_s, most_per_s };
            let found = search(rival, &mut made, task).rate_per_s;
            assert!(found > 0.0 && found <= 100.0, "{rival:?} from {start_per_s}: {found}");
        }
    }
}
