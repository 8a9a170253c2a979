//! The run record: everything that a run leaves behind, in the shape of `plimsoll.run/1`.

use crate::percentiles::PercentileInterval;
use crate::results::JobResults;
use plimsoll_core::histogram::LatencySummary;
use plimsoll_core::interval::Counters;
use plimsoll_core::ledger::{Failed, Ledger};
use plimsoll_core::record::{Machine, Network, Rates, SloResult};
use plimsoll_core::verdict::{Health, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Name and version of the record's shape.
pub const SCHEMA: &str = "plimsoll.run/1";

/// Form of times in UTC.
#[cfg(feature = "schema")]
const UTC: &str = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$";

/// `run.json`, whole. Field names and their order are an interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunRecord {
    /// Name and version of the record's form.
    #[cfg_attr(feature = "schema", schemars(extend("const" = SCHEMA)))]
    pub schema: String,
    /// Program that wrote the record.
    pub tool: Tool,
    /// Eight hexadecimal digits, unique among runs; also the end of the folder's name. Empty when the record was not kept.
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = "^([0-9a-f]{8})?$")))]
    pub run_id: String,
    /// Job or command that ran.
    pub job: String,
    /// Name that the user gave the run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Labels that the user gave the run, by key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// UTC, `YYYY-MM-DDTHH:MM:SSZ`.
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = UTC)))]
    pub started_at: String,
    /// Length of the measured stretch, s.
    pub duration_s: f64,
    /// Settings of the run, without secrets.
    pub scenario: Value,
    /// The target.
    pub target: TargetInfo,
    /// Machine of the generator.
    pub machine: Machine,
    /// The account of every request.
    pub ledger: Ledger,
    /// Requests per second.
    pub rate: Rates,
    /// Bytes on the wire.
    pub bytes: Bytes,
    /// All classes together.
    pub latency_ms: Latencies,
    /// Confidence intervals of the percentiles `p50`, `p90`, `p95`, `p99` and `p99_9` of `latency_ms.response`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub intervals: BTreeMap<String, PercentileInterval>,
    /// The generator's own health.
    pub generator: Generator,
    /// One entry a class, by name.
    pub classes: BTreeMap<String, ClassRecord>,
    /// The classes in the workload's own order, which is the order of the journal's parts.
    pub class_names: Vec<String>,
    /// One entry a phase.
    pub phases: Vec<PhaseRecord>,
    /// Limits that were asked for and whether they held, by name.
    pub slo: BTreeMap<String, SloResult>,
    /// Assertions and their results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assertions: Vec<AssertionResult>,
    /// Verdict on the result, with its reasons.
    pub verdict: Verdict,
    /// Warnings for the reader.
    pub warnings: Vec<String>,
    /// Replies by status code.
    pub statuses: BTreeMap<u16, u64>,
    /// Plain counts of the whole run.
    pub counters: Counters,
    /// Round-trip times as the kernel saw them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// Outlets of the run, such as `--otlp`, and what became of what was sent there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outlets: Vec<OutletUse>,
    /// The slowest requests, slowest first.
    pub slowest: Vec<SlowRequest>,
    /// Words of the command line that made the run, secrets left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Encoded histograms (HdrHistogram V2, deflated, base64): `lag`, `CLASS/response|service|failed|server`, and unless empty
    /// `receive-lag`, `send`, `starved`, `connection-wait` and `unserved`.
    pub histograms: BTreeMap<String, String>,
    /// Results of jobs, each a section of its own.
    #[serde(flatten)]
    pub job_results: JobResults,
}

impl RunRecord {
    /// Longest time that a request may take, ns: what a request that failed counts with at least. 0 where the scenario names
    /// none.
    #[must_use]
    pub fn timeout_ns(&self) -> u64 {
        timeout_ns(&self.scenario)
    }

    /// The rate of a ranking benchmark's last run, which is its result, if that missed a limit, requests per second.
    #[must_use]
    pub fn missed_run_per_s(&self) -> Option<f64> {
        self.job_results.rank()?.missed_run_per_s()
    }
}

/// The timeout of a scenario as data, ns; 0 where it names none.
#[must_use]
pub fn timeout_ns(scenario: &Value) -> u64 {
    let text = scenario.get("timeout").and_then(Value::as_str);
    text.and_then(|text| text.parse::<plimsoll_core::units::Span>().ok()).map_or(0, |span| span.ns)
}

/// A build of plimsoll.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tool {
    /// Version.
    pub version: String,
    /// Commit that it was built from; empty if unknown.
    pub commit: String,
    /// True if a source file of the program differed from the commit. Unset if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<bool>,
    /// Build profile: `dev`, `release`, `dist`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub profile: String,
    /// Target of the compiler, such as `x86_64-unknown-linux-gnu`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub target: String,
    /// Features of the package `plimsoll`: the embedded servers. Unset if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<Vec<String>>,
    /// Version of the compiler.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rustc: String,
    /// SHA-256 of `Cargo.lock`, hexadecimal: the versions of all dependencies.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub lock_sha256: String,
}

impl Tool {
    /// Returns version and commit in one line, and whether the sources differed from the commit.
    #[must_use]
    pub fn name(&self) -> String {
        let changed = if self.modified == Some(true) { "-modified" } else { "" };
        format!("{} {}{changed}", self.version, self.commit).trim().to_owned()
    }
}

/// The target of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TargetInfo {
    /// Its address, or several, secrets left out.
    pub url: String,
    /// True if the target's address belongs to the generator's machine.
    pub same_host: bool,
    /// All addresses in use, when there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
}

/// Bytes on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bytes {
    /// Bytes handed to the kernel.
    pub sent: u64,
    /// Bytes taken from the kernel.
    pub received: u64,
}

/// The use of one outlet: exports of `--otlp`, lines of `--stream`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutletUse {
    /// `otlp` or `stream`.
    pub kind: String,
    /// Address or file, secrets left out; `-` is stdout.
    pub to: String,
    /// Exports or lines that were made.
    pub sent: u64,
    /// Those among them that did not arrive.
    pub lost: u64,
    /// True if the last one arrived. An export holds the whole run so far, so that nothing is missing then.
    pub complete: bool,
    /// The last error, if something was lost.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
}

/// Times of requests, ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Latencies {
    /// Intended start to last byte, successful requests.
    pub response: LatencySummary,
    /// Send to last byte, successful requests.
    pub service: LatencySummary,
    /// Intended start to failure, failed requests.
    pub failed: LatencySummary,
    /// The server's own time as its replies say it, of the successful requests whose replies do; absent unless it was asked
    /// for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<LatencySummary>,
    /// Every scheduled request as limits judge it, where that differs from `response`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged: Option<LatencySummary>,
}

/// The generator's own work and delays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Generator {
    /// Lag of sent requests.
    pub lag_ms: LatencySummary,
    /// CPU time of the worker threads in the measured stretch, and of the thread that writes the journal, s.
    pub cpu_s: f64,
    /// CPU time by requests that ended, us.
    pub cpu_us_per_request: f64,
    /// Threads that made load; 0 where unknown.
    pub threads: u32,
    /// Most memory resident, bytes.
    pub rss_max_bytes: u64,
    /// CPU time of the busiest worker thread, as a share of one core, 0 to 1.
    #[serde(default)]
    pub busiest_thread: f64,
    /// The way it waited for replies: `sleep`, `batch`, `spin`.
    #[serde(default)]
    pub wait: String,
    /// Longest time that replies may have waited to be read; those that waited less than 10 us are not counted.
    #[serde(default)]
    pub receive_lag_ms: LatencySummary,
    /// Time that requests waited for a free connection; those that did not wait are not counted.
    #[serde(default)]
    pub connection_wait_ms: LatencySummary,
    /// Requests sent in the aftermath of a stall of the generator.
    #[serde(default)]
    pub disturbed: u64,
    /// Measurements of itself over the measured stretch.
    #[serde(default)]
    pub health: Health,
}

/// The requests of one class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClassRecord {
    /// Requests sent.
    pub sent: u64,
    /// Requests that succeeded.
    pub ok: u64,
    /// Requests that failed, by kind.
    pub failed: Failed,
    /// Successful requests of this class per second.
    pub ok_per_s: f64,
    /// Successful requests without a hit.
    pub zero_hits: u64,
    /// Successful requests whose number of hits was known.
    pub hits_known: u64,
    /// Times, ms.
    pub latency_ms: Latencies,
}

/// A phase of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PhaseRecord {
    /// Its name: `warmup`, `steady`, `cells`.
    pub name: String,
    /// Seconds from the run's start.
    pub from_s: f64,
    /// Its length, s.
    pub duration_s: f64,
    /// True if its numbers are part of the totals (a warm-up's are not).
    pub measured: bool,
    /// Its schedule, as data.
    pub schedule: Value,
    /// The account of its requests; it need not balance, since requests cross from one phase into the next.
    pub ledger: Ledger,
    /// Requests per second.
    pub rate: Rates,
    /// Times, ms.
    pub latency_ms: Latencies,
}

/// Result of one assertion; an assertion about each class has one result for each class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AssertionResult {
    /// As it was written, in plimsoll's own spelling.
    pub assertion: String,
    /// `global`, or `class NAME`.
    pub scope: String,
    /// Figure that was judged: `p95`, `failed.percent`, `rate` ...
    pub metric: String,
    /// Condition on the figure: `< 500ms`.
    pub condition: String,
    /// Actual value; absent if the record has none, such as a time when no request succeeded.
    pub actual: Option<f64>,
    /// Of `actual`: `ms`, `%`, `/s`, or nothing for counts.
    pub unit: String,
    /// True if it holds.
    pub held: bool,
    /// True if `actual` depends on requests that did not succeed, so that it is a lower bound.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
}

/// One of the slowest requests of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SlowRequest {
    /// Its class.
    pub class: String,
    /// The request's index in its source.
    pub item: u64,
    /// Intended start to last byte, ms.
    pub response_ms: f64,
    /// Send to last byte, ms.
    pub service_ms: f64,
    /// Seconds from the run's start to the intended start.
    pub at_s: f64,
    /// `ok`, or the kind of failure.
    pub outcome: String,
    /// The beginning of the request's text.
    pub request: String,
    /// Trace id of the request, 32 hexadecimal digits, if it was sent with one (`--traceparent`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
}
