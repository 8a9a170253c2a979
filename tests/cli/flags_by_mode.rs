//! Flags by mode: in each mode of a command, a flag has an effect or is rejected. A flag that is accepted and ignored misleads its
//! user. `flags_by_mode.txt` has all commands, their modes and their flags; the parser has the same flags.

use crate::cli::parser::{commands, path};
use crate::process::Place;
use clap::{Arg, ArgAction, Command};
use std::collections::{BTreeMap, BTreeSet};

const TABLE: &str = include_str!("flags_by_mode.txt");

/// Flags of TLS: a line may name TLS in their place.
const OF_TLS: [&str; 5] = ["cacert", "cert", "key", "sni", "insecure"];

/// Names of modes, and flags in these modes.
type ByMode = Vec<(Vec<String>, Vec<String>)>;

/// A command of the table.
#[derive(Default)]
struct Called {
    /// The words that call it.
    name: String,
    /// The name of each mode, and the words that choose it.
    modes: Vec<(String, Vec<String>)>,
    /// Flags with an effect in each mode.
    works: Vec<String>,
    /// Modes, and flags with values that they reject.
    rejected: ByMode,
    /// Modes, and flags that they accept without effect.
    ignored: ByMode,
}

impl Called {
    /// The modes that a line names: `all`, their names, or `not` and the names of the others.
    fn chosen(&self, names: &str) -> Vec<String> {
        let mut names: Vec<&str> = names.split(' ').collect();
        let is_other = names[0] == "not";
        if is_other {
            names.remove(0);
        }
        for name in names.iter().filter(|name| **name != "all") {
            let is_known = self.modes.iter().any(|(known, _)| known == name);
            assert!(is_known, "flags_by_mode.txt: {} has no mode '{name}'", self.name);
        }
        let is_named = |mode: &&str| names == ["all"] || names.contains(mode);
        let modes = self.modes.iter().map(|(mode, _)| mode.as_str());
        modes.filter(|mode| is_named(mode) != is_other).map(str::to_owned).collect()
    }

    /// Flags of these lines, without values.
    fn bare<'a>(flags: impl IntoIterator<Item = &'a String>) -> BTreeSet<String> {
        let bare = |flag: &String| flag.split('=').next().unwrap_or_default().to_owned();
        flags.into_iter().map(bare).collect()
    }

    /// Flags with an effect in each mode, and those with an effect in some.
    fn placed(&self) -> [BTreeSet<String>; 2] {
        let some = self.rejected.iter().chain(&self.ignored).flat_map(|(_, flags)| flags);
        [Self::bare(&self.works), Self::bare(some)]
    }

    /// Each flag that a mode rejects, with the name of the mode and its words.
    fn pairs(&self) -> Vec<(&str, &str, &[String])> {
        let mut pairs = Vec::new();
        for (names, flags) in &self.rejected {
            for (mode, words) in self.modes.iter().filter(|(mode, _)| names.contains(mode)) {
                pairs.extend(flags.iter().map(|flag| (flag.as_str(), mode.as_str(), &words[..])));
            }
        }
        pairs
    }
}

/// Reads the table.
fn table() -> Vec<Called> {
    let (mut lists, mut all) = (BTreeMap::<String, Vec<String>>::new(), Vec::<Called>::new());
    for line in TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            all.push(Called { name: name.to_owned(), ..Called::default() });
            continue;
        }
        let (head, words) = line.split_once(':').expect("a line has a colon behind its kind");
        let (kind, names) = head.split_once(' ').unwrap_or((head, ""));
        let mut flags = Vec::new();
        for word in words.split_whitespace() {
            match word.strip_prefix('@') {
                Some(list) => flags.extend(lists[list].clone()),
                None => flags.push(word.replace('~', " ")),
            }
        }
        match (kind, all.last_mut()) {
            ("list", None) => lists.entry(names.to_owned()).or_default().extend(flags),
            ("mode", Some(own)) => own.modes.push((names.to_owned(), flags)),
            ("works", Some(own)) => own.works.extend(flags),
            ("rejected", Some(own)) => own.rejected.push((own.chosen(names), flags)),
            ("ignored", Some(own)) => own.ignored.push((own.chosen(names), flags)),
            _ => panic!("flags_by_mode.txt: {line}"),
        }
    }
    all
}

/// A flag as the table has it.
fn written(arg: &Arg) -> Option<String> {
    let short = || arg.get_short().map(|letter| format!("-{letter}"));
    arg.get_long().map(|long| format!("--{long}")).or_else(short)
}

/// The flags of a command that its help shows. Those of a command above it are not its own.
fn flags(command: &Command) -> impl Iterator<Item = &Arg> {
    let is_below = path(command).len() > 1;
    command.get_arguments().filter(move |arg| {
        let is_help = matches!(
            arg.get_action(),
            ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
        );
        let is_of_above = is_below && arg.is_global_set();
        !(arg.is_positional() || arg.is_hide_set() || is_help || is_of_above)
    })
}

#[test]
fn the_table_has_each_flag_of_each_command() {
    let (table, commands) = (table(), commands());
    let own = |command: &&Command| !path(command).contains(&"help".to_owned());
    let mut faults = Vec::new();
    for command in commands.iter().filter(own) {
        let words = path(command).join(" ");
        let entry = table.iter().find(|entry| entry.name == words);
        let [works, some] = entry.map(Called::placed).unwrap_or_default();
        let all: BTreeSet<String> = flags(command).filter_map(written).collect();
        for flag in &all {
            match (works.contains(flag), some.contains(flag)) {
                (true, false) | (false, true) => {}
                (true, true) => faults.push(format!("{words} {flag}: cannot be in 'works' too")),
                (false, false) => faults.push(format!("{words} {flag}: add it, with its modes")),
            }
        }
        let gone = works.union(&some).filter(|flag| !all.contains(*flag));
        faults.extend(gone.map(|flag| format!("{words} {flag}: there is no such flag")));
    }
    let called: BTreeSet<String> = commands.iter().map(|command| path(command).join(" ")).collect();
    let gone = table.iter().filter(|entry| !called.contains(&entry.name));
    faults.extend(gone.map(|entry| format!("{}: there is no such command", entry.name)));
    assert!(faults.is_empty(), "flags_by_mode.txt:\n{}", faults.join("\n"));
}

/// Returns true if a line names a flag in one of its forms.
fn is_named(line: &str, arg: &Arg) -> bool {
    let long = arg.get_long().unwrap_or_default();
    let short = arg.get_short().map(|letter| format!("-{letter}"));
    let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '-');
    let is_form = |word: &str| {
        word == format!("--{long}")
            || short.as_deref() == Some(word)
            || (word == "TLS" && OF_TLS.contains(&long))
    };
    // A list of a file has the plural for its name. What a flag requires is named by the parser.
    words.any(is_form) || line.contains(&format!(": {long}s: ")) || line.contains(" missing")
}

/// Runs a command line with a flag, and returns a text if the flag is not rejected in one line that names it.
fn fault(place: &Place, words: &[&str], arg: &Arg) -> Option<String> {
    let ended = place.run(words);
    let is_line = ended.stdout.is_empty() && ended.stderr.lines().count() == 1;
    if ended.code == Some(64) && is_line && is_named(&ended.stderr, arg) {
        return None;
    }
    let (code, line) = (ended.code, ended.stderr.trim_end());
    Some(format!("plimsoll {}\n    exit code {code:?}: {line}", words.join(" ")))
}

/// Runs each command of the table that is chosen, with each flag in each mode that rejects it.
#[track_caller]
fn expect_rejected(is_chosen: impl Fn(&str) -> bool) {
    let place = Place::new();
    place.file("q.txt", "/a\n/b\n");
    place.file("q.ndjson", "{\"path\":\"/a\"}\n");
    place.file("rows.csv", "a,b\n1,2\n");
    place.file("ops.json", "{\"put\":\"id:n:t::1\",\"fields\":{\"a\":\"b\"}}\n");
    place.file("plain.toml", "url = \"http://127.0.0.1:1/\"\n");
    let (commands, mut faults, mut seen) = (commands(), Vec::new(), 0);
    for entry in table().iter().filter(|entry| is_chosen(&entry.name)) {
        let own = |command: &&Command| path(command).join(" ") == entry.name;
        let command = commands.iter().find(own).expect("the table has commands of the program");
        for (flag, mode, words) in entry.pairs() {
            let bare = flag.split('=').next();
            let chooses = words.iter().any(|word| Some(word.as_str()) == bare);
            assert!(!chooses, "{} {mode}: {flag} chooses this mode", entry.name);
            let arg = flags(command).find(|arg| written(arg).as_deref() == bare);
            let arg = arg.expect("the table has flags of the command");
            let all = entry.name.split(' ').chain([flag]);
            let all: Vec<&str> = all.chain(words.iter().map(String::as_str)).collect();
            faults.extend(fault(&place, &all, arg));
            seen += 1;
        }
    }
    assert!(seen > 0, "nothing was run");
    assert!(faults.is_empty(), "{} of {seen} accepted:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn load_rejects_flags_that_a_mode_has_no_use_for() {
    expect_rejected(|name| name == "load");
}

#[test]
fn seek_rejects_flags_that_a_mode_has_no_use_for() {
    expect_rejected(|name| name == "seek");
}

/// Jobs with modes of their own, beside `load` and `seek`.
const JOBS: [&str; 7] = ["search", "rank", "voter", "hello", "visit", "feed", "fbench"];

#[test]
fn other_jobs_reject_flags_that_a_mode_has_no_use_for() {
    expect_rejected(|name| JOBS.contains(&name));
}

#[test]
fn other_commands_reject_flags_that_a_mode_has_no_use_for() {
    expect_rejected(|name| !["load", "seek"].contains(&name) && !JOBS.contains(&name));
}
