//! Paths below `/document/v1/`.

use super::document::{Location, document_id};
use super::parameters::decode;

/// A path that names one document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DocumentPath {
    pub(crate) document_type: String,
    /// The full document id.
    pub(crate) id: String,
}

/// Why a path names no document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PathError {
    /// No such path exists.
    Unknown,
    /// A part of the path is wrong.
    Invalid(String),
}

/// Reads a path, still encoded. Everything behind the location is the name, slashes included.
pub(crate) fn parse(path: &str) -> Result<DocumentPath, PathError> {
    let rest = path.strip_prefix("/document/v1/").ok_or(PathError::Unknown)?;
    let mut segments = rest.split('/');
    let mut next = || segments.next().filter(|segment| !segment.is_empty());
    let namespace = next().ok_or(PathError::Unknown)?;
    let document_type = next().ok_or(PathError::Unknown)?;
    let location = match next() {
        Some("docid") => Location::Free,
        Some("number") => {
            let text = text(next().ok_or(PathError::Unknown)?)?;
            let number = text.parse().map_err(|_| {
                PathError::Invalid(format!("Failed parsing '{text}': For input string: \"{text}\""))
            })?;
            Location::Number(number)
        }
        Some("group") => Location::Group(text(next().ok_or(PathError::Unknown)?)?),
        _ => return Err(PathError::Unknown),
    };
    let name = segments.map(text).collect::<Result<Vec<_>, _>>()?.join("/");
    if name.is_empty() {
        return Err(PathError::Unknown);
    }
    let namespace = text(namespace)?;
    let document_type = text(document_type)?;
    Ok(DocumentPath { id: document_id(&namespace, &location, &name), document_type })
}

fn text(segment: &str) -> Result<String, PathError> {
    decode(segment).map_err(|error| PathError::Invalid(error.to_string()))
}
