//! Values read into types, with errors that name the field.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads a value; the error is the path of the field, `.` for the whole, and what is wrong with it.
pub(crate) fn read_value<T: DeserializeOwned>(value: Value) -> Result<T, (String, String)> {
    serde_path_to_error::deserialize(value)
        .map_err(|error| (error.path().to_string(), error.into_inner().to_string()))
}
