//! What a record says of the job of the catalogue that made it.

use plimsoll_core::record::RunRecord;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The key of a record under which the job stands.
pub const KEY: &str = "catalogue";
/// The key of a record under which its hooks' results stand.
pub const HOOKS_KEY: &str = "hooks";

/// The job that made a run, and its score.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CatalogueEntry {
    /// Its name in the catalogue, or in the file it came from.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Which set of arguments was chosen, when the job has several.
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
    /// What the figure is held against.
    pub baseline: Option<f64>,
    /// `value / baseline`.
    pub score: Option<f64>,
}

impl CatalogueEntry {
    /// What the record says; `None` when it was not made by a job of a catalogue.
    #[must_use]
    pub fn of(record: &RunRecord) -> Option<Self> {
        serde_json::from_value(record.job_results.get(KEY)?.clone()).ok()
    }

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

    /// The fields to put into the record.
    #[must_use]
    pub fn fields(&self) -> Map<String, Value> {
        let value = serde_json::to_value(self).unwrap_or_default();
        Map::from_iter([(KEY.to_owned(), value)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;
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

    #[test]
    fn it_is_found_in_the_record_again() {
        let entry = CatalogueEntry { name: "fbench".to_owned(), ..CatalogueEntry::default() };
        let mut record = samples::good();
        assert_eq!(CatalogueEntry::of(&record), None);
        record.job_results.extend(entry.fields());
        assert_eq!(CatalogueEntry::of(&record), Some(entry));
    }
}
