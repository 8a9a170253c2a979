//! A fleet as it is to be placed, and the texts that place it.

mod guard;
mod manifest;
mod pods;
mod scripts;
mod units;

use super::values::{Cpu, HostName, Image, Memory, ObjectName, PodLabel, ProgramPath, SshHost};
use plimsoll_fleet::hall::FleetName;

pub use guard::{Guard, Login, Security};
pub use manifest::kubernetes;
pub use pods::compose;
pub use scripts::{slurm, ssh};
pub use units::systemd;

/// A fleet as it is to be placed.
#[derive(Debug)]
pub struct Placement {
    /// Version of plimsoll.
    pub version: &'static str,
    /// Name of the fleet.
    pub fleet: FleetName,
    /// Number of agents.
    pub agents: u32,
    /// Image with plimsoll.
    pub image: Image,
    /// Image with nats-server.
    pub nats_image: Image,
    /// Namespace of the objects.
    pub namespace: Option<ObjectName>,
    /// Processors of an agent.
    pub cpu: Option<Cpu>,
    /// Memory of an agent.
    pub memory: Option<Memory>,
    /// Label of the pods of the target.
    pub target: Option<PodLabel>,
    /// Targets to which the agents may send load.
    pub allowed: Vec<String>,
    /// Name of the secret with the token.
    pub secret: Option<ObjectName>,
    /// The program on the machines.
    pub program: ProgramPath,
    /// Host of the bus, as agents reach it; `None` is this machine.
    pub bus_host: Option<HostName>,
    /// Port of the bus.
    pub port: u16,
    /// Hosts that ssh reaches.
    pub hosts: Vec<SshHost>,
    /// Protection of the bus.
    pub guard: Guard,
    /// Agents that watch.
    pub watching: Watching,
}

/// Agents on the machines of the target, which send no load.
#[derive(Debug, Default)]
pub struct Watching {
    /// Things that each of them watches; none: there are no such agents.
    pub things: Vec<String>,
    /// Number of agents.
    pub agents: u32,
    /// Hosts on which a script starts them by ssh.
    pub hosts: Vec<SshHost>,
}

impl Watching {
    /// Returns true if there are agents that watch.
    pub fn is_on(&self) -> bool {
        !self.things.is_empty()
    }
}

/// A file of a placement: its name, and its text.
pub type Placed = (&'static str, String);

impl Placement {
    /// Name with which the names of all objects begin.
    fn base(&self) -> String {
        match self.fleet == FleetName::default() {
            true => "plimsoll".to_owned(),
            false => format!("plimsoll-{}", self.fleet),
        }
    }

    fn secret(&self) -> String {
        let own = || format!("{}-{}", self.base(), self.guard.credential());
        self.secret.as_ref().map_or_else(own, ToString::to_string)
    }

    /// Flags of a coordinator, for a bus at this place.
    fn coordinator(&self, bus: &str) -> String {
        let fleet = match self.fleet == FleetName::default() {
            true => String::new(),
            false => format!(" --fleet {}", self.fleet),
        };
        let watchers = self.watchers();
        format!("--agents {}{watchers} --bus {bus}{fleet} --agents-within 2m", self.agents)
    }

    /// The flag of a coordinator that waits for the agents that watch, with a blank before it.
    fn watchers(&self) -> String {
        match self.watching.is_on() {
            true => format!(" --watchers {}", self.watching.agents),
            false => String::new(),
        }
    }

    /// `--watch` flags, quoted, as [`Placement::allow`] has those of targets.
    fn watch(&self, quote: fn(&str) -> String, front: &str, between: &str) -> String {
        let flag = |thing: &String| format!("{front}{}", quote(&format!("--watch={thing}")));
        self.watching.things.iter().map(flag).collect::<Vec<_>>().join(between)
    }

    /// The line that says which targets are left to agents to which no target is allowed.
    fn open(&self, own: &str) -> String {
        match self.allowed.is_empty() {
            true => format!(
                "#\n# These agents send load to {own} only. To measure another target, print this with --allow-target TARGET."
            ),
            false => String::new(),
        }
    }

    /// `--allow-target` flags, quoted, with this between two of them.
    fn allow(&self, quote: fn(&str) -> String, front: &str, between: &str) -> String {
        let flag =
            |target: &String| format!("{front}{}", quote(&format!("--allow-target={target}")));
        self.allowed.iter().map(flag).collect::<Vec<_>>().join(between)
    }

    /// Values that all forms have.
    fn values(&self, own: &str) -> Vec<(&'static str, String)> {
        vec![
            ("VERSION", self.version.to_owned()),
            ("FLEET", self.fleet.to_string()),
            ("BASE", self.base()),
            ("AGENTS", self.agents.to_string()),
            ("PORT", self.port.to_string()),
            ("OPEN", self.open(own)),
            ("SCHEME", self.guard.scheme().to_owned()),
        ]
    }
}
