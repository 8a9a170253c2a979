//! redb's file on a disk that other libraries do not know.

use super::{CACHE_BYTES, StoreError};
use plimsoll_disk::{Disk, DiskFile, Mode};
use redb::Database;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Opens redb's file, or makes it: on the real disk by redb's own way.
pub(super) fn database(disk: &Arc<dyn Disk>, path: &Path) -> Result<Database, StoreError> {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    Ok(match disk.is_real() {
        true => builder.create(path)?,
        false => builder.create_with_backend(Backend::open(&**disk, path)?)?,
    })
}

/// Returns true if there is something of this name.
pub(super) fn exists(disk: &dyn Disk, path: &Path) -> io::Result<bool> {
    match disk.kind(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// An open file. Its steps are those of redb's own backend.
#[derive(Debug)]
struct Backend(Box<dyn DiskFile>);

impl Backend {
    /// Opens the file, or makes it.
    fn open(disk: &dyn Disk, path: &Path) -> io::Result<Self> {
        disk.open(path, Mode::Keep).map(Self)
    }
}

impl redb::StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        self.0.length()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(out, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_length(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write_all_at(data, offset)
    }
}
