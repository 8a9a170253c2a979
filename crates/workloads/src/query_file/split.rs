//! Splitting a query file into one file for each client, by record.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{Cursor, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use plimsoll_core::rng::Rng;

use super::parser::{ReadOptions, Record, RecordKind, RecordParser};
use super::pattern::FilePattern;
use super::source::{SourceFile, unpack_stream};
use crate::error::InputError;

/// Most parts a file can be split into.
pub const PARTS_MAX: u64 = 65_536;
/// Memory for the parts' write buffers together: 64 MiB.
const BUFFERS_BYTES: usize = 64 * 1024 * 1024;
/// Largest write buffer of one part.
const BUFFER_MAX_BYTES: usize = 256 * 1024;
/// Part of the input that is looked at to tell GET from POST files.
const PEEK_BYTES: u64 = 64 * 1024;

/// Options of splitting.
#[derive(Clone, Debug)]
pub struct SplitOptions {
    /// Names of the parts; part 0 is the first. Must hold a number.
    pub pattern: FilePattern,
    /// 1 to [`PARTS_MAX`].
    pub parts: u64,
    /// A line of this many bytes or more is skipped, in POST files with its record.
    pub line_max_bytes: usize,
    /// GET or POST records; `None` looks: a file in which a line does not start with `/` is POST.
    pub kind: Option<RecordKind>,
    /// Seed of the random assignment of records to parts.
    pub seed: u64,
}

/// Result of splitting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitSummary {
    /// The way the input was read.
    pub kind: RecordKind,
    /// Records written.
    pub records: u64,
    /// Records left out because they are too long.
    pub skipped: u64,
    /// The files written, by part, with the records in each. They differ by at most one.
    pub parts: Vec<(PathBuf, u64)>,
}

/// Splits a file. Within a part, records keep the order of the input.
///
/// # Errors
/// As [`split_stdin`], and when the input cannot be opened.
pub fn split(input: &Path, options: &SplitOptions) -> Result<SplitSummary, InputError> {
    let bytes = SourceFile::open(input)?.at(0).map_err(|e| InputError::io(input, e))?;
    split_stream(bytes, (input, std::fs::metadata(input).ok()), options)
}

/// Splits standard input.
///
/// # Errors
/// A wrong line, an input without records, a part that cannot be written or is the input itself, or an option out of
/// range. Parts are written as the input is read, so after an error some may hold a beginning.
pub fn split_stdin(options: &SplitOptions) -> Result<SplitSummary, InputError> {
    let stdin = std::io::stdin();
    let file = stdin.as_fd().try_clone_to_owned().map(File::from);
    let own = file.and_then(|file| file.metadata()).ok();
    split_stream(stdin, (Path::new("stdin"), own), options)
}

/// Splits a stream, called `name` in errors. It may be gzip. `own`: the file that it is, if it is one.
pub(super) fn split_stream(
    stream: impl Read + Send + 'static,
    (name, own): (&Path, Option<Metadata>),
    options: &SplitOptions,
) -> Result<SplitSummary, InputError> {
    if !(1..=PARTS_MAX).contains(&options.parts) {
        let (value, range) = (options.parts, "1 to 65536");
        return Err(InputError::Range { option: "number of parts", value, range });
    }
    let fail = |error| InputError::io(name, error);
    let mut stream = unpack_stream(stream).map_err(fail)?;
    let mut head = Vec::new();
    (&mut stream).take(PEEK_BYTES).read_to_end(&mut head).map_err(fail)?;
    let kind = options.kind.unwrap_or_else(|| guess_kind(&head));
    // Bodies are copied as they stand, base64 or not.
    let read = ReadOptions { line_max_bytes: options.line_max_bytes, ..ReadOptions::new(kind) };
    let mut parser = RecordParser::new(Cursor::new(head).chain(stream), name, &read);

    let mut record = Record::default();
    if !parser.next_record(&mut record)? {
        return Err(InputError::Empty { path: name.to_owned() });
    }
    check_not_input(own.as_ref(), options)?;
    let mut parts = Parts::create(options)?;
    let mut deal = Deal::new(options.parts as usize, options.seed);
    let mut records = 0;
    loop {
        parts.write(deal.next(), &record, kind)?;
        records += 1;
        if !parser.next_record(&mut record)? {
            break;
        }
    }
    Ok(SplitSummary { kind, records, skipped: parser.skipped(), parts: parts.finish()? })
}

/// Checks that no part is the input, which would be emptied before it was read.
fn check_not_input(own: Option<&Metadata>, options: &SplitOptions) -> Result<(), InputError> {
    let Some(own) = own.filter(|own| own.is_file()) else { return Ok(()) };
    let is_input = |path: &PathBuf| {
        std::fs::metadata(path).is_ok_and(|part| (part.dev(), part.ino()) == (own.dev(), own.ino()))
    };
    match (0..options.parts).map(|part| options.pattern.path(part)).find(is_input) {
        Some(path) => Err(InputError::Overwritten { path }),
        None => Ok(()),
    }
}

/// POST if a line that is not empty starts with anything but `/`. A line that the end of the head
/// cuts counts too, since its first byte is known.
fn guess_kind(head: &[u8]) -> RecordKind {
    let mut lines = head.split(|&byte| byte == b'\n' || byte == b'\r');
    match lines.any(|line| line.first().is_some_and(|&byte| byte != b'/')) {
        true if head.iter().find(|b| !b"\r\n".contains(b)) == Some(&b'/') => RecordKind::Post,
        _ => RecordKind::Get,
    }
}

/// Deals records like cards: each round gives one to every part, in an order shuffled again.
struct Deal {
    order: Vec<usize>,
    at: usize,
    rng: Rng,
}

impl Deal {
    fn new(parts: usize, seed: u64) -> Self {
        let rng = Rng::new(plimsoll_core::rng::derive_seed(seed, "split-file"));
        Self { order: (0..parts).collect(), at: parts, rng }
    }

    fn next(&mut self) -> usize {
        if self.at == self.order.len() {
            self.rng.shuffle(&mut self.order);
            self.at = 0;
        }
        self.at += 1;
        self.order[self.at - 1]
    }
}

/// The files being written. None stays open: more parts than a process may open files are fine.
struct Parts {
    files: Vec<(PathBuf, u64)>,
    buffers: Vec<Vec<u8>>,
    buffer_bytes: usize,
}

impl Parts {
    fn create(options: &SplitOptions) -> Result<Self, InputError> {
        let files: Vec<_> = (0..options.parts).map(|i| (options.pattern.path(i), 0)).collect();
        for (path, _) in &files {
            std::fs::File::create(path).map_err(|error| InputError::io(path, error))?;
        }
        let buffer_bytes = (BUFFERS_BYTES / files.len()).min(BUFFER_MAX_BYTES);
        Ok(Self { buffers: vec![Vec::new(); files.len()], files, buffer_bytes })
    }

    fn write(&mut self, part: usize, record: &Record, kind: RecordKind) -> Result<(), InputError> {
        let buffer = &mut self.buffers[part];
        buffer.extend_from_slice(&record.target);
        buffer.push(b'\n');
        if kind == RecordKind::Post && !record.body.is_empty() {
            buffer.extend_from_slice(&record.body);
            buffer.push(b'\n');
        }
        self.files[part].1 += 1;
        if buffer.len() >= self.buffer_bytes { self.flush(part) } else { Ok(()) }
    }

    fn flush(&mut self, part: usize) -> Result<(), InputError> {
        let path = &self.files[part].0;
        let written = OpenOptions::new()
            .append(true)
            .open(path)
            .and_then(|mut file| file.write_all(&self.buffers[part]));
        self.buffers[part].clear();
        written.map_err(|error| InputError::io(path, error))
    }

    fn finish(mut self) -> Result<Vec<(PathBuf, u64)>, InputError> {
        for part in 0..self.files.len() {
            if !self.buffers[part].is_empty() {
                self.flush(part)?;
            }
        }
        Ok(self.files)
    }
}
