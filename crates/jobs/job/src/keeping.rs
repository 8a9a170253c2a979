//! One way of keeping a record, whatever drives the engine.

mod agents;
mod crew;
mod parts;
mod phase;
mod started;

use crate::observing::server_time_warnings;
use crate::outlets::Outlets;
use crate::output::{Output, lost_file};
use crate::prepare::{check_classes, plan_of};
use crate::remarks::{first_failure, remarks};
use crate::signals::{self, Stopped};
use crate::tool;
use crate::watching::{self, Watching};
pub use agents::{agents_of, judged};
use anyhow::Result;
pub use crew::Staff;
use parts::{generator_of, slow_request};
use plimsoll_core::clock::wall_us;
use plimsoll_core::interval::Interval;
use plimsoll_core::scenario::Scenario;
use plimsoll_core::slo::ClassSlo;
use plimsoll_core::verdict::{
    ConnectionLimit, Evidence, Verdict, VerdictKind, judge, same_host_warning, warnings,
};
use plimsoll_engine::health::machine;
use plimsoll_engine::run::RunEnd;
use plimsoll_engine::shard::ShardPlan;
use plimsoll_fleet::figures::Figures;
use plimsoll_record::{FailureSample, JobResults, Judge, Rates, RunRecord, Sink, TargetInfo};
use plimsoll_report::RecordError;
use plimsoll_report::assemble::{Ending, PhasePlan, RecordHeader, assemble, rates, warmup_phase};
use plimsoll_report::folder::{FAILURES, RunFolder};
use plimsoll_report::intervals;
use plimsoll_report::journal::Journal;
use plimsoll_report::periods::Periods;
use plimsoll_report::sections::Course;
use plimsoll_workloads::http::Troubles;
pub use started::Started;
use started::Starting;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Warning in the record and on the page of every run with `--insecure`.
const UNVERIFIED: &str = "--insecure: the certificate of the target was not verified; what answered may have been another server";

/// A sink that keeps nothing.
pub struct Nowhere;

impl Sink for Nowhere {
    fn counts_from(&mut self, _start_ns: u64) {}

    fn interval(&mut self, _interval: &Interval) -> std::io::Result<()> {
        Ok(())
    }

    fn failure(&mut self, _sample: &FailureSample) -> std::io::Result<()> {
        Ok(())
    }
}

/// Names failures by class before they are kept.
struct Named<'a> {
    inner: &'a mut (dyn Sink + Send),
    names: &'a [String],
    scenario: &'a Scenario,
    /// Kind and reason of the first failure, to say why a run came to nothing.
    first: Option<String>,
    watching: &'a Watching,
    /// Response times over the run.
    periods: Periods,
}

impl Sink for Named<'_> {
    fn counts_from(&mut self, start_ns: u64) {
        self.watching.counts_from(start_ns);
        self.inner.counts_from(start_ns);
    }

    fn interval(&mut self, interval: &Interval) -> std::io::Result<()> {
        self.watching.second(interval);
        self.periods.add(interval);
        self.inner.interval(interval)
    }

    fn failure(&mut self, sample: &FailureSample) -> std::io::Result<()> {
        let mut named = sample.clone();
        if self.first.is_none() {
            self.first = Some(first_failure(sample, self.scenario));
        }
        if let Some(name) = sample.class.parse().ok().and_then(|index: usize| self.names.get(index))
        {
            named.class.clone_from(name);
        }
        self.inner.failure(&named)
    }
}

/// Facts about a run before it starts.
pub struct About<'a> {
    /// Targets and connections.
    pub plan: &'a ShardPlan,
    /// Names of the classes, by index.
    pub class_names: Vec<String>,
    /// Number of different requests, if known.
    pub distinct_requests: Option<u64>,
    /// Problems of the sessions, reported at the end.
    pub troubles: Troubles,
}

/// Means that a job is given to drive the engine.
pub struct Keeping<'a> {
    /// Takes the seconds and failures.
    pub sink: &'a mut (dyn Sink + Send),
    /// Set when the user wants the run to end.
    pub stop: Arc<AtomicBool>,
    /// Start of the load.
    pub started: Started,
}

/// Result that the job gives back.
pub struct JobEnd {
    /// Measurements.
    pub end: RunEnd,
    /// Sections that the job adds to the record.
    pub results: JobResults,
    /// The job's own judgement, where a run's usual one does not fit.
    pub verdict: Option<Verdict>,
    /// Warnings of the job about its own results.
    pub warnings: Vec<String>,
}

/// A finished run.
pub struct Finished {
    /// Its record.
    pub record: RunRecord,
    /// Folder of the record.
    pub folder: Option<PathBuf>,
    /// Seconds and failures for the page that `--html` asks for, if no record is kept that has them.
    pub course: Option<Box<Course>>,
}

/// Keeps the record of whatever `job` does.
///
/// # Errors
/// When the run could not take place.
pub fn carry_out(
    scenario: &Scenario,
    about: &About<'_>,
    output: &Output,
    job: impl FnOnce(Keeping<'_>) -> Result<JobEnd>,
) -> Result<Finished> {
    let stop = signals::stop_flag()?;
    let (plan, names) = (about.plan, &about.class_names);
    check_classes(scenario, names)?;
    let watched = watching::find(&output.watch, plan)?;
    let mut header = header_of(scenario, about, output);
    let mut notes = Vec::new();
    let folder = open_folder(output, scenario, &mut header, &mut notes)?;
    let mut journal = folder.as_ref().and_then(|folder| open_journal(folder, &header, &mut notes));
    let mut nowhere = Nowhere;
    let is_collected = folder.is_none() && (output.html.is_some() || output.outlets.live.is_some());
    let mut collected = is_collected.then(Box::<Course>::default);
    let inner: &mut (dyn Sink + Send) = match (&mut journal, &mut collected) {
        (Some(journal), _) => journal,
        (None, Some(collected)) => &mut **collected,
        (None, None) => &mut nowhere,
    };
    let mut outlets = Outlets::open(output, &header, scenario, &mut notes)?;
    let mut beside = outlets.beside(inner);
    let watching = Watching::start(watched, folder.as_ref(), &mut notes);
    let mut sink = Named {
        inner: &mut beside,
        names,
        scenario,
        first: None,
        watching: &watching,
        periods: Periods::default(),
    };
    let started = Started::default();
    let ended = {
        let mut sink = Starting { inner: &mut sink, started: &started };
        job(Keeping { sink: &mut sink, stop, started: started.clone() })
    };
    let first_failure = sink.first.take().map(|first| and_more(first, folder.as_ref()));
    let periods = std::mem::take(&mut sink.periods);
    let JobEnd { end, mut results, verdict, mut warnings } = ended?;
    let own = Figures::of(&end);
    let reports = agents::put(&end, &mut results, &mut warnings);
    let verdict = agents::aborted().or(verdict);
    watching.finish(&end).into_iter().for_each(|resources| results.put(resources));
    notes.extend(warnings);
    if let Some(error) = &end.sink_error {
        notes.push(format!("the run's journal could not be written completely: {error}"));
    }
    notes.extend(about.troubles.take());
    notes.extend(outlets.last_export(end.warmup.as_ref()));
    let mut record = conclude(
        scenario,
        &header,
        &end,
        Conclusion {
            distinct_requests: about.distinct_requests,
            notes,
            verdict,
            first_failure,
            results,
            names,
            same_host: header.target.same_host,
            connections: plan.connection_limit,
        },
    );
    agents::judged(&mut record, &reports);
    record.intervals = intervals::of(periods, &record);
    outlets.close(&mut record);
    agents::keep_part(folder.as_ref(), &end);
    let (finished, unwritten) = finished(record, folder.as_ref());
    let finished = Finished { course: collected, ..finished };
    agents::report(&finished, own, unwritten.as_ref())?;
    Ok(finished)
}

/// The text of a run's first failure, and the file that has more of them.
fn and_more(first: String, folder: Option<&RunFolder>) -> String {
    match folder {
        Some(folder) => {
            format!("{first}; more of them: {}", folder.path().join(FAILURES).display())
        }
        None => first,
    }
}

/// Writes the record into its folder. Without a folder, or where it cannot be written, which is returned too, the result is only
/// printed.
fn finished(record: RunRecord, folder: Option<&RunFolder>) -> (Finished, Option<RecordError>) {
    let unwritten = folder.and_then(|folder| folder.finish(&record).err());
    if let Some(error) = &unwritten {
        lost_file(&format!("the record could not be written: {error}"));
    }
    let kept = folder.filter(|_| unwritten.is_none()).map(|folder| folder.path().to_owned());
    (Finished { record, folder: kept, course: None }, unwritten)
}

/// Keeps a record of a run that was stopped before its first request: partial, with the reason.
///
/// # Errors
/// When the record's folder cannot be made or written.
pub fn nothing_measured(
    scenario: &Scenario,
    output: &Output,
    stopped: &Stopped,
) -> Result<Finished> {
    let verdict = Verdict::new(VerdictKind::Partial, vec![stopped.to_string()]);
    without_run(scenario, output, verdict, JobResults::default())
}

/// Keeps a record of a run that came to its end before its first request, with what the job has to say.
///
/// # Errors
/// When the record's folder cannot be made.
pub fn without_run(
    scenario: &Scenario,
    output: &Output,
    verdict: Verdict,
    job_results: JobResults,
) -> Result<Finished> {
    let plan = plan_of(scenario, Vec::new(), None, 1);
    let about = About {
        plan: &plan,
        class_names: Vec::new(),
        distinct_requests: None,
        troubles: Troubles::default(),
    };
    let mut header = header_of(scenario, &about, output);
    header.phases.clear();
    let mut notes = Vec::new();
    let folder = open_folder(output, scenario, &mut header, &mut notes)?;
    let ending = Ending {
        verdict,
        warnings: notes,
        duration_s: Some(0.0),
        job_results,
        ..Ending::default()
    };
    let record = assemble(&header, &Interval::new(0), Vec::new(), ending);
    Ok(finished(record, folder.as_ref()).0)
}

/// Makes the folder of the record, when one is to be kept. Where it cannot be made nothing is sent: a run that
/// leaves no record was for nothing.
fn open_folder(
    output: &Output,
    scenario: &Scenario,
    header: &mut RecordHeader,
    notes: &mut Vec<String>,
) -> Result<Option<RunFolder>> {
    let Some(runs) = output.runs.as_deref() else { return Ok(None) };
    let folder = RunFolder::create_named(runs, &scenario.job, output.naming(), wall_us())?;
    let own = folder.header();
    header.run_id = own.run_id;
    header.started_at = own.started_at;
    let begun = folder.begin(header);
    agents::expect_room(&folder)?;
    if let Err(error) = begun {
        notes.push(format!("the record could not be written: {error}"));
    }
    Ok(Some(folder))
}

fn open_journal(
    folder: &RunFolder,
    header: &RecordHeader,
    notes: &mut Vec<String>,
) -> Option<Journal> {
    match folder.journal(header) {
        Ok(journal) => Some(journal),
        Err(error) => {
            notes.push(format!("the journal could not be written: {error}"));
            None
        }
    }
}

fn header_of(scenario: &Scenario, about: &About<'_>, output: &Output) -> RecordHeader {
    let shown = scenario.without_secrets();
    let targets = &about.plan.targets;
    let addresses: Vec<String> = targets
        .iter()
        .flat_map(|target| target.addresses.iter().map(ToString::to_string))
        .collect();
    RecordHeader {
        tool: tool::own(),
        run_id: String::new(),
        job: scenario.job.clone(),
        naming: output.naming(),
        started_at: plimsoll_core::clock::format_utc(wall_us()),
        command: tool::command(),
        scenario: serde_json::to_value(&shown).unwrap_or_default(),
        target: TargetInfo {
            url: shown.targets.join(" "),
            same_host: targets.iter().any(|target| target.is_this_machine()),
            addresses: if addresses.len() > 1 { addresses } else { Vec::new() },
        },
        machine: machine(),
        class_names: about.class_names.clone(),
        phases: vec![PhasePlan {
            name: "steady".to_owned(),
            measured: true,
            // The engine's seconds count from the start of the measured stretch.
            from_s: 0.0,
            // A run of users ends when the last one has left, a run of N requests when they are answered.
            duration_s: (scenario.duration.is_some()
                || (scenario.load.most_users().is_none() && scenario.requests.is_none()))
            .then(|| scenario.length().as_seconds()),
            schedule: serde_json::to_value(&scenario.load).unwrap_or_default(),
        }],
    }
}

struct Conclusion<'a> {
    distinct_requests: Option<u64>,
    notes: Vec<String>,
    verdict: Option<Verdict>,
    first_failure: Option<String>,
    results: JobResults,
    names: &'a [String],
    same_host: bool,
    connections: ConnectionLimit,
}

fn conclude(
    scenario: &Scenario,
    header: &RecordHeader,
    end: &RunEnd,
    conclusion: Conclusion<'_>,
) -> RunRecord {
    let totals = &end.totals;
    let rate = rates(&totals.ledger, &totals.counters, end.measured_s);
    let evidence = evidence_of(scenario, end, &conclusion, rate);
    let job_judged = conclusion.verdict.is_some();
    // The requests of a search went out at many rates; whether its limits held is for its own judgement.
    let judged = if job_judged { &[][..] } else { &scenario.slo[..] };
    let judge_one =
        |slo: &ClassSlo| slo.judge(totals, conclusion.names, scenario.timeout.ns, &rate);
    let slo = judged.iter().map(|slo| (slo.name(), judge_one(slo))).collect();
    let is_search = conclusion.results.is_search();
    let of_run = judge(&evidence);
    let mut verdict = match conclusion.verdict {
        None => of_run,
        // A job judges by what it did; how far its times may be off is known all the same. Those of a search are those of
        // many rates.
        Some(of_job) if of_job.bounds.is_none() && !is_search => {
            Verdict { bounds: of_run.bounds, ..of_job }
        }
        Some(of_job) => of_job,
    };
    // A search leaves requests unsent on purpose, and asks the same ones again and again.
    let mut warned = match job_judged {
        true => same_host_warning(&evidence),
        false => [warnings(&evidence), remarks(scenario, end)].concat(),
    };
    // A job may have named it already.
    let told = |first: &String| verdict.reasons.iter().any(|one| first.contains(one.as_str()));
    let first_failure = conclusion.first_failure.filter(|first| !told(first));
    match verdict.kind {
        VerdictKind::TargetFailed => verdict.reasons.extend(first_failure),
        _ => warned.extend(first_failure),
    }
    warned.extend(server_time_warnings(totals));
    warned.extend(scenario.tls.insecure.then(|| UNVERIFIED.to_owned()));
    warned.extend(conclusion.notes);
    let ending = Ending {
        generator: generator_of(scenario, end),
        network: end.network(),
        slowest: end
            .slowest
            .iter()
            .take(20)
            .map(|s| slow_request(s, end, conclusion.names))
            .collect(),
        slo,
        verdict,
        warnings: warned,
        job_results: conclusion.results,
        duration_s: Some(end.measured_s),
        goes_on: false,
    };
    let mut tally = plimsoll_report::assemble::Tally::new(header);
    tally.add(totals);
    let (_, mut phases) = tally.finish();
    // The one measured phase is the run itself: the same stretch, and so the same rates.
    for phase in &mut phases {
        phase.from_s += scenario.warmup.as_seconds();
        phase.duration_s = end.measured_s;
        phase.rate = rate;
    }
    let schedule = || serde_json::to_value(&scenario.load).unwrap_or_default();
    let warmup = end.warmup.as_ref();
    let warmup =
        warmup.map(|warmup| warmup_phase(schedule(), scenario.warmup.as_seconds(), warmup));
    phases.splice(0..0, warmup);
    let mut record = assemble(header, totals, phases, ending);
    // What a search asserts of itself is in its limits.
    if !job_judged {
        let judged = scenario.assertions.iter().flat_map(|assertion| assertion.judge(&record));
        record.assertions = judged.collect();
    }
    record
}

/// Evidence for the verdict.
fn evidence_of<'a>(
    scenario: &Scenario,
    end: &'a RunEnd,
    conclusion: &Conclusion<'_>,
    rates: Rates,
) -> Evidence<'a> {
    let totals = &end.totals;
    let repeats = conclusion
        .distinct_requests
        .map_or(0.0, |distinct| totals.ledger.sent as f64 / distinct.max(1) as f64);
    Evidence {
        totals,
        rates,
        measured_s: end.measured_s,
        open: scenario.load.is_open(),
        full_speed: scenario.load.is_full_speed(),
        clients: scenario.own_clients(),
        threads: scenario.threads,
        connections: match conclusion.connections {
            ConnectionLimit::Own(most) | ConnectionLimit::Machine(most)
                if end.connections < most =>
            {
                ConnectionLimit::Grown
            }
            limit => limit,
        },
        interrupted: end.interrupted,
        since_success: end.since_success,
        max_failed: scenario.max_failed.0,
        health: end.health,
        same_host: conclusion.same_host,
        repeats,
        // One URL asked again and again is what a user of `load URL` wants.
        cacheable: scenario.queries.is_some(),
    }
}
