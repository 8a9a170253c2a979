//! Results of the voter benchmark and of hello: votes and rows, processes, tuning.

use crate::bench_shape::Shape;
use plimsoll_core::histogram::{Histogram, LatencySummary};
use plimsoll_core::moments::{Moment, joined_per_s};
use plimsoll_core::voter::{KeyRange, WriteCheck, WriteCheckKind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Result of the votes: the record's section `voter`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VoterResult {
    /// Votes that the database acknowledged, in the warm-up too.
    pub accepted: u64,
    /// Votes that it rejected by its own rules: answers, and no failures.
    pub rejected: Rejected,
    /// Calls of which no one knows whether they were done: timed out, cut off, unfinished, or answered so.
    pub unknown: u64,
    /// Calls that were surely not done, by what was said of them: statuses of the server, connections that were not made.
    #[serde(default)]
    pub errors: BTreeMap<String, u64>,
    /// Calls sent once more after the database had rolled them back, each counted once as a call.
    #[serde(default)]
    pub retries: u64,
    /// Rows in the key range before the first call; none where no one counted.
    pub rows_before: Option<u64>,
    /// Rows in the key range after the last call; none where no one counted.
    pub rows_after: Option<u64>,
    /// Result of comparing the two: `ok`, `missing`, `surplus` or `not-checked`.
    pub check: WriteCheckKind,
    /// Number of rows that are missing, or too many.
    #[serde(default)]
    pub check_rows: u64,
    /// Reason why they were not checked; empty where they were.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub check_reason: String,
    /// Key range of this client among all key ranges.
    #[serde(default)]
    pub key_range: KeyRange,
    /// Times that the server reports for its calls; whole milliseconds, measured inside it.
    #[serde(default)]
    pub server: ServerTimes,
    /// The way the load that keeps a limit was found, where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_tune: Option<TuneResult>,
    /// Contestants as the database counts them, most votes first.
    #[serde(default)]
    pub contestants: Vec<ContestantVotes>,
    /// All client processes together.
    #[serde(default)]
    pub totals: Totals,
    /// The client processes; one where no one asked for several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<VoterProcess>,
    /// Time at which the first calls should have been made, us since 1970 UTC; none where no start was agreed on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreed_start_us: Option<u64>,
    /// Shape of the load, in Erlvolt's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<Shape>,
    /// Hosts and ports of the database, in the order of the connections.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
}

/// Votes rejected by the rules of the game.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rejected {
    /// For someone who is no contestant.
    pub contestant: u64,
    /// From a telephone that had voted as often as it may.
    pub limit: u64,
}

impl Rejected {
    /// Both together.
    #[must_use]
    pub const fn total(self) -> u64 {
        self.contestant + self.limit
    }
}

/// The times that servers report with their replies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerTimes {
    /// Of the calls that the database answered, accepted or rejected.
    pub ms: LatencySummary,
    /// The same as a histogram (HdrHistogram V2, deflated, base64); empty where no server reports.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub histogram: String,
}

impl From<&Histogram> for ServerTimes {
    fn from(histogram: &Histogram) -> Self {
        let encoded = if histogram.is_empty() { String::new() } else { histogram.encode() };
        Self { ms: histogram.summary(), histogram: encoded }
    }
}

/// A contestant and its votes, as the database says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContestantVotes {
    /// Name.
    pub name: String,
    /// Number, from 1.
    pub number: u32,
    /// Votes.
    pub votes: u64,
}

/// Result of a load that adapts itself to a limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TuneResult {
    /// The limit as it was written: `p99=10ms`.
    pub goal: String,
    /// Latency that was tuned: `client`, from the intended start, or `server`, as the replies report it.
    pub latency: String,
    /// Median rate of the windows after settling in which the limit held, calls per second; none where it never did.
    pub best_rate_per_s: Option<f64>,
    /// Median number of calls in flight in those windows.
    pub best_under_way: Option<f64>,
    /// Windows after settling.
    pub windows: u64,
    /// Windows after settling in which the limit held.
    pub windows_held: u64,
    /// The headline: calls per second in the last check, if the limit held in it and it was long enough; else none.
    #[serde(default)]
    pub certified_rate_per_s: Option<f64>,
    /// Runs with a fixed number of calls in flight after tuning, the last one at the end.
    #[serde(default)]
    pub checks: Vec<TuneCheck>,
    /// The way the load went, in order of time.
    pub trace: Vec<TunePoint>,
}

/// A run with a fixed number of calls in flight, which shows whether the limit holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TuneCheck {
    /// Calls in flight.
    pub under_way: u32,
    /// Its length, s.
    pub seconds: f64,
    /// Calls that ended.
    pub calls: u64,
    /// Share of these that came later than the limit, 0 to 1.
    pub late: f64,
    /// Calls answered a second.
    pub rate_per_s: f64,
    /// True if the limit held.
    pub held: bool,
    /// True if it was as long as a check must be, and came to its end.
    pub counts: bool,
}

/// A stretch of a load that adapts itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TunePoint {
    /// Its end, s from the first call.
    pub at_s: f64,
    /// Calls allowed in flight at its end.
    pub under_way: u32,
    /// Calls answered a second.
    pub rate_per_s: f64,
    /// Share of the answers that came later than the limit, 0 to 1.
    pub late: f64,
    /// True if the limit held in it.
    pub held: bool,
}

/// One client process of several.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VoterProcess {
    /// Index, from 0: also its key range.
    pub index: u32,
    /// Calls that came to their end.
    pub calls: u64,
    /// Votes acknowledged.
    pub accepted: u64,
    /// Votes rejected.
    pub rejected: Rejected,
    /// Calls of which no one knows whether they were done.
    pub unknown: u64,
    /// Time at which its first call was due, us since 1970 UTC.
    pub started_us: u64,
    /// Time at which its last call ended, us since 1970 UTC.
    pub ended_us: u64,
    /// Its own calls per second.
    pub rate_per_s: f64,
    /// Check of the rows of its own key range.
    pub check: WriteCheckKind,
    /// Number of rows that are missing, or too many.
    pub check_rows: u64,
    /// Name of the client.
    #[serde(default)]
    pub client: String,
    /// Calls that failed, were refused by the queue, or have no known end.
    #[serde(default)]
    pub fails: u64,
    /// Rows in its key range before the first call; none where no one counted.
    #[serde(default)]
    pub rows_before: Option<u64>,
    /// Rows in the key range after the last call; none where no one counted.
    #[serde(default)]
    pub rows_after: Option<u64>,
    /// Its laps: what its rolling lines say. Those of a load that adapts itself are of the time before its checks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub laps: Vec<VoterLap>,
    /// Reason why nothing is known of it, where it did not come to its end.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub died: String,
}

/// A lap of a client, as its rolling line says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VoterLap {
    /// Its start, s since the first call was due.
    pub from_s: f64,
    /// Its end, s since the first call was due.
    pub at_s: f64,
    /// Calls that ended in it, per second.
    pub lap_per_s: f64,
    /// Calls that ended since the start, per second.
    pub total_per_s: f64,
    /// Calls that were answered well since the start.
    pub success: u64,
    /// Calls since the start that were not.
    pub fails: u64,
    /// Calls in flight at its end.
    pub pending: u64,
    /// Mean of the times from the intended start since the start, ms.
    pub client_mean_ms: f64,
    /// Longest time from the intended start in the lap, ms.
    pub client_max_ms: f64,
    /// Mean of the times that the server reports since the start, ms; absent if it reports none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_mean_ms: Option<f64>,
    /// Longest time that the server reports in the lap, ms; absent if it reports none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_max_ms: Option<f64>,
    /// Calls that waited in the queue at its end; absent if there is no queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued: Option<u64>,
    /// Longest wait in the queue in the lap, ms; absent if there is no queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_wait_max_ms: Option<f64>,
}

impl Moment for VoterLap {
    fn append(&mut self, next: &Self) {
        let most = |before: Option<f64>, after: Option<f64>| {
            before.zip(after).map_or(after, |(before, after)| Some(before.max(after)))
        };
        *self = Self {
            from_s: self.from_s,
            lap_per_s: joined_per_s(
                (self.at_s - self.from_s, self.lap_per_s),
                (next.at_s - next.from_s, next.lap_per_s),
            ),
            client_max_ms: self.client_max_ms.max(next.client_max_ms),
            server_max_ms: most(self.server_max_ms, next.server_max_ms),
            queue_wait_max_ms: most(self.queue_wait_max_ms, next.queue_wait_max_ms),
            ..*next
        };
    }
}

impl VoterProcess {
    /// Returns the check of its rows.
    #[must_use]
    pub const fn write_check(&self) -> WriteCheck {
        self.check.check(self.check_rows)
    }

    /// From its first call to its last answer, s.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.ended_us.saturating_sub(self.started_us) as f64 / 1e6
    }
}

/// Client processes taken together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Totals {
    /// Calls that came to their end, all processes together.
    pub transactions: u64,
    /// From the first start to the last end, s.
    pub wall_s: f64,
    /// Calls per second: `transactions` over `wall_s`.
    pub per_s: f64,
    /// Sum of the processes' own rates, each over its own time; `per_s` is over the time of all of them.
    pub sum_of_rates_per_s: f64,
    /// Between the first start and the last, ms.
    pub start_skew_ms: f64,
}

impl Totals {
    /// Of these processes; nothing where there are none.
    #[must_use]
    pub fn of(processes: &[VoterProcess]) -> Self {
        let first_us = processes.iter().map(|p| p.started_us).min().unwrap_or(0);
        let latest_us = processes.iter().map(|p| p.started_us).max().unwrap_or(0);
        let end_us = processes.iter().map(|p| p.ended_us).max().unwrap_or(0);
        let transactions = processes.iter().map(|p| p.calls).sum();
        let wall_s = end_us.saturating_sub(first_us) as f64 / 1e6;
        Self {
            transactions,
            wall_s,
            per_s: if wall_s > 0.0 { transactions as f64 / wall_s } else { 0.0 },
            sum_of_rates_per_s: processes.iter().map(|p| p.rate_per_s).sum(),
            start_skew_ms: (latest_us - first_us) as f64 / 1e3,
        }
    }
}

impl VoterResult {
    /// Takes the check over into the record.
    pub fn set_check(&mut self, check: WriteCheck) {
        (self.check, self.check_rows) = (check.kind(), check.rows());
    }

    /// The check of this record.
    #[must_use]
    pub const fn write_check(&self) -> WriteCheck {
        self.check.check(self.check_rows)
    }
}

#[cfg(test)]
mod tests;
