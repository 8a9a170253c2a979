//! What every command says of itself: its help, its examples, its arguments. The commands come from the parser.

use crate::cli::parser::{Example, commands, examples, name, path};
use crate::house::wording::faults;
use crate::process::Place;
use clap::Command;

/// Columns that an example may have: clap breaks longer lines where stdout is not a terminal.
const COLUMNS: usize = 100;

#[track_caller]
fn expect_none(found: &[String]) {
    assert!(found.is_empty(), "{} faults:\n{}", found.len(), found.join("\n"));
}

#[test]
fn every_command_prints_its_help() {
    let place = Place::new();
    for command in commands() {
        let ended =
            place.run(path(&command).iter().map(String::as_str).chain(["--help"])).expect(0);
        let name = name(&command);
        assert!(ended.stdout.contains(&format!("Usage: {name}")), "{name}\n{}", ended.stdout);
        assert_eq!(ended.stderr, "");
        for line in ended.stdout.lines() {
            assert!(line.chars().count() <= 110, "{name}: {line}");
        }
        for example in examples(&command) {
            for line in example.lines.iter().filter(|line| line.chars().count() <= COLUMNS) {
                assert!(ended.stdout.contains(line), "{name}: broken: {line}\n{}", ended.stdout);
            }
        }
    }
}

#[test]
fn every_command_and_argument_is_explained() {
    let mut found = Vec::new();
    for command in commands() {
        let name = name(&command);
        if command.get_about().is_none() {
            found.push(format!("{name}: no help"));
        }
        for argument in command.get_arguments() {
            if argument.get_help().is_none() {
                found.push(format!("{name} {}: no help", argument.get_id()));
            }
        }
    }
    expect_none(&found);
}

/// The texts of a command's help, each with its place: the line about it, its arguments and their values.
fn texts(command: &Command) -> Vec<(String, String)> {
    let name = name(command);
    let mut found = Vec::new();
    found.extend(command.get_about().map(|text| (name.clone(), text.to_string())));
    for argument in command.get_arguments() {
        let at = match argument.get_long() {
            Some(long) => format!("{name} --{long}"),
            None => format!("{name} {}", argument.get_id()),
        };
        found.extend(argument.get_help().map(|text| (at.clone(), text.to_string())));
        for value in argument.get_possible_values() {
            let at = format!("{at} {}", value.get_name());
            found.extend(value.get_help().map(|text| (at, text.to_string())));
        }
    }
    found
}

/// The longer texts of a command's help, as `--help` prints them.
fn long_texts(command: &Command) -> Vec<(String, String)> {
    let name = name(command);
    let mut found: Vec<(String, String)> = Vec::new();
    found.extend(command.get_long_about().map(|text| (name.clone(), text.to_string())));
    for argument in command.get_arguments() {
        let at = format!("{name} {}", argument.get_id());
        found.extend(argument.get_long_help().map(|text| (at, text.to_string())));
    }
    found
}

#[test]
fn help_is_in_plain_words() {
    let mut found = Vec::new();
    for command in commands() {
        for (at, text) in texts(&command) {
            let first = text.split_whitespace().next().unwrap_or_default().to_lowercase();
            if ["what", "who", "how", "where", "whether"].contains(&first.as_str()) {
                found.push(format!("{at}: begins with '{first}': {text}"));
            }
            if text.trim_end().ends_with('.') && !text.ends_with("...") {
                found.push(format!("{at}: a full stop at the end: {text}"));
            }
            found.extend(faults(&at, 1, &text));
        }
        for (at, text) in long_texts(&command) {
            found.extend(faults(&at, 1, &text));
        }
        let below = command.get_after_long_help().or_else(|| command.get_after_help());
        let below = below.map(ToString::to_string).unwrap_or_default();
        found.extend(faults(&name(&command), 1, &below));
    }
    expect_none(&found);
}

#[test]
fn every_command_has_examples_of_itself_that_are_understood() {
    let mut found = Vec::new();
    for command in commands() {
        let (name, path) = (name(&command), path(&command));
        let examples = examples(&command);
        let is_own = |call: &Vec<String>| call.starts_with(&path);
        if !examples.iter().flat_map(|one| &one.calls).any(is_own) {
            found.push(format!("{name}: no example"));
        }
        for Example { shell, calls, .. } in &examples {
            if calls.is_empty() {
                found.push(format!("{name}: an example without plimsoll: {shell}"));
            }
            for call in calls {
                if let Err(problem) = plimsoll::check_words(call) {
                    found.push(format!("{name}: {shell}: {problem}"));
                }
            }
        }
    }
    expect_none(&found);
}

#[test]
fn no_example_is_broken_inside_a_command() {
    let mut found = Vec::new();
    for command in commands() {
        for line in examples(&command).iter().flat_map(|example| &example.lines) {
            let columns = line.chars().count();
            if columns > COLUMNS {
                found.push(format!("{}: {columns} columns: {}", name(&command), line.trim()));
            }
        }
    }
    expect_none(&found);
}
