//! Installations that have begun and not finished: their folders, and the lock that only one of them has.

use anyhow::{Context, Result};
use plimsoll_job::signals;
use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Pause between two looks at a lock that another installation holds.
const LOCK_PAUSE: Duration = Duration::from_millis(200);

/// The folder of an installation that has begun: it goes away again unless it was renamed.
pub struct Unfinished {
    /// Its path.
    pub path: PathBuf,
}

impl Unfinished {
    /// Makes it in the folder of engines.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new(home: &Path, name: &str) -> Result<Self> {
        let path = home.join(format!(".{}-{}", name, std::process::id()));
        std::fs::create_dir_all(&path)?;
        Ok(Self { path })
    }
}

/// The folders that installations of an engine have begun and not finished.
pub fn unfinished(home: &Path, name: &str) -> Vec<PathBuf> {
    let begin = format!(".{}-", name);
    let is_one = |entry: &std::fs::DirEntry| {
        let file_name = entry.file_name();
        let number = file_name.to_str().and_then(|name| name.strip_prefix(&begin));
        number.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let Ok(entries) = std::fs::read_dir(home) else { return Vec::new() };
    entries.flatten().filter(is_one).map(|entry| entry.path()).collect()
}

/// Removes them. The holder of the lock knows that those who made them are gone; one of them may have had the number that this
/// process has, and its half of a jar would be taken for a whole one.
///
/// # Errors
/// A folder that cannot be removed.
pub fn remove_unfinished(home: &Path, name: &str) -> Result<()> {
    for path in unfinished(home, name) {
        std::fs::remove_dir_all(&path).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Waits until no other process installs the same; ends with the file.
///
/// # Errors
/// A file that cannot be made, or the user stops the wait.
pub fn lock(path: &Path) -> Result<File> {
    let open = || {
        // Removing the last engine removes the folder, too.
        let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        folder.and_then(|()| File::create(path)).with_context(|| path.display().to_string())
    };
    let mut file = open()?;
    loop {
        match file.try_lock() {
            Ok(()) if is_at(&file, path) => return Ok(file),
            // Its holder has removed the file: it locks no other process any more.
            Ok(()) => file = open()?,
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            // In a file system without locks, other installations cannot be seen.
            Err(TryLockError::Error(_)) => return Ok(file),
        }
        signals::go_on("while another installation was running")?;
    }
}

/// Returns true if an open file is the one of this name.
fn is_at(file: &File, path: &Path) -> bool {
    let own = file.metadata().map(|about| (about.dev(), about.ino()));
    let there = path.metadata().map(|about| (about.dev(), about.ino()));
    matches!((own, there), (Ok(own), Ok(there)) if own == there)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_begun_and_not_finished_is_known_and_goes() {
        let home = tempfile::tempdir().unwrap();
        let names = [".opensearch-17", ".opensearch-4000000", ".opensearch-x", ".elasticsearch-17"];
        for name in names {
            std::fs::create_dir(home.path().join(name)).unwrap();
            std::fs::write(home.path().join(name).join("half.jar"), "PK").unwrap();
        }
        remove_unfinished(home.path(), "opensearch").unwrap();
        let left = names.map(|name| home.path().join(name).exists());
        assert_eq!(left, [false, false, true, true]);
        assert!(unfinished(home.path(), "opensearch").is_empty());
    }

    #[test]
    fn a_lock_that_was_removed_locks_nobody_out() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        let path = home.join(".lock");
        let first = lock(&path).unwrap();
        assert!(is_at(&first, &path));
        let waiting = {
            let path = path.clone();
            std::thread::spawn(move || lock(&path).map(|file| is_at(&file, &path)))
        };
        // As `clean` does: the waiting one has it open by now, or opens another.
        std::thread::sleep(LOCK_PAUSE);
        std::fs::remove_dir_all(&home).unwrap();
        drop(first);
        assert!(waiting.join().unwrap().unwrap(), "the lock of a file that is gone");
    }
}
