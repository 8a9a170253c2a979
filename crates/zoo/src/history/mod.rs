//! Error rates of the change points of a history, on series of runs whose changes are known.

mod rival;
mod series;
mod table;

pub use series::{Noise, Series};

use crate::page::refresh;
use std::process::ExitCode;
use table::{Arguments, tables};

const USAGE: &str = "plimsoll-zoo history [--series N] [--seed N] [--page FILE]";

/// Runs `plimsoll-zoo history`: prints the tables, and puts them between the markers of a page if one is named.
#[allow(clippy::print_stdout, clippy::print_stderr)]
#[must_use]
pub fn run(words: &[String]) -> ExitCode {
    let wrong = |reason: &str| {
        eprintln!("plimsoll-zoo: {reason}\nusage: {USAGE}");
        ExitCode::from(64)
    };
    let (arguments, page) = match Arguments::parse(words) {
        Ok(parsed) => parsed,
        Err(reason) => return wrong(&reason),
    };
    let text = tables(&arguments);
    println!("{text}");
    match page.map_or(Ok(()), |page| refresh(&page, "history-zoo", &text)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("plimsoll-zoo: {reason}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests;
