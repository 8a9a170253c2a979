//! The way a call ended, as a server writes it.

use super::frame::FRAME_HEAD_BYTES;
use super::kind::Kind;
use super::response::{NO_APP_STATUS, part};
use super::scan::{patch_length, put_counted};
use super::status::Status;
use super::value::{TableView, TableWriter};

/// Everything of a response but its tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer<'a> {
    /// The handle of the call.
    pub handle: i64,
    /// One of [`Status`].
    pub status: i8,
    /// The text of the status.
    pub status_text: Option<&'a str>,
    /// The status set by the procedure, -128 without one.
    pub app_status: i8,
    /// The text of the procedure's status.
    pub app_text: Option<&'a str>,
    /// Time that the call took, in whole ms.
    pub round_trip_ms: i32,
    /// An exception as old servers sent it, of no meaning for clients.
    pub exception: Option<&'a [u8]>,
    /// Hashes of the statements as servers exchange them, of no meaning for clients.
    pub hashes: Option<&'a [i32]>,
}

impl Default for Answer<'_> {
    /// Success, to handle 0, within 0 ms.
    fn default() -> Self {
        Self {
            handle: 0,
            status: Status::SUCCESS,
            status_text: None,
            app_status: NO_APP_STATUS,
            app_text: None,
            round_trip_ms: 0,
            exception: None,
            hashes: None,
        }
    }
}

/// Writes a response at the end of a buffer. It is whole at once, and again after every table and row.
#[derive(Debug)]
pub struct ResponseWriter<'o> {
    out: &'o mut Vec<u8>,
    at: usize,
    tables_at: usize,
    table_count: u16,
}

impl<'o> ResponseWriter<'o> {
    /// A response with everything it may have, but tables.
    pub fn new(out: &'o mut Vec<u8>, answer: &Answer<'_>) -> Self {
        let at = out.len();
        out.extend_from_slice(&[0; FRAME_HEAD_BYTES + 1]);
        out.extend_from_slice(&answer.handle.to_be_bytes());
        let mut present = 0;
        for (is_there, bit) in [
            (answer.hashes.is_some(), part::HASHES),
            (answer.status_text.is_some(), part::STATUS_TEXT),
            (answer.exception.is_some(), part::EXCEPTION),
            (answer.app_text.is_some(), part::APP_TEXT),
        ] {
            present |= if is_there { bit } else { 0 };
        }
        out.extend_from_slice(&[present, answer.status as u8]);
        if let Some(text) = answer.status_text {
            put_counted(Some(text.as_bytes()), out);
        }
        out.push(answer.app_status as u8);
        if let Some(text) = answer.app_text {
            put_counted(Some(text.as_bytes()), out);
        }
        out.extend_from_slice(&answer.round_trip_ms.to_be_bytes());
        if let Some(exception) = answer.exception {
            put_counted(Some(exception), out);
        }
        if let Some(hashes) = answer.hashes {
            debug_assert!(hashes.len() <= i16::MAX as usize, "more hashes than can be counted");
            out.extend_from_slice(&(hashes.len() as u16).to_be_bytes());
            out.extend(hashes.iter().flat_map(|hash| hash.to_be_bytes()));
        }
        let tables_at = out.len();
        out.extend_from_slice(&[0; 2]);
        patch_length(at, out);
        Self { out, at, tables_at, table_count: 0 }
    }

    /// A response to a call that succeeded.
    #[inline]
    pub fn success(out: &'o mut Vec<u8>, handle: i64, round_trip_ms: i32) -> Self {
        Self::new(out, &Answer { handle, round_trip_ms, ..Answer::default() })
    }

    /// Writes the response to a call that failed; it has no tables.
    pub fn failure(out: &'o mut Vec<u8>, handle: i64, status: i8, text: &str, round_trip_ms: i32) {
        let status_text = Some(text);
        Self::new(out, &Answer { handle, status, status_text, round_trip_ms, ..Answer::default() });
    }

    /// Begins the next table.
    pub fn table(&mut self, columns: &[(&str, Kind)]) -> TableWriter<'_> {
        self.counted();
        TableWriter::within(self.out, self.at, columns)
    }

    /// Appends a table that is there already.
    pub fn copy(&mut self, table: &TableView<'_>) -> &mut Self {
        self.counted();
        put_counted(Some(table.bytes()), self.out);
        patch_length(self.at, self.out);
        self
    }

    fn counted(&mut self) {
        self.table_count += 1;
        let count = self.table_count.to_be_bytes();
        self.out[self.tables_at..self.tables_at + 2].copy_from_slice(&count);
    }

    /// Writes at once what most calls of a benchmark are answered with: success, and one BIGINT in a column
    /// without a name, as procedures that return a `long` have it.
    #[inline]
    pub fn vote_like(out: &mut Vec<u8>, handle: i64, value: i64, round_trip_ms: i32) {
        let mut bytes = VOTE_LIKE;
        bytes[5..13].copy_from_slice(&handle.to_be_bytes());
        bytes[16..20].copy_from_slice(&round_trip_ms.to_be_bytes());
        bytes[46..].copy_from_slice(&value.to_be_bytes());
        out.extend_from_slice(&bytes);
    }
}

/// The response with one BIGINT: handle, time and value are 0.
const VOTE_LIKE: [u8; 54] = [
    0, 0, 0, 50, // the length
    0, 0, 0, 0, 0, 0, 0, 0, 0, // version and handle
    0, 1, 0x80, 0, 0, 0, 0, // nothing optional, success, no status of the application, ms
    0, 1, 0, 0, 0, 28, // one table
    0, 0, 0, 8, 0x80, 0, 1, 6, 0, 0, 0, 0, // its header: a BIGINT without a name
    0, 0, 0, 1, 0, 0, 0, 8, // one row
    0, 0, 0, 0, 0, 0, 0, 0, // the value
];
