//! The last step: contiguous runs closely below the line until one holds every limit.

use super::enough::DRAINED;
use super::finding::Event;
use super::goal::Limit;
use super::plant::Segment;
use super::search::{LEAST_RUN, Search, Stop, Stretch, round_to};
use crate::normal;

/// Distance of the first run below the estimate, as a share.
const BELOW: f64 = 0.003;
/// Smallest step down from one run to the next, as a share.
const STEP: f64 = 0.005;
/// A half-width that is no reason to go deeper, and the share of what is beyond it by which the run is lower that must
/// not be in vain.
const NEAR: f64 = 0.04;
const DEPTH: f64 = 0.6;
/// A certified rate is not further above the line than this, but for rare cases.
const FAR: f64 = 0.10;
const RARE: f64 = 0.01;
/// A search that is too short for an interval certifies a rate no higher than this share of what short looks saw hold, of the
/// capacity, and of the line that the capacity lets expect with completions that are this many times as uneven as they looked
/// (the second where they are more uneven than those of exponential services); in a run of at most this many blocks.
const MODEST: f64 = 0.8;
const MODEST_CAPACITY: f64 = 0.75;
const MODEST_LINE: f64 = 0.95;
const MODEST_INDEX: (f64, f64) = (2.0, 3.0);
const MODEST_BLOCKS: f64 = 4.0;
/// Share by which the next run is lower after one that broke a limit, and most runs at a rate that holds.
const MODEST_STEP: f64 = 0.8;
const MODEST_RUNS: usize = 5;
/// Most runs.
const RUNS: usize = 8;
/// Least share of the time for an interval; with less time left, none is tried.
const SHORT: f64 = 0.95;

impl Search<'_> {
    /// Blocks of a certifying run: about a twelfth of the budget.
    pub(super) fn run_blocks(&self) -> usize {
        ((0.08 * self.goal.budget_s / self.block_s).round() as usize).max(LEAST_RUN)
    }

    /// Runs at rates closely below the estimate, each a little lower, until one holds. As long as none of the whole
    /// search held, a run goes well into the interval first: it should not end with nothing.
    pub(super) fn certify(&mut self) -> Result<(), Stop> {
        let Some((mut found, _)) = self.fit else { return Err(Stop::Budget) };
        let began = self.runs.len();
        let mut rate = found.estimate_per_s * (1.0 - BELOW);
        let mut outcome = Ok(());
        let mut deep = DEPTH * (found.half_width() - NEAR);
        // The middle of the fit stays: a run far below that holds must not flatten the slope and so draw the line down.
        let center = found.estimate_per_s;
        for _ in 0..RUNS {
            let safe = self.held().map(|run| run.rate_per_s);
            let safely = found.estimate_per_s * (1.0 - deep.max(BELOW));
            let most = 0.999 * self.surely_not_far_above();
            let tried = if safe.is_none() { rate.min(safely) } else { rate }.min(most);
            // Nothing is to be won any more; but one run there shall be.
            if self.runs.len() > began && safe.is_some_and(|safe| tried <= safe) {
                break;
            }
            let held = match self.run(tried) {
                Ok(held) => held,
                Err(stop) => {
                    outcome = Err(stop);
                    break;
                }
            };
            found = self.estimate(center);
            if held && (tried == rate || tried == most) {
                break;
            }
            if !held && safe.is_none() {
                deep = 1.5 * deep.max(STEP);
            }
            if !held {
                rate = rate.min(found.estimate_per_s) * (1.0 - STEP);
            }
        }
        self.choose();
        outcome
    }

    /// The highest rate that held is the headline; this phase's if there is little between them.
    fn choose(&mut self) {
        let Some(before) = self.held() else { return };
        let near = |run: &Stretch| run.rate_per_s >= before.rate_per_s * (1.0 - STEP);
        self.certified_last = self.certified.as_ref().is_some_and(near);
        if !self.certified_last {
            self.certified = Some(before);
        }
    }

    /// A shorter run holds by chance too easily to certify anything, s.
    fn least_s(&self) -> f64 {
        0.9 * LEAST_RUN as f64 * self.block_s
    }

    /// Returns true if a run held every limit, and was long enough to say so. Without an interval that says where the line is, the
    /// requests of the run alone must make it unlikely that a limit is missed in the long run.
    fn holds(&self, run: &Stretch) -> bool {
        let is_sure = self.fit.is_some() || self.surely_holds(&run.counts);
        run.seconds >= self.least_s() && self.excess(&run.counts) <= 1.0 && is_sure
    }

    /// The highest rate closely below the estimate, and not contradicted by the interval, at which a run held that
    /// was not shorter than it may be.
    fn held(&self) -> Option<Stretch> {
        let highest = self.highest();
        let lowest = self.fit.map_or(0.0, |(fit, _)| {
            (fit.interval_per_s.0 * (1.0 - self.goal.width)).min(0.9 * self.surely_not_far_above())
        });
        self.runs
            .iter()
            .filter(|run| self.holds(run))
            .filter(|run| (lowest..=highest).contains(&run.rate_per_s))
            .max_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s))
            .copied()
    }

    /// No rate above this is certified as long as there is one below.
    fn highest(&self) -> f64 {
        self.fit
            .map_or(f64::INFINITY, |(f, _)| f.estimate_per_s * (1.0 - 0.5 * BELOW))
            .min(self.surely_not_far_above())
            .min(0.999 * self.starved_at_per_s)
    }

    /// A run may hold by chance at a rate above the line. No rate is certified that may be further above it than
    /// [`FAR`], but for one time in a hundred.
    fn surely_not_far_above(&self) -> f64 {
        self.fit.map_or(f64::INFINITY, |(fit, _)| {
            let normal_ends = normal::quantile(0.5 + self.goal.confidence / 2.0);
            let wide = normal::quantile(1.0 - RARE) / normal_ends;
            // Bursts of heavy tails look like a line that moves: there the wider interval, which is printed, counts.
            let heavy = self.unevenness_of_completions() > 1.0;
            let low = if heavy { self.with_drift(&fit).0 } else { self.lower_end(&fit) };
            let lower = fit.estimate_per_s - wide * (fit.estimate_per_s - low);
            lower.max(0.0) * (1.0 + FAR)
        })
    }

    /// The lowest run if only runs above the estimate held, unless it is so far above that the estimate makes it a
    /// lucky one, in the farther half of the way to the interval's upper end.
    fn held_above(&self) -> Option<Stretch> {
        let (fit, _) = self.fit?;
        let most = 0.5 * (fit.estimate_per_s + fit.interval_per_s.1);
        let most = most.min(self.surely_not_far_above()).min(0.999 * self.starved_at_per_s);
        self.runs
            .iter()
            .filter(|run| self.holds(run))
            .filter(|run| (self.highest()..=most).contains(&run.rate_per_s))
            .min_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s))
            .copied()
    }

    /// An earlier run if none of this phase held and the interval does not contradict it, or none. A rate that short looks
    /// saw certifies nothing.
    pub(super) fn certify_from_before(&mut self) {
        self.certified = self.held().or_else(|| self.held_above());
    }

    /// Runs at a rate that short looks saw hold, when nothing better is known.
    pub(super) fn certify_below(&mut self, rate_per_s: f64) -> Result<(), Stop> {
        let mut rate = rate_per_s;
        for _ in 0..RUNS {
            if rate <= 0.0 {
                break;
            }
            match self.run(rate) {
                Ok(true) => break,
                Ok(false) => rate *= 0.92,
                // A longer run may show that the generator cannot do it after all, as often as it may be offered.
                Err(Stop::GeneratorLimited) => rate *= 0.8,
                Err(stop) => return Err(stop),
            }
        }
        Ok(())
    }

    /// True if what is left of the budget is not enough for an interval. A target that is followed has time.
    pub(super) fn is_too_short(&self) -> bool {
        !self.is_followed && self.left_s() < SHORT * self.rest_s(self.block_s)
    }

    /// Time of the shortest run well below the line, s.
    pub(super) fn modest_s(&self) -> f64 {
        self.settle_s + LEAST_RUN as f64 * self.block_s + 2.0 * self.goal.limit_s
    }

    /// Too little time is left for an interval, but enough to show that the limits hold at a rate well below the line. The
    /// time that is left then shows whether the target stays the same, and the rate is offered again: one run of a target with rare
    /// and long services, or with a neighbour, may hold by chance.
    pub(super) fn certify_modestly(&mut self) -> Result<(), Stop> {
        let mut rate_per_s = self.modest_rate_per_s();
        let mut held = 0;
        while self.left_s() >= self.modest_s() && held < MODEST_RUNS {
            match self.run_modestly(rate_per_s)? {
                Some(true) => held += 1,
                Some(false) => (rate_per_s, held) = (MODEST_STEP * rate_per_s, 0),
                None => break,
            }
            let look_s = self.capacity.map_or(0.0, |c| DRAINED * self.overload_s(c.per_s));
            if self.left_s() >= look_s + self.modest_s() {
                self.look_for_a_change()?;
            }
        }
        Err(if self.fails_in_all_runs() { Stop::Infeasible } else { Stop::Budget })
    }

    /// Highest rate that a search without an interval may certify.
    fn modest_rate_per_s(&self) -> f64 {
        let heavy = self.unevenness_of_completions() > 1.0;
        let times = if heavy { MODEST_INDEX.1 } else { MODEST_INDEX.0 };
        let by_capacity = self.line_by_capacity(times).unwrap_or(f64::INFINITY);
        let most = self.bound().map_or(f64::INFINITY, |c| MODEST_CAPACITY * c.per_s);
        (MODEST * self.bracket.0).min(most.min(MODEST_LINE * by_capacity))
    }

    /// A run at a rate well below the line, together with those at the same rate before. Returns whether all of them hold;
    /// nothing if no request fell into it.
    fn run_modestly(&mut self, rate_per_s: f64) -> Result<Option<bool>, Stop> {
        let around_s = self.settle_s + 2.0 * self.goal.limit_s;
        let longest_s = (self.left_s() - around_s).min(MODEST_BLOCKS * self.block_s);
        let blocks = (longest_s / self.block_s).floor().max(LEAST_RUN as f64);
        let duration_s = round_to(self.settle_s + blocks * self.block_s, self.window_s);
        let trial = self.offer_on_time(&[Segment { rate_per_s, duration_s }], None)?;
        let skip = self.windows_in(self.settle_s);
        let Some(mut run) = self.stretch(&trial, rate_per_s, skip, usize::MAX) else {
            return Ok(None);
        };
        self.curve.push(run);
        if let Some(before) = self.certified.take().and(self.runs.pop()) {
            run.counts.add(&before.counts);
            run.seconds += before.seconds;
            run.at_s = before.at_s;
        }
        self.runs.push(run);
        let held = !self.starved(&trial) && self.holds(&run);
        self.certified = held.then_some(run);
        self.certified_last = held;
        let seen = self.measured(&run);
        self.tell(&Event::Certified { seen, held });
        Ok(Some(held))
    }

    /// True if this many requests failed in all runs that no rate holds a limit.
    fn fails_in_all_runs(&self) -> bool {
        let allowed = self.goal.limits.iter().map(Limit::allowed).fold(1.0, f64::min);
        let fails = |run: &Stretch| {
            let may = allowed * run.counts.scheduled as f64;
            run.counts.failed as f64 > may + 3.0 * may.sqrt()
        };
        !self.runs.is_empty() && self.runs.iter().all(fails)
    }

    /// One contiguous run. Its blocks count for the estimate whether it holds or not.
    pub(super) fn run(&mut self, rate_per_s: f64) -> Result<bool, Stop> {
        // Load that could not certify anything is not worth its time.
        if self.left_s() < self.order_s(0) + self.least_s() {
            return Err(Stop::Budget);
        }
        let known = self.runs.len();
        self.offer_runs(&[rate_per_s], self.run_blocks(), None)?;
        let Some(&run) = self.runs[known..].first() else { return Err(Stop::Budget) };
        let held = self.holds(&run);
        if held && self.certified.is_none_or(|best| best.rate_per_s < rate_per_s) {
            self.certified = Some(run);
            self.certified_last = true;
        }
        let seen = self.measured(&run);
        self.tell(&Event::Certified { seen, held });
        Ok(held)
    }
}

#[cfg(test)]
mod tests {
    use crate::seek::finding::{Finding, Verdict};
    use crate::seek::made::{Made, goal};
    use crate::seek::search::seek;

    /// A search that is too short for an interval, with time left after its first run.
    fn short(at: fn(f64) -> (f64, f64)) -> Finding {
        seek(&mut Made::new(at), &goal(36.0), &mut |_| ())
    }

    #[test]
    fn a_rate_that_a_short_search_certifies_is_offered_until_the_budget_is_over() {
        let found = short(|_| (160.0, 200.0));
        let run = found.certified.expect("a rate");
        assert_eq!((found.verdict, found.interval_per_s), (Verdict::BudgetTooSmall, None));
        assert!(run.rate_per_s < 140.0 && run.seconds > 8.0, "{run:?}");
        assert!(found.elapsed_s > 28.0, "{}", found.elapsed_s);
    }

    #[test]
    fn a_target_that_changes_after_the_first_run_of_a_short_search_is_unstable() {
        let found = short(|at_s| if at_s < 26.0 { (160.0, 200.0) } else { (80.0, 100.0) });
        let began_s = found.phases.last().map_or(0.0, |span| span.from_s);
        assert!(
            began_s < 19.0,
            "the first run began at {began_s} s and was over before the change"
        );
        assert_eq!(found.verdict, Verdict::Drifting, "{}", found.reason);
        assert!(found.certified.is_none() && found.reason.contains("slower"), "{}", found.reason);
        let faster = short(|at_s| if at_s < 26.0 { (160.0, 200.0) } else { (800.0, 1000.0) });
        assert_eq!(faster.verdict, Verdict::Drifting, "{}", faster.reason);
    }
}
