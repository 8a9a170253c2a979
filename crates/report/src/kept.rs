//! The run records in a folder: which there are, and which of them a rule removes.

use crate::error::RecordError;
use crate::folder::{NOT_ENDED, RUN_JSON};
use crate::load::read_run_json;
use plimsoll_core::clock::parse_utc;
use plimsoll_core::units::Span;
use plimsoll_core::verdict::VerdictKind;
use plimsoll_record::RunRecord;
use plimsoll_record::exit::of_record;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A run without an end is taken for running if its folder was written to within this time, s. A matrix writes after each
/// cell, and documents are written into an engine for a long time before.
const STILL_S: u64 = 3_600;

/// A run record, in short.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KeptRun {
    /// Its id.
    pub run_id: String,
    /// UTC, `YYYY-MM-DDTHH:MM:SSZ`.
    pub started_at: String,
    /// Name of its job in the catalogue, or of the command.
    pub job: String,
    /// Name that the user gave it; empty if none.
    pub name: String,
    /// Labels that the user gave it.
    pub labels: BTreeMap<String, String>,
    /// Result in a few words.
    pub headline: String,
    /// Verdict.
    pub verdict: VerdictKind,
    /// Exit code of the run.
    pub exit_code: u8,
    /// False if the run was killed, or still runs.
    pub ended: bool,
    /// Folder of the record.
    pub folder: PathBuf,
    /// Size of the folder, bytes.
    pub bytes: u64,
    /// Last write to the folder, s since the Unix epoch.
    #[serde(skip)]
    written_s: u64,
}

/// All run records of a folder.
#[derive(Debug, Default)]
pub struct Kept {
    /// Those that can be read, newest first.
    pub runs: Vec<KeptRun>,
    /// Reasons why others are left out.
    pub left_out: Vec<RecordError>,
}

/// Reads all run records in a folder of runs. `headline` returns the result of a record in a few words.
///
/// # Errors
/// If the folder does not exist or cannot be read.
pub fn kept_runs(
    runs_dir: &Path,
    headline: &dyn Fn(&RunRecord) -> String,
) -> Result<Kept, RecordError> {
    let entries = fs::read_dir(runs_dir).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => RecordError::NoRuns { path: runs_dir.to_owned() },
        _ => RecordError::Read { path: runs_dir.to_owned(), source },
    })?;
    let mut kept = Kept::default();
    for folder in entries.flatten().map(|entry| entry.path()) {
        if folder.join(RUN_JSON).is_file() {
            match kept_run(folder, headline) {
                Ok(run) => kept.runs.push(run),
                Err(error) => kept.left_out.push(error),
            }
        }
    }
    // Names of folders begin with the time as well, to the millisecond.
    let when =
        |run: &KeptRun| (run.started_at.clone(), run.folder.file_name().map(ToOwned::to_owned));
    kept.runs.sort_by_cached_key(|run| std::cmp::Reverse(when(run)));
    Ok(kept)
}

fn kept_run(
    folder: PathBuf,
    headline: &dyn Fn(&RunRecord) -> String,
) -> Result<KeptRun, RecordError> {
    let record = read_run_json(&folder)?;
    let unreadable = |source| RecordError::Read { path: folder.clone(), source };
    let (bytes, written_s) = size(&folder).map_err(unreadable)?;
    let catalogue = record.job_results.catalogue().map(|entry| entry.name.clone());
    let ended = !record.verdict.reasons.iter().any(|reason| reason == NOT_ENDED);
    Ok(KeptRun {
        headline: headline(&record),
        exit_code: of_record(&record),
        verdict: record.verdict.kind,
        run_id: record.run_id,
        started_at: record.started_at,
        job: catalogue.unwrap_or(record.job),
        name: record.name,
        labels: record.labels,
        ended,
        folder,
        bytes,
        written_s,
    })
}

/// Bytes of all files under a folder, and the last write to one of them, s since the Unix epoch.
fn size(folder: &Path) -> io::Result<(u64, u64)> {
    let (mut bytes, mut written_s) = (0, 0);
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let about = entry.metadata()?;
        written_s = written_s.max(u64::try_from(about.mtime()).unwrap_or_default());
        if about.is_dir() {
            let (more, later_s) = size(&entry.path())?;
            (bytes, written_s) = (bytes + more, written_s.max(later_s));
        } else {
            bytes += about.len();
        }
    }
    Ok((bytes, written_s))
}

/// A rule that selects run records to remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prune {
    /// All but the newest.
    Keep(usize),
    /// Those that started longer ago.
    OlderThan(Span),
}

/// The run records that a rule selects.
#[derive(Debug, Default, PartialEq)]
pub struct Selected<'a> {
    /// To be removed.
    pub removed: Vec<&'a KeptRun>,
    /// Left alone though the rule selects them, because they seem to be running.
    pub running: Vec<&'a KeptRun>,
}

impl Prune {
    /// Selects from `runs`, newest first. `now_us` is the time in microseconds since the Unix epoch.
    #[must_use]
    pub fn select<'a>(&self, runs: &'a [KeptRun], now_us: u64) -> Selected<'a> {
        let is_old = |run: &KeptRun, age: Span| {
            let started_us = parse_utc(&run.started_at);
            started_us.is_some_and(|at_us| now_us.saturating_sub(at_us) > age.ns / 1_000)
        };
        let fits = |(index, run): &(usize, &KeptRun)| match *self {
            Self::Keep(newest) => *index >= newest,
            Self::OlderThan(age) => is_old(run, age),
        };
        let runs = runs.iter().enumerate().filter(fits).map(|(_, run)| run);
        let is_running = |run: &&KeptRun| {
            !run.ended && (now_us / 1_000_000).saturating_sub(run.written_s) < STILL_S
        };
        let (running, removed) = runs.partition(is_running);
        Selected { removed, running }
    }
}

/// Removes a run record with everything in its folder. `run.json` goes last: if this is interrupted, the rest is still a
/// run record, which can be removed again.
///
/// # Errors
/// If the folder is not a run record any more, or cannot be removed.
pub fn remove(run: &KeptRun) -> Result<(), RecordError> {
    let failed = |source| RecordError::Remove { path: run.folder.clone(), source };
    // A link is left alone, and what it leads to as well.
    if !fs::symlink_metadata(&run.folder).map_err(failed)?.is_dir() {
        return Err(RecordError::NotAFolder { path: run.folder.clone() });
    }
    if read_run_json(&run.folder)?.run_id != run.run_id {
        return Err(RecordError::NoRecord { path: run.folder.clone() });
    }
    let emptied = || -> io::Result<()> {
        for entry in fs::read_dir(&run.folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                fs::remove_dir_all(entry.path())?;
            } else if entry.file_name() != RUN_JSON {
                fs::remove_file(entry.path())?;
            }
        }
        fs::remove_dir_all(&run.folder)
    };
    emptied().map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::RunFolder;
    use crate::samples;
    use plimsoll_record::RunRecord;

    const START_US: u64 = 1_795_294_102_123_456;
    const DAY_US: u64 = 86_400_000_000;

    /// Three runs, a day apart; the newest never ended.
    fn three(dir: &Path) {
        for day in 0..3 {
            let folder = RunFolder::create(dir, "load", START_US + day * DAY_US).unwrap();
            if day < 2 {
                let header = folder.header();
                let (run_id, started_at) = (header.run_id, header.started_at);
                let record = RunRecord { run_id, started_at, ..samples::good() };
                folder.finish(&record).unwrap();
            }
            fs::create_dir(folder.path().join("hooks")).unwrap();
            fs::write(folder.path().join("hooks/perf.txt"), "1234").unwrap();
        }
    }

    fn all(dir: &Path) -> Vec<KeptRun> {
        kept_runs(dir, &|record| record.job.clone()).unwrap().runs
    }

    #[test]
    fn runs_are_listed_newest_first_and_other_folders_are_none() {
        let dir = tempfile::tempdir().unwrap();
        three(dir.path());
        fs::create_dir(dir.path().join("notes")).unwrap();
        fs::create_dir(dir.path().join("foreign")).unwrap();
        fs::write(dir.path().join("foreign").join(RUN_JSON), r#"{"schema":"other/1"}"#).unwrap();
        let kept = kept_runs(dir.path(), &|_| String::new()).unwrap();
        let days: Vec<&str> = kept.runs.iter().map(|run| &run.started_at[8..10]).collect();
        assert_eq!(days, ["23", "22", "21"]);
        assert_eq!(kept.runs.iter().map(|run| run.ended).collect::<Vec<_>>(), [false, true, true]);
        assert!(kept.runs.iter().all(|run| run.bytes > 4));
        assert_eq!(kept.left_out.len(), 1);
        assert!(kept.left_out[0].to_string().contains("not a plimsoll run record"));
        assert!(kept_runs(&dir.path().join("nowhere"), &|_| String::new()).is_err());
    }

    #[test]
    fn a_rule_selects_by_number_or_by_age() {
        let dir = tempfile::tempdir().unwrap();
        three(dir.path());
        let mut runs = all(dir.path());
        let now_us = START_US + 3 * DAY_US;
        let days = |rule: Prune, runs: &[KeptRun]| {
            let selected = rule.select(runs, now_us);
            let day = |run: &&KeptRun| run.started_at[8..10].to_owned();
            (
                selected.removed.iter().map(day).collect::<Vec<_>>(),
                selected.running.iter().map(day).collect::<Vec<_>>(),
            )
        };
        let none: Vec<String> = Vec::new();
        // The files were written at the real time, which may be before or after that of the test.
        runs.iter_mut().for_each(|run| run.written_s = 0);
        assert_eq!(days(Prune::Keep(2), &runs), (vec!["21".to_owned()], none.clone()));
        assert_eq!(days(Prune::Keep(9), &runs), (none.clone(), none.clone()));
        let two_days = Prune::OlderThan(Span::seconds(2 * 86_400 - 60));
        assert_eq!(days(two_days, &runs).0, ["22", "21"]);
        assert_eq!(days(Prune::Keep(0), &runs).0.len(), 3);
        // One that was written to a minute ago may be running.
        runs.iter_mut().for_each(|run| run.written_s = now_us / 1_000_000 - 60);
        let (removed, running) = days(Prune::Keep(0), &runs);
        assert_eq!((removed.len(), running), (2, vec!["23".to_owned()]));
    }

    #[test]
    fn a_record_is_removed_with_its_files_and_nothing_else_is() {
        let dir = tempfile::tempdir().unwrap();
        three(dir.path());
        let runs = all(dir.path());
        let other = dir.path().join("notes");
        fs::create_dir(&other).unwrap();
        remove(&runs[2]).unwrap();
        assert!(!runs[2].folder.exists() && runs[1].folder.exists() && other.exists());
        // It was replaced after the list was made.
        fs::remove_file(runs[1].folder.join(RUN_JSON)).unwrap();
        assert!(remove(&runs[1]).is_err());
        assert!(runs[1].folder.join("hooks/perf.txt").exists());
        // A link to a record elsewhere.
        let elsewhere = tempfile::tempdir().unwrap();
        let moved = elsewhere.path().join("moved");
        fs::rename(&runs[0].folder, &moved).unwrap();
        std::os::unix::fs::symlink(&moved, &runs[0].folder).unwrap();
        assert!(remove(&runs[0]).unwrap_err().to_string().contains("not a folder"));
        assert!(moved.join(RUN_JSON).exists());
    }
}
