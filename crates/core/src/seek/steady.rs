//! Check that a target stays the same while it is searched.
//!
//! Its capacity under overload is known to a few percent after seconds; the line
//! takes minutes. So the capacity is measured again: after the pilot, now and then between the blocks, and before a
//! rate is certified. If it has changed, everything measured before belongs to another target, and the search starts
//! over from there. A change of the latency but not of the capacity shows in the blocks: in a trend, in a step, or in far
//! more dispersion than the backlog of a queue has.

use super::capacity::Overload;
use super::completed::Capacity;
use super::finding::{Change, Event};
use super::search::{Search, Stop};
use crate::normal;

/// A capacity that differs by this many standard errors, and by this share, is another one.
const ERRORS: f64 = 3.5;
const SHARE: f64 = 0.06;
/// Two measurements of a warm target are no further apart than this, unless their errors are; and until when it may warm,
/// as a share of the budget.
const WARM: f64 = 0.05;
const WARM_UNTIL: f64 = 0.3;
/// Unevenness of the completions from which tails are heavy, and how much larger the capacity's error is then.
pub(super) const HEAVY: f64 = 2.0;
const HEAVY_ERROR: f64 = 1.4;
/// From one look at the capacity to the next, as a share of the budget.
pub(super) const LOOK_EVERY: f64 = 0.18;
/// A target that has changed more often than this has no line of its own.
const CHANGES: usize = 2;
/// Looks at the capacity that are judged together at least; the share of itself by which it may wobble from one to the
/// next without a meaning; and the share of stationary searches that either test of them may call changed.
const LOOKS: usize = 3;
const WOBBLE: f64 = 0.015;
const LOOK_LEVEL: f64 = 0.005;
/// Standard deviations that a trend of the residuals must have.
const TREND: f64 = 3.0;
/// Share of stationary searches that the test for a step may call changed.
const STEP_LEVEL: f64 = 0.003;
/// Share of the blocks before a step and after it, at least.
const PART_OF_STEP: f64 = 0.125;
/// Dispersion of the blocks over that of theory which no queue has.
const RESTLESS: f64 = 6.0;
/// Blocks that the tests need.
pub(super) const LEAST: usize = 10;

impl Search<'_> {
    /// A target that compiles, fills its caches or adds servers does so under load, and not at the low load of the warm-up:
    /// its capacity under overload is measured until it stays the same.
    pub(super) fn warm_near_capacity(&mut self) -> Result<(), Stop> {
        let first = self.capacity.map(|capacity| (self.looked_s, capacity));
        let mut warmed = false;
        while let Some(before) = self.capacity.filter(|_| !self.non_monotone) {
            let after = match self.look_at_capacity(before.per_s)? {
                Overload::Saturated(after) => after,
                Overload::Beyond(per_s) => {
                    self.look_beyond(per_s)?;
                    warmed = true;
                    continue;
                }
                Overload::Unknown => break,
            };
            self.looked_s = self.elapsed_s;
            let apart = (after.per_s / before.per_s).ln().abs();
            if apart < WARM.max(2.0 * before.error.hypot(after.error)) {
                self.looks.push((self.elapsed_s, after));
                break;
            }
            self.looks = vec![(self.elapsed_s, after)];
            self.change_to(after);
            self.tell(&Event::Capacity { per_s: after.per_s });
            warmed = true;
            if self.elapsed_s > WARM_UNTIL * self.goal.budget_s {
                break;
            }
        }
        if let (true, Some(capacity), Some((from_s, first))) = (warmed, self.capacity, first) {
            // What broke a limit on the way did so while it was cold.
            self.bracket = (0.5 * capacity.per_s, capacity.per_s * (1.0 + capacity.error));
            self.curve.clear();
            self.holds_at_per_s = None;
            self.since_s = self.elapsed_s;
            if self.is_another(first, capacity) {
                self.note_change(from_s, first.per_s, capacity.per_s);
                self.warmed = self.changes.len();
            }
        }
        Ok(())
    }

    fn note_change(&mut self, from_s: f64, before_per_s: f64, after_per_s: f64) {
        let change = Change { from_s, until_s: self.elapsed_s, before_per_s, after_per_s };
        self.changes.push(change);
        self.tell(&Event::Changed(change));
    }

    /// Measures the capacity of a target that completed all that was offered, up to this rate.
    fn look_beyond(&mut self, per_s: f64) -> Result<(), Stop> {
        self.set_capacity(None);
        self.bracket = (0.5 * per_s, f64::INFINITY);
        self.ramp()?;
        self.overload()
    }

    /// Measures the capacity again if that is due. Starts over when it has changed.
    ///
    /// Returns whether the search has started over.
    pub(super) fn look_again(&mut self, now: bool) -> Result<bool, Stop> {
        let Some(before) = self.capacity else { return Ok(false) };
        if !now && self.elapsed_s < self.looked_s + LOOK_EVERY * self.goal.budget_s {
            return Ok(false);
        }
        let from_s = self.looked_s;
        let after = match self.look_at_capacity(before.per_s)? {
            Overload::Saturated(after) if !self.is_another(before, after) => {
                // Both are of the same target. The first one stays: the interval's constants were chosen for one measurement.
                self.looked_s = self.elapsed_s;
                self.looks.push((self.elapsed_s, after));
                return Ok(false);
            }
            Overload::Unknown => return Ok(false),
            other => other,
        };
        self.start_again(from_s, before, after).map(|()| true)
    }

    /// Starts over with a target that completes another rate under overload than before.
    pub(super) fn start_again(
        &mut self,
        from_s: f64,
        before: Capacity,
        after: Overload,
    ) -> Result<(), Stop> {
        self.looked_s = self.elapsed_s;
        self.forget_all();
        let began = match after {
            Overload::Saturated(after) => {
                self.change_to(after);
                self.looks = vec![(self.elapsed_s, after)];
                self.note_change(from_s, before.per_s, after.per_s);
                Ok(())
            }
            Overload::Beyond(per_s) => self.look_beyond(per_s).map(|()| {
                let after_per_s = self.capacity.map_or(per_s, |capacity| capacity.per_s);
                self.note_change(from_s, before.per_s, after_per_s);
            }),
            Overload::Unknown => Ok(()),
        };
        if self.changes.len() - self.warmed > CHANGES || self.came_back() {
            return Err(Stop::Unstable);
        }
        match began.and_then(|()| self.begin_again()) {
            Err(Stop::Budget) => Err(Stop::Unstable),
            other => other,
        }
    }

    /// Looks at the capacity once more. A target that changed ends the search: there is no time to find the line of another one.
    pub(super) fn look_for_a_change(&mut self) -> Result<(), Stop> {
        let Some(before) = self.capacity else { return Ok(()) };
        let from_s = self.looked_s;
        let after_per_s = match self.look_at_capacity(before.per_s)? {
            Overload::Saturated(after) => {
                self.looks.push((self.elapsed_s, after));
                if !self.is_another(before, after) {
                    self.looked_s = self.elapsed_s;
                    return Ok(());
                }
                after.per_s
            }
            Overload::Beyond(per_s) => per_s,
            Overload::Unknown => return Ok(()),
        };
        self.note_change(from_s, before.per_s, after_per_s);
        Err(Stop::Unstable)
    }

    /// Forgets what another target showed.
    fn forget_all(&mut self) {
        self.blocks.clear();
        self.runs.clear();
        self.curve.clear();
        self.fit = None;
        self.certified = None;
        self.width_reached = false;
        self.holds_at_per_s = None;
        self.since_s = self.elapsed_s;
    }

    /// Looks for the bracket of a target that has changed.
    fn begin_again(&mut self) -> Result<(), Stop> {
        if let Some(capacity) = self.capacity {
            self.bracket = (0.5 * capacity.per_s, capacity.per_s * (1.0 + capacity.error));
        }
        self.narrow().and_then(|()| self.pilot())
    }

    /// True if the last change undid part of the one before: what comes and goes is no state to search in.
    fn came_back(&self) -> bool {
        let faster = |change: &Change| change.after_per_s > change.before_per_s;
        self.changes[self.warmed..].windows(2).any(|pair| faster(&pair[0]) != faster(&pair[1]))
    }

    /// True if two capacities are of different targets. With heavy tails a look at the capacity misses most of the long
    /// services, and is less exact than its own parts say.
    pub(super) fn is_another(&self, before: Capacity, after: Capacity) -> bool {
        if self.unevenness_of_completions().max(after.index) <= HEAVY {
            return differs(before, after);
        }
        let exact = |c: Capacity| Capacity { error: HEAVY_ERROR * c.error.max(c.long_error), ..c };
        differs(exact(before), exact(after))
    }

    /// Looks at the capacity: when, s, logarithm, and its standard error.
    pub(super) fn logs_of_looks(&self) -> Vec<(f64, f64, f64)> {
        let squares: f64 = self.looks.iter().map(|(_, look)| look.long_error.powi(2)).sum();
        let usual = (squares / self.looks.len().max(1) as f64).sqrt();
        let times = if self.unevenness_of_completions() > HEAVY { HEAVY_ERROR } else { 1.0 };
        let log = |(at_s, look): &(f64, Capacity)| {
            (*at_s, look.per_s.ln(), (times * look.error.max(usual)).hypot(WOBBLE))
        };
        self.looks.iter().map(log).collect()
    }

    /// Returns the evidence of all looks at the capacity against a target that stayed the same, in words.
    pub(super) fn capacity_moved(&self) -> Option<String> {
        let looks = self.logs_of_looks();
        if looks.len() < LOOKS {
            return None;
        }
        let (trend, uneven) = moved(&looks);
        let limit = normal::quantile(1.0 - LOOK_LEVEL / 2.0);
        let list: Vec<String> =
            self.looks.iter().map(|(_, look)| format!("{:.0}", look.per_s)).collect();
        let list = list.join(", ");
        if trend.abs() > limit {
            let how = if trend < 0.0 { "slower" } else { "faster" };
            return Some(format!(
                "the target became {how} while it was measured: under overload it completed {list}/s"
            ));
        }
        (uneven > limit).then(|| {
            format!(
                "the target was alternately faster and slower: under overload it completed {list}/s"
            )
        })
    }

    /// Evidence of the blocks against a stationary target, in words.
    pub(super) fn unsteadiness(&self) -> Option<String> {
        if let Some(moved) = self.capacity_moved() {
            return Some(moved);
        }
        let residuals = self.residuals();
        if residuals.len() < LEAST {
            return None;
        }
        let trend = trend(&residuals);
        let how = |slower: bool| if slower { "slower" } else { "faster" };
        if trend.abs() > TREND {
            return Some(format!(
                "the target became {} while it was measured ({:.1} standard deviations); warm it up longer, or find \
                 the cause",
                how(trend > 0.0),
                trend.abs()
            ));
        }
        let (at_s, step) = step(&residuals);
        if step.abs() > step_limit(residuals.len()) {
            return Some(format!(
                "the target was {} from {at_s:.0} s on ({:.1} standard deviations)",
                how(step > 0.0),
                step.abs()
            ));
        }
        self.restless()
    }

    fn restless(&self) -> Option<String> {
        let (fit, limit) = self.fit?;
        let theory = self.prior(limit, fit.estimate_per_s).dispersion.0.max(1.0);
        let own = self.residual_dispersion() / theory;
        (own > RESTLESS).then(|| {
            format!(
                "late requests came in bursts {own:.0} times as uneven as a queue makes them: something takes the \
                 target's time now and then (compaction, collection of garbage, a neighbour)"
            )
        })
    }
}

pub(super) fn differs(before: Capacity, after: Capacity) -> bool {
    let apart = (after.per_s / before.per_s).ln().abs();
    apart > SHARE.max(ERRORS * before.error.hypot(after.error))
}

/// Trend of looks (when, s, logarithm, standard error) over time, in standard deviations, and how uneven they are, as a
/// standard normal variable by Wilson's and Hilferty's cube root.
fn moved(looks: &[(f64, f64, f64)]) -> (f64, f64) {
    let weight = |error: f64| error.powi(-2);
    let all: f64 = looks.iter().map(|l| weight(l.2)).sum();
    let when = looks.iter().map(|l| weight(l.2) * l.0).sum::<f64>() / all;
    let mean = looks.iter().map(|l| weight(l.2) * l.1).sum::<f64>() / all;
    let (mut cross, mut square, mut uneven) = (0.0, 0.0, 0.0);
    for (at_s, log, error) in looks {
        cross += weight(*error) * (at_s - when) * (log - mean);
        square += weight(*error) * (at_s - when).powi(2);
        uneven += weight(*error) * (log - mean).powi(2);
    }
    let freedom = looks.len() as f64 - 1.0;
    let share = 2.0 / (9.0 * freedom);
    let normal = ((uneven / freedom).cbrt() - (1.0 - share)) / share.sqrt();
    (cross / square.max(1e-9).sqrt(), normal)
}

/// The mean of two measurements by their precision.
pub(super) fn together(one: Capacity, other: Capacity) -> Capacity {
    let (w, v) = (one.error.max(1e-4).powi(-2), other.error.max(1e-4).powi(-2));
    Capacity {
        per_s: (w * one.per_s + v * other.per_s) / (w + v),
        error: (w + v).powf(-0.5),
        long_error: one.long_error.hypot(other.long_error) / 2.0,
        index: (one.index + other.index) / 2.0,
    }
}

/// Correlation of residuals with time, in standard deviations; positive is slower.
fn trend(residuals: &[(f64, f64)]) -> f64 {
    let n = residuals.len() as f64;
    let middle = residuals.iter().map(|r| r.0).sum::<f64>() / n;
    let mean = residuals.iter().map(|r| r.1).sum::<f64>() / n;
    let (mut cross, mut square) = (0.0, 0.0);
    for (at, residual) in residuals {
        cross += (at - middle) * (residual - mean);
        square += (at - middle).powi(2);
    }
    cross / square.max(1e-9).sqrt()
}

/// The split at which the means of residuals differ most: when, s, and by how many standard deviations. Neither part is so
/// small that one burst, which several blocks share, is the half of it.
fn step(residuals: &[(f64, f64)]) -> (f64, f64) {
    let n = residuals.len();
    let all: f64 = residuals.iter().map(|r| r.1).sum();
    let (mut sum, mut best) = (0.0, (0.0, 0.0f64));
    let least = (PART_OF_STEP * n as f64).max(4.0);
    for at in 1..n {
        sum += residuals[at - 1].1;
        let (left, right) = (at as f64, (n - at) as f64);
        if left < least || right < least {
            continue;
        }
        let apart = (all - sum) / right - sum / left;
        let step = apart / (1.0 / left + 1.0 / right).sqrt();
        if step.abs() > best.1.abs() {
            best = (residuals[at].0, step);
        }
    }
    best
}

/// Bound on the largest of all splits, by Bonferroni over about as many independent ones as n has doublings.
fn step_limit(n: usize) -> f64 {
    let splits = 2.0 * (n as f64).log2();
    normal::quantile(1.0 - STEP_LEVEL / (2.0 * splits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capacity_is_another_one_when_errors_do_not_explain_it() {
        let of = Capacity::of;
        assert!(differs(of(200.0, 0.02), of(150.0, 0.02)));
        assert!(!differs(of(200.0, 0.02), of(190.0, 0.02)), "five percent");
        assert!(!differs(of(200.0, 0.06), of(160.0, 0.06)), "as sure as that it is not");
    }

    #[test]
    fn a_step_and_a_trend_are_found_where_they_are() {
        let noise = [0.3, -0.5, 0.9, -0.2, 0.1, -0.8, 0.4, 0.2];
        let series = |shift: &dyn Fn(usize) -> f64| -> Vec<(f64, f64)> {
            (0..24).map(|i| (10.0 * i as f64, noise[i % 8] + shift(i))).collect()
        };
        let flat = series(&|_| 0.0);
        assert!(step(&flat).1.abs() < 2.0 && trend(&flat).abs() < 2.0);
        let stepped = series(&|i| if i >= 12 { 3.0 } else { 0.0 });
        let (at_s, by) = step(&stepped);
        assert!((at_s - 120.0).abs() < 21.0 && by > step_limit(24), "{at_s} {by}");
        assert!(trend(&series(&|i| -0.3 * i as f64)) < -TREND);
    }

    #[test]
    fn one_burst_in_the_last_of_many_blocks_is_no_step() {
        let blocks = |count: usize, from: usize| -> Vec<(f64, f64)> {
            (0..count).map(|i| (5.0 * i as f64, if i >= from { 3.0 } else { -0.1 })).collect()
        };
        // A burst of a heavy tail fills the last four of 150 blocks.
        assert!(step(&blocks(150, 146)).1.abs() < step_limit(150));
        // A target that is slower for the last fifth of the time is another one.
        assert!(step(&blocks(150, 120)).1 > step_limit(150));
    }
}
