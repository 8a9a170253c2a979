//! Finding a record again, also one whose run was killed.

use crate::assemble::{Ending, RecordHeader, Tally, assemble};
use crate::error::RecordError;
use crate::intervals;
use crate::journal::{self, JournalRead};
use crate::periods::Periods;
use crate::plain::printable;
use crate::run_json::{INTERVALS, NOT_ENDED, RUN_JSON, read_run_json};
use plimsoll_core::units::Span;
use plimsoll_core::verdict::{Verdict, VerdictKind};
use plimsoll_record::{PercentileInterval, RunRecord};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// A record and where it came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The record.
    pub record: RunRecord,
    /// True if it was made from the journal, because the run never wrote its end.
    pub cut: bool,
    /// Its folder.
    pub folder: PathBuf,
}

/// Writes out what could steer a terminal in texts that pages print as they are: in a record of plimsoll they are plimsoll's own words,
/// and a file may come from elsewhere.
fn tame(record: &mut RunRecord) {
    record.started_at = printable(&record.started_at);
    record.generator.wait = printable(&record.generator.wait);
    for slo in record.slo.values_mut() {
        (slo.limit, slo.unit) = (printable(&slo.limit), printable(&slo.unit));
    }
    for one in &mut record.assertions {
        for text in
            [&mut one.assertion, &mut one.scope, &mut one.metric, &mut one.condition, &mut one.unit]
        {
            *text = printable(text);
        }
    }
    for interval in record.intervals.values_mut() {
        if let PercentileInterval::Missing { reason } = interval {
            *reason = printable(reason);
        }
    }
}

/// Reads the record in `folder`; the path of its `run.json` will do as well.
///
/// When the run was cut (`kill -9`, a power cut) or is still running, the record is made from the early
/// `run.json` and the journal: partial, ending with the last whole second.
///
/// # Errors
/// Not a folder, no `run.json` in it, a newer or foreign schema, damaged JSON; never because of the journal's
/// contents.
pub fn load(folder: &Path) -> Result<Loaded, RecordError> {
    let folder = match folder.file_name() {
        Some(name) if name == RUN_JSON && folder.is_file() => {
            folder.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
        }
        _ => folder,
    };
    let early = read_run_json(folder)?;
    let cut = early.verdict.kind == VerdictKind::Partial
        && early.verdict.reasons.iter().any(|reason| reason == NOT_ENDED);
    let mut record = if cut { rebuild(folder, &early)? } else { early };
    tame(&mut record);
    Ok(Loaded { record, cut, folder: folder.to_owned() })
}

/// The folder of the run in `runs_dir` that began last.
///
/// # Errors
/// When `runs_dir` cannot be read or holds no record.
pub fn latest(runs_dir: &Path) -> Result<PathBuf, RecordError> {
    let no_runs = || RecordError::NoRuns { path: runs_dir.to_owned() };
    let entries = match fs::read_dir(runs_dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Err(no_runs()),
        Err(source) => return Err(RecordError::Read { path: runs_dir.to_owned(), source }),
    };
    // Names begin with the time of the start, so the last name is the last run.
    entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.join(RUN_JSON).is_file())
        .max_by(|a, b| a.file_name().cmp(&b.file_name()))
        .ok_or_else(no_runs)
}

fn rebuild(folder: &Path, early: &RunRecord) -> Result<RunRecord, RecordError> {
    let header = RecordHeader::of(early);
    let mut tally = Tally::new(&header);
    let mut periods = Periods::default();
    let found = journal::read(&folder.join(INTERVALS), |interval| {
        tally.add(interval);
        if header.is_measured(interval.phase) {
            periods.add(interval);
        }
    })?;
    tally.cut();
    let (totals, mut phases) = tally.finish();
    // The journal counts from the start of the measured stretch, phases from the start of the run.
    phases.iter_mut().for_each(|phase| phase.from_s += warmup_s(early));
    let end_s = found.end_ns as f64 / 1e9;
    let reason = format!("ends after {end_s:.1} s: the process was killed or is still running");
    let ending = Ending {
        verdict: Verdict::new(VerdictKind::Partial, vec![reason]),
        warnings: warnings(&found),
        // What was put into the early record, such as the job it came from, is true of the cut one too.
        job_results: early.job_results.clone(),
        ..Ending::default()
    };
    let mut record = assemble(&header, &totals, phases, ending);
    record.intervals = intervals::of(periods, &record);
    Ok(record)
}

/// Length of the warm-up that was asked for, s; no journal is kept of it.
fn warmup_s(early: &RunRecord) -> f64 {
    let asked = early.scenario.get("warmup").and_then(Value::as_str);
    asked.and_then(|text| text.parse::<Span>().ok()).map_or(0.0, Span::as_seconds)
}

fn warnings(found: &JournalRead) -> Vec<String> {
    let mut warnings = Vec::new();
    if found.torn_end {
        warnings.push(format!("the last line of {INTERVALS} was cut short and is left out"));
    }
    if found.damaged > 0 {
        warnings.push(format!(
            "{} damaged line(s) of {INTERVALS} are left out, the first is line {}",
            found.damaged, found.first_damaged
        ));
    }
    warnings
}

#[cfg(test)]
mod tests;
