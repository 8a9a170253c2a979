//! `plimsoll run`: a job of the catalogue, or a scenario in a file.

use super::DATA;
use super::fleet_words::fleet_words;
use super::scenario::{self, CommandLine};
use crate::{
    QUICKSTART, is_job, named,
    plan::{Choices, Plan, quoted},
    runner,
};
use anyhow::{Context, Result};
use clap::{ArgMatches, Args, FromArgMatches};
use plimsoll_core::scenario::Scenario;
use plimsoll_feed::FeedArgs;
use plimsoll_job::exit;
use plimsoll_job::flags::OutputFlags;
use plimsoll_job::job::{Job, Program, Roles};
use plimsoll_job::output::{Output, note, print_out};
use plimsoll_job::toml_text;
use plimsoll_job::usage::{one_line, usage};
use plimsoll_load::{LoadArgs, run_and_print};
use plimsoll_record::JobResult;
use plimsoll_report::folder::RUN_JSON;
use plimsoll_report::forms::Forms;
use plimsoll_report::load::load;
use plimsoll_workloads::edit_distance::near_miss;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  A real search server, a real text and a real query mix, measured in half a minute:
    plimsoll run quickstart
  A job of the catalogue, with two of its variables:
    plimsoll run fbench -i clients=16 -i seconds=20
  Variables as for DCPerf's benchpress; --dry-run prints the command lines only:
    plimsoll run feedsim_autoscale -i '{\"num_instances\": 2, \"extra_args\": \"-q 100\"}' --dry-run
  A job in another role, with an additional hook:
    plimsoll run fbench -r remote -i host=10.0.0.5 -i port=8080 -i queries=q.txt -k perf
  A job by two agents that wait on a bus (docs/fleet.md):
    plimsoll run fbench -i seconds=20 --agents 2 --bus nats://127.0.0.1:4222
  Your own job or scenario (docs/jobs.md, docs/scenarios.md):
    plimsoll run my.toml
  Repeat a load from its record:
    plimsoll run runs/20261121T203250.123Z-load-1a2b3c4d

Exit codes: 0 every limit was met, 2 a limit was missed, 3 not valid, 4 the target failed,
64 wrong usage.";

/// Run a job of the catalogue, or a job or scenario in a TOML file.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct RunArgs {
    /// Job (plimsoll list), TOML file, or record of a run
    ///
    /// A record repeats its load.
    #[arg(value_name = "JOB|FILE.toml|RUN")]
    job: String,
    /// Variable of the job, such as clients=16
    ///
    /// KEY=VALUE, or a JSON object of several. May be repeated.
    #[arg(
        short = 'i',
        long = "input",
        visible_alias = "role_input",
        value_name = "KEY=VALUE|JSON",
        help_heading = "Job"
    )]
    inputs: Vec<String>,
    /// Sizes of the text, such as 64MB,320MB; or 'all'
    ///
    /// For jobs with this variable; the same as -i sizes=VALUE.
    #[arg(long, value_name = "SIZES", help_heading = "Job")]
    sizes: Option<String>,
    /// Role (set of arguments), for jobs with several
    #[arg(short = 'r', long, value_name = "ROLE", help_heading = "Job")]
    role: Option<String>,
    /// Additional hooks, such as perf
    ///
    /// cpu-mpstat, perf, copymove, shell, file, cpu-limit.
    #[arg(short = 'k', long, value_name = "NAME", num_args = 1.., value_delimiter = ',', help_heading = "Job")]
    hooks: Vec<String>,
    /// Options of hooks, as JSON
    ///
    /// An object with the name of each hook as key.
    #[arg(short = 'a', long, value_name = "JSON", help_heading = "Job")]
    hook_args: Option<String>,
    /// Disable the job's own hooks
    #[arg(long, help_heading = "Job")]
    disable_hooks: bool,
    /// Print the command lines and run nothing
    #[arg(long, help_heading = "Job")]
    dry_run: bool,
    /// Folder of the files that jobs create
    #[arg(long, value_name = "DIR", default_value = DATA, help_heading = "Job")]
    data: PathBuf,
    /// Flags that override fields of FILE.toml
    ///
    /// Flags of the command in FILE.toml, also --agents and --bus. For a mix: --agents, --feed-agents, --bus and others of a fleet.
    /// For a job: those of a fleet, which its command gets.
    #[arg(value_name = "FLAGS", trailing_var_arg = true, allow_hyphen_values = true)]
    flags: Vec<String>,
    #[command(flatten)]
    output: OutputFlags,
}

impl RunArgs {
    fn choices(&self) -> Choices {
        let sizes = self.sizes.iter().map(|sizes| format!("sizes={sizes}"));
        Choices {
            inputs: self.inputs.iter().cloned().chain(sizes).collect(),
            role: self.role.clone(),
            hooks: self.hooks.clone(),
            hook_arguments: self.hook_args.clone(),
            disable_hooks: self.disable_hooks,
        }
    }

    /// The flags about output that were given to `run`, for the command of a file.
    fn output_words(&self) -> Vec<String> {
        let output = &self.output.results;
        let mut words = Vec::new();
        if output.runs != Path::new("runs") {
            words.push(format!("--runs={}", output.runs.display()));
        }
        words.extend(output.json.iter().map(|json| format!("--json={}", json.display())));
        words.extend(output.junit.iter().map(|file| format!("--junit={}", file.display())));
        words.extend(output.csv.iter().map(|file| format!("--csv={}", file.display())));
        words.extend(output.html.iter().map(|file| format!("--html={}", file.display())));
        words.extend(output.name.iter().map(|name| format!("--name={}", name.0)));
        words.extend(
            output.labels.iter().map(|label| format!("--label={}={}", label.key, label.value)),
        );
        words.extend(output.no_record.then(|| "--no-record".to_owned()));
        words.extend(self.output.watching.watch.iter().map(|one| format!("--watch={one}")));
        words.extend(self.output.outlets.words());
        words.extend(output.quiet.then(|| "--quiet".to_owned()));
        words.extend(output.verbose.then(|| "--verbose".to_owned()));
        words
    }

    /// The flags behind the name of a job: those of a fleet, for its command.
    fn fleet_words(&self, command: &[String], program: &Program) -> Result<Vec<String>> {
        let parser = (program.parser)();
        let named = |name: Option<&str>| name.and_then(|name| parser.find_subcommand(name));
        let (command, own) = (named(command.first().map(String::as_str)), named(Some(Self::NAME)));
        let words = match (command, own) {
            (Some(command), Some(own)) => fleet_words(&self.flags, command, own)?,
            _ => None,
        };
        match words {
            Some(words) => Ok(words),
            None => self.no_flags(program).map(|()| Vec::new()),
        }
    }

    /// Refuses flags behind what has no flags of its own.
    fn no_flags(&self, program: &Program) -> Result<()> {
        let Some(first) = self.flags.first() else { return Ok(()) };
        let word = first.split_once('=').map_or(first.as_str(), |(word, _)| word);
        let parser = (program.parser)();
        let own = parser.find_subcommand(Self::NAME);
        let known =
            own.into_iter().flat_map(|own| own.get_arguments().filter_map(|arg| arg.get_long()));
        let known: Vec<String> = known.map(|long| format!("--{long}")).collect();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let near = near_miss(word, &known)
            .map_or(String::new(), |near| format!("; did you mean '{near}'?"));
        Err(usage(format!("unknown option '{word}'{near}; see plimsoll run --help")))
    }

    /// Flags that only a job in TOML knows what to do with.
    fn only_for_jobs(&self, what: &str) -> Result<()> {
        let given = [
            ("-i", !self.inputs.is_empty()),
            ("--sizes", self.sizes.is_some()),
            ("-r", self.role.is_some()),
            ("-k", !self.hooks.is_empty()),
            ("-a", self.hook_args.is_some()),
            ("--disable-hooks", self.disable_hooks),
            ("--data", self.data != Path::new(DATA)),
        ];
        match given.iter().find(|(_, is)| *is) {
            Some((flag, _)) => Err(usage(format!("{flag}: {what}; leave it out"))),
            None => Ok(()),
        }
    }
}

impl Job for RunArgs {
    const NAME: &'static str = "run";
    // A mix of feed and queries is run from a file.
    const FORMS: Forms = Forms { sheet: crate::sheet::sheet, ..plimsoll_mix::page::FORMS };

    fn run(&self, program: &Program) -> Result<u8> {
        run(self, program)
    }
}

/// Runs the command.
///
/// # Errors
/// Wrong usage, or a program failure.
fn run(args: &RunArgs, program: &Program) -> Result<u8> {
    let output = args.output.output();
    if args.job == QUICKSTART {
        args.no_flags(program)?;
        return quickstart(args, &output);
    }
    let path = Path::new(&args.job);
    let is_file = path.extension().is_some_and(|extension| extension == "toml");
    if is_file
        && let Ok(text) = std::fs::read_to_string(path)
        && !is_job(&text)
    {
        args.only_for_jobs("a scenario has no variables, roles, hooks or files")?;
        if plimsoll_mix::is_mix(&text) {
            return mix(args, path, &text, program);
        }
        let parser = (program.parser)();
        if parser.find_subcommand("load").is_some_and(|load| !scenario::is_older(&text, load)) {
            return by_flags(args, path, &text, program);
        }
        args.no_flags(program)?;
        return start(&read(path, &text)?, path, &output, args.dry_run);
    }
    if path.is_dir() || path.extension().is_some_and(|extension| extension == "json") {
        args.no_flags(program)?;
        args.only_for_jobs("a repeated run has no variables, roles, hooks or files")?;
        return repeat(path, &output, args.dry_run);
    }
    let job = named(&args.job)?;
    let data = args.data.join(&job.name);
    let mut plan = Plan::new(&job, &args.choices(), &data)?;
    plan.add_words(args.fleet_words(&plan.command()?, program)?);
    plan.check(program.check_words)?;
    if args.dry_run {
        print_out(&plan.dry_run(&runner::passed_on(&output))?)?;
        return Ok(exit::FINE);
    }
    output.check()?;
    runner::run(plan, &data, &output, &(program.forms)())
}

/// Runs a scenario of a file, or shows it.
fn start(scenario: &Scenario, path: &Path, output: &Output, dry_run: bool) -> Result<u8> {
    if dry_run {
        let shown = serde_json::to_string_pretty(&scenario.without_secrets())?;
        print_out(&format!("{shown}\n"))?;
        return Ok(exit::FINE);
    }
    run_and_print(scenario, output).with_context(|| path.display().to_string())
}

/// Runs the scenario of a record again, or one that was taken out of a record.
fn repeat(path: &Path, output: &Output, dry_run: bool) -> Result<u8> {
    let shown = path.display();
    let is_record = path.is_dir() || path.file_name().is_some_and(|name| name == RUN_JSON);
    let scenario = if is_record {
        let record = load(path)?.record;
        // A load has no result of its own.
        if let Some(other) = record.job_results.of_job().next().map(JobResult::key) {
            return Err(usage(format!(
                "{shown}: this is a run of plimsoll {other}; only a run of plimsoll load can be repeated"
            )));
        }
        serde_json::from_value(record.scenario)
    } else {
        let text = std::fs::read_to_string(path)
            .map_err(|error| usage(format!("{shown}: {error}; name a scenario or a record")))?;
        serde_json::from_str(&text)
    };
    let scenario: Scenario = scenario.map_err(|error| usage(format!("{shown}: {error}")))?;
    let is_left_out = |text: &&String| {
        text.ends_with(Scenario::LEFT_OUT)
            || ["=***", "\"***", "//***@", ":***@"].iter().any(|mark| text.contains(mark))
    };
    let texts = scenario.headers.iter().chain(&scenario.targets).chain(&scenario.body);
    if let Some(text) = texts.into_iter().find(is_left_out) {
        return Err(usage(format!(
            "{shown}: '{text}': records keep no secrets; write the scenario to a file (jq .scenario) and put it back"
        )));
    }
    start(&scenario, path, output, dry_run)
}

fn quickstart(args: &RunArgs, output: &Output) -> Result<u8> {
    args.only_for_jobs("quickstart has no variables, roles, hooks or files")?;
    let files = [("json", &output.json), ("junit", &output.junit), ("csv", &output.csv)];
    if let Some((form, _)) = files.iter().find(|(_, path)| path.is_some()) {
        return Err(usage(format!(
            "--{form}: quickstart makes two records; see plimsoll report --format {form}"
        )));
    }
    output.outlets.refuse("quickstart makes several runs, of which none is the result")?;
    if args.dry_run {
        print_out(
            "# quickstart is code: its second rate depends on the result of its first\nplimsoll run quickstart\n",
        )?;
        return Ok(exit::FINE);
    }
    crate::quickstart::run(output)
}

/// Reads a file in the form of records.
fn read(path: &Path, text: &str) -> Result<Scenario> {
    let shown = path.display().to_string();
    let text = toml_text::expanded(text, &shown).map_err(usage)?;
    let scenario: Scenario = toml_text::read(&text, &shown).map_err(usage)?;
    Ok(scenario.with_paths_from(path.parent().unwrap_or(Path::new(""))))
}

/// Runs the command line that a file is in the place of, or shows it.
fn by_flags(args: &RunArgs, path: &Path, text: &str, program: &Program) -> Result<u8> {
    let parser = (program.parser)();
    let more = [args.flags.clone(), args.output_words()].concat();
    let shown = path.display().to_string();
    if args.dry_run {
        // Values of the environment may be secrets: they are shown as they are written.
        let line = scenario::command_line(text, path, &more, &parser).map_err(usage)?;
        hint(&line);
        let words: Vec<String> = line.words.iter().map(|word| shown_word(word)).collect();
        print_out(&format!("plimsoll {}\n", words.join(" ")))?;
        return Ok(exit::FINE);
    }
    let text = toml_text::expanded(text, &shown).map_err(usage)?;
    let line = scenario::command_line(&text, path, &more, &parser).map_err(usage)?;
    hint(&line);
    (program.run_words)(&line.words).map_err(|error| in_words_of_file(&line, error, &shown))
}

/// Says which fields of a file have new names.
fn hint(line: &CommandLine) {
    line.hints.iter().for_each(|hint| note(&format!("plimsoll: {hint}")));
}

/// An error of a file's command. One of usage names the fields of the file, not the flags that they stand for.
fn in_words_of_file(line: &CommandLine, error: anyhow::Error, shown: &str) -> anyhow::Error {
    let is_usage = exit::of_error(&error) == exit::USAGE;
    let named = line.in_words_of_the_file(&one_line(&error)).filter(|_| is_usage);
    named.map_or_else(|| error.context(shown.to_owned()), usage)
}

/// Runs a mix of a file, or shows it. Each of its tables has the form of flags, or that of records.
fn mix(args: &RunArgs, path: &Path, text: &str, program: &Program) -> Result<u8> {
    let (parser, shown) = ((program.parser)(), path.display().to_string());
    let expanded = toml_text::expanded(text, &shown).map_err(usage)?;
    // Values of the environment may be secrets: they are shown as they are written.
    let text = if args.dry_run { text } else { expanded.as_str() };
    let mut tables = plimsoll_mix::Tables::default();
    if let Some((line, matches)) = part(text, path, "queries", &parser)? {
        let queries = LoadArgs::from_arg_matches(&matches)?.scenario();
        tables.queries = Some(queries.map_err(|error| in_words_of_file(&line, error, &shown))?);
    }
    if let Some((line, matches)) = part(text, path, "feed", &parser)? {
        let feed = FeedArgs::from_arg_matches(&matches)?.scenario();
        tables.feed = Some(feed.map_err(|error| in_words_of_file(&line, error, &shown))?);
    }
    let output = args.output.output();
    let here = |tables| plimsoll_mix::run((path, text), tables, &output, args.dry_run, None);
    if args.flags.is_empty() {
        return here(tables);
    }
    let lines = |part| scenario::line_of_part(text, path, part, &parser).map_err(usage);
    let (Some(feed), Some(load)) = (lines("feed")?, lines("queries")?) else {
        return Err(usage(format!(
            "{shown}: agents get the flags of a mix: write [feed] and [queries] with the fields of flags, and not with those of records"
        )));
    };
    if args.dry_run {
        return here(tables);
    }
    let agents = plimsoll_mix::feed_agents(text).with_context(|| shown.clone())?;
    (program.run_roles)(&Roles {
        flags: &args.flags,
        feed_agents: agents,
        feed: &feed.words,
        load: &load.words,
        job: &|feeders| {
            plimsoll_mix::run((path, text), tables.clone(), &output, false, Some(feeders))
        },
    })
}

/// A table of a mix in the form of flags, as the parser reads it.
fn part(
    text: &str,
    path: &Path,
    part: &'static str,
    parser: &clap::Command,
) -> Result<Option<(CommandLine, ArgMatches)>> {
    let Some(line) = scenario::line_of_part(text, path, part, parser).map_err(usage)? else {
        return Ok(None);
    };
    hint(&line);
    let command = parser.find_subcommand(&line.words[0]).cloned().unwrap_or_default();
    let matches = command.try_get_matches_from(&line.words)?;
    Ok(Some((line, matches)))
}

/// A word of a command line as it may be shown: secrets are left out.
fn shown_word(word: &str) -> String {
    let one = |headers, targets| Scenario { headers, targets, ..Scenario::default() };
    let shown = match word.strip_prefix("--header=") {
        Some(header) => {
            let shown = one(vec![header.to_owned()], Vec::new()).without_secrets();
            format!("--header={}", shown.headers.concat())
        }
        None => one(Vec::new(), vec![word.to_owned()]).without_secrets().targets.concat(),
    };
    quoted(&shown)
}
