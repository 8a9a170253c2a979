//! `plimsoll agent`: waits for runs, and carries out a part of each.

use crate::build;
use crate::flags::BusFlags;
use crate::targets::{self, AllowedTarget};
use crate::words::{self, FILES, To};
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use plimsoll_bus::Bus;
use plimsoll_core::units::Span;
use plimsoll_engine::health::machine;
use plimsoll_fleet::files::lay_out;
use plimsoll_fleet::hall::{Called, Waiting, process_number};
use plimsoll_fleet::message::{Here, Members, Plan, Role};
use plimsoll_fleet::place::{AgentPost, Place, take_place};
use plimsoll_job::exit;
use plimsoll_job::job::{Job, Program};
use plimsoll_job::output::note;
use plimsoll_job::signals;
use plimsoll_job::temporary::temporary_folder;
use plimsoll_job::usage::{one_line, usage};
use plimsoll_job::watching::{self, Watch, watch_as_agent};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Commands of which an agent carries out a part.
const JOBS: [&str; 9] =
    ["load", "seek", "search", "rank", "fbench", "visit", "feed", "voter", "hello"];

/// Interval at which a process of `--processes` looks whether the one that started it is there.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Time in which such a process ends its load in order once the one that started it is gone.
const PATIENCE: Duration = Duration::from_secs(4);

const EXAMPLES: &str = "\
Examples:
  A fleet of two on this machine, and a run by both:
    plimsoll serve nats --port 4222 &
    plimsoll agent --bus nats://127.0.0.1:4222 --name a &
    plimsoll agent --bus nats://127.0.0.1:4222 --name b &
    plimsoll load http://127.0.0.1:8080/ --rate 1000 --agents 2 --bus nats://127.0.0.1:4222
  An agent on the target's machine that sends no load and reports what the target uses:
    plimsoll agent --bus nats://bus.internal:4222 --role watch --watch mysqld
  An agent that may send load to machines of a network:
    plimsoll agent --bus nats://bus.internal:4222 --allow-target 10.1.0.0/16";

/// Wait for runs on a bus and carry out a part of each
///
/// A run with --agents N is shared out exactly over N agents. An agent sends no load without a coordinator: if the coordinator
/// is silent for 8 s, the agent ends its part. It keeps a record of its own part.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct AgentArgs {
    #[command(flatten)]
    at: BusFlags,
    /// Name of the agent, unique in its fleet [default: HOST-PID]
    #[arg(long, value_name = "NAME", help_heading = "Agent")]
    name: Option<String>,
    /// Work of the agent: load or watch
    ///
    /// load carries out a part of each run. watch sends no load: during each run of its fleet it samples its machine, and the
    /// processes named by --watch, once a second; the coordinator shows them in its record and on its page.
    #[arg(
        long,
        value_name = "ROLE",
        default_value = "load",
        hide_possible_values = true,
        help_heading = "Agent"
    )]
    role: RoleFlag,
    /// Process or control group to watch beside the machine
    ///
    /// For --role watch. PID, NAME of a program (or its path), or CGROUP (its path, or a unit such as nginx.service); LABEL=NAME names it
    /// in the record. May be repeated. No name comes over the bus.
    #[arg(long, value_name = "PID|NAME|CGROUP", help_heading = "Agent")]
    watch: Vec<Watch>,
    /// End after one run
    ///
    /// The exit code is 0 if the agent has carried out its part; the coordinator judges the run.
    #[arg(long, help_heading = "Agent")]
    once: bool,
    /// Target to which an agent may send load [default: its machine]
    ///
    /// A host name, *.DOMAIN, an address, a network such as 10.1.0.0/16, or any. May be repeated; then only these are allowed.
    #[arg(long, value_name = "TARGET", help_heading = "Agent")]
    allow_target: Vec<AllowedTarget>,
    /// Folder of received files [default: a temporary one]
    ///
    /// They are kept by their content. A file that is there already is not sent again.
    #[arg(long, value_name = "DIR", help_heading = "Agent")]
    files: Option<PathBuf>,
    /// Folder of run records
    #[arg(long, value_name = "DIR", default_value = "runs", help_heading = "Agent")]
    runs: PathBuf,
    /// Longest wait for the bus
    #[arg(long, value_name = "TIME", default_value = "5s", help_heading = "Agent")]
    wait: Span,
}

/// The value of `--role`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RoleFlag {
    /// Carries out a part of each run
    Load,
    /// Reports the resources of its machine, and sends no load
    Watch,
}

impl From<RoleFlag> for Role {
    fn from(flag: RoleFlag) -> Self {
        match flag {
            RoleFlag::Load => Self::Load,
            RoleFlag::Watch => Self::Watch,
        }
    }
}

impl Job for AgentArgs {
    const NAME: &'static str = "agent";

    fn run(&self, program: &Program) -> Result<u8> {
        let done = self.wait_and_work(program);
        leave(&self.runs, self.at.socket().as_deref());
        done
    }
}

impl AgentArgs {
    /// Waits for runs, and carries out a part of each.
    fn wait_and_work(&self, program: &Program) -> Result<u8> {
        let stop = signals::stop_flag()?;
        let own = process_number();
        let name = self.name()?;
        self.check_role()?;
        self.check_watch()?;
        let wait = Duration::from_nanos(self.wait.ns);
        let bus: Arc<dyn Bus> = self.at.connect(&format!("plimsoll agent {name}"), wait)?;
        let here = Here {
            coordinator: 0,
            agent: own,
            name: name.clone(),
            host: machine().hostname,
            pid: std::process::id(),
            role: self.role.into(),
            build: build::own()?,
            is_busy: false,
        };
        let fleet = &self.at.fleet;
        let waiting = Waiting::begin(&*bus, fleet, own)?;
        let at = self.at.bus.as_ref().map(ToString::to_string).unwrap_or_default();
        let is_process = self.at.is_of_process();
        if is_process {
            self.end_without_hub(&bus)?;
        } else {
            note(&format!("plimsoll: agent {name} waits for runs at {at}, fleet {fleet}"));
        }
        let called = waiting.wait(&*bus, fleet, &here, &signals::is_stopped)?;
        let Some(called) = called else { return Ok(exit::FINE) };
        let (called, calls) = called;
        let Called { coordinator, .. } = called;
        let _engaged = calls.answer_busy(bus.clone(), fleet.clone(), here, coordinator)?;
        let post = Arc::new(AgentPost::start(bus, fleet, (own, &name), called, stop)?);
        if is_process {
            post.share_clock();
        }
        let part = match self.role {
            RoleFlag::Load => self.part(&post, program),
            RoleFlag::Watch => watch_as_agent(&post, &self.watch).map(|()| exit::FINE),
        };
        let is_done = part.is_ok();
        let code = part.unwrap_or_else(|error| {
            let error = targets::check().err().unwrap_or(error);
            let (line, code) = (one_line(&error), exit::of_error(&error));
            if !is_process {
                note(&format!("plimsoll: agent {name}, run {coordinator:016x}: {line}"));
            }
            post.fail(&line, code);
            code
        });
        // The coordinator's order to stop is no wish of the user.
        let is_ended = signals::is_stopped() && !post.was_told_to_stop();
        drop(post);
        match (is_ended, self.once) {
            (true, _) => Ok(code),
            // The coordinator judges the run. A scheduler that sees this process fail would end agents that are not done yet.
            (false, true) => Ok(if is_done { exit::FINE } else { code }),
            (false, false) => again(),
        }
    }
}

/// Removes the folder of a process that another one has started, and the folder above it once no process is left in it: if the
/// process that made it was killed, no other would.
fn leave(own: &Path, socket: Option<&Path>) {
    let (Some(socket), Some(above)) = (socket, own.parent()) else { return };
    let is_named = own.file_name().and_then(|name| name.to_str());
    if socket.parent() != Some(above)
        || !is_named.is_some_and(|name| name.starts_with(Members::PROCESS))
    {
        return;
    }
    let _ = std::fs::remove_dir_all(own);
    let left: Vec<_> = std::fs::read_dir(above).into_iter().flatten().flatten().collect();
    if left.iter().all(|entry| entry.path() == socket) {
        let _ = std::fs::remove_file(socket);
        // Another process may do the same at this moment.
        let _ = std::fs::remove_dir(above);
    }
}

/// Variable of the environment of an agent that has carried out a run.
const AGAIN: &str = "PLIMSOLL_AGENT_AGAIN";

/// Becomes a fresh process of the same command: nothing of a run is left for the next one.
fn again() -> Result<u8> {
    let mut words = std::env::args_os();
    let program = words.next().unwrap_or_else(|| "plimsoll".into());
    let mut command = std::process::Command::new("/proc/self/exe");
    Err(command.arg0(program).args(words).env(AGAIN, "1").exec())
        .context("starting the agent again")
}

impl AgentArgs {
    /// Ends this process some time after the one that started it, whatever it does at that moment.
    fn end_without_hub(&self, bus: &Arc<dyn Bus>) -> Result<()> {
        let (bus, own, socket) = (bus.clone(), self.runs.clone(), self.at.socket());
        let watch = move || {
            while bus.state().is_connected() {
                std::thread::sleep(LOOK_EVERY);
            }
            std::thread::sleep(PATIENCE);
            leave(&own, socket.as_deref());
            std::process::exit(i32::from(exit::NOT_VALID));
        };
        std::thread::Builder::new().name("hub".to_owned()).spawn(watch)?;
        Ok(())
    }

    fn name(&self) -> Result<String> {
        let name = self.name.clone();
        let name = name.unwrap_or_else(|| format!("{}-{}", machine().hostname, std::process::id()));
        let is_good = |sign: char| sign.is_ascii_graphic();
        match (1..=80).contains(&name.len()) && name.chars().all(is_good) {
            true => Ok(name),
            false => Err(usage(format!("--name '{name}': use 1 to 80 visible ASCII characters"))),
        }
    }

    /// Rejects flags of the other role. A folder of records is accepted for both, so that agents can share a command line.
    fn check_role(&self) -> Result<()> {
        let of_load =
            [("--allow-target", !self.allow_target.is_empty()), ("--files", self.files.is_some())];
        match (self.role, of_load.iter().find(|(_, is)| *is)) {
            (RoleFlag::Load, _) if !self.watch.is_empty() => {
                Err(usage("--watch belongs to an agent that watches; add --role watch"))
            }
            (RoleFlag::Watch, Some((flag, _))) => Err(usage(format!(
                "{flag} belongs to an agent that sends load; leave it out with --role watch"
            ))),
            _ => Ok(()),
        }
    }

    /// Makes sure that `--watch` names things that exist: a mistake is found when the agent is started, and not in a run. Between two
    /// runs a thing may be away.
    fn check_watch(&self) -> Result<()> {
        match watching::check(&self.watch) {
            Err(error) if std::env::var_os(AGAIN).is_some() => {
                note(&format!("plimsoll: {}; looked for again in the next run", one_line(&error)));
                Ok(())
            }
            checked => checked,
        }
    }

    /// Carries out the part of a run that the coordinator gives this agent.
    fn part(&self, post: &Arc<AgentPost>, program: &Program) -> Result<u8> {
        let plan = post.plan()?;
        let temporary = temporary_folder("agent")?;
        let folder = temporary.path().join("run");
        let kept = self.files.clone().unwrap_or_else(|| temporary.path().join("files"));
        let places = post.fetch(&plan, &kept, &temporary.path().join("secrets"))?;
        let files: Vec<_> = plan.files.iter().cloned().zip(places).collect();
        lay_out(&folder, &files)?;
        let words = self.words(&plan, &folder, program)?;
        (program.check_words)(&words).map_err(usage)?;
        targets::restrict(self.allow_target.clone());
        take_place(Place::Agent(post.clone()));
        let code = (program.run_words)(&words)?;
        targets::check()?;
        Ok(code)
    }

    /// The words of this agent's part. Only commands that send load are carried out, and only files of the run are read.
    fn words(&self, plan: &Plan, folder: &Path, program: &Program) -> Result<Vec<String>> {
        let name = plan.words.first().map_or("", String::as_str);
        if !JOBS.contains(&name) {
            return Err(usage(format!("an agent does not carry out '{name}'")));
        }
        let folder = folder.display().to_string();
        let mut words: Vec<String> =
            plan.words.iter().map(|word| word.replace(FILES, &folder)).collect();
        let parser = (program.parser)();
        let command = parser.find_subcommand(name).context("its command")?;
        let to = if self.at.is_of_process() { To::Processes } else { To::Agents };
        words::check(command, &plan.words, to)?;
        let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
        let slice = plan.slice;
        let mut own = vec![
            format!("--part={}/{}", slice.index, slice.of),
            format!("--runs={}", self.runs.display()),
            "--quiet".to_owned(),
        ];
        if to == To::Processes {
            // The process that started this one watches the machine for all.
            own.push("--watch=none".to_owned());
        }
        words.splice(end..end, own);
        Ok(words)
    }
}
