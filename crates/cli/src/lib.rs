//! The program `plimsoll`: flags become a scenario, a scenario becomes a run, an outcome becomes an exit code.
//!
//! ```
//! let words = ["load", "http://127.0.0.1:8080/", "--rate", "100"].map(String::from);
//! assert!(plimsoll::check_words(&words).is_ok());
//! ```

mod commands;
mod complaints;

use anyhow::anyhow;
use clap::ArgMatches;
use clap::error::ErrorKind;
use commands::{compare, completions, corpus, man, report, runs, serve};
use complaints::{complaint, renamed};
use plimsoll_job::exit;
use plimsoll_job::job::{Command, Program};
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
  Past runs          plimsoll runs; report [RUN] --format text|json|csv|junit|...; compare RUN RUN
  Query files        plimsoll corpus | split-file | result-filter

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
const COMMANDS: [Command; 24] = [
    Command::of::<plimsoll_catalogue::RunArgs>(),
    Command::of::<plimsoll_catalogue::ListArgs>(),
    Command::of::<plimsoll_catalogue::InfoArgs>(),
    Command::of::<plimsoll_catalogue::InstallArgs>(),
    Command::of::<plimsoll_catalogue::CleanArgs>(),
    Command::of::<plimsoll_catalogue::CheckArgs>(),
    Command::of::<plimsoll_load::LoadArgs>(),
    Command::of::<plimsoll_seek::SeekArgs>(),
    Command::of::<plimsoll_search::SearchArgs>(),
    Command::of::<plimsoll_rank::RankArgs>(),
    Command::of::<plimsoll_voter::VoterArgs>(),
    Command::of::<plimsoll_voter::HelloArgs>(),
    Command::of::<plimsoll_visit::VisitArgs>(),
    Command::of::<plimsoll_feed::FeedArgs>(),
    Command::of::<plimsoll_fbench::FbenchArgs>(),
    Command::of::<serve::ServeArgs>(),
    Command::of::<report::ReportArgs>(),
    Command::of::<runs::RunsArgs>(),
    Command::of::<compare::CompareArgs>(),
    Command::of::<corpus::CorpusArgs>(),
    Command::of::<plimsoll_fbench::SplitArgs>(),
    Command::of::<plimsoll_fbench::FilterArgs>(),
    Command::of::<completions::CompletionsArgs>(),
    Command::of::<man::ManArgs>(),
];

/// Functions of this program that the jobs may use.
const PROGRAM: Program =
    Program { check_words, parser, run_words, check_ranker: serve::check_rank, forms };

/// Returns the forms of all jobs.
fn forms() -> Vec<Forms> {
    COMMANDS.iter().map(Command::forms).collect()
}

/// Returns the parser of the whole program: help, completions and man pages come from it.
#[must_use]
pub fn parser() -> clap::Command {
    clap::Command::new("plimsoll")
        .version(VERSION)
        .about("Measures how much load a search, recommendation or database serving system holds, and shows why")
        .max_term_width(110)
        .after_help(EXAMPLES)
        .subcommands(COMMANDS.iter().map(Command::parser))
}

/// The arguments, with the subcommand put in when the program was called by a link's name.
fn arguments() -> Vec<OsString> {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    let program = arguments.first().map(Path::new).and_then(Path::file_name);
    let command = program.and_then(|name| name.to_str()).and_then(plimsoll_fbench::link_command);
    if let Some(command) = command {
        arguments.insert(1, command.into());
    }
    arguments
}

/// The command that was called, as far as its words are known: what `--help` should follow.
fn called(arguments: &[OsString]) -> clap::Command {
    let mut command = parser();
    command.build();
    for word in arguments.iter().skip(1) {
        match command.find_subcommand(word) {
            Some(found) => command = found.clone(),
            None => break,
        }
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
    match parser().try_get_matches_from(&words) {
        Err(error)
            if !matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) =>
        {
            Err(bounded(printable(&complaint(&error, &called(&words)))))
        }
        _ => Ok(()),
    }
}

/// Runs a command line that a file is in the place of.
fn run_words(arguments: &[String]) -> anyhow::Result<u8> {
    let words: Vec<OsString> =
        std::iter::once("plimsoll".into()).chain(arguments.iter().map(OsString::from)).collect();
    let told = |error: clap::Error| usage(complaint(&error, &called(&words)));
    let matches = parser().try_get_matches_from(&words).map_err(told)?;
    let (name, matches) = matches.subcommand().ok_or_else(|| usage("there is no command"))?;
    let entry = COMMANDS.iter().find(|entry| entry.name() == name);
    entry
        .ok_or_else(|| anyhow!("there is no command '{name}'"))?
        .run(matches, &PROGRAM)
        .map_err(told)?
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
            let ran = entry.map(|entry| entry.run(matches, &PROGRAM));
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

/// The whole program, for the arguments that this process was called with.
#[must_use]
pub fn run() -> ExitCode {
    tool::set_commit(env!("PLIMSOLL_COMMIT"));
    let arguments = arguments();
    let code = match parser().try_get_matches_from(&arguments) {
        Err(error) => explain(&error, &arguments),
        Ok(matches) => {
            for hint in renamed(&arguments, &called(&arguments)) {
                note(&format!("plimsoll: {hint}"));
            }
            carried_out(&matches, &arguments)
        }
    };
    ExitCode::from(code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_record::{RunRecord, read};
    use plimsoll_report::text::{Style, render};

    #[test]
    fn the_command_line_is_sound() {
        parser().debug_assert();
    }

    /// The options of all commands that measure, with their short help and their defaults.
    fn options() -> Vec<(String, String, String)> {
        let mut options = Vec::new();
        for command in parser().get_subcommands() {
            let is_job = ["load", "seek", "fbench", "search", "rank", "voter", "visit", "feed"];
            if !is_job.contains(&command.get_name()) {
                continue;
            }
            for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
                let Some(long) = arg.get_long() else { continue };
                let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
                let default = arg.get_default_values().iter().map(|value| value.to_string_lossy());
                let default: Vec<_> = default.collect();
                let all = format!("{help} [{}]", default.join(","));
                options.push((long.to_owned(), command.get_name().to_owned(), all));
            }
        }
        options.sort();
        options
    }

    /// Options that differ between commands, and why.
    const DIFFERENT: [(&str, &str); 30] = [
        ("accept", "its flags of Vespa are described in `feed`"),
        ("arrivals", "the usual gaps of the command: random in a search"),
        ("assert", "in `search` of every cell"),
        ("burst", "in `voter` it has a pause behind it, in Erlvolt's words"),
        ("check", "in `search` beside the checks of the engine's language"),
        ("clients", "in `voter` its number comes from a preset"),
        ("connections", "the number needed depends on the protocol"),
        ("duration", "the command's own length"),
        ("format", "formats of different things"),
        ("http2", "`feed` chooses by itself"),
        ("limit", "of different things"),
        ("order", "in `search` of users"),
        ("out", "files of different things"),
        ("passes", "in `search` instead of a duration"),
        ("preset", "of different things"),
        ("queries", "in `search` a list of its own"),
        ("queue", "in `voter` of a preset, in Erlvolt's words"),
        ("queue-timeout", "in `voter` shown as a default"),
        ("rate", "operations, calls or requests"),
        ("resume", "`visit` has a file, `search` a folder"),
        ("retries", "of different failures"),
        ("seed", "in `search` a file may say it"),
        ("slices", "of different things"),
        ("slo", "a result is judged, or a rate is sought by it"),
        ("slots", "in `voter` of each connection"),
        ("threads", "in `rank` FeedSim's flag for the server's"),
        (
            "timeout",
            "`seek`: by the limits; `search`: slow cells; `feed`: with all repetitions, as in Vespa's client",
        ),
        ("users", "`load`: steps; `seek`: a rate; `search`: numbers of the table"),
        ("warmup", "in `rank` FeedSim's flag, in seconds"),
        ("target", "of different protocols"),
    ];

    #[test]
    fn an_option_has_one_help_and_one_default_in_all_jobs() {
        let options = options();
        let (mut faults, mut seen) = (Vec::new(), Vec::new());
        for pair in options.windows(2) {
            if pair[0].0 != pair[1].0 || pair[0].2 == pair[1].2 {
                continue;
            }
            match DIFFERENT.iter().find(|(name, _)| *name == pair[0].0) {
                Some((name, _)) => seen.push(*name),
                None => faults.push(format!("{:?}\n{:?}", pair[0], pair[1])),
            }
        }
        assert!(faults.is_empty(), "{}", faults.join("\n"));
        for (name, why) in DIFFERENT {
            assert!(seen.contains(&name), "--{name} no longer differs ({why}); remove it here");
        }
    }

    #[test]
    fn examples_of_load_and_seek_fit_100_columns_and_the_short_help_a_line_each() {
        for mut command in parser().get_subcommands().cloned().collect::<Vec<_>>() {
            if !["load", "seek"].contains(&command.get_name()) {
                continue;
            }
            let long = command.render_long_help().to_string();
            for line in long.lines().filter(|line| line.trim_start().starts_with("plimsoll ")) {
                assert!(line.chars().count() <= 100, "{line}");
            }
            let short = command.render_help().to_string();
            for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
                let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
                assert!(short.lines().any(|line| line.contains(&help)), "{help}\n{short}");
            }
        }
    }

    /// Words of the page that show the section of a job.
    const SHOWN: [(&str, &str); 8] = [
        ("fbench", "Latency, ms"),
        ("seek", "warm-up"),
        ("rank", "Runs "),
        ("voter", "overall:"),
        ("visit", "documents"),
        ("feed", "accepted"),
        ("mix", "while feeding"),
        ("search", "X(N)/X(1)"),
    ];

    /// The records of the version before, one or more of every job.
    fn records() -> Vec<RunRecord> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../record/tests/records");
        let files = std::fs::read_dir(folder).unwrap();
        files.map(|file| read(&std::fs::read(file.unwrap().path()).unwrap()).unwrap()).collect()
    }

    #[test]
    fn records_of_the_version_before_are_printed_with_their_sections() {
        let mut seen = 0;
        for record in records() {
            let page = render(&record, None, &Style::default(), &forms());
            // A search that found no line has no run to show.
            let has_no_run = |key: &str| {
                key == "rank" && record.job_results.rank().is_some_and(|rank| rank.runs.is_empty())
            };
            for section in record.job_results.iter().filter(|one| !has_no_run(one.key())) {
                if let Some((key, words)) = SHOWN.iter().find(|(key, _)| *key == section.key()) {
                    assert!(page.contains(words), "{key}: no '{words}' in\n{page}");
                    seen += 1;
                }
            }
            // A search that followed the line over time has a row a stretch, and may have none.
            let watch = record.job_results.seek().and_then(|seek| seek.finding.watch.as_ref());
            let has_no_row = watch.is_some_and(Vec::is_empty);
            let rows = plimsoll_report::csv::render(&record, &forms());
            assert_eq!(rows.lines().count() > 1, !has_no_row);
            assert!(plimsoll_report::junit::render(&record).contains("<testsuite"));
            let exported = plimsoll_report::benchpress::export(&record);
            assert!(exported["metrics"]["verdict"].is_string());
        }
        assert!(seen >= SHOWN.len(), "{seen} sections");
    }

    /// A job prints its page in its own forms; `report` has those of all jobs, and must not take another's.
    #[test]
    fn a_report_is_the_page_that_the_job_printed() {
        let mut seen = 0;
        for record in records() {
            // A mix is run from a file.
            let name = if record.job == "mix" { "run" } else { &record.job };
            let Some(job) = COMMANDS.iter().find(|job| job.name() == name) else { continue };
            let page = |jobs: &[Forms]| render(&record, None, &Style::default(), jobs);
            assert_eq!(page(&[job.forms()]), page(&forms()), "{}", record.job);
            let rows = |jobs: &[Forms]| plimsoll_report::csv::render(&record, jobs);
            assert_eq!(rows(&[job.forms()]), rows(&forms()), "{}", record.job);
            seen += 1;
        }
        assert!(seen >= SHOWN.len(), "{seen} records");
    }
}
