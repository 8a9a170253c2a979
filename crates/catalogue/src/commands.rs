//! The commands about jobs, engines and the machine.

mod files;
mod fleet_words;
mod info;
mod list;
mod run;
mod scenario;
mod system_check;

use crate::engines::Engine;
use crate::job::Job;
use crate::near_miss::unknown;
use crate::{named, names};
use anyhow::Result;

pub use files::{CleanArgs, InstallArgs};
pub use info::InfoArgs;
pub use list::ListArgs;
pub use run::RunArgs;
pub use scenario::{COMMANDS as COMMANDS_OF_FILES, CommandLine, command_line};
pub use system_check::CheckArgs;

/// Folder of the files that jobs create, if no flag names another.
const DATA: &str = ".plimsoll";

/// A job; the error for a name that is neither a job's nor a file's lists the engines too.
fn job_or_engine(name: &str) -> Result<Job> {
    if name.ends_with(".toml") || names().contains(&name) {
        return named(name);
    }
    let known: Vec<&str> = names().into_iter().chain(Engine::names()).collect();
    Err(unknown("job or engine", name, &known))
}
