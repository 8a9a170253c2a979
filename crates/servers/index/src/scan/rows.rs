//! Text of documents: the thread that indexes documents hands it over, and again when the partition is opened,
//! from the log of its documents.

use super::super::row_text::RowText;
use super::column::Columns;
use std::io;
use std::sync::Arc;

/// Puts text into the columns of an index partition.
pub struct Rows {
    columns: Arc<Columns>,
    /// Lower rows exist already: they are stored again when an index is rebuilt with more columns.
    highest: u64,
}

impl Rows {
    pub(super) fn new(columns: Arc<Columns>) -> Self {
        Self { columns, highest: 0 }
    }
}

impl RowText for Rows {
    fn put(&mut self, row: u64, field: &str, text: &str) -> io::Result<()> {
        if row >= self.highest {
            self.highest = row;
            self.columns.put(row, field, text);
        }
        Ok(())
    }
}
