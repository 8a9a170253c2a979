//! `plimsoll system-check`: is this machine fit for measuring?

use crate::system_check::{Check, State, checks};
use anyhow::Result;
use clap::Args;
use plimsoll_job::exit;
use plimsoll_job::job::{Job, Program};
use plimsoll_job::output::print_out;
use serde_json::json;
use std::fmt::Write;
use std::path::Path;

const EXAMPLES: &str = "\
Examples:
  Settings that disturb measurements, and how to fix them:    plimsoll system-check
  For programs:                                           plimsoll system-check --json

Exit codes: 0 nothing is bad, 2 something is bad.";

/// Check this machine for settings that disturb measurements
///
/// It says how to fix them, and takes a second.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct CheckArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Job for CheckArgs {
    const NAME: &'static str = "system-check";

    fn run(&self, _program: &Program) -> Result<u8> {
        run(self)
    }
}

/// Runs the command.
///
/// # Errors
/// When stdout cannot be written.
fn run(args: &CheckArgs) -> Result<u8> {
    let checks = checks(Path::new("/"));
    let bad = checks.iter().filter(|check| check.state == State::Bad).count();
    if args.json {
        let value =
            json!({"schema": "plimsoll.system-check/1", "good": bad == 0, "checks": checks});
        print_out(&format!("{value:#}\n"))?;
    } else {
        print_out(&text(&checks, bad))?;
    }
    Ok(if bad == 0 { exit::FINE } else { exit::SLO_MISSED })
}

fn text(checks: &[Check], bad: usize) -> String {
    let mut out = String::new();
    // Writing to a text cannot fail.
    for check in checks {
        let state = check.state.name();
        let _ = writeln!(out, "{state:<8} {:<24} {}", check.name, check.found);
        if check.state != State::Good {
            let _ = writeln!(out, "         why: {}", check.why);
        }
        if let Some(fix) = &check.fix {
            let _ = writeln!(out, "         fix: {fix}");
        }
    }
    let unknown = checks.iter().filter(|check| check.state == State::Unknown).count();
    let _ = writeln!(out, "\n{} good, {bad} bad, {unknown} unknown", checks.len() - bad - unknown);
    out
}
