//! Plants that change while they are searched, and what may be said of them.

use crate::draw::Draw;
use crate::oracles::{line, mmk_late};
use crate::plant::{Arrivals, Queue, QueuePlant};
use crate::quirk::Quirk;
use crate::table::{quantile, rival_answer};
use plimsoll_core::seek::finding::{Finding, Verdict};
use plimsoll_core::seek::goal::Goal;
use plimsoll_core::seek::rivals::Rival;
use plimsoll_core::seek::search::seek;

/// Limit of all of them, s, for 95 % of the requests.
const LIMIT_S: f64 = 0.1;
/// Mean service time, s.
const SERVICE_S: f64 = 0.02;
/// A line or a certified rate is that of a state when it is no further from it than this.
const NEAR: f64 = 0.1;

/// A plant that changes.
#[derive(Clone, Debug)]
pub struct Changing {
    /// Short name.
    pub name: &'static str,
    /// The queue.
    pub queue: Queue,
    /// Lines that may be named, requests per second: of the last steady state, and of what recurs.
    pub lines_per_s: Vec<f64>,
}

/// The result of one search.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// The verdict says that the target changed.
    pub is_unstable: bool,
    /// The interval holds one of the lines, or the estimate is near it, and no rate far above is certified.
    pub names_a_line: bool,
    /// Nothing was certified and nothing said of a line.
    pub says_nothing: bool,
    /// True if there is an interval, and whether it holds one of the lines.
    pub has_interval: bool,
    /// True if it does.
    pub covers: bool,
}

impl Outcome {
    /// Returns true if the search may end so.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.is_unstable || self.names_a_line || self.says_nothing
    }
}

impl Changing {
    /// Searches it with one seed.
    #[must_use]
    pub fn search(&self, seed: u64, budget_s: f64) -> (Outcome, Finding) {
        let mut plant = QueuePlant::new(self.queue, &[LIMIT_S], seed.wrapping_mul(0x9e37_79b9) + 7);
        let goal = Goal { width: 0.05, ..Goal::late(0.05, LIMIT_S, budget_s, seed) };
        let found = seek(&mut plant, &goal, &mut |_| ());
        // A plant that too few requests have warmed is not the one that it would become.
        let mut lines_per_s = self.lines_per_s.clone();
        lines_per_s
            .extend(plant.warmth().filter(|slower| *slower > 1.0).map(|slower| mmk(4, slower)));
        let is = |rate: f64| lines_per_s.iter().any(|line| (rate / line - 1.0).abs() <= NEAR);
        let holds =
            |(low, high): (f64, f64)| lines_per_s.iter().any(|line| low <= *line && *line <= high);
        let certified = found.certified.as_ref().map(|run| run.rate_per_s);
        let covers = found.interval_per_s.is_some_and(holds);
        let highest = lines_per_s.iter().copied().fold(0.0, f64::max);
        let is_safe = certified.is_none_or(|rate| rate <= highest * (1.0 + NEAR));
        let outcome = Outcome {
            is_unstable: matches!(found.verdict, Verdict::Drifting),
            names_a_line: is_safe && (covers || found.estimate_per_s.is_some_and(is)),
            says_nothing: certified.is_none() && found.estimate_per_s.is_none(),
            has_interval: found.interval_per_s.is_some(),
            covers,
        };
        (outcome, found)
    }
}

/// A method on a plant that changes: how often it names a line, how often one far above, and its time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Compared {
    /// Its rate, or plimsoll's estimate, is near a line that may be named.
    pub is_near: bool,
    /// It is far above all of them.
    pub is_above: bool,
    /// It says that the target changed, or names no rate.
    pub says_so: bool,
    /// Time it took, s.
    pub elapsed_s: f64,
}

impl Changing {
    fn compared(&self, rate_per_s: Option<f64>, elapsed_s: f64) -> Compared {
        let lines = &self.lines_per_s;
        let rate = rate_per_s.filter(|rate| *rate > 0.0);
        let is_near =
            rate.is_some_and(|rate| lines.iter().any(|line| (rate / line - 1.0).abs() <= NEAR));
        let highest = lines.iter().copied().fold(0.0, f64::max);
        let is_above = rate.is_some_and(|rate| rate > highest * (1.0 + NEAR));
        Compared { is_near, is_above, says_so: rate.is_none(), elapsed_s }
    }

    /// Runs a rival on the plant.
    #[must_use]
    pub fn rival(&self, rival: Rival, seed: u64) -> Compared {
        let answer = rival_answer(rival, (self.queue, LIMIT_S, 0.05), seed);
        self.compared(Some(answer.rate_per_s), answer.elapsed_s)
    }

    /// Runs plimsoll on the plant.
    #[must_use]
    pub fn ours(&self, seed: u64, budget_s: f64) -> Compared {
        let found = self.search(seed, budget_s).1;
        self.compared(found.estimate_per_s, found.elapsed_s)
    }
}

/// The table's head for [`compared_line()`].
pub const COMPARED_HEAD: &str =
    "method and plant            | a line  far above  none  other % | time med/p95 s";

/// One line of the table of all methods.
#[must_use]
pub fn compared_line(name: &str, of: &[Compared]) -> String {
    let share = |holds: &dyn Fn(&Compared) -> bool| {
        100.0 * of.iter().filter(|one| holds(one)).count() as f64 / of.len().max(1) as f64
    };
    let time = |share| quantile(of.iter().map(|one| one.elapsed_s), share);
    format!(
        "{name:27} | {:6.1} {:10.1} {:5.1} {:7.1} | {:5.0} {:5.0}",
        share(&|one| one.is_near),
        share(&|one| one.is_above),
        share(&|one| one.says_so),
        share(&|one| !one.is_near && !one.is_above && !one.says_so),
        time(0.5),
        time(0.95)
    )
}

fn mmk(servers: usize, slower: f64) -> f64 {
    let service_s = SERVICE_S * slower;
    line(servers as f64 / service_s, 0.05, |rate| mmk_late(servers, service_s, rate, LIMIT_S))
}

fn plant(name: &'static str, quirk: Quirk, lines_per_s: &[f64]) -> Changing {
    let service = Draw::Exponential(SERVICE_S);
    let queue = Queue { servers: 4, service, delay_s: 0.0, arrivals: Arrivals::Poisson, quirk };
    Changing { name, queue, lines_per_s: lines_per_s.to_vec() }
}

/// All of them: M/M/4 of 20 ms, p95 of 100 ms.
#[must_use]
pub fn all() -> Vec<Changing> {
    let (whole, faster) = (mmk(4, 1.0), mmk(4, 0.75));
    vec![
        plant("cold 1.5x 30s", Quirk::Cold { factor: 1.5, until_s: 30.0 }, &[whole]),
        plant("cold 2x 30s", Quirk::Cold { factor: 2.0, until_s: 30.0 }, &[whole]),
        plant("cold 2.5x 60s", Quirk::Cold { factor: 2.5, until_s: 60.0 }, &[whole]),
        plant("compiles", Quirk::Warms { factor: 3.0, requests: 5_000.0 }, &[whole]),
        plant("cache", Quirk::Warms { factor: 2.0, requests: 15_000.0 }, &[whole]),
        plant("scales out 4-8", Quirk::ScalesOut { most: 8, after_s: 15.0 }, &[mmk(8, 1.0)]),
        plant(
            "-25 % at 150s",
            Quirk::Step { at_s: 150.0, factor: 4.0 / 3.0 },
            &[mmk(4, 4.0 / 3.0)],
        ),
        plant("+33 % at 150s", Quirk::Step { at_s: 150.0, factor: 0.75 }, &[faster]),
        plant("4x at 150s", Quirk::Step { at_s: 150.0, factor: 0.25 }, &[mmk(4, 0.25)]),
        plant("-25 % at 80s", Quirk::Step { at_s: 80.0, factor: 4.0 / 3.0 }, &[mmk(4, 4.0 / 3.0)]),
        plant(
            "compacts 5/45s",
            Quirk::Compacts { every_s: 45.0, for_s: 5.0, factor: 2.0 },
            &[COMPACTS],
        ),
        plant(
            "neighbour 20 %",
            Quirk::Neighbour { share: 0.2, mean_s: 20.0 },
            &[mmk(4, 1.25), NEIGHBOUR],
        ),
        plant(
            "neighbour 40 %",
            Quirk::Neighbour { share: 0.4, mean_s: 10.0 },
            &[mmk(4, 1.0 / 0.6), NEIGHBOUR_40],
        ),
        plant("throttles", Quirk::Throttles { busy_s: 400.0, factor: 1.5 }, &[mmk(4, 1.5)]),
        plant("leaks 30 %", Quirk::Drift { share: 0.3, over_s: 300.0 }, &[mmk(4, 1.3)]),
    ]
}

/// Lines in the long run, by simulations of 2e6 requests.
const COMPACTS: f64 = 88.6;
const NEIGHBOUR: f64 = 127.7;
const NEIGHBOUR_40: f64 = 82.1;

/// The table's head for [`line_of()`].
pub const HEAD: &str = "plant            | unstable  a line  nothing  neither | interval covers %";

/// One line of the table.
#[must_use]
pub fn line_of(name: &str, outcomes: &[Outcome]) -> String {
    let share = |of: &dyn Fn(&Outcome) -> bool| {
        100.0 * outcomes.iter().filter(|o| of(o)).count() as f64 / outcomes.len().max(1) as f64
    };
    let printed = outcomes.iter().filter(|o| o.has_interval).count();
    let covers = outcomes.iter().filter(|o| o.covers).count();
    format!(
        "{name:16} | {:8.1} {:7.1} {:8.1} {:8.1} | {:8.1} {:6.1}",
        share(&|o| o.is_unstable),
        share(&|o| !o.is_unstable && o.names_a_line),
        share(&|o| !o.is_unstable && !o.names_a_line && o.says_nothing),
        share(&|o| !o.is_right()),
        100.0 * printed as f64 / outcomes.len().max(1) as f64,
        100.0 * covers as f64 / printed.max(1) as f64,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::long_run_late;

    #[test]
    fn committed_lines_are_those_of_long_simulations() {
        for line in [COMPACTS, NEIGHBOUR, NEIGHBOUR_40] {
            let plant = all().into_iter().find(|plant| plant.lines_per_s.contains(&line));
            let plant = plant.expect("each constant belongs to a plant");
            let (mut low, mut high) = (0.7 * line, 1.3 * line);
            for _ in 0..8 {
                let mid = 0.5 * (low + high);
                if long_run_late(plant.queue, LIMIT_S, mid, 2e6, 5) <= 0.05 {
                    low = mid;
                } else {
                    high = mid;
                }
            }
            assert!((low / line - 1.0).abs() < 0.03, "{}: {low} and not {line}", plant.name);
        }
    }
}
