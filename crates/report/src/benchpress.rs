//! The JSON of DCPerf's benchpress, for scripts that read it; numbers are numbers here.
//!
//! What benchpress writes as text although it is a number (`"mem_total_kib": "123 KiB"`,
//! `"spawned_instances": "4"`) is a number here, and what does not exist is left out rather than empty.

use crate::catalogue::CatalogueEntry;
use plimsoll_core::clock::parse_utc;
use plimsoll_core::record::{Machine, RunRecord};
use serde_json::{Map, Value, json};

/// The key under which `plimsoll rank` and its jobs keep their results.
const RANK: &str = "rank";

/// One run as benchpress reports it.
#[must_use]
pub fn export(record: &RunRecord) -> Value {
    let entry = CatalogueEntry::of(record).unwrap_or_else(|| CatalogueEntry {
        name: record.job.clone(),
        ..CatalogueEntry::default()
    });
    json!({
        "benchmark_args": entry.args,
        "benchmark_desc": entry.description,
        "benchmark_hooks": entry.hooks,
        "benchmark_name": entry.name,
        "machines": [machine(&record.machine)],
        "metadata": record.machine.caches,
        "metrics": metrics(record, &entry),
        "run_id": record.run_id,
        "timestamp": parse_utc(&record.started_at).map(|us| us / 1_000_000),
    })
}

/// One run as an object, several as a list; two blanks of indent and a newline at the end.
#[must_use]
pub fn render(records: &[RunRecord]) -> String {
    let value = match records {
        [one] => export(one),
        several => several.iter().map(export).collect(),
    };
    format!("{value:#}\n")
}

fn machine(machine: &Machine) -> Value {
    json!({
        "cpu_architecture": machine.architecture,
        "cpu_model": machine.cpu,
        "hostname": machine.hostname,
        "kernel_version": machine.kernel,
        "mem_total_kib": machine.memory_bytes / 1024,
        "num_logical_cpus": machine.cpus,
        "os_distro": machine.distribution,
        "os_release_name": machine.os,
    })
}

fn metrics(record: &RunRecord, entry: &CatalogueEntry) -> Map<String, Value> {
    let mut metrics = match record.job_results.get(RANK).and_then(Value::as_object) {
        Some(rank) => feedsim(rank, record),
        None => plain(record),
    };
    if let Some(score) = entry.score {
        metrics.insert("score".to_owned(), json!(score));
    }
    metrics.insert("verdict".to_owned(), json!(record.verdict.kind.name()));
    metrics
}

/// The figures of any run, and what its own job adds.
fn plain(record: &RunRecord) -> Map<String, Value> {
    let response = &record.latency_ms.response;
    let mut metrics = Map::from_iter(
        [
            ("offered_per_s", json!(record.rate.offered_per_s)),
            ("achieved_per_s", json!(record.rate.achieved_per_s)),
            ("ok_per_s", json!(record.rate.ok_per_s)),
            ("requests", json!(record.ledger.sent)),
            ("failed", json!(record.ledger.failed.total())),
            ("duration_s", json!(record.duration_s)),
            ("latency_avg_msec", json!(response.mean)),
            ("latency_p50_msec", json!(response.p50)),
            ("latency_p95_msec", json!(response.p95)),
            ("latency_p99_msec", json!(response.p99)),
        ]
        .map(|(name, value)| (name.to_owned(), value)),
    );
    let own = record.job_results.iter().filter(|(key, value)| {
        key.as_str() != crate::catalogue::KEY
            && key.as_str() != crate::catalogue::HOOKS_KEY
            && value.is_object()
    });
    metrics.extend(own.map(|(key, value)| (key.clone(), value.clone())));
    metrics
}

/// The first of `names` that `object` has as a number.
fn number(object: &Map<String, Value>, names: &[&str]) -> Option<f64> {
    names.iter().find_map(|name| object.get(*name).and_then(Value::as_f64))
}

/// FeedSim's metrics: one entry an instance, by its number from 1, and the overall figures.
///
/// An instance has `requested_per_s`, `achieved_per_s` and `p95_ms`, or benchpress's own names. `overall` is the
/// record's own, from merged histograms; benchpress's mean of the instances' p95 is no percentile of anything,
/// so it is only made when the record has no latency of the whole.
fn feedsim(rank: &Map<String, Value>, record: &RunRecord) -> Map<String, Value> {
    let figures = |object: &Map<String, Value>| {
        [
            number(object, &["final_requested_qps", "requested_per_s", "requested_qps"]),
            number(object, &["final_achieved_qps", "achieved_per_s", "achieved_qps"]),
            number(object, &["final_latency_msec", "p95_ms", "latency_ms"]),
        ]
    };
    let instances: Vec<&Map<String, Value>> = rank
        .get("instances")
        .and_then(Value::as_array)
        .map(|list| list.iter().filter_map(Value::as_object).collect())
        .unwrap_or_default();
    let mut metrics = Map::new();
    let mut sums = [0.0; 3];
    for (index, instance) in instances.iter().enumerate() {
        let [requested, achieved, latency] = figures(instance);
        for (sum, value) in sums.iter_mut().zip([requested, achieved, latency]) {
            *sum += value.unwrap_or_default();
        }
        metrics.insert(
            (index + 1).to_string(),
            json!({
                "final_achieved_qps": achieved,
                "final_latency_msec": latency,
                "final_requested_qps": requested,
            }),
        );
    }
    let count = instances.len();
    let own = rank.get("overall").and_then(Value::as_object).map_or([None; 3], figures);
    let merged = (record.latency_ms.response.count > 0).then_some(record.latency_ms.response.p95);
    let summed = |index: usize| (count > 0).then(|| sums[index]);
    let mean = (count > 0).then(|| sums[2] / count as f64);
    // A search that certified no rate has no final one; what it offered on its way is none.
    let certified =
        record.job_results.get("seek").and_then(|seek| seek.get("certified_rate_per_s"));
    let figures = match certified {
        Some(Value::Null) => [None; 3],
        _ => [
            own[2].or(merged).or(mean),
            own[1].or(summed(1)).or(Some(record.rate.achieved_per_s)),
            own[0].or(summed(0)).or(Some(record.rate.offered_per_s)),
        ],
    };
    metrics.insert(
        "overall".to_owned(),
        json!({
            "average_latency_msec": figures[0],
            "final_achieved_qps": figures[1],
            "final_requested_qps": figures[2],
        }),
    );
    metrics.insert("spawned_instances".to_owned(), json!(count.max(1)));
    let successful = number(rank, &["successful_instances"]).map_or(count.max(1), |n| n as usize);
    metrics.insert("successful_instances".to_owned(), json!(successful));
    metrics.extend(limit(record));
    metrics
}

/// `target_percentile` and `target_latency_msec` of the first percentile among the limits.
fn limit(record: &RunRecord) -> Vec<(String, Value)> {
    let judged = record.slo.iter().map(|(name, result)| (name.as_str(), result.limit.as_str()));
    // A search holds its limits itself; they stand in what it was asked.
    let asked = record.scenario.get("slo").and_then(Value::as_array).into_iter().flatten();
    let asked = asked.filter_map(|limit| limit.as_str()?.split_once('='));
    let asked = asked.filter(|_| record.job_results.contains_key("seek"));
    let percentile = judged.chain(asked).find_map(|(name, limit)| {
        let percentile = name.strip_prefix('p').filter(|rest| rest.parse::<f64>().is_ok())?;
        let limit_ms = limit.parse::<plimsoll_core::units::Span>().ok()?.ns as f64 / 1e6;
        Some((format!("{percentile}p"), limit_ms))
    });
    let Some((percentile, limit_ms)) = percentile else { return Vec::new() };
    vec![
        ("target_percentile".to_owned(), json!(percentile)),
        ("target_latency_msec".to_owned(), json!(limit_ms)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;
    use plimsoll_core::record::SloResult;

    #[test]
    fn any_run_can_be_exported_with_numbers_as_numbers() {
        let record = samples::good();
        let value = export(&record);
        assert_eq!(value["benchmark_name"], record.job);
        assert_eq!(value["machines"][0]["mem_total_kib"], json!(8_000_000_000u64 / 1024));
        assert_eq!(value["machines"][0]["num_logical_cpus"], json!(2));
        assert_eq!(value["machines"][0]["os_distro"], "debian");
        assert_eq!(value["metadata"]["L2 cache"], "4 MiB (2 instances)");
        assert_eq!(value["timestamp"], json!(1_795_294_102u64));
        assert_eq!(value["metrics"]["ok_per_s"], json!(record.rate.ok_per_s));
        assert_eq!(value["metrics"].get("score"), None);
        let text = render(&[record.clone(), record]);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap().as_array().unwrap().len(), 2);
    }

    #[test]
    fn a_search_that_certified_no_rate_has_no_final_figures() {
        let mut record = samples::good();
        let overall = json!({"requested_per_s": 40.0, "achieved_per_s": 39.0, "p95_ms": 900.0});
        record.job_results.insert("rank".to_owned(), json!({"instances": [], "overall": overall}));
        record.job_results.insert("seek".to_owned(), json!({"certified_rate_per_s": 40.0}));
        let figure =
            |record: &RunRecord, name: &str| export(record)["metrics"]["overall"][name].clone();
        assert_eq!(figure(&record, "final_achieved_qps"), 39.0);
        record.job_results.insert("seek".to_owned(), json!({"certified_rate_per_s": null}));
        for name in ["final_achieved_qps", "final_requested_qps", "average_latency_msec"] {
            assert!(figure(&record, name).is_null(), "{name}");
        }
    }

    #[test]
    fn feedsims_instances_are_added_up_as_benchpress_does() {
        // The figures of the example in DCPerf's own description of feedsim_autoscale.
        let rows = [
            (251.82, 248.38, 310.9),
            (252.61, 248.98, 308.31),
            (252.98, 249.73, 305.82),
            (251.99, 248.98, 305.22),
        ];
        let instances: Vec<Value> = rows
            .iter()
            .map(|(requested, achieved, p95)| {
                json!({"requested_per_s": requested, "achieved_per_s": achieved, "p95_ms": p95})
            })
            .collect();
        let mut record = samples::good();
        record.latency_ms.response.count = 0;
        record.job_results.insert("rank".to_owned(), json!({"instances": instances}));
        let mut entry = CatalogueEntry { baseline: Some(57.0), ..CatalogueEntry::default() };
        entry.measure(&json!({"x": 996.0}), &["/x".to_owned()]);
        record.job_results.extend(entry.fields());
        let held = |limit: &str| SloResult { limit: limit.to_owned(), ..SloResult::default() };
        record.slo = [("p95".to_owned(), held("500ms"))].into();
        let metrics = export(&record)["metrics"].clone();
        let near = |pointer: &str, wanted: f64| {
            let found = metrics.pointer(pointer).and_then(Value::as_f64).unwrap();
            assert!((found - wanted).abs() < 0.01, "{pointer}: {found}");
        };
        near("/overall/final_achieved_qps", 996.07);
        near("/overall/final_requested_qps", 1009.4);
        near("/overall/average_latency_msec", 307.56);
        near("/score", 17.473_684_210_5);
        near("/4/final_latency_msec", 305.22);
        near("/target_latency_msec", 500.0);
        assert_eq!(metrics["target_percentile"], "95p");
        assert_eq!(metrics["spawned_instances"], json!(4));
        record.slo.clear();
        record.scenario = json!({"slo": ["p99=2s"]});
        assert_eq!(export(&record)["metrics"].get("target_percentile"), None, "a fixed rate");
        record.job_results.insert("seek".to_owned(), json!({}));
        assert_eq!(export(&record)["metrics"]["target_percentile"], "99p");
    }
}
