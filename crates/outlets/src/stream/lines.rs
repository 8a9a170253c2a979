//! The lines of a stream, in the shape of `plimsoll.second/1`.

use super::sums::{Sums, rates};
use crate::facts::Facts;
use plimsoll_core::clock::format_utc;
use plimsoll_core::histogram::LatencySummary;
use plimsoll_core::interval::Interval;
use plimsoll_core::ledger::{Failed, Ledger};
use plimsoll_core::record::Rates;
use plimsoll_core::verdict::{Verdict, VerdictKind};
use plimsoll_record::{Bytes, Latencies, RunRecord};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Name and version of the lines' shape.
pub const SCHEMA: &str = "plimsoll.second/1";

/// One line. The first is `start`, the last `end`; between them is one `second` for each second of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Line {
    /// The run begins.
    Start(Start),
    /// One second is over.
    Second(Box<Second>),
    /// The run is over.
    End(Box<End>),
}

/// Facts that are known before the first second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Start {
    /// Name and version of the lines' form.
    #[cfg_attr(feature = "schema", schemars(extend("const" = SCHEMA)))]
    pub schema: String,
    /// Id of the run, as in its record. A run without a record has one all the same.
    pub run_id: String,
    /// Version of plimsoll.
    pub version: String,
    /// Job or command.
    pub job: String,
    /// Name that the user gave the run; may be empty.
    pub name: String,
    /// Labels that the user gave the run, by key.
    pub labels: BTreeMap<String, String>,
    /// UTC, `YYYY-MM-DDTHH:MM:SSZ`.
    pub started_at: String,
    /// Names of the classes.
    pub classes: Vec<String>,
}

/// One second of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Second {
    /// UTC at the end of the second, `YYYY-MM-DDTHH:MM:SSZ`.
    pub at: String,
    /// Its start, s since the start of the measured stretch.
    pub from_s: f64,
    /// Its end, s since the start of the measured stretch. A busy machine can make a second longer.
    pub to_s: f64,
    /// Name of the phase.
    pub phase: String,
    /// Requests in flight at its end.
    pub in_flight: u32,
    /// The account of this second alone. It need not balance: requests cross from one second into the next.
    pub ledger: Ledger,
    /// Requests per second in this second.
    pub rate: Rates,
    /// Bytes on the wire in this second.
    pub bytes: Bytes,
    /// Intended start to last byte of the requests that succeeded in this second, ms.
    pub response_ms: LatencySummary,
    /// Send to last byte of the requests that succeeded in this second, ms.
    pub service_ms: LatencySummary,
    /// Lag of the generator, requests that were sent in this second, ms.
    pub lag_ms: LatencySummary,
    /// By name, if there are several classes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub classes: BTreeMap<String, ClassSecond>,
    /// The run so far.
    pub so_far: SoFar,
}

/// One class in one second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClassSecond {
    /// Requests sent.
    pub sent: u64,
    /// Requests that succeeded.
    pub ok: u64,
    /// Requests that failed, by kind.
    pub failed: Failed,
    /// Intended start to last byte, successful requests, ms.
    pub response_ms: LatencySummary,
}

/// The run from its start to the end of a second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SoFar {
    /// The account of every request so far. It balances only at the end of the run.
    pub ledger: Ledger,
    /// Intended start to last byte, successful requests, ms.
    pub response_ms: LatencySummary,
    /// Verdict by what is known so far; absent for a search for the load line, and before the first request has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<VerdictKind>,
    /// Reasons of the verdict, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
}

/// The result of the run, as in its record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct End {
    /// Id of the run, as in the first line.
    pub run_id: String,
    /// Length of the measured stretch, s.
    pub duration_s: f64,
    /// The account of every request.
    pub ledger: Ledger,
    /// Requests per second.
    pub rate: Rates,
    /// Times of all classes, ms.
    pub latency_ms: Latencies,
    /// The verdict.
    pub verdict: Verdict,
    /// Warnings for the reader.
    pub warnings: Vec<String>,
}

impl Start {
    pub(super) fn of(facts: &Facts) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            run_id: facts.run_id.clone(),
            version: facts.version.clone(),
            job: facts.job.clone(),
            name: facts.name.clone(),
            labels: facts.labels.clone(),
            started_at: format_utc(facts.started_us),
            classes: facts.classes.clone(),
        }
    }
}

impl End {
    pub(super) fn of(facts: &Facts, record: &RunRecord) -> Self {
        Self {
            run_id: facts.run_id.clone(),
            duration_s: record.duration_s,
            ledger: record.ledger,
            rate: record.rate,
            latency_ms: record.latency_ms,
            verdict: record.verdict.clone(),
            warnings: record.warnings.clone(),
        }
    }
}

/// The line of a second, which is in `sums` already.
pub(super) fn second(facts: &Facts, second: &Interval, sums: &mut Sums, now_us: u64) -> Second {
    let all = second.all_classes();
    let verdict = sums.verdict();
    let (kind, reasons) = verdict.map_or((None, Vec::new()), |v| (Some(v.kind), v.reasons));
    let class = |(index, part): (usize, &plimsoll_core::interval::ClassPart)| {
        let own = ClassSecond {
            sent: part.ledger.sent,
            ok: part.ledger.ok,
            failed: part.ledger.failed,
            response_ms: part.response.summary(),
        };
        (facts.class(index), own)
    };
    Second {
        at: format_utc(now_us),
        from_s: second.from_ns as f64 / 1e9,
        to_s: second.to_ns as f64 / 1e9,
        phase: facts.phase(second.phase),
        in_flight: second.in_flight,
        ledger: second.ledger,
        rate: rates(second),
        bytes: Bytes { sent: second.counters.bytes_sent, received: second.counters.bytes_received },
        response_ms: all.response.summary(),
        service_ms: all.service.summary(),
        lag_ms: second.lag.summary(),
        classes: match second.classes.len() {
            0 | 1 => BTreeMap::new(),
            _ => second.classes.iter().enumerate().map(class).collect(),
        },
        so_far: SoFar {
            ledger: sums.totals().ledger,
            response_ms: sums.totals().all_classes().response.summary(),
            verdict: kind,
            reasons,
        },
    }
}
