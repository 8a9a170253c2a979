//! Tests of all commands as the parser has them.

mod pages;

use super::{commands, parser};
use clap::{Arg, Command};
use std::collections::BTreeMap;

#[test]
fn the_command_line_is_sound() {
    parser().debug_assert();
}

/// Flags that several commands share must not bring their own text along: each command says what it does, and no two the same.
#[test]
fn each_command_has_an_about_of_its_own() {
    let mut seen = BTreeMap::new();
    for command in parser().get_subcommands() {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        assert!(!about.is_empty(), "{} has no about", command.get_name());
        assert!(!about.contains("Flags"), "{}: {about}", command.get_name());
        if let Some(other) = seen.insert(about.clone(), command.get_name().to_owned()) {
            panic!("{other} and {}: {about}", command.get_name());
        }
    }
}

/// The name of a command, without that of the program.
fn name(command: &Command) -> String {
    let name = command.get_bin_name().unwrap_or_default();
    name.trim_start_matches("plimsoll").trim_start().to_owned()
}

fn shown(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|arg| !arg.is_hide_set())
}

/// The short help of an argument, with its default as the help prints it.
fn help(arg: &Arg) -> String {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let defaults = arg.get_default_values().iter().map(|value| value.to_string_lossy());
    match defaults.collect::<Vec<_>>().join(",") {
        // A switch is off by default.
        default if !default.is_empty() && arg.get_action().takes_values() => {
            format!("{help} [default: {default}]")
        }
        _ => help,
    }
}

/// The options of all commands: for each name the commands that have it, with its help.
fn options() -> BTreeMap<String, Vec<(String, String)>> {
    let mut options: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for command in commands() {
        for arg in shown(&command) {
            if let Some(long) = arg.get_long().filter(|long| !["help", "version"].contains(long)) {
                options.entry(long.to_owned()).or_default().push((name(&command), help(arg)));
            }
        }
    }
    options
}

/// Options that differ: name, the commands in which it is not as in the others, and why.
const DIFFERENT: &[(&str, &[&str], &str)] = &[
    ("arrivals", &["seek", "serve queue"], "a search needs random gaps; a prediction"),
    ("check", &["size"], "of a prediction, not of replies"),
    ("budget", &["ab"], "shorter, since it ends when all is decided"),
    ("agents", &["fleet render"], "of a fleet, and not of a run"),
    ("name", &["agent"], "of an agent"),
    ("runs", &["compare"], "by default those of the compared runs"),
    ("clients", &["voter", "hello"], "their number comes from a preset"),
    ("cluster", &["serve search"], "has a default, since it is its own cluster"),
    ("compress", &["serve rank"], "an amount, not a form"),
    ("connections", &["voter", "hello"], "to each host"),
    (
        "data",
        &[
            "fleet up",
            "search",
            "serve voter",
            "serve search",
            "serve opensearch",
            "serve elasticsearch",
            "serve postgresql",
            "serve voltdb",
        ],
        "folders of different things",
    ),
    ("delay", &["serve queue"], "of replies, not between bursts"),
    ("dry-run", &["feed", "runs prune", "report prune"], "nothing is done, of different commands"),
    ("durability", &["serve voter"], "none by default, as VoltDB's community edition"),
    ("duration", &["voter", "hello"], "ends with the calls, if they are given"),
    (
        "format",
        &["report", "compare", "size", "import", "corpus write", "corpus queries"],
        "formats of different things",
    ),
    ("http-port", &["serve voter"], "no API by default"),
    (
        "json",
        &["list", "info", "runs", "report list", "system-check", "version"],
        "a switch: these commands write no record",
    ),
    ("limit", &["corpus info", "corpus write", "corpus queries"], "of documents, not of a backlog"),
    ("nkey", &["fleet render"], "of the bus that is placed"),
    ("order", &["search"], "of each user's queries"),
    ("out", &["rank", "man", "fleet render"], "files of different things"),
    ("partitions", &["serve voter"], "VoltDB has no default by processors"),
    ("passes", &["search"], "instead of a duration"),
    ("port", &["rank", "fleet render"], "of the first of several servers; one that agents know"),
    ("preset", &["voter", "hello"], "Erlvolt's presets"),
    ("queries", &["search"], "a list of its own form"),
    ("queue", &["voter", "hello"], "its length comes from a preset"),
    ("role", &["agent"], "of an agent, and not of a job of the catalogue"),
    ("rate", &["serve queue", "size"], "of a prediction"),
    ("resume", &["search"], "`visit` has a file, `search` a folder"),
    ("retries", &["visit", "voter", "hello"], "of different failures"),
    ("slo", &["seek", "rank", "size"], "a rate is sought by it, instead of judging a result"),
    ("slots", &["voter", "hello"], "of each connection"),
    ("spin", &["serve queue"], "before a reply"),
    ("target", &["voter", "hello", "size"], "of different protocols; of a target that is started"),
    ("threads", &["rank", "serve rank", "serve null"], "of the server"),
    (
        "timeout",
        &["seek", "search", "feed"],
        "by the limits; longer for slow cells; with all retries",
    ),
    ("tls", &["fleet render"], "of the bus that is placed"),
    ("unit", &["size"], "of what is counted, not of times"),
    ("user", &["serve voltdb", "serve nats"], "a single one"),
    ("users", &["seek", "search", "serve voter"], "a rate; numbers of the table; a file of logins"),
    ("wait", &["serve rank"], "of a request, not for a bus"),
    (
        "watch",
        &["agent", "fleet up", "fleet render"],
        "of an agent with another role than the default, here or on another machine",
    ),
    ("watchers", &["fleet render"], "of a fleet, and not of a run"),
    ("warmup", &["search", "rank"], "each cell has one; FeedSim's flag, in seconds"),
];

#[test]
fn an_option_has_one_help_and_one_default_in_all_commands() {
    let (options, mut faults) = (options(), Vec::new());
    assert!(options.values().map(Vec::len).sum::<usize>() > 300, "only {options:?}");
    for (option, uses) in &options {
        let different = DIFFERENT.iter().find(|(name, _, _)| name == option);
        let other = different.map_or(&[][..], |(_, commands, _)| commands);
        let is_other = |command: &String| other.contains(&command.as_str());
        let mut same = uses.iter().filter(|(command, _)| !is_other(command));
        let Some((first, usual)) = same.next() else {
            faults.push(format!("--{option}: no command is left that it differs from"));
            continue;
        };
        for (command, help) in same.filter(|(_, help)| help != usual) {
            faults.push(format!("--{option}: {first}: {usual}\n    {command}: {help}"));
        }
        for command in other {
            let own = uses.iter().find(|(name, _)| name == command);
            if own.is_none_or(|(_, help)| help == usual) {
                faults.push(format!("--{option} no longer differs in '{command}'; remove it"));
            }
        }
    }
    for (option, _, why) in DIFFERENT.iter().filter(|(name, _, _)| !options.contains_key(*name)) {
        faults.push(format!("there is no --{option} ({why}); remove it"));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_short_help_has_one_line_for_each_option_and_command() {
    let (mut options, mut faults) = (0, Vec::new());
    for command in commands() {
        let short = command.clone().after_help("").render_help().to_string();
        let begins = |line: &&str| line.starts_with("  ") && !line.starts_with("         ");
        options += short.lines().filter(begins).count();
        for line in short.lines() {
            if line.starts_with("         ") || line.chars().count() > 100 {
                faults.push(format!("{}: {}", name(&command), line.trim()));
            }
        }
        // The line about the command, an empty one, and the usage.
        if short.lines().nth(2).is_none_or(|line| !line.starts_with("Usage: ")) {
            faults.push(format!("{}: more than a line about it", name(&command)));
        }
    }
    assert!(options > 400, "only {options} lines");
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn values_that_are_not_listed_are_named_in_the_text() {
    let (mut hidden, mut faults) = (0, Vec::new());
    for command in commands() {
        for arg in shown(&command).filter(|arg| arg.is_hide_possible_values_set()) {
            hidden += 1;
            let long = arg.get_long_help().or(arg.get_help()).map(ToString::to_string);
            let long = long.unwrap_or_default();
            let is_word = |name: &str| {
                long.split(|c: char| !c.is_alphanumeric() && c != '-').any(|word| word == name)
            };
            for value in arg.get_possible_values() {
                if !is_word(value.get_name()) {
                    faults.push(format!("{} {}: {}", name(&command), arg, value.get_name()));
                }
            }
        }
    }
    assert!(hidden > 10, "only {hidden} arguments hide their values");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_text_below_the_options_fits_100_columns() {
    let (mut lines, mut faults) = (0, Vec::new());
    for command in commands() {
        let below = [command.get_after_help(), command.get_after_long_help()];
        let below: Vec<String> = below.into_iter().flatten().map(ToString::to_string).collect();
        for line in below.iter().flat_map(|text| text.lines()) {
            lines += 1;
            if line.chars().count() > 100 {
                faults.push(format!("{}: {line}", name(&command)));
            }
        }
    }
    assert!(lines > 200, "only {lines} lines");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
