//! Files that are safe on the disk.

use std::fs::File;
use std::io;
use std::path::Path;

/// Waits until a file is on the disk. A pipe or a device has nothing to be synced.
pub(super) fn file(file: &File) -> io::Result<()> {
    if file.metadata()?.is_file() { file.sync_data() } else { Ok(()) }
}

/// Waits until the name of a file is on the disk.
pub(super) fn folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match File::open(folder.unwrap_or(Path::new("."))) {
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
