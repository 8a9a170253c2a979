//! A plant for tests: its late share is a smooth function of rate and time, without chance.

use super::goal::Goal;
use super::plant::{Order, Pace, Plant, Trial, Window};

/// 95 % of the requests within 100 ms.
pub const ALLOWED: f64 = 0.05;
pub const LIMIT_S: f64 = 0.1;

/// Rate from which it is overloaded, over its capacity.
const OVERLOADED: f64 = 1.1;

/// A target whose line and capacity depend on the time.
pub struct Made {
    /// Line and capacity at a time, requests per second.
    pub at: fn(f64) -> (f64, f64),
    /// Part of its capacity that it completes under overload.
    pub overloaded: f64,
    /// Share of requests that is late at every rate.
    pub floor: f64,
    /// Time at which the user ends the search, s.
    pub stop_s: f64,
    pub now_s: f64,
    pub lag_p99_s: f64,
}

impl Made {
    pub fn new(at: fn(f64) -> (f64, f64)) -> Self {
        Self { at, overloaded: 1.0, floor: 0.0, stop_s: f64::INFINITY, now_s: 0.0, lag_p99_s: 0.0 }
    }

    /// Requests per second that it completes of those that are offered.
    fn completes(&self, rate_per_s: f64) -> f64 {
        let (_, capacity) = (self.at)(self.now_s);
        let is_overloaded = rate_per_s > OVERLOADED * capacity;
        rate_per_s.min(if is_overloaded { self.overloaded * capacity } else { capacity })
    }

    fn late_share(&self, rate_per_s: f64) -> f64 {
        let (line, capacity) = (self.at)(self.now_s);
        if rate_per_s >= capacity {
            return 0.98;
        }
        let eta = (ALLOWED / (1.0 - ALLOWED)).ln() + 12.0 * (rate_per_s / line).ln();
        (1.0 / (1.0 + (-eta).exp())).max(self.floor)
    }
}

impl Plant for Made {
    fn run(&mut self, order: &Order) -> Trial {
        let mut trial = Trial { pace: Pace { lag_p99_s: self.lag_p99_s }, ..Trial::default() };
        let began_s = self.now_s;
        // What is left of whole requests goes into the next window.
        let (mut due, mut late, mut done) = (0.0, 0.0, 0.0);
        'order: for segment in &order.segments {
            for _ in 0..(segment.duration_s / order.window_s).round() as usize {
                let mut window = Window::default();
                due += segment.rate_per_s * order.window_s;
                window.scheduled = due as u64;
                due -= window.scheduled as f64;
                late += window.scheduled as f64 * self.late_share(segment.rate_per_s);
                window.late[0] = late as u64;
                late -= window.late[0] as f64;
                done += self.completes(segment.rate_per_s) * order.window_s;
                window.completed = done as u64;
                done -= window.completed as f64;
                window.response_sum_s = 0.02 * window.scheduled as f64;
                trial.windows.push(window);
                self.now_s += order.window_s;
                if self.now_s >= self.stop_s {
                    trial.interrupted = true;
                    break 'order;
                }
                let is_due =
                    |abort: &super::plant::Abort| abort.is_due(&trial.windows, &order.allowed);
                if order.abort.as_ref().is_some_and(is_due) {
                    trial.aborted = true;
                    break 'order;
                }
            }
        }
        self.now_s += LIMIT_S;
        trial.elapsed_s = self.now_s - began_s;
        trial
    }

    fn limits(&self) -> usize {
        1
    }
}

pub fn goal(budget_s: f64) -> Goal {
    Goal { width: 0.05, ..Goal::late(ALLOWED, LIMIT_S, budget_s, 1) }
}
