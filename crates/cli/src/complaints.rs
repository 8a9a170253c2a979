//! Errors of the command line: what is wrong, where, and what to write instead.

mod foreign;
mod values;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};
use plimsoll_workloads::edit_distance::near_miss;
use std::ffi::OsString;

/// Returns one line for a wrong command line. It recommends only options that the command has.
pub fn complaint(error: &clap::Error, command: &Command) -> String {
    let text = |kind| error.get(kind).map(ToString::to_string);
    match (error.kind(), text(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(word)) => unknown(&word, command),
        (ErrorKind::ValueValidation | ErrorKind::InvalidValue, Some(flag)) => {
            values::wrong_value(error, &flag)
        }
        (ErrorKind::MissingRequiredArgument, Some(_)) => missing(error, command),
        (ErrorKind::ArgumentConflict, Some(flag)) => {
            conflict(&flag, &text(ContextKind::PriorArg).unwrap_or_default())
        }
        (ErrorKind::InvalidSubcommand, _) => {
            unknown_command(&text(ContextKind::InvalidSubcommand).unwrap_or_default(), command)
        }
        (ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand, _) => {
            let names = command_names(command);
            format!("{} needs one of these words: {}", command.get_name(), names.join(", "))
        }
        _ => flattened(error),
    }
}

/// Returns the parser's own words on one line.
fn flattened(error: &clap::Error) -> String {
    error
        .to_string()
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:"))
        .filter(|line| !line.is_empty() && !line.starts_with("For more information"))
        .collect::<Vec<_>>()
        .join(" ")
        .trim_start_matches("error: ")
        .to_owned()
}

fn unknown(word: &str, command: &Command) -> String {
    let Some(rest) = word.strip_prefix('-') else { return unexpected(word, command) };
    if rest.starts_with(|c: char| c.is_numeric()) {
        return format!("unknown option '{word}' (values cannot start with '-')");
    }
    let longs = longs(command);
    let other = foreign::counterparts(word, &longs);
    if !other.is_empty() {
        return format!("unknown option '{word}'; plimsoll's is {other}");
    }
    if let Some(own) = foreign::elsewhere(word, &longs) {
        return format!("unknown option '{word}'; {} has --{own}", called_by(command));
    }
    match rest.strip_prefix('-').and_then(|name| near_option(name, &longs)) {
        Some(near) => format!("unknown option '{word}'; did you mean '--{near}'?"),
        None => format!("unknown option '{word}'"),
    }
}

/// Returns a line for a word that follows all that a command reads.
fn unexpected(word: &str, command: &Command) -> String {
    match command.get_positionals().next() {
        None => format!("unexpected argument '{word}'; {} takes only options", called_by(command)),
        Some(_) => match example(command) {
            Some(line) => format!("unexpected argument '{word}'; write for example: {line}"),
            None => format!("unexpected argument '{word}'"),
        },
    }
}

fn called_by(command: &Command) -> &str {
    command.get_bin_name().unwrap_or("plimsoll")
}

/// Returns a line for two options that exclude each other, or for one that was given twice.
fn conflict(flag: &str, other: &str) -> String {
    let bare = |text: &str| text.split(' ').next().unwrap_or_default().to_owned();
    let (flag, other) = (bare(flag), bare(other));
    match other.as_str() {
        "" => format!("{flag} cannot be used with the other options; leave it out"),
        same if same == flag => format!("{flag} is given twice; give it once"),
        other => format!("{flag} and {other} exclude each other; leave one of them out"),
    }
}

/// Returns the first example in the help of a command that is on one line.
fn example(command: &Command) -> Option<String> {
    let help = command.get_after_long_help().or_else(|| command.get_after_help())?.to_string();
    let start = format!("{} ", called_by(command));
    let call = |line: &str| {
        let call = &line[line.find(&start)?..];
        let call = call.split("    ").next().unwrap_or(call).trim_end();
        (!call.ends_with(['\\', '|'])).then(|| call.to_owned())
    };
    let mut section = help.lines().skip_while(|line| *line != "Examples:").skip(1);
    section.by_ref().take_while(|line| !line.is_empty()).find_map(call)
}

/// The long options that the help of a command shows.
fn longs(command: &Command) -> Vec<&str> {
    let shown = || command.get_arguments().filter(|arg| !arg.is_hide_set());
    let aliases = shown().filter_map(Arg::get_visible_aliases).flatten();
    shown().filter_map(Arg::get_long).chain(aliases).collect()
}

/// The option that a mistyped word most likely is: the one that ends with it, as `--start-rate` does with `rate`, the only one
/// that begins with it, or one with similar letters.
fn near_option<'a>(name: &str, longs: &[&'a str]) -> Option<&'a str> {
    if name.len() > 2 {
        let tail = format!("-{name}");
        if let Some(long) = longs.iter().find(|long| long.ends_with(&tail)) {
            return Some(long);
        }
        let mut longer = longs.iter().filter(|long| long.starts_with(name));
        if let (Some(long), None) = (longer.next(), longer.next()) {
            return Some(long);
        }
    }
    near_word(name, longs)
}

/// The word with similar letters; two letters that changed places are two edits, which is much of a short word.
fn near_word<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let letters = |word: &str| {
        let mut letters: Vec<char> = word.chars().collect();
        letters.sort_unstable();
        letters
    };
    let mixed = || known.iter().copied().find(|name| letters(name) == letters(word));
    near_miss(word, known).or_else(mixed)
}

fn command_names(command: &Command) -> Vec<&str> {
    let shown = command.get_subcommands().filter(|own| !own.is_hide_set());
    shown.map(Command::get_name).filter(|&name| name != "help").collect()
}

fn unknown_command(word: &str, command: &Command) -> String {
    let names = command_names(command);
    let what = match command.get_bin_name().unwrap_or_default().split_once(' ') {
        Some((_, parent)) => format!("{parent}: unknown word '{word}'"),
        None => format!("unknown command '{word}'"),
    };
    match near_word(word, &names) {
        Some(near) => format!("{what}; did you mean '{near}'?"),
        None if names.len() == 1 => format!("{what}; write {}", names[0]),
        None => format!("{what}; write one of {}", names.join(", ")),
    }
}

fn missing(error: &clap::Error, command: &Command) -> String {
    let names: Vec<String> = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(names)) => names.clone(),
        Some(name) => vec![name.to_string()],
        None => return flattened(error),
    };
    let problem = match names.as_slice() {
        [name] => format!("{} is missing", with_alternatives(name, command)),
        names => format!("{} are missing", names.join(" and ")),
    };
    match example(command) {
        Some(line) => format!("{problem}; write for example: {line}"),
        None => problem,
    }
}

/// A required argument, and those that may be given instead: an option that is required excludes no others.
fn with_alternatives(name: &str, command: &Command) -> String {
    let required = command.get_arguments().find(|arg| arg.to_string() == name);
    let others = required.map(|arg| command.get_arg_conflicts_with(arg)).unwrap_or_default();
    let names = std::iter::once(name.to_owned()).chain(others.iter().map(ToString::to_string));
    names.collect::<Vec<_>>().join(" or ")
}

/// Returns a line for each option that was given by an old name. Old names are the hidden aliases of the parser.
pub fn renamed(arguments: &[OsString], command: &Command) -> Vec<String> {
    let mut hints = Vec::new();
    let words = arguments.iter().filter_map(|word| word.to_str()).take_while(|word| *word != "--");
    for word in words.filter_map(|word| word.strip_prefix("--")) {
        let word = word.split_once('=').map_or(word, |(name, _)| name);
        let old = |arg: &&Arg| {
            let shown = arg.get_visible_aliases().unwrap_or_default();
            arg.get_all_aliases().unwrap_or_default().contains(&word) && !shown.contains(&word)
        };
        if let Some(long) = command.get_arguments().find(old).and_then(Arg::get_long) {
            hints.push(format!("--{word} is now --{long}"));
        }
    }
    hints.dedup();
    hints
}

#[cfg(test)]
mod tests;
