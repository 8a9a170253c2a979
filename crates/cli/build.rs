//! Passes the commit of the sources to the program: `PLIMSOLL_COMMIT`, empty if unknown, and `PLIMSOLL_VERSION`.
//!
//! A package that is built without a repository sets the variable `PLIMSOLL_COMMIT` itself.
#![allow(clippy::print_stdout)]

use std::path::Path;
use std::process::Command;

/// Digits of the commit behind the version.
const SHORT: usize = 12;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=PLIMSOLL_COMMIT");
    let given = std::env::var("PLIMSOLL_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = given.or_else(|| of_repository(&root)).unwrap_or_default();
    let version = env!("CARGO_PKG_VERSION");
    let short: String = commit.chars().take(SHORT).collect();
    let version =
        if short.is_empty() { version.to_owned() } else { format!("{version} ({short})") };
    println!("cargo:rustc-env=PLIMSOLL_COMMIT={commit}");
    println!("cargo:rustc-env=PLIMSOLL_VERSION={version}");
}

/// The commit of the repository at `root`, if there is one, and git.
fn of_repository(root: &Path) -> Option<String> {
    // Sources that were unpacked inside another repository are not of that one's commit.
    if !root.join(".git").exists() {
        return None;
    }
    for file in ["HEAD", "logs/HEAD"] {
        let path = git(root, &["rev-parse", "--git-path", file])?;
        // A file that is not there would be a reason to run this again in each build.
        if root.join(&path).exists() {
            println!("cargo:rerun-if-changed={}", root.join(&path).display());
        }
    }
    git(root, &["rev-parse", "HEAD"])
}

fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let ended = Command::new("git").args(arguments).current_dir(root).output().ok()?;
    let text = String::from_utf8(ended.stdout).ok()?;
    let is_word = ended.status.success() && text.lines().count() == 1;
    is_word.then(|| text.trim().to_owned())
}
