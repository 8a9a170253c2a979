//! The plants of the zoo and their lines.

use crate::draw::Draw;
use crate::oracles::{bisect_in, dmk_late, line, lognormal_tail, md1_late, mg1_late, mmk_late};
use crate::plant::{Arrivals, Queue, QueuePlant};
use crate::quirk::Quirk;
use plimsoll_core::seek::goal::Goal;
use plimsoll_core::seek::plant::{Order, Plant, Segment};

/// A plant whose line is known.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    /// Short name.
    pub name: &'static str,
    /// The queue.
    pub queue: Queue,
    /// Longest response time, s.
    pub limit_s: f64,
    /// Share of requests that may take longer.
    pub allowed: f64,
    /// The line, requests per second.
    pub line_per_s: f64,
    /// True if the line is a committed constant from [`simulated_line`].
    pub simulated: bool,
    /// Time at the line for a half-width of 5 % by the plain late share, s, where that is known.
    pub five_percent_s: Option<f64>,
}

impl Model {
    /// The plant, with its own seed.
    #[must_use]
    pub fn plant(&self, seed: u64) -> QueuePlant {
        QueuePlant::new(self.queue, &[self.limit_s], seed)
    }

    /// The goal that all methods get.
    #[must_use]
    pub fn goal(&self, seed: u64) -> Goal {
        Goal::late(self.allowed, self.limit_s, 300.0, seed)
    }
}

fn queue(servers: usize, service: Draw, delay_s: f64) -> Queue {
    Queue { servers, service, delay_s, arrivals: Arrivals::Poisson, quirk: Quirk::None }
}

fn mmk(
    name: &'static str,
    (servers, service_s, delay_s): (usize, f64, f64),
    (allowed, limit_s): (f64, f64),
    five_percent_s: Option<f64>,
) -> Model {
    let line_per_s = line(servers as f64 / service_s, allowed, |rate| {
        mmk_late(servers, service_s, rate, limit_s - delay_s)
    });
    Model {
        name,
        queue: queue(servers, Draw::Exponential(service_s), delay_s),
        limit_s,
        allowed,
        line_per_s,
        simulated: false,
        five_percent_s,
    }
}

fn simulated(
    name: &'static str,
    queue: Queue,
    limit_s: f64,
    line_per_s: f64,
    five_percent_s: Option<f64>,
) -> Model {
    Model { name, queue, limit_s, allowed: 0.05, line_per_s, simulated: true, five_percent_s }
}

/// The models that constants may be chosen on.
#[must_use]
pub fn tuning() -> Vec<Model> {
    let feed = queue(24, Draw::Gamma { mean_s: 0.09, cv: 0.3 }, 0.2);
    let hyper = queue(8, Draw::Hyper { mean_s: 0.02, cv2: 5.0 }, 0.0);
    vec![
        mmk("M/M/1", (1, 0.02, 0.0), (0.05, 0.5), Some(285.0)),
        mmk("M/M/4", (4, 0.02, 0.0), (0.05, 0.1), Some(96.0)),
        mmk("M/M/16 100ms", (16, 0.1, 0.0), (0.05, 0.5), Some(53.0)),
        mmk("M/M/16 5ms", (16, 0.005, 0.0), (0.05, 0.02), Some(6.0)),
        simulated("feed", feed, 0.5, 259.4, Some(24.0)),
        simulated("M/H2/8", hyper, 0.2, 350.5, Some(229.0)),
        mmk("M/M/80 p99", (80, 0.04, 0.0), (0.01, 0.25), Some(16.0)),
    ]
}

/// The models for the published figures only.
#[must_use]
pub fn held_out() -> Vec<Model> {
    let closed = |name, queue, limit_s, line_per_s| Model {
        name,
        queue,
        limit_s,
        allowed: 0.05,
        line_per_s,
        simulated: false,
        five_percent_s: None,
    };
    let even = Queue { arrivals: Arrivals::Uniform, ..queue(8, Draw::Exponential(0.02), 0.0) };
    let md1 = line(100.0, 0.05, |rate| md1_late(0.01, rate, 0.06));
    let dm8 = line(400.0, 0.05, |rate| dmk_late(8, 0.02, rate, 0.1));
    let pareto = queue(12, Draw::Pareto { mean_s: 0.015, shape: 3.5 }, 0.0);
    let small = queue(12, Draw::Gamma { mean_s: 0.06, cv: 0.5 }, 0.15);
    vec![
        mmk("M/M/2", (2, 0.01, 0.0), (0.05, 0.06), None),
        mmk("M/M/64 p99", (64, 0.05, 0.0), (0.01, 0.3), None),
        closed("M/D/1", queue(1, Draw::Fixed(0.01), 0.0), 0.06, md1),
        closed("D/M/8", even, 0.1, dm8),
        mmk("delay+M/M/8", (8, 0.01, 0.03), (0.05, 0.08), None),
        simulated("M/Pareto/12", pareto, 0.1, 739.1, None),
        simulated("feed small", small, 0.4, 190.4, None),
    ]
}

/// Models that take longer than most people wait: heavy tails, and few requests per second.
#[must_use]
pub fn slow() -> Vec<Model> {
    let lognormal = |servers, mean_s| queue(servers, Draw::Lognormal { mean_s, sigma: 1.5 }, 0.0);
    let single = bisect_in(40, 5.0, 49.0, |rate| {
        let tail = |t: f64| lognormal_tail(0.02, 1.5, t);
        mg1_late(0.02, tail, tail, rate, 0.5) <= 0.05
    });
    vec![
        Model { simulated: false, ..simulated("M/LN1.5/1", lognormal(1, 0.02), 0.5, single, None) },
        simulated("M/LN1.5/4", lognormal(4, 0.02), 0.2, LOGNORMAL_4, None),
        mmk("M/M/1 4/s", (1, 0.2, 0.0), (0.05, 3.0), None),
        mmk("M/M/4 4/s", (4, 0.8, 0.0), (0.05, 3.6), None),
    ]
}

/// Models that complete less under overload than near their line. It begins far above the backlog that the limit allows, so
/// that the line is that of the plain queue.
#[must_use]
pub fn degrading() -> Vec<Model> {
    let of = |name, model: Model, from, share| Model {
        name,
        queue: Queue { quirk: Quirk::Degrades { from, share }, ..model.queue },
        ..model
    };
    let md1 = |name, service_s: f64, limit_s: f64| {
        // The closed form of M/D/1 is good to ten services. Where this one jumps, it has half of the jump: the trapezoidal rule
        // would take a step too much.
        let tail = |t: f64| 0.5 - 0.5 * ((t / service_s - 1.0) * 1e6).clamp(-1.0, 1.0);
        let line_per_s = bisect_in(40, 0.5 / service_s, 0.999 / service_s, |rate| {
            mg1_late(service_s, tail, tail, rate, limit_s) <= 0.05
        });
        let queue = queue(1, Draw::Fixed(service_s), 0.0);
        let five_percent_s = None;
        Model { name, queue, limit_s, allowed: 0.05, line_per_s, simulated: false, five_percent_s }
    };
    let one = md1("", 0.001, 0.05);
    let few = mmk("", (4, 0.02, 0.0), (0.05, 0.1), None);
    let many = mmk("", (16, 0.005, 0.0), (0.05, 0.02), None);
    let slow = mmk("", (1, 0.02, 0.0), (0.05, 0.5), None);
    let wide = mmk("", (80, 0.04, 0.0), (0.01, 0.25), None);
    vec![
        of("M/D/1 -5 %", one, 200, 0.053),
        of("M/D/1 -12 %", one, 200, 0.136),
        of("M/M/4 -10 %", few, 60, 0.111),
        of("M/M/4 -16 %", few, 60, 0.19),
        of("M/M/16 5ms -12 %", many, 200, 0.136),
        of("M/M/1 -12 %", slow, 80, 0.136),
        of("M/M/80 p99 -8 %", wide, 1_200, 0.087),
        of("M/M/80 p99 -15 %", wide, 1_200, 0.176),
    ]
}

/// Line of M/LN1.5/4, requests per second, by long simulation.
const LOGNORMAL_4: f64 = 144.4;

/// Share of requests later than a limit in one long run of `requests`.
#[must_use]
pub fn long_run_late(queue: Queue, limit_s: f64, rate: f64, requests: f64, seed: u64) -> f64 {
    let mut plant = QueuePlant::new(queue, &[limit_s], seed);
    let duration_s = requests / rate;
    let trial = plant.run(&Order {
        segments: vec![Segment { rate_per_s: rate, duration_s }],
        window_s: duration_s / 100.0,
        seed: seed + 1,
        abort: None,
        allowed: vec![0.05],
    });
    let (mut late, mut scheduled) = (0, 0);
    // The first hundredth is the way from empty to steady.
    for window in &trial.windows[1..] {
        late += window.late[0];
        scheduled += window.scheduled;
    }
    late as f64 / scheduled as f64
}

/// The line by long simulations with the same random numbers at every rate, to about a thousandth.
#[must_use]
pub fn simulated_line(model: &Model, requests: f64, seed: u64) -> f64 {
    let (mut low, mut high) = (0.9 * model.line_per_s, 1.1 * model.line_per_s);
    for _ in 0..8 {
        let mid = 0.5 * (low + high);
        if long_run_late(model.queue, model.limit_s, mid, requests, seed) <= model.allowed {
            low = mid;
        } else {
            high = mid;
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "make test-long: 2e8 simulated requests for each line"]
    fn committed_lines_are_those_of_long_simulations() {
        let mut right = true;
        for model in
            tuning().iter().chain(&held_out()).chain(&slow()).filter(|model| model.simulated)
        {
            let line = simulated_line(model, 2.5e7, 77);
            let off = line / model.line_per_s - 1.0;
            eprintln!("{} {line}, off by {off}", model.name);
            right &= off.abs() < 0.003;
        }
        assert!(right);
    }
}
