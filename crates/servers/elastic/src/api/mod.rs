//! The HTTP side: which path is what.

mod admin;
mod bulk;
mod bulk_lines;
mod cat;
mod cluster;
mod documents;
mod filter_path;
mod health;
mod searches;
mod stats;
mod table;

pub(crate) use bulk_lines::actions;
pub(crate) use filter_path::shape;

use super::error::ElasticError;
use super::memory::Growing;
use super::params::Params;
use super::{App, NODE, memory};
use hyper::body::Bytes;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, StatusCode};
use plimsoll_front::{
    Body, BodyError, Call, Held, Kind, Reply, indexed_bytes, json as json_reply, reads, tree_bytes,
};
use serde_json::Value as Json;
use std::sync::Arc;
use tokio::sync::oneshot;

/// The largest body of a request, as in Elasticsearch.
const MAX_BODY_BYTES: usize = 100 << 20;
/// Replies from this length on are shaped on a thread of their own.
const LONG_BYTES: usize = 64 << 10;
const PRODUCT: HeaderName = HeaderName::from_static("x-elastic-product");
const JSON_TYPE: &str = "application/json; charset=UTF-8";
const TEXT_TYPE: &str = "text/plain; charset=UTF-8";

/// A request, read.
pub(super) struct Request<'a> {
    pub(super) app: &'a Arc<App>,
    pub(super) method: &'a Method,
    pub(super) path: &'a str,
    pub(super) params: Params,
    pub(super) body: Bytes,
    pub(super) held: Option<Arc<Held>>,
}

/// The answer to a request.
pub(super) struct Answer {
    status: StatusCode,
    body: Vec<u8>,
    text: bool,
    /// Memory of a long body.
    growing: Option<Growing>,
}

impl Answer {
    pub(super) fn json(json: &Json) -> Self {
        Self::bytes(json.to_string().into_bytes())
    }

    /// JSON that is written already.
    pub(super) fn bytes(body: Vec<u8>) -> Self {
        Self { status: StatusCode::OK, body, text: false, growing: None }
    }

    /// JSON whose memory is counted.
    pub(super) fn grown(body: Vec<u8>, growing: Growing) -> Self {
        Self { growing: Some(growing), ..Self::bytes(body) }
    }

    pub(super) fn text(body: String) -> Self {
        Self { text: true, ..Self::bytes(body.into_bytes()) }
    }

    pub(super) fn status(mut self, status: u16) -> Self {
        self.status = StatusCode::from_u16(status).unwrap_or(self.status);
        self
    }
}

pub(super) type Outcome = Result<Answer, ElasticError>;

/// Runs work that takes a while on the pool for documents.
pub(super) async fn on_pool<T: Send + 'static>(
    app: &Arc<App>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ElasticError> {
    let (sender, answer) = oneshot::channel();
    let job = move || drop(sender.send(work()));
    app.pools.reads.submit(job).map_err(|full| {
        ElasticError::rejected(format!("rejected execution: {} requests already wait", full.limit))
    })?;
    answer.await.map_err(|_| ElasticError::internal("the thread failed"))
}

/// Returns true if a path may be one of Elasticsearch's: an index alone, or a name that begins with `_`
/// first or behind an index.
pub(crate) fn owns(path: &str) -> bool {
    let mut segments = path.split('/').filter(|segment| !segment.is_empty());
    let special = |segment: &str| segment.starts_with('_') || segment.starts_with("%5F");
    match (segments.next(), segments.next()) {
        (Some(first), Some(second)) => special(first) || special(second),
        _ => true,
    }
}

/// Answers a request.
pub(crate) async fn handle(app: &Arc<App>, call: Call<'_>) -> (Kind, Reply) {
    let Call { port, method, path, query, headers, body, .. } = call;
    let (kind, params, result) = match Params::read(query) {
        Err(error) => (Kind::State, Params::default(), Err(error)),
        Ok(params) => match read_body(path, headers, body).await {
            Err(error) => (Kind::State, params, Err(error)),
            Ok((bytes, held)) => {
                let request =
                    Request { app, method, path, params: params.clone(), body: bytes, held };
                let (kind, result) = route(&request, path).await;
                (kind, params, result)
            }
        },
    };
    let shaped = match result {
        Ok(answer) => shaped(app, answer, &params).await,
        Err(error) => Err(error),
    };
    let answer = shaped.unwrap_or_else(|error| {
        let status = error.status;
        if status == StatusCode::TOO_MANY_REQUESTS {
            port.count_rejected();
        }
        let body = filter_path::shape(error.reply().to_string().into_bytes(), &params);
        Answer { status, ..Answer::bytes(body) }
    });
    (kind, reply(answer, headers))
}

/// The answer in the shape that was asked for. A long one can take seconds: on a thread of the pool.
async fn shaped(app: &Arc<App>, answer: Answer, params: &Params) -> Outcome {
    if answer.text || !filter_path::is_asked(params) {
        return Ok(answer);
    }
    memory::check_shaped(&answer.body)?;
    let Answer { status, body, text, growing } = answer;
    let (body, growing) = if body.len() < LONG_BYTES {
        (filter_path::shape(body, params), growing)
    } else {
        let params = params.clone();
        let shape = move || {
            let _alone = memory::alone(body.len());
            // Counted to its end, also if the client leaves meanwhile.
            (filter_path::shape(body, &params), growing)
        };
        on_pool(app, shape).await?
    };
    Ok(Answer { status, body, text, growing })
}

/// A body that was not accepted.
fn unread(error: BodyError) -> ElasticError {
    let kind = match error.status {
        StatusCode::TOO_MANY_REQUESTS => "es_rejected_execution_exception",
        StatusCode::PAYLOAD_TOO_LARGE => "content_too_long_exception",
        _ => "illegal_argument_exception",
    };
    ElasticError::new(error.status.as_u16(), kind, error.message)
}

/// Reads the body, checks that it is said to be JSON, and has memory for what is read from it.
async fn read_body(
    path: &str,
    headers: &HeaderMap,
    body: &mut Body,
) -> Result<(Bytes, Option<Arc<Held>>), ElasticError> {
    let mut whole = body.read(headers, MAX_BODY_BYTES).await.map_err(unread)?;
    if whole.bytes.is_empty() {
        return Ok((whole.bytes, None));
    }
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("");
    let bare = kind.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    let known = [
        "application/json",
        "application/x-ndjson",
        "application/vnd.elasticsearch+json",
        "application/vnd.elasticsearch+x-ndjson",
    ];
    if !known.contains(&bare.as_str()) {
        let reason = format!("Content-Type header [{kind}] is not supported");
        return Err(ElasticError::plain(406, reason));
    }
    whole.held.reserve(values_bytes(path, &whole.bytes)).map_err(unread)?;
    Ok((whole.bytes, Some(Arc::new(whole.held))))
}

/// Most memory of what is read from a body. Bulk requests have a room of their own.
fn values_bytes(path: &str, body: &[u8]) -> usize {
    let mut segments = path.split('/').filter(|segment| !segment.is_empty());
    match [segments.next(), segments.next(), segments.next()] {
        [Some("_bulk"), None, _] | [_, Some("_bulk"), None] => 0,
        [_, Some("_doc" | "_create"), _] => indexed_bytes(body),
        _ => tree_bytes(body),
    }
}

fn reply(answer: Answer, headers: &HeaderMap) -> Reply {
    let accepts = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("");
    let mut kind = if answer.text { TEXT_TYPE } else { JSON_TYPE };
    if !answer.text
        && accepts.contains("vnd.elasticsearch+json")
        && accepts.contains("compatible-with=8")
    {
        kind = "application/vnd.elasticsearch+json;compatible-with=8";
    }
    let mut reply = json_reply(answer.status, kind, answer.body);
    reply.headers_mut().insert(PRODUCT, HeaderValue::from_static("Elasticsearch"));
    reply
}

async fn route(request: &Request<'_>, path: &str) -> (Kind, Outcome) {
    let mut segments = Vec::new();
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        match percent_encoding::percent_decode_str(segment).decode_utf8() {
            Ok(segment) => segments.push(segment.into_owned()),
            Err(_) => {
                let reason = format!("the path [{path}] is not percent-encoded UTF-8");
                return (Kind::State, Err(ElasticError::argument(reason)));
            }
        }
    }
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    if let Err(error) = request.params.check(path) {
        return (Kind::State, Err(error));
    }
    // A name that begins with `_` is an endpoint, except for the list of all indices.
    let (list, rest) = match segments.split_first() {
        Some((first, rest)) if !first.starts_with('_') || *first == "_all" => (Some(*first), rest),
        _ => (None, segments.as_slice()),
    };
    match rest {
        ["_search" | "_msearch" | "_count", ..] => {
            (Kind::Search, searches::route(request, list, rest).await)
        }
        ["_bulk"] => (Kind::Put, bulk::route(request, list).await),
        ["_doc" | "_create" | "_update" | "_source" | "_mget", ..] => {
            let kind = match *request.method {
                Method::DELETE => Kind::Remove,
                _ if reads(request.method) => Kind::Get,
                _ if rest[0] == "_update" => Kind::Update,
                _ => Kind::Put,
            };
            (kind, documents::route(request, list, rest).await)
        }
        ["_cat", ..] => (Kind::State, cat::route(request, rest).await),
        ["_cluster" | "_nodes", ..] => (Kind::State, cluster::route(request, rest).await),
        _ => (Kind::State, admin::route(request, list, rest).await),
    }
}

/// Nothing answers to this.
pub(super) fn no_handler(request: &Request<'_>) -> ElasticError {
    let (path, method) = (request.path, request.method);
    ElasticError::bare(400, format!("no handler found for uri [{path}] and method [{method}]"))
}

/// The method is not one of this path.
pub(super) fn not_allowed(request: &Request<'_>, allowed: &str) -> ElasticError {
    let reason = format!(
        "Incorrect HTTP method for uri [{}] and method [{}], allowed: [{allowed}]",
        request.path, request.method
    );
    ElasticError::plain(405, reason)
}

/// The part of a reply about shards, for what was done on all of them.
pub(super) fn all_shards(count: usize) -> Json {
    serde_json::json!({"total": count, "successful": count, "failed": 0})
}

/// The name of the node, where a reply has one.
pub(super) fn node() -> &'static str {
    NODE
}
