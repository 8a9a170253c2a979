//! Two records laid side by side.
//!
//! Each kind of job that can be compared has a module here that makes a part of a [`Comparison`]; what they share is
//! how records are distinguished (A and B), and how a comparison is printed.

mod search;

use crate::load::Loaded;
use crate::plain::printable;
use plimsoll_record::RunRecord;
pub use search::{Ratio, Row, SearchComparison};
use serde::Serialize;

/// Two records that cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// They are of different kinds.
    #[error("{a} is a record of '{a_job}' and {b} of '{b_job}'; name two records of the same job")]
    Different {
        /// The first record.
        a: String,
        /// Its job.
        a_job: String,
        /// The second record.
        b: String,
        /// Its job.
        b_job: String,
    },
    /// No one has said yet what it means to compare them.
    #[error("records of '{job}' cannot be compared yet; records of 'search' can")]
    Unknown {
        /// The job.
        job: String,
    },
}

/// A record of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Side {
    /// `A` or `B`.
    pub mark: &'static str,
    /// The folder.
    pub folder: String,
    /// The job.
    pub job: String,
    /// Start of the run.
    pub started_at: String,
    /// Origin of its figures, if this program did not measure them.
    pub origin: String,
}

/// Two records side by side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The records.
    pub sides: [Side; 2],
    /// Two search matrices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchComparison>,
}

fn side(mark: &'static str, loaded: &Loaded) -> Side {
    let RunRecord { job, started_at, .. } = &loaded.record;
    let search = loaded.record.job_results.search();
    Side {
        mark,
        folder: loaded.folder.display().to_string(),
        job: job.clone(),
        started_at: started_at.clone(),
        origin: search.map(|search| search.origin.clone()).unwrap_or_default(),
    }
}

/// Lays two records side by side.
///
/// # Errors
/// When they are not of one kind, or of a kind that cannot be compared.
pub fn compare(a: &Loaded, b: &Loaded) -> Result<Comparison, CompareError> {
    let sides = [side("A", a), side("B", b)];
    let both = (a.record.job_results.search(), b.record.job_results.search());
    match both {
        (Some(first), Some(second)) => {
            let differences = search::differences(&a.record.scenario, &b.record.scenario);
            let both = SearchComparison { differences, ..search::compare(first, second) };
            Ok(Comparison { sides, search: Some(both) })
        }
        _ if sides[0].job != sides[1].job => {
            let [a, b] = sides;
            Err(CompareError::Different { a: a.folder, a_job: a.job, b: b.folder, b_job: b.job })
        }
        _ => Err(CompareError::Unknown { job: sides[0].job.clone() }),
    }
}

impl Comparison {
    /// The comparison as a person reads it.
    #[must_use]
    pub fn render(&self) -> String {
        let mut text = String::new();
        for side in &self.sides {
            text += &format!(
                "{}  {}  {}, started {}{}\n",
                side.mark,
                printable(&side.folder),
                printable(&side.job),
                side.started_at,
                if side.origin.is_empty() || side.origin == "measured" {
                    String::new()
                } else {
                    format!(", {}", printable(&side.origin))
                }
            );
        }
        text.push('\n');
        if let Some(search) = &self.search {
            text += &search.render();
        }
        text
    }
}
