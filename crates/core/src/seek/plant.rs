//! Interface to a plant that a search drives: anything that takes load at a rate and says how many requests were
//! late.

use serde::{Deserialize, Serialize};

/// Most limits that one search judges at once.
pub const LIMITS_MAX: usize = 8;

/// A stretch of open-loop load at one rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// Requests per second.
    pub rate_per_s: f64,
    /// Its length, s.
    pub duration_s: f64,
}

/// Segments offered one after the other without a pause, into a plant that has nothing in flight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// Rates to offer.
    pub segments: Vec<Segment>,
    /// The length of one [`Window`], s. Segments are whole multiples of it.
    pub window_s: f64,
    /// Seed of the arrivals.
    pub seed: u64,
    /// Ends the load early once this share of the requests of the last windows is late. For finding a bracket
    /// only: an estimate that drops the bad blocks comes out too high.
    pub abort: Option<Abort>,
    /// The share of requests that may miss each limit.
    pub allowed: Vec<f64>,
}

/// Condition that ends an order early.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Abort {
    /// Late requests over scheduled ones, as a multiple of what the limit allows.
    pub excess: f64,
    /// At least this many late requests must have been seen.
    pub late_min: u64,
}

impl Abort {
    /// Returns true if the last of these windows, whose verdicts are known, are so bad that the order should end.
    #[must_use]
    pub fn is_due(&self, windows: &[Window], allowed: &[f64]) -> bool {
        let mut sum = Window::default();
        for window in windows.iter().rev() {
            sum.add(window);
            let too_many = |(at, allowed): (usize, &f64)| {
                let (late, subject) = (sum.late[at], sum.subject(at) as f64);
                late >= self.late_min && late as f64 > self.excess * allowed * subject
            };
            if allowed.iter().take(LIMITS_MAX).enumerate().any(too_many) {
                return true;
            }
            // Further back it no longer says what the plant is like now.
            if sum.scheduled > 20 * self.late_min {
                break;
            }
        }
        false
    }
}

/// Outcome of the requests that were due within one window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "WindowLine", into = "WindowLine")]
pub struct Window {
    /// Requests due.
    pub scheduled: u64,
    /// Those that missed each limit: not answered, or not well, by their intended start plus the limit.
    pub late: [u64; LIMITS_MAX],
    /// Those that are not subject to each limit, because it is a limit on another class. A request that was never sent
    /// has no class, and is subject to every limit.
    pub exempt: [u64; LIMITS_MAX],
    /// Those that failed.
    pub failed: u64,
    /// Requests that ended well within the window's time, whenever they were due.
    pub completed: u64,
    /// Sum of the response times of all requests of the window, s; one that failed or was given up counts until
    /// it was.
    pub response_sum_s: f64,
    /// Time to take off that sum for each limit, s: that of requests which the limit does not judge, less the time by which failed
    /// ones count longer than they took.
    pub exempt_sum_s: [f64; LIMITS_MAX],
}

impl Window {
    /// Requests that limit `at` judges.
    #[must_use]
    pub fn subject(&self, at: usize) -> u64 {
        self.scheduled.saturating_sub(self.exempt[at])
    }

    /// Sum of the response times that limit `at` judges, s; one that failed counts with its timeout at least.
    #[must_use]
    pub fn subject_sum_s(&self, at: usize) -> f64 {
        (self.response_sum_s - self.exempt_sum_s[at]).max(0.0)
    }

    /// Share of the requests that limit `at` judges and that missed it.
    #[must_use]
    pub fn late_share(&self, at: usize) -> f64 {
        self.late[at] as f64 / self.subject(at).max(1) as f64
    }

    /// Adds the counts of another window.
    pub fn add(&mut self, other: &Window) {
        self.scheduled += other.scheduled;
        self.failed += other.failed;
        self.completed += other.completed;
        self.response_sum_s += other.response_sum_s;
        for (mine, theirs) in self.late.iter_mut().zip(other.late) {
            *mine += theirs;
        }
        for (mine, theirs) in self.exempt.iter_mut().zip(other.exempt) {
            *mine += theirs;
        }
        for (mine, theirs) in self.exempt_sum_s.iter_mut().zip(other.exempt_sum_s) {
            *mine += theirs;
        }
    }
}

/// A [`Window`] in a few characters: of its limits only those that count something.
#[derive(Serialize, Deserialize)]
struct WindowLine {
    scheduled: u64,
    failed: u64,
    completed: u64,
    sum_s: f64,
    /// Late and exempt requests, and the sum of the exempt response times, s.
    limits: Vec<(u64, u64, f64)>,
}

impl From<Window> for WindowLine {
    fn from(window: Window) -> Self {
        let of = |at| (window.late[at], window.exempt[at], window.exempt_sum_s[at]);
        let mut limits: Vec<_> = (0..LIMITS_MAX).map(of).collect();
        let last = limits.iter().rposition(|limit| *limit != (0, 0, 0.0));
        limits.truncate(last.map_or(0, |last| last + 1));
        let Window { scheduled, failed, completed, response_sum_s: sum_s, .. } = window;
        Self { scheduled, failed, completed, sum_s, limits }
    }
}

impl From<WindowLine> for Window {
    fn from(line: WindowLine) -> Self {
        let WindowLine { scheduled, failed, completed, sum_s: response_sum_s, limits } = line;
        let mut window = Self { scheduled, failed, completed, response_sum_s, ..Self::default() };
        for (at, (late, exempt, sum_s)) in limits.into_iter().take(LIMITS_MAX).enumerate() {
            (window.late[at], window.exempt[at], window.exempt_sum_s[at]) = (late, exempt, sum_s);
        }
        window
    }
}

/// Lag of the generator itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// 99th percentile of how late requests were sent although nothing held them back at the target, s.
    pub lag_p99_s: f64,
}

/// Result of an order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// One entry a window that was offered, in order of time.
    pub windows: Vec<Window>,
    /// Everything it took, with settling and waiting for the last replies, s.
    pub elapsed_s: f64,
    /// True if the order's abort rule ended it.
    pub aborted: bool,
    /// True if the user asked the whole search to end.
    pub interrupted: bool,
    /// The generator's own part in it.
    pub pace: Pace,
}

/// Something under load: a real target, a queue on virtual time.
pub trait Plant {
    /// Offers the order's segments and returns when every request of them has ended or was given up.
    fn run(&mut self, order: &Order) -> Trial;

    /// Number of limits that the windows report, 1 to [`LIMITS_MAX`].
    fn limits(&self) -> usize;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tenth of the requests is subject to the second limit, and all of these are late.
    fn mixed() -> Window {
        let mut window = Window { scheduled: 1000, late: [20; LIMITS_MAX], ..Window::default() };
        (window.late[1], window.exempt[1]) = (100, 900);
        window
    }

    #[test]
    fn an_order_ends_early_by_the_share_of_the_requests_that_a_limit_judges() {
        let abort = Abort { excess: 3.0, late_min: 10 };
        // 2 % of all are late for the first limit; of 100 requests that the second one judges, all.
        assert!(!abort.is_due(&[mixed()], &[0.05]));
        assert!(abort.is_due(&[mixed()], &[0.05, 0.3]), "100 of 100, not of 1,000");
        let without = Window { exempt: [0; LIMITS_MAX], ..mixed() };
        assert!(!abort.is_due(&[without], &[0.05, 0.3]));
    }

    #[test]
    fn a_window_is_the_same_after_it_was_sent() {
        let mut window = mixed();
        (window.late[7], window.exempt_sum_s[1], window.response_sum_s) = (3, 0.1 + 0.2, 1.0 / 3.0);
        for one in [window, mixed(), Window::default()] {
            let text = serde_json::to_string(&one).unwrap();
            assert_eq!(serde_json::from_str::<Window>(&text).unwrap(), one, "{text}");
        }
        assert!(serde_json::to_string(&Window::default()).unwrap().len() < 80);
    }

    #[test]
    fn sums_keep_what_each_limit_judges() {
        let mut sum = mixed();
        sum.response_sum_s = 5.0;
        sum.exempt_sum_s[1] = 4.0;
        sum.add(&sum.clone());
        assert_eq!((sum.subject(0), sum.subject(1)), (2000, 200));
        assert_eq!((sum.subject_sum_s(0), sum.subject_sum_s(1)), (10.0, 2.0));
        assert_eq!((sum.late_share(0), sum.late_share(1)), (0.02, 1.0));
    }
}
