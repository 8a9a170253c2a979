//! `plimsoll run`: a job of the catalogue, or a scenario in a file.

use super::common::OutputFlags;
use crate::execute::run_and_print;
use crate::usage::usage;
use anyhow::{Context, Result};
use clap::Args;
use plimsoll_core::scenario::Scenario;
use std::path::Path;

const EXAMPLES: &str = "\
Examples:
  A real search server, a real text and a real query mix, measured in half a minute:
    plimsoll run quickstart
  A scenario of your own (see docs/scenarios.md; 'scenario' in any run.json has its form):
    plimsoll run my-scenario.toml

Exit codes: 0 fine, 2 a limit was missed, 3 not valid, 4 the target failed, 64 wrong usage.";

/// Run a job: 'quickstart', or a scenario in a TOML file.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct RunArgs {
    /// 'quickstart', or the path of a TOML file.
    #[arg(value_name = "JOB|FILE.toml")]
    job: String,
    #[command(flatten)]
    output: OutputFlags,
}

/// Runs the command.
///
/// # Errors
/// Wrong usage, or a program failure.
pub fn run(args: &RunArgs) -> Result<u8> {
    let output = args.output.output();
    if args.job == "quickstart" {
        if output.json.is_some() {
            return Err(usage(
                "--json: quickstart makes two records; see plimsoll report --format json",
            ));
        }
        return crate::quickstart::run(&output);
    }
    let path = Path::new(&args.job);
    if path.extension().is_none_or(|extension| extension != "toml") {
        return Err(usage(format!(
            "there is no job '{}'; write quickstart, or the path of a .toml file",
            args.job
        )));
    }
    run_and_print(&read(path)?, &output).with_context(|| path.display().to_string())
}

fn read(path: &Path) -> Result<Scenario> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| usage(format!("{shown}: {error}; name a scenario file")))?;
    toml::from_str(&text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        usage(format!("{shown}:{line}: {}", error.message().replace('\n', " ")))
    })
}
