//! Files in memory, by their path, and the tar archives that are made of them.
//!
//! An archive depends on paths, contents and modes alone: entries are sorted, owned by root, and have one given time.

use anyhow::{Context, Result};
use flate2::{Compression, GzBuilder};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use tar::{Builder, EntryType, Header};

/// One file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its content.
    pub bytes: Vec<u8>,
    /// Its permissions.
    pub mode: u32,
}

/// Files by their path, without a leading slash.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// The files.
    pub files: BTreeMap<String, File>,
}

impl Tree {
    /// Adds a file that all users may read.
    pub fn add(&mut self, path: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.files.insert(path.into(), File { bytes: bytes.into(), mode: 0o644 });
    }

    /// Adds a program.
    pub fn add_program(&mut self, path: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.files.insert(path.into(), File { bytes: bytes.into(), mode: 0o755 });
    }

    /// Adds all files of another tree below a folder.
    pub fn graft(&mut self, folder: &str, other: &Self) {
        let below = |(path, file): (&String, &File)| (format!("{folder}/{path}"), file.clone());
        self.files.extend(other.files.iter().map(below));
    }

    /// Reads all files below a folder of the disk; all users may read each of them.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn read(folder: &Path) -> Result<Self> {
        let mut tree = Self::default();
        tree.read_below(folder, "")?;
        Ok(tree)
    }

    fn read_below(&mut self, folder: &Path, prefix: &str) -> Result<()> {
        let at = || format!("reading {}", folder.display());
        for entry in std::fs::read_dir(folder).with_context(at)? {
            let entry = entry.with_context(at)?;
            let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if entry.file_type().with_context(at)?.is_dir() {
                self.read_below(&entry.path(), &format!("{path}/"))?;
            } else {
                let bytes = std::fs::read(entry.path());
                self.add(path, bytes.with_context(|| entry.path().display().to_string())?);
            }
        }
        Ok(())
    }

    /// Folders of all files, parents first.
    #[must_use]
    pub fn folders(&self) -> BTreeSet<String> {
        let parents = |path: &str| -> Vec<String> {
            path.match_indices('/').map(|(at, _)| path[..at].to_owned()).collect()
        };
        self.files.keys().flat_map(|path| parents(path)).collect()
    }

    /// Sum of all sizes, bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.files.values().map(|file| file.bytes.len() as u64).sum()
    }

    /// Returns a tar archive whose entries have this time, seconds since 1970. `owned` are further folders, each with its
    /// permissions and owner.
    ///
    /// # Errors
    /// When a path is too long for the format.
    pub fn tar(&self, epoch: u64, owned: &[Folder<'_>]) -> Result<Vec<u8>> {
        let mut paths: BTreeMap<String, Header> = BTreeMap::new();
        for folder in self.folders() {
            paths.insert(folder, header(EntryType::Directory, 0o755, 0, epoch));
        }
        for folder in owned {
            let mut own = header(EntryType::Directory, folder.mode, 0, epoch);
            own.set_uid(folder.owner);
            own.set_gid(folder.owner);
            paths.insert(folder.path.to_owned(), own);
        }
        for (path, file) in &self.files {
            let size = file.bytes.len() as u64;
            paths.insert(path.clone(), header(EntryType::Regular, file.mode, size, epoch));
        }
        let mut archive = Builder::new(Vec::new());
        for (path, mut header) in paths {
            let bytes = self.files.get(&path).map_or(&[][..], |file| &file.bytes);
            let name = if header.entry_type().is_dir() { format!("{path}/") } else { path };
            archive.append_data(&mut header, &name, bytes).with_context(|| name.clone())?;
        }
        Ok(archive.into_inner()?)
    }
}

/// A folder that is not root's, or has other permissions.
pub struct Folder<'a> {
    /// Its path.
    pub path: &'a str,
    /// Its permissions.
    pub mode: u32,
    /// Number of its user and of its group.
    pub owner: u64,
}

fn header(kind: EntryType, mode: u32, size: u64, epoch: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(epoch);
    header.set_uid(0);
    header.set_gid(0);
    header
}

/// Returns bytes as a gzip file without name and time.
///
/// # Errors
/// Never: it is written to memory.
pub fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut packed = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    packed.write_all(bytes)?;
    Ok(packed.finish()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_depend_on_paths_contents_and_modes_alone() {
        let mut tree = Tree::default();
        tree.add_program("usr/bin/one", "1");
        let long = format!("usr/share/{}/two", "long".repeat(40));
        tree.add(&long, "22");
        let mut other = Tree::default();
        other.add(&long, "22");
        other.add_program("usr/bin/one", "1");
        let work = [Folder { path: "data", mode: 0o1777, owner: 65_532 }];
        let archive = tree.tar(1_000, &work).unwrap();
        assert_eq!(archive, other.tar(1_000, &work).unwrap());
        assert_eq!(gzip(&archive).unwrap(), gzip(&archive).unwrap());
        assert_ne!(archive, tree.tar(1_001, &work).unwrap());
        let mut read = tar::Archive::new(&archive[..]);
        let entries = read.entries().unwrap().map(|entry| {
            let entry = entry.unwrap();
            let header = entry.header();
            assert_eq!(header.mtime().unwrap(), 1_000);
            let path = entry.path().unwrap().to_string_lossy().into_owned();
            (path, header.mode().unwrap(), header.uid().unwrap())
        });
        let entries: Vec<_> = entries.collect();
        let names: Vec<&str> = entries.iter().map(|(path, ..)| path.as_str()).collect();
        let folder = long.trim_end_matches("two").to_owned();
        assert_eq!(
            names,
            ["data/", "usr/", "usr/bin/", "usr/bin/one", "usr/share/", &folder, &long]
        );
        assert_eq!((entries[3].1, entries[6].1), (0o755, 0o644));
        assert_eq!((entries[0].1, entries[0].2), (0o1777, 65_532));
    }
}
