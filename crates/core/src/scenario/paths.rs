//! Paths in the files of users, which begin at the file's folder.

use super::{Scenario, TlsScenario};
use std::path::{Path, PathBuf};

impl Scenario {
    /// The scenario of a file in this folder: its relative paths begin there.
    #[must_use]
    pub fn with_paths_from(mut self, folder: &Path) -> Scenario {
        let rows = self.rows.as_mut().map(|rows| &mut rows.file);
        let paths = self.queries.iter_mut().chain(&mut self.body_file).chain(rows);
        paths.chain(self.tls.paths()).for_each(|path| *path = path_from(folder, path));
        headers_from(folder, &mut self.headers);
        self
    }
}

/// Headers of a file in this folder: the files of headers that they name begin there.
pub fn headers_from(folder: &Path, headers: &mut [String]) {
    for header in headers {
        if let Some(file) = header.strip_prefix('@') {
            *header = format!("@{}", path_from(folder, Path::new(file)).display());
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_paths_of_a_file_begin_at_its_folder() {
        let scenario = Scenario {
            queries: Some("q.txt".into()),
            body_file: Some("b.bin".into()),
            headers: ["@h.txt", "@/all/h.txt", "From: @here"].map(str::to_owned).to_vec(),
            tls: TlsScenario { ca_file: Some("-".into()), ..TlsScenario::default() },
            ..Scenario::default()
        };
        let scenario = scenario.with_paths_from(Path::new("in"));
        assert_eq!(scenario.queries, Some("in/q.txt".into()));
        assert_eq!(scenario.body_file, Some("in/b.bin".into()));
        assert_eq!(scenario.headers, ["@in/h.txt", "@/all/h.txt", "From: @here"]);
        assert_eq!(scenario.tls.ca_file, Some("-".into()));
    }
}
