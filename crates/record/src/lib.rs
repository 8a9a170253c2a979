//! The run record as types: what every run leaves behind, and the result of each job.
//!
//! A [`RunRecord`] is `run.json`. Its fields are common to all runs; a job adds a [`JobResult`], one for each
//! section of the file. `docs/run.schema.json` is made from these types.
//!
//! ```
//! let error = plimsoll_record::read(b"{}").unwrap_err();
//! assert!(error.contains("missing field"));
//! ```

#[macro_use]
mod sections;

pub mod ab;
pub mod bench_shape;
pub mod catalogue;
pub mod exit;
pub mod fbench;
pub mod feed;
pub mod fleet;
pub mod import;
mod judge;
mod percentiles;
pub mod rank;
mod reading;
pub mod resources;
mod results;
mod run;
#[cfg(feature = "schema")]
pub mod schema;
pub mod search;
pub mod seek;
mod unknown;
pub mod visit;
pub mod voter;

use serde::de::DeserializeOwned;

pub use judge::Judge;
pub use percentiles::PercentileInterval;
pub use plimsoll_core::record::{FailureSample, Machine, Network, Rates, Sink, SloResult};
/// Reads a record; the error names the field that is missing or has another form.
///
/// # Errors
/// Not JSON, or not the form of a record.
pub fn read(text: &[u8]) -> Result<RunRecord, String> {
    // Only an import has fields that may be null, and names them.
    let may_be_import = std::str::from_utf8(text).is_ok_and(|text| text.contains("\"import\""));
    let value = may_be_import.then(|| serde_json::from_slice(text).ok()).flatten();
    let Some(filled) = value.as_ref().and_then(unknown::filled) else { return read_as(text) };
    // As a text once more: code that reads a record is large, and this way stands in the program once.
    let mut record: RunRecord = read_as(filled.to_string().as_bytes())?;
    record.blank_unknown();
    Ok(record)
}

/// Reads a record, or some of its fields; the error names the field that is missing or has another form.
///
/// # Errors
/// As [`read`].
pub fn read_as<T: DeserializeOwned>(text: &[u8]) -> Result<T, String> {
    reading::read_text(text).map_err(|(field, error)| match field.as_str() {
        // A section names its field itself.
        "." => error.to_string(),
        field => format!("{field}: {error}"),
    })
}

pub use results::{JobResult, JobResults, UnknownSection};
pub use run::{
    AssertionResult, Bytes, ClassRecord, Generator, Latencies, OutletUse, PhaseRecord, RunRecord,
    SCHEMA, SlowRequest, TargetInfo, Tool, timeout_ns,
};
