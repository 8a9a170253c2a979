//! One stretch of a target that is followed, as the finding has it.

use serde::{Deserialize, Serialize};

/// One stretch of a target that is followed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Watched {
    /// Its beginning, s since the start of the search.
    pub from_s: f64,
    /// Its end.
    pub until_s: f64,
    /// Number of the target's state at its beginning, from 1.
    pub state: u32,
    /// The line, requests per second, from all blocks of the state so far.
    pub line_per_s: Option<f64>,
    /// The interval that holds it with the wanted confidence.
    pub interval_per_s: Option<(f64, f64)>,
    /// Rate that the target completed under overload at the end of the stretch, requests per second.
    pub capacity_per_s: Option<f64>,
    /// Blocks that the line was fitted to.
    pub blocks: u64,
    /// Time at which the first of them began, s.
    pub blocks_from_s: f64,
    /// The change, or the reason for a missing interval.
    pub note: Option<String>,
}
