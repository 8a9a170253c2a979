//! The most that a target completes, where that is more than under overload.
//!
//! A server that looks after thousands of connections has less time for requests: the rate that it completes under
//! overload then is no upper bound of its line. Where an estimate comes near that bound, rates closely above it are
//! offered, for no longer than a backlog of a few limits takes to grow. If the target completes them, the bound is the
//! rate that it no longer completes.

use super::capacity::Overload;
use super::completed::Capacity;
use super::finding::Event;
use super::fit::Fit;
use super::plant::Segment;
use super::search::{Search, Stop, Stretch, round_to};

/// An estimate is near the capacity when no more than this share of itself, or one standard error, is between them.
const NEAR: f64 = 0.1;
/// The first rate is this share above the capacity, and by this many standard errors of the comparison.
const ABOVE: f64 = 0.01;
const ABOVE_ERRORS: f64 = 3.5;
/// Standard errors by which a target completes more than its capacity if that is no bound.
const MORE_ERRORS: f64 = 2.0;
/// Standard errors by which it is reported to complete more. The most of several looks is high by chance, where services are uneven
/// too.
const CLEAR_ERRORS: f64 = 3.0;
/// Most looks at the first rate: few requests that came by chance leave the answer open.
const TRIES: usize = 2;
/// Backlog that grows above a capacity, in limits; and the longest time for it, as a share of the budget and in limits.
const BACKLOGS: f64 = 2.5;
const LONGEST: (f64, f64) = (0.04, 8.0);
/// Part of a look whose completions are not counted, as its backlog is still small.
const SKIPPED: f64 = 1.0 / 3.0;
/// Ratio of a rate to the one before, and most of them.
const STEP: f64 = 1.05;
const STEPS: usize = 16;
/// Part of the overload that is missing in what a saturated target completes.
const MISSING: f64 = 0.5;
/// Ratio of the rates between which the line is looked for afterwards.
const BRACKET: f64 = 1.05;

/// The way a look above the capacity ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peak {
    /// The capacity is the most, as far as is known.
    Same,
    /// The target completes more than under overload. The bracket is that of its line.
    More,
    /// The target has become another one, and the search has started over.
    Changed,
}

/// Completions of a look above the capacity.
struct Above {
    completed: f64,
    per_s: f64,
    /// Requests that are due in the same time, without those that fail at every rate.
    due: f64,
}

impl Above {
    /// Standard error of the completions, as a share, for services as uneven as under overload.
    fn error(&self, capacity: &Capacity) -> f64 {
        (capacity.index / self.completed.max(1.0)).sqrt()
    }

    fn is_more_than(&self, capacity: &Capacity) -> bool {
        let error = self.error(capacity).hypot(capacity.error);
        (self.per_s / capacity.per_s).ln() > MORE_ERRORS * error
    }

    /// True if less than this share of the overload is missing.
    fn keeps_up(&self, overload: f64) -> bool {
        self.completed > (1.0 - MISSING * overload) * self.due
    }
}

impl Search<'_> {
    /// The rate that bounds the line.
    pub(super) fn bound(&self) -> Option<Capacity> {
        self.peak.or(self.capacity)
    }

    /// Takes a capacity as that of the target from now on.
    pub(super) fn set_capacity(&mut self, capacity: Option<Capacity>) {
        self.capacity = capacity;
        self.peak = None;
        self.is_peak_known = false;
    }

    /// Takes a capacity as that of a target that has become another one.
    pub(super) fn change_to(&mut self, capacity: Capacity) {
        self.set_capacity(Some(capacity));
        self.completes_per_s = capacity.per_s;
    }

    /// True if a run that is not surely below the line broke a limit. Without one the line is bounded from above by belief only.
    pub(super) fn broke_near(&self, found: &Fit) -> bool {
        let near = |run: &&Stretch| run.rate_per_s >= found.interval_per_s.0;
        self.runs.iter().filter(near).any(|run| self.excess(&run.counts) > 1.0)
    }

    /// Offers more than the capacity if an estimate is near it, once for each capacity.
    pub(super) fn look_above(&mut self, estimate_per_s: f64) -> Result<Peak, Stop> {
        let unknown = self.capacity.filter(|_| !self.is_peak_known && estimate_per_s.is_finite());
        let Some(capacity) = unknown else { return Ok(Peak::Same) };
        if (1.0 + NEAR.max(capacity.error)) * estimate_per_s < capacity.per_s {
            return Ok(Peak::Same);
        }
        self.is_peak_known = true;
        let from_s = self.looked_s;
        let Some((per_s, error)) = self.climb(&capacity)? else { return Ok(Peak::Same) };
        // Later looks are compared with one at the same rate.
        self.peak = Some(Capacity { per_s, ..capacity });
        self.capacities.clear();
        let after = match self.look_at_capacity(capacity.per_s)? {
            Overload::Saturated(after)
                if after.per_s < capacity.per_s || !self.is_another(capacity, after) =>
            {
                after
            }
            Overload::Unknown => capacity,
            faster => return self.start_again(from_s, capacity, faster).map(|()| Peak::Changed),
        };
        self.capacity = Some(after);
        self.looks = vec![(self.elapsed_s, after)];
        self.looked_s = self.elapsed_s;
        if per_s <= after.per_s {
            // It completes as much under overload: the first look saw less by chance.
            self.peak = None;
            return Ok(Peak::Same);
        }
        self.is_peak_clear = (per_s / after.per_s).ln() > CLEAR_ERRORS * error.hypot(after.error);
        let error = error.max(0.5 * (STEP - 1.0));
        let long_error = error.max(after.long_error);
        self.peak = Some(Capacity { per_s, error, long_error, index: capacity.index });
        if self.is_peak_clear {
            self.tell(&Event::Peak { per_s });
        }
        self.bracket = (estimate_per_s.min(per_s / BRACKET), per_s * (1.0 + error));
        self.halve_to(BRACKET).map(|()| Peak::More)
    }

    /// Goes up from a capacity for as long as the target completes more. Returns the most and its standard error as a share, or
    /// nothing if the capacity is the most.
    fn climb(&mut self, capacity: &Capacity) -> Result<Option<(f64, f64)>, Stop> {
        let shortest_s = self.backlog_grows_s(STEP - 1.0);
        let index = 1.0 + capacity.index;
        let requests = (1.0 - SKIPPED) * capacity.per_s * shortest_s;
        let above = ABOVE + ABOVE_ERRORS * (index / requests).sqrt().hypot(capacity.error);
        let counted_s = index * (ABOVE_ERRORS / above).powi(2) / capacity.per_s;
        let first_s = self.backlog_grows_s(above).max(counted_s / (1.0 - SKIPPED));
        let mut rate_per_s = (1.0 + above) * capacity.per_s;
        let mut best = None;
        for _ in 0..TRIES {
            let Some(seen) = self.offer_above(rate_per_s, first_s)? else { return Ok(None) };
            if seen.is_more_than(capacity) {
                best = Some((seen.per_s, seen.error(capacity)));
            }
            if best.is_some() || !seen.keeps_up(above) {
                break;
            }
        }
        for _ in 0..STEPS {
            let Some((most_per_s, _)) = best else { break };
            rate_per_s = (STEP * most_per_s).max(rate_per_s).min(self.goal.most_per_s);
            let Some(seen) = self.offer_above(rate_per_s, shortest_s)? else { break };
            if seen.per_s > most_per_s {
                best = Some((seen.per_s, seen.error(capacity)));
            }
            if !seen.keeps_up(STEP - 1.0) || rate_per_s >= self.goal.most_per_s {
                break;
            }
        }
        Ok(best)
    }

    /// Offers a rate for this long; nothing if the generator could not.
    fn offer_above(&mut self, rate_per_s: f64, duration_s: f64) -> Result<Option<Above>, Stop> {
        let segment = Segment { rate_per_s, duration_s: round_to(duration_s, self.window_s) };
        let trial = self.offer_on_time(&[segment], None)?;
        let skip = (SKIPPED * trial.windows.len() as f64) as usize;
        let seen = self.stretch(&trial, rate_per_s, skip, usize::MAX);
        let Some(seen) = seen.filter(|_| !self.starved(&trial)) else { return Ok(None) };
        self.curve.push(seen);
        let completed = seen.counts.completed as f64;
        let due = (1.0 - self.share_that_fails()) * seen.counts.scheduled as f64;
        Ok(Some(Above { completed, per_s: completed / seen.seconds, due }))
    }

    /// Time in which a backlog of a few limits grows at a rate that is this share above what the target completes, s.
    fn backlog_grows_s(&self, above: f64) -> f64 {
        let longest_s = (LONGEST.0 * self.goal.budget_s).max(LONGEST.1 * self.goal.limit_s);
        (BACKLOGS * self.goal.limit_s / above).min(longest_s).max(1.5)
    }
}

#[cfg(test)]
mod tests {
    use crate::seek::finding::{Finding, Verdict};
    use crate::seek::made::{Made, goal};
    use crate::seek::search::seek;

    /// A target with a line at 190/s and a capacity of 200/s, of which this part is completed under overload.
    fn search(overloaded: f64) -> Finding {
        let mut target = Made { overloaded, ..Made::new(|_| (190.0, 200.0)) };
        seek(&mut target, &goal(300.0), &mut |_| ())
    }

    #[test]
    fn a_line_above_what_is_completed_under_overload_is_found() {
        let found = search(0.9);
        let (capacity, peak) = (found.capacity_per_s.expect("one"), found.peak_per_s.expect("one"));
        assert!(
            (capacity / 180.0 - 1.0).abs() < 0.02 && (peak / 200.0 - 1.0).abs() < 0.02,
            "{found:?}"
        );
        let (low, high) = found.interval_per_s.expect("an interval");
        assert!(low < 190.0 && 190.0 < high, "{low} to {high}");
        let certified = found.certified.expect("a rate").rate_per_s;
        assert!((165.0..=190.0).contains(&certified), "{certified}");
    }

    #[test]
    fn a_capacity_that_is_the_most_stays_the_bound() {
        let found = search(1.0);
        assert_eq!(found.peak_per_s, None);
        assert!((found.capacity_per_s.expect("one") / 200.0 - 1.0).abs() < 0.02);
        assert!((found.estimate_per_s.expect("one") / 190.0 - 1.0).abs() < 0.02, "{found:?}");
        assert_ne!(found.verdict, Verdict::Drifting);
    }
}
