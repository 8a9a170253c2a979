//! The JSON Schema of a record, made from the types and their documentation.

use crate::RunRecord;
use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use serde_json::{Value, json};

/// Ends of names of figures that are never below 0: times, rates, sizes, shares.
const NEVER_NEGATIVE: [&str; 10] = [
    "_s",
    "_ms",
    "_pct",
    "_qps",
    "_MBps",
    "_share",
    "_per_request",
    "_per_operation",
    "_per_gb",
    "seconds",
];
/// Whole names of such figures.
const FIGURES: [&str; 29] = [
    "min",
    "mean",
    "p50",
    "p90",
    "p95",
    "p99",
    "p99_9",
    "max",
    "ms",
    "percentile",
    "gbps",
    "busy",
    "starved",
    "throttled",
    "stolen",
    "stopped",
    "busiest_thread",
    "generator_busiest",
    "first_byte",
    "receiving",
    "between",
    "late",
    "missed",
    "allowed",
    "width",
    "little",
    "spread",
    "confidence",
    "best_under_way",
];
/// Names of figures that end like those and may be below 0.
const SIGNED: [&str; 3] = ["clock_step_s", "cycle_ms", "clock_ahead_ms"];

/// The schema of `run.json` as this version writes it.
#[must_use]
pub fn run_schema() -> Value {
    let settings = SchemaSettings::draft2020_12()
        .for_serialize()
        .with_transform(Unknown)
        .with_transform(Closed)
        .with_transform(Figures)
        .with_transform(Words);
    let mut schema = settings.into_generator().into_root_schema_for::<RunRecord>();
    schema.insert("title".to_owned(), json!("plimsoll run record"));
    schema.to_value()
}

/// Objects whose fields may be `null`, by a field that only each of them has, and those fields. They are unknown in a record
/// of figures that another tool measured.
const MAY_BE_UNKNOWN: [(&str, &[&str]); 8] = [
    ("run_id", &["duration_s", "machine", "generator", "counters", "statuses"]),
    ("same_host", &["same_host"]),
    ("scheduled", &["scheduled", "sent", "ok", "refused", "unsent", "failed", "unfinished"]),
    ("offered_per_s", &["offered_per_s", "achieved_per_s", "ok_per_s"]),
    ("received", &["sent", "received"]),
    ("judged", &["response", "service", "failed"]),
    ("p99_9", &["count", "min", "mean", "p50", "p90", "p95", "p99", "p99_9", "max"]),
    ("zero_hits", &["sent", "ok", "failed", "ok_per_s", "zero_hits", "hits_known"]),
];

/// Allows `null` for fields that an import does not know.
#[derive(Clone)]
struct Unknown;

impl Transform for Unknown {
    fn transform(&mut self, schema: &mut Schema) {
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            for (mark, fields) in MAY_BE_UNKNOWN {
                if !properties.contains_key(mark)
                    || !fields.iter().all(|f| properties.contains_key(*f))
                {
                    continue;
                }
                for field in fields {
                    if let Some(property) = properties.get_mut(*field) {
                        allow_null(property);
                    }
                }
            }
        }
        transform_subschemas(self, schema);
    }
}

fn allow_null(property: &mut Value) {
    let Value::Object(fields) = property else { return };
    if let Some(reference) = fields.shift_remove("$ref") {
        fields.insert("anyOf".to_owned(), json!([{ "$ref": reference }, { "type": "null" }]));
    } else if let Some(Value::String(kind)) = fields.get("type") {
        let kinds = json!([kind, "null"]);
        fields.insert("type".to_owned(), kinds);
    }
}

/// Allows no property that the types do not have.
#[derive(Clone)]
struct Closed;

impl Transform for Closed {
    fn transform(&mut self, schema: &mut Schema) {
        if schema.get("properties").is_some() {
            schema.insert("additionalProperties".to_owned(), json!(false));
        }
        transform_subschemas(self, schema);
    }
}

/// Gives figures that are never negative their least value, and takes away the width of numbers, which says nothing in JSON.
#[derive(Clone)]
struct Figures;

impl Transform for Figures {
    fn transform(&mut self, schema: &mut Schema) {
        schema.remove("format");
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            for (_, property) in properties.iter_mut().filter(|(name, _)| never_negative(name)) {
                if is_number(property) {
                    property["minimum"] = json!(0);
                }
            }
        }
        transform_subschemas(self, schema);
    }
}

fn never_negative(name: &str) -> bool {
    let ends = NEVER_NEGATIVE.iter().any(|end| name.ends_with(end));
    (ends || FIGURES.contains(&name)) && !SIGNED.contains(&name)
}

fn is_number(property: &Value) -> bool {
    match property.get("type") {
        Some(Value::Array(types)) => types.contains(&json!("number")),
        Some(one) => one == "number",
        None => false,
    }
}

/// Takes the marks of Rust's documentation out of descriptions.
#[derive(Clone)]
struct Words;

impl Transform for Words {
    fn transform(&mut self, schema: &mut Schema) {
        if let Some(Value::String(text)) = schema.get_mut("description") {
            *text = text.replace("[`", "").replace("`]", "").replace('`', "").replace('\n', " ");
        }
        transform_subschemas(self, schema);
    }
}
