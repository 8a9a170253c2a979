//! The crash journal: each second as it passes, and a bounded sample of what failed.
//!
//! Every second costs one write a file, nothing is held back in memory, so `kill -9` loses the second that
//! is in flight and no other. Interval logs are written in the same stroke, for what is measured.

use crate::assemble::RecordHeader;
use crate::error::RecordError;
use crate::hlog::{self, KINDS};
use crate::plain::{clip, without_secrets};
use crate::run_json::{FAILURES, INTERVALS, open_file};
use plimsoll_core::histogram::Histogram;
use plimsoll_core::interval::{Interval, IntervalLine};
use plimsoll_core::system_error::words;
use plimsoll_disk::{Disk, DiskFile, Mode};
use plimsoll_record::{FailureSample, Sink};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Most lines in `failures.ndjson`; later failures are counted only.
pub const FAILURE_LINES_MAX: u64 = 1_000;
/// Most bytes in `failures.ndjson`.
pub const FAILURE_BYTES_MAX: u64 = 4_000_000;
/// Longest request, reply and reason of one failure, characters each.
const FAILURE_TEXT_CHARS_MAX: usize = 1_200;

/// Writes `intervals.ndjson`, `failures.ndjson` and the interval logs of one run.
#[derive(Debug)]
pub struct Journal {
    intervals: Appended,
    failures_path: PathBuf,
    /// Made at the first failure, so that a run without any leaves no empty file.
    failures: Option<Appended>,
    failures_kept: u64,
    failures_left_out: u64,
    failures_bytes: u64,
    hlogs: [Appended; KINDS.len()],
    /// Log of the server's own times; made when the first of them come.
    server_log: Option<Appended>,
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    run: (String, u64),
    header: RecordHeader,
}

/// A file that only grows; a line that was torn by an error does not spoil the next one.
#[derive(Debug)]
struct Appended {
    path: PathBuf,
    file: Box<dyn DiskFile>,
    end: u64,
    torn: bool,
    line: Vec<u8>,
}

impl Appended {
    fn create(disk: &dyn Disk, path: PathBuf) -> Result<Self, RecordError> {
        match disk.open(&path, Mode::Create) {
            Ok(file) => Ok(Self { path, file, end: 0, torn: false, line: Vec::new() }),
            Err(source) => Err(RecordError::Write { path, source }),
        }
    }

    /// Writes what `fill` puts into the line, in one call; an error names the file.
    fn append(&mut self, fill: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> io::Result<()> {
        self.write(fill).map_err(|e| {
            io::Error::new(e.kind(), format!("cannot write {}: {}", self.path.display(), words(&e)))
        })
    }

    fn write(&mut self, fill: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> io::Result<()> {
        self.line.clear();
        if self.torn {
            self.line.push(b'\n');
        }
        fill(&mut self.line)?;
        let written = self.file.write_all_at(&self.line, self.end);
        self.torn = written.is_err();
        self.end = match &written {
            Ok(()) => self.end + self.line.len() as u64,
            // A part of it may stand there.
            Err(_) => self.file.length().unwrap_or(self.end),
        };
        written
    }
}

/// Makes an interval log with its head.
fn begin_log(
    disk: &dyn Disk,
    folder: &Path,
    kind: &str,
    (run_id, started_us): (&str, u64),
) -> Result<Appended, RecordError> {
    let mut log = Appended::create(disk, folder.join(format!("{kind}.hlog")))?;
    let head = hlog::head(kind, run_id, started_us);
    head.and_then(|head| log.write(|out| out.write_all(&head)))
        .map_err(|source| RecordError::Write { path: log.path.clone(), source })?;
    Ok(log)
}

impl Journal {
    /// Makes the files in the folder of a run with this id, which began at `started_us`, us since the Unix epoch; see
    /// [`RunFolder::journal`](crate::folder::RunFolder::journal).
    pub(crate) fn create(
        disk: &Arc<dyn Disk>,
        folder: &Path,
        (run_id, started_us): (&str, u64),
        header: &RecordHeader,
    ) -> Result<Self, RecordError> {
        let path = |name: &str| folder.join(name);
        let hlog = |kind: &str| begin_log(&**disk, folder, kind, (run_id, started_us));
        Ok(Self {
            intervals: Appended::create(&**disk, path(INTERVALS))?,
            failures_path: path(FAILURES),
            failures: None,
            failures_kept: 0,
            failures_left_out: 0,
            failures_bytes: 0,
            server_log: None,
            disk: Arc::clone(disk),
            folder: folder.to_owned(),
            run: (run_id.to_owned(), started_us),
            hlogs: [hlog(KINDS[0])?, hlog(KINDS[1])?, hlog(KINDS[2])?, hlog(KINDS[3])?],
            header: header.clone(),
        })
    }

    /// Takes a later header: phases that a controller has decided on since. Classes must stay the same.
    pub fn update(&mut self, header: &RecordHeader) {
        self.header = header.clone();
    }

    /// Number of failures that are in `failures.ndjson`.
    #[must_use]
    pub fn failures_kept(&self) -> u64 {
        self.failures_kept
    }

    /// Number of failures that were offered after the file was full.
    #[must_use]
    pub fn failures_left_out(&self) -> u64 {
        self.failures_left_out
    }

    /// The server's own times, if they were asked for.
    fn write_server_log(&mut self, interval: &Interval, line: &IntervalLine) -> io::Result<()> {
        if interval.classes.iter().all(|part| part.server.is_none()) {
            return Ok(());
        }
        if self.server_log.is_none() {
            let (run_id, started_us) = (&self.run.0, self.run.1);
            let log = begin_log(&*self.disk, &self.folder, "server", (run_id, started_us));
            self.server_log = Some(log.map_err(io::Error::other)?);
        }
        let (header, several) = (&self.header, interval.classes.len() > 1);
        let Some(log) = &mut self.server_log else { return Ok(()) };
        log.append(|out| {
            let parts = interval.classes.iter().zip(&line.classes).enumerate();
            for (index, (part, class)) in parts {
                let (Some(server), Some(text)) = (&part.server, &class.server) else { continue };
                let tag = several.then(|| header.class_name(index));
                let (from_ns, to_ns) = (interval.from_ns, interval.to_ns);
                let (tag, histogram, encoded) = (tag.as_deref(), &server.times, &text.times);
                hlog::append(out, &hlog::Line { tag, from_ns, to_ns, histogram, encoded })?;
            }
            Ok(())
        })
    }

    fn write_hlogs(&mut self, interval: &Interval, line: &IntervalLine) -> io::Result<()> {
        let several = interval.classes.len() > 1;
        let mut result = Ok(());
        for (kind, log) in self.hlogs.iter_mut().enumerate() {
            let header = &self.header;
            let written = log.append(|out| {
                let mut add = |class: Option<usize>, histogram: &Histogram, encoded: &str| {
                    let tag = class.filter(|_| several).map(|index| header.class_name(index));
                    let (from_ns, to_ns) = (interval.from_ns, interval.to_ns);
                    let tag = tag.as_deref();
                    hlog::append(out, &hlog::Line { tag, from_ns, to_ns, histogram, encoded })
                };
                if KINDS[kind] == "lag" {
                    return add(None, &interval.lag, &line.lag);
                }
                for (index, (part, text)) in interval.classes.iter().zip(&line.classes).enumerate()
                {
                    match KINDS[kind] {
                        "response" => add(Some(index), &part.response, &text.response)?,
                        "service" => add(Some(index), &part.service, &text.service)?,
                        _ => add(Some(index), &part.failed, &text.failed)?,
                    }
                }
                Ok(())
            });
            result = result.and(written);
        }
        result
    }
}

impl Sink for Journal {
    fn counts_from(&mut self, _start_ns: u64) {}

    /// Appends the second to the journal, and to the interval logs when its phase is measured.
    ///
    /// Every file is tried even when one before it failed; the first error is returned.
    fn interval(&mut self, interval: &Interval) -> io::Result<()> {
        let line = IntervalLine::from(interval);
        let kept = self.intervals.append(|out| {
            serde_json::to_writer(&mut *out, &line).map_err(io::Error::other)?;
            out.push(b'\n');
            Ok(())
        });
        if !self.header.is_measured(interval.phase) {
            return kept;
        }
        let logged = self.write_hlogs(interval, &line);
        kept.and(logged).and(self.write_server_log(interval, &line))
    }

    /// Keeps the failure while there is room ([`FAILURE_LINES_MAX`], [`FAILURE_BYTES_MAX`]).
    ///
    /// Secrets in header lines are left out, long texts are cut.
    fn failure(&mut self, sample: &FailureSample) -> io::Result<()> {
        if self.failures_kept >= FAILURE_LINES_MAX {
            self.failures_left_out += 1;
            return Ok(());
        }
        let sample = kept_failure(sample);
        let mut text = serde_json::to_vec(&sample).map_err(io::Error::other)?;
        text.push(b'\n');
        if self.failures_bytes + text.len() as u64 > FAILURE_BYTES_MAX {
            self.failures_left_out += 1;
            return Ok(());
        }
        if self.failures.is_none() {
            let path = self.failures_path.clone();
            self.failures = Some(Appended::create(&*self.disk, path).map_err(io::Error::other)?);
        }
        if let Some(file) = &mut self.failures {
            file.append(|out| out.write_all(&text))?;
            self.failures_kept += 1;
            self.failures_bytes += text.len() as u64;
        }
        Ok(())
    }
}

/// Returns a failure as it may be kept: secrets in header lines left out, long texts cut.
#[must_use]
pub fn kept_failure(sample: &FailureSample) -> FailureSample {
    let short = |text: &str| clip(&without_secrets(text), FAILURE_TEXT_CHARS_MAX);
    FailureSample {
        kind: sample.kind.clone(),
        class: sample.class.clone(),
        reason: short(&sample.reason),
        request: short(&sample.request),
        reply: short(&sample.reply),
        ..*sample
    }
}

/// Reads a sample of failures and hands each of them to `take`. A missing file is an empty one; lines that cannot be read, and
/// everything beyond the size that plimsoll writes, are left out. Texts are cut to the length that plimsoll writes.
///
/// # Errors
/// Only when the file cannot be read.
pub fn read_failures(path: &Path, mut take: impl FnMut(FailureSample)) -> Result<(), RecordError> {
    use std::io::{BufRead, BufReader, Read};
    let failed = |source| RecordError::Read { path: path.to_owned(), source };
    let file = match open_file(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(failed(e)),
    };
    let mut reader = BufReader::new(file.take(FAILURE_BYTES_MAX));
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).map_err(failed)? > 0 {
        if let Ok(sample) = serde_json::from_slice::<FailureSample>(&line) {
            take(kept_failure(&sample));
        }
        line.clear();
    }
    Ok(())
}

/// Findings of reading a journal besides the intervals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JournalRead {
    /// Lines that were taken.
    pub lines: u64,
    /// True if the last line was cut short.
    pub torn_end: bool,
    /// Lines in the middle that could not be read, and the number of the first of them.
    pub damaged: u64,
    /// 1 for the first line; 0 when none was damaged.
    pub first_damaged: u64,
    /// End of the last interval, ns since the run's start.
    pub end_ns: u64,
}

/// Longest line of the journal, bytes: 64 busy classes need under one megabyte.
pub const LINE_BYTES_MAX: u64 = 64_000_000;
/// Pieces of [`LINE_BYTES_MAX`] without a line end, after which a file is read no further: it is not a journal.
pub(crate) const LONG_PIECES_MAX: u32 = 8;

/// Reads a journal line by line and hands each whole interval to `take`; one line is in memory at a time.
///
/// A missing journal is an empty one: the run was killed before its first second was over.
///
/// # Errors
/// Only when the file cannot be read; damaged lines are counted and left out.
pub fn read(path: &Path, mut take: impl FnMut(&Interval)) -> Result<JournalRead, RecordError> {
    read_lines(path, |line| {
        let interval = Interval::try_from(line);
        interval.map(|interval| take(&interval)).is_ok()
    })
}

/// The same with the lines as they are. `take` returns false for a line that it cannot read; such a line counts as damaged.
///
/// # Errors
/// As [`read`].
pub fn read_lines(
    path: &Path,
    mut take: impl FnMut(&IntervalLine) -> bool,
) -> Result<JournalRead, RecordError> {
    use std::io::{BufRead, BufReader, Read};
    let failed = |source| RecordError::Read { path: path.to_owned(), source };
    let mut found = JournalRead::default();
    let file = match open_file(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(found),
        Err(e) => return Err(failed(e)),
    };
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    let mut long = 0;
    for number in 1.. {
        line.clear();
        let mut limited = (&mut reader).take(LINE_BYTES_MAX);
        if limited.read_until(b'\n', &mut line).map_err(failed)? == 0 {
            break;
        }
        let interval = IntervalLine::of_json(&line).filter(|line| take(line));
        match interval {
            Some(interval) => {
                found.lines += 1;
                found.end_ns = found.end_ns.max((interval.to_s * 1e9).round() as u64);
            }
            None if line.ends_with(b"\n") => {
                found.damaged += 1;
                if found.first_damaged == 0 {
                    found.first_damaged = number;
                }
            }
            None => {
                found.torn_end = true;
                long += 1;
                if long > LONG_PIECES_MAX {
                    break;
                }
            }
        }
    }
    Ok(found)
}
