//! The evidence behind a line: how often the target was looked at, how many requests were judged, how late the generator was.

use serde::{Deserialize, Serialize};

/// The evidence behind a line, of the time since the target was the same as at the end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Basis {
    /// Measurements of the capacity.
    pub capacity_looks: u32,
    /// The largest of them over the smallest, less 1; none of fewer than two.
    pub capacity_apart: Option<f64>,
    /// Blocks of load near the line.
    pub blocks: u64,
    /// Their length together, s.
    pub blocks_s: f64,
    /// True if there were enough of them to look for a trend and a step.
    pub tested: bool,
    /// Requests in them that the binding limit judges.
    pub requests: u64,
    /// Share of these that missed it; for a mean, the mean response time over the limit.
    pub missed: f64,
    /// The same where the limit just holds.
    pub allowed: f64,
    /// Requests in the blocks that failed, of whatever class.
    pub failed: u64,
    /// Class that the binding limit judges; none where it judges all requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Variance of a block's late count over that of independent requests.
    pub dispersion: Option<f64>,
    /// The generator's lag at its 99th percentile in the worst part that was judged, s.
    pub lag_p99_s: f64,
    /// Lag above which a part is offered once more, s.
    pub lag_tolerated_s: f64,
    /// Half-width that was asked for.
    pub width: f64,
    /// Time of a search that reaches that width, or where no line is known yet, of the shortest that finds one, s.
    pub needs_s: f64,
}
