//! The record of a matrix: so far after each cell, and whole at the end.

use super::Matrix;
use crate::command::recall::recall;
use crate::command::state;
use crate::query::Query;
use crate::spec::{EngineSpec, MatrixSpec, Place};
use anyhow::Result;
use plimsoll_core::assertion::Metric;
use plimsoll_core::clock::{format_utc, now_ns, wall_us};
use plimsoll_core::interval::Interval;
use plimsoll_core::schedule::Pause;
use plimsoll_core::secrets::without_address_secrets;
use plimsoll_core::verdict::{Verdict, VerdictKind};
use plimsoll_engine::health::{machine, rss_max_bytes};
use plimsoll_engine::target::Target;
use plimsoll_job::keeping::{Finished, agents_of, judged};
use plimsoll_job::output::lost_file;
use plimsoll_job::postgres::{Address, is_address};
use plimsoll_job::signals::Stopped;
use plimsoll_job::tool;
use plimsoll_record::search::{EngineRecord, QueryRecord, SearchResult, SizeRecord};
use plimsoll_record::{AssertionResult, Generator, JobResults, Judge, RunRecord, TargetInfo};
use plimsoll_report::assemble::{Ending, PhasePlan, RecordHeader, Tally, assemble};
use plimsoll_report::folder::amend;
use plimsoll_workloads::rows::fill_text;

/// The key of a matrix in its record.
pub const KEY: &str = "search";

/// The engines of a matrix, with what earlier sittings learnt of them.
#[must_use]
pub fn engines(spec: &MatrixSpec, known: &[EngineRecord]) -> Vec<EngineRecord> {
    let own = |engine: &EngineSpec| EngineRecord {
        name: engine.name.clone(),
        dialect: engine.dialect.name().to_owned(),
        place: match &engine.place {
            Place::Address(url) => without_address_secrets(url),
            Place::Serve(arguments) => format!("plimsoll serve {}", arguments.join(" ")),
        },
        ..EngineRecord::default()
    };
    let met = |engine: EngineRecord| {
        known.iter().find(|other| other.name == engine.name).cloned().unwrap_or(engine)
    };
    spec.engines.iter().map(|engine| met(own(engine))).collect()
}

fn header(matrix: &Matrix<'_>) -> RecordHeader {
    let spec = matrix.spec;
    let own = matrix.state.folder.as_ref().map(plimsoll_report::folder::RunFolder::header);
    let place = |engine: &EngineSpec| match &engine.place {
        Place::Address(url) => format!("{}={}", engine.name, without_address_secrets(url)),
        Place::Serve(_) => engine.name.clone(),
    };
    let places: Vec<String> = spec.engines.iter().map(place).collect();
    RecordHeader {
        tool: tool::own(),
        command: tool::command(),
        job: KEY.to_owned(),
        naming: matrix.naming.clone(),
        scenario: serde_json::to_value(without_secrets(spec)).unwrap_or_default(),
        target: TargetInfo {
            url: places.join(", "),
            same_host: spec.engines.iter().any(|engine| is_here(&engine.place)),
            addresses: Vec::new(),
        },
        machine: machine(),
        class_names: matrix.list.iter().map(|query| query.name.clone()).collect(),
        phases: vec![PhasePlan {
            name: "cells".to_owned(),
            measured: true,
            schedule: serde_json::json!({ "order": spec.order, "users": spec.users }),
            from_s: 0.0,
            duration_s: None,
        }],
        ..own.unwrap_or_else(|| RecordHeader {
            started_at: format_utc(wall_us()),
            ..RecordHeader::default()
        })
    }
}

/// The way users come and what they do between requests; empty where all are there at once and ask at once.
fn users_come(spec: &MatrixSpec) -> String {
    let mut said: Vec<String> = spec.profile.iter().cloned().collect();
    if spec.think != Pause::None {
        said.push(format!("think {}", spec.think));
    }
    if spec.pace.ns > 0 {
        said.push(format!("pace {}", spec.pace));
    }
    if let Some(rows) = &spec.rows {
        said.push(format!("rows of {}", rows.file.display()));
    }
    said.join(", ")
}

/// Targets that have an address before the matrix begins.
pub fn targets(spec: &MatrixSpec) -> Vec<Target> {
    spec.engines.iter().filter_map(|engine| target(&engine.place)).collect()
}

fn target(place: &Place) -> Option<Target> {
    match place {
        Place::Serve(_) => None,
        Place::Address(url) if is_address(url) => {
            Address::parse(url).ok().map(|own| Target::resolve(&own.host, own.port))
        }
        Place::Address(url) => {
            let url = plimsoll_job::url::Url::parse(url).ok()?;
            Some(Target::resolve(&url.authority.host, url.authority.port))
        }
    }
}

fn is_here(place: &Place) -> bool {
    matches!(place, Place::Serve(_)) || target(place).is_some_and(|own| own.is_this_machine())
}

/// The matrix as a record may keep it.
#[must_use]
pub fn without_secrets(spec: &MatrixSpec) -> MatrixSpec {
    let scenario = plimsoll_core::scenario::Scenario {
        headers: spec.headers.clone(),
        ..plimsoll_core::scenario::Scenario::default()
    };
    let mut engines = spec.engines.clone();
    for engine in &mut engines {
        if let Place::Address(url) = &mut engine.place {
            *url = without_address_secrets(url);
        }
    }
    MatrixSpec { headers: scenario.without_secrets().headers, engines, ..spec.clone() }
}

/// Writes the early record.
///
/// # Errors
/// When it cannot be written: a matrix that leaves no record was for nothing.
pub fn announce(matrix: &Matrix<'_>) -> Result<()> {
    if let Some(folder) = &matrix.state.folder {
        folder.begin(&header(matrix))?;
        so_far(matrix)?;
    }
    Ok(())
}

/// Puts what is finished into the early record, so that a matrix that is killed can be reported.
///
/// # Errors
/// When it cannot be written.
pub fn so_far(matrix: &Matrix<'_>) -> Result<()> {
    if let Some(folder) = &matrix.state.folder {
        amend(folder.path(), JobResults::of(result(matrix)))?;
    }
    Ok(())
}

fn result(matrix: &Matrix<'_>) -> SearchResult {
    let spec = matrix.spec;
    SearchResult {
        origin: "measured".to_owned(),
        corpus: spec.corpus.clone(),
        order: spec.order.name().to_owned(),
        users_come: users_come(spec),
        timeout_s: spec.timeout.as_seconds(),
        engines: matrix.engines.clone(),
        sizes: sizes(matrix),
        groups: spec.groups.clone(),
        users: spec.users.clone(),
        queries: matrix
            .list
            .iter()
            .map(|query| QueryRecord {
                name: query.name.clone(),
                kind: query.clause.kind().to_owned(),
                repeat: query.repeat,
            })
            .collect(),
        cells: matrix.parts().map(|part| part.cell.clone()).collect(),
        loads: matrix.state.loads.clone(),
        probes: matrix.state.probes.clone(),
        answers: matrix.state.answers.clone(),
        disagreements: SearchResult::find_disagreements(&matrix.state.answers),
        recall: Vec::new(),
        time: matrix.spent(),
    }
}

/// The sizes; before the texts are made, what is known of them without.
fn sizes(matrix: &Matrix<'_>) -> Vec<SizeRecord> {
    let size = |(index, &bytes): (usize, &u64)| match matrix.texts.get(index) {
        Some(text) => text.record(bytes),
        None => {
            SizeRecord { label: crate::command::text::label(bytes), bytes, ..SizeRecord::default() }
        }
    };
    matrix.spec.sizes.iter().enumerate().map(size).collect()
}

/// Writes the whole record.
///
/// # Errors
/// When this program fails itself. That the record cannot be kept is reported, and is no reason not to print it.
pub fn finish(matrix: Matrix<'_>, stopped: Option<&Stopped>) -> Result<Finished> {
    let header = header(&matrix);
    let mut result = result(&matrix);
    let list = first_rows(&matrix)?;
    result.recall = recall(&result.answers, &matrix.texts, &list)?;
    let totals = state::totals(matrix.parts(), matrix.list.len());
    let cells = &result.cells;
    let window_s: f64 = cells.iter().flat_map(|cell| &cell.repeats).map(|one| one.window_s).sum();
    let mut ending = Ending {
        duration_s: Some(window_s),
        generator: Generator {
            cpu_s: cells.iter().map(|cell| cell.generator_cpu_s).sum(),
            threads: 1,
            busiest_thread: cells.iter().map(|cell| cell.generator_busiest).fold(0.0, f64::max),
            rss_max_bytes: rss_max_bytes(),
            ..Generator::default()
        },
        verdict: verdict(&result, matrix.state.cells.len(), stopped),
        warnings: warnings(&result, header.target.same_host),
        job_results: JobResults::of(result),
        ..Ending::default()
    };
    let reports = agents_of(&mut ending.job_results, &mut ending.warnings);
    let mut record = whole(&header, &totals, window_s, ending);
    judged(&mut record, &reports);
    record.assertions = asserted(&matrix, &header);
    let Matrix { state, watching, start_ns, .. } = matrix;
    let resources = watching.finish_after(now_ns().saturating_sub(start_ns));
    resources.into_iter().for_each(|resources| record.job_results.put(resources));
    let Some(folder) = &state.folder else {
        return Ok(Finished { record, folder: None, course: None });
    };
    // One that was stopped stays unfinished on disk, so that it can be gone on with.
    let written = match stopped {
        None => folder.finish(&record).map_err(anyhow::Error::from),
        Some(_) => amend(folder.path(), record.job_results.clone()).map_err(anyhow::Error::from),
    };
    let kept = match written {
        Ok(()) => Some(folder.path().to_owned()),
        Err(error) => {
            lost_file(&format!("the record could not be written: {error:#}"));
            None
        }
    };
    Ok(Finished { record, folder: kept, course: None })
}

/// The queries as they were asked once: with the first row, where there are rows.
fn first_rows(matrix: &Matrix<'_>) -> Result<Vec<Query>> {
    let Some(rows) = &matrix.rows else { return Ok(matrix.list.clone()) };
    let filled = |query: &Query| {
        let clause = query.clause.map_texts(&|text| fill_text(text, rows, 0))?;
        Ok(Query { clause, ..query.clone() })
    };
    matrix.list.iter().map(filled).collect()
}

/// The record of these totals, over a measured time, s.
fn whole(header: &RecordHeader, totals: &Interval, measured_s: f64, ending: Ending) -> RunRecord {
    let mut tally = Tally::new(header);
    tally.add(totals);
    let (_, mut phases) = tally.finish();
    phases.iter_mut().for_each(|phase| phase.duration_s = measured_s);
    assemble(header, totals, phases, ending)
}

/// Results of each assertion for each cell. One that is withheld has neither times nor a rate.
fn asserted(matrix: &Matrix<'_>, header: &RecordHeader) -> Vec<AssertionResult> {
    let mut all = Vec::new();
    if matrix.spec.assertions.is_empty() {
        return all;
    }
    let queries = matrix.list.len();
    for part in &matrix.state.cells {
        let cell = &part.cell;
        let totals = part.totals.as_ref().and_then(|line| Interval::try_from(line).ok());
        let totals = totals.unwrap_or_else(|| Interval::new(queries));
        let window_s: f64 = cell.repeats.iter().map(|one| one.window_s).sum();
        let ending = Ending { duration_s: Some(window_s), ..Ending::default() };
        let mut record = whole(header, &totals, window_s, ending);
        record.rate.ok_per_s = cell.raw_ok_per_s;
        for assertion in &matrix.spec.assertions {
            let figure = matches!(assertion.metric, Metric::Time(..) | Metric::Rate);
            for mut one in assertion.judge(&record) {
                if figure && cell.ok_per_s.is_none() {
                    (one.actual, one.held) = (None, false);
                }
                one.scope = format!("{}: {}", cell.key, one.scope);
                all.push(one);
            }
        }
    }
    all
}

fn verdict(result: &SearchResult, done: usize, stopped: Option<&Stopped>) -> Verdict {
    if let Some(stopped) = stopped {
        let all = result.cells_planned();
        let reason = format!(
            "stopped {}, with {done} of {all} cells; the same command resumes there",
            stopped.during
        );
        return Verdict::new(VerdictKind::Partial, vec![reason]);
    }
    if result.cells.iter().all(|cell| cell.ok_per_s.is_none()) {
        let first = result.cells.iter().find_map(|cell| cell.reason.clone()).unwrap_or_default();
        let reasons = vec![format!("no cell has a number; the first: {first}")];
        return Verdict::new(VerdictKind::TargetFailed, reasons);
    }
    Verdict::default()
}

/// Time outside cells beyond this share is reported.
const WASTE: f64 = 0.1;
/// A cell whose rate and mean response time differ by more than this share does not keep its own books.
const LITTLE: f64 = 0.2;

fn warnings(result: &SearchResult, same_host: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    if same_host {
        warnings.push(
            "engines and generator share this machine: they take CPU time from each other"
                .to_owned(),
        );
    }
    let odd: Vec<&plimsoll_record::search::Cell> = result
        .cells
        .iter()
        .filter(|cell| cell.ok_per_s.is_some())
        .filter(|cell| cell.little.is_some_and(|ratio| (ratio - 1.0).abs() > LITTLE))
        .collect();
    if let Some(first) = odd.first() {
        warnings.push(format!(
            "in {} cell(s) users / rate and the mean response time differ by more than 20 % (first: {}): the \
             window is short for such slow requests; use a longer --duration",
            odd.len(),
            first.key
        ));
    }
    let waste = result.time.outside_cells();
    if waste > WASTE && result.time.cells > 0 {
        warnings.push(format!(
            "{:.0} % of the time without ingesting was spent outside cells; use a longer --duration",
            waste * 100.0
        ));
    }
    warnings
}
