//! Folders that go when the program goes.

use anyhow::{Context, Result};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use tempfile::TempDir;

/// A new folder for the data of a target of this kind, removed when it is dropped. Never one that is there already: a
/// target that was killed leaves its data behind, and another process may have its number by now.
///
/// # Errors
/// When the folder for temporary files cannot be written.
pub fn temporary_folder(kind: &str) -> Result<TempDir> {
    tempfile::Builder::new()
        .prefix(&format!("plimsoll-{kind}-"))
        // A database server may run as a user of its own, who must come through here.
        .permissions(Permissions::from_mode(0o755))
        .tempdir()
        .with_context(|| {
            let folder = std::env::temp_dir();
            format!(
                "no folder can be created in {}; set TMPDIR to another folder",
                folder.display()
            )
        })
}

#[cfg(test)]
mod tests {
    use super::temporary_folder;

    #[test]
    fn nobody_gets_what_another_has_left_behind() {
        let first = temporary_folder("test").unwrap();
        std::fs::write(first.path().join("left"), "behind").unwrap();
        // As a process that is killed leaves it.
        let left = first.keep();
        let second = temporary_folder("test").unwrap();
        assert_ne!(left, second.path());
        assert_eq!(std::fs::read_dir(second.path()).unwrap().count(), 0);
        std::fs::remove_dir_all(left).unwrap();
    }
}
