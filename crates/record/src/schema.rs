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
const SIGNED: [&str; 2] = ["clock_step_s", "cycle_ms"];

/// The schema of `run.json` as this version writes it.
#[must_use]
pub fn run_schema() -> Value {
    let settings = SchemaSettings::draft2020_12()
        .for_serialize()
        .with_transform(Closed)
        .with_transform(Figures)
        .with_transform(Words);
    let mut schema = settings.into_generator().into_root_schema_for::<RunRecord>();
    schema.insert("title".to_owned(), json!("plimsoll run record"));
    schema.to_value()
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
