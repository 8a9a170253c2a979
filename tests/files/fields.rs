//! Every option of every command is a field of files, with the same result.

use clap::{Arg, ArgAction, Command};
use plimsoll_catalogue::{COMMANDS_OF_FILES, command_line};
use std::path::Path;

/// What a command needs at least beside a field, as fields and as words.
fn least(command: &str, field: &str) -> (&'static str, &'static [&'static str]) {
    match command {
        "fbench" => ("hosts = [\"h\", \"1\"]\n", &["h", "1"]),
        // A printed table is all that there is.
        "search" if field == "import" => ("", &[]),
        "search" => ("file = \"m.toml\"\n", &["m.toml"]),
        "rank" => ("", &[]),
        "voter" | "hello" => ("url = \"volt://h:1\"\n", &["volt://h:1"]),
        "seek" if field != "slo" => {
            ("url = \"http://h:1/\"\nslo = \"p95=1s\"\n", &["http://h:1/", "--slo=p95=1s"])
        }
        _ => ("url = \"http://h:1/\"\n", &["http://h:1/"]),
    }
}

/// Values of which one suits each option.
const SAMPLES: [&str; 15] = [
    "5",
    "0",
    "5s",
    "5%",
    "64MB",
    "poisson",
    "p95=1s",
    "global p95 < 1s",
    "A: b",
    "404",
    "a=b",
    "1/1",
    "0/2",
    "server-timing",
    "a",
];

/// The values of all arguments, as the parser reads this command line.
fn values(parser: &Command, words: &[String]) -> Result<Vec<(String, Vec<String>)>, String> {
    let program = std::iter::once("plimsoll".to_owned()).chain(words.iter().cloned());
    let matches =
        parser.clone().try_get_matches_from(program).map_err(|error| error.to_string())?;
    let (_, matches) = matches.subcommand().unwrap();
    let mut all = Vec::new();
    for id in matches.ids() {
        // A group of options has no values of its own.
        let Ok(Some(raw)) = matches.try_get_raw(id.as_str()) else { continue };
        let raw = raw.map(|value| value.to_string_lossy().into_owned()).collect();
        all.push((id.to_string(), raw));
    }
    all.sort();
    Ok(all)
}

fn is_switch(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::SetTrue | ArgAction::SetFalse | ArgAction::Count)
}

/// The options of a command, each with its flag and with its name in files.
fn options(command: &Command) -> Vec<(Arg, String, String)> {
    let is_own = |arg: &&Arg| {
        !arg.is_positional()
            && !matches!(
                arg.get_action(),
                ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
            )
    };
    let named = |arg: &Arg| match (arg.get_long(), arg.get_short()) {
        (Some(long), _) => (arg.clone(), format!("--{long}"), long.replace('-', "_")),
        (None, letter) => {
            let letter = letter.unwrap();
            (arg.clone(), format!("-{letter}"), letter.to_string())
        }
    };
    command.get_arguments().filter(is_own).map(named).collect()
}

/// A value that the option accepts.
fn sample(parser: &Command, name: &str, arg: &Arg, flag: &str) -> String {
    if let Some(first) = arg.get_possible_values().first() {
        return first.get_name().to_owned();
    }
    let (_, bare) = least(name, &arg.get_long().unwrap_or_default().replace('-', "_"));
    let is_good = |value: &&&str| {
        let own = format!("{flag}={value}");
        let words = [&[name, own.as_str()][..], bare].concat();
        values(parser, &words.iter().map(ToString::to_string).collect::<Vec<_>>()).is_ok()
    };
    let found = SAMPLES.iter().find(is_good);
    (*found.unwrap_or_else(|| panic!("{name} {flag}: add a sample"))).to_owned()
}

#[test]
fn each_option_of_each_command_is_a_field_with_the_same_result() {
    let parser = plimsoll::parser();
    let mut seen = 0;
    for name in COMMANDS_OF_FILES {
        let mut command = parser.find_subcommand(name).unwrap().clone();
        command.build();
        for (arg, flag, field) in options(&command) {
            seen += 1;
            let (fields, bare) = least(name, &field);
            let head = format!("command = \"{name}\"\n{fields}");
            let by_flags = |flag: &[&str]| {
                let words = [&[name][..], flag, bare].concat();
                values(&parser, &words.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap()
            };
            let by_file = |field: String, folder: &str| {
                let text = format!("{head}{field}\n");
                let path = Path::new(folder).join("f.toml");
                let line = command_line(&text, &path, &[], &parser);
                let line = line.unwrap_or_else(|error| panic!("{error}\n{text}"));
                assert!(line.hints.is_empty(), "{:?}", line.hints);
                values(&parser, &line.words).unwrap()
            };
            if is_switch(&arg) {
                let parsed = by_file(format!("{field} = true"), "");
                assert_eq!(parsed, by_flags(&[&flag]), "{name} {flag}");
                let off = by_file(format!("{field} = false"), "");
                assert_eq!(off, by_flags(&[]), "{name} {flag}");
                continue;
            }
            let value = sample(&parser, name, &arg, &flag);
            let own = format!("{flag}={value}");
            let parsed = by_file(format!("{field} = \"{value}\""), "");
            assert_eq!(parsed, by_flags(&[&own]), "{name} {flag}");
            if value.parse::<u32>().is_ok() {
                let number = by_file(format!("{field} = {value}"), "");
                assert_eq!(number, by_flags(&[&own]), "{name} {flag}");
            }
            let names: Vec<&str> =
                arg.get_value_names().into_iter().flatten().map(|name| name.as_str()).collect();
            if names
                .iter()
                .any(|name| name.starts_with("FILE") || ["DIR", "PATTERN"].contains(name))
            {
                let elsewhere = by_file(format!("{field} = \"{value}\""), "in");
                let path = format!("in/{value}");
                let is_there = elsewhere.iter().any(|(_, values)| values.contains(&path));
                assert!(is_there, "{name} {flag}: {elsewhere:?}");
            }
        }
    }
    assert!(seen > 250, "{seen}");
}

#[test]
fn each_option_that_may_come_several_times_is_a_list() {
    let parser = plimsoll::parser();
    let mut seen = 0;
    for name in COMMANDS_OF_FILES {
        let mut command = parser.find_subcommand(name).unwrap().clone();
        command.build();
        for (arg, flag, field) in options(&command) {
            if !matches!(arg.get_action(), ArgAction::Append) {
                continue;
            }
            let (fields, bare) = least(name, &field);
            seen += 1;
            let value = sample(&parser, name, &arg, &flag);
            let own = format!("{flag}={value}");
            let words = [&[name, own.as_str(), own.as_str()][..], bare].concat();
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            let text =
                format!("command = \"{name}\"\n{fields}{field} = [\"{value}\", \"{value}\"]\n");
            let line = command_line(&text, Path::new("f.toml"), &[], &parser);
            let line = line.unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert_eq!(
                values(&parser, &line.words).unwrap(),
                values(&parser, &words).unwrap(),
                "{name} {flag}"
            );
        }
    }
    assert!(seen > 20, "{seen}");
}

#[test]
fn an_old_name_is_accepted_with_a_hint_that_names_file_and_line() {
    let parser = plimsoll::parser();
    for (text, flag, hint) in [
        (
            "url = \"http://h:1/\"\nprofile = \"5:1s\"",
            "--rate-profile=5:1s",
            "f.toml:2: field `profile` is now `rate_profile`",
        ),
        (
            "users = \"at once 2\"\nrepeat = 3\nurl = \"http://h:1/\"",
            "--passes=3",
            "f.toml:2: field `repeat` is now `passes`",
        ),
        (
            "url = \"postgres://h/d\"\nmethod = \"prepared\"",
            "--sql-mode=prepared",
            "f.toml:2: field `method` is now `sql_mode`",
        ),
        (
            "command = \"search\"\nprofile = \"at once 2\"",
            "--users-profile=at once 2",
            "f.toml:2: field `profile` is now `users_profile`",
        ),
        (
            "command = \"search\"\nhits = 7",
            "--query-hits=7",
            "f.toml:2: field `hits` is now `query_hits`",
        ),
        (
            "command = \"rank\"\nmethod = \"feedsim\"",
            "--strategy=feedsim",
            "f.toml:2: field `method` is now `strategy`",
        ),
        (
            "command = \"voter\"\nurl = \"volt://h:1\"\nworkers = 5",
            "--clients=5",
            "f.toml:3: field `workers` is now `clients`",
        ),
        (
            "command = \"voter\"\nurl = \"volt://h:1\"\ncores = 1",
            "--threads=1",
            "f.toml:3: field `cores` is now `threads`",
        ),
    ] {
        let line = command_line(text, Path::new("f.toml"), &[], &parser);
        let line = line.unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(line.hints, [hint], "{text}");
        assert!(line.words.iter().any(|word| word == flag), "{:?}", line.words);
    }
}
