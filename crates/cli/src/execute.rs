//! Runs what was prepared, keeps its record, and prints the result.

use crate::exit;
use crate::prepare::{Prepared, prepare};
use crate::progress::Progress;
use crate::signals;
use crate::usage::usage;
use anyhow::Result;
use plimsoll_core::clock::wall_us;
use plimsoll_core::interval::Interval;
use plimsoll_core::record::{
    FailureSample, Generator, Latencies, PhaseRecord, RunRecord, Sink, SlowRequest, TargetInfo,
    Tool,
};
use plimsoll_core::scenario::Scenario;
use plimsoll_core::slo::Slo;
use plimsoll_core::verdict::{Evidence, Verdict, VerdictKind, judge, same_host_warning, warnings};
use plimsoll_engine::health::{machine, raise_descriptor_limit};
use plimsoll_engine::run::{RunEnd, run};
use plimsoll_engine::shard::{BATCHING_FROM, ShardPlan, Slow, is_full_speed};
use plimsoll_report::assemble::{Ending, PhasePlan, RecordHeader, assemble, rates};
use plimsoll_report::folder::RunFolder;
use plimsoll_report::journal::Journal;
use plimsoll_wire::http1::Http1;
use plimsoll_workloads::http::Troubles;
use serde_json::{Map, Value};
use std::ffi::OsStr;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Where results go, beside stdout.
#[derive(Clone, Debug, Default)]
pub struct Output {
    /// Folder of run records; `None` keeps none.
    pub runs: Option<PathBuf>,
    /// Also write the record here as JSON; `-` is stdout, instead of the text.
    pub json: Option<PathBuf>,
    /// No progress.
    pub quiet: bool,
}

impl Output {
    /// Makes sure that the JSON can be written, before any load: a run whose result is lost was for nothing.
    ///
    /// # Errors
    /// When the file cannot be opened for writing.
    pub fn check(&self) -> Result<()> {
        let Some(path) = self.json.as_deref().filter(|path| *path != Path::new("-")) else {
            return Ok(());
        };
        let opened = std::fs::OpenOptions::new().create(true).append(true).open(path);
        opened
            .map(drop)
            .map_err(|error| usage(format!("--json {}: {error}; check the path", path.display())))
    }
}

/// A finished run.
pub struct Finished {
    /// Its record.
    pub record: RunRecord,
    /// Where it was kept.
    pub folder: Option<PathBuf>,
}

/// A sink that keeps nothing.
struct Nowhere;

impl Sink for Nowhere {
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
    /// Kind and reason of the first failure, to say why a run came to nothing.
    first: Option<String>,
}

impl Sink for Named<'_> {
    fn interval(&mut self, interval: &Interval) -> std::io::Result<()> {
        self.inner.interval(interval)
    }

    fn failure(&mut self, sample: &FailureSample) -> std::io::Result<()> {
        let mut named = sample.clone();
        if self.first.is_none() {
            self.first =
                Some(format!("the first failure was '{}': {}", sample.kind, sample.reason));
        }
        if let Some(name) = sample.class.parse().ok().and_then(|index: usize| self.names.get(index))
        {
            named.class.clone_from(name);
        }
        self.inner.failure(&named)
    }
}

/// Runs to the end. `each_second` sees every finished second; `job_results` makes what the job adds.
///
/// # Errors
/// When the run could not take place. A failed target is a result, not an error.
pub fn execute(
    scenario: &Scenario,
    prepared: Prepared,
    output: &Output,
    each_second: &mut (dyn FnMut(&Interval) + Send),
    job_results: &dyn Fn(&RunEnd) -> Map<String, Value>,
) -> Result<Finished> {
    let Prepared { plan, sessions, class_names, distinct_requests, troubles } = prepared;
    let about = About { plan: &plan, class_names, distinct_requests, troubles };
    let progress = Progress::new(scenario.length(), output.quiet);
    let finished = carry_out(scenario, &about, output, |keeping| {
        let mut show = |second: &Interval| {
            progress.show(second);
            each_second(second);
        };
        let end = run(&plan, Http1::default, sessions, keeping.sink, &mut show, &keeping.stop);
        progress.done();
        let end = end?;
        let results = job_results(&end);
        Ok(JobEnd { end, results, verdict: None })
    });
    progress.done();
    finished
}

/// What is known of a run before it starts, whatever drives it.
pub struct About<'a> {
    /// Targets and connections.
    pub plan: &'a ShardPlan,
    /// Names of the classes, by index.
    pub class_names: Vec<String>,
    /// How many different requests there are, if known.
    pub distinct_requests: Option<u64>,
    /// What the sessions leave to tell at the end.
    pub troubles: Troubles,
}

/// What whoever drives the engine is given.
pub struct Keeping<'a> {
    /// Takes the seconds and failures.
    pub sink: &'a mut (dyn Sink + Send),
    /// Set when the user wants the run to end.
    pub stop: Arc<AtomicBool>,
}

/// What it gives back.
pub struct JobEnd {
    /// What was measured.
    pub end: RunEnd,
    /// What the job adds to the record.
    pub results: Map<String, Value>,
    /// The job's own judgement, where a run's usual one does not fit.
    pub verdict: Option<Verdict>,
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
    let descriptors = raise_descriptor_limit();
    let mut header = header_of(scenario, about);
    let mut notes = Vec::new();
    if u64::from(plan.connections) + 64 > descriptors {
        notes.push(format!(
            "{} connections need more file descriptors than this process may open ({descriptors})",
            plan.connections
        ));
    }
    let folder = open_folder(output, scenario, &mut header, &mut notes)?;
    let mut journal = folder.as_ref().and_then(|folder| open_journal(folder, &header, &mut notes));
    let mut nowhere = Nowhere;
    let inner: &mut (dyn Sink + Send) = match &mut journal {
        Some(journal) => journal,
        None => &mut nowhere,
    };
    let mut sink = Named { inner, names, first: None };
    let ended = job(Keeping { sink: &mut sink, stop });
    let first_failure = sink.first.take();
    let JobEnd { end, results, verdict } = ended?;
    if let Some(error) = &end.sink_error {
        notes.push(format!("the run's journal could not be kept in full: {error}"));
    }
    notes.extend(about.troubles.take());
    let record = conclude(
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
        },
    );
    let mut kept = folder.as_ref().map(|folder| folder.path().to_owned());
    if let Some(folder) = &folder
        && let Err(error) = folder.finish(&record)
    {
        note(&format!("plimsoll: the record could not be kept: {error}"));
        kept = None;
    }
    Ok(Finished { record, folder: kept })
}

/// A line on stderr.
#[allow(clippy::print_stderr)]
pub fn note(text: &str) {
    eprintln!("{text}");
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
    let folder = RunFolder::create(runs, &scenario.job, wall_us())?;
    let own = folder.header();
    header.run_id = own.run_id;
    header.started_at = own.started_at;
    if let Err(error) = folder.begin(header) {
        notes.push(format!("the record could not be kept: {error}"));
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
            notes.push(format!("no journal was kept: {error}"));
            None
        }
    }
}

fn header_of(scenario: &Scenario, about: &About<'_>) -> RecordHeader {
    let shown = scenario.without_secrets();
    let targets = &about.plan.targets;
    let addresses: Vec<String> = targets
        .iter()
        .flat_map(|target| target.addresses.iter().map(ToString::to_string))
        .collect();
    RecordHeader {
        tool: Tool {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: option_env!("PLIMSOLL_COMMIT").unwrap_or("").to_owned(),
        },
        run_id: String::new(),
        job: scenario.job.clone(),
        started_at: plimsoll_core::clock::format_utc(wall_us()),
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
            duration_s: Some(scenario.length().as_seconds()),
            schedule: serde_json::to_value(&scenario.load).unwrap_or_default(),
        }],
    }
}

struct Conclusion<'a> {
    distinct_requests: Option<u64>,
    notes: Vec<String>,
    verdict: Option<Verdict>,
    first_failure: Option<String>,
    results: Map<String, Value>,
    names: &'a [String],
    same_host: bool,
}

fn conclude(
    scenario: &Scenario,
    header: &RecordHeader,
    end: &RunEnd,
    conclusion: Conclusion<'_>,
) -> RunRecord {
    let totals = &end.totals;
    let repeats = conclusion
        .distinct_requests
        .map_or(0.0, |distinct| totals.ledger.sent as f64 / distinct.max(1) as f64);
    let evidence = Evidence {
        totals,
        open: scenario.load.is_open(),
        full_speed: is_full_speed(&scenario.load),
        interrupted: end.interrupted,
        busiest: end.busiest,
        same_host: conclusion.same_host,
        repeats,
        // One URL asked again and again is what a user of `load URL` wants.
        cacheable: scenario.queries.is_some(),
    };
    let rate = rates(&totals.ledger, &totals.counters, end.measured_s);
    let job_judged = conclusion.verdict.is_some();
    // The requests of a search went out at many rates; whether its limits held is for its own judgement.
    let judged = if job_judged { &[][..] } else { &scenario.slo[..] };
    let slo = judged.iter().map(|slo: &Slo| (slo.name(), slo.judge(totals, &rate))).collect();
    let mut verdict = conclusion.verdict.unwrap_or_else(|| judge(&evidence));
    if verdict.kind == VerdictKind::TargetFailed {
        verdict.reasons.extend(conclusion.first_failure);
    }
    // A search leaves requests unsent on purpose, and asks the same ones again and again.
    let mut warned = match job_judged {
        true => same_host_warning(&evidence),
        false => warnings(&evidence),
    };
    warned.extend(conclusion.notes);
    let ending = Ending {
        generator: generator_of(scenario, end),
        network: end.network,
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
    phases.splice(0..0, end.warmup.as_ref().map(|warmup| warmup_phase(scenario, warmup)));
    assemble(header, totals, phases, ending)
}

/// What came before the measured stretch, for those who want to see it.
fn warmup_phase(scenario: &Scenario, warmup: &Interval) -> PhaseRecord {
    let all = warmup.all_classes();
    PhaseRecord {
        name: "warmup".to_owned(),
        from_s: 0.0,
        duration_s: scenario.warmup.as_seconds(),
        measured: false,
        schedule: serde_json::to_value(&scenario.load).unwrap_or_default(),
        ledger: warmup.ledger,
        rate: rates(&warmup.ledger, &warmup.counters, scenario.warmup.as_seconds()),
        latency_ms: Latencies {
            response: all.response.summary(),
            service: all.service.summary(),
            failed: all.failed_summary(),
        },
    }
}

fn generator_of(scenario: &Scenario, end: &RunEnd) -> Generator {
    let wait = if scenario.spin.ns > 0 {
        "spin"
    } else if scenario.batching
        && is_full_speed(&scenario.load)
        && scenario.connection_count() / scenario.threads >= BATCHING_FROM
    {
        "batch"
    } else {
        "sleep"
    };
    Generator {
        cpu_s: end.cpu_s,
        threads: scenario.threads,
        rss_max_bytes: end.rss_max_bytes,
        busiest_thread: end.busiest,
        wait: wait.to_owned(),
        ..Generator::default()
    }
}

fn slow_request(slow: &Slow, end: &RunEnd, names: &[String]) -> SlowRequest {
    let times = slow.times;
    SlowRequest {
        class: names.get(slow.what.class as usize).cloned().unwrap_or_default(),
        item: slow.what.item,
        response_ms: slow.response_ns() as f64 / 1e6,
        service_ms: times.done_ns.saturating_sub(times.sent_ns) as f64 / 1e6,
        at_s: times.intended_ns.saturating_sub(end.start_ns) as f64 / 1e9,
        outcome: match slow.outcome {
            plimsoll_core::outcome::Outcome::Ok => "ok".to_owned(),
            plimsoll_core::outcome::Outcome::Failed(kind) => kind.name().to_owned(),
        },
        request: slow.text.clone(),
    }
}

/// A whole command: prepares the scenario, runs it, prints the result, and gives the exit code.
///
/// # Errors
/// Wrong usage, or a program failure.
pub fn run_and_print(scenario: &Scenario, output: &Output) -> Result<u8> {
    let prepared = prepare(scenario)?;
    output.check()?;
    let finished = execute(scenario, prepared, output, &mut |_| {}, &|_| Map::new())?;
    if !write_json(output, &finished.record)? {
        let folder = finished.folder.as_deref();
        print_out(&plimsoll_report::text::render(&finished.record, folder, &style()))?;
    }
    Ok(code(&finished))
}

/// Writes the JSON that was asked for and says whether stdout was taken by it.
///
/// # Errors
/// When the file cannot be written.
pub fn write_json(output: &Output, record: &RunRecord) -> Result<bool> {
    match output.json.as_deref() {
        None => Ok(false),
        Some(path) if path == Path::new("-") => {
            print_out(&plimsoll_report::json::pretty(record))?;
            Ok(true)
        }
        Some(path) => {
            std::fs::write(path, plimsoll_report::json::pretty(record)).map_err(|error| {
                anyhow::anyhow!("--json {}: {error}; check the path", path.display())
            })?;
            Ok(false)
        }
    }
}

/// Writes to stdout. A reader that went away is no error of ours.
///
/// # Errors
/// When stdout cannot be written for another reason.
pub fn print_out(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(|error| anyhow::anyhow!("stdout cannot be written: {error}")),
    }
}

/// Whether a terminal of this kind is sent colours: `NO_COLOR` says no, and so does a terminal without them.
fn may_colour(no_color: Option<&OsStr>, term: Option<&OsStr>) -> bool {
    no_color.is_none() && term.is_none_or(|term| term != "dumb")
}

/// How text goes to stdout.
#[must_use]
pub fn style() -> plimsoll_report::text::Style {
    let terminal = std::io::stdout().is_terminal();
    let width = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok()).unwrap_or(100);
    plimsoll_report::text::Style {
        colour: terminal
            && may_colour(
                std::env::var_os("NO_COLOR").as_deref(),
                std::env::var_os("TERM").as_deref(),
            ),
        width: if terminal { width } else { 100 },
    }
}

/// The exit code of a finished run; what is not valid is also said on stderr.
#[must_use]
pub fn code(finished: &Finished) -> u8 {
    let record = &finished.record;
    if record.verdict.kind != VerdictKind::Valid && !std::io::stdout().is_terminal() {
        let reasons = record.verdict.reasons.join("; ");
        note(&format!("plimsoll: {}: {reasons}", record.verdict.kind.name()));
    }
    exit::of_record(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_for_terminals_that_have_them() {
        let (dumb, good) = (Some(OsStr::new("dumb")), Some(OsStr::new("xterm")));
        assert!(may_colour(None, good) && may_colour(None, None));
        assert!(!may_colour(None, dumb));
        assert!(!may_colour(Some(OsStr::new("1")), good));
    }
}
