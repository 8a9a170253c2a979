//! A feed over time, for its record.

use crate::FeedNow;
use plimsoll_core::clock::MILLISECOND_NS;
use plimsoll_core::moments::Moments;
use plimsoll_record::feed::FeedMoment;

/// Length of a stretch, ns, until there are too many of them.
const EVERY_NS: u64 = 100 * MILLISECOND_NS;

/// The stretches of a feed so far.
pub struct Course {
    began_ns: u64,
    /// Time at which the last stretch ended, ns, and how the feed stood then.
    last: (u64, FeedNow),
    moments: Moments<FeedMoment>,
}

impl Course {
    /// For a feed that began then.
    #[must_use]
    pub fn new(began_ns: u64) -> Self {
        Self { began_ns, last: (began_ns, FeedNow::default()), moments: Moments::default() }
    }

    /// Ends a stretch if it has been long enough.
    pub fn look(&mut self, now_ns: u64, state: impl FnOnce() -> FeedNow) {
        if now_ns.saturating_sub(self.last.0) >= EVERY_NS {
            self.add(now_ns, state());
        }
    }

    /// Ends the last stretch, and returns all of them.
    #[must_use]
    pub fn end(mut self, now_ns: u64, now: FeedNow) -> Vec<FeedMoment> {
        self.add(now_ns, now);
        self.moments.into_kept()
    }

    fn add(&mut self, now_ns: u64, now: FeedNow) {
        let (last_ns, last) = self.last;
        let seconds = now_ns.saturating_sub(last_ns) as f64 / 1e9;
        if seconds <= 0.0 {
            return;
        }
        let since = |ns: u64| ns.saturating_sub(self.began_ns) as f64 / 1e9;
        let per_s = |to: u64, from: u64| to.saturating_sub(from) as f64 / seconds;
        self.moments.push(FeedMoment {
            from_s: since(last_ns),
            to_s: since(now_ns),
            accepted_per_s: per_s(now.accepted, last.accepted),
            refused_per_s: per_s(now.refused, last.refused),
            retried_per_s: per_s(now.retries, last.retries),
            window: now.window,
            in_flight: now.under_way,
        });
        self.last = (now_ns, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_has_the_rates_of_its_own_time() {
        let at =
            |accepted, window| FeedNow { accepted, window, under_way: 7, ..FeedNow::default() };
        let began_ns = 5_000 * MILLISECOND_NS;
        let mut course = Course::new(began_ns);
        course.look(began_ns + 50 * MILLISECOND_NS, || panic!("too early"));
        course.look(began_ns + 100 * MILLISECOND_NS, || at(200, 16));
        let moments = course.end(began_ns + 300 * MILLISECOND_NS, at(600, 32));
        let seen: Vec<_> =
            moments.iter().map(|one| (one.to_s, one.accepted_per_s, one.window)).collect();
        assert_eq!(seen, [(0.1, 2000.0, 16), (0.3, 2000.0, 32)]);
    }
}
