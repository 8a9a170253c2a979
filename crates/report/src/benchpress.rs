//! The JSON of DCPerf's benchpress, for scripts that read it; numbers are numbers here.
//!
//! Values that benchpress writes as text although they are numbers
//! (`"mem_total_kib": "123 KiB"`, `"spawned_instances": "4"`) are numbers here, and what does not exist
//! is left out rather than empty.

use plimsoll_core::clock::parse_utc;
use plimsoll_record::catalogue::CatalogueEntry;
use plimsoll_record::rank::RankResult;
use plimsoll_record::{Machine, RunRecord};
use serde_json::{Map, Value, json};

/// One run as benchpress reports it.
#[must_use]
pub fn export(record: &RunRecord) -> Value {
    let entry = record.job_results.catalogue().cloned().unwrap_or_else(|| CatalogueEntry {
        name: record.job.clone(),
        ..CatalogueEntry::default()
    });
    json!({
        "benchmark_args": entry.args,
        "benchmark_desc": entry.description,
        "benchmark_hooks": entry.hooks,
        "benchmark_name": entry.name,
        "machines": record.known("machine", [machine(&record.machine)]),
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
    let mut metrics = match record.job_results.rank() {
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
    let figures = [
        ("offered_per_s", "rate.offered_per_s", json!(record.rate.offered_per_s)),
        ("achieved_per_s", "rate.achieved_per_s", json!(record.rate.achieved_per_s)),
        ("ok_per_s", "rate.ok_per_s", json!(record.rate.ok_per_s)),
        ("requests", "ledger.sent", json!(record.ledger.sent)),
        ("failed", "ledger.failed", json!(record.ledger.failed.total())),
        ("duration_s", "duration_s", json!(record.duration_s)),
        ("latency_avg_msec", "latency_ms.response.mean", json!(response.mean)),
        ("latency_p50_msec", "latency_ms.response.p50", json!(response.p50)),
        ("latency_p95_msec", "latency_ms.response.p95", json!(response.p95)),
        ("latency_p99_msec", "latency_ms.response.p99", json!(response.p99)),
    ];
    let known = figures.into_iter().filter(|(_, path, _)| record.is_known(path));
    let mut metrics = Map::from_iter(known.map(|(name, _, value)| (name.to_owned(), value)));
    let own = record.job_results.of_job();
    metrics.extend(own.map(|one| (one.key().to_owned(), json!(one))));
    metrics
}

/// FeedSim's metrics: one entry an instance, by its number from 1, and the overall figures.
///
/// `overall` is the record's own, from merged histograms; benchpress's mean of the instances' p95 is no percentile of
/// anything, so it is only made when the record has no latency of the whole.
fn feedsim(rank: &RankResult, record: &RunRecord) -> Map<String, Value> {
    let mut metrics = Map::new();
    let mut sums = [0.0; 3];
    for (index, instance) in rank.instances.iter().enumerate() {
        let figures = [instance.requested_per_s, instance.achieved_per_s, instance.p95_ms];
        for (sum, value) in sums.iter_mut().zip(figures) {
            *sum += value;
        }
        metrics.insert(
            (index + 1).to_string(),
            json!({
                "final_achieved_qps": instance.achieved_per_s,
                "final_latency_msec": instance.p95_ms,
                "final_requested_qps": instance.requested_per_s,
            }),
        );
    }
    let count = rank.instances.len();
    let own = rank.overall.as_ref();
    let merged = (record.latency_ms.response.count > 0).then_some(record.latency_ms.response.p95);
    let summed = |index: usize| (count > 0).then(|| sums[index]);
    let mean = (count > 0).then(|| sums[2] / count as f64);
    // A search that certified no rate has no final one; what it offered on its way is none.
    let is_certified =
        record.job_results.seek().is_none_or(|seek| seek.certified_rate_per_s.is_some());
    let figures = match is_certified {
        false => [None; 3],
        true => [
            own.map(|own| own.p95_ms).or(merged).or(mean),
            own.map(|own| own.achieved_per_s).or(summed(1)).or(Some(record.rate.achieved_per_s)),
            own.map(|own| own.requested_per_s).or(summed(0)).or(Some(record.rate.offered_per_s)),
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
    metrics.insert("successful_instances".to_owned(), json!(rank.successful_instances));
    metrics.extend(limit(record));
    metrics
}

/// `target_percentile` and `target_latency_msec` of the first percentile among the limits.
fn limit(record: &RunRecord) -> Vec<(String, Value)> {
    let judged = record.slo.iter().map(|(name, result)| (name.as_str(), result.limit.as_str()));
    // A search holds its limits itself; they stand in what it was asked.
    let asked = record.scenario.get("slo").and_then(Value::as_array).into_iter().flatten();
    let asked = asked.filter_map(|limit| limit.as_str()?.split_once('='));
    let asked = asked.filter(|_| record.job_results.seek().is_some());
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
    use plimsoll_record::SloResult;
    use plimsoll_record::rank::{RankInstance, RankOverall};

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
        let overall = RankOverall {
            requested_per_s: 40.0,
            achieved_per_s: 39.0,
            p95_ms: 900.0,
            ..RankOverall::default()
        };
        record.job_results.put(RankResult { overall: Some(overall), ..RankResult::default() });
        let mut found = samples::followed().job_results.seek().unwrap().clone();
        found.certified_rate_per_s = Some(40.0);
        record.job_results.put(found.clone());
        let figure =
            |record: &RunRecord, name: &str| export(record)["metrics"]["overall"][name].clone();
        assert_eq!(figure(&record, "final_achieved_qps"), 39.0);
        found.certified_rate_per_s = None;
        record.job_results.put(found);
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
        let instances = rows.map(|(requested_per_s, achieved_per_s, p95_ms)| RankInstance {
            requested_per_s,
            achieved_per_s,
            p95_ms,
            ..RankInstance::default()
        });
        let mut record = samples::good();
        record.latency_ms.response.count = 0;
        let rank = RankResult { instances: instances.to_vec(), ..RankResult::default() };
        record.job_results.put(rank);
        let mut entry = CatalogueEntry { baseline: Some(57.0), ..CatalogueEntry::default() };
        entry.measure(&json!({"x": 996.0}), &["/x".to_owned()]);
        record.job_results.put(entry);
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
        record.job_results.put(samples::followed().job_results.seek().unwrap().clone());
        assert_eq!(export(&record)["metrics"]["target_percentile"], "99p");
    }
}
