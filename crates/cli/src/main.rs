//! The `plimsoll` binary: flags become a scenario, a scenario becomes a run.

mod commands;
mod exit;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// One tool that measures how much load a serving system holds, and shows why.
#[derive(Parser)]
#[command(name = "plimsoll", version)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match cli.command {
        Some(_) | None => ExitCode::SUCCESS,
    }
}
