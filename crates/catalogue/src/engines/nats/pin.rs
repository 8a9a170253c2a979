//! The version of nats-server that is installed, and the place where it is.

use crate::engines::engines_home;
use crate::engines::java::in_path;
use anyhow::Result;
use plimsoll_job::usage::usage;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Version of the Go module, and the hash of its source. `.ci/clients` reads the same file.
pub const PIN: &str = include_str!("../../../engines/nats.pin");
/// Name of the program.
pub const PROGRAM: &str = "nats-server";
/// File that marks a complete installation.
pub const STAMP: &str = "installed";
/// Oldest version that the bus accepts.
const OLDEST: (u64, u64) = (2, 10);

/// Returns the version as the Go module has it, with a `v`.
pub fn tag() -> &'static str {
    PIN.split_whitespace().next().unwrap_or_default()
}

/// Returns the hash of the module's source, as Go writes it.
pub fn hash() -> &'static str {
    PIN.split_whitespace().nth(1).unwrap_or_default()
}

/// Returns the version.
pub fn version() -> &'static str {
    tag().trim_start_matches('v')
}

/// Returns the folder of the installation, whether it is there or not.
///
/// # Errors
/// The environment names no folder.
pub fn folder() -> Result<PathBuf> {
    Ok(engines_home()?.join(format!("nats-{}", version())))
}

/// Returns the folder of a complete installation.
pub fn installed() -> Option<PathBuf> {
    let folder = folder().ok()?;
    let stamp = std::fs::read_to_string(folder.join(STAMP)).ok()?;
    (stamp == PIN && folder.join(PROGRAM).is_file()).then_some(folder)
}

/// Finds the program: the installed one, or one in `PATH` that is new enough.
///
/// # Errors
/// Neither; names the command that installs it.
pub fn find() -> Result<PathBuf> {
    if let Some(folder) = installed() {
        return Ok(folder.join(PROGRAM));
    }
    let Some(program) = in_path(PROGRAM) else {
        return Err(usage(format!(
            "nats {} is not installed in {}, and no nats-server is in PATH; run: plimsoll install nats",
            version(),
            folder()?.display()
        )));
    };
    let found = printed_version(&program).unwrap_or_default();
    if is_new_enough(&found) {
        return Ok(program);
    }
    let found = if found.is_empty() { "unknown".to_owned() } else { found };
    Err(usage(format!(
        "{} has version {found} and 2.10 or later is needed; run: plimsoll install nats",
        program.display()
    )))
}

/// Returns the version that a server prints: `2.15.2` of `nats-server: v2.15.2`.
pub fn printed_version(program: &Path) -> Option<String> {
    let said = Command::new(program).arg("--version").stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    let version = text.trim().strip_prefix("nats-server: v")?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+');
    (version.len() < 40 && version.chars().all(is_plain)).then(|| version.to_owned())
}

fn is_new_enough(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse::<u64>().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= OLDEST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pin_names_a_version_and_a_hash() {
        assert!(tag().starts_with("v2.") && is_new_enough(version()), "{PIN}");
        assert!(hash().starts_with("h1:") && hash().len() == 47, "{PIN}");
        assert_eq!(PIN, format!("{} {}\n", tag(), hash()));
    }

    #[test]
    fn debian_s_version_is_too_old() {
        assert!(!is_new_enough("2.9.10") && !is_new_enough("") && !is_new_enough("1.20"));
        assert!(is_new_enough("2.10.0-beta.1") && is_new_enough("3.0"));
    }
}
