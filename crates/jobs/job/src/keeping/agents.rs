//! The agents of a run on several machines, in its record and in its verdict.

use super::Finished;
use crate::output::lost_file;
use anyhow::{Result, anyhow};
use plimsoll_core::clock::MILLISECOND_NS;
use plimsoll_core::interval::IntervalLine;
use plimsoll_core::system_error::with_advice;
use plimsoll_core::verdict::{Verdict, VerdictKind};
use plimsoll_engine::health::machine;
use plimsoll_engine::run::RunEnd;
use plimsoll_fleet::coordinator::{AgentReport, WatcherReport, of_agents};
use plimsoll_fleet::figures::Figures;
use plimsoll_fleet::place::{AgentPost, Place, place};
use plimsoll_record::fleet::{AgentFigures, AgentResult, FleetResult, Members, Role};
use plimsoll_record::{JobResults, RunRecord};
use plimsoll_report::RecordError;
use plimsoll_report::folder::RunFolder;
use plimsoll_report::part::OwnPart;

/// Room for the record of a short run, bytes.
const ROOM_BYTES: usize = 1 << 20;

/// On an agent, writes as much as a short run needs, and removes it: a full disk is found before any load, and not when all agents
/// have sent theirs for nothing.
///
/// # Errors
/// When there is no room; then the folder is gone again.
pub(super) fn expect_room(folder: &RunFolder) -> Result<()> {
    let Place::Agent(_) = place() else { return Ok(()) };
    let path = folder.path().join("room.new");
    let written = std::fs::write(&path, vec![0; ROOM_BYTES]);
    let _ = std::fs::remove_file(&path);
    written.map_err(|error| {
        let _ = std::fs::remove_dir_all(folder.path());
        let below = folder.path().parent().unwrap_or(folder.path()).display();
        anyhow!("its record has no room below {below}: {}", with_advice(&error))
    })
}

/// Adds the agents of a run to its results, for a job that keeps its own record. Without agents there is nothing to add. The job
/// has no more phases.
pub fn agents_of(results: &mut JobResults, warnings: &mut Vec<String>) -> Vec<AgentReport> {
    match place() {
        Place::Coordinator(_) => put(&RunEnd::default(), results, warnings),
        _ => Vec::new(),
    }
}

/// Adds the agents of a run to its results. Without agents there is nothing to add.
pub(super) fn put(
    end: &RunEnd,
    results: &mut JobResults,
    warnings: &mut Vec<String>,
) -> Vec<AgentReport> {
    let post = match place() {
        Place::Alone => return Vec::new(),
        Place::Agent(post) => {
            results.put(own_part(post, end));
            return Vec::new();
        }
        Place::Coordinator(post) => post,
    };
    let (mut reports, mut troubles) = post.finish();
    // Agents that feed beside the load, if there are any.
    let feeding = post.second_group().map(|feed| feed.finish());
    let (feeding, more) = feeding.unwrap_or_default();
    troubles.extend(more);
    let watchers = post.watchers();
    // The load is whole without them: the verdict stays.
    warnings.extend(watchers.iter().filter_map(WatcherReport::warning));
    let of = reports.len();
    let mut skews_ms: Vec<f64> = reports.iter().chain(&feeding).map(skew_ms).collect();
    skews_ms.sort_by(f64::total_cmp);
    let all = skews_ms.len();
    let p99 = (all * 99).div_ceil(100).clamp(1, all.max(1)) - 1;
    let fleet = FleetResult {
        run: post.run().to_owned(),
        members: post.members(),
        agents: (1..)
            .zip(&reports)
            .map(|(number, report)| agent(report, number, of))
            .chain((1..).zip(&feeding).map(|(number, report)| AgentResult {
                role: Role::Feed,
                ..agent(report, number, feeding.len())
            }))
            .chain(watchers.iter().map(watcher))
            .collect(),
        start_skew_p99_ms: skews_ms.get(p99).copied().unwrap_or(0.0),
        start_skew_max_ms: skews_ms.last().copied().unwrap_or(0.0),
        bus_sent_bytes: post.bytes().0,
        bus_received_bytes: post.bytes().1,
        troubles,
    };
    warnings.extend(fleet.apart());
    results.put(fleet);
    reports.extend(feeding);
    reports
}

/// The place of an agent in its run.
fn own_part(post: &AgentPost, end: &RunEnd) -> FleetResult {
    let (machine, slice) = (machine(), post.slice());
    let agent = AgentResult {
        name: post.name().to_owned(),
        host: machine.hostname,
        part: format!("{}/{}", slice.index + 1, slice.of),
        cpus: machine.cpus,
        figures: Some(figures(&Figures::of(end))),
        ..AgentResult::default()
    };
    FleetResult { run: post.run(), agents: vec![agent], ..FleetResult::default() }
}

/// Keeps what the run can be made from again, beside the record of an agent's part.
pub(super) fn keep_part(folder: Option<&RunFolder>, end: &RunEnd) {
    let (Place::Agent(post), Some(folder)) = (place(), folder) else { return };
    let warmup = end.warmup.as_ref().map(IntervalLine::from);
    if let Err(error) = (OwnPart { warmup, results: post.results() }).write(folder) {
        lost_file(&error.to_string());
    }
}

/// The verdict of an agent whose run was ended by its coordinator.
pub(super) fn aborted() -> Option<Verdict> {
    let Place::Agent(post) = place() else { return None };
    let why = post.aborted()?;
    Some(Verdict::new(VerdictKind::Partial, vec![format!("the run was ended: {why}")]))
}

/// An agent reports its judgement and its figures to its coordinator, or that its record is `unwritten`.
pub(super) fn report(
    finished: &Finished,
    own: Figures,
    unwritten: Option<&RecordError>,
) -> Result<()> {
    let Place::Agent(post) = place() else { return Ok(()) };
    match unwritten {
        None => {}
        Some(RecordError::Write { path, source }) => {
            anyhow::bail!(
                "its record could not be written: {}: {}",
                path.display(),
                with_advice(source)
            )
        }
        Some(error) => anyhow::bail!("its record could not be written: {error}"),
    }
    Ok(post.finish(finished.record.verdict.clone(), Some(own))?)
}

/// The verdict of the run, once its agents have judged their parts.
pub fn judged(record: &mut RunRecord, reports: &[AgentReport]) {
    let fleet = record.job_results.fleet().map(|fleet| (fleet.members, fleet.troubles.clone()));
    let (members, troubles) = fleet.unwrap_or_default();
    if !troubles.is_empty() && record.verdict.kind != VerdictKind::Void {
        let mut reasons = some_of(members, troubles);
        if record.verdict.kind != VerdictKind::Valid {
            reasons.append(&mut record.verdict.reasons);
        }
        record.verdict = Verdict::new(VerdictKind::Partial, reasons);
    }
    if let Some(verdict) = of_agents(record.verdict.kind, members, reports) {
        let bounds = record.verdict.bounds.take();
        record.verdict = Verdict { bounds, ..verdict };
    }
}

/// The first of many reasons; the record has all of them.
fn some_of(members: Members, mut troubles: Vec<String>) -> Vec<String> {
    const SHOWN: usize = 5;
    let left_out = troubles.len().saturating_sub(SHOWN);
    if left_out > 1 {
        troubles.truncate(SHOWN);
        let word = members.word();
        troubles.push(format!("{left_out} more {word} were lost; the record names them"));
    }
    troubles
}

fn ms(ns: u64) -> f64 {
    ns as f64 / MILLISECOND_NS as f64
}

fn skew_ms(report: &AgentReport) -> f64 {
    ms(report.late_ns) + ms(report.clock.1) / 2.0
}

fn agent(report: &AgentReport, number: usize, of: usize) -> AgentResult {
    AgentResult {
        name: report.name.clone(),
        host: report.machine.hostname.clone(),
        role: Role::Load,
        part: format!("{number}/{of}"),
        cpus: report.machine.cpus,
        figures: report.figures.as_ref().map(figures),
        clock_ahead_ms: report.clock.0 as f64 / MILLISECOND_NS as f64,
        round_trip_ms: ms(report.clock.1),
        start_late_ms: ms(report.late_ns),
        trouble: report.trouble.clone(),
        verdict: report.verdict.as_ref().map(|verdict| verdict.kind),
    }
}

/// An agent that watches.
fn watcher(report: &WatcherReport) -> AgentResult {
    let (clock, cpus) = match &report.watches {
        Some(watches) => (watches.clock, watches.machine.cpus),
        None => ((0, 0), 0),
    };
    AgentResult {
        name: report.name.clone(),
        host: report.host.clone(),
        role: Role::Watch,
        cpus,
        clock_ahead_ms: clock.0 as f64 / MILLISECOND_NS as f64,
        round_trip_ms: ms(clock.1),
        trouble: report.trouble.clone(),
        ..AgentResult::default()
    }
}

fn figures(own: &Figures) -> AgentFigures {
    let [p50_ms, p95_ms, p99_ms] = own.response_ns.map(ms);
    AgentFigures {
        sent: own.ledger.sent,
        ok: own.ledger.ok,
        failed: own.ledger.failed.total(),
        ok_per_s: own.ok_in_time as f64 / own.measured_s.max(1e-9),
        p50_ms,
        p95_ms,
        p99_ms,
        lag_p99_ms: ms(own.lag_p99_ns),
        cpu_s: own.cpu_s,
    }
}
