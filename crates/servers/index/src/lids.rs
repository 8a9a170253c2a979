//! The column that says which document a hit is, opened once for each generation of an index.
//!
//! To open it takes as long as a search of one word: it is cut into blocks, each with a head of its own to unpack.

use super::mapping::LID;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tantivy::columnar::Column;
use tantivy::{Searcher, TantivyError};

type Columns = Arc<[OnceLock<Column<u64>>]>;

/// The columns of what one reader shows.
#[derive(Default)]
pub struct Lids {
    /// The reader's generation, and a column for each segment. Those of an earlier generation are dropped by the
    /// first search of the next one.
    shown: Mutex<Option<(u64, Columns)>>,
}

impl Lids {
    fn columns(&self, searcher: &Searcher) -> Columns {
        let generation = searcher.generation().generation_id();
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, columns)) = &*shown
            && *of == generation
        {
            return Arc::clone(columns);
        }
        let columns: Columns = searcher.segment_readers().iter().map(|_| OnceLock::new()).collect();
        // A search that began before the last reload must not take the place of the ones after it.
        if shown.as_ref().is_none_or(|(of, _)| *of < generation) {
            *shown = Some((generation, Arc::clone(&columns)));
        }
        columns
    }

    /// Returns the columns that identify the documents of a snapshot.
    pub(crate) fn of<'a>(&self, searcher: &'a Searcher) -> Documents<'a> {
        Documents { columns: self.columns(searcher), searcher }
    }
}

/// Tells which documents the hits of one snapshot are.
pub(crate) struct Documents<'a> {
    columns: Columns,
    searcher: &'a Searcher,
}

impl Documents<'_> {
    /// The number in the store of a document of a segment.
    ///
    /// # Errors
    /// When the column cannot be read.
    pub(crate) fn lid(&self, segment: usize, doc: u32) -> Result<Option<u64>, TantivyError> {
        let slot = &self.columns[segment];
        if let Some(column) = slot.get() {
            return Ok(column.first(doc));
        }
        let column = self.searcher.segment_reader(segment as u32).fast_fields().u64(LID)?;
        Ok(slot.get_or_init(|| column).first(doc))
    }
}
