//! Reads `resources.ndjson` of a record's folder.

use crate::error::RecordError;
use crate::journal::LONG_PIECES_MAX;
use crate::run_json::open_file;
use plimsoll_record::resources::{RESOURCES, ResourceLine};
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// Longest line that is read, bytes: one with hundreds of processors and watched things is shorter.
const LINE_BYTES_MAX: u64 = 4_000_000;

/// Findings of reading the file besides its lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourcesRead {
    /// Lines that were taken.
    pub lines: u64,
    /// Lines in the middle that could not be read.
    pub damaged: u64,
    /// True if the last line was cut short, as of a run that was killed.
    pub torn_end: bool,
}

/// Reads the seconds of a record's folder in the order of time and hands each to `take`; one line is in memory at a time.
///
/// A record without the file has no seconds: it is older than the file, or was kept with `--watch none`.
///
/// # Errors
/// Only when the file cannot be read; damaged lines are counted and left out.
pub fn read(folder: &Path, take: impl FnMut(ResourceLine)) -> Result<ResourcesRead, RecordError> {
    read_file(&folder.join(RESOURCES), take)
}

/// Returns the names of the files with the seconds of other machines, which agents watched, in the order of the names.
#[must_use]
pub fn files_of_watchers(folder: &Path) -> Vec<String> {
    let is_one = |name: &String| {
        let middle = name.strip_prefix("resources-").and_then(|rest| rest.strip_suffix(".ndjson"));
        middle.is_some_and(|middle| !middle.is_empty())
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).filter(is_one).collect();
    names.sort();
    names
}

/// Reads the seconds of one file.
///
/// # Errors
/// As [`read`].
pub fn read_file(
    path: &Path,
    mut take: impl FnMut(ResourceLine),
) -> Result<ResourcesRead, RecordError> {
    let failed = |source| RecordError::Read { path: path.to_owned(), source };
    let mut found = ResourcesRead::default();
    let file = match open_file(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
        Err(error) => return Err(failed(error)),
    };
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    let mut long = 0;
    loop {
        line.clear();
        let mut limited = (&mut reader).take(LINE_BYTES_MAX);
        if limited.read_until(b'\n', &mut line).map_err(failed)? == 0 {
            return Ok(found);
        }
        match serde_json::from_slice::<ResourceLine>(&line) {
            Ok(second) => {
                found.lines += 1;
                take(second);
            }
            Err(_) if line.ends_with(b"\n") => found.damaged += 1,
            Err(_) => {
                found.torn_end = true;
                long += 1;
                if long > LONG_PIECES_MAX {
                    return Ok(found);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_without_the_file_has_no_seconds() {
        let dir = tempfile::tempdir().unwrap();
        let found = read(dir.path(), |_| panic!("there is no line")).unwrap();
        assert_eq!(found, ResourcesRead::default());
    }

    #[test]
    fn damaged_lines_are_counted_and_a_torn_end_is_known() {
        let dir = tempfile::tempdir().unwrap();
        let line = |at_s: f64| {
            serde_json::to_string(&ResourceLine { at_s, span_s: 1.0, ..ResourceLine::default() })
                .unwrap()
        };
        let text = format!("{}\nnonsense\n{}\n{{\"at_s\":3", line(-0.5), line(0.5));
        std::fs::write(dir.path().join(RESOURCES), text).unwrap();
        let mut times = Vec::new();
        let found = read(dir.path(), |second| times.push(second.at_s)).unwrap();
        assert_eq!(times, [-0.5, 0.5]);
        assert_eq!(found, ResourcesRead { lines: 2, damaged: 1, torn_end: true });
    }
}
