//! Steps after which something is on the disk, name and all.

use crate::{Disk, Kind, Mode};
use std::io;
use std::path::Path;

/// Permissions of folders before the process's mask.
const PERMISSIONS: u32 = 0o777;

/// Makes a folder and those above it that are missing. When it returns, they are there after a power cut too.
///
/// # Errors
/// As the system has them, and when something else has the name.
pub fn create_folders(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    if path.as_os_str().is_empty() {
        return Ok(());
    }
    match disk.kind(path) {
        Ok(Kind::Folder) => return Ok(()),
        // The system says it when the folder is made.
        Ok(Kind::File) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    if let Some(parent) = path.parent() {
        create_folders(disk, parent)?;
    }
    match disk.create_folder(path, PERMISSIONS) {
        // Another process was faster.
        Err(error)
            if error.kind() == io::ErrorKind::AlreadyExists && crate::is_folder(disk, path)? => {}
        made => made?,
    }
    sync_name(disk, path)
}

/// Waits until the name of a file or folder is on the disk.
///
/// # Errors
/// As the system has them.
pub fn sync_name(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    disk.sync_folder(parent.unwrap_or(Path::new(".")))
}

/// Puts a file with this content in the place of the one that has its name, in one step: by way of a temporary file in the same folder.
/// When it returns, the new one is on the disk.
///
/// # Errors
/// As the system has them. Then the old file or the new one is there, whole.
pub fn replace(disk: &dyn Disk, temporary: &Path, path: &Path, content: &[u8]) -> io::Result<()> {
    let written = disk.open(temporary, Mode::Create).and_then(|file| {
        file.write_all_at(content, 0)?;
        file.sync_data()
    });
    if let Err(error) = written.and_then(|()| disk.rename(temporary, path)) {
        // Half a file helps nobody; if it cannot be removed either, that changes nothing for the reader.
        let _ = disk.remove_file(temporary);
        return Err(error);
    }
    sync_name(disk, path)
}
