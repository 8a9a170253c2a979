//! The way the load line is sought: by plimsoll's own method, or by another tool's for comparison.

use crate::signals::is_stopped;
use crate::usage::usage;
use anyhow::Result;
use clap::ValueEnum;
use plimsoll_core::interval::Interval;
use plimsoll_core::schedule::Arrivals;
use plimsoll_core::seek::finding::{Finding, Verdict as Found};
use plimsoll_core::seek::goal::{Bound, Goal};
use plimsoll_core::seek::notes::{Arriving, notes};
use plimsoll_core::seek::plant::Plant;
use plimsoll_core::seek::rivals::{Answer, RATIOS, Rival, Task, search};
use plimsoll_core::verdict::{Evidence, Health, Verdict, VerdictKind, held_up_by, judge};
use plimsoll_engine::run::RunEnd;
use plimsoll_record::JobResults;
use plimsoll_record::seek::{RivalResult, SeekResult};

/// A way to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Method {
    /// With an interval, and a certified rate.
    Plimsoll,
    /// FeedSim's script: about half an hour.
    Feedsim,
    /// mutilate --search: under a minute.
    Mutilate,
    /// Nighthawk's adaptive load: about twenty minutes.
    Nighthawk,
    /// The early-stopping rule of MLPerf's LoadGen: hours.
    Mlperf,
}

impl Method {
    /// The other tool, if it is one.
    pub fn rival(self) -> Option<Rival> {
        match self {
            Self::Plimsoll => None,
            Self::Feedsim => Some(Rival::Feedsim),
            Self::Mutilate => Some(Rival::Mutilate),
            Self::Nighthawk => Some(Rival::Nighthawk),
            Self::Mlperf => Some(Rival::Mlperf),
        }
    }

    /// The time limits that the plant must count for this method, ns.
    ///
    /// # Errors
    /// When a method that knows one limit is given others.
    pub fn limits_ns(self, goal: &Goal, own: Vec<u64>) -> Result<Vec<u64>> {
        let Some(rival) = self.rival() else { return Ok(own) };
        let [limit] = own[..] else {
            return Err(usage(
                "other tools' searches support only one --slo; leave the others out",
            ));
        };
        if !matches!(goal.limits[0].bound, Bound::Late { .. }) || limit == u64::MAX {
            return Err(usage("--slo: other tools' searches need a percentile, such as p95=500ms"));
        }
        Ok(match rival {
            Rival::Feedsim => RATIOS.iter().map(|ratio| (limit as f64 * ratio) as u64).collect(),
            _ => vec![limit],
        })
    }
}

/// Searches as `rival` does. Returns the results for the record, the verdict, and the rate that it found.
pub fn search_as(rival: Rival, plant: &mut dyn Plant, goal: &Goal) -> (JobResults, Verdict, f64) {
    let task = Task {
        allowed: goal.limits[0].allowed(),
        limit: usize::from(rival == Rival::Feedsim),
        limit_s: goal.limit_s,
        seed: goal.seed,
        start_per_s: goal.start_per_s,
        most_per_s: goal.most_per_s,
    };
    let Answer { rate_per_s, last_late_share, elapsed_s, trials } = search(rival, plant, task);
    let found = RivalResult { method: rival, rate_per_s, last_late_share, elapsed_s, trials };
    let reason = format!(
        "{}'s search ended at {rate_per_s:.1}/s after {trials} trials and {elapsed_s:.0} s; {:.1} % of its last trial were late",
        rival.name(),
        last_late_share * 100.0
    );
    let kind = if is_stopped() { VerdictKind::Partial } else { VerdictKind::Valid };
    let verdict = Verdict::new(kind, vec![reason]);
    (JobResults::of(found), verdict, rate_per_s)
}

/// Returns the section `seek` of the record, with its assumptions in words.
pub fn result(finding: &Finding, arrivals: Arrivals, who: Arriving) -> SeekResult {
    SeekResult::from(Finding { notes: notes(finding, arrivals, who), ..finding.clone() })
}

/// The verdict of a run that was a search.
pub fn verdict_of(finding: &Finding) -> Verdict {
    let kind = match finding.verdict {
        // A curve certifies no rate.
        Found::Ok if finding.watch.is_some() => VerdictKind::Valid,
        Found::Ok | Found::NeverViolated { .. } | Found::BudgetTooSmall => {
            // Without a certified rate there is nothing to rely on.
            if finding.certified.is_some() {
                VerdictKind::Valid
            } else {
                VerdictKind::BudgetTooSmall
            }
        }
        Found::GeneratorLimited => VerdictKind::GeneratorLimited,
        Found::Infeasible => VerdictKind::Infeasible,
        Found::NonMonotone | Found::Drifting => VerdictKind::Unstable,
        Found::TargetFailed => VerdictKind::TargetFailed,
        Found::Interrupted => VerdictKind::Partial,
    };
    Verdict::new(kind, vec![finding.reason.clone()])
}

/// Returns the verdict on these figures.
pub fn judged(totals: &Interval, interrupted: bool, health: Health) -> Verdict {
    judge(&Evidence { interrupted, health, ..Evidence::of(totals) })
}

/// Share of a search from which on it is named that others kept the generator from a processor.
const HELD_UP: f64 = 0.02;

/// The verdict of a search, with the processes that held the generator up if it was the limit. If no request of it was answered,
/// the target has failed, whatever the verdict of the search.
pub fn unless_dead(of_search: Verdict, end: &RunEnd) -> Verdict {
    let of_all = judged(&end.totals, end.interrupted, end.health);
    if of_all.kind == VerdictKind::TargetFailed && of_search.kind != VerdictKind::Partial {
        return of_all;
    }
    let mut of_search = of_search;
    if of_search.kind == VerdictKind::GeneratorLimited {
        of_search.reasons.extend(held_up_by(&end.health, end.measured_s, HELD_UP));
    }
    of_search
}
