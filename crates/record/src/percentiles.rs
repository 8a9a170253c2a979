//! The intervals of a run's percentiles.

use serde::{Deserialize, Serialize};

/// The confidence interval of a percentile of one run, or the reason why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum PercentileInterval {
    /// The interval.
    Known {
        /// Percentile of the whole run, ms; the same as in `latency_ms.response`.
        estimate: f64,
        /// Lower end, ms.
        low: f64,
        /// Upper end, ms.
        high: f64,
        /// Share of runs under the same conditions whose interval holds the percentile of the long run, 0 to 1.
        confidence: f64,
        /// Batches of neighbouring periods that its width was taken from.
        batches: u32,
    },
    /// No interval.
    Missing {
        /// The reason, as the end of a sentence that begins with "no interval:".
        reason: String,
    },
}
