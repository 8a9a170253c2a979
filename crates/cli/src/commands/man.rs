//! `plimsoll man`: manual pages, one for each command, made from the parser.

use crate::VERSION;
use anyhow::{Context, Result};
use clap::Args;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use plimsoll_catalogue::near_miss::unknown;
use plimsoll_core::system_error::with_advice;
use plimsoll_job::exit;
use plimsoll_job::job::{Job, Program};
use plimsoll_job::output::{note, print_out};
use plimsoll_job::usage::usage;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  Read the page of a command:
    plimsoll man load | man -l -
    plimsoll man serve null | man -l -
  Install the pages of all commands for this user:
    plimsoll man --out ~/.local/share/man/man1";

/// Print the manual page of a command
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct ManArgs {
    /// Command, such as load [default: the program itself]
    ///
    /// Write a command of two words with a blank: serve null.
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
    /// Write the pages of all commands into DIR
    ///
    /// Of the command, and of each command below it.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Job for ManArgs {
    const NAME: &'static str = "man";

    fn run(&self, program: &Program) -> Result<u8> {
        let command = find((program.parser)(), &self.command)?;
        match &self.out {
            None => print_out(&page(&command)?)?,
            Some(folder) => {
                std::fs::create_dir_all(folder).map_err(|error| {
                    usage(format!("--out {}: {}", folder.display(), with_advice(&error)))
                })?;
                let pages = write(&command, folder)?;
                note(&format!("{pages} pages in {}", folder.display()));
            }
        }
        Ok(exit::FINE)
    }
}

/// The command that these words call.
fn find(parser: clap::Command, words: &[String]) -> Result<clap::Command> {
    let mut command = parser.disable_help_subcommand(true);
    command.build();
    for word in words {
        let Some(found) = command.find_subcommand(word) else {
            let known: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
            if known.is_empty() {
                let name = command.get_bin_name().unwrap_or_default();
                return Err(usage(format!("'{word}': {name} has no commands; leave it out")));
            }
            return Err(unknown("command", word, &known));
        };
        command = found.clone();
    }
    Ok(command)
}

/// Writes the pages of a command and of all below it, and returns their number.
fn write(command: &clap::Command, folder: &Path) -> Result<usize> {
    let path = folder.join(Man::new(command.clone()).get_filename());
    std::fs::write(&path, page(command)?).with_context(|| path.display().to_string())?;
    let mut pages = 1;
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        pages += write(below, folder)?;
    }
    Ok(pages)
}

/// The manual page of a command, as roff.
fn page(command: &clap::Command) -> Result<String> {
    let man =
        Man::new(command.clone()).source(format!("plimsoll {VERSION}")).manual("plimsoll manual");
    let mut out = Vec::new();
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    man.render_synopsis_section(&mut out)?;
    man.render_description_section(&mut out)?;
    man.render_options_section(&mut out)?;
    if command.get_subcommands().any(|below| !below.is_hide_set()) {
        man.render_subcommands_section(&mut out)?;
    }
    if let Some(text) = command.get_after_long_help().or(command.get_after_help()) {
        below_options(&text.to_string()).to_writer(&mut out)?;
    }
    Ok(String::from_utf8(out)?)
}

/// The text below the options of a help: examples line for line, since a command must not be filled, and notes as text.
fn below_options(text: &str) -> Roff {
    let mut roff = Roff::new();
    let mut has_notes = false;
    for block in text.split("\n\n").filter(|block| !block.trim().is_empty()) {
        let (first, rest) = block.split_once('\n').unwrap_or((block, ""));
        if first == "Examples:" {
            roff.control("SH", ["EXAMPLES"]);
            as_it_stands(&mut roff, rest);
            continue;
        }
        if !first.starts_with(' ') {
            if !has_notes {
                roff.control("SH", ["NOTES"]);
            }
            has_notes = true;
            roff.control("PP", []);
        }
        // A table, or lines of a list, under a heading of its own.
        if block.lines().skip(1).any(|line| line.starts_with(' ')) || first.starts_with(' ') {
            as_it_stands(&mut roff, block);
        } else {
            block.lines().for_each(|line| _ = roff.text([roman(line)]));
        }
    }
    roff
}

/// Lines that are printed as they are.
fn as_it_stands(roff: &mut Roff, lines: &str) {
    roff.control("nf", []);
    lines.lines().for_each(|line| _ = roff.text([roman(line)]));
    roff.control("fi", []);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_keep_their_lines_and_notes_are_text() {
        let text = "Examples:\n  One:\n    plimsoll load URL \\\n      --rate 1\n\nA note\nof two lines.\n\nCodes:\n  0  fine\n";
        let roff = below_options(text).to_roff();
        let lines: Vec<&str> = roff.lines().collect();
        let at = |line: &str| {
            lines.iter().position(|own| *own == line).unwrap_or_else(|| panic!("{line}\n{roff}"))
        };
        assert!(at(".SH EXAMPLES") < at(".nf") && at(".nf") < at("  One:"));
        assert!(
            roff.contains("plimsoll load URL \\\\\n") || roff.contains("plimsoll load URL \\e\n"),
            "{roff}"
        );
        assert!(at(".fi") < at(".SH NOTES") && at("A note") + 1 == at("of two lines."));
        assert_eq!(roff.matches(".nf").count(), 2, "{roff}");
    }

    #[test]
    fn a_command_is_found_by_its_words() {
        let words =
            |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let found = |names: &[&str]| find(crate::parser(), &words(names));
        assert_eq!(found(&["serve", "null"]).unwrap().get_bin_name(), Some("plimsoll serve null"));
        let wrong = |names: &[&str]| found(names).unwrap_err().to_string();
        assert!(wrong(&["serch"]).contains("did you mean 'search'"), "{}", wrong(&["serch"]));
        assert!(wrong(&["load", "x"]).contains("has no commands"), "{}", wrong(&["load", "x"]));
    }
}
