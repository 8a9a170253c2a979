//! Parts of a run record that are made below it: where the generator ran, rates, limits, round trips, samples of failures.

use crate::outcome::Cause;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The machine of the generator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Machine {
    /// Processor.
    pub cpu: String,
    /// Processors of the machine that are online.
    pub cpus: u32,
    /// Processors that the generator may use, where its affinity or a quota leaves it fewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus_allowed: Option<u32>,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Version of the kernel.
    pub kernel: String,
    /// Name of the operating system.
    pub os: String,
    /// Name of the machine.
    pub hostname: String,
    /// As `uname -m` says it: `x86_64`, `aarch64`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub architecture: String,
    /// Short name of the distribution: `debian`, `centos`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub distribution: String,
    /// Size and number of each cache, as `lscpu` says it: `"L1d cache": "96 KiB (2 instances)"`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub caches: BTreeMap<String, String>,
}

/// Rates of a stretch, requests per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rates {
    /// Requests that the schedule made due, per second; equals achieved in a closed model.
    pub offered_per_s: f64,
    /// Requests that came to an end, good or bad, per second.
    pub achieved_per_s: f64,
    /// Successful requests per second.
    pub ok_per_s: f64,
}

/// A limit that was asked for, and whether it held.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SloResult {
    /// The limit as it was written.
    pub limit: String,
    /// The figure over every scheduled request, in `unit`.
    pub measured: f64,
    /// Unit of `measured`.
    pub unit: String,
    /// True if the limit held.
    pub held: bool,
    /// True if `measured` depends on requests that did not succeed, so that it is a lower bound.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
    /// The same figure over the successful requests alone, where it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok_only: Option<f64>,
}

/// Round trips over all connections, from the kernel's TCP_INFO.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Network {
    /// Connections that were looked at.
    pub connections: u32,
    /// Smallest round trip that any connection saw, us.
    pub rtt_min_us: u32,
    /// Median over connections of their smallest round trip, us.
    pub rtt_floor_median_us: u32,
    /// Median over connections of the smoothed round trip, us.
    pub rtt_median_us: u32,
    /// Segments that were sent again.
    pub retransmits: u64,
}

/// One line of `failures.ndjson`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FailureSample {
    /// Seconds from the run's start.
    pub at_s: f64,
    /// Kind of failure, as in the ledger.
    pub kind: String,
    /// Its class.
    pub class: String,
    /// The request's index in its source.
    pub item: u64,
    /// Status; 0 where there was none.
    pub status: u16,
    /// Reason why it is a failure.
    pub reason: String,
    /// Cause of it, for the run itself; the record has only the reason.
    #[serde(skip)]
    pub cause: Cause,
    /// The beginning of the request's text.
    pub request: String,
    /// The beginning of the reply; empty where there was no whole one.
    pub reply: String,
}

/// Receiver of a run's measurements, while it runs.
pub trait Sink {
    /// Takes the moment from which the times of the next seconds count, ns on the monotonic clock: the start of the measured
    /// stretch. A run of several parts calls it for each part, as soon as the start is agreed: with a warm-up, long before the
    /// first second.
    fn counts_from(&mut self, start_ns: u64);

    /// Takes one finished second of the whole run.
    ///
    /// # Errors
    /// When it cannot be kept; the run goes on and says so.
    fn interval(&mut self, interval: &crate::interval::Interval) -> std::io::Result<()>;

    /// Takes one sample of a failure.
    ///
    /// # Errors
    /// As [`Sink::interval`].
    fn failure(&mut self, sample: &FailureSample) -> std::io::Result<()>;
}
