//! State shared by all worker threads of a feed and its observers.

use super::batch::{Item, Parameters};
use super::failed::FailedOperations;
use super::input::Input;
use super::tally::Tally;
use plimsoll_core::schedule::{Limits, LoadModel, Slice};
use plimsoll_job::together::was_ended_early;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of operations that may be in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InflightChoice {
    /// As many as it takes, at most this many.
    Adaptive(u32),
    /// This many.
    Fixed(u32),
}

impl InflightChoice {
    /// The most that may be in flight.
    #[must_use]
    pub const fn limit(self) -> u32 {
        match self {
            Self::Adaptive(limit) | Self::Fixed(limit) => limit,
        }
    }
}

/// The way a feed goes about its work.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Number of operations that may be in flight, all shards together.
    pub inflight: InflightChoice,
    /// Number of times that an operation is sent again after failures other than 429.
    pub retries: u32,
    /// Longest time that an operation may take, with all its repetitions, ns.
    pub timeout_ns: u64,
    /// Statuses beside 2xx that count as accepted.
    pub allowed: Vec<u16>,
    /// Intended starts that do not depend on the answers, and how long there are any; without them, as fast as the
    /// target takes it.
    pub pace: Option<(LoadModel, Limits)>,
    /// True if the end of its time is an end as good as that of the input.
    pub may_end_early: bool,
    /// Parameters of every operation.
    pub parameters: Parameters,
    /// Seed of the pauses and of the pace.
    pub seed: u64,
    /// The part of a larger feed; the limits of this are those of the larger one.
    pub slice: Slice,
}

/// State of a running feed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeedNow {
    /// Operations accepted.
    pub accepted: u64,
    /// Operations that came to another end, malformed ones not counted.
    pub refused: u64,
    /// Repetitions.
    pub retries: u64,
    /// Requests in flight.
    pub under_way: u64,
    /// Number of operations that may be in flight.
    pub window: u64,
    /// Bytes of bodies sent.
    pub body_bytes: u64,
    /// Time at which one was accepted last, ns; 0 when none was.
    pub accepted_at_ns: u64,
}

/// Written by one shard only, read by whoever watches.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Seen {
    pub accepted: AtomicU64,
    pub refused: AtomicU64,
    pub retries: AtomicU64,
    pub under_way: AtomicU64,
    pub window: AtomicU64,
    pub body_bytes: AtomicU64,
    pub accepted_at_ns: AtomicU64,
}

/// A feed in flight.
pub struct Feed {
    /// The way it goes about its work.
    pub settings: Settings,
    /// Input of the feed.
    pub input: Input,
    /// Operations that were not accepted.
    pub failed: FailedOperations,
    pub(super) seen: Vec<Seen>,
    pub(super) stopped: AtomicBool,
    trouble: Mutex<Option<String>>,
}

impl Feed {
    /// Returns true if an end before that of the input is as good: the feed has a time, or its coordinator has ended it.
    #[must_use]
    pub fn may_end_early(&self) -> bool {
        self.settings.may_end_early || was_ended_early()
    }

    /// A feed of this many shards.
    #[must_use]
    pub fn new(settings: Settings, input: Input, failed: FailedOperations, shards: u32) -> Self {
        Self {
            settings,
            input,
            failed,
            seen: (0..shards).map(|_| Seen::default()).collect(),
            stopped: AtomicBool::new(false),
            trouble: Mutex::default(),
        }
    }

    /// Settles an operation that was read and is not sent any more: it is left alone if the feed may end early; otherwise it was not
    /// accepted.
    pub(super) fn leave_unsent(&self, item: &Item, bytes: &[u8], tally: &mut Tally) {
        if self.may_end_early() && !self.is_stopped() {
            return tally.leave(item);
        }
        tally.unsettled += 1;
        let file = &self.input.names()[item.file as usize];
        self.failed.refused(item, bytes, file, 0, "the feed ended before it was sent");
    }

    /// Ends the feed for a reason that no further try will fix.
    pub fn stop(&self, reason: String) {
        lock(&self.trouble).get_or_insert(reason);
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Returns true if it was ended.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Reason why it was ended early, or the input could not be read to its end.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        lock(&self.trouble).clone().or_else(|| self.input.trouble())
    }

    /// Returns the present state.
    #[must_use]
    pub fn now(&self) -> FeedNow {
        let mut now = FeedNow::default();
        for seen in &self.seen {
            let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
            now.accepted += read(&seen.accepted);
            now.refused += read(&seen.refused);
            now.retries += read(&seen.retries);
            now.under_way += read(&seen.under_way);
            now.window += read(&seen.window);
            now.body_bytes += read(&seen.body_bytes);
            now.accepted_at_ns = now.accepted_at_ns.max(read(&seen.accepted_at_ns));
        }
        now
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
