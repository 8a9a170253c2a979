//! Section of a record about the job of the catalogue that made it, and its hooks.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The job that made a run, and its score.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CatalogueEntry {
    /// Its name in the catalogue, or in the file it came from.
    pub name: String,
    /// Purpose of the job.
    pub description: String,
    /// Set of arguments that was chosen, when the job has several.
    pub role: Option<String>,
    /// Variables as they were used, defaults included.
    pub vars: BTreeMap<String, String>,
    /// The command's arguments, variables put in.
    pub args: Vec<String>,
    /// Hooks in their order, each as `name: {options}`.
    pub hooks: Vec<String>,
    /// JSON pointer of the raw figure in the record.
    pub metric: Option<String>,
    /// The raw figure.
    pub value: Option<f64>,
    /// Value with which the figure is compared.
    pub baseline: Option<f64>,
    /// `value / baseline`.
    pub score: Option<f64>,
}

impl CatalogueEntry {
    /// Takes the first of `metrics` that the record has as a number, and makes the score of it. One that is null ends the
    /// search: that run has no result, as of a search that certified no rate.
    pub fn measure(&mut self, record: &Value, metrics: &[String]) {
        let there = |pointer: &String| match record.pointer(pointer)? {
            Value::Null => Some((pointer.clone(), None)),
            value => Some((pointer.clone(), Some(value.as_f64()?))),
        };
        if let Some((pointer, Some(value))) = metrics.iter().find_map(there) {
            self.metric = Some(pointer);
            self.value = Some(value);
        }
        let baseline = self.baseline.filter(|baseline| *baseline > 0.0);
        self.score = self.value.zip(baseline).map(|(value, baseline)| value / baseline);
    }
}

/// Results of the hooks of a run, by name; the second of a name is `NAME-2`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Hooks(pub BTreeMap<String, HookRecord>);

/// Files and warnings of one hook.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HookRecord {
    /// Its files, in the folder `hooks/` of the record.
    pub files: Vec<String>,
    /// Means over the measured window, by file and column, in the unit of the file.
    pub averages: BTreeMap<String, BTreeMap<String, f64>>,
    /// Samples in the measured window, by file.
    pub samples_measured: BTreeMap<String, usize>,
    /// Problems.
    pub warnings: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_metric_that_is_there_makes_the_score() {
        let record = json!({"rate": {"ok_per_s": 114.0}, "seek": {"certified_rate_per_s": "none"}});
        let metrics = ["/seek/certified_rate_per_s", "/rate/ok_per_s"].map(str::to_owned);
        let mut entry = CatalogueEntry { baseline: Some(57.0), ..CatalogueEntry::default() };
        entry.measure(&record, &metrics);
        assert_eq!(entry.metric.as_deref(), Some("/rate/ok_per_s"));
        assert_eq!((entry.value, entry.score), (Some(114.0), Some(2.0)));
        let mut none = CatalogueEntry { baseline: Some(0.0), ..CatalogueEntry::default() };
        none.measure(&record, &metrics);
        assert_eq!((none.value, none.score), (Some(114.0), None));
    }

    #[test]
    fn a_search_that_certified_nothing_has_no_figure_and_no_score() {
        let record = json!({"rate": {"ok_per_s": 114.0}, "seek": {"certified_rate_per_s": null}});
        let metrics = ["/seek/certified_rate_per_s", "/rate/ok_per_s"].map(str::to_owned);
        let mut entry = CatalogueEntry { baseline: Some(57.0), ..CatalogueEntry::default() };
        entry.measure(&record, &metrics);
        assert_eq!((entry.metric, entry.value, entry.score), (None, None, None));
    }
}
