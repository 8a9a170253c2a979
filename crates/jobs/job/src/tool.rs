//! The build of plimsoll that writes a record.

use plimsoll_record::Tool;
use std::sync::OnceLock;

static COMMIT: OnceLock<&str> = OnceLock::new();

/// Sets the commit that the program was built from. Only the program knows it: a crate that had it compiled in would be
/// compiled again after every commit. The first call counts.
pub fn set_commit(commit: &'static str) {
    let _ = COMMIT.set(commit);
}

/// Returns version and commit of this build; the commit is empty if it is unknown.
#[must_use]
pub fn own() -> Tool {
    Tool {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: COMMIT.get().copied().unwrap_or_default().to_owned(),
    }
}
