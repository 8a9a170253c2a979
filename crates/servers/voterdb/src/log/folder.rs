//! The folder of the log: its files by their numbers, and the lock that keeps a second server out.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Extension of a snapshot's name until it is complete.
pub(crate) const UNFINISHED: &str = "unfinished";

/// An open folder, locked until this is dropped.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    _lock: File,
}

/// The kind of a numbered file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Log,
    Snapshot,
}

impl Part {
    fn ending(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Snapshot => "snapshot",
        }
    }
}

impl Folder {
    /// Makes the folder where there is none, and takes it.
    ///
    /// # Errors
    /// One line that says what is wrong with it.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let failed = |error: io::Error| format!("--data {}: {error}", path.display());
        if path.exists() && !path.is_dir() {
            return Err(format!("--data {}: is not a folder", path.display()));
        }
        std::fs::create_dir_all(path).map_err(failed)?;
        let mut options = OpenOptions::new();
        let lock = options.write(true).create(true).truncate(false).open(path.join("lock"));
        let lock = lock.map_err(failed)?;
        let operation = rustix::fs::FlockOperation::NonBlockingLockExclusive;
        rustix::fs::flock(&lock, operation).map_err(|_| {
            format!("--data {}: another server has this folder; stop it first", path.display())
        })?;
        let own = Self { path: path.to_owned(), _lock: lock };
        own.remove_unfinished().map_err(failed)?;
        Ok(own)
    }

    /// Removes what a crash in the middle of a snapshot left: it counts for nothing, and may be long.
    fn remove_unfinished(&self) -> io::Result<()> {
        for entry in std::fs::read_dir(&self.path)? {
            let path = entry?.path();
            if path.extension().is_some_and(|ending| ending == UNFINISHED) && path.is_file() {
                std::fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    /// The file of this number.
    pub(crate) fn file(&self, part: Part, number: u64) -> PathBuf {
        self.path.join(format!("{number:010}.{}", part.ending()))
    }

    /// The numbers of all files of a kind, in order.
    pub(crate) fn numbers(&self, part: Part) -> io::Result<Vec<u64>> {
        let mut numbers = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            let path = entry?.path();
            if path.extension().is_some_and(|ending| ending == part.ending())
                && let Some(number) = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok())
            {
                numbers.push(number);
            }
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Makes names of files as durable as what is in them.
    pub(crate) fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    /// Removes what a snapshot of this number makes needless.
    pub(crate) fn remove_before(&self, number: u64) -> io::Result<()> {
        for part in [Part::Log, Part::Snapshot] {
            for old in self.numbers(part)?.into_iter().filter(|old| *old < number) {
                std::fs::remove_file(self.file(part, old))?;
            }
        }
        self.sync()
    }
}
