//! Runs a job: files, hooks, target, preparation, the command, and what goes into its record.

use super::hooks::{FOLDER, Hooks};
use super::install::install;
use super::plan::Plan;
use super::step::{Done, Step};
use crate::engines::Engine;
use anyhow::{Result, anyhow, bail};
use plimsoll_core::clock::now_ns;
use plimsoll_core::scenario::Scenario;
use plimsoll_job::child::{End, follow, plimsoll, spawn_on, stop, wait_within};
use plimsoll_job::execute::page;
use plimsoll_job::keeping::nothing_measured;
use plimsoll_job::output::{Output, note, print_out, with_files};
use plimsoll_job::results::{Shown, write_results};
use plimsoll_job::signals::Stopped;
use plimsoll_job::tool;
use plimsoll_job::watching::TARGETS;
use plimsoll_job::{exit, signals};
use plimsoll_record::JobResults;
use plimsoll_report::RecordError;
use plimsoll_report::folder::{RECORDS_FOR, RECORDS_TO, amend};
use plimsoll_report::forms::Forms;
use plimsoll_report::number::significant;
use plimsoll_report::window::measured;
use rustix::process::Signal;
use rustix::thread::CpuSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

/// Longest time that a command that was asked to end may take: its requests' timeout, and a little.
const PATIENCE: Duration = Duration::from_secs(35);
/// Longest time that a target may take to end.
const TARGET_PATIENCE: Duration = Duration::from_secs(10);
/// Longest run of one command of preparation.
const PREPARE_LIMIT: Duration = Duration::from_secs(900);

/// File in the record's folder with the output of a real engine that was the target.
const TARGET_LOG: &str = "target.log";

/// A folder beside the records for what has no place of its own yet; removed at the end, unless files of hooks remain in it.
struct Staging {
    path: PathBuf,
    stays: bool,
}

impl Staging {
    fn new(runs: Option<&Path>, job: &str) -> Result<Self> {
        let place = runs.map_or_else(std::env::temp_dir, Path::to_owned);
        let path = place.join(format!(".{job}-{}-{}", std::process::id(), now_ns()));
        let failed = |source| RecordError::Create { path: path.clone(), source };
        std::fs::create_dir_all(path.join(FOLDER)).map_err(failed)?;
        std::fs::write(path.join("records"), "")?;
        Ok(Self { path, stays: false })
    }

    fn records(&self) -> PathBuf {
        self.path.join("records")
    }

    /// Puts what the target said beside the record; only real engines say anything.
    fn keep_log(&self, record: &Path) {
        let log = self.path.join(TARGET_LOG);
        if log.is_file()
            && let Err(error) = std::fs::copy(&log, record.join(TARGET_LOG))
        {
            note(&format!("plimsoll: the log of the target could not be kept: {error}"));
        }
    }

    /// The record that the command made last.
    fn record(&self) -> Option<PathBuf> {
        let text = std::fs::read_to_string(self.records()).ok()?;
        text.lines().last().map(PathBuf::from)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.stays {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// The embedded target of a job; ended when dropped.
struct Target {
    child: Child,
}

impl Drop for Target {
    fn drop(&mut self) {
        stop(&mut self.child, Signal::TERM, TARGET_PATIENCE);
    }
}

/// Runs the job to its end, and says with which exit code.
///
/// # Errors
/// When a step before the command fails, or a process cannot be started.
pub fn run(mut plan: Plan, data: &Path, output: &Output, forms: &[Forms]) -> Result<u8> {
    signals::stop_flag()?;
    let mut staging = Staging::new(output.runs.as_deref(), &plan.job.name)?;
    if output.runs.is_none() && !plan.hooks.is_empty() {
        note("plimsoll: with --no-record the files of hooks are not kept");
    }
    let mut hooks = Hooks::new(&plan.hooks, &staging.path.join(FOLDER))?;
    let ended = install_and_run(&mut plan, data, &staging, &mut hooks, output);
    let stopped_before = signals::is_stopped();
    match &ended {
        Ok(End::Exit(Some(code))) if *code == i32::from(exit::USAGE) => hooks.after_refusal(),
        _ => hooks.after(),
    }
    let mut record = staging.record();
    let end = match ended {
        Ok(End::Exit(_)) if signals::is_stopped() && !stopped_before => End::StoppedAfter,
        Ok(end) => end,
        Err(error) => match error.downcast::<Stopped>() {
            Ok(stopped) => {
                record = keep_nothing(&plan, &stopped, output)?;
                End::Stopped
            }
            Err(error) => return Err(error),
        },
    };
    if record.is_none() && end == End::Stopped {
        let stopped = Stopped { during: "before its command began".to_owned() };
        record = keep_nothing(&plan, &stopped, output)?;
    }
    let printed = match &record {
        Some(record) => {
            staging.keep_log(record);
            conclude(&plan, record, &mut hooks)
        }
        None => Ok(String::new()),
    };
    staging.stays = hooks.remain();
    finish(&plan, end, record.as_deref(), printed, output, forms)
}

/// Everything from the job's files to the end of its command, the hooks' endings left out.
fn install_and_run(
    plan: &mut Plan,
    data: &Path,
    staging: &Staging,
    hooks: &mut Hooks,
    output: &Output,
) -> Result<End> {
    install(plan, data, false)?;
    signals::go_on("while its files were made")?;
    hooks.before();
    signals::go_on("while its hooks began")?;
    let processors = hooks.processors();
    let target = start_target(plan, staging, processors)?;
    for arguments in plan.prepare()? {
        prepare(&arguments, staging, processors)?;
    }
    signals::go_on("before its command began")?;
    command(plan, staging, processors, (output, target.as_ref()))
}

/// A record of a job that was stopped before its command could make one.
fn keep_nothing(plan: &Plan, stopped: &Stopped, output: &Output) -> Result<Option<PathBuf>> {
    let scenario = Scenario { job: plan.job.name.clone(), ..Scenario::default() };
    let finished = nothing_measured(&scenario, output, stopped)?;
    // With a folder, the files are written from it at the end.
    let is_stdout_taken = match &finished.folder {
        Some(_) => output.takes_stdout(),
        None => write_results(output, &finished, &[Forms::LOAD])?,
    };
    if !is_stdout_taken {
        print_out(&page(&finished, output, &Forms::LOAD))?;
    }
    Ok(finished.folder)
}

fn start_target(
    plan: &mut Plan,
    staging: &Staging,
    processors: Option<CpuSet>,
) -> Result<Option<Target>> {
    let (Some(mut arguments), Some(spec)) = (plan.serve()?, plan.target.clone()) else {
        return Ok(None);
    };
    let ready = staging.path.join("ready");
    arguments.extend(["--ready-file".to_owned(), ready.to_string_lossy().into_owned()]);
    if arguments.get(1).is_some_and(|kind| Engine::find(kind).is_some()) {
        let log = staging.path.join(TARGET_LOG).to_string_lossy().into_owned();
        arguments.extend(["--log".to_owned(), log]);
    }
    let mut command = plimsoll(&arguments)?;
    let child = spawn_on(command.stdin(Stdio::null()).stdout(Stdio::null()), processors)?;
    let mut target = Target { child };
    let until_ns = now_ns().saturating_add(spec.ready_within.ns);
    let line = loop {
        let text = std::fs::read_to_string(&ready).unwrap_or_default();
        if text.ends_with('\n') {
            break text;
        }
        if let Some(status) = wait_within(&mut target.child, Duration::from_millis(10)) {
            bail!(
                "the target ended before it answered ({status}): plimsoll {}",
                arguments.join(" ")
            );
        }
        signals::go_on("before the target answered")?;
        if now_ns() > until_ns {
            bail!(
                "the target did not answer within {}: plimsoll {}",
                spec.ready_within,
                arguments.join(" ")
            );
        }
    };
    let url = line.split_ascii_whitespace().nth(2).unwrap_or_default();
    let address = url.split_once("://").map_or(url, |(_, address)| address);
    let (host, port) =
        address.rsplit_once(':').ok_or_else(|| anyhow!("the target said '{}'", line.trim()))?;
    for (name, value) in [("target_url", url), ("target_host", host), ("target_port", port)] {
        plan.values.insert(name.to_owned(), value.to_owned());
    }
    Ok(Some(target))
}

/// Runs a command that prepares the target; a load must have no failures.
fn prepare(arguments: &[String], staging: &Staging, processors: Option<CpuSet>) -> Result<()> {
    let mut all = arguments.to_vec();
    if arguments.first().is_some_and(|word| word == "load") {
        all.extend(["--no-record", "--quiet", "--slo", "errors=0%"].map(str::to_owned));
    }
    let step = Step { arguments: &all, processors, limit: PREPARE_LIMIT, shows_progress: false };
    match step.carry_out(&staging.path.join("prepared.json"))? {
        Done::Whole => Ok(()),
        Done::Stopped => Err(Stopped { during: "while preparing".to_owned() }.into()),
        Done::Failed(end, said) => {
            bail!("preparing failed ({end}): plimsoll {}: {said}", arguments.join(" "))
        }
    }
}

/// The arguments that pass this command's own flags on.
#[must_use]
pub fn passed_on(output: &Output) -> Vec<String> {
    let mut more = Vec::new();
    match &output.runs {
        Some(runs) if runs != Path::new("runs") => {
            more.extend(["--runs".to_owned(), runs.to_string_lossy().into_owned()]);
        }
        Some(_) => {}
        None => {
            more.push("--no-record".to_owned());
            let files = [
                ("--json", &output.json),
                ("--junit", &output.junit),
                ("--csv", &output.csv),
                ("--html", &output.html),
            ];
            for (flag, path) in files {
                if let Some(path) = path {
                    more.extend([flag.to_owned(), path.to_string_lossy().into_owned()]);
                }
            }
        }
    }
    more.extend(output.name.iter().map(|name| format!("--name={}", name.0)));
    more.extend(output.labels.iter().map(|one| format!("--label={}={}", one.key, one.value)));
    more.extend(output.watch.iter().map(|one| format!("--watch={one}")));
    more.extend(output.outlets.words());
    more.extend(output.quiet.then(|| "--quiet".to_owned()));
    more.extend(output.verbose.then(|| "--verbose".to_owned()));
    more
}

/// Returns true if the record goes to stdout, in the place of the text.
fn json_to_stdout(output: &Output) -> bool {
    output.runs.is_some() && output.json.as_deref() == Some(Path::new("-"))
}

fn command(
    plan: &Plan,
    staging: &Staging,
    processors: Option<CpuSet>,
    (output, target): (&Output, Option<&Target>),
) -> Result<End> {
    let arguments = [plan.command()?, passed_on(output)].concat();
    let mut command = plimsoll(&arguments)?;
    command.stdin(Stdio::null()).env(RECORDS_TO, staging.records());
    command.env(RECORDS_FOR, &plan.job.name);
    tool::pass_command(&mut command);
    if let Some(target) = target {
        command.env(TARGETS, target.child.id().to_string());
    }
    if json_to_stdout(output) {
        command.stdout(Stdio::null());
    }
    let mut child = spawn_on(&mut command, processors)?;
    Ok(follow(&mut child, Duration::from_nanos(plan.job.timeout.ns), PATIENCE))
}

/// Puts job, score and hooks into the record; the lines to print about them.
fn conclude(plan: &Plan, folder: &Path, hooks: &mut Hooks) -> Result<String> {
    let loaded = plimsoll_report::load::load(folder)?;
    let kept = hooks.keep(folder, &measured(&loaded.record, folder));
    let mut entry = plan.entry()?;
    entry.measure(&serde_json::to_value(&loaded.record)?, &plan.job.metrics);
    let mut printed = String::new();
    // Writing to a text cannot fail.
    if let (Some(score), Some(value), Some(baseline)) = (entry.score, entry.value, entry.baseline) {
        let (score, value) = (significant(score), significant(value));
        let _ = writeln!(
            printed,
            "Score      {score}: {value} by the baseline {baseline} of {}",
            entry.name
        );
    }
    let mpstat = kept.0.get("cpu-mpstat").and_then(|hook| hook.averages.get("cpu-mpstat.txt"));
    if let Some(idle) = mpstat.and_then(|columns| columns.get("%idle")) {
        let busy = significant(100.0 - idle);
        let _ = writeln!(
            printed,
            "Hooks      cpu-mpstat: this machine was {busy} % busy while measuring"
        );
    }
    amend(folder, JobResults::of(entry).with(kept))?;
    Ok(printed)
}

/// Prints what is left to say, and decides on the exit code.
fn finish(
    plan: &Plan,
    end: End,
    record: Option<&Path>,
    printed: Result<String>,
    output: &Output,
    forms: &[Forms],
) -> Result<u8> {
    match printed {
        Ok(printed) if !output.takes_stdout() => print_out(&printed)?,
        Ok(_) => {}
        Err(error) => note(&format!("plimsoll: the record could not be completed: {error:#}")),
    }
    // Without a folder the command has written them itself.
    if let Some(folder) = record.filter(|_| output.has_files()) {
        let record = &plimsoll_report::load::load(folder)?.record;
        write_results(output, Shown { record, folder: Some(folder), course: None }, forms)?;
    }
    Ok(with_files(match end {
        End::Exit(Some(code)) => u8::try_from(code).unwrap_or(exit::FAILED),
        End::Exit(None) => {
            note("plimsoll: the command of the job was killed");
            exit::FAILED
        }
        End::TimedOut => {
            note(&format!(
                "plimsoll: {} was stopped after its timeout, {}",
                plan.job.name, plan.job.timeout
            ));
            exit::NOT_VALID
        }
        End::Stopped => {
            note(&format!("plimsoll: {} was stopped before its end", plan.job.name));
            exit::NOT_VALID
        }
        End::StoppedAfter => {
            note(&format!(
                "plimsoll: {} was stopped in its last hooks; the run itself had ended before",
                plan.job.name
            ));
            exit::NOT_VALID
        }
    }))
}
