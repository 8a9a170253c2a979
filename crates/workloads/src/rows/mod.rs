//! Rows of values that requests are filled with: a CSV file with a line of names, or NDJSON of objects.
//!
//! A request holds `{{name}}` where the value of that column must stand: percent-encoded in the path, escaped in a JSON
//! body, quoted in SQL, as it is elsewhere. `{{{name}}}` is the value as it is everywhere. Which row a request gets follows from its
//! number alone ([`RowFeed`]), so that the same seed fills the same requests, whoever sends them.
//!
//! All rows are held in memory, at most [`ROWS_MAX_BYTES`] of values.

mod feed;
mod read;
mod sql;
mod template;
mod text;
mod unfilled;

pub use feed::RowFeed;
pub use sql::{fill_sql, quoted};
pub use template::{TemplateError, TemplateSet};
pub use text::fill_text;
pub use unfilled::place_in_a_head;

use std::path::{Path, PathBuf};

/// Most bytes of a file of rows, unpacked: 256 MiB.
pub const ROWS_MAX_BYTES: u64 = 256 * 1024 * 1024;
/// Most columns of a file of rows.
pub const COLUMNS_MAX: usize = 1024;

/// Rows in one piece of memory.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    path: PathBuf,
    names: Vec<String>,
    bytes: Vec<u8>,
    /// End of each value, row by row.
    ends: Vec<u32>,
    /// The line of each row.
    lines: Vec<u32>,
}

impl Rows {
    /// The file they come from.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The names of the columns.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Returns true if there is none; never so for rows that were read from a file.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The number of the column with this name.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|own| own == name)
    }

    /// The value in a row below [`Rows::len`] and a column below the number of names.
    ///
    /// # Panics
    /// When there is no such row or column.
    #[inline]
    #[must_use]
    pub fn value(&self, row: usize, column: usize) -> &[u8] {
        let at = row * self.names.len() + column;
        let start = if at == 0 { 0 } else { self.ends[at - 1] as usize };
        &self.bytes[start..self.ends[at] as usize]
    }

    /// The line of a row in its file, from 1.
    ///
    /// # Panics
    /// When there is no such row.
    #[must_use]
    pub fn line(&self, row: usize) -> u64 {
        u64::from(self.lines[row])
    }
}
