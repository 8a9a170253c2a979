//! The forms in which a job shows its own results: its part of the page, of the CSV, and of a comparison.
//!
//! This crate knows no job. A job gives its [`Forms`], and the program has the list of all of them.

use crate::figures::{Figure, of_load};
use crate::page::Page;
use crate::series::Series;
use crate::sheet::Sheet;
use plimsoll_record::{JobResults, RunRecord};
use std::fmt;

/// The part of a page that follows the sections of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Below {
    /// Times, phases, classes, and the ledger, as of a load.
    Figures,
    /// The ledger of all requests without their times, which are those of very different loads or mean little by themselves.
    Books,
    /// Assertions and warnings alone: nothing was measured for this record.
    Remarks,
    /// Assertions, warnings, verdict and outcome: the job has shown all figures.
    Ending,
}

/// Two results of a job, side by side.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// Key of the comparison in its JSON: that of the section.
    pub key: &'static str,
    /// Sources of the two results, if not measured by this program; otherwise empty or `measured`.
    pub origins: [String; 2],
    /// The comparison for programs.
    pub value: serde_json::Value,
    /// The comparison for people.
    pub text: String,
}

/// The forms in which one job shows its results. Each function returns `None` for a record that has no result of the job.
#[derive(Clone, Copy)]
pub struct Forms {
    /// Writes the sections of the job, and returns what follows them. Writes nothing if it returns `None`.
    pub page: fn(&mut Page<'_>, &RunRecord) -> Option<Below>,
    /// Returns all rows of the CSV, the column names first, all of one length.
    pub csv: fn(&RunRecord) -> Option<Vec<Vec<String>>>,
    /// Returns the result in a few words, for a list of runs.
    pub headline: fn(&RunRecord) -> Option<String>,
    /// Returns the figures that a comparison and a history look at; those of a load if no job has its own.
    pub figures: fn(&RunRecord) -> Option<Vec<Figure>>,
    /// Compares two records of the job.
    pub compare: fn(&RunRecord, &RunRecord) -> Option<Compared>,
    /// Adds the sections of the job to the page that is data, which has the sections of all jobs already. Changes nothing for a
    /// record that has no result of the job.
    pub sheet: fn(&mut Sheet, &RunRecord, &Series),
    /// Puts the results of the parts of a run together, after it. The record is one of theirs.
    pub merge: fn(&RunRecord, &Parts) -> Option<Result<Merged, String>>,
}

/// Results of the parts of a run, as their agents have kept them.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    /// Those that are there, in the order of the slices.
    pub there: Vec<PartResults>,
    /// Index and name of each part that has kept no results.
    pub missing: Vec<(u32, String)>,
}

/// Results of one part.
#[derive(Clone, Debug)]
pub struct PartResults {
    /// Index of the part.
    pub index: u32,
    /// Name of its agent.
    pub agent: String,
    /// CPU time of its generator, s.
    pub cpu_s: f64,
    /// The results, as the coordinator gets them.
    pub results: Vec<serde_json::Value>,
}

/// The parts together.
#[derive(Clone, Debug, Default)]
pub struct Merged {
    /// Sections of the record.
    pub results: JobResults,
    /// Reasons why they are not the whole.
    pub troubles: Vec<String>,
    /// Warnings about them.
    pub warnings: Vec<String>,
}

impl Forms {
    /// The forms of a job without results of its own, such as `load`.
    pub const LOAD: Self = Self {
        page: |_, _| None,
        csv: |_| None,
        headline: |_| None,
        figures: |_| None,
        compare: |_, _| None,
        sheet: |_, _, _| {},
        merge: |_, _| None,
    };
}

/// Returns the figures of a record: those of the first of `jobs` that has some, or else those of a load.
#[must_use]
pub fn figures(record: &RunRecord, jobs: &[Forms]) -> Vec<Figure> {
    let own = jobs.iter().find_map(|job| (job.figures)(record));
    own.unwrap_or_else(|| of_load(record)).into_iter().filter(|one| one.value.is_finite()).collect()
}

impl fmt::Debug for Forms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Forms").finish_non_exhaustive()
    }
}
