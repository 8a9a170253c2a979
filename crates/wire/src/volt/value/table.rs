//! Tables: read in place, and written row by row.

use super::super::frame::FRAME_HEAD_BYTES;
use super::super::kind::{DecodeError, Kind};
use super::super::scan::{Scan, patch_length, put_counted};
use super::Value;

/// Position of the columns' types: behind the header's length, the status and the count of columns.
const KINDS_AT: usize = 7;
/// The status of a table without one.
const NO_STATUS: i8 = i8::MIN;
/// Value of `frame_at` for a table that is not part of a message.
const NO_FRAME: usize = usize::MAX;

/// A table in the bytes it came in. Its header was checked, its rows are as they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableView<'a> {
    bytes: &'a [u8],
    header_end: u32,
    columns: u16,
    row_count: u32,
}

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column<'a> {
    /// Its name, empty where a procedure returned a bare number.
    pub name: &'a str,
    /// The type of its values.
    pub kind: Kind,
}

impl<'a> TableView<'a> {
    /// The table that `bytes` are, without a length in front.
    ///
    /// # Errors
    /// A header that is cut or wrong, or fewer bytes than its rows must have.
    #[inline]
    pub fn read(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut scan = Scan::new(bytes);
        let length = scan.i32()?;
        let header_bytes = usize::try_from(length).map_err(|_| DecodeError::Length(length))?;
        let mut header = Scan::new(scan.take(header_bytes)?);
        let row_count = scan.i32()?;
        // A row is at least its own length. No row is negative, and none is believed without its bytes.
        if row_count < 0 || row_count as usize > scan.rest().len() / 4 {
            return Err(DecodeError::Length(row_count));
        }
        let _status = header.i8()?;
        let columns = header.count()?;
        for &code in header.take(columns.into())? {
            Kind::from_code(code as i8)?;
        }
        for _ in 0..columns {
            header.some_text()?;
        }
        Ok(Self {
            bytes,
            header_end: (header_bytes + 4) as u32,
            columns,
            row_count: row_count as u32,
        })
    }

    /// The status that the procedure gave it, -128 if none.
    #[must_use]
    pub fn status(&self) -> i8 {
        self.bytes.get(4).map_or(NO_STATUS, |&byte| byte as i8)
    }

    /// Number of columns that it has.
    #[must_use]
    pub const fn column_count(&self) -> usize {
        self.columns as usize
    }

    /// Number of rows that it says that it has.
    #[must_use]
    pub const fn row_count(&self) -> usize {
        self.row_count as usize
    }

    /// Its columns, in their order.
    pub fn columns(&self) -> impl Iterator<Item = Column<'a>> + use<'a> {
        let names_at = KINDS_AT + self.column_count();
        let mut names = Scan::new(&self.bytes[names_at..self.header_end as usize]);
        // All of it was read once before.
        self.kinds().iter().map_while(move |&code| {
            Some(Column { name: names.some_text().ok()?, kind: Kind::from_code(code as i8).ok()? })
        })
    }

    /// The index of the column with this name; case does not count, as in SQL.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns().position(|column| column.name.eq_ignore_ascii_case(name))
    }

    /// Its rows, in their order, up to the first that is not whole.
    #[inline]
    #[must_use]
    pub fn rows(&self) -> Rows<'a> {
        let behind = self.header_end as usize + 4;
        Rows { kinds: self.kinds(), scan: Scan::new(&self.bytes[behind..]), left: self.row_count }
    }

    /// The number in a table of one column and one row, as procedures that return a `long` and counts have it.
    #[inline]
    #[must_use]
    pub fn long(&self) -> Option<i64> {
        if (self.columns, self.row_count) != (1, 1) {
            return None;
        }
        let row = self.rows().next()?.ok()?;
        if *self.kinds() != [Kind::BigInt.code() as u8] {
            return row.long(0);
        }
        // The usual case is read straight from its place: there is one in every answer.
        let number = i64::from_be_bytes(*row.bytes.first_chunk()?);
        (number != i64::MIN).then_some(number)
    }

    /// The table as it stands in messages, without a length in front.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    #[inline]
    fn kinds(&self) -> &'a [u8] {
        &self.bytes[KINDS_AT..KINDS_AT + self.column_count()]
    }
}

/// The rows of a table.
#[derive(Clone, Debug)]
pub struct Rows<'a> {
    kinds: &'a [u8],
    scan: Scan<'a>,
    left: u32,
}

impl<'a> Iterator for Rows<'a> {
    type Item = Result<Row<'a>, DecodeError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let row = match self.scan.counted() {
            Ok(Some(bytes)) => Ok(Row { kinds: self.kinds, bytes }),
            Ok(None) => Err(DecodeError::Length(-1)),
            Err(error) => Err(error),
        };
        if row.is_err() {
            self.left = 0;
        }
        Some(row)
    }
}

/// A row of a table.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    kinds: &'a [u8],
    bytes: &'a [u8],
}

impl<'a> Row<'a> {
    /// Its values, in the order of the columns, up to the first that is not whole.
    #[must_use]
    pub fn values(&self) -> Values<'a> {
        Values { kinds: self.kinds, scan: Scan::new(self.bytes) }
    }

    /// The value in the column with this index.
    ///
    /// # Errors
    /// [`DecodeError::Table`] when there is no such column; else what is wrong with the bytes up to there.
    pub fn value(&self, column: usize) -> Result<Value<'a>, DecodeError> {
        let mut values = self.values();
        for _ in 0..column {
            values.next().ok_or(DecodeError::Table)??;
        }
        values.next().ok_or(DecodeError::Table)?
    }

    /// The whole number or timestamp in this column; `None` also when it is null or cannot be read.
    #[inline]
    #[must_use]
    pub fn long(&self, column: usize) -> Option<i64> {
        self.value(column).ok()?.long()
    }

    /// The text in this column; `None` also when it is null or cannot be read.
    #[must_use]
    pub fn text(&self, column: usize) -> Option<&'a str> {
        self.value(column).ok()?.text()
    }

    /// The bytes in this column; `None` also when they are null or cannot be read.
    #[must_use]
    pub fn bytes(&self, column: usize) -> Option<&'a [u8]> {
        self.value(column).ok()?.bytes()
    }
}

/// The values of a row.
#[derive(Clone, Debug)]
pub struct Values<'a> {
    kinds: &'a [u8],
    scan: Scan<'a>,
}

impl<'a> Iterator for Values<'a> {
    type Item = Result<Value<'a>, DecodeError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (&code, rest) = self.kinds.split_first()?;
        let value = Kind::from_code(code as i8).and_then(|kind| Value::read(kind, &mut self.scan));
        self.kinds = if value.is_ok() { rest } else { &[] };
        Some(value)
    }
}

/// Writes a table, with its length in front, at the end of a buffer. After every row the table is whole.
#[derive(Debug)]
pub struct TableWriter<'o> {
    out: &'o mut Vec<u8>,
    /// Position of the table's length.
    at: usize,
    /// Position of the count of rows.
    rows_at: usize,
    /// Position of the length of the message around it.
    frame_at: usize,
    row_count: u32,
    column_count: u16,
}

impl<'o> TableWriter<'o> {
    /// A table without rows at the end of `out`. Read it back with [`TableView::read`] behind its first four
    /// bytes, to pass it as a value of a call.
    pub fn new(out: &'o mut Vec<u8>, columns: &[(&str, Kind)]) -> Self {
        Self::within(out, NO_FRAME, columns)
    }

    /// The same as a part of the message whose length stands at `frame_at`.
    pub(in super::super) fn within(
        out: &'o mut Vec<u8>,
        frame_at: usize,
        columns: &[(&str, Kind)],
    ) -> Self {
        debug_assert!(columns.len() <= 1024, "more columns than VoltDB has");
        let at = out.len();
        out.extend_from_slice(&[0; 2 * FRAME_HEAD_BYTES]);
        out.push(NO_STATUS as u8);
        out.extend_from_slice(&(columns.len() as u16).to_be_bytes());
        out.extend(columns.iter().map(|(_, kind)| kind.code() as u8));
        for (name, _) in columns {
            put_counted(Some(name.as_bytes()), out);
        }
        patch_length(at + FRAME_HEAD_BYTES, out);
        let rows_at = out.len();
        out.extend_from_slice(&[0; 4]);
        let column_count = columns.len() as u16;
        let mut made = Self { out, at, rows_at, frame_at, row_count: 0, column_count };
        made.patch();
        made
    }

    /// Appends a row. Whole numbers take the width of their column.
    ///
    /// # Panics
    /// In debug builds, when there are not as many values as columns, or one does not fit in its column.
    /// Otherwise null stands in such a place.
    #[inline]
    pub fn row(&mut self, values: &[Value<'_>]) -> &mut Self {
        debug_assert_eq!(values.len(), usize::from(self.column_count), "values for the columns");
        let row_at = self.out.len();
        self.out.extend_from_slice(&[0; 4]);
        for column in 0..usize::from(self.column_count) {
            // The codes were written by this writer.
            let code = self.out[self.at + FRAME_HEAD_BYTES + KINDS_AT + column];
            let kind = Kind::from_code(code as i8).unwrap_or(Kind::Null);
            values.get(column).unwrap_or(&Value::Null).put_as(kind, self.out);
        }
        patch_length(row_at, self.out);
        self.row_count += 1;
        self.patch();
        self
    }

    /// Number of rows that were written.
    #[must_use]
    pub const fn row_count(&self) -> u32 {
        self.row_count
    }

    fn patch(&mut self) {
        self.out[self.rows_at..self.rows_at + 4].copy_from_slice(&self.row_count.to_be_bytes());
        patch_length(self.at, self.out);
        if self.frame_at != NO_FRAME {
            patch_length(self.frame_at, self.out);
        }
    }
}
