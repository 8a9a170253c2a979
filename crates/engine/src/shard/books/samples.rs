//! Samples of single requests and connections, in a fixed number of slots: the slowest requests, failures with their
//! text, round trips.

use crate::net::RoundTrip;
use plimsoll_core::outcome::{Failure, Outcome};
use plimsoll_core::recorder::Times;
use plimsoll_wire::Submission;

/// Number of slowest requests that a shard keeps.
const SLOWEST: usize = 20;
/// Failures of one kind that a shard tells with their text.
const FAILURES_TOLD: u32 = 20;
/// Connections whose round trips are looked at.
const ROUND_TRIPS_MAX: usize = 1000;

/// One of the slowest requests.
#[derive(Clone, Debug)]
pub struct Slow {
    /// Its times.
    pub times: Times,
    /// Its class and item.
    pub what: Submission,
    /// The way it was counted.
    pub outcome: Outcome,
    /// The beginning of its text.
    pub text: String,
    /// Its trace id, if it was sent with one.
    pub trace_id: Option<String>,
}

impl Slow {
    /// Intended start to end, ns.
    #[must_use]
    pub fn response_ns(&self) -> u64 {
        self.times.done_ns.saturating_sub(self.times.intended_ns)
    }
}

/// Samples so far.
pub(super) struct Samples {
    /// In no order.
    slowest: Vec<Slow>,
    /// Time above which a request is kept, ns.
    threshold_ns: u64,
    failures_told: [u32; Failure::COUNT],
    /// Of connections that were closed.
    round_trips: Vec<RoundTrip>,
}

impl Samples {
    pub fn new() -> Self {
        Self {
            slowest: Vec::with_capacity(SLOWEST),
            threshold_ns: 0,
            failures_told: Default::default(),
            round_trips: Vec::new(),
        }
    }

    /// Returns true if a response time belongs among the slowest.
    #[inline]
    pub const fn wants_slow(&self, response_ns: u64) -> bool {
        response_ns > self.threshold_ns
    }

    /// Keeps a request in the place of the fastest of the slow ones.
    pub fn keep_slow(&mut self, slow: Slow) {
        if self.slowest.len() < SLOWEST {
            self.slowest.push(slow);
        } else if let Some(fastest) = self.slowest.iter_mut().min_by_key(|s| s.response_ns()) {
            *fastest = slow;
        }
        if self.slowest.len() == SLOWEST {
            self.threshold_ns = self.slowest.iter().map(Slow::response_ns).min().unwrap_or(0);
        }
    }

    pub fn into_slowest(self) -> Vec<Slow> {
        self.slowest
    }

    /// Returns true if one more failure of a kind is to be reported; it is counted among those.
    pub fn may_tell(&mut self, kind: Failure) -> bool {
        let told = &mut self.failures_told[kind as usize];
        *told += u32::from(*told < FAILURES_TOLD + 1);
        *told <= FAILURES_TOLD
    }

    /// Keeps the round trips of a connection that is closed, if there is a place left. Where connections do not last until
    /// the end, this is the last time that they can be asked.
    pub fn closing(&mut self, round_trip: impl FnOnce() -> Option<RoundTrip>) {
        if self.round_trips.len() < ROUND_TRIPS_MAX {
            self.round_trips.extend(round_trip());
        }
    }

    /// Takes the round trips of the connections that are open at the end, then of those closed before.
    pub fn round_trips(&mut self, open: impl Iterator<Item = RoundTrip>) -> Vec<RoundTrip> {
        let mut round_trips: Vec<RoundTrip> = open.take(ROUND_TRIPS_MAX).collect();
        self.round_trips.truncate(ROUND_TRIPS_MAX - round_trips.len());
        round_trips.append(&mut self.round_trips);
        round_trips
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_are_kept_and_no_more_than_there_are_places_for() {
        let mut samples = Samples::new();
        for number in 0..100_u64 {
            // 37 is prime to 100: each time once, in no order.
            let done_ns = 1 + number * 37 % 100;
            if samples.wants_slow(done_ns) {
                samples.keep_slow(Slow {
                    times: Times { done_ns, ..Times::default() },
                    what: Submission::default(),
                    outcome: Outcome::Ok,
                    text: String::new(),
                    trace_id: None,
                });
            }
        }
        assert!(samples.wants_slow(82) && !samples.wants_slow(81));
        let mut kept: Vec<u64> = samples.into_slowest().iter().map(Slow::response_ns).collect();
        kept.sort_unstable();
        assert_eq!(kept, (81..=100).collect::<Vec<u64>>());
    }

    #[test]
    fn failures_are_told_by_kind_up_to_a_limit() {
        let mut samples = Samples::new();
        let told = (0..1000).filter(|_| samples.may_tell(Failure::Reset)).count();
        assert_eq!((told, samples.may_tell(Failure::Short)), (FAILURES_TOLD as usize, true));
    }

    #[test]
    fn connections_that_are_open_come_before_those_closed() {
        let trip = |min_us| RoundTrip { min_us, smoothed_us: 0, retransmits: 0 };
        let mut samples = Samples::new();
        (0..2_000).for_each(|us| samples.closing(|| Some(trip(us))));
        samples.closing(|| panic!("there is no place left"));
        let trips = samples.round_trips((5_000..5_400).map(trip));
        assert_eq!(trips.len(), ROUND_TRIPS_MAX);
        assert_eq!((trips[0], trips[399], trips[400]), (trip(5_000), trip(5_399), trip(0)));
    }
}
