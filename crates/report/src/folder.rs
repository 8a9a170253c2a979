//! The folder of a run: made before the first request, complete after the last.

use crate::assemble::{Ending, RecordHeader, assemble};
use crate::error::RecordError;
use crate::journal::Journal;
use crate::json;
use crate::naming::Naming;
use crate::run_json::{NOT_ENDED, read_run_json};
use plimsoll_core::clock::{format_utc, parse_utc};
use plimsoll_core::interval::Interval;
use plimsoll_core::rng::splitmix64;
use plimsoll_core::verdict::{Verdict, VerdictKind};
use plimsoll_disk::{Disk, Real, durable};
use plimsoll_record::{JobResults, PhaseRecord, RunRecord};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use crate::run_json::{FAILURES, INTERVALS, RUN_JSON};

/// A file that each new record's path is appended to, a line each, when this variable of the environment
/// names one: how `plimsoll run JOB` learns where the commands of a job keep their records.
pub const RECORDS_TO: &str = "PLIMSOLL_RECORDS_TO";

/// The job whose name new records are to have in the names of their folders, when this variable of the environment names
/// one: a job's commands are called otherwise.
pub const RECORDS_FOR: &str = "PLIMSOLL_RECORDS_FOR";

/// Longest part of a folder's name that the name of a job or a run takes, characters.
const WORD_CHARS_MAX: usize = 64;
/// Number of other ids that are tried when a folder exists already.
const ATTEMPTS_MAX: u64 = 100;
/// Permissions of a run's folder: only its owner can look into it, since a record has samples of requests and replies.
const PERMISSIONS: u32 = 0o700;

/// The folder of one run.
#[derive(Clone, Debug)]
pub struct RunFolder {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    run_id: String,
    job: String,
    naming: Naming,
    started_wall_us: u64,
}

impl RunFolder {
    /// Makes the folder of a run without a name or labels; see [`RunFolder::create_named`].
    ///
    /// # Errors
    /// When the folder cannot be made or written: permissions, a full disk, a file in the way.
    pub fn create(
        runs_dir: &Path,
        job: &str,
        started_wall_us: u64,
    ) -> Result<RunFolder, RecordError> {
        Self::create_named(runs_dir, job, Naming::default(), started_wall_us)
    }

    /// Makes `<runs_dir>/<UTC time>-<job>-<id>/`, or `<UTC time>-<job>-<name>-<id>/` for a run with a name, with a first
    /// `run.json`, marked partial.
    ///
    /// `started_wall_us` is the run's start in microseconds since the Unix epoch. Names sort by it.
    ///
    /// # Errors
    /// As [`RunFolder::create`].
    pub fn create_named(
        runs_dir: &Path,
        job: &str,
        naming: Naming,
        started_wall_us: u64,
    ) -> Result<RunFolder, RecordError> {
        Self::create_on(Arc::new(Real), runs_dir, job, naming, started_wall_us)
    }

    /// The same on any disk. When it returns, the folder and its `run.json` are on it.
    ///
    /// # Errors
    /// As [`RunFolder::create`].
    pub fn create_on(
        disk: Arc<dyn Disk>,
        runs_dir: &Path,
        job: &str,
        naming: Naming,
        started_wall_us: u64,
    ) -> Result<RunFolder, RecordError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| RecordError::Create { path, source }
        };
        durable::create_folders(&*disk, runs_dir).map_err(failed(runs_dir))?;
        let named = std::env::var(RECORDS_FOR).ok();
        let job_word = folder_word(named.as_deref().unwrap_or(job));
        let mut stem = format!("{}-{job_word}", folder_time(started_wall_us));
        if !naming.name.is_empty() {
            stem = format!("{stem}-{}", folder_word(&naming.name));
        }
        let salt = splitmix64(started_wall_us ^ (u64::from(std::process::id()) << 32));
        for attempt in 0..ATTEMPTS_MAX {
            let run_id = format!("{:08x}", splitmix64(salt.wrapping_add(attempt)) >> 32);
            let path = runs_dir.join(format!("{stem}-{run_id}"));
            match disk.create_folder(&path, PERMISSIONS) {
                Ok(()) => {
                    let job = job.to_owned();
                    let folder = RunFolder { disk, path, run_id, job, naming, started_wall_us };
                    let begun = folder.begin(&folder.header()).and_then(|()| {
                        durable::sync_name(&*folder.disk, &folder.path)
                            .map_err(failed(&folder.path))
                    });
                    // Nothing was sent yet, so there is no result that could be printed all the same.
                    if let Err(error) = begun {
                        let _ = folder.disk.remove_folder(&folder.path);
                        return Err(match error {
                            RecordError::Write { source, .. } => failed(&folder.path)(source),
                            other => other,
                        });
                    }
                    announce(&folder.path);
                    return Ok(folder);
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(failed(&path)(e)),
            }
        }
        Err(failed(&runs_dir.join(stem))(io::ErrorKind::AlreadyExists.into()))
    }

    /// Takes up the folder of a run that was cut, to continue with it.
    ///
    /// # Errors
    /// When there is no record in it.
    pub fn reopen(path: &Path) -> Result<RunFolder, RecordError> {
        let record = crate::load::load(path)?.record;
        let folder = RunFolder {
            disk: Arc::new(Real),
            path: path.to_owned(),
            run_id: record.run_id,
            job: record.job,
            naming: Naming { name: record.name, labels: record.labels },
            started_wall_us: parse_utc(&record.started_at).unwrap_or_default(),
        };
        announce(&folder.path);
        Ok(folder)
    }

    /// Returns the disk that it is on.
    #[must_use]
    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Eight hexadecimal digits, unique among the runs of a folder.
    #[must_use]
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// The run's start, microseconds since the Unix epoch.
    #[must_use]
    pub fn started_wall_us(&self) -> u64 {
        self.started_wall_us
    }

    /// A header with the run's id, job, name, labels and start; the caller adds the rest.
    #[must_use]
    pub fn header(&self) -> RecordHeader {
        RecordHeader {
            run_id: self.run_id.clone(),
            job: self.job.clone(),
            naming: self.naming.clone(),
            started_at: format_utc(self.started_wall_us),
            ..RecordHeader::default()
        }
    }

    /// Writes the early `run.json`. Called again whenever more is known: classes, phases, the target.
    ///
    /// # Errors
    /// When it cannot be written; the one before stays as it was.
    pub fn begin(&self, header: &RecordHeader) -> Result<(), RecordError> {
        let planned = header.phases.iter().map(|plan| PhaseRecord {
            name: plan.name.clone(),
            measured: plan.measured,
            schedule: plan.schedule.clone(),
            from_s: plan.from_s,
            duration_s: plan.duration_s.unwrap_or_default(),
            ..PhaseRecord::default()
        });
        let ending = Ending {
            verdict: Verdict::new(VerdictKind::Partial, vec![NOT_ENDED.to_owned()]),
            ..Ending::default()
        };
        let nothing = Interval::new(header.class_names.len());
        self.write_record(&assemble(header, &nothing, planned.collect(), ending))
    }

    /// Opens the journal; `header` names the classes and says which phases are measured.
    ///
    /// # Errors
    /// When its files cannot be made.
    pub fn journal(&self, header: &RecordHeader) -> Result<Journal, RecordError> {
        Journal::create(&self.disk, &self.path, (&self.run_id, self.started_wall_us), header)
    }

    /// Puts the finished record in the place of the early one, so that there is always a whole `run.json`.
    ///
    /// # Errors
    /// When it cannot be written. The caller still holds the record and prints it.
    pub fn finish(&self, record: &RunRecord) -> Result<(), RecordError> {
        self.write_record(record)
    }

    fn write_record(&self, record: &RunRecord) -> Result<(), RecordError> {
        let text = json::pretty(record);
        // A figure that is no number is written as null, and null is read as no figure.
        debug_assert_eq!(
            plimsoll_record::read(text.as_bytes()).err(),
            None,
            "cannot be read again"
        );
        replace(&*self.disk, &self.path, &text)
    }
}

/// Puts sections into the `run.json` of a run that has ended or was cut, each in the place of one with the same key.
///
/// # Errors
/// When the record cannot be read or written; the one before stays as it was.
pub fn amend(folder: &Path, results: JobResults) -> Result<(), RecordError> {
    let mut record = read_run_json(folder)?;
    record.job_results.extend(results);
    replace(&Real, folder, &json::pretty(&record))
}

/// Puts a new `run.json` in the place of the old one in one step. When it returns, the new one is on the disk.
fn replace(disk: &dyn Disk, folder: &Path, text: &str) -> Result<(), RecordError> {
    let path = folder.join(RUN_JSON);
    durable::replace(disk, &folder.join("run.json.new"), &path, text.as_bytes())
        .map_err(|source| RecordError::Write { path, source })
}

/// Reports the folder of the record. A failure to report it does not stop the run.
fn announce(folder: &Path) {
    let Some(file) = std::env::var_os(RECORDS_TO) else { return };
    let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    if let Ok(mut file) = fs::OpenOptions::new().append(true).open(file) {
        let _ = writeln!(file, "{}", folder.display());
    }
}

/// `20261121T204822.123Z`: sorts by time, has no colon, needs no quoting.
fn folder_time(wall_us: u64) -> String {
    let utc = format_utc(wall_us);
    let compact: String = utc.chars().filter(|c| !matches!(c, '-' | ':' | 'Z')).collect();
    format!("{compact}.{:03}Z", wall_us / 1_000 % 1_000)
}

/// A name as a part of a folder's name: letters, digits, `_` and `-`.
fn folder_word(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let name: String = name.chars().take(WORD_CHARS_MAX).map(plain).collect();
    let name = name.trim_matches('-');
    if name.is_empty() { "run".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::load;
    use plimsoll_record::catalogue::{CatalogueEntry, Hooks};

    const START_US: u64 = 1_795_294_102_123_456;

    #[test]
    fn a_folder_is_readable_from_its_first_moment() {
        let dir = tempfile::tempdir().unwrap();
        let folder = RunFolder::create(&dir.path().join("runs"), "my job/x", START_US).unwrap();
        let name = folder.path().file_name().unwrap().to_str().unwrap().to_owned();
        assert_eq!(name, format!("20261121T204822.123Z-my-job-x-{}", folder.run_id()));
        let loaded = load(folder.path()).unwrap();
        assert!(loaded.cut);
        assert_eq!(loaded.record.job, "my job/x");
        assert_eq!(loaded.record.started_at, "2026-11-21T20:48:22Z");
        assert_eq!(loaded.record.verdict.kind, VerdictKind::Partial);
    }

    #[test]
    fn the_name_of_a_run_is_in_its_folder_and_in_its_record_from_the_first_moment() {
        let dir = tempfile::tempdir().unwrap();
        let labels = [("commit".to_owned(), "3f2a".to_owned())].into();
        let naming = Naming { name: "before: 2/4".to_owned(), labels };
        let folder = RunFolder::create_named(dir.path(), "load", naming.clone(), START_US).unwrap();
        let name = folder.path().file_name().unwrap().to_str().unwrap().to_owned();
        assert_eq!(name, format!("20261121T204822.123Z-load-before--2-4-{}", folder.run_id()));
        let record = load(folder.path()).unwrap().record;
        assert_eq!((&record.name, &record.labels), (&naming.name, &naming.labels));
        assert_eq!(RunFolder::reopen(folder.path()).unwrap().header().naming, naming);
    }

    #[test]
    fn a_cut_run_can_be_taken_up_again() {
        let dir = tempfile::tempdir().unwrap();
        let first = RunFolder::create(dir.path(), "search", START_US).unwrap();
        let again = RunFolder::reopen(first.path()).unwrap();
        assert_eq!((again.run_id(), again.path()), (first.run_id(), first.path()));
        assert_eq!(again.header(), first.header());
        assert!(RunFolder::reopen(dir.path()).is_err());
    }

    #[test]
    fn what_is_put_in_later_leaves_the_rest_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let folder = RunFolder::create(dir.path(), "load", START_US).unwrap();
        folder.finish(&crate::samples::good()).unwrap();
        let entry = CatalogueEntry { name: "x".to_owned(), ..CatalogueEntry::default() };
        let more = JobResults::of(entry.clone()).with(Hooks::default());
        amend(folder.path(), more.clone()).unwrap();
        let loaded = load(folder.path()).unwrap().record;
        assert_eq!(loaded.job_results.catalogue(), Some(&entry));
        assert_eq!(loaded, RunRecord { job_results: more, ..crate::samples::good() });
        assert!(!folder.path().join("run.json.new").exists());
    }

    #[test]
    fn two_runs_of_the_same_moment_have_folders_of_their_own() {
        let dir = tempfile::tempdir().unwrap();
        let first = RunFolder::create(dir.path(), "load", START_US).unwrap();
        let second = RunFolder::create(dir.path(), "load", START_US).unwrap();
        assert_ne!(first.path(), second.path());
        assert_ne!(first.run_id(), second.run_id());
    }

    #[test]
    fn a_file_in_the_way_is_one_clear_line() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("runs");
        fs::write(&file, "x").unwrap();
        let message = RunFolder::create(&file, "load", START_US).unwrap_err().to_string();
        assert!(message.starts_with("cannot create the run record"), "{message}");
        assert!(message.contains("--runs DIR") && !message.contains('\n'), "{message}");
    }

    #[test]
    fn a_record_that_cannot_be_written_leaves_the_early_one() {
        let dir = tempfile::tempdir().unwrap();
        let folder = RunFolder::create(dir.path(), "load", START_US).unwrap();
        // A folder in the temporary file's place fails for root too, unlike permissions.
        fs::create_dir(folder.path().join("run.json.new")).unwrap();
        let record = load(folder.path()).unwrap().record;
        let message = folder.finish(&record).unwrap_err().to_string();
        assert!(message.starts_with("cannot write") && message.contains("run.json"), "{message}");
        assert!(load(folder.path()).is_ok());
    }
}
