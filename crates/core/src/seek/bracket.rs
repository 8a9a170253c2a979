//! From nothing known to a rate that holds and one that does not, not far apart.

use super::finding::Event;
use super::goal::Limit;
use super::plant::{Abort, Segment, Window};
use super::search::{Search, Stop, Stretch, round_to};

/// Share of what a limit allows: a run with less is not one that holds by chance, and no second one is needed.
const WELL_WITHIN: f64 = 0.1;

/// The way a short look ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    Held,
    Broke,
    /// The generator could not do it.
    Starved,
}

/// The ratio at which short looks stop: nearer to each other they say nothing.
const NARROW: f64 = 1.15;
/// A rate that broke a limit is asked again at once where the target can do this many times as much.
const COLD: f64 = 0.4;
/// Length of the wait for the last replies of a look, in time limits.
const DRAIN: f64 = 2.0;

impl Search<'_> {
    /// Low load until the response times of its second half are no longer below those of its first.
    pub(super) fn warm_up(&mut self) -> Result<(), Stop> {
        let rate_per_s = self.goal.start_per_s.min(self.goal.most_per_s);
        let length_s =
            (8.0 * self.goal.limit_s).max(2.0).max(20.0 / rate_per_s).max(4.0 * self.window_s);
        let duration_s = round_to(length_s, self.window_s);
        loop {
            let trial = self.offer(&[Segment { rate_per_s, duration_s }], None)?;
            let all = self.stretch(&trial, rate_per_s, 0, usize::MAX);
            if let Some(all) = all {
                self.curve.push(all);
                self.note_floor(&all);
            }
            let means: Vec<f64> = trial
                .windows
                .iter()
                .filter(|w| w.scheduled > 0)
                .map(|w| w.response_sum_s / w.scheduled as f64)
                .collect();
            if !falls(&means) || self.elapsed_s > 0.2 * self.goal.budget_s {
                return Ok(());
            }
        }
    }

    pub(super) fn note_floor(&mut self, stretch: &Stretch) {
        let mean_s = stretch.counts.response_sum_s / stretch.counts.scheduled.max(1) as f64;
        if stretch.counts.scheduled >= 10 && stretch.counts.failed < stretch.counts.scheduled {
            self.floor_s = self.floor_s.min(mean_s);
        }
    }

    /// A short look at one rate. Looks longer while it breaks a limit by a few requests only; with `doubt`, what
    /// chance may well have done to independent requests does not break it.
    pub(super) fn look(
        &mut self,
        rate_per_s: f64,
        settle_s: f64,
        duration_s: f64,
        doubt: bool,
    ) -> Result<Look, Stop> {
        let mut sum: Option<Stretch> = None;
        let mut length_s = duration_s;
        let mut look = Look::Held;
        for _ in 0..3 {
            let whole_s = round_to(settle_s + length_s, self.window_s);
            let segments = [Segment { rate_per_s, duration_s: whole_s }];
            let trial = self.offer_on_time(&segments, Some(Abort { excess: 3.0, late_min: 20 }))?;
            if self.starved(&trial) {
                self.starved_at_per_s = self.starved_at_per_s.min(rate_per_s);
                look = Look::Starved;
            }
            let skip = if trial.aborted { 0 } else { self.windows_in(settle_s) };
            if let Some(new) = self.stretch(&trial, rate_per_s, skip, usize::MAX) {
                match &mut sum {
                    Some(sum) => {
                        sum.counts.add(&new.counts);
                        sum.seconds += new.seconds;
                    }
                    None => sum = Some(new),
                }
            }
            if trial.aborted || look == Look::Starved {
                look = if look == Look::Starved { look } else { Look::Broke };
                break;
            }
            let Some(seen) = &sum else { break };
            let broke = self.excess(&seen.counts) > 1.0 && (!doubt || self.surely_breaks(seen));
            look = if broke { Look::Broke } else { Look::Held };
            let late = seen.counts.late.iter().copied().max().unwrap_or(0);
            if look == Look::Held || late >= 12 {
                break;
            }
            length_s *= 2.0;
        }
        if let Some(seen) = sum {
            self.curve.push(seen);
            self.note_floor(&seen);
            let seen = self.measured(&seen);
            self.tell(&Event::Probed { seen, held: look == Look::Held });
        }
        Ok(look)
    }

    /// Returns true if more requests missed a limit than two standard deviations of independent ones explain.
    fn surely_breaks(&self, seen: &Stretch) -> bool {
        self.breaks_by(seen, 2.0)
    }

    pub(super) fn step_s(&self, rate_per_s: f64) -> f64 {
        let requests_s = (30.0 / rate_per_s).min(self.goal.budget_s / 30.0);
        (4.0 * self.goal.limit_s).max(1.0).max(requests_s)
    }

    /// Doubles the rate until a limit breaks; goes down first if the first rate breaks one already.
    pub(super) fn ramp(&mut self) -> Result<(), Stop> {
        let most = self.goal.most_per_s;
        // Fewer requests than this in a step say nothing.
        let least = (30.0 / (0.05 * self.goal.budget_s)).min(0.5 * self.goal.start_per_s);
        let mut rate = self.goal.start_per_s.min(most);
        let mut broken = f64::INFINITY;
        while self.bracket.0 <= 0.0 {
            match self.look(rate, 0.0, self.step_s(rate), true)? {
                Look::Held => self.bracket.0 = rate,
                Look::Starved => return Err(Stop::GeneratorLimited),
                Look::Broke => {
                    broken = broken.min(rate);
                    rate /= 4.0;
                    if rate < least {
                        match self.above_a_bad_beginning() {
                            Ok(above) => {
                                rate = above;
                                self.bracket.0 = rate;
                            }
                            Err(Stop::Infeasible) if self.heat()? => {
                                rate = self.goal.start_per_s.min(most);
                                broken = f64::INFINITY;
                            }
                            Err(stop) => return Err(stop),
                        }
                    }
                }
            }
        }
        if broken > rate && broken.is_finite() {
            // The line is between the two, no need to double.
            self.bracket.1 = broken;
        }
        while self.bracket.1.is_infinite() {
            if self.bracket.0 >= most {
                self.judge_the_highest()?;
                continue;
            }
            let next = (2.0 * self.bracket.0).min(most);
            match self.look(next, 0.0, self.step_s(next), true)? {
                Look::Held => self.bracket.0 = next,
                Look::Broke => self.bracket.1 = next,
                Look::Starved => return self.narrow_below_starvation(next),
            }
        }
        self.tell_bracket();
        Ok(())
    }

    /// A look held at the highest rate allowed, which chance may do: a run says whether the limits hold there. If one breaks, the
    /// line is below.
    fn judge_the_highest(&mut self) -> Result<(), Stop> {
        let most = self.goal.most_per_s;
        let mut held = 0;
        loop {
            held += u32::from(self.run(most)?);
            let excess = self.runs.last().map_or(1.0, |run| self.excess(&run.counts));
            if held == 2 || (held == 1 && excess < WELL_WITHIN) {
                return Err(Stop::NeverViolated);
            }
            if excess > 1.0 {
                break;
            }
        }
        self.certified = None;
        let mut below = most / 2.0;
        while self.look(below, 0.0, self.step_s(below), true)? != Look::Held {
            below /= 2.0;
        }
        self.bracket = (below, most);
        Ok(())
    }

    /// No low rate holds: a target that is still cold may, once it has been under load. Says whether it was.
    fn heat(&mut self) -> Result<bool, Stop> {
        if std::mem::replace(&mut self.heated, true) || self.fails_too_often() {
            return Ok(false);
        }
        self.bracket = (0.0, self.goal.start_per_s);
        self.overload()?;
        self.warm_near_capacity()?;
        // It may have become warm before its capacity was measured first.
        let is_loaded = self.capacity.is_some() || self.bracket.0 > 0.0;
        self.set_capacity(None);
        if self.bracket.0 <= 0.0 || self.bracket.1.is_infinite() {
            self.bracket = (0.0, f64::INFINITY);
        }
        if is_loaded {
            self.curve.clear();
            self.since_s = self.elapsed_s;
        }
        Ok(is_loaded)
    }

    /// Returns true if failures alone break a limit at all rates so far: load is no remedy for those.
    fn fails_too_often(&self) -> bool {
        let mut all = Window::default();
        self.curve.iter().for_each(|seen| all.add(&seen.counts));
        let allowed = self.goal.limits.iter().map(Limit::allowed).fold(1.0, f64::min);
        all.failed as f64 > allowed * all.scheduled as f64
    }

    fn tell_bracket(&mut self) {
        let (low_per_s, high_per_s) = self.bracket;
        self.tell(&Event::Bracket { low_per_s, high_per_s });
    }

    /// No low rate holds. A target that collects work before it starts may still hold at higher ones, up to where
    /// it completes no more.
    fn above_a_bad_beginning(&mut self) -> Result<f64, Stop> {
        let mut rate = self.goal.start_per_s;
        let mut saturated = 0;
        while rate < self.goal.most_per_s {
            rate = (2.0 * rate).min(self.goal.most_per_s);
            // Most of these are far from the line: half a minute for all of them is enough.
            let requests_s = (30.0 / rate).min(self.goal.budget_s / 30.0);
            let duration_s = (8.0 * self.goal.limit_s).max(0.5).max(2.0 * requests_s);
            let duration_s = round_to(duration_s, self.window_s);
            let trial = self.offer_on_time(&[Segment { rate_per_s: rate, duration_s }], None)?;
            let skip = trial.windows.len() / 2;
            // The last requests have none after them that would fill their batch.
            let tail = self.windows_in(self.goal.limit_s).min(skip / 2);
            let Some(seen) = self.stretch(&trial, rate, skip, skip - tail) else { break };
            self.curve.push(seen);
            let held = self.excess(&seen.counts) <= 1.0;
            let reported = self.measured(&seen);
            self.tell(&Event::Probed { seen: reported, held });
            if held {
                self.non_monotone = true;
                return Ok(rate);
            }
            // Twice beyond what it can, more load will not help.
            saturated += usize::from(seen.counts.completed * 10 < seen.counts.scheduled * 7);
            if saturated == 2 || self.starved(&trial) {
                break;
            }
        }
        Err(Stop::Infeasible)
    }

    /// The generator gave out before the target: the highest rate that it can, in a few halvings.
    fn narrow_below_starvation(&mut self, starved: f64) -> Result<(), Stop> {
        self.bracket.1 = starved;
        let mut starves = true;
        while self.bracket.1 / self.bracket.0 > NARROW {
            let mid = (self.bracket.0 * self.bracket.1).sqrt();
            match self.look(mid, 0.0, self.step_s(mid), true)? {
                Look::Held => self.bracket.0 = mid,
                Look::Broke => (self.bracket.1, starves) = (mid, false),
                Look::Starved => (self.bracket.1, starves) = (mid, true),
            }
        }
        self.tell_bracket();
        if starves { Err(Stop::GeneratorLimited) } else { Ok(()) }
    }

    /// Halves the bracket in the logarithm until its ends are no further apart than this.
    pub(super) fn halve_to(&mut self, ratio: f64) -> Result<(), Stop> {
        let limit_s = self.goal.limit_s;
        while self.bracket.1 / self.bracket.0 > ratio {
            let rate = (self.bracket.0 * self.bracket.1).sqrt();
            match self.look(rate, limit_s, (8.0 * limit_s).max(1.5), false)? {
                Look::Held => self.bracket.0 = rate,
                Look::Broke => self.bracket.1 = rate,
                Look::Starved => return Err(Stop::GeneratorLimited),
            }
            self.tell_bracket();
        }
        Ok(())
    }

    /// Halves the bracket in the logarithm until short looks say nothing more.
    pub(super) fn narrow(&mut self) -> Result<(), Stop> {
        let limit_s = self.goal.limit_s;
        if let Some(capacity) = self.bound() {
            self.bracket.1 = self.bracket.1.min(capacity.per_s * (1.0 + capacity.error));
        }
        self.bracket.0 = self.bracket.0.min(0.8 * self.bracket.1);
        let duration_s = (8.0 * limit_s).max(1.5);
        let ceiling = self.bound().map_or(self.completes_per_s, |capacity| capacity.per_s);
        let mut broke = false;
        if self.bracket.1 < COLD * ceiling {
            // What broke a limit so far below what the target can did so while it was cold, or for another reason than load.
            let rate = self.bracket.1;
            match self.look(rate, limit_s, duration_s, true)? {
                Look::Held => self.bracket = (rate, ceiling),
                Look::Broke => broke = true,
                Look::Starved => return self.narrow_below_starvation(rate),
            }
        }
        loop {
            let far = self.bracket.1 / self.bracket.0 > NARROW;
            // A rate that broke a limit once and is far below what the target can is asked again: the target may
            // have been cold.
            let again = !far && !broke && self.bracket.1 < 0.8 * ceiling;
            if !far && !again {
                return Ok(());
            }
            // A bracket is of no use when there is no time left to offer blocks in it.
            if self.is_too_short()
                && self.left_s() < self.modest_s() + limit_s + duration_s + DRAIN * limit_s
            {
                return Ok(());
            }
            let mid = (self.bracket.0 * self.bracket.1).sqrt();
            let rate = if again { self.bracket.1 } else { mid };
            match self.look(rate, limit_s, duration_s, false)? {
                Look::Held if again => self.bracket = (rate, ceiling),
                Look::Held => self.bracket.0 = rate,
                Look::Broke => (self.bracket.1, broke) = (rate, true),
                Look::Starved => return self.narrow_below_starvation(rate),
            }
            self.tell_bracket();
        }
    }
}

/// Returns true if the second half of the values is clearly below the first: by three standard errors and a tenth.
fn falls(values: &[f64]) -> bool {
    if values.len() < 6 {
        return false;
    }
    let (first, second) = values.split_at(values.len() / 2);
    let moments = |part: &[f64]| {
        let n = part.len() as f64;
        let mean = part.iter().sum::<f64>() / n;
        (mean, part.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0) / n)
    };
    let ((before, before_error), (after, after_error)) = (moments(first), moments(second));
    before - after > 3.0 * (before_error + after_error).sqrt() && after < 0.9 * before
}

#[cfg(test)]
mod tests {
    use super::falls;

    #[test]
    fn only_a_clear_fall_prolongs_the_warm_up() {
        assert!(falls(&[9.0, 8.1, 7.2, 4.0, 3.1, 3.0]));
        assert!(!falls(&[5.0, 4.0, 6.0, 5.0, 4.5, 5.5]));
        assert!(!falls(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
        assert!(!falls(&[9.0, 1.0]));
    }
}
