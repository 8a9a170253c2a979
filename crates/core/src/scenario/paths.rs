//! Paths in the files of users, which begin at the file's folder.

use super::{Scenario, TlsScenario};
use std::path::{Path, PathBuf};

impl Scenario {
    /// The scenario of a file in this folder: its relative paths begin there.
    #[must_use]
    pub fn with_paths_from(mut self, folder: &Path) -> Scenario {
        let rows = self.rows.as_mut().map(|rows| &mut rows.file);
        let paths = self.queries.iter_mut().chain(rows).chain(self.tls.paths());
        paths.for_each(|path| *path = path_from(folder, path));
        self
    }
}

impl TlsScenario {
    /// All paths that there are.
    pub(crate) fn paths(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let paths = [&mut self.ca_file, &mut self.certificate_file, &mut self.key_file];
        paths.into_iter().flatten()
    }
}

/// A path of a file in this folder, for a program that runs elsewhere. `-`, which is standard input or output, stays.
#[must_use]
pub fn path_from(folder: &Path, path: &Path) -> PathBuf {
    if path == Path::new("-") { path.to_owned() } else { folder.join(path) }
}
