//! The folder of a matrix while it grows: each finished part in a file of its own, so that a matrix that was killed
//! goes on where it was.

use super::alone::Alone;
use crate::spec::MatrixSpec;
use anyhow::{Context, Result};
use plimsoll_core::interval::{Interval, IntervalLine};
use plimsoll_disk::{Real, durable};
use plimsoll_job::usage::usage;
use plimsoll_record::search::{Answer, Cell, EngineRecord, Load, Probe, TimeSpent};
use plimsoll_report::folder::{RUN_JSON, RunFolder};
use plimsoll_report::load::load;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// The matrix as it was asked for.
const SPEC: &str = "spec.json";
/// The folder of the parts inside the record's.
const PARTS: &str = "matrix";

/// A finished cell with what its requests recorded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CellPart {
    /// The cell.
    pub cell: Cell,
    /// Its histograms and counts; none where nothing was sent.
    pub totals: Option<IntervalLine>,
}

/// Results of earlier sessions, and those of this one.
pub struct State {
    /// The record's folder; none where no record is kept.
    pub folder: Option<RunFolder>,
    /// Finished cells, in the order of their files.
    pub cells: Vec<CellPart>,
    /// Texts loaded.
    pub loads: Vec<Load>,
    /// Probes.
    pub probes: Vec<Probe>,
    /// Engines that were met in earlier sittings.
    pub engines: Vec<EngineRecord>,
    /// Answers to queries asked once.
    pub answers: Vec<Answer>,
    /// Time spent in earlier sittings.
    pub before: TimeSpent,
    /// True if this is not the first sitting.
    pub resumed: bool,
    /// Held as long as this process is at the folder.
    _alone: Option<Alone>,
}

/// The lock of a folder, among its parts.
const LOCK: &str = "lock";

impl State {
    /// Nothing finished, nothing kept.
    fn empty(folder: Option<RunFolder>) -> Self {
        Self {
            folder,
            cells: Vec::new(),
            loads: Vec::new(),
            probes: Vec::new(),
            engines: Vec::new(),
            answers: Vec::new(),
            before: TimeSpent::default(),
            resumed: false,
            _alone: None,
        }
    }

    /// A new matrix; with no folder nothing is kept.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn begin(folder: Option<RunFolder>, spec: &MatrixSpec) -> Result<Self> {
        let mut state = Self::empty(folder);
        if let (Some(parts), Some(folder)) = (state.parts(), &state.folder) {
            let shown = || parts.display().to_string();
            let disk = &**folder.disk();
            durable::create_folders(disk, &parts).with_context(shown)?;
            let alone = Alone::take(disk, &parts.join(LOCK)).with_context(shown)?;
            state._alone = alone;
        }
        state.put(SPEC, spec)?;
        Ok(state)
    }

    /// Takes up a matrix where it was.
    ///
    /// # Errors
    /// When it is none, is finished, or is another matrix than what is asked for now.
    pub fn resume(path: &Path, spec: &MatrixSpec) -> Result<Self> {
        let shown = path.display();
        let Some(before) = spec_of(path) else {
            return Err(usage(format!(
                "--resume {shown}: no unfinished matrix there; name its record's folder"
            )));
        };
        if !load(path)?.cut {
            return Err(usage(format!(
                "--resume {shown}: that matrix is finished; see plimsoll report {shown}"
            )));
        }
        let changed = spec.differences(&before);
        if !changed.is_empty() {
            return Err(usage(format!(
                "--resume {shown}: this folder belongs to a different matrix ({}); use the same settings, or start a new one without --resume",
                changed.join("; ")
            )));
        }
        let parts = path.join(PARTS);
        let alone =
            Alone::take(&Real, &parts.join(LOCK)).with_context(|| parts.display().to_string())?;
        if alone.is_none() {
            return Err(usage(format!(
                "{shown}: another process is measuring this matrix; wait until it ends, or start another matrix with --fresh"
            )));
        }
        let mut state = Self::empty(Some(RunFolder::reopen(path)?));
        state._alone = alone;
        state.cells = read_all(&parts, "cell-")?;
        state.loads = read_all(&parts, "load-")?;
        state.probes = read_all(&parts, "probe-")?;
        state.engines = read_all(&parts, "engine-")?;
        let answers: Vec<Vec<Answer>> = read_all(&parts, "answers-")?;
        state.answers = answers.concat();
        state.before = read_all(&parts, "time.json")?.pop().unwrap_or_default();
        state.resumed = true;
        Ok(state)
    }

    fn parts(&self) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.path().join(PARTS))
    }

    /// Keeps a part, whole or not at all. When it returns, the part is on the disk.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn put<T: Serialize>(&self, name: &str, part: &T) -> Result<()> {
        let (Some(folder), Some(own)) = (self.parts(), &self.folder) else { return Ok(()) };
        let (path, temporary) = (folder.join(name), folder.join(format!(".{name}.new")));
        let text = serde_json::to_vec(part).with_context(|| path.display().to_string())?;
        durable::replace(&**own.disk(), &temporary, &path, &text)
            .with_context(|| path.display().to_string())
    }
}

/// Everything that cells recorded, added up.
#[must_use]
pub fn totals<'a>(parts: impl IntoIterator<Item = &'a CellPart>, queries: usize) -> Interval {
    let mut all = Interval::new(queries);
    for part in parts {
        // A part that cannot be read back loses its times and keeps its cell.
        if let Some(Ok(totals)) = part.totals.as_ref().map(Interval::try_from) {
            all.in_flight = 0;
            all.merge(&totals);
        }
    }
    all
}

/// The matrix of a folder, if it is the folder of one.
fn spec_of(path: &Path) -> Option<MatrixSpec> {
    let text = fs::read(path.join(PARTS).join(SPEC)).ok()?;
    serde_json::from_slice(&text).ok()
}

/// All parts whose files begin so, by name.
fn read_all<T: DeserializeOwned>(folder: &Path, beginning: &str) -> Result<Vec<T>> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .with_context(|| folder.display().to_string())?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            path.file_name()
                .and_then(|name| name.to_str())
                .is_some_and(|name| name.starts_with(beginning))
        })
        .collect();
    paths.sort();
    paths
        .iter()
        .map(|path| {
            let text = fs::read(path).with_context(|| path.display().to_string())?;
            serde_json::from_slice(&text).with_context(|| format!("{} is damaged", path.display()))
        })
        .collect()
}

/// The newest record of exactly this matrix in a folder of records, where it is unfinished: what was measured again since is
/// not resumed.
#[must_use]
pub fn unfinished(runs: &Path, spec: &MatrixSpec) -> Option<PathBuf> {
    let mut folders: Vec<PathBuf> = fs::read_dir(runs)
        .ok()?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.join(RUN_JSON).is_file())
        .filter(|path| spec_of(path).is_some_and(|own| spec.differences(&own).is_empty()))
        .collect();
    folders.sort();
    folders.pop().filter(|path| load(path).is_ok_and(|loaded| loaded.cut))
}

#[cfg(test)]
mod lying_disk;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::read;
    use plimsoll_core::verdict::Verdict;
    use plimsoll_record::search::CellKey;

    pub(super) fn spec(users: &str) -> MatrixSpec {
        let file =
            read(&format!("engines = [\"index\"]\nusers = {users}"), Path::new("m")).unwrap().0;
        file.resolve("[[query]]\nname = \"all\"\nkind = \"all\"").unwrap()
    }

    pub(super) fn cell(users: u32) -> CellPart {
        let mut totals = Interval::new(1);
        totals.ledger.ok = u64::from(users);
        totals.to_ns = 1_000_000_000;
        let key = CellKey { users, ..CellKey::default() };
        CellPart {
            cell: Cell { key, ok_per_s: Some(1.0), ..Cell::default() },
            totals: Some(IntervalLine::from(&totals)),
        }
    }

    #[test]
    fn what_was_finished_is_there_again_and_another_matrix_is_refused() {
        let runs = tempfile::tempdir().unwrap();
        let folder = RunFolder::create(runs.path(), "search", 1_795_294_102_123_456).unwrap();
        let path = folder.path().to_owned();
        let state = State::begin(Some(folder), &spec("[1, 5]")).unwrap();
        state.put("cell-0001.json", &cell(1)).unwrap();
        state.put("cell-0002.json", &cell(5)).unwrap();
        let met = EngineRecord { version: "own 1".to_owned(), ..EngineRecord::default() };
        state.put("engine-00.json", &met).unwrap();
        state.put("time.json", &TimeSpent { cells: 2, ..TimeSpent::default() }).unwrap();
        // A part that was being written when the process was killed is no part.
        fs::write(path.join(PARTS).join(".cell-0003.json.new"), "{\"ce").unwrap();
        drop(state);
        assert_eq!(unfinished(runs.path(), &spec("[1, 5]")), Some(path.clone()));
        assert_eq!(unfinished(runs.path(), &spec("[1, 6]")), None);
        let again = State::resume(&path, &spec("[1, 5]")).unwrap();
        assert_eq!((again.cells.len(), again.before.cells, again.resumed), (2, 2, true));
        assert_eq!((totals(&again.cells, 1).ledger.ok, again.engines), (6, vec![met]));
        let refused = State::resume(&path, &spec("[1, 6]")).err().unwrap().to_string();
        assert!(refused.contains("users was [1,5] and is [1,6]"), "{refused}");
        let nothing = State::resume(runs.path(), &spec("[1]")).err().unwrap().to_string();
        assert!(nothing.contains("no unfinished matrix"), "{nothing}");
        // Nobody else takes it up meanwhile.
        let refused = State::resume(&path, &spec("[1, 5]")).err().unwrap().to_string();
        assert!(refused.contains("another process is measuring this matrix"), "{refused}");
    }

    #[test]
    fn a_finished_matrix_is_not_gone_back_behind() {
        let runs = tempfile::tempdir().unwrap();
        let begin = |started_us| {
            let folder = RunFolder::create(runs.path(), "search", started_us).unwrap();
            State::begin(Some(folder), &spec("[1]")).unwrap()
        };
        let old = begin(1_795_294_102_123_456).folder.unwrap().path().to_owned();
        assert_eq!(unfinished(runs.path(), &spec("[1]")), Some(old));
        let newer = begin(1_795_294_202_123_456).folder.unwrap();
        let mut record = load(newer.path()).unwrap().record;
        record.verdict = Verdict::default();
        newer.finish(&record).unwrap();
        assert_eq!(unfinished(runs.path(), &spec("[1]")), None);
    }
}
