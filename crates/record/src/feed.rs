//! Results of a feed, and of a feed beside queries.

use plimsoll_core::histogram::LatencySummary;
use plimsoll_core::moments::{Beside, Moment, joined_per_s};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A feed's result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FeedResult {
    /// Operations of the input that were read, malformed ones included and skipped ones not.
    pub operations: u64,
    /// Those that the target accepted.
    pub accepted: u64,
    /// Those that it answered with a final no, or that used up their tries or their time.
    pub refused: u64,
    /// Those that it did but for fields that it does not know (`X-Vespa-Ignored-Fields`).
    #[serde(default)]
    pub ignored_fields: u64,
    /// Those that it answered and did not do, as no cluster takes the document (`X-Vespa-Ignored-Operation`).
    #[serde(default)]
    pub ignored_operations: u64,
    /// Those that are no operations.
    pub malformed: u64,
    /// Those that were read and not settled when the feed ended.
    pub unsettled: u64,
    /// Those that were read and no longer wanted, where a feed may end before its input.
    #[serde(default)]
    pub left: u64,
    /// True if the whole input was read and every operation accepted.
    pub complete: bool,
    /// Time from the first moment to the last answer, s.
    pub seconds: f64,
    /// Accepted operations per second.
    pub accepted_per_s: f64,
    /// For how long more operations could have been sent and none had been read, s.
    #[serde(default)]
    pub input_limited_s: f64,
    /// Requests sent: operations and their repetitions.
    pub requests: u64,
    /// Repetitions by reason: a status, or what befell the connection.
    pub retries: BTreeMap<String, u64>,
    /// Bytes of request bodies as sent, packed where they were.
    pub body_bytes: u64,
    /// Bytes of reply bodies.
    pub reply_bytes: u64,
    /// The version of HTTP: `1.1` or `2`.
    pub http: String,
    /// Connections of all threads together.
    pub connections: u32,
    /// Number of operations that were in flight.
    pub inflight: Inflight,
    /// Times by the status of the answer, each apart from all others.
    pub codes: BTreeMap<String, CodeTimes>,
    /// Requests without an answer, by what befell them.
    pub lost: BTreeMap<String, u64>,
    /// The feed over time: window, operations in flight and rates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over_time: Vec<FeedMoment>,
    /// CPU of this process for one settled operation, us.
    pub cpu_us_per_operation: f64,
    /// Some of what was not accepted.
    pub examples: Vec<RefusedOperation>,
    /// Files of what was not accepted, and of the reasons.
    pub failed_files: Vec<String>,
    /// The input.
    pub files: Vec<String>,
    /// Operations passed over at the beginning of the input.
    pub skipped: u64,
    /// Position at which reading stopped, if the input was not read to its end.
    pub unread: Option<InputPlace>,
    /// Reason why the feed was ended early, if it was.
    pub trouble: Option<String>,
}

/// Number of operations that were in flight, all threads together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Inflight {
    /// True if the number was fixed by the user.
    pub fixed: bool,
    /// Most that were allowed.
    pub limit: u32,
    /// Most that there were.
    pub most: u32,
    /// The window at the end.
    pub last: u32,
    /// Number of times that the target's refusals made the window smaller.
    pub shrinks: u64,
    /// Number of times that everything was rejected, so that only one operation at a time tried.
    pub pauses: u64,
}

/// A stretch of a feed, all threads together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FeedMoment {
    /// Its start, s since the feed began.
    pub from_s: f64,
    /// Its end, s since the feed began.
    pub to_s: f64,
    /// Operations accepted per second.
    pub accepted_per_s: f64,
    /// Operations per second that came to another end.
    pub refused_per_s: f64,
    /// Repetitions per second.
    pub retried_per_s: f64,
    /// Number of operations that might be in flight at its end.
    pub window: u64,
    /// Number of operations that were in flight at its end.
    pub in_flight: u64,
}

impl Moment for FeedMoment {
    fn append(&mut self, next: &Self) {
        let (before_s, after_s) = (self.to_s - self.from_s, next.to_s - next.from_s);
        let mean = |before, after| joined_per_s((before_s, before), (after_s, after));
        *self = Self {
            from_s: self.from_s,
            to_s: next.to_s,
            accepted_per_s: mean(self.accepted_per_s, next.accepted_per_s),
            refused_per_s: mean(self.refused_per_s, next.refused_per_s),
            retried_per_s: mean(self.retried_per_s, next.retried_per_s),
            window: next.window,
            in_flight: next.in_flight,
        };
    }
}

impl Beside for FeedMoment {
    fn stretch(&self) -> (f64, f64) {
        (self.from_s, self.to_s)
    }

    fn empty(from_s: f64, to_s: f64) -> Self {
        Self { from_s, to_s, ..Self::default() }
    }

    fn add_rates(&mut self, other: &Self, share: f64) {
        self.accepted_per_s += other.accepted_per_s * share;
        self.refused_per_s += other.refused_per_s * share;
        self.retried_per_s += other.retried_per_s * share;
    }

    fn add_end(&mut self, other: &Self, is_over: bool) {
        if !is_over {
            self.window += other.window;
            self.in_flight += other.in_flight;
        }
    }
}

/// Times of the answers of one status, ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CodeTimes {
    /// Answers.
    pub count: u64,
    /// From sending to the answer's last byte.
    pub server: LatencySummary,
    /// From an operation's turn to the answer that settled it, waiting for earlier operations on the same document,
    /// pauses and repetitions included; only of operations that this status settled.
    pub whole: LatencySummary,
}

/// An operation that was not accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RefusedOperation {
    /// Its number in the input, from 1.
    pub operation: u64,
    /// Its file.
    pub file: String,
    /// Its line, from 1.
    pub line: u64,
    /// Its document; empty where it could not be read.
    pub id: String,
    /// The last status; 0 where there was no answer.
    pub status: u16,
    /// The reason.
    pub reason: String,
}

/// A place in the input.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InputPlace {
    /// The file.
    pub file: String,
    /// Its line, from 1, or a later one.
    pub line: u64,
    /// Operations before it in the whole input: what `--skip` takes.
    pub skip: u64,
}

/// Response times of requests beside a feed, and without it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MixResult {
    /// Whole seconds in which documents arrived.
    pub while_feeding: MixPart,
    /// Whole seconds after the last one.
    pub without: MixPart,
}

/// The requests that came to their ends in some seconds of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MixPart {
    /// Time that they were together, s.
    pub seconds: f64,
    /// Successful requests.
    pub ok: u64,
    /// Failed ones.
    pub failed: u64,
    /// Due to last byte, ms.
    pub response: LatencySummary,
    /// Sent to last byte, ms.
    pub service: LatencySummary,
}
