//! Describes this build to the program, in variables that begin with `PLIMSOLL_`: commit, changes to it, profile, target,
//! features, compiler, and the hash of `Cargo.lock`. `plimsoll version` and every run record have them.
//!
//! The commit comes from the variable `PLIMSOLL_COMMIT` (then `PLIMSOLL_MODIFIED` says `true` or `false`), from the package that
//! Cargo made, from the archive that git made, or from the repository; without any of them it is unknown. Only files that the
//! program is made of are watched, so that an edited test does not compile the program again.
#![allow(clippy::print_stdout)]

use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Digits of the commit behind the version.
const SHORT: usize = 12;
/// Files that hold the commit, in a package of Cargo and in an archive of git.
const PACKAGED: &str = ".cargo_vcs_info.json";
const ARCHIVED: &str = ".archive";
/// Crates that are in no program, by the names of their folders.
const NOT_SHIPPED: [&str; 7] =
    ["dist", "fuzzing", "hostile", "probe", "sabotage", "simulate", "zoo"];
/// Parts of a crate that are in no program.
const NOT_BUILT: [&str; 5] = ["tests", "benches", "examples", "README.md", "target"];

fn main() {
    let here = variable("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default();
    let root = root_of(&here);
    for name in ["PLIMSOLL_COMMIT", "PLIMSOLL_MODIFIED"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    let parts = parts_of(&root);
    for part in parts.iter().map(String::as_str).chain([PACKAGED, ARCHIVED]) {
        watch(&root.join(part));
    }
    if let Some(repository) = Repository::at(&root) {
        repository.files_of_head().iter().for_each(|file| watch(file));
    }
    let origin = given().unwrap_or_else(|| origin_of(&root));
    let lock = std::fs::read(root.join("Cargo.lock")).map(|text| hash(&text)).unwrap_or_default();
    for (name, value) in [
        ("VERSION", version(&origin)),
        ("COMMIT", origin.commit),
        ("MODIFIED", origin.modified.map(|changed| changed.to_string()).unwrap_or_default()),
        ("PROFILE", profile()),
        ("TARGET", variable("TARGET").unwrap_or_default()),
        ("FEATURES", features(&variable("CARGO_CFG_FEATURE").unwrap_or_default())),
        ("RUSTC", compiler().unwrap_or_default()),
        ("LOCK_SHA256", lock),
    ] {
        println!("cargo:rustc-env=PLIMSOLL_{name}={value}");
    }
}

/// Lets Cargo run this again when a file or folder changes. A path that is not there would be a reason in every build.
fn watch(path: &Path) {
    if path.exists() {
        println!("cargo:rerun-if-changed={}", path.display());
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Commit of the sources, and whether they were changed since.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Empty if unknown.
    pub(crate) commit: String,
    /// `None` if unknown.
    pub(crate) modified: Option<bool>,
}

fn version(origin: &Origin) -> String {
    let number = env!("CARGO_PKG_VERSION");
    let short: String = origin.commit.chars().take(SHORT).collect();
    let changed = if origin.modified == Some(true) { "-modified" } else { "" };
    if short.is_empty() { number.to_owned() } else { format!("{number} ({short}{changed})") }
}

/// The origin that whoever builds has given.
pub(crate) fn given() -> Option<Origin> {
    let commit = variable("PLIMSOLL_COMMIT")?;
    let modified = variable("PLIMSOLL_MODIFIED").and_then(|word| word.parse().ok());
    Some(Origin { commit, modified })
}

/// Folder of `Cargo.lock`: the workspace, or the package if Cargo made one of this crate.
pub(crate) fn root_of(here: &Path) -> PathBuf {
    let workspace = here.join("../..");
    if here.join(PACKAGED).exists() || !workspace.join("Cargo.lock").exists() {
        return here.to_owned();
    }
    workspace
}

/// The origin that the sources themselves tell.
pub(crate) fn origin_of(root: &Path) -> Origin {
    let of_repository = || Repository::at(root)?.origin(&parts_of(root));
    of_file(root).or_else(of_repository).unwrap_or_default()
}

/// The origin of sources that were packed: Cargo and git leave the commit in a file.
pub(crate) fn of_file(root: &Path) -> Option<Origin> {
    let is_commit = |word: &&str| word.len() >= 40 && word.bytes().all(|b| b.is_ascii_hexdigit());
    if let Ok(text) = std::fs::read_to_string(root.join(PACKAGED)) {
        let commit = text.split('"').find(is_commit)?.to_owned();
        return Some(Origin { commit, modified: Some(text.contains("\"dirty\": true")) });
    }
    // In the repository itself the file has a pattern in the place of the commit.
    let text = std::fs::read_to_string(root.join(ARCHIVED)).ok()?;
    let commit = text.split_whitespace().next().filter(is_commit)?.to_owned();
    // Whether an unpacked archive was edited, nobody can say.
    Some(Origin { commit, modified: None })
}

/// Files and folders that the program is made of, relative to the root.
pub(crate) fn parts_of(root: &Path) -> Vec<String> {
    let top = ["Cargo.toml", "Cargo.lock", "build.rs", "src", "jobs", "engines"];
    let mut parts: Vec<String> = top.map(str::to_owned).into_iter().collect();
    parts.retain(|part| root.join(part).exists());
    parts_of_crates(root, "crates", &mut parts);
    parts
}

fn parts_of_crates(root: &Path, folder: &str, parts: &mut Vec<String>) {
    let names = names(&root.join(folder));
    let is_crate = names.iter().any(|name| name == "Cargo.toml");
    for name in names.iter().filter(|name| !name.starts_with('.')) {
        let path = format!("{folder}/{name}");
        if is_crate && !NOT_BUILT.contains(&name.as_str()) {
            parts.push(path);
        } else if !is_crate && !NOT_SHIPPED.contains(&name.as_str()) && root.join(&path).is_dir() {
            parts_of_crates(root, &path, parts);
        }
    }
}

/// Names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// A checkout of the sources.
pub(crate) struct Repository {
    root: PathBuf,
}

impl Repository {
    /// Returns the checkout at `root`. Sources that were unpacked inside another repository are not of that one's commit.
    pub(crate) fn at(root: &Path) -> Option<Self> {
        root.join(".git").exists().then(|| Self { root: root.to_owned() })
    }

    /// The commit, and whether one of the parts differs from it.
    pub(crate) fn origin(&self, parts: &[String]) -> Option<Origin> {
        let commit = self.word(&["rev-parse", "HEAD"])?;
        let flags = ["--no-optional-locks", "status", "--porcelain", "--untracked-files=all", "--"];
        let arguments: Vec<&str> =
            flags.into_iter().chain(parts.iter().map(String::as_str)).collect();
        Some(Origin { commit, modified: self.git(&arguments).map(|text| !text.trim().is_empty()) })
    }

    /// Files that change with each commit, checkout or reset.
    fn files_of_head(&self) -> Vec<PathBuf> {
        let branch = self.word(&["symbolic-ref", "--quiet", "HEAD"]);
        let names = ["HEAD", "logs/HEAD", "packed-refs"].into_iter().chain(branch.as_deref());
        let paths = names.filter_map(|name| self.word(&["rev-parse", "--git-path", name]));
        paths.map(|path| self.root.join(path)).collect()
    }

    fn word(&self, arguments: &[&str]) -> Option<String> {
        let text = self.git(arguments)?;
        (text.lines().count() == 1).then(|| text.trim().to_owned())
    }

    /// Runs git without the variables of a hook that this build may be a part of. A checkout of another owner is read too, as in
    /// a container: Cargo has trusted its build scripts already.
    fn git(&self, arguments: &[&str]) -> Option<String> {
        let mut git = Command::new("git");
        git.args(["-c", "safe.directory=*", "-c", "core.fsmonitor=false"]);
        for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
            git.env_remove(name);
        }
        let ended = git.args(arguments).current_dir(&self.root).output().ok()?;
        ended.status.success().then(|| String::from_utf8(ended.stdout).ok()).flatten()
    }
}

/// Name of the profile: `dev`, `release`, `dist`. Cargo says only which of the first two it is like, but names a folder after it.
fn profile() -> String {
    let out = variable("OUT_DIR").unwrap_or_default();
    let like = variable("PROFILE").unwrap_or_default();
    profile_of(Path::new(&out)).unwrap_or(if like == "debug" { "dev".to_owned() } else { like })
}

/// The profile of a folder such as `target/dist/build/plimsoll-0123456789abcdef/out`.
pub(crate) fn profile_of(out: &Path) -> Option<String> {
    let build = out.ancestors().nth(2).filter(|folder| folder.ends_with("build"))?;
    let name = build.parent()?.file_name()?.to_str()?;
    Some(if name == "debug" { "dev" } else { name }.to_owned())
}

/// The features without `default`, which says nothing by itself.
pub(crate) fn features(listed: &str) -> String {
    let mut names: Vec<&str> =
        listed.split(',').filter(|name| !["", "default"].contains(name)).collect();
    names.sort_unstable();
    names.join(",")
}

/// Version of the compiler, such as `1.95.0 (59807616e 2026-04-14)`.
fn compiler() -> Option<String> {
    let ended = Command::new(variable("RUSTC")?).arg("--version").output().ok()?;
    let text = String::from_utf8(ended.stdout).ok()?;
    text.trim().strip_prefix("rustc ").map(str::to_owned)
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
