//! Metrics of DCPerf's benchpress, one object for a run.
//!
//! The metrics depend on the job. Those of FeedSim, and those that `plimsoll report --format benchpress` writes,
//! have a place in a record; the others are kept as they are.

use crate::error::ImportError;
use crate::imported::{Counts, Imported, TimesOf};
use crate::reading::{json_count, json_number, whole_json};
use serde_json::Value;
use std::io::BufRead;

/// Reads one run; of a list of runs, its only one.
pub fn parse(input: &mut dyn BufRead) -> Result<Imported, ImportError> {
    let mut value = whole_json(input)?;
    if let Value::Array(runs) = &mut value {
        if runs.len() != 1 {
            return Err(ImportError::Form(format!(
                "a list of {} runs; write each run into a file of its own",
                runs.len()
            )));
        }
        value = runs.remove(0);
    }
    let name = value.get("benchmark_name").and_then(Value::as_str);
    let name =
        name.ok_or_else(|| ImportError::lacks("benchpress", "field 'benchmark_name'"))?.to_owned();
    let metrics = value.get("metrics").and_then(Value::as_object);
    let metrics = metrics.ok_or_else(|| ImportError::lacks("benchpress", "object 'metrics'"))?;
    let overall = metrics.get("overall").and_then(Value::as_object);
    let get = |name: &str| {
        let own = metrics.get(name);
        own.or_else(|| overall.and_then(|overall| overall.get(name)))
    };
    let mut imported = Imported {
        tool: "benchpress".to_owned(),
        times_from: "the send, as FeedSim's driver has it".to_owned(),
        times_of: TimesOf::All,
        exact_to: "printed digits, ms".to_owned(),
        started_us: json_count(value.get("timestamp")).and_then(|s| s.checked_mul(1_000_000)),
        ..Imported::default()
    };
    imported.settings.insert("benchmark".to_owned(), name);
    for (name, metric) in metrics.iter().filter(|(_, metric)| !metric.is_object()).take(60) {
        let shown = metric.as_str().map_or_else(|| metric.to_string(), str::to_owned);
        imported.settings.insert(format!("metric {name}"), shown.chars().take(200).collect());
    }
    imported.offered_per_s = json_number(get("final_requested_qps")).filter(|rate| *rate > 0.0);
    imported.achieved_per_s = json_number(get("final_achieved_qps"));
    feedsim_latency(&mut imported, &get);
    own_metrics(&mut imported, &get);
    if imported.achieved_per_s.is_none() && imported.ok_per_s.is_none() {
        imported.warnings.push(
            "no metric of this benchmark is a rate that a record has; the metrics are kept as they are"
                .to_owned(),
        );
    }
    Ok(imported)
}

/// `final_latency_msec`, of the percentile that `target_percentile` names.
fn feedsim_latency<'a>(imported: &mut Imported, get: &impl Fn(&str) -> Option<&'a Value>) {
    let latency = json_number(get("final_latency_msec"));
    let percentile = get("target_percentile").and_then(Value::as_str);
    let percentile = percentile.and_then(|text| text.trim_end_matches('p').parse::<f64>().ok());
    if let Some((ms, percentile)) = latency.zip(percentile) {
        imported.service.put(percentile, ms);
        imported.percentiles.push((percentile, ms));
    }
    if json_number(get("average_latency_msec")).is_some() {
        imported.warnings.push(
            "average_latency_msec is the mean of the instances' percentiles, which is no percentile: it is kept as a metric"
                .to_owned(),
        );
    }
}

/// The metrics that plimsoll writes of its own runs: their times are from the intended start.
fn own_metrics<'a>(imported: &mut Imported, get: &impl Fn(&str) -> Option<&'a Value>) {
    let Some(ok_per_s) = json_number(get("ok_per_s")) else { return };
    imported.ok_per_s = Some(ok_per_s);
    imported.offered_per_s = imported.offered_per_s.or(json_number(get("offered_per_s")));
    imported.achieved_per_s = imported.achieved_per_s.or(json_number(get("achieved_per_s")));
    imported.duration_s = json_number(get("duration_s"));
    let (sent, failed) = (json_count(get("requests")), json_count(get("failed")));
    imported.counts = Counts { sent, failed, ..Counts::default() };
    imported.times_from = "the intended start".to_owned();
    imported.times_of = TimesOf::Successful;
    imported.exact_to = "3 significant digits".to_owned();
    imported.response.mean = json_number(get("latency_avg_msec"));
    for (percentile, name) in
        [(50.0, "latency_p50_msec"), (95.0, "latency_p95_msec"), (99.0, "latency_p99_msec")]
    {
        if let Some(ms) = json_number(get(name)) {
            imported.response.put(percentile, ms);
            imported.percentiles.push((percentile, ms));
        }
    }
}
