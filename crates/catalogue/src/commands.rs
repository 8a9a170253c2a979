//! The commands about jobs, engines and the machine.

mod jobs;
mod run;
mod scenario;
mod system_check;

pub use jobs::{CleanArgs, InfoArgs, InstallArgs, ListArgs};
pub use run::RunArgs;
pub use scenario::{COMMANDS as COMMANDS_OF_FILES, CommandLine, command_line};
pub use system_check::CheckArgs;
