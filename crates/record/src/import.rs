//! Source of a record whose figures another tool measured.

use crate::fbench::Percentile;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The file that a record was made from, and the limits of what it tells.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ImportResult {
    /// Tool that measured: `wrk`, `k6`, `Gatling`.
    pub tool: String,
    /// Its version, if the file gives it.
    pub tool_version: Option<String>,
    /// Name of the file's format, as `--format` has it.
    pub format: String,
    /// Name of the file.
    pub file: String,
    /// Start of the measurement in UTC, if the file gives it.
    pub measured_from: Option<String>,
    /// Times that the source has: `service` (from the send), `response` (from the intended start), both, or neither.
    pub times: Vec<String>,
    /// Moment from which the source counts a time, in words.
    pub times_from: String,
    /// Requests that the times are of: `all` replies, or `successful` ones; empty without times.
    pub times_of: String,
    /// Precision of times and percentiles, in words.
    pub exact_to: String,
    /// A time that the source gives as 0 is shorter than this, ms; unset if the source does not round times to 0.
    pub below_ms: Option<f64>,
    /// Percentiles as the source printed them; of the response time if the source has it, or else of the service time.
    pub percentiles: Vec<Percentile>,
    /// All requests that failed, if the source gives their number.
    pub failed: Option<u64>,
    /// Failures in the words of the source, with their number.
    pub failures: BTreeMap<String, u64>,
    /// Settings of the source that the file gives: connections, threads, clients.
    pub settings: BTreeMap<String, String>,
    /// Fields of this record that the source does not give, as paths such as `latency_ms.service.p95`. They are `null`.
    /// A `*` stands for every class.
    pub unknown: Vec<String>,
    /// True if the file holds single requests or seconds, so that the record has `intervals.ndjson`.
    pub has_seconds: bool,
}

impl ImportResult {
    /// Tool and version: `wrk 4.1.0`.
    #[must_use]
    pub fn source(&self) -> String {
        match &self.tool_version {
            Some(version) => format!("{} {version}", self.tool),
            None => self.tool.clone(),
        }
    }

    /// Returns true if the source does not give this field, or an object that holds it.
    #[must_use]
    pub fn lacks(&self, path: &str) -> bool {
        self.unknown.iter().any(|unknown| covers(unknown, path))
    }
}

/// Returns true if `unknown` is the path, or that of an object above it.
fn covers(unknown: &str, path: &str) -> bool {
    let mut steps = path.split('.');
    unknown.split('.').all(|own| steps.next().is_some_and(|step| own == step || own == "*"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_object_covers_its_fields() {
        let unknown = ["generator", "latency_ms.service.p95", "classes.*.zero_hits"];
        let import = ImportResult {
            unknown: unknown.map(str::to_owned).to_vec(),
            ..ImportResult::default()
        };
        for lacking in ["generator", "generator.lag_ms.p99", "classes.home.zero_hits"] {
            assert!(import.lacks(lacking), "{lacking}");
        }
        for known in ["latency_ms.service", "latency_ms.service.p99", "generators", "classes.a"] {
            assert!(!import.lacks(known), "{known}");
        }
    }
}
