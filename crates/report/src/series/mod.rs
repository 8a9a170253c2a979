//! A run over time: columns of counts and times, made from its seconds one after another.
//!
//! A column covers `span` intervals of the journal. Memory is bounded: with more than [`COLUMNS_MAX`] columns, or
//! more than [`CELLS_BYTES_MAX`] bytes of histogram cells, neighbours are merged two by two and the span doubles. The
//! percentiles of a merged column are those of its merged histogram.

mod column;

use crate::error::RecordError;
use crate::journal;
use crate::run_json::INTERVALS;
use plimsoll_core::histogram::Histogram;
use plimsoll_core::interval::Interval;
use std::path::Path;

pub use column::{Column, Times};

/// Most columns.
pub const COLUMNS_MAX: usize = 8_192;
/// Most bytes of the histogram cells of all columns together. A busy second has some 5,000 bytes.
pub const CELLS_BYTES_MAX: usize = 64_000_000;

/// The columns of a run, in the order of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    columns: Vec<Column>,
    span: u32,
    /// Bytes of the cells of all columns.
    bytes: usize,
    limits: Limits,
}

/// The size from which columns are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limits {
    columns: usize,
    bytes: usize,
}

impl Default for Series {
    fn default() -> Self {
        Self::new()
    }
}

impl Series {
    /// Returns a series without columns.
    #[must_use]
    pub const fn new() -> Self {
        Self::limited(COLUMNS_MAX, CELLS_BYTES_MAX)
    }

    const fn limited(columns: usize, bytes: usize) -> Self {
        Self { columns: Vec::new(), span: 1, bytes: 0, limits: Limits { columns, bytes } }
    }

    /// Reads the journal in the folder of a record; a record without one has no columns.
    ///
    /// # Errors
    /// When the journal cannot be read. Damaged lines are left out, as in a record that is made from it.
    pub fn of_folder(folder: &Path) -> Result<Self, RecordError> {
        let mut series = Self::new();
        let mut scratch = Histogram::new();
        journal::read_lines(&folder.join(INTERVALS), |line| {
            let column = Column::of_line(line, &mut scratch);
            column.map(|column| series.push_column(column)).is_ok()
        })?;
        Ok(series)
    }

    /// Adds the next interval of the run. One without a length that holds nothing is left out.
    pub fn push(&mut self, interval: &Interval) {
        self.push_column(Column::of(interval));
    }

    /// Adds the next interval as the column that it makes.
    pub fn push_column(&mut self, next: Column) {
        if next.is_empty() {
            return;
        }
        match self.columns.last_mut() {
            Some(last) if last.intervals < self.span => {
                self.bytes -= last.cells_bytes();
                last.append(&next);
                self.bytes += last.cells_bytes();
            }
            _ => {
                self.bytes += next.cells_bytes();
                self.columns.push(next);
            }
        }
        while self.columns.len() > 1
            && (self.columns.len() > self.limits.columns || self.bytes > self.limits.bytes)
        {
            self.columns = merged(&self.columns, 2);
            self.span = self.span.saturating_mul(2);
            self.bytes = self.columns.iter().map(Column::cells_bytes).sum();
        }
    }

    /// The columns, in the order of time.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Number of intervals that a column covers; the last one may cover fewer.
    #[must_use]
    pub const fn span(&self) -> u32 {
        self.span
    }

    /// Returns true if there is no column.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Returns at most `columns_max` columns for the same time: neighbours are merged exactly, the same number in each.
    #[must_use]
    pub fn coarse(&self, columns_max: usize) -> Vec<Column> {
        merged(&self.columns, self.columns.len().div_ceil(columns_max.max(1)).max(1))
    }
}

/// Columns of `together` neighbours each.
fn merged(columns: &[Column], together: usize) -> Vec<Column> {
    if together == 1 {
        return columns.to_vec();
    }
    columns.chunks(together).filter_map(Column::sum).collect()
}

#[cfg(test)]
mod tests;
