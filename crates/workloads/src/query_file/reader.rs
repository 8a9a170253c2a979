//! Streaming a query file, whole or a byte range of it, once or again and again.

use std::path::Path;

use super::lines::LineReader;
use super::parser::{ReadOptions, Record, RecordParser};
use super::source::{Bytes, SourceFile};
use crate::error::InputError;

/// The i-th of n byte ranges. A record belongs to the range in which its first byte lies, so that
/// the n ranges together hold each record exactly once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// Index of the range, from 0.
    pub index: u64,
    /// Number of ranges, at least 1.
    pub of: u64,
}

impl ByteRange {
    /// The whole file.
    pub const WHOLE: Self = Self { index: 0, of: 1 };

    /// First byte and end of the range in a file of `size_bytes`.
    #[must_use]
    pub fn bounds(self, size_bytes: u64) -> (u64, u64) {
        let of = u128::from(self.of.max(1));
        let cut = |i: u64| (u128::from(size_bytes) * u128::from(i).min(of) / of) as u64;
        (cut(self.index), cut(self.index.saturating_add(1)))
    }
}

/// Number of times that a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passes {
    /// As long as requests are wanted.
    Unlimited,
    /// This often in all (the original's `-r k` is k + 1 passes).
    Count(u64),
}

/// Streams the records of a file in bounded memory: one read buffer, one line and one record.
pub struct RecordReader {
    source: SourceFile,
    options: ReadOptions,
    start: u64,
    end: u64,
    parser: RecordParser<Bytes>,
    passes: Passes,
    found_in_pass: bool,
    skipped_before: u64,
}

impl RecordReader {
    /// Opens a range of a file.
    ///
    /// # Errors
    /// [`InputError::Io`] when the file cannot be read.
    pub fn open(
        source: &mut SourceFile,
        options: &ReadOptions,
        range: ByteRange,
        passes: Passes,
    ) -> Result<Self, InputError> {
        // The size of a gzip file costs a pass over it, and the whole file can do without.
        let (start, end) = match range {
            ByteRange::WHOLE => (0, u64::MAX),
            _ => range.bounds(source.size_bytes()?),
        };
        let parser = Self::parser(source, options, start, end)?;
        Ok(Self {
            source: source.clone(),
            options: options.clone(),
            start,
            end,
            parser,
            passes,
            found_in_pass: false,
            skipped_before: 0,
        })
    }

    fn parser(
        source: &SourceFile,
        options: &ReadOptions,
        start: u64,
        end: u64,
    ) -> Result<RecordParser<Bytes>, InputError> {
        let bytes =
            source.at(start.saturating_sub(1)).map_err(|e| InputError::io(source.path(), e))?;
        Ok(RecordParser::with_range(bytes, source.path(), options, start, end))
    }

    /// Reads the next record of this pass; false at the end of the range.
    ///
    /// # Errors
    /// [`InputError::Line`] with the line counted from the file's start; [`InputError::Io`].
    pub fn next_record(&mut self, record: &mut Record) -> Result<bool, InputError> {
        match self.parser.next_record(record) {
            Ok(found) => {
                self.found_in_pass |= found;
                Ok(found)
            }
            Err(error) => Err(self.with_true_line(error)),
        }
    }

    /// Reads the next record, beginning again at the end of a pass while passes are left. False when
    /// they are used up, and when a whole pass held no record: a file without records would be read
    /// for ever.
    ///
    /// # Errors
    /// As [`RecordReader::next_record`].
    pub fn next_repeating(&mut self, record: &mut Record) -> Result<bool, InputError> {
        loop {
            if self.passes == Passes::Count(0) {
                return Ok(false);
            }
            if self.next_record(record)? {
                return Ok(true);
            }
            if let Passes::Count(left) = &mut self.passes {
                *left -= 1;
            }
            if !self.found_in_pass || self.passes == Passes::Count(0) {
                self.passes = Passes::Count(0);
                return Ok(false);
            }
            self.rewind()?;
        }
    }

    /// Begins again at the start of the range.
    ///
    /// # Errors
    /// [`InputError::Io`] when the file cannot be read any more.
    pub fn rewind(&mut self) -> Result<(), InputError> {
        self.skipped_before = self.skipped();
        self.found_in_pass = false;
        self.parser = Self::parser(&self.source, &self.options, self.start, self.end)?;
        Ok(())
    }

    /// Records left out so far because they were too long, over all passes.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped_before + self.parser.skipped()
    }

    fn with_true_line(&self, error: InputError) -> InputError {
        let InputError::Line { mut place, problem } = error else {
            return error;
        };
        place.line = self.line_at(self.parser.error_offset(), place.line);
        InputError::Line { place, problem }
    }

    /// The record's line counted from the file's start. A range does not know how many lines
    /// precede it, and only an error message needs to, so they are counted when asked for.
    #[must_use]
    pub fn true_line(&self, record: &Record) -> u64 {
        self.line_at(record.offset, record.line)
    }

    fn line_at(&self, offset: u64, in_range: u64) -> u64 {
        let mut number = in_range;
        if self.start > 0
            && let Ok(bytes) = self.source.at(0)
        {
            let mut lines = LineReader::new(bytes, 0, 1);
            let mut line = Vec::new();
            while let Ok(Some(info)) = lines.next_line(&mut line) {
                if info.offset > offset {
                    break;
                }
                number = info.number;
            }
        }
        number
    }
}

/// Result of a pass over a query file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// Records that can be sent.
    pub records: u64,
    /// Records left out because they are too long.
    pub skipped: u64,
    /// Bytes of targets and bodies.
    pub bytes: u64,
}

/// Reads a file to its end, so that bad input is found before any load is sent.
///
/// # Errors
/// The first wrong line; [`InputError::Empty`] if there is no record.
pub fn scan(path: &Path, options: &ReadOptions) -> Result<Scan, InputError> {
    scan_source(&mut SourceFile::open(path)?, options)
}

/// As [`scan`], for a file that was opened before.
pub(super) fn scan_source(
    source: &mut SourceFile,
    options: &ReadOptions,
) -> Result<Scan, InputError> {
    let mut reader = RecordReader::open(source, options, ByteRange::WHOLE, Passes::Count(1))?;
    let (mut record, mut found) = (Record::default(), Scan::default());
    while reader.next_record(&mut record)? {
        found.records += 1;
        found.bytes += (record.target.len() + record.body.len()) as u64;
    }
    found.skipped = reader.skipped();
    if found.records == 0 {
        return Err(InputError::Empty { path: source.path().to_owned() });
    }
    Ok(found)
}
