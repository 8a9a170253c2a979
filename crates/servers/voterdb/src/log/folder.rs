//! The folder of the log: its files by their numbers, and the lock that keeps a second server out.

use plimsoll_disk::{Disk, DiskFile, Kind, Lock, Mode, durable};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Extension of a snapshot's name until it is complete.
pub(crate) const UNFINISHED: &str = "unfinished";

/// An open folder, locked until this is dropped.
#[derive(Debug)]
pub(crate) struct Folder {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    _lock: Lock,
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
    pub(crate) fn open(disk: Arc<dyn Disk>, path: &Path) -> Result<Self, String> {
        let failed = |error: io::Error| format!("--data {}: {error}", path.display());
        if disk.kind(path).is_ok_and(|kind| kind == Kind::File) {
            return Err(format!("--data {}: is not a folder", path.display()));
        }
        durable::create_folders(&*disk, path).map_err(failed)?;
        let lock = disk.lock(&path.join("lock")).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => {
                format!("--data {}: another server has this folder; stop it first", path.display())
            }
            _ => failed(error),
        })?;
        let own = Self { disk, path: path.to_owned(), _lock: lock };
        own.remove_unfinished().map_err(failed)?;
        Ok(own)
    }

    /// Removes what a crash in the middle of a snapshot left: it counts for nothing, and may be long.
    fn remove_unfinished(&self) -> io::Result<()> {
        for path in self.disk.list(&self.path)? {
            if path.extension().is_some_and(|ending| ending == UNFINISHED)
                && self.disk.kind(&path)? == Kind::File
            {
                self.disk.remove_file(&path)?;
            }
        }
        Ok(())
    }

    /// Opens a file of the folder.
    pub(crate) fn open_file(&self, path: &Path, mode: Mode) -> io::Result<Box<dyn DiskFile>> {
        self.disk.open(path, mode)
    }

    /// Gives a file of the folder another name.
    pub(crate) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    /// The file of this number.
    pub(crate) fn file(&self, part: Part, number: u64) -> PathBuf {
        self.path.join(format!("{number:010}.{}", part.ending()))
    }

    /// The numbers of all files of a kind, in order.
    pub(crate) fn numbers(&self, part: Part) -> io::Result<Vec<u64>> {
        let mut numbers = Vec::new();
        for path in self.disk.list(&self.path)? {
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
        self.disk.sync_folder(&self.path)
    }

    /// Removes what a snapshot of this number makes needless.
    pub(crate) fn remove_before(&self, number: u64) -> io::Result<()> {
        for part in [Part::Log, Part::Snapshot] {
            for old in self.numbers(part)?.into_iter().filter(|old| *old < number) {
                self.disk.remove_file(&self.file(part, old))?;
            }
        }
        self.sync()
    }
}
