//! From counts to a record. The run's end and the rebuilding of a cut run both go through here, so that the
//! two cannot differ.

use crate::naming::Naming;
use crate::plain;
use plimsoll_core::histogram::Histogram;
use plimsoll_core::interval::{ClassPart, Counters, Interval};
use plimsoll_core::judged::Judged;
use plimsoll_core::ledger::Ledger;
use plimsoll_core::verdict::{Verdict, VerdictKind};
use plimsoll_record::{
    Bytes, ClassRecord, Generator, JobResults, Latencies, Machine, Network, PhaseRecord, Rates,
    RunRecord, SCHEMA, SloResult, SlowRequest, TargetInfo, Tool, timeout_ns,
};
use serde_json::Value;
use std::collections::BTreeMap;

/// Name of the phase before the measured stretch.
pub const WARMUP: &str = "warmup";

/// Facts known before the first request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordHeader {
    /// Program that writes the record.
    pub tool: Tool,
    /// Unique among runs; [`crate::folder::RunFolder::header`] fills it.
    pub run_id: String,
    /// Job or command that runs.
    pub job: String,
    /// Name and labels that the user gives it.
    pub naming: Naming,
    /// UTC, `YYYY-MM-DDTHH:MM:SSZ`.
    pub started_at: String,
    /// Words of the command line, secrets left out; empty if unknown.
    pub command: Vec<String>,
    /// Settings of the run, without secrets (left out by the caller).
    pub scenario: Value,
    /// The target: its URL and addresses.
    pub target: TargetInfo,
    /// Machine of the generator.
    pub machine: Machine,
    /// Names of the classes, in the order of [`Interval::classes`], each once.
    pub class_names: Vec<String>,
    /// The phases as far as they are known. An interval of a phase beyond them counts as measured.
    pub phases: Vec<PhasePlan>,
}

/// A phase that is to come.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PhasePlan {
    /// Name of the phase: `warmup`, `steady`, `1000/s`.
    pub name: String,
    /// True if its numbers are part of the totals (a warm-up's are not).
    pub measured: bool,
    /// The schedule as data.
    pub schedule: Value,
    /// Planned start, s from the run's start. The measurement begins there and not earlier, even when
    /// the first interval does.
    pub from_s: f64,
    /// Planned length, s, when it has one; what ends later (replies that were waited for) does not
    /// lengthen the phase.
    pub duration_s: Option<f64>,
}

/// Facts known only after the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ending {
    /// Length of the measured stretch, s; the length of the totals if it is unknown. Replies
    /// that were waited for after its end do not lengthen it, and do not count in rates.
    pub duration_s: Option<f64>,
    /// The generator's health; `lag_ms` and `cpu_us_per_request` are filled in by [`assemble`].
    pub generator: Generator,
    /// Round trips as the kernel saw them.
    pub network: Option<Network>,
    /// The slowest requests, slowest first.
    pub slowest: Vec<SlowRequest>,
    /// Limits that were asked for and whether they held.
    pub slo: BTreeMap<String, SloResult>,
    /// The caller's judgement; [`assemble`] turns it into `void` when the ledger does not balance.
    pub verdict: Verdict,
    /// Warnings for the reader.
    pub warnings: Vec<String>,
    /// Results of jobs, each a section of its own.
    pub job_results: JobResults,
    /// True of a run that goes on: its record is shown once and thrown away, so its histograms are not compressed.
    pub goes_on: bool,
}

impl RecordHeader {
    /// The header that an early record was written from.
    #[must_use]
    pub fn of(record: &RunRecord) -> Self {
        let plan = |phase: &PhaseRecord| PhasePlan {
            name: phase.name.clone(),
            measured: phase.measured,
            schedule: phase.schedule.clone(),
            from_s: phase.from_s,
            duration_s: (phase.duration_s > 0.0).then_some(phase.duration_s),
        };
        Self {
            tool: record.tool.clone(),
            run_id: record.run_id.clone(),
            job: record.job.clone(),
            naming: Naming { name: record.name.clone(), labels: record.labels.clone() },
            started_at: record.started_at.clone(),
            command: record.command.clone(),
            scenario: record.scenario.clone(),
            target: record.target.clone(),
            machine: record.machine.clone(),
            class_names: record.class_names.clone(),
            phases: record.phases.iter().map(plan).collect(),
        }
    }

    /// Returns true if intervals of this phase are part of the totals.
    #[must_use]
    pub fn is_measured(&self, phase: u32) -> bool {
        self.phases.get(phase as usize).is_none_or(|plan| plan.measured)
    }

    /// The name of the class at `index`; classes that no one named are called `class N`.
    #[must_use]
    pub fn class_name(&self, index: usize) -> String {
        self.class_names.get(index).cloned().unwrap_or_else(|| format!("class {index}"))
    }
}

/// Returns the phase before the measured stretch.
#[must_use]
pub fn warmup_phase(schedule: Value, duration_s: f64, warmup: &Interval) -> PhaseRecord {
    let all = warmup.all_classes();
    PhaseRecord {
        name: WARMUP.to_owned(),
        from_s: 0.0,
        duration_s,
        measured: false,
        schedule,
        ledger: warmup.ledger,
        rate: rates(&warmup.ledger, &warmup.counters, duration_s),
        latency_ms: Latencies {
            response: all.response.summary(),
            service: all.service.summary(),
            failed: all.failed_summary(),
            server: all.server.as_ref().map(|server| server.times.summary()),
            judged: None,
        },
    }
}

/// Adds up the seconds of a run: the totals of what is measured, and one record a phase.
///
/// Memory is that of one interval and one class part, however long the run and however many its phases are.
#[derive(Clone, Debug)]
pub struct Tally {
    totals: Interval,
    plan: Vec<PhasePlan>,
    open: Option<OpenPhase>,
    closed: Vec<PhaseRecord>,
}

#[derive(Clone, Debug)]
struct OpenPhase {
    index: u32,
    from_ns: u64,
    to_ns: u64,
    ledger: Ledger,
    counters: Counters,
    all: ClassPart,
}

impl Tally {
    /// An empty tally of a run with this header.
    #[must_use]
    pub fn new(header: &RecordHeader) -> Self {
        Self {
            totals: Interval::new(header.class_names.len()),
            plan: header.phases.clone(),
            open: None,
            closed: Vec::new(),
        }
    }

    /// Adds one second. Intervals come in the order of time, so those of one phase stand together.
    pub fn add(&mut self, interval: &Interval) {
        let plan = self.plan.get(interval.phase as usize);
        let (from_ns, to_ns) = within(plan, interval);
        if plan.is_none_or(|plan| plan.measured) {
            let first = self.totals.to_ns == 0;
            let (start_ns, end_ns) = (self.totals.from_ns, self.totals.to_ns);
            // Only the last second's requests are still in flight: earlier ones have ended since.
            self.totals.in_flight = 0;
            self.totals.phase = interval.phase;
            self.totals.merge(interval);
            self.totals.from_ns = if first { from_ns } else { start_ns.min(from_ns) };
            self.totals.to_ns = end_ns.max(to_ns);
        }
        if self.open.as_ref().is_some_and(|open| open.index != interval.phase) {
            self.close_phase();
        }
        let open = self.open.get_or_insert_with(|| OpenPhase {
            index: interval.phase,
            from_ns,
            to_ns,
            ledger: Ledger::default(),
            counters: Counters::default(),
            all: ClassPart::default(),
        });
        open.to_ns = open.to_ns.max(to_ns);
        open.ledger.merge(&interval.ledger);
        open.counters.merge(&interval.counters);
        interval.classes.iter().for_each(|class| open.all.merge(class));
    }

    /// Closes the ledger of a run that was cut: what was sent and never ended is unfinished, what was due
    /// and never sent is unsent. A run that ended by itself has done this already.
    pub fn cut(&mut self) {
        close_books(&mut self.totals.ledger);
        if let Some(open) = &mut self.open {
            close_books(&mut open.ledger);
        }
    }

    /// The totals and the phases.
    #[must_use]
    pub fn finish(mut self) -> (Interval, Vec<PhaseRecord>) {
        self.close_phase();
        (self.totals, self.closed)
    }

    fn close_phase(&mut self) {
        let Some(open) = self.open.take() else { return };
        let seconds = open.to_ns.saturating_sub(open.from_ns) as f64 / 1e9;
        let plan = self.plan.get(open.index as usize).cloned().unwrap_or_else(|| PhasePlan {
            name: format!("phase {}", open.index),
            measured: true,
            ..PhasePlan::default()
        });
        self.closed.push(PhaseRecord {
            name: plan.name,
            from_s: open.from_ns as f64 / 1e9,
            duration_s: seconds,
            measured: plan.measured,
            schedule: plan.schedule,
            ledger: open.ledger,
            rate: rates(&open.ledger, &open.counters, seconds),
            latency_ms: latencies(&open.all),
        });
    }
}

/// Start and end of an interval inside its phase, ns since the run's start.
fn within(plan: Option<&PhasePlan>, interval: &Interval) -> (u64, u64) {
    let Some(plan) = plan else { return (interval.from_ns, interval.to_ns) };
    let ns = |seconds: f64| (seconds * 1e9).round() as u64;
    let end_ns = plan.duration_s.map_or(u64::MAX, |duration_s| ns(plan.from_s + duration_s));
    let from_ns = interval.from_ns.max(ns(plan.from_s)).min(end_ns);
    (from_ns, interval.to_ns.clamp(from_ns, end_ns.max(from_ns)))
}

fn close_books(ledger: &mut Ledger) {
    ledger.unfinished += ledger.sent.saturating_sub(ledger.finished() + ledger.unfinished);
    let placed = ledger.sent
        + ledger.refused.queue_full
        + ledger.refused.queue_timeout
        + ledger.unsent.stopped;
    ledger.unsent.stopped += ledger.scheduled.saturating_sub(placed);
}

/// Makes the record of a run from its parts; the verdict becomes `void` when the ledger does not balance.
///
/// `totals` holds what was measured, warm-up left out; its length is the run's `duration_s`.
#[must_use]
pub fn assemble(
    header: &RecordHeader,
    totals: &Interval,
    phases: Vec<PhaseRecord>,
    ending: Ending,
) -> RunRecord {
    let duration_s = ending.duration_s.unwrap_or_else(|| totals.seconds());
    let rate = rates(&totals.ledger, &totals.counters, duration_s);
    let all = totals.all_classes();
    let mut latency_ms = latencies(&all);
    let judged = Judged::of(totals, timeout_ns(&header.scenario));
    latency_ms.judged = (!judged.lost.is_empty()).then(|| judged.summary());
    let mut generator = ending.generator;
    generator.lag_ms = totals.lag.summary();
    generator.receive_lag_ms = totals.delays.receive.summary();
    generator.disturbed = totals.delays.disturbed;
    generator.connection_wait_ms = totals.delays.connection.summary();
    // The CPU time is that of the measured stretch, and so are the ends. A record of another kind counts no ends.
    let ended = match totals.counters.ended_in_time {
        0 => totals.ledger.finished(),
        in_time => in_time,
    };
    if ended > 0 {
        generator.cpu_us_per_request = generator.cpu_s * 1e6 / ended as f64;
    }
    let encode = if ending.goes_on { Histogram::encode_stored } else { Histogram::encode };
    let mut slowest = ending.slowest;
    for slow in &mut slowest {
        slow.request = plain::without_secrets(&slow.request);
    }
    RunRecord {
        schema: SCHEMA.to_owned(),
        tool: header.tool.clone(),
        run_id: header.run_id.clone(),
        job: header.job.clone(),
        name: header.naming.name.clone(),
        labels: header.naming.labels.clone(),
        started_at: header.started_at.clone(),
        command: header.command.clone(),
        duration_s,
        scenario: header.scenario.clone(),
        target: header.target.clone(),
        machine: header.machine.clone(),
        ledger: totals.ledger,
        rate,
        bytes: Bytes { sent: totals.counters.bytes_sent, received: totals.counters.bytes_received },
        latency_ms,
        // The caller has the periods of the run.
        intervals: BTreeMap::new(),
        generator,
        classes: class_records(header, totals, &rate),
        class_names: (0..totals.classes.len()).map(|i| header.class_name(i)).collect(),
        phases,
        slo: ending.slo,
        // The caller judges them over the record itself.
        assertions: Vec::new(),
        verdict: checked(ending.verdict, totals, &all),
        warnings: ending.warnings,
        statuses: totals.statuses.clone(),
        counters: totals.counters,
        network: ending.network,
        // Known only when the last line has been written.
        outlets: Vec::new(),
        slowest,
        histograms: histograms(header, totals, encode),
        job_results: ending.job_results,
    }
}

/// Requests per second of a stretch of `seconds`; all 0 when it has no length.
///
/// Rates of the run. A request that ended after the stretch, because its reply was waited for, is in the ledger but
/// in no rate.
#[must_use]
pub fn rates(ledger: &Ledger, counters: &Counters, seconds: f64) -> Rates {
    if seconds <= 0.0 {
        return Rates::default();
    }
    Rates {
        offered_per_s: ledger.scheduled as f64 / seconds,
        achieved_per_s: counters.ended_in_time as f64 / seconds,
        ok_per_s: counters.ok_in_time as f64 / seconds,
    }
}

fn latencies(part: &ClassPart) -> Latencies {
    Latencies {
        response: part.response.summary(),
        service: part.service.summary(),
        failed: part.failed_summary(),
        server: part.server.as_ref().map(|server| server.times.summary()),
        judged: None,
    }
}

fn class_records(
    header: &RecordHeader,
    totals: &Interval,
    rate: &Rates,
) -> BTreeMap<String, ClassRecord> {
    // Classes share the run's rate by their successes, so that they add up to it.
    let per_ok = if totals.ledger.ok > 0 { rate.ok_per_s / totals.ledger.ok as f64 } else { 0.0 };
    let record = |part: &ClassPart| ClassRecord {
        sent: part.ledger.sent,
        ok: part.ledger.ok,
        failed: part.ledger.failed,
        ok_per_s: per_ok * part.ledger.ok as f64,
        zero_hits: part.zero_hits,
        hits_known: part.hits_known,
        latency_ms: latencies(part),
    };
    totals
        .classes
        .iter()
        .enumerate()
        .map(|(index, part)| (header.class_name(index), record(part)))
        .collect()
}

fn histograms(
    header: &RecordHeader,
    totals: &Interval,
    encode: fn(&Histogram) -> String,
) -> BTreeMap<String, String> {
    let mut encoded = BTreeMap::from([("lag".to_owned(), encode(&totals.lag))]);
    let delays = &totals.delays;
    for (name, times) in [
        ("receive-lag", &delays.receive),
        ("send", &delays.send),
        ("starved", &delays.starved),
        ("connection-wait", &delays.connection),
        ("unserved", &totals.unserved),
    ] {
        if !times.is_empty() {
            encoded.insert(name.to_owned(), encode(times));
        }
    }
    for (index, part) in totals.classes.iter().enumerate() {
        let name = header.class_name(index);
        encoded.insert(format!("{name}/response"), encode(&part.response));
        encoded.insert(format!("{name}/service"), encode(&part.service));
        encoded.insert(format!("{name}/failed"), encode(&part.failed));
        if let Some(server) = &part.server {
            encoded.insert(format!("{name}/server"), encode(&server.times));
        }
    }
    encoded
}

/// Checks the ledger before every other judgement: counts first, then counts against histograms.
fn checked(verdict: Verdict, totals: &Interval, all: &ClassPart) -> Verdict {
    let defect = match totals.ledger.balance() {
        Err(imbalance) => imbalance.to_string(),
        Ok(()) if all.response.count() != totals.ledger.ok => format!(
            "{} requests were counted as ok but {} have a response time; \
             this is a defect in plimsoll, the run is void",
            totals.ledger.ok,
            all.response.count()
        ),
        Ok(()) => return verdict,
    };
    let mut reasons = vec![defect];
    reasons.extend(verdict.reasons);
    Verdict::new(VerdictKind::Void, reasons)
}
