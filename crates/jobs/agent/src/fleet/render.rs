//! `plimsoll fleet render`: the texts that place a fleet.

use super::placement::{
    Guard, Login, Placed, Placement, Security, Watching, compose, kubernetes, slurm, ssh, systemd,
};
use super::values::{
    Cpu, HostName, Image, Memory, ObjectName, PodLabel, ProgramPath, PublicNkey, SshHost, watched,
};
use crate::targets::written;
use anyhow::Result;
use clap::{ArgGroup, Args};
use plimsoll_core::system_error::with_advice;
use plimsoll_fleet::hall::FleetName;
use plimsoll_job::exit;
use plimsoll_job::output::{note, print_out};
use plimsoll_job::usage::usage;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Image of the bus: the version of nats-server that `plimsoll install nats` builds.
const NATS_IMAGE: &str = "nats:2.15.2-alpine";
/// Image of plimsoll of this version, as a release has it.
const IMAGE: &str = concat!("plimsoll:", env!("CARGO_PKG_VERSION"));
/// Longest name of a fleet in names of objects: with prefix, suffix and index, a name has at most 63 signs.
const FLEET_MAX: usize = 36;
/// Most agents.
const AGENTS_MAX: i64 = 10_000;

/// Ends of the names of control groups, as systemd makes them.
const UNITS: [&str; 3] = [".service", ".scope", ".slice"];

const EXAMPLES: &str = "\
Examples:
  Kubernetes: a manifest for eight agents, away from the nodes of the target
    plimsoll fleet render --k8s --agents 8 --allow-target search.prod --target-label app=search
  Compose: three agents, which may send load to a network
    plimsoll fleet render --compose --agents 3 --allow-target 10.1.0.0/16 > compose.yaml
  systemd: units in a folder, for agents that reach the bus at bus.internal
    plimsoll fleet render --systemd --bus-host bus.internal --allow-target any --out units
  Slurm: a batch script for four nodes and one more for the bus
    plimsoll fleet render --slurm --agents 4 --allow-target any > fleet.sbatch
  ssh: a script that starts an agent on each host, and on db1 one that watches
    plimsoll fleet render --ssh a,b --allow-target any --watch redis --watch-host db1 > fleet.sh";

/// Flags of `plimsoll fleet render`.
#[derive(Args, Debug)]
#[command(
    after_help = EXAMPLES,
    group = ArgGroup::new("form").required(true).args(["k8s", "compose", "systemd", "slurm", "ssh"])
)]
pub struct RenderArgs {
    /// A manifest for Kubernetes: an Indexed Job of agents, and the bus
    #[arg(long, help_heading = "Form")]
    k8s: bool,
    /// A file for Docker Compose
    #[arg(long, help_heading = "Form")]
    compose: bool,
    /// Units for systemd
    #[arg(long, help_heading = "Form")]
    systemd: bool,
    /// A batch script for Slurm: an agent on each node, bus and coordinator on one more
    #[arg(long, help_heading = "Form")]
    slurm: bool,
    /// A shell script that starts an agent on each host by ssh
    ///
    /// HOST or USER@HOST, separated by commas.
    #[arg(
        long,
        value_name = "HOST",
        value_delimiter = ',',
        conflicts_with = "agents",
        help_heading = "Form"
    )]
    ssh: Vec<SshHost>,
    /// Number of agents
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=AGENTS_MAX))]
    agents: u32,
    /// Target to which an agent may send load [default: its machine]
    ///
    /// A host name, *.DOMAIN, an address, a network such as 10.1.0.0/16, or any. May be repeated.
    #[arg(long, value_name = "TARGET", value_parser = written)]
    allow_target: Vec<String>,
    /// Name of the fleet
    #[arg(long, value_name = "NAME", default_value_t)]
    fleet: FleetName,
    /// Port of the bus
    ///
    /// With --slurm and --ssh, 0 is any free one.
    #[arg(long, value_name = "N", default_value_t = 4222)]
    port: u16,
    /// Image of plimsoll
    ///
    /// For --k8s and --compose: with a tag or a digest.
    #[arg(long, value_name = "IMAGE", default_value = IMAGE, conflicts_with_all = ["systemd", "slurm", "ssh"])]
    image: Image,
    /// Image of nats-server
    ///
    /// For --k8s and --compose: 2.10 or later.
    #[arg(long, value_name = "IMAGE", default_value = NATS_IMAGE, conflicts_with_all = ["systemd", "slurm", "ssh"])]
    nats_image: Image,
    /// --k8s: namespace of all objects [default: that of kubectl]
    #[arg(long, value_name = "NAME", conflicts_with_all = ["compose", "systemd", "slurm", "ssh"])]
    namespace: Option<ObjectName>,
    /// --k8s: label of the target's pods
    ///
    /// Agents and bus keep away from their nodes.
    #[arg(long, value_name = "KEY=VALUE", conflicts_with_all = ["compose", "systemd", "slurm", "ssh"])]
    target_label: Option<PodLabel>,
    /// Processors of an agent [default with --k8s and --compose: 2]
    #[arg(long, value_name = "N", conflicts_with = "ssh")]
    cpu: Option<Cpu>,
    /// Memory of an agent [default with --k8s and --compose: 1Gi]
    #[arg(long, value_name = "SIZE", conflicts_with = "ssh")]
    memory: Option<Memory>,
    /// Name of the secret with the token [default: plimsoll-token]
    ///
    /// With --nkey or --creds, that of the seed or the credentials. --k8s: a Secret with the key 'token', 'nkey' or 'creds'. --compose: the file NAME.env. --systemd: the file /etc/plimsoll/NAME.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["slurm", "ssh"])]
    token_secret: Option<ObjectName>,
    /// plimsoll on the machines of the fleet
    ///
    /// For --systemd, --slurm and --ssh: a name in PATH or an absolute path.
    #[arg(long, value_name = "PATH", default_value = "plimsoll", conflicts_with_all = ["k8s", "compose"])]
    program: ProgramPath,
    /// --systemd: host of the bus [default: 127.0.0.1]
    ///
    /// As the agents reach it.
    #[arg(long, value_name = "HOST", conflicts_with_all = ["k8s", "compose", "slurm", "ssh"])]
    bus_host: Option<HostName>,
    /// Program or control group to watch at the target
    ///
    /// Adds agents with --role watch. NAME of a program, or CGROUP; LABEL=NAME names it in the record. May be repeated. --k8s places them
    /// beside the pods of --target-label, --compose on this machine, --systemd as a unit for such a machine, --slurm and --ssh on
    /// --watch-host.
    #[arg(long, value_name = "NAME|CGROUP", value_parser = watched, help_heading = "Watching")]
    watch: Vec<String>,
    /// --slurm, --ssh: hosts of the target
    ///
    /// HOST or USER@HOST, separated by commas.
    #[arg(long, value_name = "HOST", value_delimiter = ',', requires = "watch", conflicts_with_all = ["k8s", "compose", "systemd"], help_heading = "Watching")]
    watch_host: Vec<SshHost>,
    /// --k8s, --systemd: number of machines that are watched [default: 1]
    #[arg(long, value_name = "N", requires = "watch", value_parser = clap::value_parser!(u32).range(1..=AGENTS_MAX), conflicts_with_all = ["compose", "slurm", "ssh"], help_heading = "Watching")]
    watchers: Option<u32>,
    /// The bus speaks TLS, and its clients check its certificate
    ///
    /// --ssh does not need it: the bus goes through the connections of ssh.
    #[arg(long, conflicts_with = "ssh", help_heading = "Bus")]
    tls: bool,
    /// With --tls: clients must have certificates too
    #[arg(long, requires = "tls", help_heading = "Bus")]
    client_certs: bool,
    /// Public NKey of the fleet's user, instead of a token
    ///
    /// 56 letters and digits, beginning with U. Agents and coordinator have the seed. For --k8s, --compose and --systemd.
    #[arg(long, value_name = "KEY", conflicts_with_all = ["slurm", "ssh"], help_heading = "Bus")]
    nkey: Option<String>,
    /// Credentials file of nsc, instead of a token
    ///
    /// The bus has the accounts that nsc writes. For --k8s and --compose.
    #[arg(long, conflicts_with_all = ["nkey", "systemd", "slurm", "ssh"], help_heading = "Bus")]
    creds: bool,
    /// Write the files into this folder, instead of printing them
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl RenderArgs {
    /// Prints or writes the texts.
    ///
    /// # Errors
    /// Flags that do not fit each other, and a file that cannot be written.
    pub fn run(&self) -> Result<u8> {
        let files = self.files()?;
        match &self.out {
            Some(folder) => write(folder, &files)?,
            None => print_out(&joined(&files))?,
        }
        Ok(exit::FINE)
    }

    fn files(&self) -> Result<Vec<Placed>> {
        let is_in_names = self.k8s || self.compose;
        let fleet = self.fleet.to_string();
        let fits = fleet.parse::<ObjectName>().is_ok() && fleet.len() <= FLEET_MAX;
        if is_in_names && !fits {
            return Err(usage(format!(
                "--fleet '{fleet}': names of objects are made of it; use at most {FLEET_MAX} small letters, digits and '-'"
            )));
        }
        if self.port == 0 && !self.slurm && self.ssh.is_empty() {
            return Err(usage("--port 0 is for --slurm and --ssh; name the port of the bus"));
        }
        let is_double = |at: usize| self.ssh[..at].contains(&self.ssh[at]);
        if let Some(at) = (0..self.ssh.len()).find(|at| is_double(*at)) {
            return Err(usage(format!(
                "--ssh names {} twice; one agent runs on each host",
                self.ssh[at]
            )));
        }
        self.check_watching()?;
        let placement = self.placement(self.guard()?);
        Ok(match () {
            () if self.k8s => kubernetes(&placement),
            () if self.compose => compose(&placement),
            () if self.systemd => systemd(&placement),
            () if self.slurm => slurm(&placement),
            () => ssh(&placement),
        })
    }

    fn placement(&self, guard: Guard) -> Placement {
        let hosts = u32::try_from(self.ssh.len()).unwrap_or(u32::MAX);
        Placement {
            version: env!("CARGO_PKG_VERSION"),
            fleet: self.fleet.clone(),
            agents: if hosts > 0 { hosts } else { self.agents },
            image: self.image.clone(),
            nats_image: self.nats_image.clone(),
            namespace: self.namespace.clone(),
            cpu: self.cpu,
            memory: self.memory,
            target: self.target_label.clone(),
            allowed: self.allow_target.clone(),
            secret: self.token_secret.clone(),
            program: self.program.clone(),
            bus_host: self.bus_host.clone(),
            port: self.port,
            hosts: self.ssh.clone(),
            guard,
            watching: Watching {
                things: self.watch.clone(),
                agents: self.watchers.unwrap_or(match self.watch_host.len() {
                    0 => 1,
                    hosts => u32::try_from(hosts).unwrap_or(u32::MAX),
                }),
                hosts: self.watch_host.clone(),
            },
        }
    }

    fn guard(&self) -> Result<Guard> {
        Ok(Guard {
            login: match PublicNkey::of_flag(self.nkey.as_deref())? {
                Some(key) => Login::Nkey(key),
                None if self.creds => Login::Creds,
                None => Login::Token,
            },
            security: match (self.tls, self.client_certs) {
                (false, _) => Security::Plain,
                (true, false) => Security::Server,
                (true, true) => Security::Both,
            },
        })
    }

    /// Makes sure that agents that watch have a machine, and see on it what they are to watch.
    fn check_watching(&self) -> Result<()> {
        if self.watch.is_empty() {
            return Ok(());
        }
        if self.k8s && self.target_label.is_none() {
            return Err(usage(
                "--watch: name the pods of the target with --target-label KEY=VALUE; the agents that watch run beside them",
            ));
        }
        let is_by_ssh = self.slurm || !self.ssh.is_empty();
        if is_by_ssh && self.watch_host.is_empty() {
            return Err(usage(
                "--watch: name the machines of the target with --watch-host HOST,...",
            ));
        }
        if let Some(host) = self.watch_host.iter().find(|host| self.ssh.contains(host)) {
            return Err(usage(format!(
                "--watch-host {host} is one of --ssh too; an agent that sends load does not run on a machine of the target"
            )));
        }
        let is_unit = |name: &str| UNITS.iter().any(|end| name.ends_with(end));
        let is_group = |name: &&String| name.contains('/') || is_unit(name);
        if (self.k8s || self.compose)
            && let Some(group) = self.watch.iter().find(is_group)
        {
            return Err(usage(format!(
                "--watch {group}: a container does not see the control groups of its machine; write the NAME of a program"
            )));
        }
        Ok(())
    }
}

/// All files in one text; several have their names before them.
fn joined(files: &[Placed]) -> String {
    match files {
        [(_, text)] => text.clone(),
        _ => {
            let parts = files.iter().map(|(name, text)| format!("# ---- {name} ----\n{text}"));
            parts.collect::<Vec<_>>().join("\n")
        }
    }
}

/// Writes files that are not there yet.
fn write(folder: &Path, files: &[Placed]) -> Result<()> {
    let wrong = |path: &Path, error: &std::io::Error| {
        usage(format!("--out {}: {}", path.display(), with_advice(error)))
    };
    std::fs::create_dir_all(folder).map_err(|error| wrong(folder, &error))?;
    for (name, text) in files {
        let path = folder.join(name);
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        file.and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|error| wrong(&path, &error))?;
        note(&format!("plimsoll: wrote {}", path.display()));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
