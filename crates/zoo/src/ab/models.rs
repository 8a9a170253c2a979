//! Servers whose times are known in distribution, asked 1,000 times a second.

use crate::draw::Draw;
use plimsoll_core::rng::Rng;

/// Requests/s of every session at a fixed rate.
pub const RATE_PER_S: f64 = 1_000.0;

/// Service times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Service {
    /// One distribution.
    One(Draw),
    /// A share of the requests has the second distribution.
    Two {
        /// Most requests.
        first: Draw,
        /// The others.
        second: Draw,
        /// Share of the others.
        share: f64,
    },
}

impl Service {
    /// Returns the mean, s.
    #[must_use]
    pub fn mean_s(self) -> f64 {
        match self {
            Self::One(draw) => draw.mean_s(),
            Self::Two { first, second, share } => {
                (1.0 - share) * first.mean_s() + share * second.mean_s()
            }
        }
    }

    /// Returns the same with all times multiplied.
    #[must_use]
    fn scaled(self, by: f64) -> Self {
        match self {
            Self::One(draw) => Self::One(draw.scaled(by)),
            Self::Two { first, second, share } => {
                Self::Two { first: first.scaled(by), second: second.scaled(by), share }
            }
        }
    }

    /// Returns one service time, s.
    pub fn draw(self, rng: &mut Rng) -> f64 {
        match self {
            Self::One(draw) => draw.draw(rng),
            Self::Two { second, share, .. } if rng.uniform() < share => second.draw(rng),
            Self::Two { first, .. } => first.draw(rng),
        }
    }
}

/// A server, and what limits what can be found out about it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Model {
    /// Its name in the table.
    pub name: &'static str,
    /// Service times of A.
    pub service: Service,
    /// True if there is one server and a queue before it; false if requests do not disturb each other.
    pub queue: bool,
    /// The utilization at which its maximum rate is looked for: the limit is its p95 there.
    pub utilization: f64,
}

impl Model {
    /// Returns the model as a queue before one server whose utilization at 1,000 requests/s is [`Model::utilization`]: a server
    /// without a queue has no maximum rate.
    #[must_use]
    pub fn as_queue(self) -> Self {
        let scale = self.utilization / RATE_PER_S / self.service.mean_s();
        Self { queue: true, service: self.service.scaled(scale), ..self }
    }
}

/// Returns the models of the table.
#[must_use]
pub fn all() -> Vec<Model> {
    let free = |name, service| Model { name, service, queue: false, utilization: 0.5 };
    let queue = |name, utilization, service| Model { name, service, queue: true, utilization };
    let memoryless = |utilization| Service::One(Draw::Exponential(utilization / RATE_PER_S));
    let two = |share| Service::Two {
        first: Draw::Lognormal { mean_s: 0.002, sigma: 0.2 },
        second: Draw::Lognormal { mean_s: 0.010, sigma: 0.2 },
        share,
    };
    vec![
        free("exponential", Service::One(Draw::Exponential(0.005))),
        free("lognormal", Service::One(Draw::Lognormal { mean_s: 0.005, sigma: 0.5 })),
        queue("M/M/1 at 0.5", 0.5, memoryless(0.5)),
        queue("M/M/1 at 0.8", 0.8, memoryless(0.8)),
        queue("M/M/1 at 0.95", 0.95, memoryless(0.95)),
        queue("M/D/1 at 0.8", 0.8, Service::One(Draw::Fixed(0.8 / RATE_PER_S))),
        free("bimodal", two(0.1)),
        free("bimodal, p95 between", two(0.05)),
        free("heavy tail", Service::One(Draw::Pareto { mean_s: 0.005, shape: 2.5 })),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_those_of_the_draws() {
        for model in all() {
            let mut rng = Rng::new(1);
            let mean = (0..400_000).map(|_| model.service.draw(&mut rng)).sum::<f64>() / 4e5;
            let wanted = model.service.mean_s();
            assert!((mean / wanted - 1.0).abs() < 0.02, "{}: {mean} {wanted}", model.name);
        }
    }
}
