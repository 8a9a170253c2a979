//! `_cluster` and `_nodes`: one node, always in good health.

use super::super::index::Index;
use super::super::settings::duration;
use super::super::{NODE, VERSION};
use super::{Answer, Outcome, Request, no_handler, not_allowed};
use crate::search::http::reads;
use plimsoll_core::clock::now_ns;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

pub(super) async fn route(request: &Request<'_>, rest: &[&str]) -> Outcome {
    if !reads(request.method) && rest != ["_cluster", "settings"] {
        return Err(not_allowed(request, "GET"));
    }
    match rest {
        ["_cluster", "health"] => health(request, "_all").await,
        ["_cluster", "health", list] => health(request, list).await,
        ["_cluster", "settings"] => {
            Ok(Answer::json(&json!({"acknowledged": true, "persistent": {}, "transient": {}})))
        }
        ["_cluster", "state", ..] => Ok(Answer::json(&json!({
            "cluster_name": "plimsoll", "cluster_uuid": "plimsoll", "master_node": NODE,
        }))),
        ["_cluster", "stats", ..] => {
            let indices = request.elastic().indices.all();
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
                "os": {"available_processors": crate::search::processors()},
            }},
        }))),
        _ => Err(no_handler(request)),
    }
}

/// How long the health of an index that is missing is waited for, when the request does not say.
const HEALTH_PATIENCE: Duration = Duration::from_secs(30);
/// The longest such wait.
const HEALTH_LIMIT: Duration = Duration::from_secs(120);

/// The indices of a list; nothing when one of them has not come within the request's timeout.
async fn awaited(request: &Request<'_>, list: &str) -> Option<Vec<Arc<Index>>> {
    let asked = request.params.get("timeout").and_then(duration);
    let patience = asked.unwrap_or(HEALTH_PATIENCE).min(HEALTH_LIMIT);
    let limit_ns = now_ns() + u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX / 2);
    loop {
        match request.elastic().indices.resolve(list, false) {
            Ok(indices) => return Some(indices),
            Err(_) if now_ns() >= limit_ns => return None,
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

/// Replicas are never there, which is no fault here: the status is green.
async fn health(request: &Request<'_>, list: &str) -> Outcome {
    let found = awaited(request, list).await;
    let missing = found.is_none();
    let indices = found.unwrap_or_default();
    let shards: usize = indices.iter().map(|index| index.shards.len()).sum();
    let failed =
        indices.iter().flat_map(|index| &index.shards).any(|shard| shard.failure().is_some());
    let status = if failed || missing { "red" } else { "green" };
    let wanted = request.params.get("wait_for_status");
    // Nothing gets better by waiting: a shard that has failed stays so.
    let timed_out = missing || failed && wanted.is_some_and(|wanted| wanted != "red");
    let reply = json!({
        "cluster_name": "plimsoll", "status": status, "timed_out": timed_out,
        "number_of_nodes": 1, "number_of_data_nodes": 1, "active_primary_shards": shards,
        "active_shards": shards, "relocating_shards": 0, "initializing_shards": 0,
        "unassigned_shards": 0, "delayed_unassigned_shards": 0, "number_of_pending_tasks": 0,
        "number_of_in_flight_fetch": 0, "task_max_waiting_in_queue_millis": 0,
        "active_shards_percent_as_number": 100.0,
    });
    Ok(Answer::json(&reply).status(if timed_out { 408 } else { 200 }))
}
