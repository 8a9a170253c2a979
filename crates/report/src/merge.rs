//! One record from the records that the agents of a run keep, each of its own part.
//!
//! The seconds of the journals are added by their time, as the coordinator of the run adds them, so that ledger and histograms are those
//! of the whole run. Memory is that of a few seconds, however long the run.

mod results;
mod warmups;

use crate::assemble::{Ending, RecordHeader, Tally, assemble, rates};
use crate::error::RecordError;
use crate::forms::{Forms, Merged};
use crate::intervals;
use crate::journal;
use crate::load::{Loaded, load};
use crate::part::OwnPart;
use crate::periods::Periods;
use crate::run_json::INTERVALS;
use crate::sections::Course;
use plimsoll_core::interval::Interval;
use plimsoll_core::ledger::Ledger;
use plimsoll_core::record::Sink as _;
use plimsoll_core::scenario::Scenario;
use plimsoll_core::verdict::{Verdict, VerdictKind};
use plimsoll_record::fleet::{AgentResult, FleetResult};
use plimsoll_record::{Generator, JobResults, RunRecord, timeout_ns};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::Scope;
use thiserror::Error;
use warmups::Warmup;

/// Records that are not the parts of one run.
#[derive(Debug, Error)]
pub enum MergeError {
    /// A record cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A record of a run on one machine.
    #[error("{} is not the record of an agent; name the records that 'plimsoll agent' keeps below its --runs", .0.display())]
    NoPart(PathBuf),
    /// Parts of different runs.
    #[error("{} is of run {own}, and {} of run {other}; name the records of one run", .path.display(), .first.display())]
    OtherRun {
        /// A record.
        path: PathBuf,
        /// Its run.
        own: String,
        /// The first record.
        first: PathBuf,
        /// Its run.
        other: String,
    },
    /// Results of a job that cannot be put together.
    #[error(
        "the results of the agents cannot be put together: {0}; leave the record of the damaged part out"
    )]
    Results(String),
    /// The same part twice.
    #[error("{} and {} are both part {part}; name each once", .path.display(), .first.display())]
    Twice {
        /// A record.
        path: PathBuf,
        /// The record of the same part before it.
        first: PathBuf,
        /// The part.
        part: String,
    },
}

/// A record, its place in the run, and what it says of its agent.
struct Part {
    loaded: Loaded,
    own: OwnPart,
    agent: AgentResult,
    number: u32,
    of: u32,
}

/// Merges records of agents, and returns what the run did over time too. Parts that are missing make the result partial, and are named.
///
/// # Errors
/// [`MergeError`].
pub fn merge(folders: &[PathBuf], forms: &[Forms]) -> Result<(RunRecord, Course), MergeError> {
    let mut parts: Vec<Part> = Vec::new();
    for folder in folders {
        let part = part_of(folder)?;
        if let Some(first) = parts.first() {
            let (own, other) = (run_of(&part.loaded.record), run_of(&first.loaded.record));
            if own != other {
                let (path, first) = (folder.clone(), first.loaded.folder.clone());
                return Err(MergeError::OtherRun { path, own, first, other });
            }
        }
        if let Some(twin) = parts.iter().find(|one| one.number == part.number) {
            let (path, first) = (folder.clone(), twin.loaded.folder.clone());
            return Err(MergeError::Twice { path, first, part: part.agent.part });
        }
        parts.push(part);
    }
    parts.sort_by_key(|part| part.number);
    let Some(first) = parts.first() else {
        return Err(RecordError::NoRuns { path: PathBuf::from("runs") }.into());
    };
    // The record of a part that was cut has neither the length of the run nor its warm-up.
    let entire = parts.iter().find(|part| !part.loaded.cut).unwrap_or(first);
    let mut header = RecordHeader::of(&entire.loaded.record);
    if let Some(scenario) = header.scenario.as_object_mut() {
        scenario.remove("slice");
    }
    let warmup = warmups::take(&mut header, &parts)?;
    let (mut whole, sums) = add_up(&parts, &header)?;
    let mut troubles = missing(&parts);
    troubles.extend(parts.iter().zip(&sums).filter_map(|(part, sum)| trouble(part, sum)));
    let of_jobs = results::of_jobs(&parts, forms)?;
    let course = std::mem::take(&mut whole.course);
    Ok((assembled(&header, &parts, (whole, warmup), troubles, of_jobs), course))
}

fn run_of(record: &RunRecord) -> String {
    record.job_results.fleet().map(|fleet| fleet.run.clone()).unwrap_or_default()
}

fn part_of(folder: &Path) -> Result<Part, MergeError> {
    let loaded = load(folder)?;
    let no_part = || MergeError::NoPart(folder.to_owned());
    let fleet = loaded.record.job_results.fleet().ok_or_else(no_part)?;
    let [agent] = &fleet.agents[..] else { return Err(no_part()) };
    let numbers = agent.part.split_once('/').ok_or_else(no_part)?;
    let (Ok(number), Ok(of)) = (numbers.0.parse(), numbers.1.parse()) else {
        return Err(no_part());
    };
    let mut agent = agent.clone();
    agent.verdict = Some(loaded.record.verdict.kind);
    let own = OwnPart::read(folder)?;
    Ok(Part { agent, number, of, loaded, own })
}

/// The parts of which there is no record.
fn missing(parts: &[Part]) -> Vec<String> {
    let of = parts.iter().map(|part| part.of).max().unwrap_or(1);
    let is_there = |number: &u32| parts.iter().any(|part| part.number == *number);
    let missing: Vec<String> =
        (1..=of).filter(|number| !is_there(number)).map(|number| number.to_string()).collect();
    match missing.is_empty() {
        true => Vec::new(),
        false => vec![format!("no record of part {} of {of} was named", missing.join(", "))],
    }
}

/// A part whose record does not hold all that it did.
fn trouble(part: &Part, sum: &Ledger) -> Option<String> {
    let (name, record) = (&part.agent.name, &part.loaded.record);
    if part.loaded.cut {
        return Some(format!("agent {name}: its record is incomplete and ends before the run did"));
    }
    if *sum != record.ledger {
        return Some(format!(
            "agent {name}: its journal holds {} of its {} requests",
            sum.sent, record.ledger.sent
        ));
    }
    let is_partial = record.verdict.kind == VerdictKind::Partial;
    is_partial.then(|| format!("agent {name}: {}", record.verdict.reasons.join("; ")))
}

/// Content of all journals.
struct Whole {
    tally: Tally,
    periods: Periods,
    course: Course,
}

fn add_up(parts: &[Part], header: &RecordHeader) -> Result<(Whole, Vec<Ledger>), RecordError> {
    let mut whole =
        Whole { tally: Tally::new(header), periods: Periods::default(), course: Course::default() };
    let mut sums = vec![Ledger::default(); parts.len()];
    std::thread::scope(|scope| {
        let (streams, readers): (Vec<_>, Vec<_>) =
            parts.iter().map(|part| read_along(scope, &part.loaded.folder)).unzip();
        let mut next: Vec<Option<Interval>> = streams.iter().map(|one| one.recv().ok()).collect();
        while let Some(end_ns) = next.iter().flatten().map(Interval::second_end_ns).min() {
            let mut sum = Interval::default();
            for ((own, stream), ledger) in next.iter_mut().zip(&streams).zip(&mut sums) {
                while let Some(second) = own.take_if(|second| second.second_end_ns() == end_ns) {
                    ledger.merge(&second.ledger);
                    sum.phase = second.phase;
                    sum.merge(&second);
                    *own = stream.recv().ok();
                }
            }
            whole.tally.add(&sum);
            whole.periods.add(&sum);
            // In memory, where nothing fails.
            let _ = whole.course.interval(&sum);
        }
        readers.into_iter().try_for_each(|reader| reader.join().unwrap_or(Ok(())))
    })?;
    Ok((whole, sums))
}

type Reader<'scope> = std::thread::ScopedJoinHandle<'scope, Result<(), RecordError>>;

/// Reads a journal on a thread, a few seconds ahead.
fn read_along<'scope>(
    scope: &'scope Scope<'scope, '_>,
    folder: &Path,
) -> (Receiver<Interval>, Reader<'scope>) {
    let (sender, seconds) = sync_channel(2);
    let path = folder.join(INTERVALS);
    let reader = scope.spawn(move || {
        // If no one takes them any more, another journal failed.
        journal::read(&path, |second| drop(sender.send(second.clone()))).map(drop)
    });
    (seconds, reader)
}

fn assembled(
    header: &RecordHeader,
    parts: &[Part],
    (mut whole, warmup): (Whole, Option<Warmup>),
    mut troubles: Vec<String>,
    of_jobs: Merged,
) -> RunRecord {
    troubles.extend(of_jobs.troubles);
    if !troubles.is_empty() {
        whole.tally.cut();
    }
    let (totals, mut phases) = whole.tally.finish();
    let records = || parts.iter().map(|part| &part.loaded.record);
    let search = search_of(parts);
    // Between the rates of a search there is no load.
    let least_s = if search.is_some() { 0.0 } else { totals.seconds() };
    let duration_s = records().map(|record| record.duration_s).fold(least_s, f64::max);
    let rate = rates(&totals.ledger, &totals.counters, duration_s);
    let limits = serde_json::from_value::<Scenario>(header.scenario.clone());
    let mut limits = limits.map(|scenario| scenario.slo).unwrap_or_default();
    if search.is_some() {
        // The requests went out at many rates; the search itself judged them.
        limits.clear();
    }
    let timeout_ns = timeout_ns(&header.scenario);
    let judge = |slo: &plimsoll_core::slo::ClassSlo| {
        (slo.name(), slo.judge(&totals, &header.class_names, timeout_ns, &rate))
    };
    let mut slowest: Vec<_> = records().flat_map(|record| record.slowest.clone()).collect();
    slowest.sort_by(|one, other| other.response_ms.total_cmp(&one.response_ms));
    slowest.truncate(20);
    let fleet = FleetResult {
        run: run_of(&parts[0].loaded.record),
        agents: parts.iter().map(|part| part.agent.clone()).collect(),
        troubles: troubles.clone(),
        ..FleetResult::default()
    };
    let mut warnings =
        vec!["merged from the records of the agents; each was judged by itself".to_owned()];
    warnings.extend(of_jobs.warnings);
    warnings.extend(fleet.apart());
    if let Some(warmup) = warmup {
        warnings.extend(warmup.put(&mut phases, (duration_s, rate)));
    }
    let ending = Ending {
        duration_s: Some(duration_s),
        generator: generator(parts),
        slo: limits.iter().map(judge).collect(),
        slowest,
        verdict: match &search {
            Some(_) if troubles.is_empty() => parts[0].loaded.record.verdict.clone(),
            _ => verdict(parts, troubles),
        },
        warnings,
        job_results: {
            let mut all = search.unwrap_or_default();
            all.extend(of_jobs.results);
            all.with(fleet)
        },
        ..Ending::default()
    };
    let mut record = assemble(header, &totals, phases, ending);
    record.intervals = intervals::of(whole.periods, &record);
    record
}

/// The search that all agents followed: each has the whole of it in its record.
fn search_of(parts: &[Part]) -> Option<JobResults> {
    let found = |part: &Part| part.loaded.record.job_results.seek().cloned();
    let first = parts.first().and_then(found)?;
    let is_same = |part: &Part| found(part).as_ref() == Some(&first);
    parts.iter().all(is_same).then(|| JobResults::of(first))
}

/// The generators together: what adds up as a sum, shares as the worst of them.
fn generator(parts: &[Part]) -> Generator {
    let mut all = parts[0].loaded.record.generator.clone();
    for part in &parts[1..] {
        let own = &part.loaded.record.generator;
        all.cpu_s += own.cpu_s;
        all.threads += own.threads;
        all.rss_max_bytes = all.rss_max_bytes.max(own.rss_max_bytes);
        all.busiest_thread = all.busiest_thread.max(own.busiest_thread);
        all.health.absorb(&own.health);
    }
    all
}

/// The verdict of all: that of the part that weighs most, and partial if something is missing.
fn verdict(parts: &[Part], troubles: Vec<String>) -> Verdict {
    let reasons_of = |kind: VerdictKind| {
        let of_kind = parts.iter().filter(move |part| part.loaded.record.verdict.kind == kind);
        let own = |part: &Part| {
            let reasons = part.loaded.record.verdict.reasons.join("; ");
            format!("agent {}: {reasons}", part.agent.name)
        };
        of_kind.map(own).collect::<Vec<_>>()
    };
    let void = reasons_of(VerdictKind::Void);
    if !void.is_empty() {
        return Verdict::new(VerdictKind::Void, void);
    }
    if !troubles.is_empty() {
        return Verdict::new(VerdictKind::Partial, troubles);
    }
    let kinds =
        [VerdictKind::TargetFailed, VerdictKind::GeneratorLimited, VerdictKind::ConnectionLimited];
    let mut found = kinds.into_iter().map(|kind| (kind, reasons_of(kind)));
    let heaviest = found.find(|(_, reasons)| !reasons.is_empty());
    heaviest.map_or_else(Verdict::default, |(kind, reasons)| Verdict::new(kind, reasons))
}
