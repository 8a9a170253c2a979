//! The reply of a search, written straight into bytes.

use super::super::order;
use super::super::request::Totals;
use super::super::source_filter::SourceFilter;
use super::{Gather, Merged, Ran, Results};
use crate::NODE;
use crate::error::ElasticError;
use crate::memory::Growing;
use crate::shard::Log;
use plimsoll_core::clock::now_ns;
use plimsoll_index::execute::SortValue;
use plimsoll_index::mapping::FieldKind;
use plimsoll_index::plan::{SortBy, SortColumn};
use plimsoll_serving::json::push_text;
use serde_json::{Value as Json, json};
use std::io::Write;

/// Approximate size of a hit besides its source.
const HIT_BYTES: usize = 96;

/// The reply of a search or a count.
///
/// # Errors
/// When all shards failed, a count is not whole, or a source cannot be read.
pub(super) fn render(
    gather: &Gather,
    results: &Results,
    counts: bool,
) -> Result<Ran, ElasticError> {
    let shards = gather.targets.len();
    let failed = results.failures.len();
    if failed > 0 && failed == shards {
        let (target, error) = &results.failures[0];
        return Err(error.clone().all_shards_failed(gather.targets[*target].index.name()));
    }
    // The reply to a count has no member that says that it is not whole.
    if counts && results.timed_out {
        let reason = "the documents were not counted within the timeout";
        return Err(ElasticError::new(504, "timeout_exception", reason));
    }
    let mut growing = Growing::new(&gather.replies);
    let mut out = Vec::with_capacity(512 + results.hits.len() * (HIT_BYTES + 512));
    if counts {
        let _ = write!(out, "{{\"count\":{},", results.total);
        push_shards(&mut out, gather, results);
        out.push(b'}');
        return Ok(Ran { body: out, growing });
    }
    let took_ms = (now_ns() - gather.start_ns) / 1_000_000;
    let timed_out = results.timed_out;
    let _ = write!(out, "{{\"took\":{took_ms},\"timed_out\":{timed_out},");
    push_shards(&mut out, gather, results);
    out.extend_from_slice(b",\"hits\":{");
    push_total(&mut out, gather, results.total);
    out.extend_from_slice(b"\"max_score\":");
    // Without an index to look at it is 0, for whatever reason.
    let max_score = if shards == 0 { Some(0.0) } else { results.max_score };
    push_score(&mut out, max_score);
    out.extend_from_slice(b",\"hits\":[");
    for (number, hit) in results.hits.iter().enumerate() {
        if number > 0 {
            out.push(b',');
        }
        let log = results.logs.get(hit.target).and_then(Option::as_deref);
        push_hit(&mut out, gather, hit, log)?;
        growing.check(out.len(), number + 1)?;
    }
    out.extend_from_slice(b"]}}");
    Ok(Ran { body: out, growing })
}

fn push_shards(out: &mut Vec<u8>, gather: &Gather, results: &Results) {
    let (shards, failed) = (gather.targets.len(), results.failures.len());
    let successful = shards - failed;
    let _ = write!(
        out,
        "\"_shards\":{{\"total\":{shards},\"successful\":{successful},\"skipped\":0,\
         \"failed\":{failed}"
    );
    if failed > 0 {
        let failures: Vec<Json> = results
            .failures
            .iter()
            .map(|(target, error)| {
                let target = &gather.targets[*target];
                json!({
                    "shard": target.shard.number,
                    "index": target.index.name(),
                    "node": NODE,
                    "reason": error.object(),
                })
            })
            .collect();
        let _ = write!(out, ",\"failures\":{}", Json::Array(failures));
    }
    out.push(b'}');
}

fn push_total(out: &mut Vec<u8>, gather: &Gather, total: u64) {
    let (value, relation) = match gather.request.totals {
        Totals::Nothing if gather.request.plain_total => {
            out.extend_from_slice(b"\"total\":-1,");
            return;
        }
        Totals::Nothing => return,
        Totals::To(limit) if total > limit => (limit, "gte"),
        Totals::To(_) | Totals::All => (total, "eq"),
    };
    let _ = if gather.request.plain_total {
        write!(out, "\"total\":{value},")
    } else {
        write!(out, "\"total\":{{\"value\":{value},\"relation\":\"{relation}\"}},")
    };
}

fn push_score(out: &mut Vec<u8>, score: Option<f32>) {
    match score.filter(|score| score.is_finite()) {
        // Writing into memory does not fail.
        Some(score) => drop(serde_json::to_writer(out, &score)),
        None => out.extend_from_slice(b"null"),
    }
}

fn push_hit(
    out: &mut Vec<u8>,
    gather: &Gather,
    hit: &Merged,
    log: Option<&Log>,
) -> Result<(), ElasticError> {
    let target = &gather.targets[hit.target];
    let damaged = || ElasticError::internal("a record of the log cannot be read");
    let bytes = log.ok_or_else(damaged)?.read(hit.at);
    let bytes = bytes.map_err(|error| ElasticError::internal(error.to_string()))?;
    let record = bytes.record().ok_or_else(damaged)?;
    out.extend_from_slice(b"{\"_index\":");
    push_text(out, target.index.name());
    out.extend_from_slice(b",\"_type\":\"_doc\",\"_id\":");
    push_text(out, record.id);
    let request = &gather.request;
    if request.version {
        let _ = write!(out, ",\"_version\":{}", record.version);
    }
    if request.sequence {
        let _ = write!(out, ",\"_seq_no\":{},\"_primary_term\":1", record.sequence);
    }
    out.extend_from_slice(b",\"_score\":");
    let by_score = target.order.iter().any(|column| column.by == SortBy::Score);
    push_score(out, (target.order.is_empty() || by_score).then_some(hit.score));
    if !record.routing.is_empty() {
        out.extend_from_slice(b",\"_routing\":");
        push_text(out, record.routing);
    }
    if request.source != SourceFilter::Nothing {
        out.extend_from_slice(b",\"_source\":");
        request.source.push(out, record.source);
    }
    if !hit.sorted_by.is_empty() {
        out.extend_from_slice(b",\"sort\":[");
        for (number, (value, column)) in hit.sorted_by.iter().zip(target.order.iter()).enumerate() {
            if number > 0 {
                out.push(b',');
            }
            push_value(out, value, column);
        }
        out.push(b']');
    }
    out.push(b'}');
    Ok(())
}

/// Returns true if values have 32 bits, and are shown with as many digits as that takes.
fn is_single(by: &SortBy) -> bool {
    matches!(by, SortBy::Score | SortBy::Column { kind: FieldKind::Real { single: true }, .. })
}

fn push_value(out: &mut Vec<u8>, value: &SortValue, column: &SortColumn) {
    match value {
        SortValue::Missing => {
            let _ = write!(out, "{}", order::missing(column));
        }
        SortValue::Long(number) => {
            let _ = write!(out, "{number}");
        }
        SortValue::Real(number) if is_single(&column.by) => {
            push_score(out, Some(tantivy::u64_to_f64(*number) as f32));
        }
        SortValue::Real(number) => {
            drop(serde_json::to_writer(out, &tantivy::u64_to_f64(*number)));
        }
        SortValue::Text(text) => push_text(out, text),
    }
}
