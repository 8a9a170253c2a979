//! `plimsoll fleet up`: a bus and agents on this machine.

use super::quoting::shell;
use super::values::PublicNkey;
use crate::build;
use crate::flags::BusFlags;
use crate::targets::written;
use anyhow::{Context, Result, anyhow};
use clap::Args;
use plimsoll_core::clock::now_ns;
use plimsoll_core::system_error::with_advice;
use plimsoll_fleet::hall::{FleetName, HallError, Wanted, find, process_number};
use plimsoll_job::child::{LOOK_EVERY, plimsoll, signal, stop, wait_within};
use plimsoll_job::exit;
use plimsoll_job::output::{note, print_out};
use plimsoll_job::signals;
use plimsoll_job::temporary::temporary_folder;
use plimsoll_job::usage::usage;
use plimsoll_job::watching::{Watch, check as check_watched};
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// Longest time until the bus listens.
const BUS_WITHIN: Duration = Duration::from_secs(60);
/// Longest time until all agents answer.
const AGENTS_WITHIN: Duration = Duration::from_secs(60);
/// Longest wait for a process to shut down cleanly: an agent sends its last figures.
const PATIENCE: Duration = Duration::from_secs(9);
/// Most agents on one machine.
const AGENTS_MAX: i64 = 256;

const EXAMPLES: &str = "\
Examples:
  Three agents, and in another terminal the command that the first one prints:
    plimsoll fleet up --local 3
  Two agents on a known port, which may send load to a network, and whose records stay:
    plimsoll fleet up --local 2 --port 4222 --allow-target 10.1.0.0/16 --data fleet";

/// Flags of `plimsoll fleet up`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct UpArgs {
    /// Number of agents on this machine
    #[arg(long, value_name = "N", required = true, value_parser = clap::value_parser!(u32).range(1..=AGENTS_MAX))]
    local: u32,
    /// Port; 0: any free one, printed
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
    /// Name of the fleet
    #[arg(long, value_name = "NAME", default_value_t)]
    fleet: FleetName,
    /// Target to which an agent may send load [default: its machine]
    ///
    /// A host name, *.DOMAIN, an address, a network such as 10.1.0.0/16, or any. May be repeated; then only these are allowed.
    #[arg(long, value_name = "TARGET", value_parser = written)]
    allow_target: Vec<String>,
    /// Program, process or control group that one more agent watches
    ///
    /// It has --role watch and sends no load. PID, NAME of a program (or its path), or CGROUP; LABEL=NAME names it in the record. May be
    /// repeated.
    #[arg(long, value_name = "PID|NAME|CGROUP")]
    watch: Vec<Watch>,
    #[command(flatten)]
    guard: GuardFlags,
    /// Folder of token and records [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

/// Protection of the bus beside the token, or in its place: the files of the bus, and those of its clients.
#[derive(Args, Debug)]
struct GuardFlags {
    /// Certificate of the server (PEM); clients must use TLS
    #[arg(long, value_name = "FILE", requires_all = ["tls_key", "bus_cacert"], help_heading = "Bus")]
    tls_cert: Option<PathBuf>,
    /// Key of --tls-cert (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert", help_heading = "Bus")]
    tls_key: Option<PathBuf>,
    /// Authorities of clients' certificates (PEM); clients must have one
    #[arg(long, value_name = "FILE", requires_all = ["tls_cert", "bus_cert"], help_heading = "Bus")]
    tls_ca: Option<PathBuf>,
    /// Public NKey of the only user who may connect
    ///
    /// 56 letters and digits, beginning with U. The client has the seed.
    #[arg(long, value_name = "KEY", requires = "bus_nkey", help_heading = "Bus")]
    nkey: Option<String>,
    /// File with the NKey seed for the bus
    #[arg(long, value_name = "FILE", requires = "nkey", help_heading = "Bus")]
    bus_nkey: Option<PathBuf>,
    /// PEM file of authorities to trust for the bus; turns TLS on
    #[arg(long, value_name = "FILE", requires = "tls_cert", help_heading = "Bus")]
    bus_cacert: Option<PathBuf>,
    /// PEM file of the client's certificate for the bus; needs --bus-key
    #[arg(long, value_name = "FILE", requires_all = ["tls_ca", "bus_key"], help_heading = "Bus")]
    bus_cert: Option<PathBuf>,
    /// PEM file of the client's private key for the bus
    #[arg(long, value_name = "FILE", requires = "bus_cert", help_heading = "Bus")]
    bus_key: Option<PathBuf>,
}

impl GuardFlags {
    /// Flags of the bus.
    fn of_bus(&self, folder: &Folder) -> Vec<String> {
        let access = match &self.nkey {
            Some(key) => format!("--nkey={key}"),
            None => format!("--token-file={}", folder.token().display()),
        };
        let files = named(&[
            ("--tls-cert", self.tls_cert.as_ref()),
            ("--tls-key", self.tls_key.as_ref()),
            ("--tls-ca", self.tls_ca.as_ref()),
        ]);
        std::iter::once(access).chain(files).collect()
    }

    /// Flags of a client of the bus.
    fn of_client(&self, folder: &Folder) -> Vec<String> {
        let token = self.nkey.is_none().then(|| folder.token());
        named(&[
            ("--bus-token-file", token.as_ref()),
            ("--bus-nkey", self.bus_nkey.as_ref()),
            ("--bus-cacert", self.bus_cacert.as_ref()),
            ("--bus-cert", self.bus_cert.as_ref()),
            ("--bus-key", self.bus_key.as_ref()),
        ])
    }

    /// The same for this process.
    fn flags(&self, folder: &Folder) -> BusFlags {
        BusFlags {
            bus_token_file: self.nkey.is_none().then(|| folder.token()),
            bus_nkey: self.bus_nkey.clone(),
            bus_cacert: self.bus_cacert.clone(),
            bus_cert: self.bus_cert.clone(),
            bus_key: self.bus_key.clone(),
            ..BusFlags::default()
        }
    }
}

/// Flags with the files that were given.
fn named(files: &[(&str, Option<&PathBuf>)]) -> Vec<String> {
    let given = files.iter().filter_map(|(flag, file)| Some((flag, (*file)?)));
    given.map(|(flag, file)| format!("{flag}={}", file.display())).collect()
}

/// The folder of a fleet; a temporary one goes with it.
struct Folder {
    path: PathBuf,
    _temporary: Option<TempDir>,
}

impl Folder {
    fn new(given: Option<&Path>) -> Result<Self> {
        let Some(given) = given else {
            let folder = temporary_folder("fleet")?;
            return Ok(Self { path: folder.path().to_owned(), _temporary: Some(folder) });
        };
        let wrong = |error: std::io::Error| {
            usage(format!("--data {}: {}", given.display(), with_advice(&error)))
        };
        std::fs::create_dir_all(given).map_err(wrong)?;
        Ok(Self { path: std::path::absolute(given).map_err(wrong)?, _temporary: None })
    }

    fn token(&self) -> PathBuf {
        self.path.join("bus.token")
    }

    fn ready(&self) -> PathBuf {
        self.path.join("bus.ready")
    }
}

/// Processes of a fleet, each with its name. When this is dropped, all end: the agents first, the bus last.
struct Processes(Vec<(String, Child)>);

impl Drop for Processes {
    fn drop(&mut self) {
        let Some((bus, agents)) = self.0.split_first_mut() else { return };
        for (_, agent) in agents.iter_mut() {
            if matches!(agent.try_wait(), Ok(None)) {
                signal(agent, Signal::TERM);
            }
        }
        let until_ns = now_ns() + PATIENCE.as_nanos() as u64;
        for (_, agent) in agents {
            let left = Duration::from_nanos(until_ns.saturating_sub(now_ns()));
            if wait_within(agent, left).is_none() {
                let _ = agent.kill();
                let _ = agent.wait();
            }
        }
        stop(&mut bus.1, Signal::TERM, PATIENCE);
    }
}

impl Processes {
    fn start(&mut self, name: String, words: &[String]) -> Result<()> {
        let mut command = plimsoll(words)?;
        // The ready line of the bus is not that of the fleet.
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.spawn().with_context(|| format!("starting {name}"))?;
        self.0.push((name, child));
        Ok(())
    }

    /// Returns the exit code if the last one has ended; its own line on stderr has the reason.
    fn failed_start(&mut self) -> Result<Option<u8>> {
        let Some((_, child)) = self.0.last_mut() else { return Ok(None) };
        let ended = child.try_wait()?;
        let code = |code: i32| u8::try_from(code).ok().filter(|code| *code != exit::FINE);
        Ok(ended.map(|status| status.code().and_then(code).unwrap_or(exit::FAILED)))
    }

    /// Fails if one of them has ended.
    fn check(&mut self) -> Result<()> {
        for (name, child) in &mut self.0 {
            if let Some(status) = child.try_wait()? {
                return Err(anyhow!("{name} ended by itself ({status}); the fleet has ended"));
            }
        }
        Ok(())
    }
}

impl UpArgs {
    /// Starts the fleet, and waits for a signal.
    ///
    /// # Errors
    /// A process that does not start, or that ends by itself.
    pub fn run(&self) -> Result<u8> {
        signals::stop_flag()?;
        // A mistake is found before anything is started.
        check_watched(&self.watch)?;
        PublicNkey::of_flag(self.guard.nkey.as_deref())?;
        let folder = Folder::new(self.data.as_deref())?;
        let mut processes = Processes(Vec::new());
        let bus = match self.start_bus(&folder, &mut processes)? {
            Ok(bus) => bus,
            Err(code) => return Ok(code),
        };
        for number in 1..=self.local {
            self.start_agent(number, &bus, &folder, &mut processes)?;
        }
        if !self.watch.is_empty() {
            self.start_watcher(&bus, &folder, &mut processes)?;
        }
        if !self.wait_for_agents(&bus, &folder, &mut processes)? {
            return Ok(exit::FINE);
        }
        print_out(&format!("ready fleet {bus}\n"))?;
        note(&format!("plimsoll: to use it: {}", self.words(&bus, &folder)));
        while !signals::is_stopped() {
            processes.check()?;
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(exit::FINE)
    }

    /// Starts the bus and waits until it listens; returns its URL, or an exit code if the bus has reported why it does not start, or
    /// the user stops the wait.
    fn start_bus(&self, folder: &Folder, processes: &mut Processes) -> Result<Result<String, u8>> {
        let ready = folder.ready();
        // One of an earlier fleet would name another port.
        let _ = std::fs::remove_file(&ready);
        let mut words = vec![
            "serve".to_owned(),
            "nats".to_owned(),
            format!("--port={}", self.port),
            format!("--ready-file={}", ready.display()),
        ];
        words.extend(self.guard.of_bus(folder));
        processes.start("the bus".to_owned(), &words)?;
        let until_ns = now_ns() + BUS_WITHIN.as_nanos() as u64;
        loop {
            let text = std::fs::read_to_string(&ready).unwrap_or_default();
            if let Some(url) =
                text.strip_prefix("ready nats ").and_then(|url| url.strip_suffix('\n'))
            {
                return Ok(Ok(url.to_owned()));
            }
            if signals::is_stopped() {
                return Ok(Err(exit::FINE));
            }
            if let Some(code) = processes.failed_start()? {
                return Ok(Err(code));
            }
            if now_ns() > until_ns {
                return Err(anyhow!("the bus does not listen within {BUS_WITHIN:?}"));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn start_agent(
        &self,
        number: u32,
        bus: &str,
        folder: &Folder,
        processes: &mut Processes,
    ) -> Result<()> {
        let name = format!("agent-{number}");
        let own = folder.path.join(&name);
        let mut words = vec![
            "agent".to_owned(),
            format!("--bus={bus}"),
            format!("--fleet={}", self.fleet),
            format!("--name={name}"),
            format!("--runs={}", own.join("runs").display()),
            format!("--files={}", own.join("files").display()),
        ];
        words.extend(self.guard.of_client(folder));
        words.extend(self.allow_target.iter().map(|target| format!("--allow-target={target}")));
        processes.start(name, &words)
    }

    /// Starts the agent that watches.
    fn start_watcher(&self, bus: &str, folder: &Folder, processes: &mut Processes) -> Result<()> {
        let name = "watcher".to_owned();
        let mut words = vec![
            "agent".to_owned(),
            "--role=watch".to_owned(),
            format!("--bus={bus}"),
            format!("--fleet={}", self.fleet),
            format!("--name={name}"),
        ];
        words.extend(self.guard.of_client(folder));
        words.extend(self.watch.iter().map(|thing| format!("--watch={thing}")));
        processes.start(name, &words)
    }

    /// Waits until all agents answer, as a coordinator does; false if the user stops the wait.
    fn wait_for_agents(
        &self,
        bus: &str,
        folder: &Folder,
        processes: &mut Processes,
    ) -> Result<bool> {
        let flags = BusFlags {
            bus: Some(bus.parse().map_err(|error| anyhow!("{bus}: {error}"))?),
            fleet: self.fleet.clone(),
            ..self.guard.flags(folder)
        };
        let connection = flags.connect("plimsoll fleet", BUS_WITHIN)?;
        let watchers = usize::from(!self.watch.is_empty());
        let wanted = Wanted { agents: self.local as usize, watchers, within: AGENTS_WITHIN };
        let mut failed = None;
        let processes = std::cell::RefCell::new((processes, &mut failed));
        let is_over = || {
            let (processes, failed) = &mut *processes.borrow_mut();
            if let Err(error) = processes.check() {
                failed.get_or_insert(error);
            }
            failed.is_some() || signals::is_stopped()
        };
        let own = process_number();
        let found =
            find(&*connection, (&self.fleet, own), &build::own()?, wanted, &is_over, &mut |line| {
                note(&format!("plimsoll: {line}"))
            });
        match (failed, found) {
            (Some(error), _) => Err(error),
            (None, Err(HallError::Stopped)) => Ok(false),
            (None, found) => Ok(found.map(|_| true)?),
        }
    }

    /// A command line that uses the fleet.
    fn words(&self, bus: &str, folder: &Folder) -> String {
        let fleet = match self.fleet == FleetName::default() {
            true => String::new(),
            false => format!(" --fleet {}", self.fleet),
        };
        let watchers = if self.watch.is_empty() { "" } else { " --watchers 1" };
        let client = self.guard.of_client(folder);
        let client: String = client.iter().map(|word| format!(" {}", shell(word))).collect();
        format!("plimsoll load URL --agents {}{watchers} --bus {bus}{fleet}{client}", self.local)
    }
}
