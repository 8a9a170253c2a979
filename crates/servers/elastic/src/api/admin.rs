//! Indices: making them, looking at them, refreshing, merging, removing.

use super::super::VERSION;
use super::super::error::ElasticError;
use super::super::index::Index;
use super::super::mapping::Mapping;
use super::super::names;
use super::super::searching::parse;
use super::super::settings::Settings;
use super::super::shard::{Message, PATIENCE};
use super::stats::stats;
use super::{Answer, Outcome, Request, all_shards, no_handler, node, not_allowed, on_pool};
use hyper::Method;
use plimsoll_front::reads;
use serde_json::{Map, Value as Json, json};
use std::sync::Arc;
use tokio::sync::oneshot;

/// Features of Elasticsearch that this server does not support.
const OTHERS: [&str; 40] = [
    "_aliases",
    "_analyze",
    "_async_search",
    "_clone",
    "_close",
    "_component_template",
    "_dangling",
    "_data_stream",
    "_delete_by_query",
    "_eql",
    "_explain",
    "_field_caps",
    "_freeze",
    "_ilm",
    "_index_template",
    "_ingest",
    "_license",
    "_ml",
    "_mtermvectors",
    "_open",
    "_pit",
    "_rank_eval",
    "_recovery",
    "_reindex",
    "_remote",
    "_render",
    "_resolve",
    "_rollover",
    "_scripts",
    "_search_shards",
    "_security",
    "_segments",
    "_shrink",
    "_snapshot",
    "_split",
    "_tasks",
    "_template",
    "_termvectors",
    "_update_by_query",
    "_validate",
];

pub(super) async fn route(request: &Request<'_>, list: Option<&str>, rest: &[&str]) -> Outcome {
    let post = *request.method == Method::POST || *request.method == Method::PUT;
    match (list, rest) {
        (None, []) if reads(request.method) => Ok(Answer::json(&root(request.app.root))),
        (None, []) => Err(not_allowed(request, "GET, HEAD")),
        (Some(name), []) if *request.method == Method::PUT => create(request, name).await,
        (Some(list), []) if *request.method == Method::DELETE => remove(request, list).await,
        (Some(list), []) if *request.method == Method::HEAD => {
            let found = request.app.indices.resolve(list, false);
            Ok(Answer::bytes(Vec::new()).status(if found.is_ok() { 200 } else { 404 }))
        }
        (Some(_), []) if *request.method == Method::GET => each(request, list, |index| {
            json!({
                "aliases": {},
                "mappings": index.state.mapping().to_json(),
                "settings": settings(index),
            })
        }),
        (Some(_), []) => Err(not_allowed(request, "GET, HEAD, PUT, DELETE")),
        (_, ["_mapping" | "_mappings"]) if reads(request.method) => {
            each(request, list, |index| json!({"mappings": index.state.mapping().to_json()}))
        }
        (Some(list), ["_mapping" | "_mappings"]) if post => put_mapping(request, list).await,
        (_, ["_settings"]) if reads(request.method) => {
            each(request, list, |index| json!({ "settings": settings(index) }))
        }
        (_, ["_settings"]) if *request.method == Method::PUT => put_settings(request, list).await,
        (_, ["_alias" | "_aliases"]) if reads(request.method) => {
            each(request, list, |_| json!({"aliases": {}}))
        }
        (_, ["_alias" | "_aliases", name]) if reads(request.method) => {
            Err(ElasticError::plain(404, format!("alias [{name}] missing")))
        }
        (_, ["_refresh"]) => refresh(request, list).await,
        (_, ["_flush" | "_forcemerge"]) => settle(request, list, rest[0]).await,
        (_, ["_stats"]) if reads(request.method) => stats(request, list, "_all"),
        (_, ["_stats", metrics]) if reads(request.method) => stats(request, list, metrics),
        (_, ["_cache", "clear"]) if post => {
            let indices = request.app.indices.resolve(list.unwrap_or("_all"), false)?;
            Ok(Answer::json(&json!({"_shards": all_shards(shards(&indices))})))
        }
        (_, [other, ..]) if OTHERS.contains(other) => {
            Err(ElasticError::unsupported(&format!("[{other}]")))
        }
        // Not an endpoint, so that it is taken for an index.
        (None, [name]) if *request.method != Method::POST => {
            names::check(name)?;
            Err(no_handler(request))
        }
        _ => Err(no_handler(request)),
    }
}

/// Reply to the first question of clients. The members of the server beside this one follow.
fn root(beside: &str) -> Json {
    let mut root = json!({
        "name": node(),
        "cluster_name": "plimsoll",
        "cluster_uuid": "plimsoll",
        "version": {
            "number": VERSION,
            "build_flavor": "default",
            "build_type": "tar",
            "build_hash": "unknown",
            "build_date": "2021-01-01T00:00:00Z",
            "build_snapshot": false,
            "lucene_version": "8.7.0",
            "minimum_wire_compatibility_version": "6.8.0",
            "minimum_index_compatibility_version": "6.0.0-beta1"
        },
        "tagline": "You Know, for Search"
    });
    if let Ok(Json::Object(handlers)) = serde_json::from_str(beside)
        && let Json::Object(root) = &mut root
    {
        root.extend(handlers);
    }
    root
}

fn shards(indices: &[Arc<Index>]) -> usize {
    indices.iter().map(|index| index.shards.len()).sum()
}

/// A reply with something of each index.
fn each(request: &Request<'_>, list: Option<&str>, what: impl Fn(&Index) -> Json) -> Outcome {
    let ignore = request.params.flag("ignore_unavailable");
    let indices = request.app.indices.resolve(list.unwrap_or("_all"), ignore)?;
    let all = indices.iter().map(|index| (index.name().to_owned(), what(index)));
    Ok(Answer::json(&Json::Object(all.collect())))
}

fn settings(index: &Index) -> Json {
    let present = index.state.settings();
    let mut shown: Map<String, Json> = present.shown;
    shown.insert("creation_date".to_owned(), index.state.created_ms.to_string().into());
    shown.insert("number_of_shards".to_owned(), present.shards.to_string().into());
    shown.insert("number_of_replicas".to_owned(), present.replicas.to_string().into());
    shown.insert("uuid".to_owned(), index.state.uuid.clone().into());
    shown.insert("provided_name".to_owned(), index.name().into());
    shown.insert("version".to_owned(), json!({"created": "7100299"}));
    json!({ "index": shown })
}

/// The body as an object; an empty one when there is none.
fn object(request: &Request<'_>) -> Result<Map<String, Json>, ElasticError> {
    if request.body.iter().all(u8::is_ascii_whitespace) {
        return Ok(Map::new());
    }
    let parsed = parse(&request.body).map_err(|cause| {
        ElasticError::new(400, "parse_exception", "Failed to parse content to map").caused_by(cause)
    });
    match parsed? {
        Json::Object(object) => Ok(object),
        _ => Err(ElasticError::new(400, "parse_exception", "the body must be an object")),
    }
}

async fn create(request: &Request<'_>, name: &str) -> Outcome {
    let (mut settings, mut mapping) = (Settings::default(), Mapping::default());
    for (key, value) in object(request)? {
        match key.as_str() {
            "settings" => settings = Settings::read(&value)?,
            "mappings" => mapping.merge(&value)?,
            "aliases" if value.as_object().is_none_or(Map::is_empty) => {}
            "aliases" => return Err(ElasticError::unsupported("aliases")),
            _ => {
                let reason = format!("unknown key [{key}] for create index");
                return Err(ElasticError::new(400, "parse_exception", reason));
            }
        }
    }
    let (app, owned) = (Arc::clone(request.app), name.to_owned());
    on_pool(request.app, move || app.indices.create(&owned, settings, mapping)).await??;
    let reply = json!({"acknowledged": true, "shards_acknowledged": true, "index": name});
    Ok(Answer::json(&reply))
}

async fn remove(request: &Request<'_>, list: &str) -> Outcome {
    let ignore = request.params.flag("ignore_unavailable");
    let indices = request.app.indices.resolve(list, ignore)?;
    let app = Arc::clone(request.app);
    let remove = move || indices.iter().try_for_each(|index| app.indices.remove(index));
    on_pool(request.app, remove).await??;
    Ok(Answer::json(&json!({"acknowledged": true})))
}

async fn put_mapping(request: &Request<'_>, list: &str) -> Outcome {
    let indices = request.app.indices.resolve(list, false)?;
    let body = Json::Object(object(request)?);
    let change =
        move || indices.iter().try_for_each(|index| index.state.change_mapping(|m| m.merge(&body)));
    on_pool(request.app, change).await??;
    Ok(Answer::json(&json!({"acknowledged": true})))
}

async fn put_settings(request: &Request<'_>, list: Option<&str>) -> Outcome {
    let indices = request.app.indices.resolve(list.unwrap_or("_all"), false)?;
    let body = Json::Object(object(request)?);
    let body = body.get("settings").cloned().unwrap_or(body);
    let change = move || {
        indices.iter().try_for_each(|index| index.state.change_settings(|s| s.change(&body)))
    };
    on_pool(request.app, change).await??;
    Ok(Answer::json(&json!({"acknowledged": true})))
}

async fn refresh(request: &Request<'_>, list: Option<&str>) -> Outcome {
    let indices = request.app.indices.resolve(list.unwrap_or("_all"), false)?;
    for index in &indices {
        if !index.refreshed(true).await {
            let reason = format!("the index [{}] could not be refreshed", index.name());
            return Err(ElasticError::internal(reason));
        }
    }
    Ok(Answer::json(&json!({"_shards": all_shards(shards(&indices))})))
}

/// `_flush` and `_forcemerge`
async fn settle(request: &Request<'_>, list: Option<&str>, what: &str) -> Outcome {
    let indices = request.app.indices.resolve(list.unwrap_or("_all"), false)?;
    let mut waiting = Vec::new();
    for shard in indices.iter().flat_map(|index| &index.shards) {
        let (done, waits) = oneshot::channel();
        let message = if what == "_flush" { Message::Flush(done) } else { Message::Merge(done) };
        if shard.send(message).is_err() {
            return Err(ElasticError::rejected("rejected execution: the shard is busy"));
        }
        waiting.push(waits);
    }
    for waits in waiting {
        if !matches!(tokio::time::timeout(PATIENCE * 10, waits).await, Ok(Ok(()))) {
            return Err(ElasticError::internal("the shard did not come to an end"));
        }
    }
    Ok(Answer::json(&json!({"_shards": all_shards(shards(&indices))})))
}
