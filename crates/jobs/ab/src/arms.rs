//! The two sides: what each runs, on which target, by which program.

use crate::flags::AbArgs;
use crate::jobs::{Kind, check_flags, check_side, set_target};
use crate::serving::{Served, words as served_words};
use crate::shell_words;
use crate::sought;
use anyhow::{Context, Result};
use plimsoll_core::secrets::without_address_secrets;
use plimsoll_job::job::Program;
use plimsoll_job::usage::usage;
use plimsoll_report::command::{kept, shell};
use rustix::thread::CpuSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// One side of the comparison.
pub struct Arm {
    /// `A` or `B`.
    pub letter: char,
    /// The difference from the other side in words, secrets left out.
    pub name: String,
    /// The program that is run.
    pub program: OsString,
    /// Its words: the job and its flags, without what a block adds.
    pub words: Vec<String>,
    /// The target that was started for it.
    pub server: Option<Served>,
}

/// The flags of one side.
struct Given<'a> {
    letter: char,
    target: Option<&'a str>,
    flags: Option<&'a str>,
    command: Option<&'a str>,
    bin: Option<&'a Path>,
}

impl<'a> Given<'a> {
    fn flag(&self, rest: &str) -> String {
        format!("--{}{rest}", self.letter.to_ascii_lowercase())
    }

    fn both(args: &'a AbArgs) -> [Self; 2] {
        [
            Self {
                letter: 'A',
                target: args.a.as_deref(),
                flags: args.a_flags.as_deref(),
                command: args.a_command.as_deref(),
                bin: args.a_bin.as_deref(),
            },
            Self {
                letter: 'B',
                target: args.b.as_deref(),
                flags: args.b_flags.as_deref(),
                command: args.b_command.as_deref(),
                bin: args.b_bin.as_deref(),
            },
        ]
    }

    /// The difference in words.
    fn name(&self, server: Option<&Served>) -> String {
        let mut parts: Vec<String> = Vec::new();
        parts.extend(self.bin.map(|bin| bin.display().to_string()));
        match (self.command, self.target) {
            (Some(command), _) => {
                let words = shell_words::split(command).unwrap_or_default();
                parts.push(shell(&kept(&words)));
            }
            (None, Some(target)) => parts.push(without_address_secrets(target)),
            (None, None) => {}
        }
        if let Some(flags) = self.flags {
            let words = shell_words::split(flags).unwrap_or_default();
            parts.push(shell(&kept(&words)));
        }
        parts.retain(|part| !part.is_empty());
        match (parts.is_empty(), server) {
            (true, _) => "the job as it is".to_owned(),
            _ => parts.join(", "),
        }
    }
}

/// Checks what can be checked before anything is started.
///
/// # Errors
/// Flags that contradict each other, or a job that cannot be compared.
pub fn check(args: &AbArgs, kind: Kind) -> Result<()> {
    let given = Given::both(args);
    let differs = |one: &Given<'_>| {
        one.target.is_some() || one.flags.is_some() || one.command.is_some() || one.bin.is_some()
    };
    if !given.iter().any(differs) {
        return Err(usage(
            "nothing says how A and B differ; give --a and --b (addresses), --a-flags and --b-flags, --a-command and \
             --b-command, or --a-bin and --b-bin",
        ));
    }
    for (one, other) in [(&given[0], &given[1]), (&given[1], &given[0])] {
        if one.target.is_some() && other.target.is_none() && other.command.is_none() {
            return Err(usage(format!(
                "{} is given and {} is not; give both, or leave both out",
                one.flag(""),
                other.flag("")
            )));
        }
        if one.command.is_some() && kind == Kind::Search {
            return Err(usage(format!(
                "{}: search starts its engines itself; name them with --a and --b, such as --a index --b scan",
                one.flag("-command")
            )));
        }
    }
    check_flags(kind, &args.words)?;
    let in_steps = sought::limit(&args.words).is_some();
    let check_search = |words: &[String]| match kind {
        Kind::Seek => sought::check(words, in_steps),
        _ => Ok(()),
    };
    check_search(&args.words)?;
    for one in &given {
        let words = shell_words::split(one.flags.unwrap_or_default())
            .map_err(|error| usage(format!("{}: {error}", one.flag("-flags"))))?;
        check_flags(kind, &words)?;
        check_search(&words)?;
        match kind {
            Kind::Seek => sought::check_alike(&words),
            _ => check_side(kind, kind.length(&args.words), &words),
        }
        .map_err(|error| usage(format!("{}: {error}", one.flag("-flags"))))?;
        if let Some(bin) = one.bin.filter(|bin| bin.components().count() > 1 && !bin.is_file()) {
            return Err(usage(format!(
                "{}: '{}' is not a file; name a program",
                one.flag("-bin"),
                bin.display()
            )));
        }
    }
    Ok(())
}

/// Makes both sides; targets that have a command are started. The notes are for the result.
///
/// # Errors
/// A target that does not start, or words that the job does not have.
pub fn make(
    args: &AbArgs,
    kind: Kind,
    program: &Program,
    processors: [Option<CpuSet>; 2],
) -> Result<([Arm; 2], Vec<String>)> {
    let parser = (program.parser)();
    let job = parser.find_subcommand(&args.words[0]).cloned().unwrap_or_default();
    let own = std::env::current_exe().context("finding this program")?;
    let mut notes = Vec::new();
    let mut make = |given: &Given<'_>, processors| -> Result<Arm> {
        let server = match given.command {
            None => None,
            Some(text) => {
                let flag = given.flag("-command");
                let (words, note) = served_words(&flag, text, args.seed)?;
                notes.extend(note);
                Some(Served::start(&flag, &words, given.target, processors)?)
            }
        };
        let mut words = args.words.clone();
        let flags = shell_words::split(given.flags.unwrap_or_default()).map_err(usage)?;
        words.splice(1..1, flags);
        let target = server.as_ref().map(|server| server.url.as_str()).or(given.target);
        if let Some(target) = target {
            set_target(kind, &job, &mut words, target)?;
        }
        let program = match (kind, given.bin) {
            (_, Some(bin)) => absolute(bin),
            (Kind::Command, None) => words[0].clone().into(),
            (_, None) => own.clone().into(),
        };
        if kind == Kind::Command {
            words.remove(0);
        }
        let name = given.name(server.as_ref());
        Ok(Arm { letter: given.letter, name, program, words, server })
    };
    let [a, b] = Given::both(args);
    let [of_a, of_b] = processors;
    let arms = [make(&a, of_a)?, make(&b, of_b)?];
    if kind != Kind::Command {
        for arm in arms.iter().filter(|arm| arm.program == own.as_os_str()) {
            check_words(arm, program)?;
        }
    }
    Ok((arms, notes))
}

/// A program by its path, or by its name in `PATH`.
fn absolute(bin: &Path) -> OsString {
    let found: Option<PathBuf> = (bin.components().count() > 1)
        .then(|| std::fs::canonicalize(bin).unwrap_or_else(|_| bin.to_owned()));
    found.map_or_else(|| bin.as_os_str().to_owned(), PathBuf::into_os_string)
}

/// Rejects a job's words before anything is sent.
fn check_words(arm: &Arm, program: &Program) -> Result<()> {
    (program.check_words)(&arm.words)
        .map_err(|error| usage(format!("the job of {}: {error}", arm.letter)))
}
