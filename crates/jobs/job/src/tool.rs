//! The build of plimsoll that writes a record.

use plimsoll_record::Tool;
use plimsoll_report::command::kept;
use std::sync::OnceLock;

static BUILD: OnceLock<Tool> = OnceLock::new();
static COMMAND: OnceLock<Vec<String>> = OnceLock::new();

/// Variable of the environment with the words of the command that the user called, as a JSON array, for the processes that a job
/// consists of: only the user's own command makes their runs again.
const COMMAND_FOR: &str = "PLIMSOLL_COMMAND_FOR";

/// Sets the description of this build. Only the program knows it: a crate that had the commit compiled in would be compiled
/// again after every commit. The first call counts.
pub fn set_build(build: Tool) {
    let _ = BUILD.set(build);
}

/// Remembers the words of the command line that this process was called with. The first call counts.
pub fn set_command(words: &[String]) {
    let of_job = std::env::var(COMMAND_FOR).ok();
    let of_job = of_job.and_then(|text| serde_json::from_str::<Vec<String>>(&text).ok());
    let _ = COMMAND.set(of_job.unwrap_or_else(|| words.to_vec()));
}

/// Hands the command line on to a process that is a part of this command.
pub fn pass_command(to: &mut std::process::Command) {
    if let Some(text) = COMMAND.get().and_then(|words| serde_json::to_string(words).ok()) {
        to.env(COMMAND_FOR, text);
    }
}

/// Returns the words of the command line as a record keeps them, secrets left out; empty in a process that is no program of its
/// own.
#[must_use]
pub fn command() -> Vec<String> {
    COMMAND.get().map(|words| kept(words)).unwrap_or_default()
}

/// Returns the description of this build; only its version is known in a process that is no program of its own.
#[must_use]
pub fn own() -> Tool {
    let unknown = || Tool { version: env!("CARGO_PKG_VERSION").to_owned(), ..Tool::default() };
    BUILD.get().cloned().unwrap_or_else(unknown)
}
