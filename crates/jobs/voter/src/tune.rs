//! Number of calls that may be in flight so that their times keep a limit: more while it is kept, fewer when it is not.
//!
//! The rule comes from that of VoltDB's clients up to version 5, which looked at the mean of the last five and of the last
//! 25 windows of 100 ms: while both are below the limit, a tenth more (at least five); when both are above it, a tenth
//! less; when only the recent ones are, one less; when only they are not, one more. Here a window is late when more calls
//! than the percentile allows came after the limit, and windows are added up by their calls, so that nothing is averaged.
//! A tenth less is due as soon as the recent windows are late and the last one alone is too: with the tail of a
//! distribution it is soon far too late. Values from before such a retreat say nothing of the load after it, and are
//! forgotten; and where the limit lies is known by then, so that from then on it is only a hundredth more.

use plimsoll_core::clock::{MILLISECOND_NS, SECOND_NS};
use plimsoll_core::slo::{Slo, SloError};
use std::collections::VecDeque;
use std::str::FromStr;
use thiserror::Error;

/// The shortest stretch that is distinguished, ns.
pub(super) const WINDOW_NS: u64 = 100 * MILLISECOND_NS;
/// Calls allowed in flight at the beginning, all shards together.
const START: u32 = 20;
/// Windows that are remembered.
const MEDIUM: usize = 25;
/// Of these, the ones that are recent.
const RECENT: usize = 5;
/// A step is this part of what is allowed,
const STEP_SHARE: f64 = 0.1;
/// and after the first step back, this part upwards,
const CLIMB_SHARE: f64 = 0.01;
/// and at least this many, all shards together.
const STEP_MIN: u32 = 5;
/// A window is extended until it holds enough calls that could come late,
const LATE_LEAST: f64 = 4.0;
/// but not beyond this, ns.
const WINDOW_MAX_NS: u64 = SECOND_NS;

/// Latency that is compared with the limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TunedLatency {
    /// Ours: from the intended start to the last byte.
    #[default]
    Client,
    /// Time that the server reports with its replies, in whole milliseconds.
    Server,
}

impl TunedLatency {
    /// Its name in records: `client` or `server`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            TunedLatency::Client => "client",
            TunedLatency::Server => "server",
        }
    }
}

/// A limit that a load is to keep, such as `p99=10ms`.
#[derive(Clone, Debug, PartialEq)]
pub struct TuneGoal {
    /// Share of calls that must come in time, above 0 and below 1.
    pub quantile: f64,
    /// The time, ns.
    pub limit_ns: u64,
    /// Latency that is compared with the limit.
    pub latency: TunedLatency,
    text: String,
}

/// A limit that no load can be tuned to.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TuneGoalError {
    /// It cannot be read.
    #[error(transparent)]
    Limit(#[from] SloError),
    /// It is not about a percentile.
    #[error(
        "'{0}' is not a tuning limit; write a percentile below p100 and its limit, for example p99=10ms"
    )]
    Percentile(String),
}

impl FromStr for TuneGoal {
    type Err = TuneGoalError;

    fn from_str(text: &str) -> Result<Self, TuneGoalError> {
        match text.parse::<Slo>()? {
            Slo::Quantile { quantile, limit } if quantile < 1.0 && limit.ns > 0 => Ok(Self {
                quantile,
                limit_ns: limit.ns,
                latency: TunedLatency::default(),
                text: text.trim().to_owned(),
            }),
            _ => Err(TuneGoalError::Percentile(text.to_owned())),
        }
    }
}

impl TuneGoal {
    /// The same limit on this latency.
    #[must_use]
    pub fn of(mut self, latency: TunedLatency) -> Self {
        self.latency = latency;
        self
    }

    /// As it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns true if this many late calls of this many keep it.
    #[must_use]
    pub fn is_held(&self, late: u64, calls: u64) -> bool {
        late as f64 <= (1.0 - self.quantile) * calls as f64 + 1e-9
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct WindowOfCalls {
    calls: u64,
    late: u64,
}

/// Number of calls that one shard may have in flight.
#[derive(Clone, Debug)]
pub struct Tuner {
    goal: TuneGoal,
    allowed: f64,
    max: f64,
    step_min: f64,
    /// Calls before a window says anything.
    calls_least: u64,
    past: VecDeque<WindowOfCalls>,
    current: WindowOfCalls,
    from_ns: u64,
    /// True if all that is allowed was ever in flight in the window: otherwise the number made no difference.
    was_full: bool,
    retreats: u64,
    /// True if the number stays what it is.
    is_held: bool,
}

impl Tuner {
    /// One of several shards that together have at most `max` calls in flight.
    #[must_use]
    pub fn new(goal: TuneGoal, max: u32, shards: u32) -> Self {
        let share = |all: u32| (f64::from(all) / f64::from(shards.max(1))).max(1.0);
        let calls_least = (LATE_LEAST / (1.0 - goal.quantile)).ceil() as u64;
        Self {
            goal,
            allowed: share(START.min(max)),
            max: share(max),
            step_min: share(STEP_MIN),
            calls_least,
            past: VecDeque::with_capacity(MEDIUM),
            current: WindowOfCalls::default(),
            from_ns: 0,
            was_full: false,
            retreats: 0,
            is_held: false,
        }
    }

    /// The same with a number that stays: this many of all `shards` shards, of which this is `shard`.
    #[must_use]
    pub fn held(mut self, under_way: u32, shard: u32, shards: u32) -> Self {
        let shards = shards.max(1);
        let own = under_way / shards + u32::from(shard < under_way % shards);
        (self.allowed, self.is_held) = (f64::from(own.max(1)), true);
        self
    }

    /// Number of calls that may be in flight now, at least 1.
    #[must_use]
    pub fn allowed(&self) -> u32 {
        self.allowed as u32
    }

    /// Number of times that it has gone back.
    #[must_use]
    pub fn retreats(&self) -> u64 {
        self.retreats
    }

    /// The goal.
    #[must_use]
    pub fn goal(&self) -> &TuneGoal {
        &self.goal
    }

    /// Notes that all that is allowed is in flight, and a client waits.
    pub fn full(&mut self) {
        self.was_full = true;
    }

    /// Takes the end of a call, and returns true if it came too late, as each call that failed did.
    pub fn ended(&mut self, took_ns: Option<u64>, now_ns: u64) -> bool {
        let late = took_ns.is_none_or(|took_ns| took_ns > self.goal.limit_ns);
        if self.from_ns == 0 {
            self.from_ns = now_ns;
        }
        if self.is_held {
            return late;
        }
        self.current.calls += 1;
        self.current.late += u64::from(late);
        let length_ns = now_ns.saturating_sub(self.from_ns);
        let enough = self.current.calls >= self.calls_least || length_ns >= WINDOW_MAX_NS;
        if length_ns >= WINDOW_NS && enough {
            self.close(now_ns);
        }
        late
    }

    fn close(&mut self, now_ns: u64) {
        if self.past.len() == MEDIUM {
            self.past.pop_front();
        }
        self.past.push_back(std::mem::take(&mut self.current));
        self.from_ns = now_ns;
        let was_full = std::mem::take(&mut self.was_full);
        let step = (self.allowed * STEP_SHARE).max(self.step_min);
        let one = self.step_min / f64::from(STEP_MIN);
        let change = match (self.is_late(RECENT), self.is_late(MEDIUM)) {
            (true, _) if self.is_late(1) => -step,
            (true, _) => -one,
            (false, true) => one,
            (false, false) if self.retreats > 0 => (self.allowed * CLIMB_SHARE).max(one),
            (false, false) => step,
        };
        // More of what is not used would say nothing.
        if change > 0.0 && !was_full {
            return;
        }
        self.allowed = (self.allowed + change).clamp(1.0, self.max);
        if change <= -step {
            self.retreats += 1;
            self.past.clear();
        }
    }

    /// Returns true if the last `windows` windows together missed the limit.
    fn is_late(&self, windows: usize) -> bool {
        let (mut calls, mut late) = (0, 0);
        for window in self.past.iter().rev().take(windows) {
            calls += window.calls;
            late += window.late;
        }
        !self.goal.is_held(late, calls)
    }
}

#[cfg(test)]
mod tests;
