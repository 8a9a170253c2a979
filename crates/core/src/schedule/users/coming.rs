//! Arrival times of users, one after the other, computed and not stored.

use super::profile::{Shape, Stretch, UserProfile};
use crate::normal::quantile;
use crate::rng::{Rng, derive_seed, splitmix64};
use crate::schedule::Slice;

/// The users of a slice in the order of their arrival.
#[derive(Clone, Debug)]
pub(super) struct Coming {
    stretches: Vec<Stretch>,
    /// The stretch of the next user, and how many users came before it.
    at: usize,
    before: u64,
    slice: Slice,
    seed: u64,
    start_ns: u64,
    /// Time of the profile that has passed when the run starts, ns.
    before_ns: u64,
    /// Number of users of this slice that have come.
    made: u64,
    /// Random moments of a stretch, in order; only where it asks for them.
    moments: Option<Moments>,
    upcoming: Option<Arrival>,
}

/// A user who comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    /// Its number in the whole, from 0.
    pub user: u64,
    /// Time at which it comes, ns.
    pub at_ns: u64,
}

/// Uniform random numbers in ascending order, drawn one after the other in constant memory: the gaps of the
/// exponential order statistics are independent exponentials over the number that is left (Renyi 1953).
#[derive(Clone, Debug)]
struct Moments {
    rng: Rng,
    left: u64,
    drawn: u64,
    log_rest: f64,
}

impl Moments {
    fn new(seed: u64, count: u64) -> Self {
        Self { rng: Rng::new(seed), left: count, drawn: 0, log_rest: 0.0 }
    }

    /// The number at this place from 0; places are asked for in order.
    fn at(&mut self, place: u64) -> f64 {
        while self.drawn <= place {
            self.log_rest -= self.rng.exponential() / self.left.max(1) as f64;
            self.left = self.left.saturating_sub(1);
            self.drawn += 1;
        }
        -self.log_rest.exp_m1()
    }
}

impl Coming {
    pub fn new(profile: &UserProfile, slice: Slice, seed: u64, start_ns: u64) -> Self {
        let mut coming = Self {
            stretches: profile.stretches(),
            at: 0,
            before: 0,
            slice,
            seed: derive_seed(seed, "users"),
            start_ns,
            before_ns: 0,
            made: 0,
            moments: None,
            upcoming: None,
        };
        coming.upcoming = coming.compute();
        coming
    }

    /// Moves the start of the profile this far before the run, ns; no user has been taken yet.
    pub fn begin_before(&mut self, before_ns: u64) {
        self.before_ns = before_ns;
        self.upcoming = self.upcoming.map(|Arrival { user, at_ns }| Arrival {
            user,
            at_ns: at_ns.saturating_sub(before_ns),
        });
    }

    /// The next user, who has not come yet.
    pub const fn upcoming(&self) -> Option<Arrival> {
        self.upcoming
    }

    /// Takes the next user.
    pub fn take(&mut self) -> Option<Arrival> {
        let arrival = self.upcoming?;
        self.made += 1;
        self.upcoming = self.compute();
        Some(arrival)
    }

    /// Ends the arrivals of users.
    pub fn stop(&mut self) {
        self.upcoming = None;
        self.stretches.clear();
    }

    fn compute(&mut self) -> Option<Arrival> {
        let user = self.slice.global(self.made);
        let mut stretch = *self.stretches.get(self.at)?;
        while user - self.before >= stretch.users {
            self.before += stretch.users;
            self.at += 1;
            self.moments = None;
            stretch = *self.stretches.get(self.at)?;
        }
        let place = user - self.before;
        let share = if stretch.randomized {
            let seed = splitmix64(self.seed ^ self.at as u64);
            Some(self.moments.get_or_insert_with(|| Moments::new(seed, stretch.users)).at(place))
        } else {
            None
        };
        let offset_ns = offset_ns(&stretch, place, share);
        let at_ns = self.start_ns.saturating_add(stretch.start_ns + offset_ns);
        Some(Arrival { user, at_ns: at_ns.saturating_sub(self.before_ns) })
    }
}

/// Time at which the user at `place` of a stretch arrives, ns after the stretch's start. `share` is the part of its
/// users that arrived earlier, if that differs from `place` of all.
fn offset_ns(stretch: &Stretch, place: u64, share: Option<f64>) -> u64 {
    let duration = stretch.duration_ns as f64;
    let within = |part: f64| ((part * duration).round() as u64).min(stretch.duration_ns);
    match (stretch.shape, share) {
        // Exact: the quotient of whole numbers.
        (Shape::Even, None) => {
            (u128::from(stretch.duration_ns) * u128::from(place) / u128::from(stretch.users)) as u64
        }
        (Shape::Even, Some(share)) => within(share),
        (Shape::Line { from, to }, share) => {
            let share = share.unwrap_or(place as f64 / stretch.users as f64);
            within(time_on_line(from, to, share))
        }
        (Shape::Peak, _) => {
            // Gatling's: user u of n at the quantile u / (n + 2) of the normal distribution, scaled so that the
            // first comes at the start. The last comes just before the end.
            let all = stretch.users as f64 + 2.0;
            let first = quantile(1.0 / all);
            within((quantile((place + 1) as f64 / all) - first) / (-2.0 * first))
        }
    }
}

/// Position on a line of rates, 0 to 1, that has this share of its area to the left.
fn time_on_line(from: f64, to: f64, share: f64) -> f64 {
    let inside = share * (from + to) / 2.0;
    if inside == 0.0 {
        return 0.0;
    }
    // The stable root of (to - from)/2 x^2 + from x = inside.
    let root = (from * from + 2.0 * (to - from) * inside).max(0.0).sqrt();
    (2.0 * inside / (from + root)).clamp(0.0, 1.0)
}
