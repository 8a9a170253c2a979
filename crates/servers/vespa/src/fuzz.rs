//! The functions of the fuzz targets in `fuzz/`: each takes any input, and must neither panic nor take memory without bound.
//! They return the message to the client if an input is rejected.

use super::document_api;
use super::mapping::IndexSchema;
use super::search_request;
use super::store;
use plimsoll_documents::fuzz::schemas;
use plimsoll_index::plan::plan;
use plimsoll_serving::parameters::{ParameterError, Parameters};
use std::sync::{Arc, OnceLock};

fn index() -> &'static IndexSchema {
    static INDEX: OnceLock<IndexSchema> = OnceLock::new();
    INDEX.get_or_init(|| IndexSchema::new(Arc::new(schemas().clone())))
}

/// The parameters of a search in the query of a URL.
pub fn url(query: &str) -> Option<String> {
    asked(Parameters::from_query(query))
}

/// The parameters of a search in a body of JSON.
pub fn body(json: &[u8]) -> Option<String> {
    asked(Parameters::from_json(json))
}

fn asked(parameters: Result<Parameters, ParameterError>) -> Option<String> {
    let parameters = match parameters {
        Ok(parameters) => parameters,
        Err(error) => return Some(error.to_string()),
    };
    match search_request::read(&parameters, schemas()) {
        Ok(request) => plan(&request.search, index()).err().map(|error| error.to_string()),
        Err(failure) => Some(failure.message),
    }
}

/// Path and query of a request to `/document/v1/`.
pub fn document_request(path: &str, query: &str) -> Option<String> {
    document_api::checked(path, query, schemas()).err()
}

/// A record of the store. A document that can be read is written so that it reads as the same.
///
/// # Panics
/// When it does not.
pub fn stored(bytes: &[u8]) {
    store::read_and_write(bytes, schemas());
}
