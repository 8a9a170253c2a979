//! The build of this program, as coordinator and agents compare it.

use anyhow::{Context, Result};
use plimsoll_fleet::files::sha256_of;
use plimsoll_fleet::message::Build;
use plimsoll_job::tool;
use std::path::Path;

/// Returns the build of the program that runs.
///
/// # Errors
/// When its file cannot be read.
pub fn own() -> Result<Build> {
    let (program_sha256, _) =
        sha256_of(Path::new("/proc/self/exe")).context("reading the program's own file")?;
    Ok(Build { tool: tool::own(), program_sha256 })
}
