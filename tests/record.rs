//! What tests look for in run records.

use crate::process::{Ended, takes_a_processor};
use serde_json::Value;

/// A run record.
pub struct Record(pub Value);

impl Record {
    /// From `--json -`: stdout must be JSON and nothing else.
    #[track_caller]
    pub fn of(ended: &Ended) -> Self {
        Self(serde_json::from_str(&ended.stdout).unwrap_or_else(|error| {
            panic!("{error}\n--- stdout\n{}\n--- stderr\n{}", ended.stdout, ended.stderr)
        }))
    }

    /// The record is what the schema that users have says.
    #[track_caller]
    pub fn expect_schema(&self) {
        let schema: Value = serde_json::from_str(include_str!("../docs/run.schema.json")).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let complaints: Vec<String> = validator
            .iter_errors(&self.0)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert_eq!(complaints, Vec::<String>::new());
    }

    #[track_caller]
    pub fn number(&self, pointer: &str) -> f64 {
        let value = self.0.pointer(pointer);
        value.and_then(Value::as_f64).unwrap_or_else(|| panic!("{pointer}: {value:?}"))
    }

    #[track_caller]
    pub fn count(&self, pointer: &str) -> u64 {
        let value = self.0.pointer(pointer);
        value.and_then(Value::as_u64).unwrap_or_else(|| panic!("{pointer}: {value:?}"))
    }

    #[track_caller]
    pub fn text(&self, pointer: &str) -> &str {
        let value = self.0.pointer(pointer);
        value.and_then(Value::as_str).unwrap_or_else(|| panic!("{pointer}: {value:?}"))
    }

    pub fn ok(&self) -> u64 {
        self.count("/ledger/ok")
    }

    pub fn sent(&self) -> u64 {
        self.count("/ledger/sent")
    }

    pub fn verdict(&self) -> &str {
        self.text("/verdict/kind")
    }

    /// Fails unless the verdict is valid, or says that others had the generator's processor: then the test is named when
    /// all have ended.
    #[track_caller]
    pub fn expect_valid(&self) {
        let reasons = self.0["verdict"]["reasons"].to_string();
        if self.verdict() == "generator-limited" && takes_a_processor(&reasons) {
            crate::unquiet::note(self.text("/verdict/reasons/0"));
            return;
        }
        assert_eq!(self.verdict(), "valid", "{:#}", self.0["verdict"]);
    }

    /// True if others had so much of the machine that a search says nothing of the line; then the test is named when all
    /// have ended. `stolen` is the share of the time that the host took.
    pub fn was_held_up(&self, stolen: f64) -> bool {
        let starved = self.number("/generator/health/starved");
        let reasons = self.0["verdict"]["reasons"].to_string();
        // The target of a test shares the machine: it waits where the generator does.
        let failed = self.verdict() != "valid" && (takes_a_processor(&reasons) || starved > 0.02);
        let held_up = stolen > 0.02 || starved > 0.1 || failed;
        if held_up {
            crate::unquiet::note(&format!(
                "{stolen:.3} of the time was stolen, the generator waited for a processor for {starved:.3} of it: nothing \
                 can be said of the line"
            ));
        }
        held_up
    }

    /// Failures by class, those that are 0 left out.
    pub fn failures(&self) -> Vec<(String, u64)> {
        let failed = self.0.pointer("/ledger/failed").and_then(Value::as_object).unwrap();
        failed
            .iter()
            .map(|(kind, n)| (kind.clone(), n.as_u64().unwrap()))
            .filter(|(_, n)| *n > 0)
            .collect()
    }

    /// All `n` requests failed, all of them in this class.
    #[track_caller]
    pub fn expect_failed(&self, kind: &str, n: u64) {
        assert_eq!(self.failures(), [(kind.to_owned(), n)], "{:#}", self.0["ledger"]);
    }

    /// The books, checked here too, by other code than the program's.
    #[track_caller]
    pub fn expect_balanced(&self) {
        let ledger = &self.0["ledger"];
        let n = |pointer: &str| ledger.pointer(pointer).and_then(Value::as_u64).unwrap();
        let failed: u64 = self.failures().iter().map(|(_, n)| n).sum();
        let refused = n("/refused/queue_full") + n("/refused/queue_timeout");
        assert_eq!(n("/scheduled"), n("/sent") + refused + n("/unsent/stopped"), "{ledger:#}");
        assert_eq!(n("/sent"), n("/ok") + failed + n("/unfinished"), "{ledger:#}");
        assert_eq!(self.count("/latency_ms/response/count"), n("/ok"), "{ledger:#}");
    }

    pub fn has_warning(&self, part: &str) -> bool {
        let warnings = self.0["warnings"].as_array().unwrap();
        warnings.iter().any(|warning| warning.as_str().unwrap().contains(part))
    }
}
