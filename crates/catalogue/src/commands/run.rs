//! `plimsoll run`: a job of the catalogue, or a scenario in a file.

use crate::{
    QUICKSTART, is_job, named,
    plan::{Choices, Plan},
    runner,
};
use anyhow::{Context, Result};
use clap::Args;
use plimsoll_core::scenario::Scenario;
use plimsoll_job::exit;
use plimsoll_job::flags::OutputFlags;
use plimsoll_job::job::{Job, Program};
use plimsoll_job::output::{Output, print_out};
use plimsoll_job::usage::usage;
use plimsoll_load::run_and_print;
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
  As DCPerf's benchpress is asked; --dry-run prints the command lines only:
    plimsoll run feedsim_autoscale -i '{\"num_instances\": 2, \"extra_args\": \"-q 100\"}' --dry-run
  A job in another role, with one hook more:
    plimsoll run fbench -r remote -i host=10.0.0.5 -i port=8080 -i queries=q.txt -k perf
  A job or a scenario of your own (docs/jobs.md, docs/scenarios.md):
    plimsoll run my.toml
  A load once more, from its record:
    plimsoll run runs/20261121T203250.123Z-load-1a2b3c4d

Exit codes: 0 fine, 2 a limit was missed, 3 not valid, 4 the target failed, 64 wrong usage.";

/// Run a job of the catalogue, or a job or scenario in a TOML file.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct RunArgs {
    /// A job (see plimsoll list), the path of a TOML file, or the record of a load to repeat.
    #[arg(value_name = "JOB|FILE.toml|RUN")]
    job: String,
    /// A variable of the job, key=value or a JSON object of several; may be repeated.
    #[arg(
        short = 'i',
        long = "input",
        visible_alias = "role_input",
        value_name = "KEY=VALUE|JSON",
        help_heading = "Job"
    )]
    inputs: Vec<String>,
    /// Sizes of the text, for jobs that have some: the same as -i sizes=...
    #[arg(long, value_name = "SIZES", help_heading = "Job")]
    sizes: Option<String>,
    /// Which set of arguments, for jobs that have several.
    #[arg(short = 'r', long, value_name = "ROLE", help_heading = "Job")]
    role: Option<String>,
    /// Hooks beside those of the job: cpu-mpstat, perf, copymove, shell, file, cpu-limit.
    #[arg(short = 'k', long, value_name = "NAME", num_args = 1.., value_delimiter = ',', help_heading = "Job")]
    hooks: Vec<String>,
    /// Options of hooks, as a JSON object by their names.
    #[arg(short = 'a', long, value_name = "JSON", help_heading = "Job")]
    hook_args: Option<String>,
    /// None of the job's own hooks.
    #[arg(long, help_heading = "Job")]
    disable_hooks: bool,
    /// Print the command lines and run nothing.
    #[arg(long, help_heading = "Job")]
    dry_run: bool,
    /// Folder of the files that jobs make for themselves.
    #[arg(long, value_name = "DIR", default_value = ".plimsoll", help_heading = "Job")]
    data: PathBuf,
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

    /// Flags that only a job in TOML knows what to do with.
    fn only_for_jobs(&self, what: &str) -> Result<()> {
        let given = [
            ("-i", !self.inputs.is_empty()),
            ("--sizes", self.sizes.is_some()),
            ("-r", self.role.is_some()),
            ("-k", !self.hooks.is_empty()),
            ("-a", self.hook_args.is_some()),
            ("--disable-hooks", self.disable_hooks),
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
    const FORMS: Forms = plimsoll_mix::page::FORMS;

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
        return quickstart(args, &output);
    }
    let path = Path::new(&args.job);
    let is_file = path.extension().is_some_and(|extension| extension == "toml");
    if is_file
        && let Ok(text) = std::fs::read_to_string(path)
        && !is_job(&text)
    {
        args.only_for_jobs("a scenario has no variables, roles and hooks")?;
        if plimsoll_mix::is_mix(&text) {
            return plimsoll_mix::run(path, &text, &output, args.dry_run);
        }
        return start(&read(path)?, path, &output, args.dry_run);
    }
    if path.is_dir() || path.extension().is_some_and(|extension| extension == "json") {
        args.only_for_jobs("a run that is repeated has no variables, roles and hooks")?;
        return repeat(path, &output, args.dry_run);
    }
    let job = named(&args.job)?;
    let data = args.data.join(&job.name);
    let plan = Plan::new(&job, &args.choices(), &data)?;
    plan.check(program.check_words)?;
    if args.dry_run {
        print_out(&plan.dry_run(&runner::passed_on(&output))?)?;
        return Ok(exit::FINE);
    }
    output.check()?;
    runner::run(plan, &data, &output)
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
        let is_job =
            |one: &&JobResult| !matches!(one, JobResult::Catalogue(_) | JobResult::Hooks(_));
        // A load has no result of its own.
        if let Some(other) = record.job_results.iter().find(is_job).map(JobResult::key) {
            return Err(usage(format!(
                "{shown}: a run of plimsoll {other}; only those of plimsoll load can be repeated from their record"
            )));
        }
        serde_json::from_value(record.scenario)
    } else {
        let text = std::fs::read_to_string(path)
            .map_err(|error| usage(format!("{shown}: {error}; name a scenario or a record")))?;
        serde_json::from_str(&text)
    };
    let scenario: Scenario = scenario.map_err(|error| usage(format!("{shown}: {error}")))?;
    let left_out = |header: &&String| header.ends_with(Scenario::LEFT_OUT);
    if let Some(header) = scenario.headers.iter().find(left_out) {
        return Err(usage(format!(
            "{shown}: header '{header}': records keep no secrets; write the scenario to a file (jq .scenario) and put it back"
        )));
    }
    start(&scenario, path, output, dry_run)
}

fn quickstart(args: &RunArgs, output: &Output) -> Result<u8> {
    args.only_for_jobs("quickstart is a program of its own")?;
    if output.json.is_some() {
        return Err(usage(
            "--json: quickstart makes two records; see plimsoll report --format json",
        ));
    }
    if args.dry_run {
        print_out(
            "# quickstart is code: its second rate depends on the result of its first\nplimsoll run quickstart\n",
        )?;
        return Ok(exit::FINE);
    }
    crate::quickstart::run(output)
}

fn read(path: &Path) -> Result<Scenario> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| usage(format!("{shown}: {error}; name a scenario file")))?;
    toml::from_str(&text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        usage(format!("{shown}:{line}: {}", without_list(&error.message().replace('\n', " "))))
    })
}

/// An error about an unknown field, with the field that was probably meant in the place of all that there are.
fn without_list(message: &str) -> String {
    let Some((head, list)) = message.split_once(", expected one of ") else {
        return message.to_owned();
    };
    let known: Vec<&str> = list.split(", ").map(|name| name.trim_matches('`')).collect();
    let word = head.split('`').nth(1).unwrap_or_default();
    match near_miss(word, &known) {
        Some(near) => format!("{head}; did you mean `{near}`?"),
        None => format!("{head}; the fields are in docs/scenarios.md"),
    }
}
