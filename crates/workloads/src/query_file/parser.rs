//! Records out of lines.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::lines::{LineInfo, LineReader};
use super::origin::to_path;
use super::{BODY_LINES_MAX, LINE_MAX_BYTES, LINE_MAX_BYTES_MIN};
use crate::authority::Authority;
use crate::error::{InputError, Problem};

/// Padding may be there or not: encoders differ, and the length tells the same.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The way lines make records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// Each line is a request.
    Get,
    /// A line that starts with `/` is a URL, the lines up to the next one are its body.
    Post,
    /// Each line that is not empty is a record of another format, kept in `target` unchecked. A
    /// line that is too long is an error, not skipped.
    Line,
}

/// Options for reading a query file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// The way lines make records.
    pub kind: RecordKind,
    /// A line of this many bytes or more is skipped (values under 1024 are raised to it).
    pub line_max_bytes: usize,
    /// POST bodies are base64, in the standard or the URL-safe alphabet, padded or not.
    pub base64: bool,
    /// The servers that requests go to: every target is then a path on them or, where there is only one, a whole URL of
    /// it, which is taken as its path. Without any, targets are sent verbatim, as vespa-fbench does.
    pub own: Option<Arc<[Authority]>>,
}

impl ReadOptions {
    /// The defaults for a kind of record.
    #[must_use]
    pub fn new(kind: RecordKind) -> Self {
        Self { kind, line_max_bytes: LINE_MAX_BYTES, base64: false, own: None }
    }
}

/// One request of a query file. Reused from record to record, so that reading does not allocate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The request target, verbatim.
    pub target: Vec<u8>,
    /// The body; empty for GET.
    pub body: Vec<u8>,
    /// Line of the target, from 1, counted from where the reader began.
    pub line: u64,
    /// Position of the target's first byte in the (unpacked) file.
    pub offset: u64,
}

/// Says why a target would break a request line: a blank or a control character in it.
///
/// # Errors
/// The first such character and its column.
pub fn check_target(target: &[u8]) -> Result<(), Problem> {
    let Some(at) = target.iter().position(|&byte| byte <= b' ' || byte == 0x7f) else {
        return Ok(());
    };
    Err(match target[at] {
        0 => Problem::Nul,
        b' ' => Problem::BlankInUrl { column: at + 1 },
        byte => Problem::ControlInUrl { byte, column: at + 1 },
    })
}

/// Makes records from a stream of bytes.
#[derive(Debug)]
pub struct RecordParser<R> {
    lines: LineReader<R>,
    name: PathBuf,
    options: ReadOptions,
    /// Records that begin here or later belong to the next range.
    end: u64,
    /// Lines before the first URL belong to the range before this one.
    joins_midway: bool,
    line: Vec<u8>,
    /// The URL line that ended the body before it.
    url: Vec<u8>,
    url_info: Option<LineInfo>,
    /// Offset of the line that an error speaks of.
    error_offset: u64,
    skipped: u64,
}

impl<R: Read> RecordParser<R> {
    /// Reads records of a whole stream, called `name` in errors.
    pub fn new(source: R, name: &Path, options: &ReadOptions) -> Self {
        Self::with_range(source, name, options, 0, u64::MAX)
    }

    /// Reads the records that begin in `start..end`, from a stream whose first byte has position
    /// `start - 1` (or 0 for the first range). The byte before tells whether a line begins at
    /// `start`.
    pub(super) fn with_range(
        source: R,
        name: &Path,
        options: &ReadOptions,
        start: u64,
        end: u64,
    ) -> Self {
        let line_max = options.line_max_bytes.max(LINE_MAX_BYTES_MIN);
        Self {
            lines: LineReader::new(source, start.saturating_sub(1), line_max),
            name: name.to_owned(),
            options: ReadOptions { line_max_bytes: line_max, ..options.clone() },
            end,
            joins_midway: start > 0,
            line: Vec::new(),
            url: Vec::new(),
            url_info: None,
            error_offset: 0,
            skipped: 0,
        }
    }

    /// Records left out because a line or body was too long.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    pub(super) fn error_offset(&self) -> u64 {
        self.error_offset
    }

    /// Reads the next record; false at the end.
    ///
    /// # Errors
    /// [`InputError::Line`] for a record that cannot be sent, [`InputError::Io`] for a failed read.
    pub fn next_record(&mut self, record: &mut Record) -> Result<bool, InputError> {
        if self.joins_midway && self.next_line()?.is_none() {
            return Ok(false);
        }
        // The rest of a line that began in the range before was dropped by the read above.
        let midway = std::mem::take(&mut self.joins_midway);
        match self.options.kind {
            RecordKind::Get | RecordKind::Line => self.next_get(record),
            RecordKind::Post => self.next_post(record, midway),
        }
    }

    fn next_line(&mut self) -> Result<Option<LineInfo>, InputError> {
        self.lines.next_line(&mut self.line).map_err(|error| InputError::io(&self.name, error))
    }

    fn wrong(&mut self, info: LineInfo, problem: Problem) -> InputError {
        self.error_offset = info.offset;
        InputError::line(&self.name, info.number, problem)
    }

    fn next_get(&mut self, record: &mut Record) -> Result<bool, InputError> {
        while let Some(info) = self.next_line()? {
            if info.offset >= self.end {
                return Ok(false);
            }
            let raw = self.options.kind == RecordKind::Line;
            if info.too_long && raw {
                let max_bytes = self.options.line_max_bytes;
                return Err(self.wrong(info, Problem::LineTooLong { max_bytes }));
            }
            if info.too_long {
                self.skipped += 1;
            } else if info.first.is_some() {
                std::mem::swap(&mut record.target, &mut self.line);
                record.body.clear();
                (record.line, record.offset) = (info.number, info.offset);
                let checked = if raw { Ok(()) } else { self.check(&mut record.target) };
                return checked.map(|()| true).map_err(|problem| self.wrong(info, problem));
            }
        }
        Ok(false)
    }

    fn check(&self, target: &mut Vec<u8>) -> Result<(), Problem> {
        if let Some(own) = &self.options.own {
            to_path(target, own)?;
        }
        check_target(target)
    }

    fn next_post(&mut self, record: &mut Record, midway: bool) -> Result<bool, InputError> {
        if self.url_info.is_none() {
            self.find_first_url(midway)?;
        }
        while let Some(info) = self.url_info.take() {
            if info.offset >= self.end {
                return Ok(false);
            }
            std::mem::swap(&mut record.target, &mut self.url);
            (record.line, record.offset) = (info.number, info.offset);
            let whole = self.read_body(&mut record.body)?;
            if info.too_long || !whole {
                self.skipped += 1;
                continue;
            }
            let checked = self.check(&mut record.target);
            checked.map_err(|problem| self.wrong(info, problem))?;
            if self.options.base64 {
                self.decode(record, info)?;
            }
            return Ok(true);
        }
        Ok(false)
    }

    fn find_first_url(&mut self, midway: bool) -> Result<(), InputError> {
        while let Some(info) = self.next_line()? {
            match info.first {
                Some(b'/') => {
                    self.take_url(info);
                    break;
                }
                Some(_) if !midway => {
                    let nul = memchr::memchr(0, &self.line).is_some();
                    let problem = if nul { Problem::Nul } else { Problem::BodyWithoutUrl };
                    return Err(self.wrong(info, problem));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Reads a body up to the next URL; false if it is too long and was not kept. A line of it may be longer than a URL: as
    /// in the original, only the whole body has a limit.
    fn read_body(&mut self, body: &mut Vec<u8>) -> Result<bool, InputError> {
        body.clear();
        let body_max = self.options.line_max_bytes.saturating_mul(BODY_LINES_MAX);
        let (mut whole, mut first) = (true, true);
        loop {
            // What remains of the limit may be less than the URL that comes next.
            let room = if whole { body_max - body.len() } else { 0 };
            let line_max = room.max(self.options.line_max_bytes);
            let next = self.lines.next_line_within(line_max, &mut self.line);
            let Some(info) = next.map_err(|error| InputError::io(&self.name, error))? else {
                break;
            };
            if info.first == Some(b'/') {
                self.take_url(info);
                break;
            }
            if memchr::memchr(0, &self.line).is_some() {
                return Err(self.wrong(info, Problem::Nul));
            }
            whole = whole && !info.too_long && self.line.len() < room;
            if whole {
                if !first {
                    body.push(b'\n');
                }
                body.extend_from_slice(&self.line);
            }
            first = false;
        }
        Ok(whole)
    }

    /// Keeps the URL line that was read; its limit is that of a line, whatever it was read with.
    fn take_url(&mut self, mut info: LineInfo) {
        let line_max = self.options.line_max_bytes;
        info.too_long |= self.line.len() >= line_max;
        self.line.truncate(line_max);
        std::mem::swap(&mut self.url, &mut self.line);
        self.url_info = Some(info);
    }

    fn decode(&mut self, record: &mut Record, info: LineInfo) -> Result<(), InputError> {
        let text = &mut self.line;
        text.clear();
        text.extend(record.body.iter().filter(|byte| !byte.is_ascii_whitespace()).map(|&byte| {
            match byte {
                b'-' => b'+',
                b'_' => b'/',
                other => other,
            }
        }));
        record.body.clear();
        match BASE64.decode_vec(&self.line, &mut record.body) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.wrong(info, Problem::BadBase64(error.to_string()))),
        }
    }
}
