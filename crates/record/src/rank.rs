//! Results of the ranking benchmark.

use serde::{Deserialize, Serialize};

/// A ranking benchmark's result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RankResult {
    /// Results of each instance in the final run.
    pub instances: Vec<RankInstance>,
    /// The last run as a whole; null if no run came to its end.
    pub overall: Option<RankOverall>,
    /// Spread of the instances' answers per second in the final run, over their mean.
    pub spread: f64,
    /// Instances that were asked.
    pub spawned_instances: usize,
    /// Instances that answered in the last run.
    pub successful_instances: usize,
    /// All runs, in the order of time; the last one is the result.
    pub runs: Vec<RankRun>,
    /// Stages of the requests of each instance, as it reports them itself, since its start; empty if none reports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<RankStage>,
}

impl RankResult {
    /// The rate of the last run if that missed a limit, requests per second.
    #[must_use]
    pub fn missed_run_per_s(&self) -> Option<f64> {
        let last = self.runs.last()?;
        (!last.held && !last.stopped).then_some(last.requested_qps)
    }
}

/// An instance in one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RankInstance {
    /// Requests per second that it was to be sent.
    pub requested_per_s: f64,
    /// Requests per second that it answered.
    pub achieved_per_s: f64,
    /// Requests that failed.
    pub failed: u64,
    /// Median response time, ms.
    pub p50_ms: f64,
    /// 95th percentile of the response time, ms.
    pub p95_ms: f64,
}

/// Stage of the requests of one instance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RankStage {
    /// The instance, from 1.
    pub instance: u32,
    /// Name of the stage, in the order of a request.
    pub stage: String,
    /// Requests that passed it.
    pub requests: u64,
    /// Mean time that passed in it, ms.
    pub wall_mean_ms: f64,
    /// 95th percentile of that time, ms.
    pub wall_p95_ms: f64,
    /// Mean CPU time, over all threads that worked on a request, ms.
    pub cpu_mean_ms: f64,
}

/// A run as a whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RankOverall {
    /// Requests per second that were to be sent.
    pub requested_per_s: f64,
    /// Requests per second that were answered.
    pub achieved_per_s: f64,
    /// Median response time, ms.
    pub p50_ms: f64,
    /// 95th percentile of the response time, ms.
    pub p95_ms: f64,
    /// 99th percentile of the response time, ms.
    pub p99_ms: f64,
    /// True if every limit held.
    pub held: bool,
}

/// One run at one rate: FeedSim's columns under FeedSim's names, and when it was.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RankRun {
    /// Length, s, in whole seconds.
    pub duration_secs: f64,
    /// Requests that were answered.
    pub total_queries: f64,
    /// Requests per second that were to be sent.
    pub requested_qps: f64,
    /// Requests per second that were answered.
    pub achieved_qps: f64,
    /// Bytes received.
    pub total_bytes_rx: f64,
    /// Bytes sent.
    pub total_bytes_tx: f64,
    /// Bytes received per second, 10^6.
    #[serde(rename = "rx_MBps")]
    pub rx_mb_per_s: f64,
    /// Bytes sent per second, 10^6.
    #[serde(rename = "tx_MBps")]
    pub tx_mb_per_s: f64,
    /// Shortest response time, ms.
    pub min_ms: f64,
    /// Mean response time, ms.
    pub avg_ms: f64,
    /// Median response time, ms.
    #[serde(rename = "50p_ms")]
    pub p50_ms: f64,
    /// 90th percentile of the response time, ms.
    #[serde(rename = "90p_ms")]
    pub p90_ms: f64,
    /// 95th percentile of the response time, ms.
    #[serde(rename = "95p_ms")]
    pub p95_ms: f64,
    /// 99th percentile of the response time, ms.
    #[serde(rename = "99p_ms")]
    pub p99_ms: f64,
    /// 99.9th percentile of the response time, ms.
    #[serde(rename = "99.9p_ms")]
    pub p99_9_ms: f64,
    /// Beginning, s from the start of the whole.
    pub from_s: f64,
    /// End, s from the start of the whole.
    pub to_s: f64,
    /// True if every limit held.
    pub held: bool,
    /// True if the user stopped it.
    pub stopped: bool,
    /// Requests that failed.
    pub failed: u64,
}
