//! The slowest requests, kept in a fixed number of places.

use plimsoll_core::outcome::Outcome;
use plimsoll_core::recorder::Times;
use plimsoll_wire::Submission;

/// How many of the slowest requests a shard keeps.
const SLOWEST: usize = 20;
/// Failures of one kind that a shard tells with their text.
pub(in crate::shard) const FAILURES_TOLD: u32 = 20;

/// One of the slowest requests.
#[derive(Clone, Debug)]
pub struct Slow {
    /// Its times.
    pub times: Times,
    /// Its class and item.
    pub what: Submission,
    /// How it was counted.
    pub outcome: Outcome,
    /// The beginning of its text.
    pub text: String,
}

impl Slow {
    /// Intended start to end, ns.
    #[must_use]
    pub fn response_ns(&self) -> u64 {
        self.times.done_ns.saturating_sub(self.times.intended_ns)
    }
}

/// The slowest requests so far, in no order.
pub(in crate::shard) struct Slowest {
    places: Vec<Slow>,
    /// What a request must exceed to be kept, ns.
    threshold_ns: u64,
}

impl Slowest {
    pub fn new() -> Self {
        Self { places: Vec::with_capacity(SLOWEST), threshold_ns: 0 }
    }

    /// Whether a response time belongs among the slowest.
    #[inline]
    pub fn wants(&self, response_ns: u64) -> bool {
        response_ns > self.threshold_ns
    }

    /// Keeps a request in the place of the fastest of the slow ones.
    pub fn keep(&mut self, slow: Slow) {
        if self.places.len() < SLOWEST {
            self.places.push(slow);
        } else if let Some(fastest) = self.places.iter_mut().min_by_key(|s| s.response_ns()) {
            *fastest = slow;
        }
        if self.places.len() == SLOWEST {
            self.threshold_ns = self.places.iter().map(Slow::response_ns).min().unwrap_or(0);
        }
    }

    pub fn into_places(self) -> Vec<Slow> {
        self.places
    }
}
