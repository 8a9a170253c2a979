//! What every command says of itself: its help, its examples, its arguments. The commands come from the parser.

use crate::cli::parser::{Example, commands, examples, name, path};
use crate::house::wording::faults;
use crate::process::{PATIENCE, Place, Running};
use clap::Command;
use std::path::Path;

/// Columns that an example may have: clap breaks longer lines where stdout is not a terminal.
const COLUMNS: usize = 100;

/// Faults that are known: `COMMAND: WHAT`, by their beginning. The list only gets shorter; once it is empty, it goes.
const KNOWN: [&str; 34] = [
    "plimsoll load --check",
    "plimsoll load --hits",
    "plimsoll load --users",
    "plimsoll load --slots",
    "plimsoll load --assert",
    "plimsoll load:10",
    "plimsoll load: 111",
    "plimsoll seek --check",
    "plimsoll seek --hits",
    "plimsoll seek --arrivals",
    "plimsoll seek --order",
    "plimsoll seek --rows-order",
    "plimsoll seek: 132",
    "plimsoll search --passes",
    "plimsoll search --think",
    "plimsoll search --profile",
    "plimsoll search --check",
    "plimsoll search --assert",
    "plimsoll search --resume",
    "plimsoll search --fresh",
    "plimsoll search: 103",
    "plimsoll visit --request-timeout",
    "plimsoll visit --compress",
    "plimsoll visit --format",
    "plimsoll visit --measure-for",
    "plimsoll visit: 101",
    "plimsoll feed --inflight",
    "plimsoll feed --connections",
    "plimsoll feed --timeout",
    "plimsoll feed --retries",
    "plimsoll feed --deadline",
    "plimsoll fbench restart",
    "plimsoll split-file parts",
    "plimsoll split-file:8",
];

/// Fails if there is a fault that is not known.
#[track_caller]
fn expect_none(found: &[String]) {
    let is_new = |fault: &&String| !KNOWN.iter().any(|known| fault.starts_with(known));
    let new: Vec<&str> = found.iter().filter(is_new).map(String::as_str).collect();
    assert!(new.is_empty(), "{} of {} are new:\n{}", new.len(), found.len(), new.join("\n"));
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
        let below = command.get_after_help().map(ToString::to_string).unwrap_or_default();
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

/// The first words of examples that no test can run, and the reason.
const NOT_RUN: &[(&str, &str)] = &[
    ("load", "needs a target"),
    ("seek", "needs a target"),
    ("search", "needs engines"),
    ("visit", "needs a target"),
    ("feed", "needs a target"),
    ("fbench", "needs a target"),
    ("rank", "takes minutes"),
    ("voter", "takes minutes"),
    ("hello", "takes minutes"),
    ("run", "measures"),
    ("serve", "does not end by itself"),
    ("install", "needs the network, and minutes"),
    ("corpus write --source synthetic --size 1GB", "writes a gigabyte"),
];

/// Puts the files of the examples into a folder: queries, summaries, a job, and run records.
fn files(place: &Place) {
    place.file("queries.txt", "/search/?query=a\n".repeat(70));
    place.file("summary.txt", "no summary\n");
    place.file("documents.ndjson", "{\"id\":\"1\",\"title\":\"a\",\"body\":\"b c\"}\n");
    place.file(
        "my.toml",
        "[job]\nname = \"mine\"\ndescription = \"x\"\ndefault_role = \"only\"\n[job.roles.only]\ncommand = [\"load\", \"http://127.0.0.1:1/\"]\n",
    );
    let gzip = place.program("gzip", ["-c", "queries.txt"]);
    let packed = Running::start(gzip, b"").wait(PATIENCE).expect(0);
    assert_eq!(packed.code, Some(0));
    for folder in [
        ".zfunc",
        ".config/fish/completions",
        ".local/share/bash-completion/completions",
        ".local/share/man/man1",
    ] {
        std::fs::create_dir_all(place.path().join(folder)).unwrap();
    }
    let records = Path::new(env!("CARGO_MANIFEST_DIR")).join("../record/tests/records");
    for (file, folder) in [
        ("load", "20261121T203250.123Z-load-1a2b3c4d"),
        ("search", "20261122T101500.000Z-search-2a2b3c4d"),
        ("search", "20261122T103000.000Z-search-5e6f7a8b"),
        ("search", "BEFORE"),
        ("search", "AFTER"),
        ("catalogue", "20261123T101500.000Z-feedsim_mini-6e6f7a8b"),
        ("fbench", "ZZ-fbench-7e6f7a8b"),
    ] {
        let text = std::fs::read_to_string(records.join(format!("{file}.json"))).unwrap();
        let mut record: serde_json::Value = serde_json::from_str(&text).unwrap();
        let id = folder.rsplit('-').next().unwrap();
        record["run_id"] = if id.len() == 8 { id } else { "" }.into();
        // An example with --exit-code ends as the run did.
        record["verdict"]["kind"] = "valid".into();
        if file == "catalogue" {
            record["catalogue"]["name"] = "feedsim_mini".into();
        }
        let folder = place.path().join("runs").join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("run.json"), record.to_string()).unwrap();
    }
}

/// Every example that needs nothing outside is run by a real shell and succeeds.
#[test]
fn examples_that_need_no_target_run() {
    let (mut ran, mut left) = (0, vec![false; NOT_RUN.len()]);
    let bin = Path::new(env!("CARGO_BIN_EXE_plimsoll")).parent().unwrap().to_owned();
    for command in commands() {
        for example in examples(&command) {
            let words: Vec<String> = example.calls.iter().map(|call| call.join(" ")).collect();
            let begins = |call: &String, begin: &str| {
                call.strip_prefix(begin)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
            };
            let needs = |(begin, _): &(&str, &str)| words.iter().any(|call| begins(call, begin));
            if let Some(at) = NOT_RUN.iter().position(needs) {
                left[at] = true;
                continue;
            }
            let place = Place::new();
            files(&place);
            let script = format!("set -o pipefail; {}", example.shell);
            let mut shell = place.program("bash", ["-c", &script]);
            let path = std::env::var("PATH").unwrap_or_default();
            shell.env("PATH", format!("{}:{path}", bin.display())).env("HOME", place.path());
            let ended = Running::start(shell, b"").wait(PATIENCE);
            // The check of the machine may find something that is bad.
            let fine = ended.code == Some(0)
                || (example.shell.contains("system-check") && ended.code == Some(2));
            assert!(fine, "{}: {:?}\n{}{}", example.shell, ended.code, ended.stdout, ended.stderr);
            ran += 1;
        }
    }
    assert!(ran >= 25, "only {ran} examples were run");
    let unused: Vec<_> = NOT_RUN.iter().zip(left).filter(|(_, used)| !used).collect();
    assert!(unused.is_empty(), "no example begins with {unused:?}");
}
