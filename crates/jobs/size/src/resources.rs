//! The resource that gives out first, from the resources that a record has.

use crate::configuration::Configuration;
use plimsoll_record::RunRecord;
use plimsoll_report::number::percent;

/// Use of one resource at the rate that its node count holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Use {
    /// Name, such as `CPU of nginx`.
    pub name: String,
    /// Use over its limit, 0 to 1 and above: at more than 1 it gives out before the rate is reached.
    pub share: f64,
    /// True if it is the target's CPU.
    pub is_cpu: bool,
    /// Limit, in words: `2 cores`.
    pub limit: String,
}

/// A resource that is used less than this at the line does not limit it.
pub const NEAR: f64 = 0.7;

/// Returns the use of each known resource at the rate `per_s`, the most used one first. Use that grows with requests is scaled by
/// the rate; memory is not.
pub fn uses(configuration: &Configuration, per_s: f64) -> Vec<Use> {
    let rate = |record: &RunRecord| record.rate.ok_per_s;
    let with = configuration.runs.iter().map(|run| &run.record);
    let with = with.filter(|record| record.job_results.resources().is_some() && rate(record) > 0.0);
    let Some(record) = with.max_by(|a, b| rate(a).total_cmp(&rate(b))) else { return Vec::new() };
    let Some(resources) = record.job_results.resources() else { return Vec::new() };
    let scale = per_s / rate(record);
    let mut found = Vec::new();
    for target in resources.targets() {
        let cores = target.cpu_cores_allowed.unwrap_or(f64::from(record.machine.cpus));
        if let (Some(cpu), true) = (target.cpu_cores, cores > 0.0) {
            let limit = format!("{cores} {}", if cores == 1.0 { "core" } else { "cores" });
            let name = format!("CPU of {}", target.name);
            found.push(Use { name, share: scale * cpu.mean / cores, is_cpu: true, limit });
        }
        let memory = target.memory_allowed_bytes.unwrap_or(record.machine.memory_bytes) as f64;
        if let (Some(used), true) = (target.rss_bytes, memory > 0.0) {
            let limit = plimsoll_report::number::bytes(memory);
            let name = format!("memory of {}", target.name);
            found.push(Use { name, share: used.max / memory, is_cpu: false, limit });
        }
    }
    if let (Some(busy), true) = (resources.machine.disk_busy, record.target.same_host) {
        let name = "busiest disk".to_owned();
        found.push(Use {
            name,
            share: scale * busy.mean,
            is_cpu: false,
            limit: "its time".to_owned(),
        });
    }
    found.sort_by(|a, b| b.share.total_cmp(&a.share));
    found
}

/// Returns which resource gives out first, in words.
pub fn words(uses: &[Use], line: &str) -> Option<String> {
    let first = uses.first()?;
    let used = format!("{} is at {} of {}", first.name, percent(first.share), first.limit);
    Some(if first.share >= NEAR {
        format!(
            "{} gives out first: at {line} it is at {} of {}",
            first.name,
            percent(first.share),
            first.limit
        )
    } else {
        format!(
            "none of the watched resources is near its limit at {line} ({used}): the limit is inside the target, such as its worker threads, locks or waits"
        )
    })
}
