//! The handler of `/document/v1/`: one document at a time, visits, and operations on selections.

mod accept;
mod collection;
mod options;
mod plan;
mod rewrite;
mod single;
mod visit_reply;

use super::container::Container;
use super::store::{StoreError, WriteError};
use hyper::header::{ALLOW, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, StatusCode};
use plan::Collection;
use plimsoll_documents::schema::Schemas;
use plimsoll_front::metrics::Kind;
use plimsoll_front::{Body, Reply, json};
use plimsoll_serving::json::push_text;
use plimsoll_wire::vespa::{DocumentPath, PathError};
use std::time::Duration;

pub(crate) const JSON_TYPE: &str = "application/json; charset=UTF-8";
/// The largest body of a write, in bytes.
pub(crate) const MAX_BODY_BYTES: usize = 100 << 20;

/// The head of a request.
pub(crate) struct Request<'a> {
    pub(crate) method: &'a Method,
    /// As it came, still encoded.
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
    pub(crate) headers: &'a HeaderMap,
}

/// A whole reply without the parts that every reply has.
pub(crate) struct Outcome {
    status: StatusCode,
    message: Option<String>,
    /// The text after the path: nothing, the id, the id with fields, or counts.
    rest: Vec<u8>,
    /// No cluster has documents of this type.
    ignored: bool,
}

impl Outcome {
    pub(crate) fn new(status: StatusCode) -> Self {
        Self { status, message: None, rest: Vec::new(), ignored: false }
    }

    /// An operation that reaches no cluster, since none has the document's type.
    pub(crate) fn ignored(status: StatusCode) -> Self {
        Self { ignored: true, ..Self::new(status) }
    }

    pub(crate) fn refused(status: StatusCode, message: impl Into<String>) -> Self {
        Self { message: Some(message.into()), ..Self::new(status) }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::refused(StatusCode::BAD_REQUEST, message)
    }

    pub(crate) fn overload(message: impl Into<String>) -> Self {
        Self::refused(StatusCode::TOO_MANY_REQUESTS, message)
    }

    pub(crate) fn timed_out(timeout: Duration) -> Self {
        let message = format!("Timeout after {}ms", timeout.as_millis());
        Self::refused(StatusCode::GATEWAY_TIMEOUT, message)
    }

    pub(crate) fn stopping() -> Self {
        let message = "The server is stopping; the operation was not performed";
        Self::refused(StatusCode::SERVICE_UNAVAILABLE, message)
    }

    pub(crate) fn failed(error: &StoreError) -> Self {
        let status = match error {
            StoreError::Full(_) => StatusCode::INSUFFICIENT_STORAGE,
            StoreError::Former | StoreError::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::refused(status, error.to_string())
    }

    pub(crate) fn not_written(error: &WriteError) -> Self {
        match error {
            WriteError::Store(error) => Self::failed(error),
            WriteError::Evaluation(error) => Self::invalid(error.to_string()),
            WriteError::Condition | WriteError::ConditionMissing => {
                Self::refused(StatusCode::PRECONDITION_FAILED, error.to_string())
            }
        }
    }

    /// The same with the id of a document, as replies to what was understood have it.
    pub(crate) fn with_id(mut self, id: &str) -> Self {
        let mut rest = b",\"id\":".to_vec();
        push_text(&mut rest, id);
        rest.extend_from_slice(&self.rest);
        self.rest = rest;
        self
    }

    /// The same with a member whose value is JSON.
    pub(crate) fn with(mut self, name: &str, value: impl std::fmt::Display) -> Self {
        self.rest.extend_from_slice(format!(",\"{name}\":{value}").as_bytes());
        self
    }

    pub(crate) fn reply(self, path: &str) -> Reply {
        let mut bytes = Vec::with_capacity(self.rest.len() + path.len() + 64);
        bytes.extend_from_slice(b"{\"pathId\":");
        push_text(&mut bytes, path);
        bytes.extend_from_slice(&self.rest);
        if let Some(message) = &self.message {
            bytes.extend_from_slice(b",\"message\":");
            push_text(&mut bytes, message);
        }
        bytes.push(b'}');
        let mut reply = json(self.status, JSON_TYPE, bytes);
        if self.ignored {
            let header = HeaderName::from_static("x-vespa-ignored-operation");
            reply.headers_mut().insert(header, HeaderValue::from_static("true"));
        }
        reply
    }
}

/// Answers one request.
pub(crate) async fn handle(
    container: &Container,
    request: &Request<'_>,
    body: &mut Body,
) -> (Kind, Reply) {
    let path = request.path;
    let parsed = match DocumentPath::parse(path) {
        Ok(parsed) => parsed,
        Err(error) => {
            let outcome = match error {
                PathError::Invalid(message) => Outcome::invalid(message),
                PathError::Unknown => {
                    Outcome::refused(StatusCode::NOT_FOUND, available_paths(path))
                }
            };
            return (Kind::State, outcome.reply(path));
        }
    };
    let kind = match (&parsed, request.method) {
        (DocumentPath::Document(_), &Method::GET) => Kind::Get,
        (DocumentPath::Document(_), &Method::POST) => Kind::Put,
        (DocumentPath::Document(_), &Method::PUT) => Kind::Update,
        (DocumentPath::Document(_), &Method::DELETE) => Kind::Remove,
        (_, &Method::GET) => Kind::Visit,
        (DocumentPath::Root, &Method::PUT) => return (Kind::State, other_method(request)),
        (_, &Method::POST | &Method::PUT | &Method::DELETE) => Kind::Rewrite,
        _ => return (Kind::State, other_method(request)),
    };
    let reply = match &parsed {
        DocumentPath::Document(id) => {
            single::handle(container, kind, id, request, body).await.reply(path)
        }
        DocumentPath::Root => collection::handle(container, None, request, body).await,
        DocumentPath::Collection { namespace, document_type, scope } => {
            let place = Collection { namespace, document_type, scope };
            collection::handle(container, Some(place), request, body).await
        }
    };
    (kind, reply)
}

fn other_method(request: &Request<'_>) -> Reply {
    let (method, path) = (request.method, request.path);
    let mut reply = if method == Method::OPTIONS {
        json(StatusCode::NO_CONTENT, JSON_TYPE, Vec::new())
    } else {
        let message = format!(
            "'{method}' not allowed at '{path}'. Allowed methods are: GET, POST, PUT, DELETE"
        );
        Outcome::refused(StatusCode::METHOD_NOT_ALLOWED, message).reply(path)
    };
    reply.headers_mut().insert(ALLOW, HeaderValue::from_static("GET,POST,PUT,DELETE"));
    reply
}

/// The answer to a path that does not exist.
fn available_paths(path: &str) -> String {
    let prefix = "/document/v1/{namespace}/{documentType}";
    format!(
        "Nothing at '{path}'. Available paths are:\n/document/v1/\n\
         {prefix}/docid/\n{prefix}/group/{{group}}/\n{prefix}/number/{{number}}/\n\
         {prefix}/docid/{{*}}\n{prefix}/group/{{group}}/{{*}}\n{prefix}/number/{{number}}/{{*}}"
    )
}

/// Reads path and parameters as far as all operations check them; for fuzzing.
///
/// # Errors
/// With the message to the client.
pub(crate) fn checked(path: &str, query: &str, schemas: &Schemas) -> Result<(), String> {
    let found = DocumentPath::parse(path).map_err(|error| error.to_string());
    let options = options::Options::read(path, query)?;
    options.shown(schemas)?;
    options.timeout()?;
    let selection = options.get("selection").unwrap_or("");
    plimsoll_documents::filter::Filter::parse(selection, schemas)?;
    for name in ["fromTimestamp", "toTimestamp", "slices", "sliceId", "wantedDocumentCount"] {
        options.number(name)?;
    }
    let token = options.get("continuation").map(plimsoll_wire::vespa::ProgressToken::decode);
    token.transpose().map_err(|error| error.to_string())?;
    found.map(drop)
}
