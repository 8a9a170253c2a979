//! The operations that were not accepted, as a file that can be fed again, and why in a file beside it.

use super::batch::{Item, one_line};
use super::operation::Problem;
use plimsoll_core::secrets::without_remembered;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Reasons that are reported one by one at the end of a feed; the file has all.
pub const EXAMPLES_MAX: usize = 10;
/// Longest text of a malformed operation that is kept.
const MALFORMED_MAX_BYTES: usize = 1 << 20;

/// One operation that was not accepted, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// Its number in the whole input, from 1.
    pub operation: u64,
    /// Its file.
    pub file: String,
    /// Its line in the file, from 1.
    pub line: u64,
    /// The document; empty where it could not be read.
    pub id: String,
    /// The last status; 0 where there was no answer.
    pub status: u16,
    /// The reason, in words.
    pub reason: String,
}

#[derive(Default)]
struct Kept {
    files: Option<[BufWriter<File>; 2]>,
    line: Vec<u8>,
    examples: Vec<Refusal>,
    /// Operations taken, malformed ones included.
    count: u64,
    malformed: u64,
    error: Option<String>,
}

/// Takes what was not accepted, from all shards and the reader.
pub struct FailedOperations {
    paths: Option<[PathBuf; 2]>,
    kept: Mutex<Kept>,
}

impl FailedOperations {
    /// Counts only, and keeps a few examples.
    #[must_use]
    pub fn nowhere() -> Self {
        Self { paths: None, kept: Mutex::default() }
    }

    /// Writes the operations to `path`, and why to `path` with `.reasons` behind it. Both begin again.
    ///
    /// # Errors
    /// When one of them cannot be written.
    pub fn file(path: &Path) -> io::Result<Self> {
        let mut reasons = path.as_os_str().to_owned();
        reasons.push(".reasons");
        let paths = [path.to_owned(), PathBuf::from(reasons)];
        let files = [File::create(&paths[0])?, File::create(&paths[1])?].map(BufWriter::new);
        let kept = Kept { files: Some(files), ..Kept::default() };
        Ok(Self { paths: Some(paths), kept: Mutex::new(kept) })
    }

    /// The two files.
    #[must_use]
    pub fn paths(&self) -> Option<&[PathBuf; 2]> {
        self.paths.as_ref()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an operation that the reader could not make sense of.
    pub fn malformed(&self, text: &[u8], problem: &Problem, operation: u64, place: (&str, u64)) {
        let (file, line) = (place.0.to_owned(), place.1);
        let reason = problem.to_string();
        let refusal = Refusal { operation, file, line, id: String::new(), status: 0, reason };
        let mut kept = self.kept();
        kept.malformed += 1;
        let shown = &text[..text.len().min(MALFORMED_MAX_BYTES)];
        kept.take(refusal, |line| {
            line.extend_from_slice(shown);
            one_line(line);
            line.push(b'\n');
        });
    }

    /// Takes an operation that was not accepted.
    pub fn refused(&self, item: &Item, bytes: &[u8], file: &str, status: u16, reason: &str) {
        let refusal = Refusal {
            operation: item.number,
            file: file.to_owned(),
            line: item.line,
            id: serde_json::from_slice(item.id_json(bytes)).unwrap_or_default(),
            status,
            reason: without_remembered(reason.to_owned()),
        };
        self.kept().take(refusal, |line| item.write_line(bytes, line));
    }

    /// The number that were taken, malformed ones included.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.kept().count
    }

    /// Number of malformed operations.
    #[must_use]
    pub fn malformed_count(&self) -> u64 {
        self.kept().malformed
    }

    /// The first `EXAMPLES_MAX` operations of each status and malformed ones, in the order of the input.
    #[must_use]
    pub fn examples(&self) -> Vec<Refusal> {
        let mut by_kind: BTreeMap<(u16, bool), Vec<Refusal>> = BTreeMap::new();
        for refusal in &self.kept().examples {
            let kind = (refusal.status, refusal.id.is_empty());
            by_kind.entry(kind).or_default().push(refusal.clone());
        }
        let mut all: Vec<_> = by_kind.into_values().flatten().collect();
        all.sort_by_key(|refusal| refusal.operation);
        all
    }

    /// Hands everything to the system.
    ///
    /// # Errors
    /// The error of writing, now or before.
    pub fn finish(&self) -> Result<(), String> {
        let mut kept = self.kept();
        if let Some(files) = &mut kept.files {
            let flushed: io::Result<()> = files.iter_mut().try_for_each(Write::flush);
            if let Err(error) = flushed {
                kept.error.get_or_insert(error.to_string());
            }
        }
        kept.error.clone().map_or(Ok(()), Err)
    }
}

impl Kept {
    fn take(&mut self, refusal: Refusal, write: impl FnOnce(&mut Vec<u8>)) {
        self.count += 1;
        if let Some([operations, reasons]) = &mut self.files {
            self.line.clear();
            write(&mut self.line);
            let written = operations.write_all(&self.line).and_then(|()| {
                serde_json::to_writer(&mut *reasons, &refusal).map_err(io::Error::from)?;
                reasons.write_all(b"\n")
            });
            if let Err(error) = written {
                self.error.get_or_insert(error.to_string());
            }
        }
        let kind = |other: &&Refusal| {
            (other.status, other.id.is_empty()) == (refusal.status, refusal.id.is_empty())
        };
        if self.examples.iter().filter(kind).count() < EXAMPLES_MAX {
            self.examples.push(refusal);
        }
    }
}
