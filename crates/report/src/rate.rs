//! Meaning of a run's rate: what was offered, what the target kept up with, or no more than a lower bound.

use plimsoll_core::verdict::VerdictKind;
use plimsoll_record::RunRecord;

/// An open schedule that achieves less than this share of its rate has fallen behind.
const FELL_BEHIND_BELOW: f64 = 0.98;

/// True if requests arrived at their own time (open model).
#[must_use]
pub fn is_open(record: &RunRecord) -> bool {
    let model = record.scenario.get("load").and_then(|load| load.get("model"));
    matches!(model.and_then(serde_json::Value::as_str), Some("open" | "burst" | "profile"))
}

/// True if a target did not get through what an open schedule asked of it.
#[must_use]
pub fn fell_behind(record: &RunRecord) -> bool {
    let rates = &record.rate;
    let refused = record.ledger.refused.queue_full + record.ledger.refused.queue_timeout;
    let admitted = record.ledger.scheduled.saturating_sub(refused) as f64;
    // What is in flight at the end of a run is no backlog: it is as much as was in flight at its beginning.
    let in_flight = rates.achieved_per_s * record.latency_ms.response.mean / 1e3;
    is_open(record)
        && record.verdict.kind == VerdictKind::Valid
        && !record.job_results.is_search()
        && rates.achieved_per_s * record.duration_s + 2.0 * in_flight < admitted * FELL_BEHIND_BELOW
}

/// True if the target may do much more than the rate of a closed run: plimsoll was the limit, or may have been.
#[must_use]
pub fn is_lower_bound(record: &RunRecord) -> bool {
    let verdict = &record.verdict;
    let leaves_open = verdict.bounds.is_some_and(|bounds| bounds.leaves_open(record.rate.ok_per_s));
    match verdict.kind {
        VerdictKind::GeneratorLimited => !is_open(record),
        VerdictKind::Valid => !is_open(record) && leaves_open,
        _ => false,
    }
}
