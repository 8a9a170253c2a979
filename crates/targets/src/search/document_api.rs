//! The handler of `/document/v1/`: one document at a time.

use super::App;
use super::document::Document;
use super::document_path::{self, DocumentPath, PathError};
use super::edit::{NO_CONDITIONS, parse_put, parse_update};
use super::http::{Body, Reply, json};
use super::metrics::Kind;
use super::parameters::{Parameters, duration_us};
use super::schema::{DOCUMENT_TYPE, FIELDS, field_number};
use super::search_reply::{push_name, push_text, push_value};
use super::store::{Operation, StoreError, Write, WriterMessage};
use hyper::header::{ALLOW, HeaderMap, HeaderValue};
use hyper::{Method, StatusCode};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::TrySendError;
use std::time::Duration;
use tokio::sync::oneshot;

const JSON_TYPE: &str = "application/json; charset=UTF-8";
/// The largest body of a write, in bytes.
pub(crate) const MAX_BODY_BYTES: usize = 100 << 20;
/// How long an operation may take when the request does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(180);

/// A reply without the parts that every reply has.
struct Outcome {
    status: StatusCode,
    message: Option<String>,
    /// Replies to requests that were not understood do not repeat the id.
    with_id: bool,
    fields: Option<Vec<u8>>,
}

impl Outcome {
    fn done() -> Self {
        Self { status: StatusCode::OK, message: None, with_id: true, fields: None }
    }

    fn refused(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: Some(message.into()), with_id: false, fields: None }
    }

    fn invalid(message: impl Into<String>) -> Self {
        Self::refused(StatusCode::BAD_REQUEST, message)
    }

    fn failed(error: &StoreError) -> Self {
        let status = match error {
            StoreError::Full(_) => StatusCode::INSUFFICIENT_STORAGE,
            StoreError::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self { with_id: true, ..Self::refused(status, error.to_string()) }
    }
}

/// Answers one operation.
pub(crate) async fn handle(
    app: &Arc<App>,
    method: &Method,
    path: &str,
    query: &str,
    headers: &HeaderMap,
    body: Body,
) -> (Kind, Reply) {
    let kind = match *method {
        Method::GET => Kind::Get,
        Method::POST => Kind::Put,
        Method::PUT => Kind::Update,
        Method::DELETE => Kind::Remove,
        _ => return (Kind::State, other_method(method, path)),
    };
    let parsed = document_path::parse(path);
    let outcome = match &parsed {
        Ok(document) => operate(app, kind, document, path, query, headers, body).await,
        Err(PathError::Invalid(message)) => Outcome::invalid(message.as_str()),
        Err(PathError::Unknown) => Outcome::refused(StatusCode::NOT_FOUND, available_paths(path)),
    };
    let mut bytes = b"{\"pathId\":".to_vec();
    push_text(&mut bytes, path);
    if let Some(document) = parsed.ok().filter(|_| outcome.with_id) {
        bytes.extend_from_slice(b",\"id\":");
        push_text(&mut bytes, &document.id);
    }
    if let Some(message) = &outcome.message {
        bytes.extend_from_slice(b",\"message\":");
        push_text(&mut bytes, message);
    }
    if let Some(fields) = &outcome.fields {
        bytes.extend_from_slice(b",\"fields\":");
        bytes.extend_from_slice(fields);
    }
    bytes.push(b'}');
    (kind, json(outcome.status, JSON_TYPE, bytes))
}

fn available_paths(path: &str) -> String {
    let prefix = "/document/v1/{namespace}/{documentType}";
    format!(
        "Nothing at '{path}'. Available paths are:\n{prefix}/docid/{{*}}\n\
         {prefix}/number/{{number}}/{{*}}\n{prefix}/group/{{group}}/{{*}}"
    )
}

fn other_method(method: &Method, path: &str) -> Reply {
    let allowed = HeaderValue::from_static("GET,POST,PUT,DELETE");
    let (status, bytes) = if method == Method::OPTIONS {
        (StatusCode::NO_CONTENT, Vec::new())
    } else {
        let mut bytes = b"{\"pathId\":".to_vec();
        push_text(&mut bytes, path);
        bytes.extend_from_slice(b",\"message\":");
        push_text(&mut bytes, &format!("'{method}' not allowed at '{path}'"));
        bytes.push(b'}');
        (StatusCode::METHOD_NOT_ALLOWED, bytes)
    };
    let mut reply = json(status, JSON_TYPE, bytes);
    reply.headers_mut().insert(ALLOW, allowed);
    reply
}

/// What the parameters of an operation say.
struct Options {
    timeout: Duration,
    create: bool,
    dry_run: bool,
    field_set: Option<Vec<usize>>,
}

/// Parameters of Vespa's API that must have a value when they are given.
const KNOWN_PARAMETERS: [&str; 9] = [
    "cluster",
    "condition",
    "create",
    "dryRun",
    "fieldSet",
    "format.tensors",
    "route",
    "timeout",
    "tracelevel",
];

fn options(kind: Kind, path: &str, query: &str) -> Result<Options, String> {
    let parameters = Parameters::from_query(query).map_err(|error| error.to_string())?;
    for (name, value) in parameters.iter() {
        if value.is_empty() && KNOWN_PARAMETERS.contains(&name) {
            return Err(format!("Expected non-empty value for request property '{name}'"));
        }
    }
    let flag = |name| parameters.get(name) == Some("true");
    if kind == Kind::Get && flag("dryRun") {
        return Err(format!("May not specify 'dryRun' at '{path}'"));
    }
    if kind != Kind::Get && parameters.get("condition").is_some() {
        return Err(NO_CONDITIONS.to_owned());
    }
    let timeout = match parameters.get("timeout") {
        None => DEFAULT_TIMEOUT,
        Some(text) => Duration::from_micros(duration_us(text).ok_or_else(|| {
            format!("Failed parsing '{text}': expected a time such as 500ms or 2s")
        })?),
    };
    let field_set = match parameters.get("fieldSet") {
        Some(text) if kind == Kind::Get => Some(field_set(text)?),
        _ => None,
    };
    Ok(Options { timeout, create: flag("create"), dry_run: flag("dryRun"), field_set })
}

fn field_set(text: &str) -> Result<Vec<usize>, String> {
    let all = || (0..FIELDS.len()).collect();
    match text {
        "[all]" | "[document]" => return Ok(all()),
        "[id]" | "[none]" => return Ok(Vec::new()),
        _ => {}
    }
    let (document_type, names) = text.split_once(':').ok_or(
        "The field set list must consist of a document type, then a colon (:), \
         then a comma-separated list of field names",
    )?;
    if document_type != DOCUMENT_TYPE {
        return Err(format!("Document type {document_type} does not exist"));
    }
    let mut numbers = Vec::new();
    for name in names.split(',').map(str::trim) {
        match name {
            "[document]" | "[all]" => return Ok(all()),
            "[id]" | "[none]" => {}
            name => numbers.push(field_number(name).ok_or(format!("No such field {name}"))?),
        }
    }
    Ok(numbers)
}

async fn operate(
    app: &Arc<App>,
    kind: Kind,
    document: &DocumentPath,
    path: &str,
    query: &str,
    headers: &HeaderMap,
    body: Body,
) -> Outcome {
    let options = match options(kind, path, query) {
        Ok(options) => options,
        Err(message) => return Outcome::invalid(message),
    };
    if options.dry_run {
        return Outcome::done();
    }
    if document.document_type != DOCUMENT_TYPE {
        let name = &document.document_type;
        return Outcome::invalid(format!("Document type {name} does not exist"));
    }
    if options.timeout.is_zero() {
        return timed_out(options.timeout);
    }
    let operation = match kind {
        Kind::Get => return get(app, &document.id, &options).await,
        Kind::Remove => Operation::Remove,
        _ => {
            let bytes = match body.read(headers, MAX_BODY_BYTES).await {
                Ok(bytes) => bytes,
                Err(error) => return Outcome::refused(error.status, error.message),
            };
            let operation = if kind == Kind::Put {
                parse_put(&bytes).map(Operation::Put)
            } else {
                parse_update(&bytes).map(|update| Operation::Update {
                    edits: update.edits,
                    create: update.create || options.create,
                })
            };
            match operation {
                Ok(operation) => operation,
                Err(message) => return Outcome::invalid(message),
            }
        }
    };
    write(app, document.id.clone(), operation, options.timeout).await
}

fn timed_out(timeout: Duration) -> Outcome {
    let message = format!("Timeout after {}ms", timeout.as_millis());
    Outcome { with_id: true, ..Outcome::refused(StatusCode::GATEWAY_TIMEOUT, message) }
}

fn overloaded(app: &App, limit: usize) -> Outcome {
    app.metrics.rejected.fetch_add(1, Ordering::Relaxed);
    let message = format!("Rejecting execution due to overload: {limit} requests already enqueued");
    Outcome { with_id: true, ..Outcome::refused(StatusCode::TOO_MANY_REQUESTS, message) }
}

async fn write(app: &Arc<App>, id: String, operation: Operation, timeout: Duration) -> Outcome {
    let (done, answer) = oneshot::channel();
    let message = WriterMessage::Write(Write { id, operation, done });
    match app.writes.try_send(message) {
        Ok(()) => {}
        Err(TrySendError::Full(_)) => return overloaded(app, app.config.write_queue),
        Err(TrySendError::Disconnected(_)) => return stopping(),
    }
    match tokio::time::timeout(timeout, answer).await {
        Ok(Ok(Ok(()))) => Outcome::done(),
        Ok(Ok(Err(error))) => Outcome::failed(&error),
        // The writing thread ended without having taken this one.
        Ok(Err(_)) => stopping(),
        Err(_) => timed_out(timeout),
    }
}

fn stopping() -> Outcome {
    let message = "The server is stopping; the operation was not performed";
    Outcome { with_id: true, ..Outcome::refused(StatusCode::SERVICE_UNAVAILABLE, message) }
}

/// Reads on a query thread, since the file may have to be read from the disk.
async fn get(app: &Arc<App>, id: &str, options: &Options) -> Outcome {
    let (done, answer) = oneshot::channel();
    let (store, wanted) = (app.store.clone(), id.to_owned());
    let job = move || {
        let _ = done.send(store.get(&wanted));
    };
    if let Err(full) = app.pool.submit(job) {
        return overloaded(app, full.limit);
    }
    match tokio::time::timeout(options.timeout, answer).await {
        Ok(Ok(Ok(Some(document)))) => {
            let fields = Some(render(&document, options.field_set.as_deref()));
            Outcome { fields, ..Outcome::done() }
        }
        Ok(Ok(Ok(None))) => Outcome { status: StatusCode::NOT_FOUND, ..Outcome::done() },
        Ok(Ok(Err(error))) => Outcome::failed(&error),
        Ok(Err(_)) => stopping(),
        Err(_) => timed_out(options.timeout),
    }
}

fn render(document: &Document, wanted: Option<&[usize]>) -> Vec<u8> {
    let mut out = b"{".to_vec();
    let start = out.len();
    for (number, (field, value)) in FIELDS.iter().zip(&document.values).enumerate() {
        if wanted.is_none_or(|wanted| wanted.contains(&number))
            && let Some(value) = value
        {
            push_name(&mut out, start, field.name);
            push_value(&mut out, value);
        }
    }
    out.push(b'}');
    out
}
