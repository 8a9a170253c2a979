//! The messages of OTLP that exports have, in their JSON mapping: whole numbers of 64 bits are texts.

use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Body<'a> {
    pub resource_metrics: [ResourceMetrics<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResourceMetrics<'a> {
    pub resource: Resource,
    pub scope_metrics: [ScopeMetrics<'a>; 1],
}

#[derive(Serialize)]
pub(super) struct Resource {
    pub attributes: Vec<Attribute>,
}

#[derive(Serialize)]
pub(super) struct ScopeMetrics<'a> {
    pub scope: Scope<'a>,
    pub metrics: Vec<Metric<'a>>,
}

#[derive(Serialize)]
pub(super) struct Scope<'a> {
    pub name: &'static str,
    pub version: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Metric<'a> {
    pub name: &'static str,
    pub description: &'static str,
    pub unit: &'static str,
    #[serde(flatten)]
    pub data: Data<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Data<'a> {
    #[serde(rename_all = "camelCase")]
    Sum { aggregation_temporality: u8, is_monotonic: bool, data_points: Vec<Number> },
    #[serde(rename_all = "camelCase")]
    Gauge { data_points: Vec<Number> },
    #[serde(rename_all = "camelCase")]
    ExponentialHistogram { aggregation_temporality: u8, data_points: Vec<Distribution<'a>> },
}

#[derive(Serialize)]
pub(super) struct Attribute {
    pub key: String,
    pub value: Text,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Text {
    pub string_value: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Number {
    pub attributes: Vec<Attribute>,
    #[serde(serialize_with = "as_text")]
    pub start_time_unix_nano: u64,
    #[serde(serialize_with = "as_text")]
    pub time_unix_nano: u64,
    #[serde(serialize_with = "as_text")]
    pub as_int: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Distribution<'a> {
    pub attributes: Vec<Attribute>,
    #[serde(serialize_with = "as_text")]
    pub start_time_unix_nano: u64,
    #[serde(serialize_with = "as_text")]
    pub time_unix_nano: u64,
    #[serde(serialize_with = "as_text")]
    pub count: u64,
    pub sum: f64,
    pub scale: i32,
    #[serde(serialize_with = "as_text")]
    pub zero_count: u64,
    pub positive: Buckets<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Buckets<'a> {
    pub offset: i32,
    #[serde(serialize_with = "as_texts")]
    pub bucket_counts: &'a [u64],
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde hands out references.
fn as_text<S: Serializer>(value: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

fn as_texts<S: Serializer>(values: &&[u64], serializer: S) -> Result<S::Ok, S::Error> {
    struct One(u64);
    impl Serialize for One {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            as_text(&self.0, serializer)
        }
    }
    let mut all = serializer.serialize_seq(Some(values.len()))?;
    values.iter().try_for_each(|&value| all.serialize_element(&One(value)))?;
    all.end()
}

pub(super) fn attribute(key: &str, value: &str) -> Attribute {
    Attribute { key: key.to_owned(), value: Text { string_value: value.to_owned() } }
}

impl Data<'_> {
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Sum { data_points, .. } | Self::Gauge { data_points } => data_points.is_empty(),
            Self::ExponentialHistogram { data_points, .. } => data_points.is_empty(),
        }
    }
}
