//! The rate that a target completes under overload: an upper bound of the line, and a quick sign of a change.

use super::completed::Capacity;
use super::finding::Event;
use super::plant::{Segment, Trial, Window};
use super::search::{Search, Stop, round_to};

/// The way a look at the capacity ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Overload {
    Saturated(Capacity),
    /// The target completed all that was offered, up to about this rate.
    Beyond(f64),
    /// The generator could not do it.
    Unknown,
}

/// Rates up to this many times the lowest one are low.
const LOW: f64 = 4.0;
/// The overload that is measured, over what the target completed on the way to it at most, and the least of it.
const OVER: f64 = 1.2;
const ENOUGH: f64 = 1.12;
/// Most steps to the capacity; a target that gets faster on the way takes more of them.
const OVERLOADS: usize = 16;

impl Search<'_> {
    /// Share of requests that fails at the lowest rates: what of them is not completed under overload is no sign of it.
    pub(super) fn share_that_fails(&self) -> f64 {
        let lowest = self.curve.iter().map(|seen| seen.rate_per_s).fold(f64::INFINITY, f64::min);
        let mut all = Window::default();
        let low = self.curve.iter().filter(|seen| seen.rate_per_s <= LOW * lowest);
        low.for_each(|seen| all.add(&seen.counts));
        all.failed as f64 / all.scheduled.max(1) as f64
    }

    /// A little overload: what is completed then is what the target can. It bounds the line and says how steep
    /// lateness rises towards it.
    pub(super) fn overload(&mut self) -> Result<(), Stop> {
        let limit_s = self.goal.limit_s;
        let mut rate_per_s = 1.15 * self.bracket.1;
        let short_s = round_to((3.0 * limit_s).max(1.0), self.window_s);
        let mut duration_s = short_s;
        let mut measuring = false;
        let failing = self.share_that_fails();
        self.completes_per_s = 0.0;
        for step in 0..OVERLOADS {
            rate_per_s = rate_per_s.min(self.goal.most_per_s);
            let trial = self.offer_on_time(&[Segment { rate_per_s, duration_s }], None)?;
            if self.starved(&trial) {
                return Ok(());
            }
            let skip = trial.windows.len() / 3;
            let Some(seen) = self.stretch(&trial, rate_per_s, skip, usize::MAX) else {
                // So few requests that none fell into it.
                rate_per_s *= 2.0;
                continue;
            };
            self.curve.push(seen);
            let per_s = seen.counts.completed as f64 / seen.seconds;
            if per_s <= 0.0 || rate_per_s >= self.goal.most_per_s {
                return Ok(());
            }
            self.completes_per_s = self.completes_per_s.max(per_s);
            let due = (1.0 - failing) * seen.counts.scheduled as f64;
            // The first time a few requests that are still on their way at the end are no sign.
            let chance = if measuring { 0.0 } else { seen.counts.scheduled as f64 };
            let saturated = (seen.counts.completed as f64) < 0.93 * due - chance.sqrt();
            // A target that completes less under heavy overload was hardly overloaded by what seemed enough.
            let is_enough = rate_per_s > ENOUGH * self.completes_per_s;
            if saturated && measuring && is_enough {
                let capacity = measured_capacity(per_s, &trial, skip);
                self.set_capacity(Some(capacity));
                self.looks = vec![(self.elapsed_s, capacity)];
                self.looked_s = self.elapsed_s;
                self.capacities.push((self.elapsed_s, per_s));
                self.tell(&Event::Capacity { per_s });
                return Ok(());
            }
            if !saturated && self.excess(&seen.counts) <= 1.0 && seen.counts.scheduled >= 100 {
                // What broke at a lower rate was chance: back to doubling.
                self.bracket = (rate_per_s, f64::INFINITY);
                self.ramp()?;
                rate_per_s = rate_per_s.max(self.bracket.1);
            }
            // Once it is saturated, a little more than it can is enough, and quickly worked off again, also where it got
            // faster since. Where it is still far away, the limit breaks for another reason than load.
            let more = if step < 3 || measuring { 1.5 } else { 2.0 };
            measuring = saturated;
            rate_per_s = if saturated { OVER * self.completes_per_s } else { more * rate_per_s };
            duration_s = short_s;
            if saturated {
                duration_s = round_to(self.overload_s(per_s), self.window_s);
            }
        }
        Ok(())
    }

    /// Returns the rate that the target completes under an overload of a fifth, or the rate up to which it was not saturated.
    pub(super) fn look_at_capacity(&mut self, known_per_s: f64) -> Result<Overload, Stop> {
        // A target that completes less under overload than it can would otherwise be hardly overloaded.
        let most_per_s = self.peak.map_or(self.completes_per_s, |peak| peak.per_s);
        let mut rate_per_s = OVER * known_per_s.max(most_per_s);
        for _ in 0..4 {
            let duration_s = round_to(self.overload_s(rate_per_s), self.window_s);
            let trial = self.offer_on_time(&[Segment { rate_per_s, duration_s }], None)?;
            let skip = trial.windows.len() / 3;
            let Some(seen) = self.stretch(&trial, rate_per_s, skip, usize::MAX) else {
                return Ok(Overload::Unknown);
            };
            if self.starved(&trial) {
                return Ok(Overload::Unknown);
            }
            let per_s = seen.counts.completed as f64 / seen.seconds;
            let due = (1.0 - self.share_that_fails()) * seen.counts.scheduled as f64;
            if (seen.counts.completed as f64) < 0.93 * due {
                self.capacities.push((self.elapsed_s, per_s));
                return Ok(Overload::Saturated(measured_capacity(per_s, &trial, skip)));
            }
            // It can do more than it could.
            rate_per_s = (1.4 * rate_per_s).min(self.goal.most_per_s);
        }
        Ok(Overload::Beyond(rate_per_s))
    }

    /// A thousand completions are good for 2 to 4 % of the capacity.
    pub(super) fn overload_s(&self, per_s: f64) -> f64 {
        let wanted_s = (12.0 * self.goal.limit_s).max(3.0);
        wanted_s.max((1000.0 / per_s).min(0.05 * self.goal.budget_s))
    }
}

/// Parts of an overload that its long error comes from.
const PARTS: usize = 8;

fn measured_capacity(per_s: f64, trial: &Trial, skip: usize) -> Capacity {
    let windows = &trial.windows[skip..];
    let whole = windows.len() / PARTS;
    let long = if whole > 1 { error_of(&windows[..whole * PARTS], whole) } else { 0.0 };
    let error = error_of(windows, 1);
    let completed: f64 = windows.iter().map(|window| window.completed as f64).sum();
    let long_error = long.max(error);
    Capacity { per_s, error, long_error, index: 0.5 * (long * long + error * error) * completed }
}

/// Standard error of the completions, as a share of their mean, from parts of this many windows.
fn error_of(windows: &[Window], part: usize) -> f64 {
    let sum = |part: &[Window]| part.iter().map(|w| w.completed as f64).sum::<f64>();
    let counts: Vec<f64> = windows.chunks(part).map(sum).collect();
    let n = counts.len() as f64;
    let mean = counts.iter().sum::<f64>() / n;
    let variance = counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    (variance / n).sqrt() / mean.max(1e-9)
}
