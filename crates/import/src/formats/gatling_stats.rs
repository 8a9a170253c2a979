//! Statistics of Gatling's report: `js/stats.json`, with each request, or `js/global_stats.json`.
//!
//! The times are of all requests, or of the successful ones: Gatling has both. Its four percentiles are set in gatling.conf,
//! and the file does not say which they are: 50, 75, 95 and 99 by default.

use crate::error::ImportError;
use crate::imported::{Class, Counts, Imported, Times, TimesOf};
use crate::reading::{json_count, json_number, whole_json};
use crate::samples::CLASSES_MAX;
use serde_json::Value;
use std::io::BufRead;

const PERCENTILES: [(f64, &str); 4] = [
    (50.0, "percentiles1"),
    (75.0, "percentiles2"),
    (95.0, "percentiles3"),
    (99.0, "percentiles4"),
];
/// Groups within groups are followed this deep.
const DEPTH_MAX: u32 = 32;

/// Reads the statistics.
pub fn parse(input: &mut dyn BufRead) -> Result<Imported, ImportError> {
    let value = whole_json(input)?;
    let stats = value.get("stats").unwrap_or(&value);
    let counts =
        counts(stats).ok_or_else(|| ImportError::lacks("Gatling", "object 'numberOfRequests'"))?;
    let mut imported = Imported {
        tool: "Gatling".to_owned(),
        times_from: "the send, with the time for a connection that must be opened".to_owned(),
        times_of: TimesOf::Successful,
        exact_to: "whole milliseconds".to_owned(),
        below_ms: Some(1.0),
        counts,
        achieved_per_s: rate(stats, "total"),
        ok_per_s: rate(stats, "ok"),
        service: times(stats, "ok", counts.ok),
        failed: times(stats, "ko", counts.failed),
        ..Imported::default()
    };
    // Rates are printed to two or three digits, and are what the length can be had from.
    let total = counts.sent.zip(imported.achieved_per_s.filter(|rate| *rate > 0.0));
    imported.duration_s = total.map(|(sent, per_s)| sent as f64 / per_s);
    for (percentile, name) in PERCENTILES {
        if let Some(ms) = point(stats, name, "ok") {
            imported.percentiles.push((percentile, ms));
        }
    }
    imported.warnings.push(
        "percentiles 1 to 4 of Gatling are taken for 50, 75, 95 and 99, its defaults; the file does not say"
            .to_owned(),
    );
    let mut classes = Vec::new();
    collect(value.get("contents"), "", &mut classes, 0);
    if classes.len() > CLASSES_MAX {
        classes.sort_by_key(|class: &Class| std::cmp::Reverse(class.counts.sent));
        let left_out = classes.split_off(CLASSES_MAX);
        imported.warnings.push(format!(
            "{} of the requests' names, those with fewest requests, are only in the totals",
            left_out.len()
        ));
    }
    imported.classes = classes;
    Ok(imported)
}

/// The requests of a group and of the groups in it.
fn collect(contents: Option<&Value>, group: &str, classes: &mut Vec<Class>, depth: u32) {
    let entries = contents.and_then(Value::as_object).into_iter().flat_map(|map| map.values());
    for entry in entries.filter(|_| depth < DEPTH_MAX) {
        let name = entry.get("name").and_then(Value::as_str).unwrap_or("?");
        let name = if group.is_empty() { name.to_owned() } else { format!("{group} / {name}") };
        if entry.get("type").and_then(Value::as_str) == Some("GROUP") {
            collect(entry.get("contents"), &name, classes, depth + 1);
        } else if let Some(stats) = entry.get("stats")
            && let Some(counts) = counts(stats)
        {
            classes.push(Class {
                name,
                counts,
                ok_per_s: rate(stats, "ok").or((counts.ok == Some(0)).then_some(0.0)),
                response: Times::default(),
                service: times(stats, "ok", counts.ok),
                failed: times(stats, "ko", counts.failed),
            });
        }
    }
}

/// A figure of all requests, of those that were OK, or of those that were KO; `-` where there are none.
fn point(stats: &Value, name: &str, of: &str) -> Option<f64> {
    json_number(stats.get(name)?.get(of))
}

fn counts(stats: &Value) -> Option<Counts> {
    let number = stats.get("numberOfRequests")?;
    let ok = json_count(number.get("ok"))?;
    let failed = json_count(number.get("ko"))?;
    Some(Counts { sent: json_count(number.get("total")), ..Counts::ended(ok, failed) })
}

fn rate(stats: &Value, of: &str) -> Option<f64> {
    point(stats, "meanNumberOfRequestsPerSecond", of)
}

fn times(stats: &Value, of: &str, count: Option<u64>) -> Times {
    let mut times = Times { count, ..Times::default() };
    if count == Some(0) {
        return times;
    }
    times.min = point(stats, "minResponseTime", of);
    times.mean = point(stats, "meanResponseTime", of);
    times.max = point(stats, "maxResponseTime", of);
    for (percentile, name) in PERCENTILES {
        if let Some(ms) = point(stats, name, of) {
            times.put(percentile, ms);
        }
    }
    times
}
