//! `plimsoll install` and `plimsoll clean`: the files of jobs, and engines.

use super::{DATA, job_or_engine};
use crate::engines::Engine;
use crate::install::{self, Installed};
use crate::job::Job;
use crate::plan::{Choices, Plan};
use crate::{QUICKSTART, all};
use anyhow::Result;
use clap::Args;
use plimsoll_job::exit;
use plimsoll_job::job::{self, Program};
use plimsoll_job::output::print_out;
use plimsoll_job::usage::usage;
use std::path::{Path, PathBuf};

const INSTALL_EXAMPLES: &str = "\
Examples:
  The files of all jobs:       plimsoll install
  Those of one, created again: plimsoll install fbench --force
  A real engine as a target:   plimsoll install opensearch    (or elasticsearch, postgresql, voltdb)
  The server of the bus:       plimsoll install nats

A run also creates missing files of its job. Engines are only installed if they are named, into
$PLIMSOLL_HOME/engines, or ~/.local/share/plimsoll/engines; that takes the network, and
Java and Maven, or Go for nats.";

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
    #[arg(long, value_name = "DIR", default_value = DATA)]
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
    #[arg(long, value_name = "DIR", default_value = DATA)]
    data: PathBuf,
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

/// Rejects a folder for files where no job is named that could have some.
fn check_data(jobs: &[Job], data: &Path) -> Result<()> {
    match jobs.is_empty() && data != Path::new(DATA) {
        true => Err(usage(
            "--data is the folder of files that jobs create, and engines have another one; leave it out",
        )),
        false => Ok(()),
    }
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
    check_data(&jobs, &args.data)?;
    for engine in engines(&args.jobs) {
        let result = match engine.install(args.force)? {
            Installed::Now => "installed",
            Installed::Nothing | Installed::Before => "installed before",
        };
        print_out(&format!("{}: {result}\n", engine.name()))?;
    }
    for job in jobs {
        let data = args.data.join(&job.name);
        let result = match installable(&job, &data)? {
            None => "nothing to install",
            Some(plan) => match install::install(&plan, &data, args.force)? {
                Installed::Nothing => "nothing to install",
                Installed::Before => "installed before",
                Installed::Now => "installed",
            },
        };
        print_out(&format!("{}: {result}\n", job.name))?;
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
    check_data(&jobs, &args.data)?;
    let result = |gone| if gone { "removed" } else { "nothing to remove" };
    for engine in engines(&args.jobs) {
        print_out(&format!("{}: {}\n", engine.name(), result(engine.clean()?)))?;
    }
    for job in jobs {
        let gone = install::clean(&args.data.join(&job.name))?;
        print_out(&format!("{}: {}\n", job.name, result(gone)))?;
    }
    // An empty folder has no use; one that is not empty stays.
    let _ = std::fs::remove_dir(&args.data);
    Ok(exit::FINE)
}
