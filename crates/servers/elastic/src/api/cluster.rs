//! `_cluster` and `_nodes`: one node, always in good health.

use super::super::error::ElasticError;
use super::super::{NODE, VERSION};
use super::health::health;
use super::{Answer, Outcome, Request, no_handler, not_allowed};
use hyper::Method;
use plimsoll_front::reads;
use serde_json::json;

pub(super) async fn route(request: &Request<'_>, rest: &[&str]) -> Outcome {
    if *request.method == Method::PUT && rest == ["_cluster", "settings"] {
        return Err(ElasticError::unsupported("settings of the cluster"));
    }
    if !reads(request.method) {
        return Err(not_allowed(request, "GET"));
    }
    match rest {
        ["_cluster", "health"] => health(request, "_all").await,
        ["_cluster", "health", list] => health(request, list).await,
        ["_cluster", "settings"] => Ok(Answer::json(&json!({"persistent": {}, "transient": {}}))),
        ["_cluster", "state", ..] => Ok(Answer::json(&json!({
            "cluster_name": "plimsoll", "cluster_uuid": "plimsoll", "master_node": NODE,
        }))),
        ["_cluster", "stats", ..] => {
            let indices = request.app.indices.all();
            let documents: u64 = indices.iter().map(|index| index.documents()).sum();
            Ok(Answer::json(&json!({
                "cluster_name": "plimsoll", "status": "green",
                "indices": {"count": indices.len(), "docs": {"count": documents}},
                "nodes": {"count": {"total": 1}, "versions": [VERSION]},
            })))
        }
        ["_nodes", ..] => Ok(Answer::json(&json!({
            "_nodes": {"total": 1, "successful": 1, "failed": 0},
            "cluster_name": "plimsoll",
            "nodes": {NODE: {
                "name": NODE, "host": "127.0.0.1", "ip": "127.0.0.1", "version": VERSION,
                "roles": ["data", "ingest", "master"],
                "os": {"available_processors": plimsoll_front::processors()},
            }},
        }))),
        _ => Err(no_handler(request)),
    }
}
