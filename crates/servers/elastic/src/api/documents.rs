//! Single documents: `_doc`, `_create`, `_update`, `_source`, and `_mget`.

use super::super::App;
use super::super::error::{At, ElasticError};
use super::super::index::Index;
use super::super::memory::Growing;
use super::super::searching::{SourceFilter, parse_short};
use super::super::shard::Condition;
use super::bulk::{Refresh, Verb, external, item, push_written, single};
use super::{Answer, Outcome, Request, no_handler, not_allowed, on_pool};
use hyper::Method;
use plimsoll_front::reads;
use plimsoll_serving::json::push_text;
use serde_json::Value as Json;
use std::io::Write;
use std::sync::Arc;

/// The most documents of one `_mget`.
const MAX_GETS: usize = 10_000;

pub(super) async fn route(request: &Request<'_>, list: Option<&str>, rest: &[&str]) -> Outcome {
    let write = *request.method == Method::PUT || *request.method == Method::POST;
    if rest == ["_mget"] {
        return several(request, list).await;
    }
    let Some(name) = list else { return Err(no_handler(request)) };
    match rest {
        ["_doc"] if *request.method == Method::POST => {
            let id = request.app.indices.new_id();
            let create = request.params.get("op_type") != Some("index");
            let verb = if create { Verb::Create } else { Verb::Index };
            put(request, name, id, verb).await
        }
        ["_doc", id] if write => {
            let verb = match request.params.get("op_type") {
                Some("create") => Verb::Create,
                _ => Verb::Index,
            };
            put(request, name, (*id).to_owned(), verb).await
        }
        ["_create", id] if write => put(request, name, (*id).to_owned(), Verb::Create).await,
        ["_update", id] if *request.method == Method::POST => update(request, name, id).await,
        ["_doc", id] if *request.method == Method::DELETE => delete(request, name, id).await,
        ["_doc", id] if reads(request.method) => get(request, name, id).await,
        ["_source", id] if reads(request.method) => source(request, name, id).await,
        ["_doc" | "_create" | "_update" | "_source", ..] => {
            Err(not_allowed(request, "GET, HEAD, POST, PUT, DELETE"))
        }
        _ => Err(no_handler(request)),
    }
}

fn condition(request: &Request<'_>) -> Result<Condition, ElasticError> {
    let params = &request.params;
    let if_sequence = params.number("if_seq_no")?;
    if if_sequence.is_some() != params.get("if_primary_term").is_some() {
        let reason = "Validation Failed: 1: ifSeqNo and if primary term must be given together;";
        return Err(ElasticError::new(400, "action_request_validation_exception", reason));
    }
    let external = external(params.number("version")?, params.get("version_type"))?;
    Ok(Condition { if_sequence, external })
}

fn routing(request: &Request<'_>) -> String {
    request.params.get("routing").unwrap_or("").to_owned()
}

async fn write(
    request: &Request<'_>,
    index: &Arc<Index>,
    (verb, id): (Verb, String),
) -> Result<Answer, ElasticError> {
    let refresh = Refresh::read(request)?;
    let condition = condition(request)?;
    let address = (id, routing(request));
    let body = (verb != Verb::Delete).then(|| request.body.clone());
    if verb != Verb::Delete && request.body.is_empty() {
        return Err(ElasticError::new(400, "parse_exception", "request body is required"));
    }
    let of = Arc::clone(index);
    let item = on_pool(request.app, move || item(&of, (verb, 0, false), address, condition, body))
        .await??;
    let (id, written) = single(request, index, item, refresh).await?;
    let copies = 1 + index.state.settings().replicas;
    let mut out = b"{".to_vec();
    push_written(&mut out, index.name(), &id, &written, copies, refresh == Refresh::Now);
    if let Some(source) = &written.source {
        out.extend_from_slice(b",\"get\":{\"found\":true,\"_source\":");
        out.extend_from_slice(source);
        out.push(b'}');
    }
    out.push(b'}');
    Ok(Answer::bytes(out).status(written.outcome.status()))
}

async fn put(request: &Request<'_>, name: &str, id: String, verb: Verb) -> Outcome {
    let (app, owned) = (Arc::clone(request.app), name.to_owned());
    let index = match request.app.indices.get(name) {
        Some(index) => index,
        None => on_pool(request.app, move || app.indices.get_or_create(&owned)).await??,
    };
    write(request, &index, (verb, id)).await
}

async fn update(request: &Request<'_>, name: &str, id: &str) -> Outcome {
    let (app, owned) = (Arc::clone(request.app), name.to_owned());
    let index = match request.app.indices.get(name) {
        Some(index) => index,
        None => on_pool(request.app, move || app.indices.get_or_create(&owned)).await??,
    };
    write(request, &index, (Verb::Update, id.to_owned())).await
}

async fn delete(request: &Request<'_>, name: &str, id: &str) -> Outcome {
    let index = request.app.indices.get(name).ok_or_else(|| ElasticError::no_index(name))?;
    write(request, &index, (Verb::Delete, id.to_owned())).await
}

fn filter(request: &Request<'_>) -> SourceFilter {
    let params = &request.params;
    let filter = SourceFilter::from_parameters(
        params.get("_source"),
        params.get("_source_includes").or(params.get("_source_include")),
        params.get("_source_excludes").or(params.get("_source_exclude")),
    );
    filter.unwrap_or_default()
}

/// Appends what is known of a document; tells whether it is there.
fn push_document(
    out: &mut Vec<u8>,
    index: &Index,
    id: &str,
    routing: &str,
    filter: &SourceFilter,
) -> Result<bool, ElasticError> {
    let found = index.shard(id, routing).get(id);
    let found = found.map_err(|error| ElasticError::internal(error.to_string()))?;
    out.extend_from_slice(b"{\"_index\":");
    push_text(out, index.name());
    out.extend_from_slice(b",\"_type\":\"_doc\",\"_id\":");
    push_text(out, id);
    let Some(bytes) = found else {
        out.extend_from_slice(b",\"found\":false}");
        return Ok(false);
    };
    let record = bytes.record().ok_or_else(|| ElasticError::internal("a record cannot be read"))?;
    let (version, sequence) = (record.version, record.sequence);
    let _ = write!(out, ",\"_version\":{version},\"_seq_no\":{sequence},\"_primary_term\":1");
    if !record.routing.is_empty() {
        out.extend_from_slice(b",\"_routing\":");
        push_text(out, record.routing);
    }
    out.extend_from_slice(b",\"found\":true");
    if *filter != SourceFilter::Nothing {
        out.extend_from_slice(b",\"_source\":");
        filter.push(out, record.source);
    }
    out.push(b'}');
    Ok(true)
}

/// A document is read at once. A filter reads its source as a tree, which can take seconds: on a thread of the pool.
async fn read_with(
    request: &Request<'_>,
    filter: SourceFilter,
    read: impl FnOnce(&SourceFilter) -> Outcome + Send + 'static,
) -> Outcome {
    match filter {
        SourceFilter::Parts { .. } => on_pool(request.app, move || read(&filter)).await?,
        SourceFilter::All | SourceFilter::Nothing => read(&filter),
    }
}

async fn get(request: &Request<'_>, name: &str, id: &str) -> Outcome {
    if request.params.get("stored_fields").is_some() {
        return Err(ElasticError::unsupported("[stored_fields]"));
    }
    let index = request.app.indices.get(name).ok_or_else(|| ElasticError::no_index(name))?;
    let (id, routing) = (id.to_owned(), routing(request));
    let read = move |filter: &SourceFilter| {
        let mut out = Vec::new();
        let found = push_document(&mut out, &index, &id, &routing, filter)?;
        Ok(Answer::bytes(out).status(if found { 200 } else { 404 }))
    };
    read_with(request, filter(request), read).await
}

async fn source(request: &Request<'_>, name: &str, id: &str) -> Outcome {
    let index = request.app.indices.get(name).ok_or_else(|| ElasticError::no_index(name))?;
    let found = index.shard(id, &routing(request)).get(id);
    let found = found.map_err(|error| ElasticError::internal(error.to_string()))?;
    let reason = format!("Document not found [{name}]/[_doc]/[{id}]");
    let missing = || ElasticError::new(404, "resource_not_found_exception", reason);
    let Some(bytes) = found.filter(|bytes| bytes.record().is_some()) else {
        return Err(missing());
    };
    let read = move |filter: &SourceFilter| {
        let mut out = Vec::new();
        filter.push(&mut out, bytes.record().map_or(b"{}", |record| record.source));
        Ok(Answer::bytes(out))
    };
    read_with(request, filter(request), read).await
}

/// Many documents can be long together: they are read on a thread of the pool.
async fn several(request: &Request<'_>, list: Option<&str>) -> Outcome {
    let (app, list) = (Arc::clone(request.app), list.map(ToOwned::to_owned));
    let (body, held) = (request.body.clone(), request.held.clone());
    let general = filter(request);
    let gather = move || {
        // A client that leaves meanwhile does not end this thread's work.
        let _held = held;
        gather(&app, &body, list.as_deref(), &general)
    };
    on_pool(request.app, gather).await?
}

fn gather(app: &App, body: &[u8], list: Option<&str>, general: &SourceFilter) -> Outcome {
    let json = parse_short(body)?;
    let (ids, documents) = (json["ids"].as_array(), json["docs"].as_array());
    if ids.into_iter().chain(documents).all(Vec::is_empty) {
        let reason = "Validation Failed: 1: no documents to get;";
        return Err(ElasticError::new(400, "action_request_validation_exception", reason));
    }
    let wanted: Vec<Json> = ids
        .into_iter()
        .flatten()
        .map(|id| serde_json::json!({ "_id": id }))
        .chain(documents.into_iter().flatten().cloned())
        .collect();
    if wanted.len() > MAX_GETS {
        return Err(ElasticError::argument(format!("at most {MAX_GETS} documents at a time")));
    }
    let mut growing = Growing::new(&app.replies);
    let mut out = b"{\"docs\":[".to_vec();
    for (number, document) in wanted.iter().enumerate() {
        if number > 0 {
            out.push(b',');
        }
        let id = match &document["_id"] {
            Json::String(id) => id.clone(),
            Json::Null => {
                let reason = format!("Validation Failed: 1: id is missing for doc {number};");
                return Err(ElasticError::new(400, "action_request_validation_exception", reason));
            }
            other => other.to_string(),
        };
        let name = document["_index"].as_str().or(list).ok_or_else(|| {
            let reason = format!("Validation Failed: 1: index is missing for doc {number};");
            ElasticError::new(400, "action_request_validation_exception", reason)
        })?;
        let filter = match document.get("_source") {
            Some(json) => SourceFilter::read(json, &At::ROOT)?,
            None => general.clone(),
        };
        let routing = document["routing"].as_str().unwrap_or("");
        match app.indices.get(name) {
            Some(index) => {
                push_document(&mut out, &index, &id, routing, &filter)?;
                growing.check(out.len(), number + 1)?;
            }
            None => {
                out.extend_from_slice(b"{\"_index\":");
                push_text(&mut out, name);
                out.extend_from_slice(b",\"_type\":\"_doc\",\"_id\":");
                push_text(&mut out, &id);
                let error = ElasticError::no_index(name).reply();
                let _ = write!(out, ",\"error\":{}}}", error["error"]);
            }
        }
    }
    out.extend_from_slice(b"]}");
    Ok(Answer::grown(out, growing))
}
