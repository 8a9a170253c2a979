//! `plimsoll completions`: scripts that complete commands and flags in a shell.

use anyhow::Result;
use clap::{Args, ValueEnum};
use plimsoll_job::exit;
use plimsoll_job::job::{Job, Program};
use plimsoll_job::output::print_out;

const EXAMPLES: &str = "\
Examples:
  bash, for this user (package bash-completion):
    plimsoll completions bash > ~/.local/share/bash-completion/completions/plimsoll
  bash, for this session:
    source <(plimsoll completions bash)
  zsh, into a folder of $fpath:
    plimsoll completions zsh > ~/.zfunc/_plimsoll
  fish:
    plimsoll completions fish > ~/.config/fish/completions/plimsoll.fish";

/// Print a script that completes commands and flags in bash, zsh or fish.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct CompletionsArgs {
    /// Shell that runs the script
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl From<Shell> for clap_complete::Shell {
    fn from(shell: Shell) -> Self {
        match shell {
            Shell::Bash => Self::Bash,
            Shell::Zsh => Self::Zsh,
            Shell::Fish => Self::Fish,
        }
    }
}

impl Job for CompletionsArgs {
    const NAME: &'static str = "completions";

    fn run(&self, program: &Program) -> Result<u8> {
        let mut script = Vec::new();
        let shell = clap_complete::Shell::from(self.shell);
        clap_complete::generate(shell, &mut (program.parser)(), "plimsoll", &mut script);
        print_out(&String::from_utf8(script)?)?;
        Ok(exit::FINE)
    }
}
