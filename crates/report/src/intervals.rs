//! The intervals of a run's percentiles, from its periods into the record and out as text.

use crate::number::{significant, time};
use crate::periods::Periods;
use plimsoll_core::schedule::LoadModel;
use plimsoll_decide::percentile::{CONFIDENCE, intervals};
use plimsoll_record::{PercentileInterval, RunRecord};
use std::collections::BTreeMap;

/// Percentiles with an interval: key of the record, name on pages, share of the requests that do not exceed it.
pub const PERCENTILES: [(&str, &str, f64); 5] = [
    ("p50", "p50", 0.50),
    ("p90", "p90", 0.90),
    ("p95", "p95", 0.95),
    ("p99", "p99", 0.99),
    ("p99_9", "p99.9", 0.999),
];
/// Those on the text page.
const ON_TEXT: [&str; 3] = ["p50", "p95", "p99"];

/// Returns the intervals of the record's response times, by percentile. There is none of a run without a successful request.
#[must_use]
pub fn of(periods: Periods, record: &RunRecord) -> BTreeMap<String, PercentileInterval> {
    let response = &record.latency_ms.response;
    if response.count == 0 {
        return BTreeMap::new();
    }
    let (periods, period_s) = periods.finish(record.duration_s);
    let kept: u64 = periods.iter().map(plimsoll_core::histogram::Packed::count).sum();
    let reason = match () {
        () if record.job_results.is_search() => Some("the run went through several rates"),
        () if has_changing_load(record) => Some("the load changes during the run"),
        () if kept != response.count => Some("the times are not those of one stretch of load"),
        () => None,
    };
    let missing = |reason: String| PercentileInterval::Missing { reason };
    if let Some(reason) = reason {
        let all = PERCENTILES.map(|(key, ..)| (key.to_owned(), missing(reason.to_owned())));
        return all.into();
    }
    let found = intervals(&periods, period_s, &PERCENTILES.map(|(_, _, quantile)| quantile));
    let estimates = [response.p50, response.p90, response.p95, response.p99, response.p99_9];
    let each = PERCENTILES.iter().zip(estimates).zip(found);
    each.map(|(((key, ..), estimate), found)| {
        let interval = found.map_or_else(
            |reason| missing(reason.to_string()),
            |interval| PercentileInterval::Known {
                estimate,
                low: (interval.low_ns / 1e6).min(estimate),
                high: (interval.high_ns / 1e6).max(estimate),
                confidence: CONFIDENCE,
                batches: interval.batches as u32,
            },
        );
        ((*key).to_owned(), interval)
    })
    .collect()
}

/// Returns true if the load has other rates at other times.
fn has_changing_load(record: &RunRecord) -> bool {
    let load = record.scenario.get("load").cloned().unwrap_or_default();
    matches!(serde_json::from_value(load), Ok(LoadModel::Profile { .. }))
}

/// Returns the intervals as one remark: `95 % intervals: p50 3.10 ms (3.05 to 3.16), ...`, and the reason for each that is
/// missing. `None` if the record has none.
#[must_use]
pub fn remark(record: &RunRecord) -> Option<String> {
    let (mut known, mut missing) = (Vec::new(), Vec::<(Vec<&str>, &str)>::new());
    for (key, name, _) in PERCENTILES.iter().filter(|(key, ..)| ON_TEXT.contains(key)) {
        match record.intervals.get(*key)? {
            PercentileInterval::Known { estimate, low, high, .. } => {
                known.push(format!("{name} {}", shown(*estimate, *low, *high)));
            }
            PercentileInterval::Missing { reason } => match missing.last_mut() {
                Some((names, last)) if last == reason => names.push(name),
                _ => missing.push((vec![name], reason)),
            },
        }
    }
    let none = |(names, reason): &(Vec<&str>, &str)| match names.len() {
        all if all == ON_TEXT.len() => format!("no 95 % interval: {reason}"),
        _ => format!("no interval for {}: {reason}", names.join(", ")),
    };
    let parts = (!known.is_empty()).then(|| format!("95 % intervals: {}", known.join(", ")));
    Some(parts.into_iter().chain(missing.iter().map(none)).collect::<Vec<_>>().join("; "))
}

/// A percentile with its interval, ms, in the unit of the percentile: `12.3 ms (11.8 to 12.9)`.
#[must_use]
pub fn shown(estimate: f64, low: f64, high: f64) -> String {
    let text = time(estimate);
    let factor = match text.rsplit(' ').next() {
        Some("us") => 1e3,
        Some("s") => 1e-3,
        _ => 1.0,
    };
    format!("{text} ({} to {})", significant(low * factor), significant(high * factor))
}

#[cfg(test)]
mod tests;
