//! Plants with two classes of requests and a limit on each: does the evidence of a small class count for what it is?

use crate::draw::Draw;
use crate::oracles::{bisect_in, mg1_late};
use crate::plant::{Arrivals, Queue, QueuePlant};
use crate::quirk::Quirk;
use crate::table::{Outcome, outcome};
use plimsoll_core::seek::finding::Finding;
use plimsoll_core::seek::goal::{Goal, Limit};
use plimsoll_core::seek::search::seek;

/// A plant with a small class.
#[derive(Clone, Copy, Debug)]
pub struct Classes {
    /// Short name.
    pub name: &'static str,
    /// The queue.
    pub queue: Queue,
    /// Longest response times of 95 % of the first and of the second class, s.
    pub limits_s: [f64; 2],
    /// The line, requests per second of both classes together.
    pub line_per_s: f64,
}

/// Share of requests of either class that may be late.
const ALLOWED: f64 = 0.05;

impl Classes {
    /// The goal with a limit on each class.
    #[must_use]
    pub fn goal(&self, seed: u64, budget_s: f64) -> Goal {
        let longest_s = self.limits_s[0].max(self.limits_s[1]);
        Goal {
            limits: vec![
                Limit::late("p95{class=a}", ALLOWED),
                Limit::late("p95{class=b}", ALLOWED),
            ],
            ..Goal::late(ALLOWED, longest_s, budget_s, seed)
        }
    }

    /// Searches it with one seed.
    #[must_use]
    pub fn search(&self, goal: &Goal) -> (Outcome, Finding) {
        let seed = goal.seed.wrapping_mul(0x9e37_79b9).wrapping_add(77);
        let mut plant = QueuePlant::new(self.queue, &self.limits_s, seed);
        let found = seek(&mut plant, goal, &mut |_| ());
        (outcome(self.line_per_s, &found), found)
    }
}

/// One server with exponential services of 10 ms, and `factor` times as long for a share of the requests.
fn single(name: &'static str, share: f64, factor: f64, limits_s: [f64; 2]) -> Classes {
    const SERVICE_S: f64 = 0.01;
    let mean_s = SERVICE_S * (1.0 - share + share * factor);
    let first = |t: f64| (-t / SERVICE_S).exp();
    let second = move |t: f64| (-t / (SERVICE_S * factor)).exp();
    let tail = |t: f64| (1.0 - share) * first(t) + share * second(t);
    let line_per_s = bisect_in(40, 0.01 / mean_s, 0.999 / mean_s, |rate| {
        mg1_late(mean_s, tail, first, rate, limits_s[0]) <= ALLOWED
            && mg1_late(mean_s, tail, second, rate, limits_s[1]) <= ALLOWED
    });
    let queue = Queue {
        servers: 1,
        service: Draw::Exponential(SERVICE_S),
        delay_s: 0.0,
        arrivals: Arrivals::Poisson,
        quirk: Quirk::Classes { share, factor },
    };
    Classes { name, queue, limits_s, line_per_s }
}

/// All of them; the second class's limit breaks first.
#[must_use]
pub fn all() -> Vec<Classes> {
    vec![
        single("5 % slow", 0.05, 4.0, [0.2, 0.2]),
        single("2 % slow", 0.02, 5.0, [0.3, 0.25]),
        single("10 % alike", 0.1, 1.0, [0.2, 0.1]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::seek::plant::{Order, Plant, Segment, Window};

    #[test]
    fn lines_are_those_of_long_simulations() {
        for plant in all() {
            let duration_s = 40_000.0;
            let trial = QueuePlant::new(plant.queue, &plant.limits_s, 3).run(&Order {
                segments: vec![Segment { rate_per_s: plant.line_per_s, duration_s }],
                window_s: duration_s / 100.0,
                seed: 4,
                abort: None,
                allowed: vec![ALLOWED; 2],
            });
            let mut all = Window::default();
            trial.windows[1..].iter().for_each(|window| all.add(window));
            let (first, second) = (all.late_share(0), all.late_share(1));
            assert!((second / ALLOWED - 1.0).abs() < 0.1, "{}: {second}", plant.name);
            assert!(first <= ALLOWED, "{}: {first}", plant.name);
        }
    }
}
