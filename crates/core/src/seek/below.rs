//! Check that the limits hold at low rates: a share of requests that fails or is slow at every rate has no line.

use super::finding::Event;
use super::goal::Limit;
use super::plant::{Segment, Window};
use super::search::{Search, Stop, Stretch, round_to};

/// Rates of the looks for requests that are late without load, as shares of the bracket's lower end, and how many late ones
/// a look there must find where a limit is just held.
const BELOW: [f64; 2] = [FLOOR_RATE, 0.2];
pub(super) const FLOOR_RATE: f64 = 0.6;
/// Allowed late ones in a look that usually is enough.
const FLOOR_USUAL: f64 = 8.0;
const FLOOR_LATE: f64 = 30.0;
/// Well below a rate is below this share of it.
const WELL_BELOW: f64 = 0.85;
/// Most looks there, and their share of the budget.
const FLOOR_LOOKS: usize = 3;
const FLOOR_SHARE: f64 = 0.08;
/// Least allowed late requests of a look that may do with less than certainty, and what they must exceed the late ones by:
/// this many, and this times the root of the late ones.
const LIKELY_LEAST: f64 = 20.0;
const LIKELY: (f64, f64) = (1.5, 1.2);
/// Standard deviations by which failures of either half of the rates exceed what is allowed, if no rate holds.
const SURELY: f64 = 2.0;

impl Search<'_> {
    /// Looks whether more requests are late, or fail, than a limit allows at rates far below the bracket: then no rate holds
    /// it, however the short looks came out, and no line is reported.
    pub(super) fn look_below(&mut self) -> Result<(), Stop> {
        let top = self.bracket.0;
        // Of a target that collects work into batches it is known that low rates break.
        if self.non_monotone || self.holds_below(top) {
            return Ok(());
        }
        for share in BELOW {
            let rate_per_s = (share * top).min(self.goal.most_per_s);
            if self.breaks_at_a_low_rate(rate_per_s)? {
                continue;
            }
            if rate_per_s < 0.5 * top {
                // What broke in between belongs to load.
                self.bracket = (rate_per_s, BELOW[0] * top);
                return self.narrow();
            }
            return Ok(());
        }
        Err(Stop::Infeasible)
    }

    /// Looks at a low rate until it is clear whether a limit is broken there, or the time for that is over. A limit that is not
    /// clear then is no reason to stop; [`Self::doubt_below`] asks again at the end.
    fn breaks_at_a_low_rate(&mut self, rate_per_s: f64) -> Result<bool, Stop> {
        let most_s = (FLOOR_SHARE * self.goal.budget_s).max(self.block_s);
        let wanted_s =
            (FLOOR_LATE * self.requests_a_late_one() / rate_per_s).clamp(self.block_s, most_s);
        let duration_s = round_to(wanted_s + self.settle_s, self.window_s);
        let mut sum: Option<Stretch> = None;
        for _ in 0..FLOOR_LOOKS {
            let trial = self.offer_on_time(&[Segment { rate_per_s, duration_s }], None)?;
            let skip = self.windows_in(self.settle_s);
            let Some(seen) = self.stretch(&trial, rate_per_s, skip, usize::MAX) else { break };
            self.curve.push(seen);
            self.note_floor(&seen);
            match &mut sum {
                Some(sum) => {
                    sum.counts.add(&seen.counts);
                    sum.seconds += seen.seconds;
                }
                None => sum = Some(seen),
            }
            let Some(sum) = sum else { break };
            let broke = self.breaks_by(&sum, 3.0);
            let reported = self.measured(&sum);
            self.tell(&Event::Probed { seen: reported, held: !broke });
            let holds = self.surely_holds(&sum.counts) || self.likely_holds(&sum.counts);
            if holds {
                self.holds_at_per_s = Some(rate_per_s);
            }
            if broke || holds {
                return Ok(broke);
            }
        }
        Ok(false)
    }

    /// Requests of which one may miss the limit that allows fewest.
    fn requests_a_late_one(&self) -> f64 {
        let per_late =
            |(at, limit): (usize, &Limit)| 1.0 / (limit.allowed() * self.judged_share(at));
        self.goal.limits.iter().enumerate().map(per_late).fold(1.0, f64::max)
    }

    /// Requests at a low rate that usually show that the limits hold there.
    pub(super) fn floor_requests(&self) -> f64 {
        FLOOR_USUAL * self.requests_a_late_one()
    }

    /// True if this few late ones are unlikely (one time in 40 for independent requests) if more were allowed.
    pub(super) fn surely_holds(&self, counts: &Window) -> bool {
        self.goal.limits.iter().enumerate().all(|(at, limit)| {
            let (n, late, allowed) = limit.as_share(at, counts);
            late + 3.0 + 2.0 * late.sqrt() <= allowed * n
        })
    }

    /// True if a look for that alone saw enough to rule out a fifth more than is allowed, for independent requests.
    fn likely_holds(&self, counts: &Window) -> bool {
        self.goal.limits.iter().enumerate().all(|(at, limit)| {
            let (n, late, allowed) = limit.as_share(at, counts);
            allowed * n >= LIKELY_LEAST && late + LIKELY.0 + LIKELY.1 * late.sqrt() <= allowed * n
        })
    }

    /// True if what was measured well below a rate leaves no doubt that the limits hold there.
    pub(super) fn holds_below(&self, rate_per_s: f64) -> bool {
        self.surely_holds(&self.below(rate_per_s))
    }

    /// Everything that was measured well below a rate.
    pub(super) fn below(&self, rate_per_s: f64) -> Window {
        let mut all = Window::default();
        let below = self.curve.iter().filter(|seen| seen.rate_per_s < WELL_BELOW * rate_per_s);
        below.for_each(|seen| all.add(&seen.counts));
        all
    }

    /// True if more requests missed a limit than this many standard deviations of independent ones explain. Where hardly any
    /// are expected, chance explains as many as that less one.
    pub(super) fn breaks_by(&self, seen: &Stretch, deviations: f64) -> bool {
        self.goal.limits.iter().enumerate().any(|(at, limit)| {
            let (n, late, allowed) = limit.as_share(at, &seen.counts);
            late > (allowed * n + deviations * (allowed * n).sqrt()).max(deviations - 0.5)
        })
    }

    /// Shows, where that is not known of the target as it is now, that the limits hold well below its line.
    pub(super) fn confirm_below(&mut self) -> Result<(), Stop> {
        let Some((fit, _)) = self.fit else { return Ok(()) };
        if self.doubt_below(fit.estimate_per_s).is_some() && !self.non_monotone {
            self.breaks_at_a_low_rate(BELOW[0] * fit.estimate_per_s)?;
        }
        Ok(())
    }

    /// Reason why a line at this rate may be none: nothing shows that the limits hold well below it.
    pub(super) fn doubt_below(&self, rate_per_s: f64) -> Option<String> {
        if self.bound().is_none() && self.started_over {
            return Some("the target became faster, and was not saturated after that".to_owned());
        }
        let below = self.below(rate_per_s);
        let holds = match self.holds_at_per_s {
            // Of a target that collects work into batches it is known that low rates break.
            _ if self.non_monotone => self.holds_closely_below(rate_per_s),
            Some(held) => held < WELL_BELOW * rate_per_s,
            None => self.surely_holds(&below),
        };
        if holds {
            return None;
        }
        let (excess, limit) = self.goal.excess(&below);
        let label = &self.goal.limits[limit].label;
        Some(if excess > 1.0 {
            format!(
                "{label} was also missed at rates well below the line, by a factor of {excess:.1}"
            )
        } else {
            let requests = below.subject(limit);
            format!(
                "{requests} requests at rates well below the line are too few to show that {label} holds there"
            )
        })
    }

    /// True if surely more requests fail than a limit allows, at the lower half of what was offered far below capacity and at
    /// the upper half: then load is not the reason, and no rate holds. Failures of one class are not counted apart.
    pub(super) fn fails_at_all_rates(&self) -> bool {
        let most = self.bound().map_or(f64::INFINITY, |capacity| WELL_BELOW * capacity.per_s);
        let mut seen = self.curve_by_rate();
        seen.retain(|stretch| stretch.rate_per_s < most);
        let all: u64 = seen.iter().map(|stretch| stretch.counts.scheduled).sum();
        let (mut lower, mut upper) = (Window::default(), Window::default());
        for stretch in &seen {
            let half = if 2 * lower.scheduled < all { &mut lower } else { &mut upper };
            half.add(&stretch.counts);
        }
        let surely = |half: &Window, allowed: f64| {
            let may = allowed * half.scheduled as f64;
            half.failed as f64 > (may + SURELY * may.sqrt()).max(2.0)
        };
        let limits = self.goal.limits.iter().filter(|limit| limit.class().is_none());
        let allowed = limits.map(Limit::allowed).fold(1.0, f64::min);
        surely(&lower, allowed) && surely(&upper, allowed)
    }

    fn holds_closely_below(&self, rate_per_s: f64) -> bool {
        let near = 0.5 * rate_per_s..rate_per_s;
        let all = self.curve.iter().chain(&self.runs);
        all.filter(|seen| near.contains(&seen.rate_per_s))
            .any(|seen| self.surely_holds(&seen.counts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seek::completed::Capacity;
    use crate::seek::made::{Made, goal};

    /// Returns true if failures alone make it infeasible: (rate, requests, failed) of each stretch, where 5 % may miss the limit and
    /// the target completes 200/s.
    fn fails(curve: &[(f64, u64, u64)]) -> bool {
        let (goal, mut observe) = (goal(300.0), |_: &_| ());
        let mut plant = Made::new(|_| (160.0, 200.0));
        let mut search = Search::new(&mut plant, &goal, &mut observe);
        search.capacity = Some(Capacity::of(200.0, 0.01));
        let stretch = |&(rate_per_s, scheduled, failed): &(f64, u64, u64)| {
            let counts = Window { scheduled, failed, ..Window::default() };
            Stretch { rate_per_s, counts, seconds: scheduled as f64 / rate_per_s, at_s: 0.0 }
        };
        search.curve = curve.iter().map(stretch).collect();
        search.fails_at_all_rates()
    }

    #[test]
    fn failures_at_every_rate_leave_no_rate() {
        assert!(fails(&[(8.0, 300, 27), (16.0, 300, 27)]), "9 % at both rates");
        assert!(!fails(&[(8.0, 300, 18), (16.0, 300, 18)]), "6 % of 300 may be chance");
        assert!(fails(&[(8.0, 9000, 540), (16.0, 9000, 540)]), "6 % of 9,000 are too many");
        assert!(!fails(&[]));
        assert!(!fails(&[(8.0, 20, 2)]), "two failures");
    }

    #[test]
    fn failures_that_come_with_load_leave_lower_rates() {
        // A target that rejects what is over 5/s, and one that rejects near its capacity.
        assert!(!fails(&[(2.0, 200, 0), (8.0, 300, 110), (4.0, 200, 0)]));
        assert!(!fails(&[(8.0, 300, 0), (120.0, 600, 20), (195.0, 3000, 900)]));
        assert!(!fails(&[(180.0, 3000, 900), (195.0, 3000, 900)]), "near capacity alone");
    }
}
