//! Arrivals that will never be sent, generated many at a time: after a run that was far beyond its capacity,
//! a step for each would last longer than the run.

use super::{ArrivalSchedule, Curve, Shape};

/// Arrivals made together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Number of arrivals.
    pub count: u64,
    /// The intended start of the last of them, ns.
    pub latest_ns: u64,
}

impl Curve {
    /// Returns how many arrivals are due before `seconds`.
    fn count_at(&self, seconds: f64) -> f64 {
        let piece = self.pieces.iter().rev().find(|piece| piece.start_s <= seconds);
        let Some(piece) = piece.or(self.pieces.first()) else { return 0.0 };
        let inside_s = (seconds - piece.start_s).clamp(0.0, piece.duration_s);
        let slope = (piece.to - piece.from) / piece.duration_s;
        piece.count_before + inside_s * (piece.from + slope * inside_s / 2.0)
    }
}

impl ArrivalSchedule {
    pub(in crate::schedule) fn is_random(&self) -> bool {
        matches!(self.shape, Shape::Rate { poisson: Some(_), .. })
    }

    /// Makes at most `most` of the arrivals that are due by `until_ns`; `None` when none is. Where arrivals are random
    /// this takes some nanoseconds for each, else next to nothing.
    pub(in crate::schedule) fn skip(&mut self, until_ns: u64, most: u64) -> Option<Skipped> {
        let first_ns = self.upcoming.filter(|&intended_ns| intended_ns <= until_ns && most > 0)?;
        let skipped = if self.is_random() {
            self.skip_random(until_ns, most, first_ns)
        } else {
            let count = self.due_by(until_ns).min(most);
            let latest_ns = self.intended_ns(self.made + count - 1).unwrap_or(first_ns);
            self.made += count;
            Skipped { count, latest_ns }
        };
        self.upcoming = self.compute();
        Some(skipped)
    }

    /// About how many arrivals are due by `until_ns` and not made: exactly, unless they are random.
    pub(in crate::schedule) fn owed(&self, until_ns: u64) -> u64 {
        if self.upcoming.is_none_or(|intended_ns| intended_ns > until_ns) {
            return 0;
        }
        match &self.shape {
            Shape::Rate { curve, poisson: Some(poisson) } => {
                // The next one is drawn; of those behind it the mean is known.
                let behind = (curve.count_at(self.limit_s(until_ns)) - poisson.sum).max(0.0);
                let own = 1 + (behind / f64::from(self.slice.of)).round() as u64;
                own.min(self.slice.share(self.requests).saturating_sub(self.made))
            }
            _ => self.due_by(until_ns),
        }
    }

    /// Arrivals of this slice that are not made and due by `until_ns`, where times follow from numbers. There is one.
    fn due_by(&self, until_ns: u64) -> u64 {
        let is_due = |ahead: u64| {
            let number = self.made.checked_add(ahead);
            number.and_then(|n| self.intended_ns(n)).is_some_and(|ns| ns <= until_ns)
        };
        let (mut due, mut not_due) = (0, 1u64);
        while is_due(not_due) {
            due = not_due;
            not_due = not_due.saturating_mul(2);
        }
        while not_due - due > 1 {
            let middle = due + (not_due - due) / 2;
            if is_due(middle) { due = middle } else { not_due = middle }
        }
        not_due
    }

    /// The intended start of this slice's `n`-th arrival, where times follow from numbers.
    fn intended_ns(&self, n: u64) -> Option<u64> {
        let number = n.checked_mul(u64::from(self.slice.of))?;
        let number = number.checked_add(u64::from(self.slice.index))?;
        if number >= self.requests {
            return None;
        }
        let offset_ns = match &self.shape {
            Shape::Burst { size, every_ns } => (number / *size).checked_mul(*every_ns)?,
            Shape::Rate { curve, .. } => {
                (curve.time_from(curve.at, number as f64)?.1 * 1e9).round() as u64
            }
        };
        let intended_ns = self.start_ns.saturating_add(offset_ns);
        (intended_ns < self.end_ns).then_some(intended_ns)
    }

    /// Until when arrivals round to a start at or before `until_ns` and before the end, s.
    fn limit_s(&self, until_ns: u64) -> f64 {
        let limit_ns = self.end_ns.min(until_ns.saturating_add(1)).saturating_sub(self.start_ns);
        (limit_ns as f64 - 0.5) / 1e9
    }

    fn skip_random(&mut self, until_ns: u64, most: u64, first_ns: u64) -> Skipped {
        let limit_s = self.limit_s(until_ns);
        let Shape::Rate { curve, poisson: Some(poisson) } = &mut self.shape else {
            return Skipped { count: 0, latest_ns: first_ns };
        };
        let limit = curve.count_at(limit_s);
        let (mut count, mut last) = (0, poisson.sum);
        // The next arrival is drawn already.
        while count < most {
            count += 1;
            last = poisson.sum;
            self.made += 1;
            let number = self.slice.global(self.made);
            while poisson.drawn <= number {
                poisson.sum += poisson.rng.exponential();
                poisson.drawn += 1;
            }
            if poisson.sum >= limit || number >= self.requests {
                break;
            }
        }
        let latest_s = curve.time_of(last).unwrap_or(0.0);
        let latest_ns = self.start_ns.saturating_add((latest_s * 1e9).round() as u64);
        Skipped { count, latest_ns: latest_ns.max(first_ns) }
    }
}
