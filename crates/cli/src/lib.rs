//! The program `plimsoll`: flags become a scenario, a scenario becomes a run, an outcome becomes an exit code.

mod catalogue;
mod commands;
mod contact;
mod embedded;
mod engines;
mod execute;
mod exit;
mod fbench_source;
mod keeping;
mod mix;
mod postgres;
mod prepare;
mod progress;
mod quickstart;
mod remarks;
mod search_progress;
mod signals;
mod system_check;
mod temporary;
mod throughput;
mod url;
mod usage;
mod vespa_tls;
mod volt;

use anyhow::Result;
use clap::error::{ContextKind, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};
use commands::{fbench, jobs, load, report, result_filter, run, serve, split_file};
use plimsoll_report::plain::printable;
use plimsoll_workloads::edit_distance::near_miss;
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
                     the highest rate that holds the limits, with an interval
  Engines compared   plimsoll search --engine mine=http://127.0.0.1:9200 --sizes 64MB,320MB
                     users x size x distance x shards: tables, reasons, recall, resumable
  Votes, counted     plimsoll voter VSD volt://HOST:21212: transactions, and every write checked
  A whole corpus     plimsoll visit http://127.0.0.1:8080 --cluster NAME --out dump.ndjson.zst
                     all slices at once, counted to the last document, resumable
  Feed documents     plimsoll feed http://127.0.0.1:8080 dump.ndjson.zst --failed rest.ndjson
                     in order for each document, every operation accounted for
  vespa-fbench       plimsoll fbench -n 8 -s 30 -q query%03d.txt 127.0.0.1 8080
                     the same flags, files and summary; failures counted as failures
  A job              plimsoll list, info JOB, run JOB -i key=value; see also system-check
  A target to try    plimsoll serve null | queue | search | rank | voter
  A real engine      plimsoll install ENGINE, serve opensearch | elasticsearch | postgresql | voltdb
  A run once more    plimsoll report [RUN] --format text|json|csv|junit|...; two: compare RUN RUN
  Query files        plimsoll corpus | split-file | result-filter

Every command explains itself: plimsoll COMMAND --help.
";

/// Measures how much load a search, recommendation or database serving system holds, and shows why.
#[derive(Parser)]
#[command(name = "plimsoll", version, max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    Run(run::RunArgs),
    List(jobs::ListArgs),
    Info(jobs::InfoArgs),
    Install(jobs::InstallArgs),
    Clean(jobs::CleanArgs),
    SystemCheck(commands::system_check::CheckArgs),
    Load(Box<load::LoadArgs>),
    Seek(Box<commands::seek::SeekArgs>),
    Search(Box<commands::search::SearchArgs>),
    Rank(Box<commands::rank::RankArgs>),
    Voter(Box<commands::voter::VoterArgs>),
    Hello(Box<commands::voter::HelloArgs>),
    Visit(Box<commands::visit::VisitArgs>),
    Feed(Box<commands::feed::FeedArgs>),
    Fbench(Box<fbench::FbenchArgs>),
    Serve(Box<serve::ServeArgs>),
    Report(report::ReportArgs),
    Compare(commands::compare::CompareArgs),
    Corpus(commands::corpus::CorpusArgs),
    SplitFile(split_file::SplitArgs),
    ResultFilter(result_filter::FilterArgs),
}

impl Command {
    fn run(&self) -> Result<u8> {
        match self {
            Command::Run(args) => run::run(args),
            Command::List(args) => jobs::list(args),
            Command::Info(args) => jobs::info(args),
            Command::Install(args) => jobs::install(args),
            Command::Clean(args) => jobs::clean(args),
            Command::SystemCheck(args) => commands::system_check::run(args),
            Command::Load(args) => load::run(args),
            Command::Rank(args) => commands::rank::run(args),
            Command::Voter(args) => commands::voter::run(args),
            Command::Hello(args) => commands::voter::hello(args),
            Command::Seek(args) => commands::seek::run(args),
            Command::Search(args) => commands::search::run(args),
            Command::Visit(args) => commands::visit::run(args),
            Command::Feed(args) => commands::feed::run(args),
            Command::Fbench(args) => fbench::run(args),
            Command::Serve(args) => serve::run(args),
            Command::Report(args) => report::run(args),
            Command::Compare(args) => commands::compare::run(args),
            Command::Corpus(args) => commands::corpus::run(args),
            Command::SplitFile(args) => split_file::run(args),
            Command::ResultFilter(args) => result_filter::run(args),
        }
    }
}

/// The arguments, with the subcommand put in when the program was called by a link's name.
fn arguments() -> Vec<OsString> {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    let program = arguments.first().map(Path::new).and_then(Path::file_name);
    let command = program.and_then(|name| name.to_str()).and_then(fbench::link_command);
    if let Some(command) = command {
        arguments.insert(1, command.into());
    }
    arguments
}

/// The command that was called, as far as its words are known: what `--help` should follow.
fn called(arguments: &[OsString]) -> clap::Command {
    let mut command = Cli::command();
    command.build();
    for word in arguments.iter().skip(1) {
        match command.find_subcommand(word) {
            Some(found) => command = found.clone(),
            None => break,
        }
    }
    command
}

/// What is wrong with the command line, in words of ours where the parser's are not clear by themselves.
fn complaint(error: &clap::Error, command: &clap::Command) -> String {
    let told = |kind| error.get(kind).map(ToString::to_string);
    match (error.kind(), told(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(flag)) => {
            let is_number =
                flag.starts_with('-') && flag[1..].starts_with(|c: char| c.is_numeric());
            if is_number {
                return format!("'{flag}' is no flag, and no value may begin with '-' here");
            }
            let near = ending_in(&flag, command).or_else(|| told(ContextKind::SuggestedArg));
            let near = near.map_or(String::new(), |near| format!("; did you mean '{near}'?"));
            format!("there is no argument '{flag}' here{near}")
        }
        (ErrorKind::InvalidSubcommand, _) => {
            let word = told(ContextKind::InvalidSubcommand).unwrap_or_default();
            let names = command.get_subcommands().map(clap::Command::get_name);
            let names: Vec<&str> = names.filter(|&name| name != "help").collect();
            // Two letters that changed places are two edits, which is much of a short word.
            let letters = |word: &str| {
                let mut letters: Vec<char> = word.chars().collect();
                letters.sort_unstable();
                letters
            };
            let mixed = || names.iter().copied().find(|name| letters(name) == letters(&word));
            match near_miss(&word, &names).or_else(mixed) {
                Some(near) => format!("there is no command '{word}'; did you mean '{near}'?"),
                None => format!("there is no command '{word}'; there are {}", names.join(", ")),
            }
        }
        (ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand, _) => {
            let names = command.get_subcommands().map(clap::Command::get_name);
            let names: Vec<&str> = names.filter(|&name| name != "help").collect();
            format!("{} needs one of these words: {}", command.get_name(), names.join(", "))
        }
        _ => error
            .to_string()
            .lines()
            .map(str::trim)
            .take_while(|line| !line.starts_with("Usage:"))
            .filter(|line| !line.is_empty() && !line.starts_with("For more information"))
            .collect::<Vec<_>>()
            .join(" ")
            .trim_start_matches("error: ")
            .to_owned(),
    }
}

/// The flag that the word is the end of, as `--rate` is of `--start-rate`: nearer than one of similar letters.
fn ending_in(flag: &str, command: &clap::Command) -> Option<String> {
    let word = flag.strip_prefix("--").filter(|word| word.len() > 2)?;
    let tail = format!("-{word}");
    let mut longer = command.get_arguments().filter_map(clap::Arg::get_long);
    longer.find(|long| long.ends_with(&tail)).map(|long| format!("--{long}"))
}

/// Says what is wrong with arguments that a job has for this program, before anything is started.
///
/// # Errors
/// The line about them.
pub fn check_words(arguments: &[String]) -> Result<(), String> {
    let words: Vec<OsString> =
        std::iter::once("plimsoll".into()).chain(arguments.iter().map(OsString::from)).collect();
    match Cli::try_parse_from(&words) {
        Err(error)
            if !matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) =>
        {
            Err(bounded(printable(&complaint(&error, &called(&words)))))
        }
        _ => Ok(()),
    }
}

/// One line for a wrong command line, without the parser's frame around it.
fn explain(error: &clap::Error, arguments: &[OsString]) -> u8 {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return if error.print().is_ok() { exit::FINE } else { exit::FAILED };
    }
    let command = called(arguments);
    let line = bounded(printable(&complaint(error, &command)));
    let name = command.get_bin_name().unwrap_or("plimsoll");
    execute::note(&format!("plimsoll: {line}; see {name} --help"));
    exit::USAGE
}

/// One line for an error and its causes; a cause that is told already is not told twice.
fn one_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !line.contains(&cause) {
            let joint = if line.is_empty() { "" } else { ": " };
            line = line + joint + &cause;
        }
    }
    bounded(printable(&line))
}

/// A line of a length that somebody reads: a value that was given may be a whole file by mistake, and what is wrong with it
/// stands behind it.
fn bounded(line: String) -> String {
    const FRONT: usize = 1200;
    const BACK: usize = 600;
    let length = line.chars().count();
    if length <= FRONT + BACK {
        return line;
    }
    let front: String = line.chars().take(FRONT).collect();
    let back: String = line.chars().skip(length - BACK).collect();
    format!("{front} [{} characters more] {back}", length - FRONT - BACK)
}

/// The whole program, for the arguments that this process was called with.
#[must_use]
pub fn run() -> ExitCode {
    let arguments = arguments();
    let code = match Cli::try_parse_from(&arguments) {
        Err(error) => explain(&error, &arguments),
        Ok(Cli { command: None }) => match execute::print_out(ORIENTATION) {
            Ok(()) => exit::FINE,
            Err(error) => {
                execute::note(&format!("plimsoll: {}", one_line(&error)));
                exit::FAILED
            }
        },
        Ok(Cli { command: Some(command) }) => match command.run() {
            Ok(code) => code,
            Err(error) => {
                execute::note(&format!("plimsoll: {}", one_line(&error)));
                exit::of_error(&error)
            }
        },
    };
    ExitCode::from(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_a_whole_file_does_not_hide_what_is_wrong_with_it() {
        let short = "é".repeat(1800);
        assert_eq!(bounded(short.clone()), short);
        let told = bounded(format!("invalid value '{}' for '--workers'", "é".repeat(100_000)));
        assert!(told.starts_with("invalid value 'éé") && told.ends_with("éé' for '--workers'"));
        assert!(told.contains("[98232 characters more]"), "{told}");
        assert!(told.chars().count() < 1900);
    }

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
