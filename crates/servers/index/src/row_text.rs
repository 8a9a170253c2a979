//! The text of an index partition as approximate matching sees it: rows, and a way to search them.

use plimsoll_scan::Metric;
use std::io;
use tantivy::query::Query;

/// Finds approximate matches in the text of one index partition.
pub trait Scan: Send + Sync {
    /// A query for the documents whose text in a field contains the pattern with at most `k`
    /// errors: edits, or replacements only. The column [`ROW`] identifies the documents; the scan may run when the query's
    /// weight is made.
    ///
    /// # Errors
    /// Error for a client whose pattern cannot be searched for.
    fn query(
        &self,
        field: &str,
        pattern: &str,
        metric: Metric,
        distance: u64,
    ) -> Result<Box<dyn Query>, String>;
}

/// Takes the text of documents for a [`Scan`], on the thread that indexes them.
pub trait RowText: Send {
    /// Stores the text of a field of the document version with this row number; a field with several
    /// values is stored several times. Rows come in rising order; existing ones may be stored
    /// again when an index is rebuilt.
    ///
    /// # Errors
    /// When the text cannot be kept.
    fn put(&mut self, row: u64, field: &str, text: &str) -> io::Result<()>;
}

/// The column that holds the row number of a document version: each version of each document has
/// its own, higher ones later.
pub const ROW: &str = "_row";
