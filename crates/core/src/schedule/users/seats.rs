//! The number of concurrent users, as the times at which it changes.

use super::profile::{Level, UserProfile};
use crate::schedule::Slice;

/// The number of users of a slice, over time. On a ramp it is the line, rounded.
#[derive(Clone, Debug)]
pub(super) struct Seats {
    levels: Vec<Level>,
    slice: Slice,
    start_ns: u64,
    at: usize,
    /// Number of changes made to the current level; the first is the jump to its start.
    changes: u64,
    /// The slice's own number now.
    seats: u64,
    upcoming: Option<Change>,
}

/// A moment at which the slice's number becomes another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub at_ns: u64,
    pub seats: u64,
}

impl Seats {
    pub fn new(profile: &UserProfile, slice: Slice, start_ns: u64) -> Self {
        let mut levels = profile.levels();
        // After the last step no user is replaced any more.
        let end_ns = profile.own_duration_ns();
        levels.push(Level { start_ns: end_ns, duration_ns: 0, from: 0, to: 0 });
        let mut seats =
            Self { levels, slice, start_ns, at: 0, changes: 0, seats: 0, upcoming: None };
        seats.upcoming = seats.compute();
        seats
    }

    /// The number now.
    pub const fn seats(&self) -> u64 {
        self.seats
    }

    /// The next change, which has not been made yet.
    pub const fn upcoming(&self) -> Option<Change> {
        self.upcoming
    }

    /// Makes the next change.
    pub fn take(&mut self) -> Option<Change> {
        let change = self.upcoming?;
        self.seats = change.seats;
        self.upcoming = self.compute();
        Some(change)
    }

    pub fn stop(&mut self) {
        self.seats = 0;
        self.levels.clear();
        self.upcoming = None;
    }

    /// The next change of the whole that is one of the slice too.
    fn compute(&mut self) -> Option<Change> {
        loop {
            let level = *self.levels.get(self.at)?;
            let apart = u64::from(level.from.abs_diff(level.to));
            if self.changes > apart {
                self.at += 1;
                self.changes = 0;
                continue;
            }
            let number = self.changes;
            self.changes += 1;
            let (from, rising) = (u64::from(level.from), level.to > level.from);
            let whole = if rising { from + number } else { from - number };
            let seats = self.slice.share(whole);
            if seats == self.seats {
                continue;
            }
            // The line is at the half before its value number n after (2n - 1) / 2 of its length.
            let after_ns = match number {
                0 => 0,
                n => (u128::from(2 * n - 1) * u128::from(level.duration_ns))
                    .div_ceil(u128::from(2 * apart)) as u64,
            };
            let at_ns = self.start_ns.saturating_add(level.start_ns + after_ns);
            return Some(Change { at_ns, seats });
        }
    }
}
