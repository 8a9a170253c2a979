//! `copymove`: files copied or moved into the record, before and after the run.

use super::Hook;
use anyhow::Result;
use plimsoll_job::usage::usage;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Most files of one hook.
const FILES_MAX: usize = 10_000;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// Move instead of copy.
    is_move: bool,
    /// Patterns taken before the run.
    before: Vec<String>,
    /// Patterns taken after it.
    after: Vec<String>,
}

pub struct CopyMove {
    options: Options,
    taken: usize,
    /// Moved files: original path, and path until the record has them.
    moved: Vec<(PathBuf, PathBuf)>,
}

impl CopyMove {
    pub fn new(options: Options) -> Result<Self> {
        for pattern in options.before.iter().chain(&options.after) {
            glob::Pattern::new(pattern)
                .map_err(|error| usage(format!("hook copymove: '{pattern}': {error}")))?;
        }
        Ok(Self { options, taken: 0, moved: Vec::new() })
    }

    fn take(&mut self, patterns: &[String], folder: &Path) -> Result<(), String> {
        let mut problems = Vec::new();
        for pattern in patterns {
            let found: Vec<PathBuf> = glob::glob(pattern)
                .map_err(|error| format!("'{pattern}': {error}"))?
                .flatten()
                .filter(|path| path.is_file())
                .collect();
            if found.is_empty() {
                problems.push(format!("'{pattern}' matches no file"));
            }
            for path in found {
                if self.taken >= FILES_MAX {
                    return Err(format!("more than {FILES_MAX} files; the rest stays where it is"));
                }
                self.taken += 1;
                match take_one(&path, folder, self.options.is_move) {
                    Ok(to) if self.options.is_move => self.moved.push((path, to)),
                    Ok(_) => {}
                    Err(error) => problems.push(format!("{}: {error}", path.display())),
                }
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
    }
}

impl Hook for CopyMove {
    fn before(&mut self, folder: &Path) -> Result<(), String> {
        let patterns = self.options.before.clone();
        self.take(&patterns, folder)
    }

    fn after(&mut self, folder: &Path) -> Result<(), String> {
        let patterns = self.options.after.clone();
        self.take(&patterns, folder)
    }

    fn give_back(&mut self) -> Result<(), String> {
        let mut problems = Vec::new();
        for (from, to) in self.moved.drain(..).rev() {
            // What has come into its place since then is newer, and stays.
            if !from.exists()
                && let Err(error) = move_one(&to, &from)
            {
                problems.push(format!("{}: {error}", from.display()));
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
    }
}

fn move_one(from: &Path, to: &Path) -> std::io::Result<()> {
    if std::fs::rename(from, to).is_ok() {
        return Ok(());
    }
    std::fs::copy(from, to)?;
    std::fs::remove_file(from)
}

/// Returns where it is now.
fn take_one(path: &Path, folder: &Path, is_move: bool) -> std::io::Result<PathBuf> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut to = folder.join(&name);
    // Files of the same name from several folders all stay.
    for number in 1..=FILES_MAX {
        if !to.exists() {
            break;
        }
        to = folder.join(format!("{name}.{number}"));
    }
    if is_move {
        move_one(path, &to)?;
    } else {
        std::fs::copy(path, &to)?;
    }
    Ok(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_copied_before_and_moved_after() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b, to) = (dir.path().join("a"), dir.path().join("b"), dir.path().join("to"));
        for folder in [&a, &b, &to] {
            std::fs::create_dir(folder).unwrap();
        }
        std::fs::write(a.join("r1.txt"), "a").unwrap();
        std::fs::write(b.join("r1.txt"), "b").unwrap();
        let pattern = vec![format!("{}/*/r*.txt", dir.path().display())];
        let nothing = vec![format!("{}/none*", dir.path().display())];
        let options = Options { is_move: false, before: nothing, after: pattern.clone() };
        let mut copy = CopyMove::new(options.clone()).unwrap();
        assert!(copy.before(&to).unwrap_err().contains("matches no file"));
        copy.after(&to).unwrap();
        assert_eq!(std::fs::read_to_string(to.join("r1.txt")).unwrap(), "a");
        assert_eq!(std::fs::read_to_string(to.join("r1.txt.1")).unwrap(), "b");
        assert!(a.join("r1.txt").exists());
        let other = tempfile::tempdir().unwrap();
        let options = Options {
            is_move: true,
            before: Vec::new(),
            after: vec![format!("{}/r*", a.display())],
        };
        let mut moving = CopyMove::new(options).unwrap();
        moving.after(other.path()).unwrap();
        assert!(!a.join("r1.txt").exists() && other.path().join("r1.txt").exists());
        moving.give_back().unwrap();
        assert_eq!(std::fs::read_to_string(a.join("r1.txt")).unwrap(), "a");
    }
}
