//! The output of a visit: where its documents go, and the digest of their ids.

use super::format::DocumentFormat;
use plimsoll_workloads::id_digest::IdDigest;
use plimsoll_workloads::output::{self, OnCheckpoint, Packing, Waits, Writer};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Destination of a visit's documents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Destination {
    /// Nowhere: only the reading is of interest.
    Nowhere,
    /// Standard output.
    Stdout,
    /// One file.
    File(PathBuf),
    /// A file for each slice in this folder.
    Folder(PathBuf),
}

/// All destinations of a visit, and the thread that writes to them.
pub struct Output {
    output: output::Output,
    destinations: usize,
    paths: Vec<PathBuf>,
    packing: Packing,
    format: DocumentFormat,
    digest: Arc<Mutex<IdDigest>>,
}

impl Output {
    /// Opens the destinations of `slices` slices. `keep_bytes` says how much of each file is kept when the visit
    /// was interrupted; without it files begin again.
    ///
    /// # Errors
    /// The path that cannot be written, and why.
    pub fn open(
        destination: &Destination,
        format: DocumentFormat,
        packing: Packing,
        slices: impl Iterator<Item = u32>,
        keep_bytes: Option<&[u64]>,
    ) -> Result<Self, (PathBuf, io::Error)> {
        let paths = match destination {
            Destination::Nowhere | Destination::Stdout => Vec::new(),
            Destination::File(path) => vec![path.clone()],
            Destination::Folder(folder) => {
                std::fs::create_dir_all(folder).map_err(|error| (folder.clone(), error))?;
                slices.map(|slice| folder.join(file_name(slice, packing))).collect()
            }
        };
        let mut writers = Vec::new();
        if *destination == Destination::Stdout {
            writers.push(Writer::stdout());
        }
        for (index, path) in paths.iter().enumerate() {
            let keep = keep_bytes.map(|all| all.get(index).copied().unwrap_or(0));
            writers.push(Writer::file(path, packing, keep).map_err(|e| (path.clone(), e))?);
        }
        let destinations = writers.len();
        let digest = Arc::new(Mutex::new(IdDigest::default()));
        let sum = digest.clone();
        let on_marks = Box::new(move |marks: &[u8]| {
            let mut own = IdDigest::default();
            ids(marks).for_each(|id| own.add(IdDigest::of(id)));
            sum.lock().unwrap_or_else(PoisonError::into_inner).add(own);
        });
        let path = || paths.first().cloned().unwrap_or_else(|| PathBuf::from("-"));
        let output = output::Output::to(writers, on_marks).map_err(|error| (path(), error))?;
        Ok(Self { output, destinations, paths, packing, format, digest })
    }

    /// The way documents are written.
    #[must_use]
    pub fn format(&self) -> DocumentFormat {
        self.format
    }

    /// The way files are packed.
    #[must_use]
    pub fn packing(&self) -> Packing {
        self.packing
    }

    /// The files, in the order of a checkpoint's lengths.
    #[must_use]
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Leaves lines of a slice in the queue; never waits for what they are written to.
    pub fn write(&self, slice: u32, lines: &Lines) {
        if self.destinations > 0 {
            self.output.write(slice as usize % self.destinations, &lines.text, &lines.marks);
        }
    }

    /// The digest of the ids of all lines that were written. At a checkpoint it is that of all lines before.
    #[must_use]
    pub fn digest(&self) -> &Arc<Mutex<IdDigest>> {
        &self.digest
    }

    /// Returns whether a slice may ask; if not, that counts as waiting.
    #[must_use]
    pub fn may_ask(&self) -> bool {
        self.output.may_ask()
    }

    /// Returns true if too much waits to receive more.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.output.is_full()
    }

    /// Returns for how long it has been waited for.
    #[must_use]
    pub fn waits(&self) -> Waits {
        self.output.waits()
    }

    /// Bytes of lines that are not written yet.
    #[must_use]
    pub fn unwritten_bytes(&self) -> usize {
        self.output.unwritten_bytes()
    }

    /// Returns why nothing is written any more.
    #[must_use]
    pub fn error(&self) -> Option<String> {
        self.output.error()
    }

    /// Has `then` called when everything before has been handed to the system.
    pub fn checkpoint(&self, then: OnCheckpoint) {
        self.output.checkpoint(then);
    }

    /// Waits for what comes of a checkpoint, for as long as `goes_on` says; `None` when it was not waited for.
    pub fn wait<T>(
        &self,
        told: &std::sync::mpsc::Receiver<T>,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Option<T> {
        self.output.wait(told, goes_on)
    }
}

/// Whole lines on their way to the output.
#[derive(Default)]
pub struct Lines {
    /// The lines.
    pub text: Vec<u8>,
    /// The ids in them, each behind its length.
    marks: Vec<u8>,
}

impl Lines {
    /// Forgets all of them.
    pub fn clear(&mut self) {
        self.text.clear();
        self.marks.clear();
    }

    /// Adds the id of a line, which the thread that writes makes a digest of.
    pub fn mark(&mut self, id: &str) {
        // No line is as long as 4 GiB.
        let length = u32::try_from(id.len()).unwrap_or(u32::MAX);
        self.marks.extend_from_slice(&length.to_le_bytes());
        self.marks.extend_from_slice(&id.as_bytes()[..length as usize]);
    }
}

/// The ids in marks.
fn ids(marks: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = marks;
    std::iter::from_fn(move || {
        let (length, behind) = rest.split_first_chunk()?;
        let (id, behind) = behind.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        rest = behind;
        Some(id)
    })
}

fn file_name(slice: u32, packing: Packing) -> String {
    let ending = match packing {
        Packing::Plain => "",
        Packing::Gzip => ".gz",
        Packing::Zstd => ".zst",
    };
    format!("slice-{slice:04}.ndjson{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_workloads::output::{Reached, lines_between};
    use std::path::Path;
    use std::sync::mpsc;

    fn read(path: &Path, packing: Packing, from: u64, to: u64) -> Vec<String> {
        let mut lines = Vec::new();
        let mut each = |line: &[u8]| lines.push(String::from_utf8(line.to_vec()).unwrap());
        lines_between(path, packing, from, to, &mut each).unwrap();
        lines
    }

    fn checkpoint(output: &Output) -> Result<Vec<u64>, String> {
        let (tell, told) = mpsc::channel();
        let reached = move |reached: Result<Reached, String>| {
            tell.send(reached.map(|reached| reached.lengths)).unwrap();
        };
        output.checkpoint(Box::new(reached));
        told.recv().unwrap()
    }

    fn lines(ids: &[&str]) -> Lines {
        let mut lines = Lines::default();
        for id in ids {
            lines.text.extend_from_slice(format!("{id}\n").as_bytes());
            lines.mark(id);
        }
        lines
    }

    fn digest(ids: &[&str]) -> IdDigest {
        let mut all = IdDigest::default();
        ids.iter().for_each(|id| all.add(IdDigest::of(id)));
        all
    }

    #[test]
    fn files_go_on_where_they_were_cut() {
        for packing in [Packing::Plain, Packing::Gzip, Packing::Zstd] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("dump");
            let destination = Destination::File(path.clone());
            let open = |keep: Option<&[u64]>| {
                Output::open(&destination, DocumentFormat::Documents, packing, 0..4, keep).unwrap()
            };
            let output = open(None);
            output.write(0, &lines(&["one", "two"]));
            let first = checkpoint(&output).unwrap();
            assert_eq!(*output.digest().lock().unwrap(), digest(&["one", "two"]));
            output.write(3, &lines(&["three"]));
            let second = checkpoint(&output).unwrap();
            assert_eq!(*output.digest().lock().unwrap(), digest(&["one", "two", "three"]));
            output.write(1, &lines(&["lost"]));
            drop(output);
            let output = open(Some(&second));
            output.write(2, &lines(&["four"]));
            let end = checkpoint(&output).unwrap()[0];
            assert_eq!(read(&path, packing, 0, end), ["one", "two", "three", "four"]);
            assert_eq!(read(&path, packing, first[0], second[0]), ["three"]);
            assert_eq!(std::fs::metadata(&path).unwrap().len(), end);
            let format = DocumentFormat::Documents;
            let cut = Output::open(&destination, format, packing, 0..4, Some(&[end + 1]));
            assert!(cut.is_err_and(|(_, error)| error.to_string().contains("shorter")));
        }
    }

    #[test]
    fn slices_have_files_of_their_own_in_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let destination = Destination::Folder(folder.path().join("dump"));
        let output =
            Output::open(&destination, DocumentFormat::VespaFeed, Packing::Zstd, 0..3, None)
                .unwrap();
        for slice in 0..3 {
            output.write(slice, &lines(&[&slice.to_string()]));
        }
        let ends = checkpoint(&output).unwrap();
        for (slice, path) in output.paths().iter().enumerate() {
            assert!(path.ends_with(format!("slice-000{slice}.ndjson.zst")));
            assert_eq!(read(path, Packing::Zstd, 0, ends[slice]), [slice.to_string()]);
        }
    }
}
