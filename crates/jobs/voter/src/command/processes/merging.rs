//! The records of several processes, taken together: histograms by their cells, counts by sum, time by the wall.

use super::Ended;
use crate::command::client::{worn_out, wrong_writes};
use crate::command::sums::{add, add_up};
use crate::command::task::Task;
use anyhow::{Context, Result};
use plimsoll_core::clock::{MILLISECOND_NS, SECOND_NS};
use plimsoll_core::delays::Delays;
use plimsoll_core::histogram::Histogram;
use plimsoll_core::interval::{ClassPart, Interval};
use plimsoll_core::ledger::Ledger;
use plimsoll_core::outcome::{Failure, Outcome};
use plimsoll_core::recorder::Times;
use plimsoll_core::verdict::{Health, Verdict, VerdictKind};
use plimsoll_core::voter::WriteCheck;
use plimsoll_engine::run::RunEnd;
use plimsoll_engine::shard::Slow;
use plimsoll_job::keeping::JobEnd;
use plimsoll_job::signals;
use plimsoll_record::voter::{ServerTimes, Totals, VoterProcess, VoterResult};
use plimsoll_record::{JobResults, RunRecord, SlowRequest};
use plimsoll_wire::Submission;

/// One run of all processes. `prepared` and `sink_error` are what the preparation and the journal leave to be reported.
///
/// # Errors
/// A record that cannot be read.
pub fn together(
    task: &Task,
    ended: &[Ended],
    agreed_start_us: Option<u64>,
    prepared: Vec<String>,
    sink_error: Option<std::io::Error>,
) -> Result<JobEnd> {
    let mut totals = Interval::new(1);
    let mut result = VoterResult {
        shape: Some(task.shape.clone()),
        hosts: task.database.hosts(),
        key_range: task.range(),
        agreed_start_us,
        rows_before: Some(0),
        rows_after: Some(0),
        ..VoterResult::default()
    };
    let mut server = Histogram::new();
    let mut health = Generators::default();
    let mut slowest = Vec::new();
    for one in ended {
        let record = match &one.record {
            Ok(record) => record,
            Err(why) => {
                result.rows_after = None;
                result.rows_before = add(result.rows_before, one.rows_before);
                result.processes.push(died(one, why));
                continue;
            }
        };
        totals.merge(&interval(record, &task.class())?);
        health.add(record);
        slowest.extend(record.slowest.iter().map(slow));
        let own = record
            .job_results
            .voter()
            .with_context(|| format!("the record of {} has no section voter", one.name))?;
        add_up(&mut result, own, &mut server)?;
    }
    if !task.is_voter() {
        (result.rows_before, result.rows_after) = (None, None);
        result.check_reason = "hello only reads".to_owned();
    }
    result.server = ServerTimes::from(&server);
    result.set_check(WriteCheck::all(result.processes.iter().map(VoterProcess::write_check)));
    let alive: Vec<VoterProcess> =
        result.processes.iter().filter(|process| process.died.is_empty()).cloned().collect();
    result.totals = Totals::of(&alive);
    totals.to_ns = (result.totals.wall_s * 1e9) as u64;
    slowest.sort_by_key(|slow: &Slow| std::cmp::Reverse(slow.response_ns()));
    let verdict = verdict(task, ended, &result, &totals);
    let end = RunEnd {
        totals,
        warmup: None,
        slowest,
        round_trips: Vec::new(),
        measured_s: result.totals.wall_s,
        client_elapsed_ns: 0,
        clients_measured: 0,
        start_ns: 0,
        cpu_s: health.cpu_s,
        health: health.worst,
        since_success: (0.0, 0),
        connections: health.connections,
        rss_max_bytes: health.rss_bytes,
        interrupted: signals::is_stopped(),
        drain_cut: false,
        refused: None,
        sink_error,
    };
    Ok(JobEnd {
        end,
        results: JobResults::of(result.clone()),
        verdict,
        warnings: [prepared, worn_out(&result)].concat(),
    })
}

/// A slow call as its process kept it.
fn slow(kept: &SlowRequest) -> Slow {
    let ns = |ms: f64| (ms * MILLISECOND_NS as f64).round() as u64;
    let intended_ns = (kept.at_s * SECOND_NS as f64).round() as u64;
    let done_ns = intended_ns + ns(kept.response_ms);
    let failed = Failure::ALL.into_iter().find(|kind| kind.name() == kept.outcome);
    Slow {
        times: Times { intended_ns, sent_ns: done_ns.saturating_sub(ns(kept.service_ms)), done_ns },
        what: Submission { class: 0, item: kept.item, idempotent: false },
        outcome: failed.map_or(Outcome::Ok, Outcome::Failed),
        text: kept.request.clone(),
        trace_id: kept.trace_id.clone(),
    }
}

/// The generators' own health: CPU and memory add up, and the thread that fared worst stands for all.
#[derive(Default)]
struct Generators {
    cpu_s: f64,
    worst: Health,
    rss_bytes: u64,
    connections: u32,
}

impl Generators {
    fn add(&mut self, record: &RunRecord) {
        self.cpu_s += record.generator.cpu_s;
        self.worst.absorb(&record.generator.health);
        self.connections += record.counters.connects as u32;
        self.rss_bytes += record.generator.rss_max_bytes;
    }
}

/// A process without a record.
fn died(one: &Ended, why: &str) -> VoterProcess {
    VoterProcess {
        index: one.index,
        client: one.name.clone(),
        rows_before: one.rows_before,
        died: why.to_owned(),
        ..VoterProcess::default()
    }
}

/// Measurements of a process, from its record.
fn interval(record: &RunRecord, class: &str) -> Result<Interval> {
    let histogram = |name: &str| match record.histograms.get(name) {
        Some(text) => Histogram::decode(text).map_err(anyhow::Error::from),
        None => Ok(Histogram::new()),
    };
    let own = record.classes.get(class);
    let part = ClassPart {
        ledger: own.map_or_else(Ledger::default, |own| Ledger {
            sent: own.sent,
            ok: own.ok,
            failed: own.failed,
            ..Ledger::default()
        }),
        service_min_ns: (record.latency_ms.service.min * 1e6) as u64,
        service_max_ns: (record.latency_ms.service.max * 1e6) as u64,
        failed_min_ns: (record.latency_ms.failed.min * 1e6) as u64,
        response: histogram(&format!("{class}/response"))?,
        service: histogram(&format!("{class}/service"))?,
        failed: histogram(&format!("{class}/failed"))?,
        ..ClassPart::default()
    };
    Ok(Interval {
        to_ns: (record.duration_s * 1e9) as u64,
        ledger: record.ledger,
        counters: record.counters,
        lag: histogram("lag")?,
        delays: Delays {
            receive: histogram("receive-lag")?,
            send: histogram("send")?,
            starved: histogram("starved")?,
            connection: histogram("connection-wait")?,
            disturbed: record.generator.disturbed,
        },
        unserved: histogram("unserved")?,
        statuses: record.statuses.clone(),
        classes: vec![part],
        ..Interval::default()
    })
}

/// Of the verdicts of two processes, the one that weighs more for all of them.
const fn heavier(one: VerdictKind, other: VerdictKind) -> VerdictKind {
    const fn weight(kind: VerdictKind) -> u8 {
        match kind {
            VerdictKind::Valid | VerdictKind::Imported => 0,
            VerdictKind::ConnectionLimited => 1,
            VerdictKind::GeneratorLimited
            | VerdictKind::Infeasible
            | VerdictKind::BudgetTooSmall
            | VerdictKind::Unstable => 2,
            VerdictKind::TargetFailed => 3,
            VerdictKind::Partial => 4,
            VerdictKind::Void => 5,
        }
    }
    if weight(other) > weight(one) { other } else { one }
}

/// The verdict where the usual one does not fit: someone died, or has a verdict of its own that is none of speed.
fn verdict(
    task: &Task,
    ended: &[Ended],
    result: &VoterResult,
    totals: &Interval,
) -> Option<Verdict> {
    if totals.ledger.ok == 0 && ended.iter().all(|one| one.record.is_ok()) {
        return None;
    }
    let mut kind = VerdictKind::Valid;
    let mut reasons = Vec::new();
    if task.is_voter() && result.write_check().is_wrong() {
        kind = VerdictKind::Void;
        reasons.push(wrong_writes(result.write_check()));
    }
    for one in ended {
        let (own, why) = match &one.record {
            Err(why) => (VerdictKind::Partial, why.clone()),
            Ok(record) => match record.verdict.kind {
                VerdictKind::Valid | VerdictKind::GeneratorLimited => continue,
                // Its wrong writes are in the count of all.
                VerdictKind::Void if kind == VerdictKind::Void => continue,
                own => (own, format!("{}: {}", own.name(), record.verdict.reasons.join("; "))),
            },
        };
        kind = heavier(kind, own);
        reasons.push(format!("{}: {why}", one.name));
    }
    (!reasons.is_empty()).then_some(Verdict::new(kind, reasons))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A target that fails each process is a target that failed, and no run that was cut short.
    #[test]
    fn processes_that_agree_keep_their_verdict() {
        use VerdictKind::{ConnectionLimited, Partial, TargetFailed, Valid, Void};
        assert_eq!(heavier(heavier(Valid, TargetFailed), TargetFailed), TargetFailed);
        assert_eq!(heavier(Valid, ConnectionLimited), ConnectionLimited);
        assert_eq!(heavier(heavier(Partial, TargetFailed), ConnectionLimited), Partial);
        assert_eq!(heavier(Partial, Void), Void);
    }
}
