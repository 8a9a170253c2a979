//! One process at a time: a lock that goes with the process, however it ends.

use plimsoll_disk::{Disk, Lock};
use std::io;
use std::path::Path;

/// Keeps others out as long as it lives.
#[derive(Debug)]
pub struct Alone {
    /// Where a file system has no locks, there is the file and no more.
    _lock: Option<Lock>,
}

impl Alone {
    /// Takes the lock of a file, which stays where it is afterwards; none while another process has it.
    ///
    /// # Errors
    /// When there can be no such file.
    pub fn take(disk: &dyn Disk, path: &Path) -> io::Result<Option<Self>> {
        match disk.lock(path) {
            Ok(lock) => Ok(Some(Self { _lock: Some(lock) })),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(_) if disk.kind(path).is_ok() => Ok(Some(Self { _lock: None })),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Alone;
    use plimsoll_disk::Real;

    #[test]
    fn one_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let first = Alone::take(&Real, &path).unwrap();
        assert!(first.is_some() && Alone::take(&Real, &path).unwrap().is_none());
        drop(first);
        assert!(Alone::take(&Real, &path).unwrap().is_some());
        assert!(Alone::take(&Real, &folder.path().join("no/lock")).is_err());
    }
}
