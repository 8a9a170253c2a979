//! A query file held in memory: the fast form for everything but huge files.

use std::path::Path;

use super::parser::{ReadOptions, Record};
use super::reader::{ByteRange, Passes, RecordReader};
use super::source::SourceFile;
use crate::error::InputError;

/// Files of at most this many (unpacked) bytes are held in memory, larger ones are streamed: 64
/// MiB. The set needs the text's bytes once and 16 bytes a record.
pub const PRELOAD_MAX_BYTES: u64 = 64 * 1024 * 1024;

/// A record of a [`RequestSet`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestRef<'a> {
    /// The request target, verbatim.
    pub target: &'a [u8],
    /// The body; empty for GET.
    pub body: &'a [u8],
    /// Line of the target in its file, from 1.
    pub line: u64,
}

/// All records of a file in one piece of memory.
#[derive(Clone, Debug, Default)]
pub struct RequestSet {
    bytes: Vec<u8>,
    spans: Vec<Span>,
    skipped: u64,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    at: u32,
    target_len: u32,
    body_len: u32,
    line: u32,
}

impl RequestSet {
    /// Reads a whole file of at most [`PRELOAD_MAX_BYTES`].
    ///
    /// # Errors
    /// The first wrong line; [`InputError::Empty`] if there is no record; [`InputError::Range`] for
    /// a file that must be streamed.
    pub fn load(path: &Path, options: &ReadOptions) -> Result<Self, InputError> {
        let mut source = SourceFile::open(path)?;
        if !source.fits(PRELOAD_MAX_BYTES)? {
            let value = source.size_bytes()?;
            let range = "a file of at most 67108864 bytes, or stream it";
            return Err(InputError::Range { option: "query file bytes", value, range });
        }
        Self::read(&mut source, options)
    }

    fn read(source: &mut SourceFile, options: &ReadOptions) -> Result<Self, InputError> {
        let mut reader = RecordReader::open(source, options, ByteRange::WHOLE, Passes::Count(1))?;
        let (mut set, mut record) = (Self::default(), Record::default());
        while reader.next_record(&mut record)? {
            set.push(&record.target, &record.body, record.line);
        }
        set.skipped = reader.skipped();
        if set.spans.is_empty() {
            return Err(InputError::Empty { path: source.path().to_owned() });
        }
        set.bytes.shrink_to_fit();
        set.spans.shrink_to_fit();
        Ok(set)
    }

    /// Adds a record. Targets and bodies together must stay under 4 GiB, which a preloaded file
    /// does.
    pub fn push(&mut self, target: &[u8], body: &[u8], line: u64) {
        debug_assert!(self.bytes.len() + target.len() + body.len() <= u32::MAX as usize);
        self.spans.push(Span {
            at: self.bytes.len() as u32,
            target_len: target.len() as u32,
            body_len: body.len() as u32,
            line: line as u32,
        });
        self.bytes.extend_from_slice(target);
        self.bytes.extend_from_slice(body);
    }

    /// Number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns true if there is none; never so for a set that was loaded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Records left out because they were too long.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// The record at an index below [`RequestSet::len`].
    ///
    /// # Panics
    /// When the index is not below the length.
    #[must_use]
    pub fn get(&self, index: usize) -> RequestRef<'_> {
        let span = self.spans[index];
        let (at, body_at) = (span.at as usize, (span.at + span.target_len) as usize);
        RequestRef {
            target: &self.bytes[at..body_at],
            body: &self.bytes[body_at..body_at + span.body_len as usize],
            line: u64::from(span.line),
        }
    }

    /// All records in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = RequestRef<'_>> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Records that the i-th of n equal parts holds; parts differ by at most one record.
    #[must_use]
    pub fn part(&self, index: u64, of: u64) -> std::ops::Range<usize> {
        let (start, end) = ByteRange { index, of }.bounds(self.len() as u64);
        start as usize..end as usize
    }
}

/// A query file, ready to be asked from.
#[derive(Debug)]
pub enum Queries {
    /// In memory.
    Preloaded(RequestSet),
    /// Too large for that: open a [`RecordReader`] on it for each client. It was read through once,
    /// so a wrong line has been found already.
    Streaming(SourceFile, super::Scan),
}

impl Queries {
    /// Opens a file in the form that its size asks for, and checks every record of it.
    ///
    /// # Errors
    /// The first wrong line; [`InputError::Empty`] if there is no record.
    pub fn open(path: &Path, options: &ReadOptions) -> Result<Self, InputError> {
        Self::of(SourceFile::open(path)?, options)
    }

    /// As [`Queries::open`], for a file that was opened before.
    ///
    /// # Errors
    /// As [`Queries::open`].
    pub fn of(mut source: SourceFile, options: &ReadOptions) -> Result<Self, InputError> {
        if source.fits(PRELOAD_MAX_BYTES)? {
            return Ok(Self::Preloaded(RequestSet::read(&mut source, options)?));
        }
        let found = super::reader::scan_source(&mut source, options)?;
        Ok(Self::Streaming(source, found))
    }
}
