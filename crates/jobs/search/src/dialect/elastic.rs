//! Elasticsearch's query language, as Elasticsearch 7 and later, OpenSearch and `plimsoll serve search` have it.

use super::{Call, Found};
use crate::query::{Bound, Clause, Distance, FIELDS, FieldKind, Query};
use plimsoll_workloads::json_scan::Pointer;
use serde_json::{Map, Value, json};

/// The request of a query.
pub(super) fn search(index: &str, query: &Query, distance: u8) -> Result<Call, String> {
    Ok(Call::json("POST", format!("/{index}/_search"), &body(query, distance)?))
}

/// Its body. The total is always asked for exactly: without that it is reported up to 10,000 only.
pub(super) fn body(query: &Query, distance: u8) -> Result<Value, String> {
    if let Clause::Raw(texts) = &query.clause {
        let text = texts.get("elasticsearch").ok_or("the query has no text for elasticsearch")?;
        let filled = text.replace("{distance}", &distance.to_string());
        return serde_json::from_str(&filled).map_err(|error| format!("not JSON: {error}"));
    }
    Ok(json!({
        "from": 0,
        "size": query.size,
        "track_total_hits": true,
        "query": clause(&query.clause, distance)?,
    }))
}

fn clause(wanted: &Clause, distance: u8) -> Result<Value, String> {
    Ok(match wanted {
        Clause::Fuzzy { field, word, distance: own } => match own.in_cell(distance) {
            0 => about("term", field, json!({ "value": word })),
            edits => about("fuzzy", field, json!({ "value": word, "fuzziness": edits })),
        },
        Clause::Match { field, text, all, distance: own } => {
            let operator = if *all { "and" } else { "or" };
            let mut inner = json!({ "query": text, "operator": operator });
            add_fuzziness(&mut inner, *own, distance);
            about("match", field, inner)
        }
        Clause::Phrase { field, text, distance: own } => {
            if own.in_cell(distance) > 0 {
                return Err("match_phrase has no fuzziness".to_owned());
            }
            about("match_phrase", field, json!({ "query": text }))
        }
        Clause::Term { field, values } => match values.as_slice() {
            [value] => about("term", field, json!({ "value": value })),
            several => about("terms", field, json!(several)),
        },
        Clause::Prefix { field, text } => about("prefix", field, json!({ "value": text })),
        Clause::Range { field, at_least, above, at_most, below } => {
            let mut bounds = Map::new();
            for (name, bound) in [("gte", at_least), ("gt", above), ("lte", at_most), ("lt", below)]
            {
                add_bound(&mut bounds, name, bound);
            }
            about("range", field, Value::Object(bounds))
        }
        Clause::Exists { field } => json!({ "exists": { "field": field } }),
        Clause::Ids { ids } => json!({ "ids": { "values": ids } }),
        Clause::All => json!({ "match_all": {} }),
        Clause::Bool { must, should, must_not, minimum } => {
            let all = |clauses: &[Clause]| {
                clauses.iter().map(|one| clause(one, distance)).collect::<Result<Vec<_>, _>>()
            };
            let mut parts = Map::new();
            for (name, clauses) in [("must", must), ("should", should), ("must_not", must_not)] {
                if !clauses.is_empty() {
                    parts.insert(name.to_owned(), Value::Array(all(clauses)?));
                }
            }
            if !should.is_empty() {
                parts.insert("minimum_should_match".to_owned(), json!(minimum));
            }
            json!({ "bool": parts })
        }
        Clause::Raw(_) => return Err("a raw text cannot be part of another query".to_owned()),
    })
}

/// `{"kind": {"field": inner}}`.
fn about(kind: &str, field: &str, inner: Value) -> Value {
    let mut of_field = Map::new();
    of_field.insert(field.to_owned(), inner);
    let mut of_kind = Map::new();
    of_kind.insert(kind.to_owned(), Value::Object(of_field));
    Value::Object(of_kind)
}

fn add_fuzziness(inner: &mut Value, own: Distance, distance: u8) {
    let edits = own.in_cell(distance);
    if let (true, Value::Object(inner)) = (edits > 0, inner) {
        inner.insert("fuzziness".to_owned(), json!(edits));
    }
}

fn add_bound(bounds: &mut Map<String, Value>, name: &str, bound: &Bound) {
    if let Some(number) = bound {
        bounds.insert(name.to_owned(), Value::Number(number.clone()));
    }
}

/// An index with the five fields of this program's corpora. Without replicas: a single node has no place for one,
/// and its health would stay yellow.
pub(super) fn create(index: &str, shards: u32) -> Call {
    let mut properties = Map::new();
    for (field, kind) in FIELDS {
        let kind = match kind {
            FieldKind::Text => "text",
            FieldKind::Keyword => "keyword",
            FieldKind::Number => "long",
        };
        properties.insert(field.to_owned(), json!({ "type": kind }));
    }
    let body = json!({
        "settings": { "index": { "number_of_shards": shards, "number_of_replicas": 0 } },
        "mappings": { "properties": properties },
    });
    Call::json("PUT", format!("/{index}"), &body)
}

/// Returns true if a reply that may be cut tells how many documents match, and not only that there are at least this many.
pub(super) fn is_exact(body: &[u8]) -> bool {
    let relation = Pointer::parse("/hits/total/relation");
    relation.and_then(|pointer| pointer.find(body)).is_none_or(|relation| relation == b"\"eq\"")
}

pub(super) fn found(value: &Value) -> Found {
    let total = value.pointer("/hits/total");
    let exact = value.pointer("/hits/total/relation").is_none_or(|relation| relation == "eq");
    let hits = total.and_then(|total| total.as_u64().or_else(|| total.get("value")?.as_u64()));
    let ids = value.pointer("/hits/hits").and_then(Value::as_array).map_or_else(Vec::new, |hits| {
        hits.iter().filter_map(|hit| Some(hit.get("_id")?.as_str()?.to_owned())).collect()
    });
    Found { hits: hits.filter(|_| exact), ids }
}
