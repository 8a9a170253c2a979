//! `plimsoll list`, `info`, `install` and `clean`: the catalogue, and the files of its jobs.

use crate::engines::Engine;
use crate::install::{self, Installed};
use crate::job::{Job, Role};
use crate::near_miss::unknown;
use crate::plan::{Choices, Plan};
use crate::{QUICKSTART, QUICKSTART_IS, all, named, names};
use anyhow::Result;
use clap::Args;
use comfy_table::presets::NOTHING;
use comfy_table::{ContentArrangement, Table};
use plimsoll_job::exit;
use plimsoll_job::job::{self, Program};
use plimsoll_job::output::print_out;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

const LIST_EXAMPLES: &str = "\
Examples:
  All jobs:                  plimsoll list
  By scope:                  plimsoll list --by-scope
  Those with a tag:          plimsoll list recommendation
  For programs:              plimsoll list --json";

/// List the jobs, and the engines that can be targets
#[derive(Args, Debug)]
#[command(after_help = LIST_EXAMPLES)]
pub struct ListArgs {
    /// Only jobs with this tag
    #[arg(value_name = "TAG")]
    tag: Option<String>,
    /// Group by scope
    ///
    /// The kind of system that a job measures.
    #[arg(short = 's', long)]
    by_scope: bool,
    /// Group by component
    ///
    /// The part of a machine that a job loads.
    #[arg(short = 'c', long, conflicts_with = "by_scope")]
    by_component: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const INFO_EXAMPLES: &str = "\
Examples:
  Roles, variables and hooks of a job:    plimsoll info fbench
  The same for your own file:             plimsoll info my.toml --json";

/// Show the commands, roles, variables and hooks of a job
///
/// Of an engine, it shows where it is.
#[derive(Args, Debug)]
#[command(after_help = INFO_EXAMPLES)]
pub struct InfoArgs {
    /// Job, TOML file, or engine
    #[arg(value_name = "JOB|FILE.toml|ENGINE")]
    job: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const INSTALL_EXAMPLES: &str = "\
Examples:
  The files of all jobs:       plimsoll install
  Those of one, created again: plimsoll install fbench --force
  A real engine as a target:   plimsoll install opensearch    (or elasticsearch, postgresql, voltdb)

A run also creates missing files of its job. Engines are only installed if they are named, into
$PLIMSOLL_HOME/engines, or ~/.local/share/plimsoll/engines; that takes Java, Maven and the network.";

/// Create the files that jobs need, or install an engine
///
/// A run also creates the missing files of its job.
#[derive(Args, Debug)]
#[command(after_help = INSTALL_EXAMPLES)]
pub struct InstallArgs {
    /// Jobs, files or engines [default: all jobs]
    #[arg(value_name = "JOB|FILE.toml|ENGINE")]
    jobs: Vec<String>,
    /// Create the files again
    #[arg(short = 'f', long)]
    force: bool,
    /// Folder of the files that jobs create
    #[arg(long, value_name = "DIR", default_value = ".plimsoll")]
    data: PathBuf,
}

const CLEAN_EXAMPLES: &str = "\
Examples:
  The files of all jobs:    plimsoll clean
  Those of one:             plimsoll clean fbench
  An installed engine:      plimsoll clean opensearch

Run records stay, and so do engines that are not named.";

/// Remove the files of jobs, or an installed engine
#[derive(Args, Debug)]
#[command(after_help = CLEAN_EXAMPLES)]
pub struct CleanArgs {
    /// Jobs, files or engines [default: all jobs]
    #[arg(value_name = "JOB|FILE.toml|ENGINE")]
    jobs: Vec<String>,
    /// Folder of the files that jobs create
    #[arg(long, value_name = "DIR", default_value = ".plimsoll")]
    data: PathBuf,
}

/// Entry of `list` for a job.
struct Listed {
    name: String,
    tags: BTreeMap<String, Vec<String>>,
    description: String,
}

fn listed() -> Result<Vec<Listed>> {
    let listed = |job: Job| Listed { name: job.name, tags: job.tags, description: job.description };
    let mut jobs: Vec<Listed> = all()?.into_iter().map(listed).collect();
    let tags = [("scope", vec!["search"]), ("component", vec!["cpu", "memory", "network"])];
    let tags = tags
        .map(|(group, words)| (group.to_owned(), words.into_iter().map(str::to_owned).collect()));
    jobs.push(Listed {
        name: QUICKSTART.to_owned(),
        tags: tags.into(),
        description: QUICKSTART_IS.to_owned(),
    });
    jobs.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(jobs)
}

impl job::Job for ListArgs {
    const NAME: &'static str = "list";

    fn run(&self, _program: &Program) -> Result<u8> {
        list(self)
    }
}

/// Runs `list`.
///
/// # Errors
/// A tag that no job has.
fn list(args: &ListArgs) -> Result<u8> {
    let mut jobs = listed()?;
    let has = |job: &Listed, tag: &str| job.tags.values().flatten().any(|own| own == tag);
    if let Some(tag) = &args.tag {
        let mut known: Vec<&str> =
            jobs.iter().flat_map(|job| job.tags.values().flatten()).map(String::as_str).collect();
        known.sort_unstable();
        known.dedup();
        if !known.contains(&tag.as_str()) {
            return Err(unknown("tag", tag, &known));
        }
        jobs.retain(|job| has(job, tag));
    }
    if args.json {
        let about = |job: &Listed| json!({"name": job.name, "tags": job.tags, "description": job.description});
        let jobs: Vec<Value> = jobs.iter().map(about).collect();
        let engines: Vec<Value> = Engine::ALL.iter().map(|engine| engine_json(*engine)).collect();
        let all = json!({"schema": "plimsoll.jobs/1", "jobs": jobs, "engines": engines});
        print_out(&format!("{all:#}\n"))?;
        return Ok(exit::FINE);
    }
    let group = match (args.by_scope, args.by_component) {
        (true, _) => Some("scope"),
        (_, true) => Some("component"),
        _ => None,
    };
    let mut out = String::new();
    match group {
        None => {
            table(&mut out, jobs.iter());
            if args.tag.is_none() {
                engines_table(&mut out);
            }
        }
        Some(group) => {
            let words = |job: &Listed| job.tags.get(group).cloned().unwrap_or_default();
            let mut all: Vec<String> = jobs.iter().flat_map(words).collect();
            all.sort_unstable();
            all.dedup();
            for word in all {
                // Writing to a text cannot fail.
                let _ = writeln!(out, "{group}: {word}");
                table(&mut out, jobs.iter().filter(|job| words(job).contains(&word)));
                out.push('\n');
            }
        }
    }
    print_out(&out)?;
    Ok(exit::FINE)
}

fn table<'a>(out: &mut String, jobs: impl Iterator<Item = &'a Listed>) {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_width(100);
    table.set_header(["Job", "Tags", "Description"]);
    for job in jobs {
        let tags: Vec<&str> = job.tags.values().flatten().map(String::as_str).collect();
        table.add_row([job.name.as_str(), &tags.join(", "), &job.description]);
    }
    write_table(out, &table);
}

fn write_table(out: &mut String, table: &Table) {
    for line in table.lines() {
        // Writing to a text cannot fail.
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

fn engines_table(out: &mut String) {
    out.push('\n');
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_width(100);
    table.set_header(["Engine", "Version", "Installed"]);
    for engine in Engine::ALL {
        let state = engine.state();
        let installed = match &state.place {
            Some(place) => place.display().to_string(),
            None => format!("no; plimsoll install {}", engine.name()),
        };
        table.add_row([engine.name(), &state.version, &installed]);
    }
    write_table(out, &table);
}

fn engine_json(engine: Engine) -> Value {
    let state = engine.state();
    json!({
        "name": engine.name(),
        "description": engine.description(),
        "version": state.version,
        "installed": state.place,
        "bytes": state.bytes,
    })
}

fn engine_text(engine: Engine) -> String {
    let (name, state) = (engine.name(), engine.state());
    let installed = match (&state.place, state.bytes) {
        (Some(place), Some(bytes)) => format!("{} ({} MB)", place.display(), bytes / 1_000_000),
        (Some(place), None) => place.display().to_string(),
        (None, _) => format!("no; run: plimsoll install {name}"),
    };
    format!(
        "{name} {}\n  {}\n\n  installed  {installed}\n  serve      plimsoll serve {name} --port 0\n  \
         in a job   target = {{ serve = [\"{name}\", \"--port\", \"0\"], ready_within = \"2m\" }}\n",
        state.version,
        engine.description()
    )
}

impl job::Job for InfoArgs {
    const NAME: &'static str = "info";

    fn run(&self, _program: &Program) -> Result<u8> {
        info(self)
    }
}

/// Runs `info`.
///
/// # Errors
/// No such job, or a file that is wrong.
fn info(args: &InfoArgs) -> Result<u8> {
    if args.job == QUICKSTART {
        let text = if args.json {
            format!(
                "{:#}\n",
                json!({"name": QUICKSTART, "description": QUICKSTART_IS, "roles": {}})
            )
        } else {
            format!(
                "{QUICKSTART}\n  {QUICKSTART_IS}\n  It is code: its second rate depends on the result of its first.\n"
            )
        };
        print_out(&text)?;
        return Ok(exit::FINE);
    }
    if let Some(engine) = Engine::find(&args.job) {
        let json = || format!("{:#}\n", engine_json(engine));
        print_out(&if args.json { json() } else { engine_text(engine) })?;
        return Ok(exit::FINE);
    }
    let job = job_or_engine(&args.job)?;
    print_out(&if args.json { info_json(&job)? } else { info_text(&job)? })?;
    Ok(exit::FINE)
}

/// The roles of a job by name; one without a name when it has none.
fn roles(job: &Job) -> Result<Vec<(Option<String>, Role)>> {
    if job.roles.is_empty() {
        return Ok(vec![job.role(None)?]);
    }
    job.roles.keys().map(|name| job.role(Some(name))).collect()
}

/// A command as the job writes it, groups in brackets.
fn shown(arguments: &[crate::vars::Argument]) -> String {
    use crate::vars::Argument;
    let shown = |argument: &Argument| match argument {
        Argument::One(text) => text.clone(),
        Argument::Group(texts) => format!("[{}]", texts.join(" ")),
    };
    let words: Vec<String> = arguments.iter().map(shown).collect();
    format!("plimsoll {}", words.join(" "))
}

fn info_json(job: &Job) -> Result<String> {
    let role = |role: &Role| {
        let vars: BTreeMap<&String, Value> = role
            .vars
            .iter()
            .map(|(name, variable)| {
                let default = (!variable.required).then_some(&variable.default);
                (name, json!({"default": default, "required": variable.required, "help": variable.help}))
            })
            .collect();
        json!({"command": shown(&role.command), "vars": vars})
    };
    let roles: BTreeMap<String, Value> = roles(job)?
        .iter()
        .map(|(name, one)| (name.clone().unwrap_or_default(), role(one)))
        .collect();
    let hooks: Vec<Value> =
        job.hooks.iter().map(|hook| json!({"name": hook.name, "options": hook.options})).collect();
    let about = json!({
        "name": job.name,
        "description": job.description,
        "tags": job.tags,
        "default_role": job.default_role,
        "roles": roles,
        "hooks": hooks,
        "timeout": job.timeout,
        "metrics": job.metrics,
        "baseline": job.baseline,
    });
    Ok(format!("{about:#}\n"))
}

fn info_text(job: &Job) -> Result<String> {
    let mut out = format!("{}\n  {}\n", job.name, job.description);
    // Writing to a text cannot fail, here and below.
    for (group, words) in &job.tags {
        let _ = writeln!(out, "  {group}: {}", words.join(", "));
    }
    for (name, role) in roles(job)? {
        if let Some(name) = name {
            let is_default = job.default_role.as_ref() == Some(&name);
            let _ = writeln!(out, "\nrole {name}{}", if is_default { " (default)" } else { "" });
        } else {
            out.push('\n');
        }
        for line in &role.install {
            let _ = writeln!(out, "  install  {}", shown(line));
        }
        if let Some(target) = &role.target {
            let _ =
                writeln!(out, "  target   {}", shown(&target.serve).replacen(' ', " serve ", 1));
        }
        for line in &role.prepare {
            let _ = writeln!(out, "  prepare  {}", shown(line));
        }
        let _ = writeln!(out, "  run      {}", shown(&role.command));
        for (name, variable) in &role.vars {
            let value = if variable.required {
                "must be given".to_owned()
            } else {
                format!("'{}'", variable.default)
            };
            let _ = writeln!(out, "  -i {name}=  {value}  {}", variable.help);
        }
    }
    out.push('\n');
    for hook in &job.hooks {
        let _ = writeln!(out, "hook {}", hook.shown());
    }
    let baseline = job.baseline.map_or("none".to_owned(), |baseline| baseline.to_string());
    let _ = writeln!(
        out,
        "timeout {}, baseline {baseline}, figure {}",
        job.timeout,
        job.metrics.join(" or ")
    );
    Ok(out)
}

/// The jobs that were named, or all.
fn chosen(given: &[String]) -> Result<Vec<Job>> {
    if given.is_empty() {
        return all();
    }
    // The one job without files of its own and without TOML.
    let of_jobs = given.iter().filter(|name| *name != QUICKSTART && Engine::find(name).is_none());
    of_jobs.map(|name| job_or_engine(name)).collect()
}

/// A job; the error for a name that is neither a job's nor a file's lists the engines too.
fn job_or_engine(name: &str) -> Result<Job> {
    if name.ends_with(".toml") || names().contains(&name) {
        return named(name);
    }
    let known: Vec<&str> = names().into_iter().chain(Engine::names()).collect();
    Err(unknown("job or engine", name, &known))
}

/// The engines that were named.
fn engines(given: &[String]) -> impl Iterator<Item = Engine> {
    given.iter().filter_map(|name| Engine::find(name))
}

impl job::Job for InstallArgs {
    const NAME: &'static str = "install";

    fn run(&self, _program: &Program) -> Result<u8> {
        install(self)
    }
}

/// Runs `install`.
///
/// # Errors
/// No such job, or a command that fails.
fn install(args: &InstallArgs) -> Result<u8> {
    plimsoll_job::signals::stop_flag()?;
    let jobs = chosen(&args.jobs)?;
    for engine in engines(&args.jobs) {
        let told = match engine.install(args.force)? {
            Installed::Now => "installed",
            Installed::Nothing | Installed::Before => "installed before",
        };
        print_out(&format!("{}: {told}\n", engine.name()))?;
    }
    for job in jobs {
        let data = args.data.join(&job.name);
        let told = match installable(&job, &data)? {
            None => "nothing to install",
            Some(plan) => match install::install(&plan, &data, args.force)? {
                Installed::Nothing => "nothing to install",
                Installed::Before => "installed before",
                Installed::Now => "installed",
            },
        };
        print_out(&format!("{}: {told}\n", job.name))?;
    }
    Ok(exit::FINE)
}

/// The job's plan with its defaults; `None` when what it needs is only known when it runs.
fn installable(job: &Job, data: &Path) -> Result<Option<Plan>> {
    if !job.roles.is_empty() && job.default_role.is_none() {
        return Ok(None);
    }
    let (_, role) = job.role(None)?;
    if role.install.is_empty() {
        return Ok(None);
    }
    Plan::new(job, &Choices::default(), data).map(Some)
}

impl job::Job for CleanArgs {
    const NAME: &'static str = "clean";

    fn run(&self, _program: &Program) -> Result<u8> {
        clean(self)
    }
}

/// Runs `clean`.
///
/// # Errors
/// No such job, or a folder that plimsoll has not made.
fn clean(args: &CleanArgs) -> Result<u8> {
    let jobs = chosen(&args.jobs)?;
    let told = |gone| if gone { "removed" } else { "nothing to remove" };
    for engine in engines(&args.jobs) {
        print_out(&format!("{}: {}\n", engine.name(), told(engine.clean()?)))?;
    }
    for job in jobs {
        let gone = install::clean(&args.data.join(&job.name))?;
        print_out(&format!("{}: {}\n", job.name, told(gone)))?;
    }
    // An empty folder is of no use to anybody; one that is not empty stays.
    let _ = std::fs::remove_dir(&args.data);
    Ok(exit::FINE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{find, names};

    #[test]
    fn every_job_can_be_listed_and_told() {
        let listed: Vec<String> = listed().unwrap().into_iter().map(|job| job.name).collect();
        assert_eq!(listed, names());
        for name in names().into_iter().filter(|name| *name != QUICKSTART) {
            let job = find(name).unwrap();
            let text = info_text(&job).unwrap();
            assert!(
                text.contains("  run      plimsoll") && text.contains("hook cpu-mpstat"),
                "{text}"
            );
            let value: Value = serde_json::from_str(&info_json(&job).unwrap()).unwrap();
            assert_eq!(value["name"], name);
        }
    }
}
