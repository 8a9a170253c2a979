//! The files of a text index on any disk.

use plimsoll_disk::{Disk, Lock, Mode, Stream, durable, read};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tantivy::TantivyError;
use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    AntiCallToken, Directory, DirectoryLock, FileHandle, MmapDirectory, OwnedBytes,
    TerminatingWrite, WatchCallback, WatchHandle, WritePtr,
};

/// Time between two looks at a lock, and number of looks.
const LOOK_EVERY: Duration = Duration::from_millis(1);
const LOOKS: usize = 1000;

/// The directory of a text index: on the real disk tantivy's own, which maps the files.
///
/// # Errors
/// When there is no such folder.
pub fn open(disk: &Arc<dyn Disk>, folder: &Path) -> Result<Box<dyn Directory>, TantivyError> {
    if disk.is_real() {
        return Ok(Box::new(MmapDirectory::open(folder)?));
    }
    Ok(Box::new(DiskDirectory { disk: Arc::clone(disk), folder: folder.to_owned() }))
}

/// Puts an empty folder in the place of one with an index. The index is not there after a power cut either, not even a part.
///
/// # Errors
/// As the system has them.
pub fn emptied(disk: &dyn Disk, folder: &Path) -> io::Result<()> {
    if plimsoll_disk::is_folder(disk, folder)? {
        disk.remove_folder(folder)?;
        durable::sync_name(disk, folder)?;
    }
    durable::create_folders(disk, folder)
}

/// A folder of a disk that other libraries do not know. Its steps are those of tantivy's `MmapDirectory`.
#[derive(Clone, Debug)]
struct DiskDirectory {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
}

fn is_missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

fn unreadable(error: io::Error, path: &Path) -> OpenReadError {
    match is_missing(&error) {
        true => OpenReadError::FileDoesNotExist(path.to_owned()),
        false => OpenReadError::wrap_io_error(error, path.to_owned()),
    }
}

impl Directory for DiskDirectory {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        let file = self.disk.open(&self.folder.join(path), Mode::Read);
        let bytes = file.and_then(|file| file.contents());
        let bytes = bytes.map_err(|error| unreadable(error, path))?;
        Ok(Arc::new(OwnedBytes::new(bytes.to_vec())))
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        let removed = self.disk.remove_file(&self.folder.join(path));
        removed.map_err(|error| match is_missing(&error) {
            true => DeleteError::FileDoesNotExist(path.to_owned()),
            false => DeleteError::IoError { io_error: Arc::new(error), filepath: path.to_owned() },
        })
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        match self.disk.kind(&self.folder.join(path)) {
            Ok(_) => Ok(true),
            Err(error) if is_missing(&error) => Ok(false),
            Err(error) => Err(unreadable(error, path)),
        }
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        let whole = self.folder.join(path);
        if self.disk.kind(&whole).is_ok() {
            return Err(OpenWriteError::FileAlreadyExists(path.to_owned()));
        }
        let file = self.disk.open(&whole, Mode::Create);
        let file = file.map_err(|error| OpenWriteError::wrap_io_error(error, path.to_owned()))?;
        Ok(BufWriter::new(Box::new(Written(Stream::new(file)))))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        read(&*self.disk, &self.folder.join(path)).map_err(|error| unreadable(error, path))
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        let whole = self.folder.join(path);
        let temporary = whole.with_extension("tmp");
        let file = self.disk.open(&temporary, Mode::Create)?;
        file.write_all_at(data, 0)?;
        file.sync_data()?;
        self.disk.rename(&temporary, &whole)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.disk.sync_folder(&self.folder)
    }

    fn acquire_lock(&self, lock: &tantivy::directory::Lock) -> Result<DirectoryLock, LockError> {
        let path = self.folder.join(&lock.filepath);
        for _ in 0..LOOKS {
            match self.disk.lock(&path) {
                Ok(held) => return Ok(DirectoryLock::from(Box::<Lock>::new(held))),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && lock.is_blocking => {
                    std::thread::sleep(LOOK_EVERY);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(LockError::wrap_io_error(error)),
            }
        }
        Err(LockError::LockBusy)
    }

    fn watch(&self, _callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        Ok(WatchHandle::empty())
    }
}

/// A file that is synced at its end.
struct Written(Stream);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TerminatingWrite for Written {
    fn terminate_ref(&mut self, _: AntiCallToken) -> io::Result<()> {
        self.0.file().sync_data()
    }
}
