//! The time that a search needs for an interval.

use super::below::FLOOR_RATE;
use super::finding::Phase;
use super::focus::{FILL, HALF, LEAST_BACKLOGS, LEAST_BLOCKS};
use super::goal::Limit;
use super::search::{LEAST_RUN, Search};
use super::steady::{HEAVY, LOOK_EVERY};
use super::traffic;

/// Highest and lowest line that the capacity alone allows, as shares of the capacity.
const USUAL: (f64, f64) = (0.95, 0.1);
/// Doublings and halvings of the short looks that are not known yet.
const DOUBLINGS: f64 = 5.0;
const HALVINGS: f64 = 4.0;
/// An overload and the wait until its backlog is worked off, over the overload.
pub(super) const DRAINED: f64 = 1.3;
/// Unevenness of completions with heavy tails, and how many looks that knowledge is worth: of 600 lognormal services with sigma
/// 1.5 the variance over the squared mean is 3.7 to 11.4 in four of five cases, where 8.5 is right.
const HEAVY_USUAL: (f64, f64) = (6.0, 3.0);

impl Search<'_> {
    /// Returns the line by the capacity alone, requests per second, with completions that are this many times as uneven as
    /// they looked: a few seconds show less than all of what heavy tails do.
    pub(super) fn line_by_capacity(&self, times: f64) -> Option<f64> {
        self.bound().map(|capacity| self.line_of_capacity(capacity.per_s, times))
    }

    /// The same for a capacity, requests per second.
    pub(super) fn line_of_capacity(&self, capacity_per_s: f64, times: f64) -> f64 {
        let index = times * self.unevenness_of_completions();
        let strictest = self.goal.limits.iter().map(Limit::allowed).fold(1.0, f64::min).min(0.5);
        let idle = traffic::idle_share(self.slack_s(), capacity_per_s, index, strictest);
        capacity_per_s * (1.0 - idle).clamp(USUAL.1, USUAL.0)
    }

    /// Variance of what the overloaded target completes over its mean: 1 for exponential services, and not more where chance
    /// explains it. With heavy tails a few looks have too few long services, or one too many, so that the value is drawn
    /// towards a usual one.
    pub(super) fn unevenness_of_completions(&self) -> f64 {
        let looks = self.looks.iter().map(|(_, look)| look.index);
        let count = self.looks.len() as f64;
        let index = looks.sum::<f64>() / count.max(1.0);
        if index < HEAVY {
            return index.min(1.0);
        }
        let (usual, worth) = HEAVY_USUAL;
        ((count * index.ln() + worth * usual.ln()) / (count + worth)).exp()
    }

    /// Returns the best known value of the line, requests per second.
    pub(super) fn guess_per_s(&self) -> Option<f64> {
        let (low, high) = self.bracket;
        let looked = (low > 0.0 && high.is_finite()).then(|| (low * high).sqrt());
        let by_capacity = self.line_by_capacity(1.0);
        let at_most = |line: f64| by_capacity.map_or(line, |most| most.min(line));
        self.fit.map(|(fit, _)| fit.estimate_per_s).or_else(|| looked.map(at_most)).or(by_capacity)
    }

    /// Natural time of the backlog at the line, s, for the slowest limit.
    fn slowest_backlog_s(&self) -> f64 {
        let line = self.guess_per_s().unwrap_or(self.goal.start_per_s);
        match self.fit {
            Some((_, limit)) => self.backlog_s(limit, line),
            None => (0..self.goal.limits.len())
                .map(|limit| self.backlog_s(limit, line))
                .fold(0.0, f64::max),
        }
    }

    /// Time from the pilot to an interval, s, with blocks of this length.
    pub(super) fn rest_s(&self, block_s: f64) -> f64 {
        let limit_s = self.goal.limit_s;
        let backlog_s = self.slowest_backlog_s();
        let near_s = (LEAST_BLOCKS as f64 * block_s)
            .max(LEAST_BACKLOGS * backlog_s)
            .max(self.least_bursts_s());
        let settle_s = (2.0 * limit_s).max(0.5).min(0.25 * block_s);
        let fill_s = (FILL * backlog_s).clamp(0.25 * block_s, block_s);
        // The pilot, orders with as many blocks as one has, and a run that certifies.
        let (pilot_s, run_s) = (2.0 * block_s, LEAST_RUN as f64 * block_s);
        let between_s = (near_s - pilot_s - run_s).max(2.0 * block_s);
        let orders = (between_s / (2.0 * HALF as f64 * block_s)).ceil();
        let around_s =
            block_s + (1.0 + orders) * fill_s + (2.0 + orders) * (settle_s + 2.0 * limit_s);
        let look_s = DRAINED * (12.0 * limit_s).max(3.0);
        let looks = (between_s / (LOOK_EVERY * self.goal.budget_s)).ceil().max(1.0);
        around_s + pilot_s + between_s + run_s + looks * look_s + self.floor_look_s()
    }

    /// Time of the look at a low rate, s, where it is not known that the limits hold there.
    fn floor_look_s(&self) -> f64 {
        let Some(line) =
            self.guess_per_s().filter(|line| !self.non_monotone && !self.holds_below(*line))
        else {
            return 0.0;
        };
        self.floor_requests() / (FLOOR_RATE * line)
    }

    /// Time until the pilot, s.
    fn before_s(&self, budget_s: f64) -> f64 {
        if let Some(pilot) = self.phases.iter().find(|span| span.phase == Phase::Pilot) {
            return pilot.from_s;
        }
        let limit_s = self.goal.limit_s;
        let start = self.goal.start_per_s;
        let guess = self.guess_per_s();
        let steps = guess.map_or(DOUBLINGS, |line| (line / start).log2().abs().ceil() + 1.0);
        let requests_s = (30.0 / guess.map_or(start, |line| line.min(start))).min(budget_s / 30.0);
        let step_s = (4.0 * limit_s).max(1.0).max(requests_s) + limit_s;
        let rate = guess.unwrap_or(start);
        let overload_s = (12.0 * limit_s).max(3.0).max((1000.0 / rate).min(0.05 * budget_s));
        let warm_up_s = (8.0 * limit_s).max(2.0).max(20.0 / start);
        let look_s = (8.0 * limit_s).max(1.5) + 2.0 * limit_s;
        warm_up_s + steps * step_s + 2.0 * DRAINED * overload_s + HALVINGS * look_s
    }

    /// A budget that is enough for an interval by what is known, s.
    pub(super) fn enough_s(&self) -> f64 {
        let limit_s = self.goal.limit_s;
        let mut budget_s = self.goal.budget_s;
        // The length of a block depends on the budget.
        for _ in 0..4 {
            let block_s = (16.0 * limit_s).max((budget_s / 24.0).clamp(1.0, 4.0));
            budget_s = self.before_s(budget_s) + self.rest_s(block_s);
        }
        budget_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seek::completed::Capacity;
    use crate::seek::made::{Made, goal};

    fn on<T>(looks: &[f64], test: impl FnOnce(&mut Search<'_>) -> T) -> T {
        let (goal, mut observe) = (goal(300.0), |_: &_| ());
        let mut plant = Made::new(|_| (160.0, 200.0));
        let mut search = Search::new(&mut plant, &goal, &mut observe);
        (search.bracket, search.floor_s) = ((155.0, 170.0), 0.02);
        let look = |(at, index): (usize, &f64)| {
            (at as f64, Capacity { index: *index, ..Capacity::of(200.0, 0.05) })
        };
        search.looks = looks.iter().enumerate().map(look).collect();
        search.capacity = search.looks.first().map(|(_, capacity)| *capacity);
        test(&mut search)
    }

    #[test]
    fn the_unevenness_of_few_looks_is_drawn_towards_that_of_heavy_tails() {
        let uneven = |looks: &[f64]| on(looks, |search| search.unevenness_of_completions());
        assert_eq!(uneven(&[1.4, 0.9]), 1.0, "chance explains it");
        assert!((uneven(&[0.2, 0.4]) - 0.3).abs() < 1e-9);
        let (low, high) = (uneven(&[3.0, 3.0]), uneven(&[18.0, 18.0]));
        assert!((3.5..5.5).contains(&low) && (7.0..12.0).contains(&high), "{low} {high}");
        assert!(uneven(&[18.0; 12]) > high, "more looks count for more");
    }

    #[test]
    fn a_target_that_was_never_saturated_needs_more_load_near_the_line() {
        let known_s = on(&[1.0], |search| search.least_bursts_s());
        let unknown_s = on(&[], |search| search.least_bursts_s());
        assert!(unknown_s > 2.0 * known_s, "{known_s} {unknown_s}");
    }
}
