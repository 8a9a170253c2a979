//! Fields of a record that are unknown, because the tool that measured does not give them.
//!
//! In `run.json` such a field is `null`, and its path is in the list `import.unknown`. In memory an unknown figure with
//! decimals is not a number (NaN), and an unknown count is 0: a reader asks [`RunRecord::is_known`] before it shows one.

use crate::{ClassRecord, Latencies, RunRecord};
use plimsoll_core::histogram::LatencySummary;
use serde::Serialize;
use serde_json::Value;

/// The list of the unknown fields.
const LIST: &str = "/import/unknown";
/// The count of all failed requests.
const FAILED: &str = "/import/failed";

impl RunRecord {
    /// Returns false if the record is an import and its source does not give the field. `path` is that of the field in
    /// `run.json`, such as `ledger.scheduled`; the name of a class can be `*`.
    #[must_use]
    pub fn is_known(&self, path: &str) -> bool {
        self.job_results.import().is_none_or(|import| !import.lacks(path))
    }

    /// The value, unless the field is unknown.
    #[must_use]
    pub fn known<T>(&self, path: &str, value: T) -> Option<T> {
        self.is_known(path).then_some(value)
    }

    /// Sets unknown figures with decimals to NaN, so that none of them can be taken for 0. If the source does not give the
    /// number of requests that were due, it is set to the number that were sent, so that shares have a whole.
    pub fn blank_unknown(&mut self) {
        let Some(import) = self.job_results.import().cloned() else { return };
        if import.lacks("ledger.scheduled") {
            self.ledger.scheduled = self.ledger.sent;
        }
        let blank = |path: &str, figure: &mut f64| {
            if import.lacks(path) {
                *figure = f64::NAN;
            }
        };
        blank("duration_s", &mut self.duration_s);
        blank("rate.offered_per_s", &mut self.rate.offered_per_s);
        blank("rate.achieved_per_s", &mut self.rate.achieved_per_s);
        blank("rate.ok_per_s", &mut self.rate.ok_per_s);
        blank_times("latency_ms", &mut self.latency_ms, &blank);
        blank_summary("generator.lag_ms", &mut self.generator.lag_ms, &blank);
        for class in self.classes.values_mut() {
            blank("classes.*.ok_per_s", &mut class.ok_per_s);
            blank_times("classes.*.latency_ms", &mut class.latency_ms, &blank);
        }
    }

    /// The record as a value in which unknown fields are `null`; `None` if it is no import, so that it is written as it is.
    #[must_use]
    pub fn with_unknown_as_null(&self) -> Option<Value> {
        let import = self.job_results.import()?;
        let mut value = serde_json::to_value(self).ok()?;
        for path in &import.unknown {
            each_at(&mut value, &steps(path), &mut |field| *field = Value::Null);
        }
        Some(value)
    }
}

fn blank_times(path: &str, times: &mut Latencies, blank: &impl Fn(&str, &mut f64)) {
    for (name, summary) in [
        ("response", &mut times.response),
        ("service", &mut times.service),
        ("failed", &mut times.failed),
    ] {
        blank_summary(&format!("{path}.{name}"), summary, blank);
    }
}

fn blank_summary(path: &str, summary: &mut LatencySummary, blank: &impl Fn(&str, &mut f64)) {
    for (name, figure) in [
        ("min", &mut summary.min),
        ("mean", &mut summary.mean),
        ("p50", &mut summary.p50),
        ("p90", &mut summary.p90),
        ("p95", &mut summary.p95),
        ("p99", &mut summary.p99),
        ("p99_9", &mut summary.p99_9),
        ("max", &mut summary.max),
    ] {
        blank(&format!("{path}.{name}"), figure);
    }
}

fn steps(path: &str) -> Vec<&str> {
    path.split('.').collect()
}

/// Calls `change` for the value at a path, or for each of them where the path has a `*`.
fn each_at(value: &mut Value, steps: &[&str], change: &mut impl FnMut(&mut Value)) {
    let Some((step, rest)) = steps.split_first() else { return change(value) };
    let Value::Object(fields) = value else { return };
    if *step == "*" {
        fields.values_mut().for_each(|field| each_at(field, rest, change));
    } else if let Some(field) = fields.get_mut(*step) {
        each_at(field, rest, change);
    }
}

/// Fills what is `null` in a record that is an import, where the record says that it is unknown, and nowhere else: then it can be
/// read as any other. [`RunRecord::blank_unknown`] is due after that.
///
/// `None` if the value is no import.
pub(crate) fn filled(value: &Value) -> Option<Value> {
    let mut filled = value.clone();
    let list = filled.pointer_mut(LIST)?.as_array_mut()?;
    list.iter_mut().for_each(of_every_class);
    let paths: Vec<String> =
        list.iter().filter_map(|path| path.as_str().map(str::to_owned)).collect();
    for path in &paths {
        each_at(&mut filled, &steps(path), &mut |field| {
            if field.is_null() {
                *field = filling(path);
            }
        });
    }
    // Of failures without a kind only the sum is known. In memory they are failed checks, so that the sum is right.
    let failed = value.pointer(FAILED).and_then(Value::as_u64).unwrap_or(0);
    if value.pointer("/ledger/failed").is_some_and(Value::is_null)
        && let Some(ledger) = filled.get_mut("ledger")
    {
        put_failed(ledger, failed);
    }
    for class in filled.get_mut("classes").and_then(Value::as_object_mut).into_iter().flatten() {
        fill_failed(value, class);
    }
    Some(filled)
}

/// Puts the failures of a class whose kinds are unknown into its failed checks, as those of the whole record.
fn fill_failed(whole: &Value, (name, class): (&String, &mut Value)) {
    let original = whole.get("classes").and_then(|classes| classes.get(name));
    let count = |field: &str| original.and_then(|class| class.get(field)).and_then(Value::as_u64);
    let has_no_kinds =
        original.is_some_and(|class| class.get("failed").is_some_and(Value::is_null));
    if let (true, Some(sent), Some(ok)) = (has_no_kinds, count("sent"), count("ok")) {
        put_failed(class, sent.saturating_sub(ok));
    }
}

/// Puts failures of unknown kinds among the failed checks of a ledger or a class. If the list of unknown fields has left something
/// else in their place, it stays, and the reader of the record reports it.
fn put_failed(holder: &mut Value, count: u64) {
    if let Some(kinds) = holder.get_mut("failed").and_then(Value::as_object_mut) {
        kinds.insert("check".to_owned(), count.into());
    }
}

/// Writes a path that names one class as that of every class, since a figure of classes is known of all of them or of none.
fn of_every_class(path: &mut Value) {
    let field = path.as_str().and_then(|path| path.strip_prefix("classes.")?.split_once('.'));
    if let Some((_, field)) = field {
        *path = format!("classes.*.{field}").into();
    }
}

/// The value that stands in memory for an unknown field: of counts 0, of objects one without anything in it.
fn filling(path: &str) -> Value {
    let steps = steps(path);
    let (mut value, rest) = match steps.as_slice() {
        ["classes", "*", rest @ ..] => (empty(ClassRecord::default()), rest),
        ["latency_ms", rest @ ..] => (empty(Latencies::default()), rest),
        ["ledger", rest @ ..] => (empty(plimsoll_core::ledger::Ledger::default()), rest),
        ["generator", rest @ ..] => (empty(crate::Generator::default()), rest),
        ["machine", rest @ ..] => (empty(crate::Machine::default()), rest),
        ["counters", rest @ ..] => (empty(plimsoll_core::interval::Counters::default()), rest),
        ["bytes", rest @ ..] => (empty(crate::Bytes::default()), rest),
        ["rate", rest @ ..] => (empty(crate::Rates::default()), rest),
        ["target", rest @ ..] => (empty(crate::TargetInfo::default()), rest),
        ["statuses"] => return Value::Object(serde_json::Map::new()),
        _ => return 0.into(),
    };
    for step in rest {
        value = value.get_mut(*step).map(Value::take).unwrap_or_else(|| 0.into());
    }
    value
}

fn empty(value: impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_path_that_names_one_class_is_read_as_that_of_every_class() {
        let value = json!({
            "import": {"unknown": ["classes.web.failed", "classes.web.ok_per_s"]},
            "classes": {
                "web": {"sent": 5, "ok": 2, "failed": null, "ok_per_s": null},
                "api": {"sent": 4, "ok": 4, "failed": null, "ok_per_s": null},
            },
        });
        let filled = filled(&value).unwrap();
        assert_eq!(filled["import"]["unknown"], json!(["classes.*.failed", "classes.*.ok_per_s"]));
        let check = |class: &str| filled["classes"][class]["failed"]["check"].as_u64();
        assert_eq!((check("web"), check("api")), (Some(3), Some(0)));
        assert!(filled["classes"]["web"]["ok_per_s"].is_number());
    }

    #[test]
    fn a_list_that_fits_no_record_is_an_error() {
        for path in ["*.failed", "*.*", "*.*.failed", "classes", "classes.*", "ledger", "failed"] {
            let value = json!({
                "import": {"unknown": [path]},
                "ledger": {"failed": null},
                "classes": {"web": {"sent": 5, "ok": 2, "failed": null}},
            });
            assert!(crate::read(value.to_string().as_bytes()).is_err(), "{path}");
        }
    }
}
