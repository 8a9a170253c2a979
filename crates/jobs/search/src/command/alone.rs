//! One process at a time: a lock that goes with the process, however it ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

/// Keeps others out as long as it lives.
#[derive(Debug)]
pub struct Alone {
    /// Closing the file ends the lock. Where a file system has no locks, it is a file and no more.
    _file: File,
}

impl Alone {
    /// Takes the lock of a file, which stays where it is afterwards; none while another process has it.
    ///
    /// # Errors
    /// When there can be no such file.
    pub fn take(path: &Path) -> io::Result<Option<Self>> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => Ok(None),
            Ok(()) | Err(_) => Ok(Some(Self { _file: file })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Alone;

    #[test]
    fn one_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let first = Alone::take(&path).unwrap();
        assert!(first.is_some() && Alone::take(&path).unwrap().is_none());
        drop(first);
        assert!(Alone::take(&path).unwrap().is_some());
        assert!(Alone::take(&folder.path().join("no/lock")).is_err());
    }
}
