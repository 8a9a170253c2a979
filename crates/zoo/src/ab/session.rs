//! A session of plimsoll on virtual time: a pilot, blocks of the length that follows from it, pairs until they are settled.

use super::block::{METRICS, Side, after, measured, quantile, schedule};
use super::machine::Machine;
use super::models::{Model, RATE_PER_S};
use plimsoll_core::rng::{Rng, derive_seed};
use plimsoll_decide::pairs::steps::{Step, Steps};
use plimsoll_decide::pairs::{Direction, Finding, Metric, Pairs, Terms};
use plimsoll_decide::pilot::{self, BELOW_LINE, Memory, Second};
use plimsoll_decide::relaxation::Plan;

/// Virtual time of a session of the table with its pilot, s.
pub const SESSION_S: f64 = 180.0;
/// Length of the search for the line of each side, before a comparison of highest rates, in lengths of a pilot.
const SEARCH: f64 = 2.0;
/// Highest quantile that is compared: at a fixed rate, and of the limit of highest rates.
const QUANTILES: (f64, f64) = (0.99, 0.95);
/// Margin of "same".
pub const MARGIN: f64 = 0.05;
/// Family-wise error.
pub const ERROR: f64 = 0.05;

/// Result of a session.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Blocks.
    pub plan: Plan,
    /// A finding for each metric.
    pub findings: Vec<Finding>,
    /// Virtual time until the answer, s.
    pub took_s: f64,
    /// All log ratios, for the truth in the long run: mean over the pairs of each metric.
    pub means: Vec<f64>,
}

/// Planted difference between B and A.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plant {
    /// Factor on its service times.
    pub service: f64,
    /// Factor on its response times, with the wait.
    pub response: f64,
}

impl Plant {
    /// B is as A.
    pub const NONE: Self = Self { service: 1.0, response: 1.0 };
    /// B needs 5 % longer for each request.
    pub const SERVICE: Self = Self { service: 1.05, response: 1.0 };
    /// B's response times are 5 % longer, and its utilization is that of A.
    pub const RESPONSE: Self = Self { service: 1.0, response: 1.05 };
    /// B needs 20 % longer for each request.
    pub const CLEAR: Self = Self { service: 1.2, response: 1.0 };
}

/// A session between A and B.
#[derive(Clone, Copy, Debug)]
pub struct Session {
    /// Both servers.
    pub model: Model,
    /// Planted difference.
    pub plant: Plant,
    /// Seed of all that is random.
    pub seed: u64,
    /// Virtual time of the session with its pilot, s.
    pub budget_s: f64,
    /// False: the session uses all of its time, even if each metric has its answer.
    pub may_end_early: bool,
}

struct Course {
    sides: [Side; 2],
    machine: Machine,
    rng: Rng,
    now_s: f64,
    budget_s: f64,
}

impl Session {
    fn begin(self) -> Course {
        let plant = self.plant;
        let side = |factor, response_factor| Side { model: self.model, factor, response_factor };
        Course {
            sides: [side(1.0, 1.0), side(plant.service, plant.response)],
            machine: Machine::new(derive_seed(self.seed, "machine")),
            rng: Rng::new(derive_seed(self.seed, "requests")),
            now_s: 0.0,
            budget_s: self.budget_s,
        }
    }

    /// Compares p50, p95, p99 and mean at 1,000 requests/s.
    #[must_use]
    pub fn at_fixed_rate(self) -> Outcome {
        let mut course = self.begin();
        let plan = course.plan(RATE_PER_S, QUANTILES.0);
        let names = METRICS.map(|name| (name, Direction::LowerIsBetter));
        self.pairs(course, plan, &names, |course, plan, _| {
            let blocks = course.pair([RATE_PER_S; 2], plan);
            let [a, b] = blocks.map(measured);
            a.iter().zip(b).map(|(a, b)| Some((b? / (*a)?).ln())).collect()
        })
    }

    /// Compares the highest rates at which p95 is within `limit_s`, found by interleaved steps.
    ///
    /// `begin_per_s` is where the search begins, requests/s.
    #[must_use]
    pub fn max_rate(self, limit_s: f64, begin_per_s: f64) -> Outcome {
        let mut course = self.begin();
        course.now_s += 2.0 * SEARCH * pilot::length_s(self.budget_s);
        let plan = course.plan(BELOW_LINE * begin_per_s, QUANTILES.1);
        let names = [("max rate", Direction::HigherIsBetter)];
        let mut steps = Steps::new(begin_per_s);
        let step = |steps: &mut Steps, course: &mut Course| {
            let blocks = course.pair(steps.rates_per_s(), plan);
            steps.add(blocks.map(|mut block| Some(quantile(&mut block, 0.95)? / limit_s)))
        };
        // Pairs of the approach have no value, and are not counted.
        let mut found = None;
        while found.is_none() && course.now_s + 2.0 * plan.block_s <= self.budget_s {
            found = step(&mut steps, &mut course);
        }
        let mut counted = Vec::new();
        self.pairs(course, plan, &names, |course, _, pairs| {
            let Some(found) = step(&mut steps, course) else { return vec![None] };
            let slope = steps.found();
            let ratios: Vec<f64> = counted.iter().map(|one: &Step| one.log_ratio(slope)).collect();
            pairs.restate(0, &ratios, slope.relative_error);
            counted.push(found);
            vec![Some(found.log_ratio(slope))]
        })
    }

    fn pairs(
        self,
        mut course: Course,
        plan: Plan,
        names: &[(&str, Direction)],
        mut pair: impl FnMut(&mut Course, Plan, &mut Pairs) -> Vec<Option<f64>>,
    ) -> Outcome {
        let terms = Terms {
            error: ERROR,
            margin: MARGIN,
            pairs_most: plan.pairs_most(self.budget_s - course.now_s),
        };
        let metric = |(name, direction): &(&str, Direction)| Metric {
            name: (*name).to_owned(),
            direction: *direction,
        };
        let mut pairs = Pairs::new(terms, names.iter().map(metric).collect());
        let mut sums = vec![(0.0, 0.0); names.len()];
        while pairs.pairs() < terms.pairs_most && !(self.may_end_early && pairs.settled()) {
            let values = pair(&mut course, plan, &mut pairs);
            for (sum, value) in sums.iter_mut().zip(&values) {
                if let Some(value) = value {
                    *sum = (sum.0 + value, sum.1 + 1.0);
                }
            }
            pairs.add(&values);
        }
        Outcome {
            plan,
            findings: pairs.findings(),
            took_s: course.now_s,
            means: sums.iter().map(|(sum, count)| sum / count).collect(),
        }
    }
}

impl Course {
    /// Plans the blocks as the job does, from a pilot of each side.
    fn plan(&mut self, rate_per_s: f64, quantile: f64) -> Plan {
        let sides = [0, 1].map(|side| self.pilot(side, rate_per_s));
        pilot::blocks(&sides, self.budget_s - self.now_s, quantile, rate_per_s)
    }

    /// Runs the pilot of a side.
    fn pilot(&mut self, side: usize, rate_per_s: f64) -> Memory {
        let length_s = pilot::length_s(self.budget_s);
        let arrivals = schedule(rate_per_s, length_s, &mut self.rng);
        let responses = self.responses(side, &arrivals);
        self.now_s += length_s;
        // Count, sum and sum of squares of the response times that end in each second.
        let mut sums = vec![(0.0, 0.0, 0.0); length_s as usize];
        for (at, response) in arrivals.iter().zip(&responses) {
            if let Some(sum) = sums.get_mut((at + response) as usize) {
                *sum = (sum.0 + 1.0, sum.1 + response, sum.2 + response * response);
            }
        }
        let second = |(count, sum, squares): (f64, f64, f64)| {
            let mean = sum / count;
            Second { count, mean, deviation: (squares / count - mean * mean).max(0.0).sqrt() }
        };
        let seconds: Vec<Second> = sums.into_iter().filter(|sum| sum.0 > 0.0).map(second).collect();
        pilot::memory(&seconds)
    }

    fn responses(&mut self, side: usize, arrivals: &[f64]) -> Vec<f64> {
        self.sides[side].responses(arrivals, self.now_s, &mut self.machine, &mut self.rng)
    }

    /// Returns the response times of a block of each side, in random order and under one schedule.
    fn pair(&mut self, rates_per_s: [f64; 2], plan: Plan) -> [Vec<f64>; 2] {
        let order = if self.rng.uniform() < 0.5 { [0, 1] } else { [1, 0] };
        let unit = schedule(1.0, plan.block_s * rates_per_s[0].max(rates_per_s[1]), &mut self.rng);
        let mut blocks = [Vec::new(), Vec::new()];
        for side in order {
            let arrivals: Vec<f64> = unit
                .iter()
                .map(|at| at / rates_per_s[side])
                .take_while(|at| *at < plan.block_s)
                .collect();
            let responses = self.responses(side, &arrivals);
            self.now_s += plan.block_s;
            blocks[side] = after(&arrivals, &responses, plan.discard_s);
        }
        blocks
    }
}
