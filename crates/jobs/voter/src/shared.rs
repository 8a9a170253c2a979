//! State shared by all worker threads of a benchmark and its observers.

use super::ballots::{BallotError, Ballots, Game};
use super::tally::VoterTally;
use super::tune::TuneGoal;
use plimsoll_core::clock::now_ns;
use plimsoll_core::schedule::Slice;
use plimsoll_record::voter::TuneResult;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The way a benchmark goes about its work.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The rules of the game.
    pub game: Game,
    /// The limit to be kept by having as many calls in flight as it allows, where that is wanted; else as many as the
    /// load model says.
    pub tune: Option<TuneGoal>,
    /// The most calls in flight of all shards together, where a limit is to be kept: the clients of the load model.
    pub under_way_max: u32,
    /// Fixed number of calls in flight, of all shards together, to check whether the limit holds; none if the number adapts.
    pub held: Option<u32>,
    /// Number of times that a vote that the database rolled back for others' sake is sent once more.
    pub retries: u8,
    /// The part of the calls of this key range that is made here.
    pub slice: Slice,
}

/// State of a running benchmark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VotingNow {
    /// Calls sent, each once however often it was repeated.
    pub sent: u64,
    /// Votes acknowledged.
    pub accepted: u64,
    /// Votes for an unknown contestant.
    pub rejected_contestant: u64,
    /// Votes from telephones that had voted as often as they may.
    pub rejected_limit: u64,
    /// Calls that failed, those included whose outcome is unknown.
    pub failed: u64,
    /// Calls of which no one knows whether they were done.
    pub unknown: u64,
    /// Repetitions.
    pub retries: u64,
    /// Sum of the answers' times, each from its intended start, ns.
    pub client_sum_ns: u64,
    /// The longest of them since the last look, ns.
    pub client_max_ns: u64,
    /// Sum of what servers say that their answers took, ms.
    pub server_sum_ms: u64,
    /// The longest of them since the last look, ms.
    pub server_max_ms: u64,
    /// Calls allowed in flight where a limit is to be kept; 0 elsewhere.
    pub allowed: u64,
}

impl VotingNow {
    /// Calls answered: accepted and rejected.
    #[must_use]
    pub const fn answered(&self) -> u64 {
        self.accepted + self.rejected_contestant + self.rejected_limit
    }

    /// Calls sent and not ended.
    #[must_use]
    pub const fn under_way(&self) -> u64 {
        self.sent.saturating_sub(self.answered() + self.failed)
    }

    /// Mean of the answers' times so far, from their intended starts, ms; 0 without any.
    #[must_use]
    pub fn client_mean_ms(&self) -> f64 {
        self.client_sum_ns as f64 / 1e6 / self.answered().max(1) as f64
    }

    /// Mean of what servers say so far, ms; 0 without any.
    #[must_use]
    pub fn server_mean_ms(&self) -> f64 {
        self.server_sum_ms as f64 / self.answered().max(1) as f64
    }
}

/// Counters that one shard alone writes, and observers read.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Seen {
    pub sent: AtomicU64,
    pub accepted: AtomicU64,
    pub rejected_contestant: AtomicU64,
    pub rejected_limit: AtomicU64,
    pub failed: AtomicU64,
    pub unknown: AtomicU64,
    pub retries: AtomicU64,
    pub client_sum_ns: AtomicU64,
    pub client_max_ns: AtomicU64,
    pub server_sum_ms: AtomicU64,
    pub server_max_ms: AtomicU64,
    pub allowed: AtomicU64,
}

/// Adds to a counter that only the calling thread writes.
#[inline]
pub(super) fn add(counter: &AtomicU64, amount: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
}

/// Raises a maximum that its reader may put back to 0.
#[inline]
pub(super) fn raise(most: &AtomicU64, value: u64) {
    if value > most.load(Ordering::Relaxed) {
        most.fetch_max(value, Ordering::Relaxed);
    }
}

/// A benchmark in flight.
#[derive(Debug)]
pub struct Voting {
    /// The way it goes about its work.
    pub settings: Settings,
    pub(super) ballots: Ballots,
    pub(super) seen: Vec<Seen>,
    /// Time at which the first call was made, ns; the greatest number before.
    first_ns: AtomicU64,
    stopped: AtomicBool,
    trouble: Mutex<Option<String>>,
}

impl Voting {
    /// A benchmark of this many shards.
    ///
    /// # Errors
    /// A game that cannot be played.
    pub fn new(settings: Settings, shards: u32) -> Result<Self, BallotError> {
        Ok(Self {
            ballots: Ballots::new(settings.game.clone())?,
            settings,
            seen: (0..shards).map(|_| Seen::default()).collect(),
            first_ns: AtomicU64::new(u64::MAX),
            stopped: AtomicBool::new(false),
            trouble: Mutex::default(),
        })
    }

    /// Ends the benchmark early, for a reason that no further call will fix.
    pub fn stop(&self, reason: String) {
        lock(&self.trouble).get_or_insert(reason);
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Returns true if it was ended early.
    #[inline]
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Reason why it was ended early.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        lock(&self.trouble).clone()
    }

    /// Time at which the first call was made, ns on the clock that measures.
    #[must_use]
    pub fn first_call_ns(&self) -> Option<u64> {
        Some(self.first_ns.load(Ordering::Relaxed)).filter(|&at_ns| at_ns < u64::MAX)
    }

    /// Returns the present state; the longest times restart with each look. Only one may look.
    #[must_use]
    pub fn look(&self) -> VotingNow {
        let mut now = VotingNow::default();
        for seen in &self.seen {
            let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
            // Ends are read before beginnings, so that never more have ended than were sent.
            now.accepted += read(&seen.accepted);
            now.rejected_contestant += read(&seen.rejected_contestant);
            now.rejected_limit += read(&seen.rejected_limit);
            now.failed += read(&seen.failed);
            now.unknown += read(&seen.unknown);
            now.retries += read(&seen.retries);
            now.client_sum_ns += read(&seen.client_sum_ns);
            now.server_sum_ms += read(&seen.server_sum_ms);
            now.allowed += read(&seen.allowed);
            now.sent += read(&seen.sent);
            let most = |most: &AtomicU64| most.swap(0, Ordering::Relaxed);
            now.client_max_ns = now.client_max_ns.max(most(&seen.client_max_ns));
            now.server_max_ms = now.server_max_ms.max(most(&seen.server_max_ms));
        }
        now
    }

    /// Result of the tuned load, by the tally of all shards; `None` where there was none to keep.
    #[must_use]
    pub fn tuned(&self, tally: &VoterTally) -> Option<TuneResult> {
        let goal = self.settings.tune.as_ref()?;
        Some(tally.trace.result(goal))
    }

    /// A shard makes its first call.
    pub(super) fn shard_begins(&self) {
        self.first_ns.fetch_min(now_ns(), Ordering::Relaxed);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
