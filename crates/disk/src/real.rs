//! The real file system.

use crate::{Contents, Disk, DiskFile, Kind, Lock, Mode};
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::{Path, PathBuf};

/// The file system of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Real;

impl Disk for Real {
    fn open(&self, path: &Path, mode: Mode) -> io::Result<Box<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        match mode {
            Mode::Read => options.read(true),
            Mode::Change => options.read(true).write(true),
            Mode::Keep => options.read(true).write(true).create(true).truncate(false),
            Mode::Create => options.read(true).write(true).create(true).truncate(true),
        };
        Ok(Box::new(options.open(path)?))
    }

    fn create_folder(&self, path: &Path, permissions: u32) -> io::Result<()> {
        DirBuilder::new().mode(permissions).create(path)
    }

    fn kind(&self, path: &Path) -> io::Result<Kind> {
        let is_folder = std::fs::metadata(path)?.is_dir();
        Ok(if is_folder { Kind::Folder } else { Kind::File })
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_dir_all(path)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        match File::open(path) {
            Ok(folder) => folder.sync_all().or_else(|error| match error.kind() {
                // Not every file system syncs folders.
                io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported => Ok(()),
                _ => Err(error),
            }),
            // A folder that may be written to need not be readable.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn lock(&self, path: &Path) -> io::Result<Lock> {
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Lock::new(file)),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn is_real(&self) -> bool {
        true
    }
}

impl DiskFile for File {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        FileExt::read_at(self, buffer, at)
    }

    fn write_all_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        FileExt::write_all_at(self, bytes, at)
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn sync_data(&self) -> io::Result<()> {
        File::sync_data(self)
    }

    fn sync_all(&self) -> io::Result<()> {
        File::sync_all(self)
    }

    fn contents(&self) -> io::Result<Contents> {
        // SAFETY: whoever asks for the content keeps the file from being made shorter, as the trait says.
        Ok(Contents::Mapped(unsafe { memmap2::Mmap::map(self) }?))
    }
}
