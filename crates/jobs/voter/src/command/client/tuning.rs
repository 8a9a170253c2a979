//! A load that keeps a limit by itself, and the check of what it came to: a run with a fixed number of calls in flight.

use super::{Counted, Run, conclude, verdict, worn_out};
use crate::{TuneGoal, VoterTally};
use anyhow::Result;
use plimsoll_core::clock::now_ns;
use plimsoll_core::rng::splitmix64;
use plimsoll_core::verdict::{Verdict, VerdictKind};
use plimsoll_engine::run::{Driven, RunEnd};
use plimsoll_engine::shard::ShardPlan;
use plimsoll_job::keeping::{JobEnd, Keeping};
use plimsoll_record::JobResults;
use plimsoll_record::voter::{TuneCheck, TuneResult};

/// Share of the run for tuning, and that of each check.
const TUNING: f64 = 0.4;
const CHECK: f64 = 0.2;
/// Checks at most.
const CHECKS_MAX: u32 = 3;
/// Shortest check that certifies a rate, in limits and in s, as of the search for the load line.
const LEAST_LIMITS: f64 = 32.0;
const LEAST_S: f64 = 2.0;
/// A check must have enough calls for this many late ones.
const LEAST_LATE: f64 = 10.0;
/// Calls in flight of the first check, over those of tuning: the tuned load goes to and fro around the limit.
const BELOW: f64 = 0.9;
/// The same of each further check, over those of the one before.
const LOWER: f64 = 0.7;

/// Tunes the load, then checks it: the last check is the result.
///
/// # Errors
/// When no call could be made.
pub fn tune<P: Driven, F: Fn() -> P + Sync>(
    run: &Run<'_, P, F>,
    goal: &TuneGoal,
    keeping: &mut Keeping<'_>,
) -> Result<JobEnd> {
    let mut parts = Parts { run, goal, began_ns: now_ns(), number: 0, is_out_of_calls: false };
    let least_s = LEAST_S.max(LEAST_LIMITS * goal.limit_ns as f64 / 1e9);
    let whole_s = run.plan.limits.duration_ns as f64 / 1e9;
    // Where there is no time for a check, all of it goes into tuning, and nothing is certified.
    let is_short = CHECK * whole_s < least_s && (1.0 - TUNING) * whole_s < least_s;
    let tuning = if is_short { 1.0 } else { TUNING };
    let (mut end, mut counted) = parts.offer(tuning, None, keeping)?;
    let mut tuned = counted.tuned.take().unwrap_or_default();
    let mut under_way =
        tuned.best_under_way.map(|best| below(BELOW * best, run.task.scenario.threads));
    let check = CHECK.max(least_s / whole_s);
    let mut left = 1.0 - tuning;
    while let Some(held) = under_way.filter(|_| !end.interrupted && counted.trouble.is_none()) {
        if left < 0.99 * check || tuned.checks.len() as u32 == CHECKS_MAX {
            break;
        }
        left -= check;
        let (last, of_last) = parts.offer(check, Some(held), keeping)?;
        let one = checked(held, &last, &of_last.tally, goal, least_s);
        tuned.checks.push(one);
        counted.tally.merge(&of_last.tally);
        counted.trouble = counted.trouble.take().or(of_last.trouble);
        end.absorb(last);
        let next = below(LOWER * f64::from(held), run.task.scenario.threads);
        under_way = (!one.held && next < held).then_some(next);
    }
    let certifies = |one: &&TuneCheck| one.held && one.counts && counted.trouble.is_none();
    tuned.certified_rate_per_s = tuned.checks.last().filter(certifies).map(|one| one.rate_per_s);
    let longer = match parts.is_out_of_calls {
        true => "leave out --calls, or give more of them".to_owned(),
        false => {
            let seconds = (least_s / CHECK).max(2.0 * end.measured_s).ceil();
            format!("give --duration {seconds:.0}s or more")
        }
    };
    let of_tuning = judged(&tuned, goal, (least_s, &longer), run.task.scenario.threads);
    counted.tuned = Some(tuned);
    run.before.lines.say("cool down ... check writes ...");
    let (result, trouble) = conclude(run.task, run.before, &end, counted);
    let of_writes = verdict(run.task, &result, trouble, &end);
    let usual = end.interrupted || end.totals.ledger.ok == 0;
    let warnings = [run.before.prepared.clone(), worn_out(&result)].concat();
    let own = of_writes.or(of_tuning.filter(|_| !usual));
    Ok(JobEnd { end, results: JobResults::of(result), verdict: own, warnings })
}

/// At most this, and at least one for each thread.
fn below(under_way: f64, threads: u32) -> u32 {
    (under_way as u32).max(threads).max(1)
}

/// The runs one after the other; each has telephones of its own.
struct Parts<'a, P: Driven, F: Fn() -> P + Sync> {
    run: &'a Run<'a, P, F>,
    goal: &'a TuneGoal,
    began_ns: u64,
    number: u32,
    /// True if a run ended because its calls were made, before its time was over.
    is_out_of_calls: bool,
}

impl<P: Driven, F: Fn() -> P + Sync> Parts<'_, P, F> {
    /// A share of the whole run, tuned or with this many calls in flight.
    fn offer(
        &mut self,
        share: f64,
        held: Option<u32>,
        keeping: &mut Keeping<'_>,
    ) -> Result<(RunEnd, Counted)> {
        let mut plan: ShardPlan = self.run.plan.clone();
        plan.limits.duration_ns = (plan.limits.duration_ns as f64 * share) as u64;
        plan.limits.requests = plan.limits.requests.map(|all| (all as f64 * share).ceil() as u64);
        let mut settings = self.run.task.settings.clone();
        settings.held = held;
        if self.number > 0 {
            plan.part.start_ns = None;
            plan.part.phase = self.number;
            plan.part.offset_ns = now_ns().saturating_sub(self.began_ns);
            let seed = settings.game.seed;
            settings.game.seed = splitmix64(seed ^ splitmix64(u64::from(self.number)));
        }
        self.number += 1;
        let words = match held {
            Some(under_way) => {
                format!("check {} with {under_way} calls in flight ...", self.goal.text())
            }
            None => format!("tune to {} ...", self.goal.text()),
        };
        self.run.before.lines.say(&words);
        let (end, counted) = self.run.calls(&plan, settings, keeping)?;
        let calls = end.totals.ledger.scheduled;
        self.is_out_of_calls |= plan.limits.requests.is_some_and(|most| calls >= most);
        Ok((end, counted))
    }
}

/// Result of a check.
fn checked(
    under_way: u32,
    end: &RunEnd,
    tally: &VoterTally,
    goal: &TuneGoal,
    least_s: f64,
) -> TuneCheck {
    let (calls, late) = tally.trace.counts();
    let seconds = end.measured_s;
    let could_be_late = (1.0 - goal.quantile) * calls as f64;
    TuneCheck {
        under_way,
        seconds,
        calls,
        late: late as f64 / calls.max(1) as f64,
        rate_per_s: end.totals.counters.ok_in_time as f64 / seconds.max(1e-9),
        held: calls > 0 && goal.is_held(late, calls),
        counts: !end.interrupted && seconds >= 0.9 * least_s && could_be_late >= LEAST_LATE,
    }
}

/// Reason why no rate is certified; nothing where one is, and the run is judged as any other.
fn judged(
    tuned: &TuneResult,
    goal: &TuneGoal,
    (least_s, longer): (f64, &str),
    threads: u32,
) -> Option<Verdict> {
    if tuned.certified_rate_per_s.is_some() {
        return None;
    }
    let text = goal.text();
    let last = tuned.checks.last();
    // One call at a time on each thread is the least load that there is.
    let least = match last {
        Some(check) => check.counts && !check.held && check.under_way <= threads,
        None => {
            let at_the_end = tuned.trace.last().is_some_and(|point| point.under_way <= threads);
            tuned.best_rate_per_s.is_none() && tuned.windows >= 10 && at_the_end
        }
    };
    if least {
        let reason = format!("{text} is missed even with one call in flight on each thread");
        return Some(Verdict::new(VerdictKind::Infeasible, vec![reason]));
    }
    let why = match last {
        None => "there was no time to check the tuned load".to_owned(),
        Some(check) if check.held => format!(
            "the check was too short: {} calls in {:.1} s, where {least_s:.0} s and {:.0} calls are needed",
            check.calls,
            check.seconds,
            (LEAST_LATE / (1.0 - goal.quantile)).ceil()
        ),
        Some(check) => format!(
            "{text} was missed in the last check, with {} calls in flight: {:.2} % were late",
            check.under_way,
            100.0 * check.late
        ),
    };
    let reason = format!("{why}; {longer}");
    Some(Verdict::new(VerdictKind::BudgetTooSmall, vec![reason]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_record::voter::TunePoint;

    fn goal() -> TuneGoal {
        "p99=10ms".parse().unwrap()
    }

    fn check(under_way: u32, held: bool, counts: bool) -> TuneCheck {
        TuneCheck {
            under_way,
            seconds: 2.4,
            calls: 900,
            late: 0.014,
            rate_per_s: 375.0,
            held,
            counts,
        }
    }

    fn kind(tuned: &TuneResult) -> Option<(VerdictKind, String)> {
        let own = judged(tuned, &goal(), (2.0, "give --duration 24s or more"), 2)?;
        Some((own.kind, own.reasons[0].clone()))
    }

    #[test]
    fn what_did_not_hold_in_the_last_check_is_not_certified() {
        let of =
            |checks: &[TuneCheck]| TuneResult { checks: checks.to_vec(), ..TuneResult::default() };
        let certified =
            TuneResult { certified_rate_per_s: Some(1.0), ..of(&[check(50, true, true)]) };
        assert_eq!(kind(&certified), None);
        let (missed, why) = kind(&of(&[check(50, false, true)])).unwrap();
        assert_eq!(missed, VerdictKind::BudgetTooSmall);
        assert!(
            why.contains("with 50 calls in flight: 1.40 % were late; give --duration 24s"),
            "{why}"
        );
        let (short, why) = kind(&of(&[check(50, true, false)])).unwrap();
        assert_eq!(short, VerdictKind::BudgetTooSmall);
        assert!(why.contains("900 calls in 2.4 s, where 2 s and 1000 calls are needed"), "{why}");
        let (none, why) = kind(&of(&[])).unwrap();
        assert_eq!(none, VerdictKind::BudgetTooSmall);
        assert!(why.contains("no time to check"), "{why}");
    }

    #[test]
    fn a_limit_that_one_call_at_a_time_misses_is_infeasible() {
        let one = TuneResult { checks: vec![check(2, false, true)], ..TuneResult::default() };
        assert_eq!(kind(&one).map(|own| own.0), Some(VerdictKind::Infeasible), "two threads");
        let trace = vec![TunePoint { under_way: 2, ..TunePoint::default() }];
        let tuned = TuneResult { windows: 20, trace, ..TuneResult::default() };
        assert_eq!(kind(&tuned).map(|own| own.0), Some(VerdictKind::Infeasible));
        let short = TuneResult { windows: 3, ..tuned };
        assert_eq!(kind(&short).map(|own| own.0), Some(VerdictKind::BudgetTooSmall));
    }
}
