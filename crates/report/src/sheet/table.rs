//! A table of a page.

use super::Tone;
use super::cell::Cell;

/// Table: columns, and rows with a cell for each of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Headline of the table; may be empty.
    pub caption: String,
    /// Columns.
    pub columns: Vec<Column>,
    /// Rows.
    pub rows: Vec<Row>,
    /// True if a reader may sort it.
    pub sortable: bool,
}

/// Column of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    /// Head, with the unit unless each cell has its own.
    pub name: String,
    /// Numbers stand to the right, texts to the left.
    pub is_number: bool,
}

/// Row of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// One cell a column.
    pub cells: Vec<Cell>,
    /// Judgement of the row.
    pub tone: Tone,
}

impl Table {
    /// Returns a table without rows. A column whose name begins with `#` has numbers; the mark is left out.
    #[must_use]
    pub fn new(columns: &[&str]) -> Self {
        let column = |name: &&str| Column {
            name: name.strip_prefix('#').unwrap_or(name).to_owned(),
            is_number: name.starts_with('#'),
        };
        Self { columns: columns.iter().map(column).collect(), ..Self::default() }
    }

    /// Makes the table one that a reader may sort.
    #[must_use]
    pub fn sortable(mut self) -> Self {
        self.sortable = true;
        self
    }

    /// Gives the table a headline.
    #[must_use]
    pub fn captioned(mut self, caption: &str) -> Self {
        caption.clone_into(&mut self.caption);
        self
    }

    /// Adds a row, which must have as many cells as there are columns.
    pub fn row(&mut self, tone: Tone, cells: Vec<Cell>) {
        debug_assert_eq!(cells.len(), self.columns.len(), "a cell for each column");
        self.rows.push(Row { cells, tone });
    }
}
