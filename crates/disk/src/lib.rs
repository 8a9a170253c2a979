//! The file operations of stores, on the real disk and on a simulated one.
//!
//! A store that promises to keep something writes through [`Disk`]. In the program that is [`Real`], one virtual call for each
//! batch that is written. In tests it is [`simulated::Simulated`], whose power can be cut at any operation: data that
//! was not synced are then lost, kept, torn or reordered, and so are names of files whose folder was not synced. A [`sweep`]
//! tries each fault at each operation of a store.
//!
//! ```
//! use plimsoll_disk::{Disk, durable, read, simulated::Simulated};
//! use std::path::Path;
//!
//! let disk = Simulated::new();
//! let folder = Path::new("/kept");
//! durable::create_folders(&disk, folder)?;
//! durable::replace(&disk, &folder.join("state.new"), &folder.join("state"), b"1")?;
//! // Whatever the seed: this was on the disk.
//! let found = disk.after_power_cut(7);
//! assert_eq!(read(&found, &folder.join("state"))?, b"1");
//! # Ok::<(), std::io::Error>(())
//! ```

pub mod durable;
mod real;
pub mod simulated;
mod stream;
pub mod sweep;
#[cfg(test)]
mod tests;

pub use real::Real;
pub use stream::Stream;

use std::fmt::Debug;
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// The way a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// For reading; it must exist.
    Read,
    /// For reading and writing; it must exist.
    Change,
    /// For reading and writing; made if it is missing.
    Keep,
    /// For reading and writing; made if it is missing, and emptied.
    Create,
}

/// The kind of a name in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Anything but a folder.
    File,
    /// A folder.
    Folder,
}

/// A file system.
pub trait Disk: Debug + Send + Sync {
    /// Opens a file.
    ///
    /// # Errors
    /// As the system has them; so everywhere below.
    fn open(&self, path: &Path, mode: Mode) -> io::Result<Box<dyn DiskFile>>;

    /// Makes a folder with these permissions, in one that exists. `AlreadyExists` if there is something of this name.
    ///
    /// # Errors
    /// See [`Disk::open`].
    fn create_folder(&self, path: &Path, permissions: u32) -> io::Result<()>;

    /// Returns what a name stands for. `NotFound` if there is nothing.
    ///
    /// # Errors
    /// See [`Disk::open`].
    fn kind(&self, path: &Path) -> io::Result<Kind>;

    /// Returns the paths of everything in a folder, in any order.
    ///
    /// # Errors
    /// See [`Disk::open`].
    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>>;

    /// Gives a file another name in the same folder, in the place of one that has it.
    ///
    /// # Errors
    /// See [`Disk::open`].
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes the name of a file.
    ///
    /// # Errors
    /// See [`Disk::open`].
    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Removes a folder with everything in it.
    ///
    /// # Errors
    /// See [`Disk::open`].
    fn remove_folder(&self, path: &Path) -> io::Result<()>;

    /// Waits until the names in a folder are on the disk. Does nothing on a file system that cannot do this.
    ///
    /// # Errors
    /// See [`Disk::open`].
    fn sync_folder(&self, path: &Path) -> io::Result<()>;

    /// Locks a file, which is made if it is missing, until the lock is dropped or the process ends. `WouldBlock` if it is locked.
    ///
    /// # Errors
    /// See [`Disk::open`].
    fn lock(&self, path: &Path) -> io::Result<Lock>;

    /// Returns true if other programs and libraries find the same files under these paths.
    fn is_real(&self) -> bool;
}

/// An open file. Several threads may use it.
pub trait DiskFile: Debug + Send + Sync {
    /// Reads up to the length of the buffer from a position; 0 at the end of the file.
    ///
    /// # Errors
    /// As the system has them; so everywhere below.
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize>;

    /// Writes all bytes at a position. On an error, some may have been written.
    ///
    /// # Errors
    /// See [`DiskFile::read_at`].
    fn write_all_at(&self, bytes: &[u8], at: u64) -> io::Result<()>;

    /// Cuts the file off, or fills it up with zeros.
    ///
    /// # Errors
    /// See [`DiskFile::read_at`].
    fn set_length(&self, length: u64) -> io::Result<()>;

    /// Returns the length in bytes.
    ///
    /// # Errors
    /// See [`DiskFile::read_at`].
    fn length(&self) -> io::Result<u64>;

    /// Waits until content and length are on the disk.
    ///
    /// # Errors
    /// See [`DiskFile::read_at`].
    fn sync_data(&self) -> io::Result<()>;

    /// The same, with the times and permissions of the file.
    ///
    /// # Errors
    /// See [`DiskFile::read_at`].
    fn sync_all(&self) -> io::Result<()>;

    /// Returns the content of the file: a map of it, or a copy. The file must not become shorter while it is in use.
    ///
    /// # Errors
    /// See [`DiskFile::read_at`].
    fn contents(&self) -> io::Result<Contents>;

    /// Fills a buffer from a position.
    ///
    /// # Errors
    /// `UnexpectedEof` if the file ends before; see [`DiskFile::read_at`].
    fn read_exact_at(&self, mut buffer: &mut [u8], mut at: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            match self.read_at(buffer, at) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    buffer = &mut buffer[count..];
                    at += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The content of a file.
#[derive(Debug)]
pub enum Contents {
    /// Mapped into memory.
    Mapped(memmap2::Mmap),
    /// Read into memory.
    Read(Vec<u8>),
}

impl Deref for Contents {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Read(bytes) => bytes,
        }
    }
}

/// A locked file.
pub struct Lock(#[expect(dead_code, reason = "it is held, not used")] Box<dyn Send + Sync>);

impl Lock {
    /// A lock that ends when `held` is dropped.
    #[must_use]
    pub fn new(held: impl Send + Sync + 'static) -> Self {
        Self(Box::new(held))
    }
}

impl Debug for Lock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Lock")
    }
}

/// Reads a file.
///
/// # Errors
/// See [`Disk::open`].
pub fn read(disk: &dyn Disk, path: &Path) -> io::Result<Vec<u8>> {
    let file = disk.open(path, Mode::Read)?;
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut Stream::new(file), &mut bytes)?;
    Ok(bytes)
}

/// Returns true if there is a folder of this name.
///
/// # Errors
/// When that cannot be found out.
pub fn is_folder(disk: &dyn Disk, path: &Path) -> io::Result<bool> {
    match disk.kind(path) {
        Ok(kind) => Ok(kind == Kind::Folder),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
