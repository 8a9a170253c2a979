//! Results of a search for the load line.

use crate::reading::read_value;
use plimsoll_core::seek::finding::Finding;
use plimsoll_core::seek::rivals::Rival;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// A search's result: what it found, and its rates once more as the jobs that searched count them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SeekResult {
    /// Finding of the search.
    #[serde(flatten)]
    pub finding: Finding,
    /// The certified rate, requests per second; null if no rate was certified.
    pub certified_rate_per_s: Option<f64>,
    /// The rate that the search of a ranking benchmark found before its last run, requests per second; null if none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub searched_rate_per_s: Option<Option<f64>>,
    /// The line in users per second, if users were sought.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub users: Option<SeekUsers>,
}

/// The fields of the section that are not the finding's.
#[derive(Deserialize)]
struct Beside {
    certified_rate_per_s: Option<f64>,
    #[serde(default, deserialize_with = "present")]
    searched_rate_per_s: Option<Option<f64>>,
    users: Option<SeekUsers>,
}

/// A field that is there, be it null.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<f64>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

impl<'de> Deserialize<'de> for SeekResult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // In two halves: a flattened field would lose the path of what cannot be read.
        let value = Value::deserialize(deserializer)?;
        let told =
            |(field, problem): (String, String)| D::Error::custom(format!("{field}: {problem}"));
        let Beside { certified_rate_per_s, searched_rate_per_s, users } =
            read_value(&value).map_err(told)?;
        let finding = read_value(&value).map_err(told)?;
        Ok(Self { finding, certified_rate_per_s, searched_rate_per_s, users })
    }
}

impl From<Finding> for SeekResult {
    fn from(finding: Finding) -> Self {
        let certified_rate_per_s = finding.certified.as_ref().map(|run| run.rate_per_s);
        Self { finding, certified_rate_per_s, searched_rate_per_s: None, users: None }
    }
}

/// A load line in users per second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SeekUsers {
    /// Requests of each user.
    pub requests: u32,
    /// The certified rate, users per second; null if no rate was certified.
    pub certified_per_s: Option<f64>,
    /// Best estimate of the line, users per second.
    pub estimate_per_s: Option<f64>,
    /// The interval that holds the line, users per second.
    pub interval_per_s: Option<(f64, f64)>,
}

impl SeekUsers {
    /// A line in requests per second, in users of `requests` each.
    #[must_use]
    pub fn of(found: &SeekResult, requests: u32) -> Self {
        let each = f64::from(requests);
        Self {
            requests,
            certified_per_s: found.certified_rate_per_s.map(|per_s| per_s / each),
            estimate_per_s: found.finding.estimate_per_s.map(|per_s| per_s / each),
            interval_per_s: found
                .finding
                .interval_per_s
                .map(|(low, high)| (low / each, high / each)),
        }
    }
}

/// Result of a search with another tool's method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RivalResult {
    /// The other tool.
    pub method: Rival,
    /// The rate that it ends at, requests per second; 0 if none.
    pub rate_per_s: f64,
    /// Share of the requests of its last trial that were late, 0 to 1.
    pub last_late_share: f64,
    /// Time that it took, with the pauses that the method makes, s.
    pub elapsed_s: f64,
    /// Trials.
    pub trials: u32,
}
