//! The sources of a release: their commit, its time, and a copy of them in another folder.

use crate::programs::output;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

#[allow(dead_code)]
#[path = "../../cli/build.rs"]
mod build_script;

/// The sources of a release.
#[derive(Clone, Debug)]
pub struct Sources {
    /// Their folder.
    pub root: PathBuf,
    /// Version of plimsoll.
    pub version: String,
    /// Commit; empty if unknown.
    pub commit: String,
    /// True if they differ from the commit; `None` if unknown.
    pub modified: Option<bool>,
    /// Time of every file of the release, seconds since 1970: that of the commit, or `SOURCE_DATE_EPOCH`.
    pub epoch: u64,
}

impl Sources {
    /// Looks at the sources in a folder.
    ///
    /// # Errors
    /// When there are none, or their time is unknown.
    pub fn at(root: &Path) -> Result<Self> {
        let root = root.canonicalize().with_context(|| root.display().to_string())?;
        let manifest = read(&root, "Cargo.toml")?;
        let manifest: toml::Table = manifest.parse().context("Cargo.toml")?;
        let package = manifest.get("workspace").and_then(|own| own.get("package"));
        let version = package.and_then(|own| own.get("version")).and_then(toml::Value::as_str);
        let version = version.context("Cargo.toml has no workspace.package.version")?.to_owned();
        let origin = build_script::given().unwrap_or_else(|| build_script::origin_of(&root));
        let epoch = epoch(&root)?;
        Ok(Self { root, version, commit: origin.commit, modified: origin.modified, epoch })
    }

    /// The same sources in another folder.
    #[must_use]
    pub fn moved(&self, root: PathBuf) -> Self {
        Self { root, ..self.clone() }
    }

    /// Reads a file of the sources.
    ///
    /// # Errors
    /// When it cannot be read, or is not UTF-8.
    pub fn read(&self, path: &str) -> Result<String> {
        read(&self.root, path)
    }

    /// Copies the sources into an empty folder, as a source archive would hold them: without the repository.
    ///
    /// # Errors
    /// When a file cannot be read or written.
    pub fn copy(&self, folder: &Path) -> Result<()> {
        for path in self.files()? {
            let (from, to) = (self.root.join(&path), folder.join(&path));
            std::fs::create_dir_all(to.parent().context("a file in no folder")?)?;
            std::fs::copy(&from, &to).with_context(|| from.display().to_string())?;
        }
        Ok(())
    }

    /// Paths of all files: those that git knows, or all of an archive.
    fn files(&self) -> Result<Vec<String>> {
        if self.root.join(".git").exists() {
            let listed = output(git(&self.root).args(["ls-files", "-z", "--cached"]))?;
            let paths = listed.split('\0').filter(|path| self.root.join(path).is_file());
            return Ok(paths.map(str::to_owned).collect());
        }
        let mut found = Vec::new();
        below(&self.root, "", &mut found)?;
        Ok(found)
    }
}

fn below(root: &Path, prefix: &str, found: &mut Vec<String>) -> Result<()> {
    let folder = root.join(prefix);
    for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_file() {
            found.push(path);
        } else if entry.file_type()?.is_dir() && path != "target" {
            below(root, &format!("{path}/"), found)?;
        }
    }
    Ok(())
}

fn read(root: &Path, path: &str) -> Result<String> {
    let path = root.join(path);
    std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
}

fn git(root: &Path) -> Command {
    let mut git = Command::new("git");
    git.args(["-c", "safe.directory=*"]).current_dir(root);
    git
}

/// Time of the commit, seconds since 1970.
fn epoch(root: &Path) -> Result<u64> {
    if let Ok(given) = std::env::var("SOURCE_DATE_EPOCH") {
        return given
            .parse()
            .with_context(|| format!("SOURCE_DATE_EPOCH: '{given}' is not a number"));
    }
    let archived = read(root, ".archive").unwrap_or_default();
    if let Some(epoch) = archived.split_whitespace().nth(1).and_then(|word| word.parse().ok()) {
        return Ok(epoch);
    }
    if !root.join(".git").exists() {
        bail!("the time of these sources is unknown; set SOURCE_DATE_EPOCH to seconds since 1970");
    }
    let text = output(git(root).args(["log", "-1", "--format=%ct"]))?;
    text.trim().parse().with_context(|| format!("time of the commit: '{}'", text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_the_files_of_the_program_and_no_repository() {
        let own = Sources::at(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap();
        assert_eq!(own.version, env!("CARGO_PKG_VERSION"));
        assert!(own.epoch > 1_700_000_000, "{}", own.epoch);
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("copy");
        own.copy(&copy).unwrap();
        for path in ["Cargo.lock", "crates/cli/src/main.rs", "docs/README.md", ".archive"] {
            assert!(copy.join(path).is_file(), "no {path}");
        }
        assert!(!copy.join(".git").exists() && !copy.join("target").exists());
        let mut listed = own.moved(copy.clone()).files().unwrap();
        let mut wanted = own.files().unwrap();
        listed.sort();
        wanted.sort();
        assert_eq!(listed, wanted);
    }
}
