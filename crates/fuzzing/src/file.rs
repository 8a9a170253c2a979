//! A file in memory: some readers want a path.

use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

/// A file that is gone when it is dropped.
pub struct MemoryFile {
    path: PathBuf,
    _file: File,
}

impl MemoryFile {
    /// A file with this content.
    ///
    /// # Panics
    /// When the system gives no memory for it.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let made = memfd_create("fuzzed", MemfdFlags::CLOEXEC).map(File::from);
        let Ok(mut file) = made else { panic!("the system gives no file in memory: {made:?}") };
        let written = file.write_all(bytes);
        assert!(written.is_ok(), "{written:?}");
        Self { path: format!("/proc/self/fd/{}", file.as_raw_fd()).into(), _file: file }
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}
