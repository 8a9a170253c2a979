//! The documents with given row numbers, as a query.

use super::super::row_text::ROW;
use super::job::Job;
use super::row_set::RowSet;
use std::fmt;
use std::io;
use std::sync::Arc;
use tantivy::query::{
    BitSetDocSet, ConstScorer, EnableScoring, Explanation, Query, Scorer, Weight,
};
use tantivy::{BitSet, DocId, DocSet, Score, SegmentReader, TantivyError};

/// The documents whose column [`ROW`] holds a row that a scan finds, all with relevance 1. The scan runs when a
/// weight is made for the first time.
#[derive(Clone)]
pub(super) struct RowSetQuery {
    job: Arc<Job>,
}

impl RowSetQuery {
    pub(super) fn new(job: Arc<Job>) -> Self {
        Self { job }
    }
}

impl fmt::Debug for RowSetQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowSetQuery").field("job", &self.job).finish()
    }
}

impl Query for RowSetQuery {
    fn weight(&self, _: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let rows = self.job.rows().map_err(io::Error::other)?;
        Ok(Box::new(RowSetWeight { rows }))
    }
}

struct RowSetWeight {
    rows: Arc<RowSet>,
}

impl Weight for RowSetWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let mut found = BitSet::with_max_value(reader.max_doc());
        if !self.rows.is_empty() {
            let column = reader.fast_fields().u64(ROW)?;
            for doc in 0..reader.max_doc() {
                if column.first(doc).is_some_and(|row| self.rows.contains(row)) {
                    found.insert(doc);
                }
            }
        }
        Ok(Box::new(ConstScorer::new(BitSetDocSet::from(found), boost)))
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        let mut scorer = self.scorer(reader, 1.0)?;
        if scorer.doc() <= doc && scorer.seek(doc) == doc {
            return Ok(Explanation::new("RowSet", 1.0));
        }
        Err(TantivyError::InvalidArgument(format!("document {doc} does not match")))
    }
}
