//! `_stats`: what an index holds and has done.

use super::super::error::ElasticError;
use super::super::index::Index;
use super::super::shard::Counters;
use super::{Answer, Outcome, Request, all_shards};
use serde_json::{Map, Value as Json, json};
use std::sync::atomic::Ordering::Relaxed;

/// The metrics that are reported, among those of Elasticsearch.
const TOLD: [&str; 5] = ["docs", "store", "indexing", "search", "segments"];
const OTHERS: [&str; 13] = [
    "completion",
    "fielddata",
    "flush",
    "get",
    "merge",
    "query_cache",
    "recovery",
    "refresh",
    "request_cache",
    "suggest",
    "translog",
    "warmer",
    "bulk",
];

/// Returns the requested ones.
fn chosen(request: &Request<'_>, metrics: &str) -> Result<Vec<&'static str>, ElasticError> {
    let mut chosen = Vec::new();
    for metric in metrics.split(',') {
        match TOLD.iter().find(|told| **told == metric) {
            Some(told) => chosen.push(*told),
            None if metric == "_all" => chosen.extend(TOLD),
            // There is nothing to tell of these.
            None if OTHERS.contains(&metric) => {}
            None => {
                let path = request.path;
                let reason = format!("request [{path}] contains unrecognized metric: [{metric}]");
                return Err(ElasticError::argument(reason));
            }
        }
    }
    Ok(chosen)
}

fn of_index(index: &Index) -> Json {
    let sum = |what: &dyn Fn(&Counters) -> u64| -> u64 {
        index.shards.iter().map(|shard| what(&shard.counters)).sum()
    };
    let segments: usize =
        index.shards.iter().map(|shard| shard.searcher().0.segment_readers().len()).sum();
    json!({
        "docs": {"count": index.documents(), "deleted": sum(&|c| c.removed.load(Relaxed))},
        "store": {"size_in_bytes": index.bytes(), "reserved_in_bytes": 0},
        "indexing": {"index_total": sum(&|c| c.written.load(Relaxed))},
        "search": {"query_total": sum(&|c| c.searches.load(Relaxed))},
        "segments": {"count": segments},
    })
}

/// Adds the figures of an index to those of all.
fn add(all: &mut Map<String, Json>, own: &Map<String, Json>) {
    for (name, figures) in own {
        let sums = all.entry(name.clone()).or_insert_with(|| json!({}));
        for (figure, value) in figures.as_object().into_iter().flatten() {
            let before = sums[figure].as_u64().unwrap_or(0);
            sums[figure] = (before + value.as_u64().unwrap_or(0)).into();
        }
    }
}

pub(super) fn stats(request: &Request<'_>, list: Option<&str>, metrics: &str) -> Outcome {
    let chosen = chosen(request, metrics)?;
    let indices = request.app.indices.resolve(list.unwrap_or("_all"), false)?;
    let (mut by_name, mut all) = (Map::new(), Map::new());
    for index in &indices {
        let mut own = match of_index(index) {
            Json::Object(own) => own,
            _ => Map::new(),
        };
        own.retain(|name, _| chosen.contains(&name.as_str()));
        add(&mut all, &own);
        let uuid = &index.state.uuid;
        let both = json!({"uuid": uuid, "primaries": own.clone(), "total": own});
        by_name.insert(index.name().to_owned(), both);
    }
    let shards: usize = indices.iter().map(|index| index.shards.len()).sum();
    Ok(Answer::json(&json!({
        "_shards": all_shards(shards),
        "_all": {"primaries": all.clone(), "total": all},
        "indices": by_name,
    })))
}
