//! The program `plimsoll`: flags become a scenario, a scenario becomes a run, an outcome becomes an exit code.
//!
//! ```
//! let words = ["load", "http://127.0.0.1:8080/", "--rate", "100"].map(String::from);
//! assert!(plimsoll::check_words(&words).is_ok());
//! ```

mod commands;
mod complaints;
mod names;

use anyhow::anyhow;
use clap::ArgMatches;
use clap::error::ErrorKind;
use commands::{compare, completions, corpus, import, man, report, runs, serve, version};
use complaints::{complaint, renamed};
use plimsoll_agent::{check_fleet, coordinated, is_asked, run_roles, with_fleet};
use plimsoll_job::exit;
use plimsoll_job::job::{Command, Program, Roles};
use plimsoll_job::output::{note, print_out};
use plimsoll_job::tool;
use plimsoll_job::usage::{bounded, one_line, usage};
use plimsoll_report::forms::Forms;
use plimsoll_report::plain::printable;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

const ORIENTATION: &str = "\
plimsoll measures how much load a search, recommendation or database system holds, and shows why.

  See it work        plimsoll run quickstart
                     a real search server, a real text, a real query mix, half a minute
  Any HTTP service   plimsoll load http://127.0.0.1:8080/ --rate 1000 --duration 30s
                     closed, open, bursts, profiles; classes, checks, limits
  The load line      plimsoll seek http://127.0.0.1:8080/ --slo p95=100ms --budget 5m
                     the highest rate that holds the limits, with an interval; of two targets: ab
  Engines compared   plimsoll search --engine mine=http://127.0.0.1:9200 --sizes 64MB,320MB
                     users x size x distance x shards: tables, reasons, recall, resumable
  Votes, counted     plimsoll voter VSD volt://HOST:21212: transactions, and every write checked
  A whole corpus     plimsoll visit http://127.0.0.1:8080 --cluster NAME --out dump.ndjson.zst
                     all slices at once, counted to the last document, resumable
  Feed documents     plimsoll feed http://127.0.0.1:8080 dump.ndjson.zst --failed rest.ndjson
                     in order for each document, every operation accounted for
  vespa-fbench       plimsoll fbench -n 8 -s 30 -q query%03d.txt 127.0.0.1 8080
  On many machines   plimsoll fleet up | render; load, seek, feed, visit, voter: --agents N
  A job              plimsoll list, info JOB, run JOB -i key=value; see also system-check
  A target to try    plimsoll serve null | queue | search | rank | voter
  A real engine      plimsoll install ENGINE, serve opensearch | elasticsearch | postgresql | voltdb
  Past runs          plimsoll runs; report [RUN] --format text|json|...; compare RUN RUN; size RUN
  Query files        plimsoll corpus | split-file | result-filter; other tools' results: import FILE

Every command explains itself: plimsoll COMMAND --help. For the shell: plimsoll completions, man.
";

/// Examples in the help of the program itself.
const EXAMPLES: &str = "\
Examples:
  A search server, a text and a query mix, in half a minute:
    plimsoll run quickstart
  An HTTP service at 1,000 requests per second, and the highest rate at which it meets a limit:
    plimsoll load http://127.0.0.1:8080/ --rate 1000 --duration 30s
    plimsoll seek http://127.0.0.1:8080/ --slo p95=100ms --budget 5m
  The runs so far, and the page of the newest one:
    plimsoll runs
    plimsoll report

Without a command, plimsoll prints an overview.";

/// Version, and the commit if it is known.
const VERSION: &str = env!("PLIMSOLL_VERSION");

/// All commands, in the order of the help. A job is added by its line here: its flags, its run, and the forms in which
/// `report` and `compare` show its records.
const COMMANDS: [Command; 30] = [
    Command::of::<plimsoll_catalogue::RunArgs>(),
    Command::of::<plimsoll_catalogue::ListArgs>(),
    Command::of::<plimsoll_catalogue::InfoArgs>(),
    Command::of::<plimsoll_catalogue::InstallArgs>(),
    Command::of::<plimsoll_catalogue::CleanArgs>(),
    Command::of::<plimsoll_catalogue::CheckArgs>(),
    Command::of::<plimsoll_load::LoadArgs>().with_flags(with_fleet),
    Command::of::<plimsoll_seek::SeekArgs>().with_flags(with_fleet),
    Command::of::<plimsoll_search::SearchArgs>().with_flags(with_fleet),
    Command::of::<plimsoll_rank::RankArgs>().with_flags(with_fleet),
    Command::of::<plimsoll_voter::VoterArgs>().with_flags(with_fleet),
    Command::of::<plimsoll_voter::HelloArgs>().with_flags(with_fleet),
    Command::of::<plimsoll_visit::VisitArgs>().with_flags(with_fleet),
    Command::of::<plimsoll_feed::FeedArgs>().with_flags(with_fleet),
    Command::of::<plimsoll_fbench::FbenchArgs>().with_flags(with_fleet),
    Command::of::<plimsoll_ab::AbArgs>(),
    Command::of::<plimsoll_agent::AgentArgs>(),
    Command::of::<plimsoll_agent::FleetArgs>(),
    Command::of::<serve::ServeArgs>(),
    Command::of::<report::ReportArgs>(),
    Command::of::<runs::RunsArgs>(),
    Command::of::<compare::CompareArgs>(),
    Command::of::<plimsoll_size::SizeArgs>(),
    Command::of::<import::ImportArgs>(),
    Command::of::<corpus::CorpusArgs>(),
    Command::of::<plimsoll_fbench::SplitArgs>(),
    Command::of::<plimsoll_fbench::FilterArgs>(),
    Command::of::<completions::CompletionsArgs>(),
    Command::of::<man::ManArgs>(),
    Command::of::<version::VersionArgs>(),
];

/// Functions of this program that the jobs may use.
const PROGRAM: Program = Program {
    check_words,
    parser,
    run_words,
    run_roles: roles,
    check_ranker: serve::check_rank,
    forms,
};

/// Returns the forms of all jobs.
#[must_use]
pub fn forms() -> Vec<Forms> {
    COMMANDS.iter().map(Command::forms).collect()
}

/// Returns the parser of the whole program: help, completions and man pages come from it.
#[must_use]
pub fn parser() -> clap::Command {
    program().subcommands(COMMANDS.iter().map(Command::parser))
}

/// The program without its commands.
fn program() -> clap::Command {
    clap::Command::new("plimsoll")
        .version(VERSION)
        .about("Measures how much load a search, recommendation or database serving system holds, and shows why")
        .max_term_width(110)
        .after_help(EXAMPLES)
}

/// Returns a parser that knows the command that these words call. Making the flags of all commands takes longer than the
/// rest of the start.
fn parser_of(arguments: &[OsString]) -> clap::Command {
    let called = |entry: &&Command| arguments.get(1).is_some_and(|word| word == entry.name());
    match COMMANDS.iter().find(called) {
        Some(entry) => program().subcommand(entry.parser()),
        None => parser(),
    }
}

/// Returns all commands with their whole names, the program itself first.
#[must_use]
pub fn commands() -> Vec<clap::Command> {
    let mut program = parser().disable_help_subcommand(true);
    program.build();
    let mut found = vec![program];
    let mut at = 0;
    while let Some(command) = found.get(at) {
        let below: Vec<clap::Command> = command.get_subcommands().cloned().collect();
        found.extend(below);
        at += 1;
    }
    found
}

/// The arguments, with the subcommand put in when the program was called by a link's name.
fn arguments() -> Vec<OsString> {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    let program = arguments.first().map(Path::new).and_then(Path::file_name);
    let command = program.and_then(|name| name.to_str()).and_then(plimsoll_fbench::link_command);
    if let Some(command) = command {
        arguments.insert(1, command.into());
    }
    plimsoll_job::outlet_flags::joined(arguments)
}

/// The command that was called, as far as its words are known: what `--help` should follow.
fn called(arguments: &[OsString]) -> clap::Command {
    let mut program = parser();
    program.build();
    below(&program, arguments).clone()
}

/// The command below a program that the words call.
fn below<'a>(program: &'a clap::Command, arguments: &[OsString]) -> &'a clap::Command {
    let mut command = program;
    for word in arguments.iter().skip(1) {
        let Some(found) = command.find_subcommand(word) else { break };
        command = found;
    }
    command
}

/// Says what is wrong with arguments that a job has for this program, before anything is started.
///
/// # Errors
/// The line about them.
pub fn check_words(arguments: &[String]) -> Result<(), String> {
    let words: Vec<OsString> =
        std::iter::once("plimsoll".into()).chain(arguments.iter().map(OsString::from)).collect();
    match parser_of(&words).try_get_matches_from(&words) {
        Err(error)
            if !matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) =>
        {
            Err(bounded(printable(&complaint(&error, &called(&words)))))
        }
        Ok(matches) => match matches.subcommand() {
            Some((_, matches)) => check_fleet(matches).map_err(|error| one_line(&error)),
            None => Ok(()),
        },
        Err(_) => Ok(()),
    }
}

/// Runs a command line of this program, and returns its exit code.
fn run_words(arguments: &[String]) -> anyhow::Result<u8> {
    let words: Vec<OsString> =
        std::iter::once("plimsoll".into()).chain(arguments.iter().map(OsString::from)).collect();
    let wrong_usage = |error: clap::Error| usage(complaint(&error, &called(&words)));
    let matches = parser_of(&words).try_get_matches_from(&words).map_err(wrong_usage)?;
    for hint in renamed(&words, &called(&words)) {
        note(&format!("plimsoll: {hint}"));
    }
    let (name, matches) = matches.subcommand().ok_or_else(|| usage("there is no command"))?;
    let entry = COMMANDS.iter().find(|entry| entry.name() == name);
    let entry = entry.ok_or_else(|| anyhow!("there is no command '{name}'"))?;
    by_agents_or_here(entry, matches, &words).map_err(wrong_usage)?
}

/// Runs a feed and a load at the same time, each by its own agents.
fn roles(roles: &Roles<'_>) -> anyhow::Result<u8> {
    run_roles(roles, &PROGRAM)
}

/// One line for a wrong command line, without the parser's frame around it.
fn explain(error: &clap::Error, arguments: &[OsString]) -> u8 {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return if error.print().is_ok() { exit::FINE } else { exit::FAILED };
    }
    let command = called(arguments);
    let line = bounded(printable(&complaint(error, &command)));
    let name = command.get_bin_name().unwrap_or("plimsoll");
    let see = if line.ends_with('?') { " See" } else { "; see" };
    note(&format!("plimsoll: {line}{see} {name} --help"));
    exit::USAGE
}

/// Runs the command that was called, and returns the exit code.
fn carried_out(matches: &ArgMatches, arguments: &[OsString]) -> u8 {
    let done = match matches.subcommand() {
        None => print_out(ORIENTATION).map(|()| exit::FINE),
        Some((name, matches)) => {
            let entry = COMMANDS.iter().find(|entry| entry.name() == name);
            let ran = entry.map(|entry| by_agents_or_here(entry, matches, arguments));
            match ran.unwrap_or_else(|| Ok(Err(anyhow!("there is no command '{name}'")))) {
                Ok(done) => done,
                Err(error) => return explain(&error.format(&mut parser()), arguments),
            }
        }
    };
    done.unwrap_or_else(|error| {
        note(&format!("plimsoll: {}", one_line(&error)));
        exit::of_error(&error)
    })
}

/// Runs a command here, or as the coordinator of the agents that it asks for.
fn by_agents_or_here(
    entry: &Command,
    matches: &ArgMatches,
    arguments: &[OsString],
) -> Result<anyhow::Result<u8>, clap::Error> {
    if let Err(error) = check_fleet(matches) {
        return Ok(Err(error));
    }
    if !is_asked(matches) {
        return entry.run(matches, &PROGRAM);
    }
    let mut words: Vec<String> = words_of(arguments).into_iter().skip(1).collect();
    let more = match entry.words_for_agents(matches)? {
        Ok(more) => more,
        Err(error) => return Ok(Err(error)),
    };
    if let Some((given, instead)) = &more.file
        && let Some(word) = words.iter_mut().find(|word| *word == given)
    {
        word.clone_from(instead);
    }
    words.splice(1..1, more.words.iter().cloned());
    let mut wrong = None;
    let done = coordinated(matches, &entry.parser(), &words, || {
        entry.run(matches, &PROGRAM).unwrap_or_else(|error| {
            wrong = Some(error);
            Err(usage("wrong flags"))
        })
    });
    wrong.map_or(Ok(done), Err)
}

/// The command line in words: the program by its name, whatever its path.
fn words_of(arguments: &[OsString]) -> Vec<String> {
    let rest = arguments.iter().skip(1).map(|word| word.to_string_lossy().into_owned());
    std::iter::once("plimsoll".to_owned()).chain(rest).collect()
}

/// The whole program, for the arguments that this process was called with.
#[must_use]
pub fn run() -> ExitCode {
    names::look_up_without_modules();
    tool::set_build(version::build());
    let arguments = arguments();
    tool::set_command(&words_of(&arguments));
    let mut program = parser_of(&arguments);
    let code = match program.try_get_matches_from_mut(&arguments) {
        Err(error) => explain(&error, &arguments),
        Ok(matches) => {
            for hint in renamed(&arguments, below(&program, &arguments)) {
                note(&format!("plimsoll: {hint}"));
            }
            carried_out(&matches, &arguments)
        }
    };
    ExitCode::from(code)
}

#[cfg(test)]
mod tests;
