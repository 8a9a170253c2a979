//! Approximate matches found by reading the text itself: no index, no words, any number of errors, one search
//! at a time.
//!
//! The text of every field lies in memory as it came in, one `Column` a field of an index
//! partition; after a start it is read again from the documents. A search for a pattern waits for its turn in
//! the one [`ScanQueue`] of the server, reads the column from one end to the other, and becomes a
//! `RowSetQuery`: the rows found, which the rest of a query combines like any other
//! documents.

mod column;
mod job;
mod queue;
mod row_set;
mod row_set_query;
mod rows;
#[cfg(test)]
mod tests;

use self::column::Columns;
use self::job::Job;
pub use self::queue::{Refused, ScanQueue};
use self::row_set_query::RowSetQuery;
pub(crate) use self::rows::Rows;
use super::row_text::Scan;
use plimsoll_scan::{Case, Metric, Pattern, letters};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tantivy::TantivyError;
use tantivy::query::Query;

/// Longest time that a scan may wait and run where the search has no limit of its own, in nanoseconds.
const LONGEST_NS: u64 = 60_000_000_000;

/// The text of an index partition, still empty: what reads it, and what is given new text.
pub fn open(queue: Arc<ScanQueue>) -> (ShardScan, Rows) {
    let columns = Arc::new(Columns::default());
    let rows = Rows::new(Arc::clone(&columns));
    (ShardScan { columns, queue, limits: None }, rows)
}

/// Limits of a scan.
#[derive(Clone)]
struct Limits {
    /// On the scale of `now_ns`.
    pub deadline_ns: u64,
    pub abandoned: Arc<AtomicBool>,
}

/// Scans the text of one index partition.
#[derive(Clone)]
pub struct ShardScan {
    columns: Arc<Columns>,
    queue: Arc<ScanQueue>,
    limits: Option<Limits>,
}

impl fmt::Debug for ShardScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardScan").finish_non_exhaustive()
    }
}

impl ShardScan {
    /// The same for one search, which ends at a time on the scale of `now_ns`, or when it is abandoned.
    /// Without it a scan ends after a minute.
    pub fn within(&self, deadline_ns: u64, abandoned: Arc<AtomicBool>) -> Self {
        let limits = Some(Limits { deadline_ns, abandoned });
        Self { columns: Arc::clone(&self.columns), queue: Arc::clone(&self.queue), limits }
    }
}

/// Reason why a scan was not done, where that is why a search failed.
pub fn refused(error: &TantivyError) -> Option<Refused> {
    match error {
        TantivyError::IoError(error) => error.get_ref()?.downcast_ref().copied(),
        _ => None,
    }
}

impl Scan for ShardScan {
    fn query(
        &self,
        field: &str,
        pattern: &str,
        metric: Metric,
        distance: u64,
    ) -> Result<Box<dyn Query>, String> {
        let mut bytes = Vec::with_capacity(pattern.len());
        let beyond = letters::append(pattern, &mut bytes);
        let distance = u32::try_from(distance).unwrap_or(u32::MAX);
        let made = Pattern::new(&bytes, metric, distance, Case::IgnoreAscii);
        let made = made.map_err(|error| format!("field [{field}]: {error}"))?;
        let original = beyond.then(|| pattern.to_owned());
        let job = Job::new(field, made, original, self.clone());
        Ok(Box::new(RowSetQuery::new(Arc::new(job))))
    }
}
