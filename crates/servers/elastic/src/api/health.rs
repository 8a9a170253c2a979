//! `_cluster/health`: one node, and indices that are there or not.

use super::super::error::ElasticError;
use super::super::index::Index;
use super::super::settings::duration;
use super::{Answer, Outcome, Params, Request};
use plimsoll_core::clock::now_ns;
use serde_json::{Map, Value as Json, json};
use std::sync::Arc;
use std::time::Duration;

/// Time that the health of an index that is missing is waited for, when the request does not say.
const PATIENCE: Duration = Duration::from_secs(30);
/// The longest such wait.
const LIMIT: Duration = Duration::from_secs(120);

/// The conditions of a request, checked before it waits.
struct Wanted<'a> {
    patience: Duration,
    status: Option<&'a str>,
    level: &'a str,
    /// True if one node is as many as were asked for.
    nodes: bool,
    /// Shards that must be there; none for all of them.
    shards: Option<usize>,
}

fn wrong(name: &str, value: &str) -> ElasticError {
    ElasticError::argument(format!("unknown value [{value}] of [{name}]"))
}

/// Returns true if one node is what `2`, `>=2`, `<3`, `ge(2)` and so on ask for.
fn one_node(text: &str) -> Option<bool> {
    let digits = text.find(|c: char| c.is_ascii_digit())?;
    let (sign, rest) = text.split_at(digits);
    let number: u32 = rest.trim_end_matches(')').parse().ok()?;
    Some(match sign {
        "" => number == 1,
        ">=" | "ge(" => 1 >= number,
        "<=" | "le(" => 1 <= number,
        ">" | "gt(" => 1 > number,
        "<" | "lt(" => 1 < number,
        _ => return None,
    })
}

impl<'a> Wanted<'a> {
    fn read(params: &'a Params) -> Result<Self, ElasticError> {
        let get = |name: &str| -> Option<&'a str> { params.get(name) };
        let patience = match get("timeout") {
            None => PATIENCE,
            Some(text) => duration(text).ok_or_else(|| {
                ElasticError::argument(format!(
                    "failed to parse setting [timeout] with value [{text}] as a time value: unit is missing or \
                     unrecognized"
                ))
            })?,
        };
        let one_of = |name: &str, words: &[&str]| match get(name) {
            Some(text) if !words.contains(&text.to_ascii_lowercase().as_str()) => {
                Err(wrong(name, text))
            }
            text => Ok(text),
        };
        let nodes = match get("wait_for_nodes") {
            None | Some("") => true,
            Some(text) => one_node(text).ok_or_else(|| wrong("wait_for_nodes", text))?,
        };
        let shards = match get("wait_for_active_shards") {
            None => Some(0),
            Some("all") => None,
            Some(text) => Some(text.parse().map_err(|_| wrong("wait_for_active_shards", text))?),
        };
        Ok(Self {
            patience: patience.min(LIMIT),
            status: one_of("wait_for_status", &["green", "yellow", "red"])?,
            level: one_of("level", &["cluster", "indices", "shards"])?.unwrap_or("cluster"),
            nodes,
            shards,
        })
    }
}

/// The indices of a list; nothing when one of them has not come in time.
async fn awaited(request: &Request<'_>, list: &str, patience: Duration) -> Option<Vec<Arc<Index>>> {
    let limit_ns = now_ns() + u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX / 2);
    loop {
        match request.app.indices.resolve(list, false) {
            Ok(indices) => return Some(indices),
            Err(_) if now_ns() >= limit_ns => return None,
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

fn status(failed: bool) -> &'static str {
    if failed { "red" } else { "green" }
}

/// The health of one index.
fn of_index(index: &Index, with_shards: bool) -> Json {
    let settings = index.state.settings();
    let failed = index.shards.iter().any(|shard| shard.failure().is_some());
    let count = index.shards.len();
    let mut told = json!({
        "status": status(failed), "number_of_shards": settings.shards,
        "number_of_replicas": settings.replicas, "active_primary_shards": count,
        "active_shards": count, "relocating_shards": 0, "initializing_shards": 0,
        "unassigned_shards": 0,
    });
    if with_shards {
        let shard = |shard: &Arc<super::super::shard::Shard>| {
            let failed = shard.failure().is_some();
            let told = json!({
                "status": status(failed), "primary_active": !failed, "active_shards": 1,
                "relocating_shards": 0, "initializing_shards": 0, "unassigned_shards": 0,
            });
            (shard.number.to_string(), told)
        };
        told["shards"] = Json::Object(index.shards.iter().map(shard).collect());
    }
    told
}

/// Replicas are never there, which is no fault here: the status is green. Nothing gets better by waiting, except that an
/// index may come: a shard that has failed stays so, and there is one node.
pub(super) async fn health(request: &Request<'_>, list: &str) -> Outcome {
    let wanted = Wanted::read(&request.params)?;
    let found = awaited(request, list, wanted.patience).await;
    let missing = found.is_none();
    let indices = found.unwrap_or_default();
    let shards: usize = indices.iter().map(|index| index.shards.len()).sum();
    let failed =
        indices.iter().flat_map(|index| &index.shards).any(|shard| shard.failure().is_some());
    let timed_out = missing
        || failed && wanted.status.is_some_and(|wanted| !wanted.eq_ignore_ascii_case("red"))
        || !wanted.nodes
        || wanted.shards.is_some_and(|wanted| wanted > shards);
    let mut reply = json!({
        "cluster_name": "plimsoll", "status": status(failed || missing), "timed_out": timed_out,
        "number_of_nodes": 1, "number_of_data_nodes": 1, "active_primary_shards": shards,
        "active_shards": shards, "relocating_shards": 0, "initializing_shards": 0,
        "unassigned_shards": 0, "delayed_unassigned_shards": 0, "number_of_pending_tasks": 0,
        "number_of_in_flight_fetch": 0, "task_max_waiting_in_queue_millis": 0,
        "active_shards_percent_as_number": 100.0,
    });
    if !wanted.level.eq_ignore_ascii_case("cluster") {
        let with_shards = wanted.level.eq_ignore_ascii_case("shards");
        let each = indices.iter().map(|i| (i.name().to_owned(), of_index(i, with_shards)));
        reply["indices"] = Json::Object(each.collect::<Map<_, _>>());
    }
    Ok(Answer::json(&reply).status(if timed_out { 408 } else { 200 }))
}

#[cfg(test)]
mod tests {
    use super::one_node;

    #[test]
    fn one_node_is_held_against_what_was_asked_for() {
        for (text, holds) in [
            ("1", Some(true)),
            ("2", Some(false)),
            (">=1", Some(true)),
            (">1", Some(false)),
            ("<=3", Some(true)),
            ("<1", Some(false)),
            ("ge(2)", Some(false)),
            ("lt(2)", Some(true)),
            ("many", None),
        ] {
            assert_eq!(one_node(text), holds, "{text}");
        }
    }
}
