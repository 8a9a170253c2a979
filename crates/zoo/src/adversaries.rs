//! Targets that are not plain queues, and what a search must make of them.

use crate::draw::Draw;
use crate::plant::{Arrivals, Queue, QueuePlant};
use crate::quirk::Quirk;
use plimsoll_core::seek::finding::{Finding, Verdict};
use plimsoll_core::seek::goal::Goal;
use plimsoll_core::seek::search::seek;

/// The expected end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum End {
    /// An estimate within this share of the line, or an interval that holds it.
    Near(f64),
    /// This verdict; if a share is given, then also an estimate as near to the line.
    Verdict(Verdict, Option<f64>),
    /// This verdict, or an estimate as near to the line.
    VerdictOrNear(Verdict, f64),
}

/// A target with a quirk.
#[derive(Clone, Copy, Debug)]
pub struct Adversary {
    /// Short name.
    pub name: &'static str,
    /// The queue.
    pub queue: Queue,
    /// Longest response time of 95 % of the requests, s.
    pub limit_s: f64,
    /// Time for the search, s.
    pub budget_s: f64,
    /// Highest rate that may be offered, per second.
    pub most_per_s: f64,
    /// The line where it has one, requests per second.
    pub line_per_s: Option<f64>,
    /// The expected result.
    pub end: End,
}

impl Adversary {
    /// Searches it with one seed.
    #[must_use]
    pub fn search(&self, seed: u64) -> Finding {
        let mut plant = QueuePlant::new(self.queue, &[self.limit_s], seed + 500);
        let mut goal = Goal::late(0.05, self.limit_s, self.budget_s, seed);
        goal.most_per_s = self.most_per_s;
        seek(&mut plant, &goal, &mut |_| ())
    }

    /// Returns true if a finding is what it must be.
    #[must_use]
    pub fn satisfied_by(&self, found: &Finding) -> bool {
        let near = |width: f64| {
            self.line_per_s.zip(found.estimate_per_s).is_some_and(|(line, estimate)| {
                let holds = found.interval_per_s.is_some_and(|i| i.0 <= line && line <= i.1);
                (estimate / line - 1.0).abs() <= width || holds
            })
        };
        let same = |verdict: Verdict| {
            std::mem::discriminant(&verdict) == std::mem::discriminant(&found.verdict)
        };
        match self.end {
            End::Near(width) => near(width),
            End::Verdict(verdict, width) => same(verdict) && width.is_none_or(near),
            End::VerdictOrNear(verdict, width) => same(verdict) || near(width),
        }
    }
}

/// M/M/4 of 20 ms with p95 of 100 ms by default.
fn base(name: &'static str, quirk: Quirk, end: End) -> Adversary {
    let service = Draw::Exponential(0.02);
    let arrivals = Arrivals::Poisson;
    Adversary {
        name,
        queue: Queue { servers: 4, service, delay_s: 0.0, arrivals, quirk },
        limit_s: 0.1,
        budget_s: 300.0,
        most_per_s: 1e6,
        line_per_s: Some(163.04),
        end,
    }
}

/// All of them.
#[must_use]
pub fn all() -> Vec<Adversary> {
    let ok = base("plain", Quirk::None, End::Near(0.05));
    let fixed = |servers, service_s| Queue {
        servers,
        service: Draw::Fixed(service_s),
        delay_s: 0.0,
        arrivals: Arrivals::Poisson,
        quirk: Quirk::Batches { size: 32, patience_s: 0.5 },
    };
    vec![
        Adversary {
            line_per_s: Some(PAUSES_LINE),
            ..base("pauses", Quirk::Pauses { stop_s: 0.2, period_s: 10.0 }, End::Near(0.05))
        },
        Adversary {
            line_per_s: Some(163.04 / 1.25),
            ..base(
                "drift",
                Quirk::Drift { share: 0.25, over_s: 300.0 },
                End::VerdictOrNear(Verdict::Drifting, 0.1),
            )
        },
        base("cold start", Quirk::Cold { factor: 2.5, until_s: 30.0 }, End::Near(0.1)),
        Adversary {
            queue: fixed(2, 0.1),
            limit_s: 0.3,
            line_per_s: Some(BATCHES_LINE),
            ..base("batches", Quirk::None, End::Verdict(Verdict::NonMonotone, Some(0.1)))
        },
        Adversary {
            line_per_s: Some(BIMODAL_LINE),
            ..base("bimodal", Quirk::Bimodal { share: 0.03, slow_s: 1.0 }, End::Near(0.1))
        },
        Adversary {
            line_per_s: Some(CAP_LINE),
            ..base("cap", Quirk::Cap { cap: 12 }, End::Near(0.1))
        },
        base(
            "starved",
            Quirk::Starved { most_per_s: 100.0 },
            End::Verdict(Verdict::GeneratorLimited, None),
        ),
        base("stalls", Quirk::Stalls { every_s: 6.0, stall_s: 0.04 }, End::Near(0.1)),
        Adversary { limit_s: 0.015, ..base("floor", Quirk::None, FLOOR) },
        Adversary {
            most_per_s: 100.0,
            ..base(
                "never",
                Quirk::None,
                End::Verdict(Verdict::NeverViolated { at_least_per_s: 100.0 }, None),
            )
        },
        base("dies", Quirk::Dies { at_s: 120.0 }, End::Verdict(Verdict::TargetFailed, None)),
        Adversary {
            budget_s: 1.0,
            ..base("one second", Quirk::None, End::Verdict(Verdict::BudgetTooSmall, None))
        },
        ok,
    ]
}

const FLOOR: End = End::Verdict(Verdict::Infeasible, None);

// Lines by long simulation; the test below computes them again.
const PAUSES_LINE: f64 = 128.6;
const BATCHES_LINE: f64 = 631.9;
const BIMODAL_LINE: f64 = 146.9;
const CAP_LINE: f64 = 169.7;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::long_run_late;
    use crate::oracles::bisect_in;

    #[test]
    fn each_ends_as_it_must() {
        let mut wrong = Vec::new();
        for adversary in all() {
            // Three seeds each, and one may be wrong where the end is a matter of statistics.
            let findings: Vec<Finding> = (0..3).map(|seed| adversary.search(seed)).collect();
            let right = findings.iter().filter(|found| adversary.satisfied_by(found)).count();
            let statistical = !matches!(adversary.end, End::Verdict(_, None));
            for found in &findings {
                eprintln!(
                    "{} {:?} {:?} {:?} {:.0} s: {}",
                    adversary.name,
                    found.verdict,
                    found.estimate_per_s,
                    found.certified.as_ref().map(|c| c.rate_per_s),
                    found.elapsed_s,
                    found.reason
                );
                assert!(found.elapsed_s < 1.3 * adversary.budget_s + 5.0, "{}", adversary.name);
            }
            if right < if statistical { 2 } else { 3 } {
                wrong.push(adversary.name);
            }
        }
        assert!(wrong.is_empty(), "{wrong:?}");
    }

    #[test]
    fn a_starved_generator_certifies_nothing_that_it_cannot_send() {
        let starved = all().into_iter().find(|a| a.name == "starved").expect("it is there");
        let certified = starved.search(3).certified.expect("a rate below holds");
        assert!(certified.rate_per_s < 100.0 && certified.rate_per_s > 50.0, "{certified:?}");
    }

    #[test]
    #[ignore = "make test-long: 1e8 simulated requests"]
    fn committed_lines_are_those_of_long_simulations() {
        let mut right = true;
        for (name, line) in [
            ("pauses", PAUSES_LINE),
            ("batches", BATCHES_LINE),
            ("bimodal", BIMODAL_LINE),
            ("cap", CAP_LINE),
        ] {
            let adversary = all().into_iter().find(|a| a.name == name).expect("it is there");
            let found = bisect_in(11, 0.8 * line, 1.25 * line, |rate| {
                long_run_late(adversary.queue, adversary.limit_s, rate, 4e6, 9) <= 0.05
            });
            eprintln!("{name} {found}");
            right &= (found / line - 1.0).abs() < 0.005;
        }
        assert!(right);
    }
}
