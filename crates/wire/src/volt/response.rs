//! The way a call ended, as a client reads it.

use super::kind::DecodeError;
use super::scan::Scan;
use super::status::Status;
use super::value::TableView;

/// The status of an application that set none.
pub const NO_APP_STATUS: i8 = i8::MIN;

/// Bits that say which optional parts are there.
pub(super) mod part {
    pub const HASHES: u8 = 0x10;
    pub const STATUS_TEXT: u8 = 0x20;
    pub const EXCEPTION: u8 = 0x40;
    pub const APP_TEXT: u8 = 0x80;
}

/// The response to a call, borrowed from the message it came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response<'a> {
    /// The handle of the call.
    pub handle: i64,
    /// The way it ended: one of [`Status`].
    pub status: i8,
    /// The text of the status. Every failure should have one.
    pub status_text: Option<&'a str>,
    /// The status set by the procedure, -128 without one.
    pub app_status: i8,
    /// The text of the procedure's status.
    pub app_text: Option<&'a str>,
    /// Time that the call took inside the cluster, in whole ms.
    pub round_trip_ms: i32,
    /// The resulting tables; a failed call has none.
    pub tables: Tables<'a>,
    /// Bytes of the message, its length not counted.
    pub bytes: usize,
}

impl<'a> Response<'a> {
    /// Reads a response from a message, its length not included. Tables are read as they are asked for.
    ///
    /// # Errors
    /// Another version than 0, bytes that end too soon, or texts that are none.
    #[inline]
    pub fn read(body: &'a [u8]) -> Result<Self, DecodeError> {
        let mut scan = Scan::new(body);
        let version = scan.i8()?;
        if version != 0 {
            return Err(DecodeError::Version(version));
        }
        let handle = scan.i64()?;
        let present = scan.i8()? as u8;
        let status = scan.i8()?;
        let status_text = if present & part::STATUS_TEXT != 0 { scan.text()? } else { None };
        let app_status = scan.i8()?;
        let app_text = if present & part::APP_TEXT != 0 { scan.text()? } else { None };
        let round_trip_ms = scan.i32()?;
        if present & part::EXCEPTION != 0 {
            // Of no meaning for many versions.
            scan.counted()?;
        }
        if present & part::HASHES != 0 {
            let count = scan.count()?;
            scan.take(usize::from(count) * 4)?;
        }
        let count = scan.count()?;
        let tables = Tables { scan, left: count };
        let mut check = scan;
        for _ in 0..count {
            check.counted()?.ok_or(DecodeError::Length(-1))?;
        }
        Ok(Self {
            handle,
            status,
            status_text,
            app_status,
            app_text,
            round_trip_ms,
            tables,
            bytes: body.len(),
        })
    }

    /// Returns true if the transaction is committed.
    #[inline]
    #[must_use]
    pub const fn is_success(&self) -> bool {
        self.status == Status::SUCCESS
    }

    /// Returns the reason of a call that was not carried out; `None` if it was.
    #[must_use]
    pub fn refusal(&self) -> Option<Refusal> {
        (!self.is_success()).then(|| Refusal::of(self.status_text.unwrap_or_default()))
    }

    /// The number in the only cell of its only table: what a procedure that returns a `long` came to, or a count.
    #[inline]
    #[must_use]
    pub fn long(&self) -> Option<i64> {
        let mut tables = self.tables;
        if tables.len() == 1 { tables.next()?.ok()?.long() } else { None }
    }

    /// The table with this index; `None` also when it cannot be read.
    #[inline]
    #[must_use]
    pub fn table(&self, index: usize) -> Option<TableView<'a>> {
        let mut tables = self.tables;
        tables.nth(index)?.ok()
    }
}

/// Reason why a call was not carried out, as far as a client can do something about it. VoltDB has no status codes for these:
/// they are read from its text, here and nowhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Unknown procedure: the schema is missing.
    NoProcedure,
    /// A row violates a constraint; an insert finds its row there already.
    Constraint,
    /// Anything else.
    Other,
}

impl Refusal {
    fn of(text: &str) -> Self {
        if text.contains("was not found") {
            Self::NoProcedure
        } else if text.to_ascii_uppercase().contains("CONSTRAINT") {
            Self::Constraint
        } else {
            Self::Other
        }
    }
}

/// The tables of a response, each read as it is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Tables<'a> {
    scan: Scan<'a>,
    left: u16,
}

impl PartialEq for Tables<'_> {
    fn eq(&self, other: &Self) -> bool {
        (self.left, self.scan.rest()) == (other.left, other.scan.rest())
    }
}

impl Eq for Tables<'_> {}

impl Tables<'_> {
    /// Number of them to come.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.left as usize
    }

    /// Returns true if there are none to come.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.left == 0
    }
}

impl<'a> Iterator for Tables<'a> {
    type Item = Result<TableView<'a>, DecodeError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let bytes = self.scan.counted().and_then(|bytes| bytes.ok_or(DecodeError::Length(-1)));
        Some(bytes.and_then(TableView::read))
    }
}
