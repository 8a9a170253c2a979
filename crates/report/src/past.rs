//! Runs of the past with their figures: what a comparison takes the variance between runs from, and what a history shows.

use crate::error::RecordError;
use crate::figures::Figure;
use crate::forms::{Forms, figures};
use crate::history::past_runs;
use crate::likeness::Likeness;
use crate::load::load;
use plimsoll_core::verdict::VerdictKind;
use plimsoll_record::RunRecord;
use std::path::{Path, PathBuf};

/// Most runs of a folder that are read, the newest ones.
pub const RUNS_MAX: usize = 2_000;

/// A run and its figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Folder of its record.
    pub folder: PathBuf,
    /// Its id.
    pub run_id: String,
    /// UTC.
    pub started_at: String,
    /// Version and commit of the program that measured.
    pub tool: String,
    /// Name and labels that the user gave it.
    pub called: String,
    /// Verdict.
    pub verdict: VerdictKind,
    /// Its settings, which like runs share.
    pub likeness: Likeness,
    /// Words of its command line.
    pub command: Vec<String>,
    /// Its figures.
    pub figures: Vec<Figure>,
}

impl Run {
    /// Returns the run of a record.
    #[must_use]
    pub fn of(record: &RunRecord, folder: &Path, jobs: &[Forms]) -> Self {
        let labels = record.labels.iter().map(|(key, value)| format!("{key}={value}"));
        let named = Some(record.name.clone()).filter(|name| !name.is_empty());
        Self {
            folder: folder.to_owned(),
            run_id: record.run_id.clone(),
            started_at: record.started_at.clone(),
            tool: record.tool.name(),
            called: named.into_iter().chain(labels).collect::<Vec<_>>().join(", "),
            verdict: record.verdict.kind,
            likeness: Likeness::of(record),
            command: record.command.clone(),
            figures: figures(record, jobs),
        }
    }

    /// Returns this figure of the run, if it has it.
    #[must_use]
    pub fn figure(&self, like: &Figure) -> Option<&Figure> {
        self.figures.iter().find(|one| one.is_same(like))
    }
}

/// The runs of a folder, oldest first, and why others are left out.
#[derive(Debug, Default)]
pub struct Runs {
    /// Those that can be read.
    pub runs: Vec<Run>,
    /// Reasons why others are left out.
    pub left_out: Vec<RecordError>,
    /// Older runs that were not read, since there are too many.
    pub older: usize,
}

/// Reads the newest [`RUNS_MAX`] runs of a folder that `wanted` selects by job and verdict.
///
/// # Errors
/// When the folder cannot be read or holds no record.
pub fn runs(
    folder: &Path,
    jobs: &[Forms],
    wanted: impl Fn(&str, VerdictKind) -> bool,
) -> Result<Runs, RecordError> {
    let past = past_runs(folder)?;
    let mut read = Runs { left_out: past.left_out, ..Runs::default() };
    let mut heads = past.runs;
    heads.retain(|head| wanted(&head.job, head.verdict));
    read.older = heads.len().saturating_sub(RUNS_MAX);
    for head in &heads[read.older..] {
        match load(&head.folder) {
            Ok(loaded) => read.runs.push(Run::of(&loaded.record, &loaded.folder, jobs)),
            Err(error) => read.left_out.push(error),
        }
    }
    Ok(read)
}
