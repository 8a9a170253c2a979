//! Targets of which a share of the requests fails at every rate: more than the limit allows, so no rate holds it.

use crate::draw::Draw;
use crate::parallel::map;
use crate::plant::{Arrivals, Queue, QueuePlant};
use crate::quirk::Quirk;
use plimsoll_core::seek::finding::{Finding, Verdict};
use plimsoll_core::seek::goal::{Goal, Limit};
use plimsoll_core::seek::search::seek;

/// Longest response time of a request, s.
const LIMIT_S: f64 = 0.1;

/// Allowed share of failures, and the multiple of it that fails.
#[derive(Clone, Copy, Debug)]
pub struct Floor {
    /// Share of requests that may miss the limit.
    pub allowed: f64,
    /// Share that fails, over what is allowed.
    pub times: f64,
}

impl Floor {
    /// Searches M/M/4 of 20 ms with this floor.
    #[must_use]
    pub fn search(&self, seed: u64, budget_s: f64) -> Finding {
        let queue = Queue {
            servers: 4,
            service: Draw::Exponential(0.02),
            delay_s: 0.0,
            arrivals: Arrivals::Poisson,
            quirk: Quirk::Fails { share: self.times * self.allowed },
        };
        let mut plant = QueuePlant::new(queue, &[LIMIT_S], seed.wrapping_mul(0x9e37_79b9) + 3);
        let limits = vec![Limit::late("limit", self.allowed)];
        let goal = Goal { limits, width: 0.05, ..Goal::late(0.05, LIMIT_S, budget_s, seed) };
        seek(&mut plant, &goal, &mut |_| ())
    }
}

/// True if the search names a rate or a line where there is none.
#[must_use]
pub fn names_a_rate(found: &Finding) -> bool {
    found.certified.is_some() || found.estimate_per_s.is_some() || found.interval_per_s.is_some()
}

/// All of them.
#[must_use]
pub fn all() -> Vec<Floor> {
    let times = |allowed| [1.2, 2.0, 8.0].map(|times| Floor { allowed, times });
    [0.05, 0.01].into_iter().flat_map(times).collect()
}

/// The table's head for [`line_of()`].
pub const HEAD: &str = "allowed %  fails  budget s | infeasible  nothing  a rate %";

/// Searches with this many seeds and returns a line of the table, after a line for each search if that is wanted.
#[must_use]
pub fn line_of(
    floor: &Floor,
    budget_s: f64,
    (first_seed, seeds): (u64, u64),
    each: bool,
) -> String {
    let found = map(seeds, |seed| floor.search(first_seed + seed, budget_s));
    let lines: String = found
        .iter()
        .enumerate()
        .filter(|_| each)
        .map(|(seed, one)| {
            let phase = one.phases.last().map(|span| span.phase);
            format!(
                "  {seed} {:?} in {phase:?} after {:.0} s: {}\n",
                one.verdict, one.elapsed_s, one.reason
            )
        })
        .collect();
    let share = |holds: &dyn Fn(&Finding) -> bool| {
        100.0 * found.iter().filter(|one| holds(one)).count() as f64 / found.len().max(1) as f64
    };
    let infeasible = |one: &Finding| one.verdict == Verdict::Infeasible && !names_a_rate(one);
    format!(
        "{lines}{:9.1} {:5.1}x {budget_s:9.0} | {:10.1} {:8.1} {:8.1}",
        100.0 * floor.allowed,
        floor.times,
        share(&infeasible),
        share(&|one| !names_a_rate(one) && !infeasible(one)),
        share(&names_a_rate)
    )
}
