//! Operations of a shard, and their results.

use super::super::bulk_room::Room;
use super::super::error::ElasticError;
use hyper::body::Bytes;
use plimsoll_front::Held;
use serde_json::Value as Json;
use std::sync::Arc;
use tantivy::TantivyDocument;
use tokio::sync::oneshot;

/// The effect of an operation on its document.
pub(crate) enum Operation {
    /// Writes it, whether it is there or not.
    Index(Bytes, Values),
    /// Writes it unless it is there.
    Create(Bytes, Values),
    /// Changes parts of it.
    Update(Box<Partial>),
    /// The same; the body is read when it is its turn.
    UpdateLater(Bytes),
    Delete,
}

/// The values of a source that can be indexed.
pub(crate) enum Values {
    Read(Box<TantivyDocument>),
    /// They were read once, and are read again when it is their turn: those of a large request take too much memory together.
    Later,
}

/// A change of parts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Partial {
    /// Merged into the source.
    pub(crate) document: serde_json::Map<String, serde_json::Value>,
    /// The document to write if none exists.
    pub(crate) upsert: Option<serde_json::Value>,
    /// A change that changes nothing is not written.
    pub(crate) detect_noop: bool,
    /// The reply shows the source as it is then.
    pub(crate) wants_source: bool,
}

impl Partial {
    /// Reads the body of an update.
    ///
    /// # Errors
    /// When it is none.
    pub(crate) fn read(source: &[u8]) -> Result<Self, ElasticError> {
        let json = serde_json::from_slice(source).map_err(|error| ElasticError::json(&error))?;
        let Json::Object(object) = json else {
            return Err(ElasticError::argument("the update must be an object"));
        };
        let mut partial = Self { detect_noop: true, ..Self::default() };
        let (mut found, mut as_upsert) = (false, false);
        for (key, value) in object {
            match (key.as_str(), value) {
                ("doc", Json::Object(document)) => {
                    partial.document = document;
                    found = true;
                }
                ("upsert", value @ Json::Object(_)) => partial.upsert = Some(value),
                ("doc_as_upsert", value) => as_upsert = value == Json::Bool(true),
                ("detect_noop", value) => partial.detect_noop = value != Json::Bool(false),
                ("_source", value) => partial.wants_source = value != Json::Bool(false),
                ("script" | "scripted_upsert", _) => {
                    return Err(ElasticError::unsupported("scripts"));
                }
                _ => {
                    let reason = format!("[UpdateRequest] unknown field [{key}]");
                    return Err(ElasticError::new(400, "x_content_parse_exception", reason));
                }
            }
        }
        if !found {
            let reason = "Validation Failed: 1: script or doc is missing;";
            return Err(ElasticError::new(400, "action_request_validation_exception", reason));
        }
        if as_upsert {
            partial.upsert = Some(Json::Object(partial.document.clone()));
        }
        Ok(partial)
    }
}

/// The conditions of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) if_sequence: Option<u64>,
    /// The version that the document gets; whether the same version may be written again.
    pub(crate) external: Option<(u64, bool)>,
}

/// One operation of a batch.
pub(crate) struct Item {
    /// The position among the operations of the request.
    pub(crate) number: usize,
    pub(crate) id: String,
    pub(crate) routing: String,
    pub(crate) operation: Operation,
    pub(crate) condition: Condition,
}

/// Operations of one request on one shard, in their order.
pub(crate) struct Batch {
    pub(crate) items: Vec<Item>,
    pub(crate) reply: oneshot::Sender<Vec<Done>>,
    /// The request's share of the memory for bodies.
    pub(crate) held: Option<Arc<Held>>,
    /// Its share of the room for bulk requests, if it is one.
    pub(crate) room: Option<Room>,
}

/// The result of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Created,
    Updated,
    Deleted,
    NotFound,
    Noop,
}

impl Outcome {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Deleted => "deleted",
            Self::NotFound => "not_found",
            Self::Noop => "noop",
        }
    }

    pub(crate) fn status(self) -> u16 {
        match self {
            Self::Created => 201,
            Self::NotFound => 404,
            Self::Updated | Self::Deleted | Self::Noop => 200,
        }
    }
}

/// An operation that was done, or why not.
pub(crate) struct Done {
    pub(crate) number: usize,
    pub(crate) id: String,
    pub(crate) result: Result<Written, ElasticError>,
}

/// A version that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) outcome: Outcome,
    pub(crate) version: u64,
    pub(crate) sequence: u64,
    /// The source after an update, where it was asked for.
    pub(crate) source: Option<Vec<u8>>,
}
