//! The words of a command as agents get them: without the coordinator's own flags, files by their content.

use anyhow::{Result, bail};
use clap::{Arg, ArgAction, Args as _};
use plimsoll_fleet::files::Outgoing;
use plimsoll_job::flags::OutputFlags;
use plimsoll_job::headers::filled_line;
use plimsoll_job::usage::usage;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::flags::FleetFlags;

/// Place of an agent's folder of files in a word.
pub const FILES: &str = "{files}";
/// Most files that one word may name by a pattern.
const FILES_MAX: usize = 100_000;

/// Words and files of a command.
#[derive(Debug)]
pub struct Packed {
    /// The words, the name of the command first.
    pub words: Vec<String>,
    /// Files that they name.
    pub files: Outgoing,
}

/// Files that commands read, by the names of their arguments. An argument that names a file and is not here writes it.
const INPUTS: [&str; 10] =
    ["queries", "rows", "feed", "cacert", "cert", "key", "body", "header", "ca", "certificate"];

/// Files without a flag that commands read: of these arguments, the words that are no URLs, and whether agents must not keep them.
const INPUTS_IN_PLACE: [(&str, bool); 2] = [("sources", false), ("file", true)];

/// Files that each agent writes for itself, by command and argument. They have a name and no folder: an agent has them below its
/// folder of records.
const OUTPUTS: [(&str, &str); 3] = [("visit", "out"), ("visit", "out_dir"), ("feed", "failed")];

/// Files and folders that the coordinator alone uses, by command and argument, beside those of every job.
const RESULTS: [(&str, &str); 5] = [
    ("feed", "vespa_statistics"),
    ("rank", "out"),
    ("search", "data"),
    ("search", "resume"),
    ("search", "import"),
];

/// Receivers of the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// Agents on other machines: files are sent to them.
    Agents,
    /// Processes that this one starts: they read and write the user's own files.
    Processes,
}

impl To {
    /// The flag that asks for them.
    fn flag(self) -> &'static str {
        match self {
            Self::Agents => "--agents",
            Self::Processes => "--processes",
        }
    }
}

/// Packs the words of a command line, the name of the command first.
///
/// # Errors
/// A file that cannot be read, and a flag that agents cannot carry out.
pub fn pack(command: &clap::Command, words: &[String], to: To) -> Result<Packed> {
    let mut packer = Packer::new(command, Task::Pack, to);
    packer.all(words)?;
    Ok(packer.packed)
}

/// Checks words that came over the bus: they name no file outside of the run, no result, and no variable of the environment. For a
/// process of the same user they may name any file.
///
/// # Errors
/// The first word that does.
pub fn check(command: &clap::Command, words: &[String], to: To) -> Result<()> {
    Packer::new(command, Task::Check, to).all(words)
}

/// Reason why the words are walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    /// To send them.
    Pack,
    /// To make sure of what was received.
    Check,
}

/// Flags of the coordinator of processes: their common start.
const STARTS: [&str; 2] = ["start_at", "start_delay"];

/// Flag of a command whose processes are not to share something, such as a range of keys.
const OWN_RANGE: &str = "own_range";

/// Flags of the coordinator of a command: where results go, and the fleet.
fn own_flags(command_name: &str, to: To) -> BTreeSet<String> {
    let command = FleetFlags::augment_args(OutputFlags::augment_args(clap::Command::new("own")));
    let own = command.get_arguments().map(|argument| argument.get_id().to_string());
    let results = RESULTS.iter().filter(|(name, _)| *name == command_name).map(|(_, id)| id);
    let starts = if to == To::Processes { &STARTS[..] } else { &[] };
    own.chain(results.chain(starts).map(|id| (*id).to_owned())).collect()
}

struct Packer<'a> {
    command: &'a clap::Command,
    task: Task,
    to: To,
    /// Arguments that were given.
    given: BTreeSet<String>,
    own: BTreeSet<String>,
    packed: Packed,
    folders: u32,
}

fn takes_value(argument: &Arg) -> bool {
    matches!(argument.get_action(), ArgAction::Set | ArgAction::Append)
}

/// A flag whose value may be left out has it behind `=` only.
fn may_lack_value(argument: &Arg) -> bool {
    argument.get_num_args().is_some_and(|range| range.min_values() == 0)
}

impl<'a> Packer<'a> {
    fn new(command: &'a clap::Command, task: Task, to: To) -> Self {
        Self {
            command,
            task,
            to,
            given: BTreeSet::new(),
            own: own_flags(command.get_name(), to),
            packed: Packed { words: Vec::new(), files: Outgoing::default() },
            folders: 0,
        }
    }

    fn all(&mut self, words: &[String]) -> Result<()> {
        let Some((name, rest)) = words.split_first() else { bail!("there is no command") };
        self.packed.words.push(name.clone());
        let mut all = self.command.get_arguments();
        let own_range = all.find(|one| one.get_id() == OWN_RANGE).and_then(Arg::get_long);
        if let (Some(flag), To::Processes, Task::Pack) = (own_range, self.to, self.task) {
            self.packed.words.push(format!("--{flag}"));
        }
        let mut rest = rest.iter();
        let mut positional = Vec::new();
        while let Some(word) = rest.next() {
            if word == "--" {
                positional.push(word.clone());
                positional.extend(rest.by_ref().cloned());
            } else if !word.starts_with('-') || word == "-" {
                positional.push(word.clone());
            } else if let Some(long) = word.strip_prefix("--") {
                self.long(long, &mut || rest.next().cloned())?;
            } else {
                self.short(&word[1..], &mut || rest.next().cloned())?;
            }
        }
        self.defaults()?;
        let positional = positional.into_iter().map(|word| self.in_place(word));
        let positional = positional.collect::<Result<Vec<_>>>()?;
        self.packed.words.extend(positional);
        Ok(())
    }

    /// A word without a flag on an agent.
    fn in_place(&mut self, word: String) -> Result<String> {
        let of = |one: &Arg| INPUTS_IN_PLACE.iter().find(|(id, _)| one.get_id() == *id);
        let is_url = word.starts_with("http://") || word.starts_with("https://");
        let named = self.command.get_positionals().find_map(of);
        let Some((_, is_secret)) = named.filter(|_| !is_url && word != "--") else {
            return Ok(word);
        };
        match self.task {
            Task::Pack if word == "-" => Err(usage(match self.to {
                To::Agents => {
                    "'-' is stdin, which agents cannot read; name files, which they get from this machine"
                }
                To::Processes => "'-' is stdin, which --processes cannot share; name files",
            })),
            Task::Pack => self.file("the file", &word, *is_secret),
            Task::Check if self.may_read(&word) => Ok(word),
            Task::Check => Err(usage(format!("'{word}' leads out of the files of the run"))),
        }
    }

    /// A file that is read without being named is named.
    fn defaults(&mut self) -> Result<()> {
        for argument in self.command.get_arguments() {
            let id = argument.get_id().as_str();
            let default = argument.get_default_values().first().and_then(|value| value.to_str());
            if let (true, Some(default), Some(sign)) =
                (INPUTS.contains(&id) && !self.given.contains(id), default, argument.get_short())
            {
                self.put(argument, &format!("-{sign}"), Some(default.to_owned()), ' ')?;
            }
        }
        Ok(())
    }

    fn long(&mut self, word: &str, next: &mut dyn FnMut() -> Option<String>) -> Result<()> {
        let (flag, inline) = match word.split_once('=') {
            Some((flag, value)) => (flag, Some(value.to_owned())),
            None => (word, None),
        };
        let is_it = |argument: &&Arg| {
            argument.get_long() == Some(flag)
                || argument.get_all_aliases().is_some_and(|all| all.contains(&flag))
        };
        let Some(argument) = self.command.get_arguments().find(is_it) else {
            return Err(usage(format!("unknown option '--{flag}'")));
        };
        let value = match inline {
            None if takes_value(argument) && !may_lack_value(argument) => next(),
            inline => inline,
        };
        self.put(argument, &format!("--{flag}"), value, '=')
    }

    fn short(&mut self, cluster: &str, next: &mut dyn FnMut() -> Option<String>) -> Result<()> {
        for (at, sign) in cluster.char_indices() {
            let is_it = |argument: &&Arg| argument.get_short() == Some(sign);
            let Some(argument) = self.command.get_arguments().find(is_it) else {
                return Err(usage(format!("unknown option '-{sign}'")));
            };
            let flag = format!("-{sign}");
            if takes_value(argument) {
                let rest = &cluster[at + sign.len_utf8()..];
                let rest = rest.strip_prefix('=').unwrap_or(rest);
                let value = if rest.is_empty() { next() } else { Some(rest.to_owned()) };
                return self.put(argument, &flag, value, ' ');
            }
            self.put(argument, &flag, None, ' ')?;
        }
        Ok(())
    }

    /// Puts a flag and its value, one word or two.
    fn put(
        &mut self,
        argument: &Arg,
        flag: &str,
        value: Option<String>,
        joint: char,
    ) -> Result<()> {
        let id = argument.get_id().as_str();
        self.given.insert(id.to_owned());
        if self.own.contains(id) {
            return match self.task {
                Task::Pack => Ok(()),
                Task::Check => Err(usage(format!("{flag} is for the coordinator alone"))),
            };
        }
        if id == "part" {
            return Err(usage(match self.to {
                To::Agents => "--part and --agents exclude each other; agents share out the parts",
                To::Processes => {
                    "--part and --processes exclude each other; processes share out the parts"
                }
            }));
        }
        if id == "vespa_tls" && self.to == To::Agents {
            return Err(usage(format!(
                "{flag} reads files of each agent's machine; use -T, -C and -K with --agents"
            )));
        }
        let Some(value) = value else {
            self.packed.words.push(flag.to_owned());
            return Ok(());
        };
        let value = self.value(argument, flag, value)?;
        match joint {
            '=' => self.packed.words.push(format!("{flag}={value}")),
            _ => self.packed.words.extend([flag.to_owned(), value]),
        }
        Ok(())
    }

    /// The value of a flag on an agent.
    fn value(&mut self, argument: &Arg, flag: &str, value: String) -> Result<String> {
        let id = argument.get_id().as_str();
        let names = argument.get_value_names().unwrap_or_default();
        let is_named = |word: &str| names.iter().any(|name| name.contains(word));
        if OUTPUTS.contains(&(self.command.get_name(), id)) {
            return self.output(flag, value);
        }
        if !INPUTS.contains(&id) {
            // Only results and files of documents are written.
            if is_named("FILE") || is_named("DIR") || (is_named("PATTERN") && id != "queries") {
                return Err(usage(match self.to {
                    To::Agents => format!(
                        "{flag} names a file that agents would write on their own machines; leave it out with --agents"
                    ),
                    To::Processes => format!(
                        "{flag} names a file that each process would write; leave it out with --processes"
                    ),
                }));
            }
            return Ok(value);
        }
        if self.task == Task::Check {
            let may_be_text = is_named("@FILE") || id == "header";
            let path = if may_be_text { value.strip_prefix('@') } else { Some(&*value) };
            let is_good = path.map_or_else(|| !value.contains("${"), |path| self.may_read(path));
            return match is_good {
                true => Ok(value),
                false => Err(usage(format!("{flag}: the value leads out of the files of the run"))),
            };
        }
        if is_named("@FILE") {
            return match value.strip_prefix('@') {
                Some(path) => Ok(format!("@{}", self.file(flag, path, id == "header")?)),
                None if id == "header" => self.header(value),
                None => Ok(value),
            };
        }
        if id == "header" {
            return self.header(value);
        }
        self.file(flag, &value, id == "key")
    }

    /// Returns true if a word that came over the bus may name this file.
    fn may_read(&self, path: &str) -> bool {
        is_of_run(path) || (self.to == To::Processes && Path::new(path).is_absolute())
    }

    /// The file that each part of the run writes for itself: on another machine below its folder of records, on this one where the
    /// user wants it. The part is in its name.
    fn output(&self, flag: &str, value: String) -> Result<String> {
        let is_absolute = Path::new(&value).is_absolute();
        match (self.to, self.task) {
            _ if value == "/dev/null" => Ok(value),
            (To::Processes, Task::Pack) if value == "-" => Err(usage(format!(
                "{flag} '-': with --processes, write a file name; each process writes a file of its own, with its part in the name"
            ))),
            (To::Processes, Task::Pack) => absolute(flag, &value),
            (To::Processes, Task::Check) if is_absolute => Ok(value),
            (To::Agents, _) if is_own_file(&value) => Ok(value),
            _ => Err(usage(format!(
                "{flag} '{value}': with --agents, write a file name without a folder; each agent writes a file of its own \
                 below its --runs folder"
            ))),
        }
    }

    /// A header; one that holds a variable of the environment is a file for the agents, so that its value reaches no record.
    fn header(&mut self, line: String) -> Result<String> {
        if !line.contains("${") {
            return Ok(line);
        }
        let folder = self.folders;
        self.folders += 1;
        self.packed.files.add_secret(folder, "header", filled_line("--header", &line)?);
        Ok(format!("@{FILES}/{folder}/header"))
    }

    /// Packs a file, or all files of a pattern with the number of a client in it.
    fn file(&mut self, flag: &str, path: &str, is_secret: bool) -> Result<String> {
        let unread =
            |path: &Path, error: String| usage(format!("{flag} {}: {error}", path.display()));
        let all = if Path::new(path).exists() { vec![PathBuf::from(path)] } else { matching(path) };
        if all.is_empty() {
            return Err(usage(match self.to {
                To::Agents => {
                    format!("{flag} {path}: no such file; agents get their files from this machine")
                }
                To::Processes => format!("{flag} {path}: no such file"),
            }));
        }
        if let Some(one) = all.iter().find(|one| !one.is_file()) {
            let why = format!("not a regular file; {} needs one", self.to.flag());
            return Err(unread(one, why));
        }
        if self.to == To::Processes {
            return absolute(flag, path);
        }
        let folder = self.folders;
        self.folders += 1;
        for one in &all {
            self.packed
                .files
                .add(folder, one, is_secret)
                .map_err(|error| usage(format!("{flag} {error}")))?;
        }
        let name = Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or("file");
        Ok(format!("{FILES}/{folder}/{name}"))
    }
}

/// The same path for a process, wherever it runs.
fn absolute(flag: &str, path: &str) -> Result<String> {
    let whole = std::path::absolute(path).ok();
    let whole = whole.and_then(|path| path.into_os_string().into_string().ok());
    whole.ok_or_else(|| usage(format!("{flag} {path}: the path cannot be made absolute")))
}

/// Returns true if a path is `{files}/NUMBER/NAME`.
fn is_of_run(path: &str) -> bool {
    let rest = path.strip_prefix(FILES).and_then(|rest| rest.strip_prefix('/'));
    let Some((folder, name)) = rest.and_then(|rest| rest.split_once('/')) else { return false };
    folder.parse::<u32>().is_ok()
        && !name.contains('/')
        && !matches!(name, "" | "." | "..")
        && !name.contains('\0')
}

/// Returns true for a file name without a folder, and for /dev/null.
fn is_own_file(value: &str) -> bool {
    let is_name = !value.contains(['/', '\0']) && !matches!(value, "" | "." | ".." | "-");
    is_name || value == "/dev/null"
}

/// Files whose names fit a pattern such as `query%03d.txt`, in the order of their names.
fn matching(pattern: &str) -> Vec<PathBuf> {
    let path = Path::new(pattern);
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return Vec::new() };
    let Some((front, rest)) = name.split_once('%') else { return Vec::new() };
    let back = rest.trim_start_matches(|sign: char| sign.is_ascii_digit());
    let Some(back) = back.strip_prefix(['d', 'x']) else { return Vec::new() };
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    let is_one = |name: &str| {
        let number = name.strip_prefix(front).and_then(|name| name.strip_suffix(back));
        number.is_some_and(|number| {
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_str().is_some_and(is_one))
        .map(|entry| folder.join(entry.file_name()))
        .take(FILES_MAX)
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests;
