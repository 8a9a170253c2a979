//! Blocks around the line and capacity probes that a followed target is offered, and the conclusions from both.

use super::bracket::Look;
use super::capacity::Overload;
use super::completed::Capacity;
use super::finding::{Change, Event, Phase};
use super::fit::Fit;
use super::focus::{LEAST_BACKLOGS, LEAST_BLOCKS};
use super::goal::Limit;
use super::plant::{Abort, Window};
use super::search::{Search, Stop, Stretch};
use super::steady::{differs, together};
use crate::normal;

/// Standard errors between the lines of a stretch and of those before it that make it another state.
const ERRORS: f64 = 3.5;
/// Numbers of last stretches that are compared with those before.
const LAST: [usize; 4] = [1, 2, 4, 8];
/// Share of requests that are late where all are, and for how many natural times of the backlog they must be.
const ALL_LATE: f64 = 0.9;
const LATE_BACKLOGS: f64 = 8.0;
const LATE_BLOCKS: (f64, f64) = (3.0, 6.0);
/// A stretch with a share of late requests this far from what is allowed is not near the line.
const FAR: (f64, f64) = (0.1, 4.0);
/// Ratio of rates on the way to a line that is nowhere near, and most steps.
const RATIO: f64 = 1.6;
const STEPS: usize = 24;
/// Rates well below a line, and how many requests there may miss a limit before they are compared with the line.
const BELOW: f64 = 0.85;
const LATE_BELOW: f64 = 5.0;
/// A line below this share of the capacity is not believed without requests that were in time below it.
const LOW: f64 = 0.5;
/// No line is looked for this far below where it was.
const FAR_BELOW: f64 = 0.01;
/// A state is known by its newest blocks, and the curve by its newest looks.
const BLOCKS_MAX: usize = 600;
const CURVE_MAX: usize = 2_000;

/// Knowledge of the line when a stretch begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Known {
    /// Blocks near it, or nothing but a rate to offer them at.
    Near(f64),
    /// Capacity of the target, and a rate below the line.
    Capacity(Capacity, f64),
    /// A rate at which to look for it.
    Lost(f64),
}

/// The way a stretch came out.
pub(super) enum Shown {
    Same,
    /// Of another state, of which only what was measured from this time on is kept.
    Changed {
        next: Known,
        keep_from_s: f64,
        note: String,
    },
}

impl Search<'_> {
    pub(super) fn before_the_first(&mut self) -> Result<(), Stop> {
        self.enter(Some(Phase::WarmUp));
        self.warm_up()?;
        self.enter(Some(Phase::Ramp));
        self.ramp()?;
        self.enter(Some(Phase::Capacity));
        self.overload()?;
        self.enter(Some(Phase::Bracket));
        self.narrow()?;
        self.look_below()?;
        self.enter(Some(Phase::Pilot));
        self.pilot()
    }

    /// The rate that blocks were last offered around.
    pub(super) fn center(&self) -> f64 {
        self.bracket.0 / 0.8
    }

    /// Finds the line again, roughly, and returns a rate to offer blocks around.
    pub(super) fn near(&mut self, known: Known) -> Result<f64, Stop> {
        match known {
            Known::Near(center) => return Ok(center),
            Known::Capacity(capacity, low) => {
                self.bracket = (low, capacity.per_s * (1.0 + capacity.error));
                self.change_to(capacity);
            }
            Known::Lost(rate) => {
                self.set_capacity(None);
                self.bracket_from(rate)?;
                self.overload()?;
            }
        }
        self.narrow()?;
        self.look_below()?;
        self.pilot()?;
        Ok(self.center())
    }

    /// Moves by a factor until one rate holds and the next one does not.
    fn bracket_from(&mut self, rate_per_s: f64) -> Result<(), Stop> {
        self.bracket = (0.0, f64::INFINITY);
        let (limit_s, most) = (self.goal.limit_s, self.goal.most_per_s);
        for _ in 0..STEPS {
            let (low, high) = self.bracket;
            let rate = match (low > 0.0, high.is_finite()) {
                (true, true) => return Ok(()),
                (true, false) if low >= most => return Err(Stop::NeverViolated),
                (true, false) => (RATIO * low).min(most),
                (false, true) if high < FAR_BELOW * rate_per_s => return Err(Stop::Infeasible),
                (false, true) => high / RATIO,
                (false, false) => rate_per_s.min(most),
            };
            match self.look(rate, limit_s, self.step_s(rate), true)? {
                Look::Held => self.bracket.0 = rate,
                Look::Broke => self.bracket.1 = rate,
                Look::Starved => return Err(Stop::GeneratorLimited),
            }
        }
        Err(Stop::Infeasible)
    }

    /// Blocks on either side of the line in the next stretch; nothing if there is no time for one.
    fn next_half(&self) -> Option<usize> {
        let look_s = self.capacity.map_or(0.0, |c| 1.5 * self.overload_s(c.per_s));
        let spent_s = self.order_s(0) + look_s;
        let wanted = (self.least_near_s() / self.block_s).ceil().max(LEAST_BLOCKS as f64);
        let stretches = (self.left_s() / (spent_s + wanted * self.block_s)).floor().max(1.0);
        let half = (self.left_s() / stretches - spent_s) / (2.0 * self.block_s);
        (half >= 1.0).then_some(half as usize)
    }

    /// Load near the line that an interval needs, s.
    fn least_near_s(&self) -> f64 {
        let backlogs_s = self
            .fit
            .map_or(0.0, |(fit, limit)| LEAST_BACKLOGS * self.backlog_s(limit, fit.estimate_per_s));
        backlogs_s.max(LEAST_BLOCKS as f64 * self.block_s)
    }

    /// Reason why a line may be none: at rates well below it a limit is broken as well, or may be.
    pub(super) fn late_below(&self, line_per_s: f64) -> Option<String> {
        let mut all = Window::default();
        let below = self.curve.iter().filter(|seen| seen.rate_per_s < BELOW * line_per_s);
        below.for_each(|seen| all.add(&seen.counts));
        let broken = self.goal.limits.iter().enumerate().find(|(at, limit)| {
            let (n, late, allowed) = limit.as_share(*at, &all);
            allowed * n >= LATE_BELOW && late > allowed * n
        });
        if let Some((_, limit)) = broken {
            return Some(format!(
                "no interval: {} was also missed at rates well below the line",
                limit.label
            ));
        }
        // Far below capacity no theory says that lateness comes from load.
        let is_low = self.bound().is_none_or(|capacity| line_per_s < LOW * capacity.per_s);
        (is_low && !self.holds_below(line_per_s)).then(|| {
            "no interval: too few requests at rates well below the line to show that the limits hold there".to_owned()
        })
    }

    pub(super) fn what_it_takes(&self) -> String {
        let seconds = self.blocks.iter().fold(0.0, |all, block| all + block.seconds);
        format!(
            "no interval: it needs {:.0} s of load near the line while the target does not change, and there were {seconds:.0} s",
            self.least_near_s().max(self.least_bursts_s())
        )
    }

    /// Blocks around `center` and a look at the capacity. Nothing if there is no time for them.
    pub(super) fn offer_stretch(
        &mut self,
        center: f64,
        starts: &[f64],
    ) -> Result<Option<Shown>, Stop> {
        let Some(half) = self.next_half() else { return Ok(None) };
        let found = self.fit.map(|(fit, _)| fit);
        let rates = match found {
            Some(fit) => {
                let step = (0.4 / fit.slope).min(fit.half_width().max(0.2 / fit.slope));
                let step = step.clamp(0.003, 0.05);
                [center * (-step).exp(), (center * step.exp()).max(self.beyond(&fit))]
            }
            None => [0.95 * center, 1.05 * center],
        };
        let kept = self.offer_runs(&rates, half, Some(self.nearly_all_late(center)))?;
        let known = self.capacity;
        let after = match known {
            Some(before) => match self.look_at_capacity(before.per_s)? {
                Overload::Saturated(after) => Some(after),
                Overload::Beyond(rate) => return Ok(Some(far_faster(before, rate))),
                Overload::Unknown => None,
            },
            None => None,
        };
        if let Some((before, after)) = known.zip(after) {
            if differs(before, after) {
                let ratio =
                    found.map_or(0.5, |fit| (0.8 * fit.estimate_per_s / before.per_s).min(0.5));
                let how = if after.per_s > before.per_s { "faster" } else { "slower" };
                let note = format!(
                    "the target became {how}: it completes {:.0}/s under overload, before {:.0}/s",
                    after.per_s, before.per_s
                );
                self.change_to(after);
                return Ok(Some(over(Known::Capacity(after, ratio * after.per_s), note)));
            }
            self.capacity = Some(together(before, after));
        }
        if !kept {
            let note = "nearly all requests were late at the rate of the line".to_owned();
            return Ok(Some(over(Known::Lost(center / RATIO), note)));
        }
        Ok(Some(self.judge(starts, center)))
    }

    /// Judges whether the blocks of the last stretches are of the same state as those before; if so, all of them are
    /// fitted. `starts` has the beginnings of the state's stretches, s.
    fn judge(&mut self, starts: &[f64], center: f64) -> Shown {
        let limit = self.fit.map_or(0, |(_, limit)| limit);
        self.estimate(center);
        let clamped = |fit: &Fit| fit.estimate_per_s.clamp(0.94 * center, 1.12 * center);
        for back in LAST.into_iter().filter(|back| *back < starts.len()) {
            let from_s = starts[starts.len() - back];
            let at = self.blocks.partition_point(|block| block.at_s < from_s);
            let (before, own) = self.blocks.split_at(at);
            if before.len() < LEAST_BLOCKS || own.is_empty() {
                continue;
            }
            let before = self.fit_of(before, limit, center);
            let own = self.fit_of(own, limit, center);
            if !self.are_apart(&before, &own) {
                continue;
            }
            let note = format!(
                "the line moved without the capacity: {:.1}/s, before {:.1}/s",
                own.estimate_per_s, before.estimate_per_s
            );
            let near = clamped(&own);
            return match self.is_far() {
                true => over(Known::Lost(near), note),
                false => {
                    // The change may have come within the first of these stretches: its blocks may be of either state.
                    let next_s = starts.get(starts.len() - back + 1).copied();
                    let keep_from_s = next_s.unwrap_or(f64::INFINITY);
                    Shown::Changed { next: Known::Near(near), keep_from_s, note }
                }
            };
        }
        let near = self.fit.map_or(center, |(fit, _)| clamped(&fit));
        self.bracket = (0.8 * near, 1.25 * near);
        self.keep_the_newest();
        Shown::Same
    }

    /// Returns true if hardly any request was late in the last order, or nearly all.
    fn is_far(&self) -> bool {
        let runs = &self.runs[self.runs.len().saturating_sub(2)..];
        let excess = |at: usize| runs.get(at).map_or(1.0, |run| self.excess(&run.counts));
        excess(1) < FAR.0 || excess(0) > FAR.1
    }

    fn are_apart(&self, before: &Fit, own: &Fit) -> bool {
        let deviations = normal::quantile(0.5 + self.goal.confidence / 2.0);
        let error = before.half_width().hypot(own.half_width()) / deviations;
        let apart = (own.estimate_per_s / before.estimate_per_s).ln().abs();
        before.is_known() && own.is_known() && apart > ERRORS * error
    }

    fn keep_the_newest(&mut self) {
        let old = |kept: &Vec<Stretch>, most: usize| kept.len().saturating_sub(most);
        self.blocks.drain(..old(&self.blocks, BLOCKS_MAX));
        self.runs.drain(..old(&self.runs, BLOCKS_MAX));
        self.curve.drain(..old(&self.curve, CURVE_MAX));
    }

    /// Condition that ends an order early: nearly all requests are late, and for longer than a backlog that comes and goes.
    fn nearly_all_late(&self, center: f64) -> Abort {
        let strictest = self.goal.limits.iter().map(Limit::allowed).fold(1.0, f64::min);
        let backlog_s = self.fit.map_or(self.block_s, |(_, limit)| self.backlog_s(limit, center));
        let least_s = LATE_BLOCKS.0 * self.block_s;
        let late_s = (LATE_BACKLOGS * backlog_s).clamp(least_s, LATE_BLOCKS.1 * self.block_s);
        let late = center * late_s;
        Abort { excess: ALL_LATE / strictest, late_min: late.max(100.0) as u64 }
    }

    /// Forgets what a state showed that is over.
    pub(super) fn forget(
        &mut self,
        (from_s, keep_from_s): (f64, f64),
        before: Option<Capacity>,
        next: Known,
    ) {
        if let (Some(before), Known::Capacity(after, _)) = (before, next) {
            let change = Change {
                from_s,
                until_s: self.elapsed_s,
                before_per_s: before.per_s,
                after_per_s: after.per_s,
            };
            self.changes.push(change);
            self.tell(&Event::Changed(change));
        }
        self.blocks.retain(|block| block.at_s >= keep_from_s);
        self.runs.retain(|run| run.at_s >= keep_from_s);
        self.curve.retain(|seen| seen.at_s >= keep_from_s);
        self.fit = None;
        self.since_s = self.elapsed_s.min(keep_from_s);
        if let Known::Near(center) = next {
            self.bracket = (0.8 * center, 1.25 * center);
            self.estimate(center);
        }
    }
}

/// A state of which nothing is kept is over.
pub(super) fn over(next: Known, note: String) -> Shown {
    Shown::Changed { next, keep_from_s: f64::INFINITY, note }
}

/// Overload that was none: what was known of the target says nothing any more.
fn far_faster(before: Capacity, rate_per_s: f64) -> Shown {
    let note = format!(
        "the target became faster: it completes more than {rate_per_s:.0}/s, before {:.0}/s",
        before.per_s
    );
    over(Known::Lost(rate_per_s), note)
}

#[cfg(test)]
mod tests;
