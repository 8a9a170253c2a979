//! The `plimsoll` binary: flags become a scenario, a scenario becomes a run.

mod commands;
mod execute;
mod exit;
mod fbench_source;
mod prepare;
mod progress;
mod quickstart;
mod signals;
mod url;
mod usage;
mod vespa_tls;

use anyhow::Result;
use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use commands::{fbench, load, report, result_filter, run, serve, split_file};
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

const ORIENTATION: &str = "\
plimsoll measures how much load a search, recommendation or database system holds, and shows why.

  See it work        plimsoll run quickstart
                     a real search server, a real text, a real query mix, half a minute
  Any HTTP service   plimsoll load http://127.0.0.1:8080/ --rate 1000 --duration 30s
                     closed, open, bursts, profiles; classes, checks, limits
  vespa-fbench       plimsoll fbench -n 8 -s 30 -q query%03d.txt 127.0.0.1 8080
                     the same flags, files and summary; failures counted as failures
  A target to try    plimsoll serve null | queue | search
  A run once more    plimsoll report [RUN] --format text|json|csv|fbench
  Query files        plimsoll corpus | split-file | result-filter

Every command explains itself: plimsoll COMMAND --help.
";

/// Measures how much load a search, recommendation or database serving system holds, and shows why.
#[derive(Parser)]
#[command(name = "plimsoll", version, max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    Run(run::RunArgs),
    Load(Box<load::LoadArgs>),
    Fbench(Box<fbench::FbenchArgs>),
    Serve(Box<serve::ServeArgs>),
    Report(report::ReportArgs),
    Corpus(commands::corpus::CorpusArgs),
    SplitFile(split_file::SplitArgs),
    ResultFilter(result_filter::FilterArgs),
}

impl Command {
    fn run(&self) -> Result<u8> {
        match self {
            Command::Run(args) => run::run(args),
            Command::Load(args) => load::run(args),
            Command::Fbench(args) => fbench::run(args),
            Command::Serve(args) => serve::run(args),
            Command::Report(args) => report::run(args),
            Command::Corpus(args) => commands::corpus::run(args),
            Command::SplitFile(args) => split_file::run(args),
            Command::ResultFilter(args) => result_filter::run(args),
        }
    }
}

/// The arguments, with the subcommand put in when the program was called by a link's name.
fn arguments() -> Vec<OsString> {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    let program = arguments.first().map(Path::new).and_then(Path::file_name);
    let command = program.and_then(|name| name.to_str()).and_then(fbench::link_command);
    if let Some(command) = command {
        arguments.insert(1, command.into());
    }
    arguments
}

/// One line for a wrong command line, without the parser's frame around it.
fn explain(error: &clap::Error) -> u8 {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return if error.print().is_ok() { exit::FINE } else { exit::FAILED };
    }
    let text = error.to_string();
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:"))
        .filter(|line| !line.is_empty() && !line.starts_with("For more information"))
        .collect();
    let line = lines.join(" ");
    let line = line.strip_prefix("error: ").unwrap_or(&line);
    execute::note(&format!("plimsoll: {line}; see plimsoll --help"));
    exit::USAGE
}

fn main() -> ExitCode {
    let code = match Cli::try_parse_from(arguments()) {
        Err(error) => explain(&error),
        Ok(Cli { command: None }) => match execute::print_out(ORIENTATION) {
            Ok(()) => exit::FINE,
            Err(_) => exit::FAILED,
        },
        Ok(Cli { command: Some(command) }) => match command.run() {
            Ok(code) => code,
            Err(error) => {
                let chain: Vec<String> = error.chain().map(ToString::to_string).collect();
                execute::note(&format!("plimsoll: {}", chain.join(": ")));
                exit::of_error(&error)
            }
        },
    };
    ExitCode::from(code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
