//! Two or more records side by side: a table of their figures, and an answer for each.
//!
//! A job says which figures matter ([`crate::forms::Forms::figures`]), and may add a comparison of its own
//! ([`crate::forms::Forms::compare`]). The first record is the baseline.

mod rows;
mod sheet;
mod text;

use crate::forms::{Compared, Forms};
use crate::load::Loaded;
use crate::past::Run;
use plimsoll_core::clock::parse_utc;
use plimsoll_decide::between::LIKE_RUNS_LEAST;
use plimsoll_decide::rule::{Judged, Rule};
use plimsoll_record::RunRecord;
use rows::{Basis, too_few};
use serde::Serialize;
use serde_json::{Map, Value};

pub use rows::{Against, ERROR, Row, RuleResult};

/// Most records of a comparison: each has a letter.
pub const RUNS_MAX: usize = 26;

/// Records that cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// They are of different kinds.
    #[error("{a} is a record of '{a_job}' and {b} of '{b_job}'; name records of the same job")]
    Different {
        /// The first record.
        a: String,
        /// Its job.
        a_job: String,
        /// The other record.
        b: String,
        /// Its job.
        b_job: String,
    },
    /// It is not clear which record is which.
    #[error("compare needs 2 to {RUNS_MAX} runs, not {count}; name the baseline first")]
    Number {
        /// Number of records.
        count: usize,
    },
    /// The same record twice.
    #[error("{folder} is named twice; a run cannot be compared with itself")]
    Twice {
        /// The record.
        folder: String,
    },
    /// A comparison is a result by itself.
    #[error(
        "{folder} is a record of 'ab', which has its answer; print it with 'plimsoll report {folder}'"
    )]
    Answered {
        /// The record.
        folder: String,
    },
    /// There is nothing to compare.
    #[error("the records of '{job}' have no figure to compare; name runs that measured something")]
    Empty {
        /// The job.
        job: String,
    },
    /// A rule is about a metric that the records do not have.
    #[error("--fail-on '{rule}': the records have no '{metric}'; they have {known}")]
    Metric {
        /// The rule.
        rule: String,
        /// Its metric.
        metric: String,
        /// Metrics of the records.
        known: String,
    },
}

/// A record of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Side {
    /// `A`, `B`, ...
    pub mark: String,
    /// The folder.
    pub folder: String,
    /// The job.
    pub job: String,
    /// Start of the run, UTC.
    pub started_at: String,
    /// Length of the measured stretch, s.
    pub duration_s: f64,
    /// Word of its verdict.
    pub verdict: String,
    /// Name and labels that the user gave it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub called: String,
    /// Origin of its figures, if this program did not measure them.
    pub origin: String,
}

/// Records side by side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Name and version of this shape.
    pub schema: &'static str,
    /// The records, the baseline first.
    pub sides: Vec<Side>,
    /// True if the runs alternated, so that drift of the machine hit all of them: only runs of `ab` do.
    pub interleaved: bool,
    /// Notes that a reader must know before the answers.
    pub notes: Vec<String>,
    /// Largest relative change that counts as none.
    pub margin: f64,
    /// The figures, with an answer each.
    pub rows: Vec<Row>,
    /// Rules of the user, judged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleResult>,
    /// The comparison of the job, by the key of its section.
    #[serde(flatten)]
    pub sections: Map<String, Value>,
    /// The comparison of the job for people.
    #[serde(skip)]
    pub text: String,
}

/// Terms of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// Valid runs of the past; those that are compared may be among them.
    pub past: &'a [Run],
    /// Rules that set the exit code.
    pub rules: &'a [Rule],
    /// Largest relative change that counts as none: 0.05 is 5 %.
    pub margin: f64,
}

/// Returns the letter of a record.
fn mark(index: usize) -> String {
    char::from(b'A' + (index % RUNS_MAX) as u8).to_string()
}

fn side(index: usize, loaded: &Loaded, run: &Run) -> Side {
    let RunRecord { job, started_at, duration_s, .. } = &loaded.record;
    Side {
        mark: mark(index),
        folder: loaded.folder.display().to_string(),
        job: job.clone(),
        started_at: started_at.clone(),
        duration_s: *duration_s,
        verdict: run.verdict.name().to_owned(),
        called: run.called.clone(),
        origin: String::new(),
    }
}

/// Compares records; the first one is the baseline.
///
/// # Errors
/// When they are not of one kind, or of a kind that cannot be compared, or a rule names a metric that they do not have.
pub fn compare(
    records: &[Loaded],
    terms: &Terms<'_>,
    jobs: &[Forms],
) -> Result<Comparison, CompareError> {
    check(records)?;
    let mut own: Vec<Option<Compared>> = records[1..]
        .iter()
        .map(|other| jobs.iter().find_map(|job| (job.compare)(&records[0].record, &other.record)))
        .collect();
    check_kinds(records, &own)?;
    let runs: Vec<Run> =
        records.iter().map(|one| Run::of(&one.record, &one.folder, jobs)).collect();
    let mut sides: Vec<Side> =
        records.iter().zip(&runs).enumerate().map(|(at, (one, run))| side(at, one, run)).collect();
    let is_compared = |past: &&Run| runs.iter().all(|run| run.run_id != past.run_id);
    let past: Vec<Run> = terms.past.iter().filter(is_compared).cloned().collect();
    let window = |index: usize| reason(records, index);
    let basis = Basis {
        runs: &runs,
        past: &past,
        rules: terms.rules,
        margin: terms.margin,
        window: &window,
    };
    let rows = basis.rows();
    check_rules(terms.rules, &rows)?;
    let (mut sections, mut text) = (Map::new(), String::new());
    // A comparison of the job itself is one of two records.
    if let [Some(Compared { key, origins, value, text: words })] = own.as_mut_slice() {
        for (side, origin) in sides.iter_mut().zip(std::mem::take(origins)) {
            side.origin = origin;
        }
        sections.insert((*key).to_owned(), std::mem::take(value));
        text = std::mem::take(words);
    }
    if rows.is_empty() && sections.is_empty() {
        return Err(CompareError::Empty { job: sides[0].job.clone() });
    }
    let rules = basis.judge(&rows);
    Ok(Comparison {
        schema: "plimsoll.comparison/1",
        interleaved: false,
        notes: notes(records, &runs, &rows, terms),
        sides,
        margin: terms.margin,
        rows,
        rules,
        sections,
        text,
    })
}

fn check(records: &[Loaded]) -> Result<(), CompareError> {
    if records.len() < 2 || records.len() > RUNS_MAX {
        return Err(CompareError::Number { count: records.len() });
    }
    let folder = |one: &Loaded| one.folder.display().to_string();
    if let Some(one) = records.iter().find(|one| one.record.job == "ab") {
        return Err(CompareError::Answered { folder: folder(one) });
    }
    let is_again = |(at, one): &(usize, &Loaded)| {
        let id = &one.record.run_id;
        !id.is_empty() && records[..*at].iter().any(|other| other.record.run_id == *id)
    };
    match records.iter().enumerate().find(is_again) {
        Some((_, one)) => Err(CompareError::Twice { folder: folder(one) }),
        None => Ok(()),
    }
}

/// Records of one job can be compared, and others if a job says so.
fn check_kinds(records: &[Loaded], own: &[Option<Compared>]) -> Result<(), CompareError> {
    let first = &records[0];
    for (other, own) in records[1..].iter().zip(own) {
        if own.is_none() && first.record.job != other.record.job {
            return Err(CompareError::Different {
                a: first.folder.display().to_string(),
                a_job: first.record.job.clone(),
                b: other.folder.display().to_string(),
                b_job: other.record.job.clone(),
            });
        }
    }
    Ok(())
}

fn check_rules(rules: &[Rule], rows: &[Row]) -> Result<(), CompareError> {
    let mut known: Vec<&str> = rows.iter().map(|row| row.metric).collect();
    known.dedup();
    match rules.iter().find(|rule| !known.contains(&rule.metric.as_str())) {
        Some(rule) => Err(CompareError::Metric {
            rule: rule.to_string(),
            metric: rule.metric.clone(),
            known: known.join(", "),
        }),
        None => Ok(()),
    }
}

/// Start and end of a run, s since 1970 UTC.
fn window(record: &RunRecord) -> Option<(f64, f64)> {
    let start_s = parse_utc(&record.started_at)? as f64 / 1e6;
    Some((start_s, start_s + record.duration_s))
}

/// True if two runs went on at the same time.
fn overlap(a: &RunRecord, b: &RunRecord) -> bool {
    window(a).zip(window(b)).is_some_and(|(a, b)| a.0 < b.1 && b.0 < a.1)
}

/// The reason why two runs cannot be compared without like runs.
fn reason(records: &[Loaded], index: usize) -> String {
    if overlap(&records[0].record, &records[index].record) {
        "the variance between runs is unknown".to_owned()
    } else {
        "the runs share no time window".to_owned()
    }
}

/// Notes that a reader must know before the answers.
fn notes(records: &[Loaded], runs: &[Run], rows: &[Row], terms: &Terms<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    let mut differences: Vec<String> = Vec::new();
    for (index, run) in runs.iter().enumerate().skip(1) {
        let own = runs[0].likeness.differences(&run.likeness);
        if !own.is_empty() {
            differences.push(format!("A and {} differ: {}", mark(index), own.join("; ")));
        }
    }
    let is_import = records.iter().any(|one| one.record.job_results.import().is_some());
    if is_import {
        return notes;
    }
    notes.extend(differences);
    let share = (1..records.len()).all(|at| overlap(&records[0].record, &records[at].record));
    notes.push(match share {
        true => "The runs went on at the same time, so that each is a load on the other's machine.".to_owned(),
        false => "The runs were not interleaved: what changed on the machine between them is in each ratio.".to_owned(),
    });
    let all = || rows.iter().flat_map(|row| &row.against);
    let least = all().map(|one| one.like_runs).min().unwrap_or(0);
    let most = all().map(|one| one.like_runs).max().unwrap_or(0);
    let known = all().any(|one| one.interval.is_some());
    if most >= LIKE_RUNS_LEAST && known {
        let of = if least < most { format!("{least} to {most}") } else { most.to_string() };
        notes.push(format!(
            "Intervals are as wide as the variance between {of} like runs makes them (same job, settings, target and machine)."
        ));
        notes.push(match terms.rules.is_empty() {
            true => format!(
                "Each answer is wrong in at most {:.0} of 100 comparisons; of many answers, one is wrong more often.",
                100.0 * ERROR
            ),
            false => format!(
                "All answers about metrics that --fail-on names are right in {:.0} of 100 comparisons; others have none.",
                100.0 * (1.0 - ERROR)
            ),
        });
    } else {
        notes.push(format!(
            "No interval: {}. Repeat the run of A, or use 'plimsoll ab', which measures both in turn.",
            too_few(most)
        ));
    }
    notes
}

impl Comparison {
    /// Returns what the rules say together; `None` without a rule.
    #[must_use]
    pub fn judged(&self) -> Option<Judged> {
        self.rules.iter().filter_map(|rule| rule.outcome).max()
    }
}

#[cfg(test)]
mod tests;
