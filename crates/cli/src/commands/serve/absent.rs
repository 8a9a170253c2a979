//! Servers that this build lacks.

use clap::Args;
use plimsoll_job::usage::usage;

/// Takes the flags of a server that is not there, so that its absence is the error, not they.
#[derive(Args, Debug)]
pub struct AbsentArgs {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// Says that a server is missing, and how to get it.
pub fn refusal(server: &str, feature: &str) -> anyhow::Error {
    usage(format!(
        "this build of plimsoll has no server '{server}'; get it with: cargo build --release --features {feature}"
    ))
}
