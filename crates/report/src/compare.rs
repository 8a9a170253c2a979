//! Two records side by side.
//!
//! A job compares its own results ([`Forms::compare`]). All comparisons share how the records are distinguished (A and B) and
//! how a comparison is printed.

use crate::forms::{Compared, Forms};
use crate::load::Loaded;
use crate::plain::printable;
use plimsoll_record::RunRecord;
use serde::Serialize;
use serde_json::{Map, Value};

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
    /// Comparing them is not defined.
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
    /// The comparison of the job, by the key of its section.
    #[serde(flatten)]
    pub sections: Map<String, Value>,
    /// The comparison of the job for people.
    #[serde(skip)]
    pub text: String,
}

fn side(mark: &'static str, loaded: &Loaded) -> Side {
    let RunRecord { job, started_at, .. } = &loaded.record;
    Side {
        mark,
        folder: loaded.folder.display().to_string(),
        job: job.clone(),
        started_at: started_at.clone(),
        origin: String::new(),
    }
}

/// Compares two records, as the first of `jobs` does that has a result in both.
///
/// # Errors
/// When they are not of one kind, or of a kind that cannot be compared.
pub fn compare(a: &Loaded, b: &Loaded, jobs: &[Forms]) -> Result<Comparison, CompareError> {
    let mut sides = [side("A", a), side("B", b)];
    match jobs.iter().find_map(|job| (job.compare)(&a.record, &b.record)) {
        Some(compared) => {
            let Compared { key, origins, value, text } = compared;
            for (side, origin) in sides.iter_mut().zip(origins) {
                side.origin = origin;
            }
            let sections = Map::from_iter([(key.to_owned(), value)]);
            Ok(Comparison { sides, sections, text })
        }
        None if sides[0].job != sides[1].job => {
            let [a, b] = sides;
            Err(CompareError::Different { a: a.folder, a_job: a.job, b: b.folder, b_job: b.job })
        }
        None => Err(CompareError::Unknown { job: sides[0].job.clone() }),
    }
}

impl Comparison {
    /// Returns the comparison as a person reads it.
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
        text + "\n" + &self.text
    }
}
