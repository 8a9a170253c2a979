//! k6's summary: `--summary-export FILE`, or the data of `handleSummary` as JSON, which have the same figures.
//!
//! `http_req_duration` is from the send, without the time for a connection. Where k6 has it for requests with the expected
//! status alone, those are the successful ones.

use crate::error::ImportError;
use crate::imported::{Counts, Imported, Times, TimesOf};
use crate::reading::{json_count, json_number, whole_json};
use serde_json::Value;
use std::io::BufRead;

/// The moment from which k6 counts.
pub const FROM: &str = "the send, without the time for a connection (http_req_duration)";

/// Reads a summary.
pub fn parse(input: &mut dyn BufRead) -> Result<Imported, ImportError> {
    let value = whole_json(input)?;
    let metrics = value.get("metrics").and_then(Value::as_object);
    let metrics = metrics.ok_or_else(|| ImportError::lacks("k6", "object 'metrics'"))?;
    // handleSummary has the figures of a metric one step deeper.
    let metric = |name: &str| {
        let metric = metrics.get(name)?;
        Some(metric.get("values").filter(|values| values.is_object()).unwrap_or(metric))
    };
    let requests = metric("http_reqs").ok_or_else(|| {
        ImportError::Form(
            "no metric 'http_reqs': the test made no HTTP request, and plimsoll imports no other"
                .to_owned(),
        )
    })?;
    let sent = json_count(requests.get("count"));
    let sent = sent.ok_or_else(|| ImportError::lacks("k6", "figure 'count' of http_reqs"))?;
    let rate = json_number(requests.get("rate"));
    let run_ms = value.get("state").and_then(|state| json_number(state.get("testRunDurationMs")));
    let mut imported = Imported {
        tool: "k6".to_owned(),
        times_from: FROM.to_owned(),
        times_of: TimesOf::All,
        exact_to: "nanoseconds; percentiles are those that summaryTrendStats names".to_owned(),
        achieved_per_s: rate,
        duration_s: run_ms
            .map(|ms| ms / 1e3)
            .or(rate.filter(|rate| *rate > 0.0).map(|rate| sent as f64 / rate)),
        bytes_sent: metric("data_sent").and_then(|sum| json_count(sum.get("count"))),
        bytes_received: metric("data_received").and_then(|sum| json_count(sum.get("count"))),
        ..Imported::default()
    };
    // Of this rate a pass is a failed request.
    let failed = metric("http_req_failed").and_then(|rate| json_count(rate.get("passes")));
    let failed = failed.map(|failed| failed.min(sent));
    imported.counts = Counts {
        sent: Some(sent),
        ok: failed.map(|failed| sent - failed),
        failed,
        ..Counts::default()
    };
    if let (Some(many @ 1..), true) = (failed, imported.failures.is_empty()) {
        imported.failures.insert("http_req_failed".to_owned(), many);
    }
    let successful = metric("http_req_duration{expected_response:true}");
    if let Some(trend) = successful.filter(|_| imported.counts.ok.is_some()) {
        imported.times_of = TimesOf::Successful;
        imported.service = times(trend, imported.counts.ok, &mut imported.percentiles);
    } else if let Some(trend) = metric("http_req_duration") {
        imported.service = times(trend, Some(sent), &mut imported.percentiles);
    }
    settings(&mut imported, metrics, &metric);
    imported.warn_of_mixed_times();
    imported.rates_from_counts();
    Ok(imported)
}

/// `{"avg": 0.33, "min": 0.16, "med": 0.3, "max": 0.55, "p(90)": 0.46}`, ms.
fn times(trend: &Value, count: Option<u64>, percentiles: &mut Vec<(f64, f64)>) -> Times {
    let mut times = Times { count, ..Times::default() };
    if count == Some(0) {
        return times;
    }
    let get = |name: &str| json_number(trend.get(name));
    times.min = get("min");
    times.mean = get("avg");
    times.max = get("max");
    let figures = trend.as_object().into_iter().flatten();
    for (name, value) in figures {
        let percentile = match name.as_str() {
            "med" => Some(50.0),
            name => name.strip_prefix("p(").and_then(|p| p.trim_end_matches(')').parse().ok()),
        };
        let percentile = percentile.filter(|p: &f64| (0.0..=100.0).contains(p));
        if let Some((percentile, ms)) = percentile.zip(json_number(Some(value))) {
            times.put(percentile, ms);
            percentiles.push((percentile, ms));
        }
    }
    percentiles.sort_by(|a, b| a.0.total_cmp(&b.0));
    times
}

fn settings<'a>(
    imported: &mut Imported,
    metrics: &serde_json::Map<String, Value>,
    metric: &impl Fn(&str) -> Option<&'a Value>,
) {
    let most_users = metric("vus_max").and_then(|vus| json_count(vus.get("max")));
    if let Some(users) = most_users {
        imported.settings.insert("virtual users, at most".to_owned(), users.to_string());
    }
    if let Some(dropped) = metric("dropped_iterations").and_then(|n| json_count(n.get("count"))) {
        imported.warnings.push(format!(
            "k6 dropped {dropped} iterations: it had no free virtual user, so that less was sent than was due"
        ));
    }
    let checks = metric("checks");
    if let Some(fails) = checks.and_then(|checks| json_count(checks.get("fails"))) {
        imported.settings.insert("checks failed".to_owned(), fails.to_string());
    }
    let crossed = |thresholds: &Value| {
        let each = thresholds.as_object().into_iter().flatten();
        // handleSummary: {"p(95)<500": {"ok": true}}; --summary-export: {"p(95)<500": false}, true if crossed.
        let is_crossed = |state: &Value| match state {
            Value::Bool(crossed) => *crossed,
            state => state.get("ok") == Some(&Value::Bool(false)),
        };
        each.filter(|(_, state)| is_crossed(state))
            .map(|(name, _)| name.clone())
            .collect::<Vec<_>>()
    };
    for (name, metric) in metrics {
        for threshold in metric.get("thresholds").map(crossed).unwrap_or_default() {
            imported.warnings.push(format!("k6's own threshold was crossed: {name} {threshold}"));
        }
    }
}
