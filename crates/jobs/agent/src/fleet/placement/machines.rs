//! Placement on machines without containers: systemd, Slurm and ssh.

use super::{Placed, Placement};
use crate::fleet::quoting::{fill, shell, unit};

const BUS_UNIT: &str = include_str!("../../../templates/bus.service");
const AGENT_UNIT: &str = include_str!("../../../templates/agent@.service");
const SLURM: &str = include_str!("../../../templates/slurm.sh");
const SSH: &str = include_str!("../../../templates/ssh.sh");

/// Address of the bus for agents on its own machine.
const LOOPBACK: &str = "127.0.0.1";

/// The rights that both units give up.
const HARDENING: &str = "\
DynamicUser=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectControlGroups=yes
NoNewPrivileges=yes
CapabilityBoundingSet=
LockPersonality=yes
MemoryDenyWriteExecute=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
UMask=0077";

/// Returns the units for systemd: one for the bus, and a template of which each agent is an instance.
pub fn systemd(placement: &Placement) -> Vec<Placed> {
    let host = placement.bus_host.as_ref().map_or_else(|| LOOPBACK.to_owned(), ToString::to_string);
    let listen = if placement.bus_host.is_some() { "0.0.0.0" } else { LOOPBACK };
    let mut limits = Vec::new();
    limits.extend(placement.cpu.map(|cpu| format!("CPUQuota={}%", cpu.milli.div_ceil(10))));
    limits.extend(placement.memory.map(|memory| format!("MemoryMax={}", memory.bytes)));
    let mut values = placement.values("their own machines");
    values.extend([
        ("TOKEN_FILE", format!("/etc/plimsoll/{}", placement.secret())),
        ("PROGRAM", unit(&placement.program.to_string())),
        ("LISTEN", listen.to_owned()),
        ("COORDINATOR", placement.coordinator(&format!("nats://{host}:{}", placement.port))),
        ("BUS_HOST", host),
        ("LIMITS", limits.join("\n")),
        ("HARDENING", HARDENING.to_owned()),
        ("ALLOW_UNIT", placement.allow(unit, "", " ")),
    ]);
    vec![
        ("plimsoll-bus.service", fill(BUS_UNIT, &values)),
        ("plimsoll-agent@.service", fill(AGENT_UNIT, &values)),
    ]
}

/// Returns the batch script for Slurm.
pub fn slurm(placement: &Placement) -> Vec<Placed> {
    const FILE: &str = "fleet.sbatch";
    let mut limits = Vec::new();
    let cpus = |milli: u64| format!("#SBATCH --cpus-per-task={}", milli.div_ceil(1000));
    limits.extend(placement.cpu.map(|cpu| cpus(cpu.milli)));
    limits.extend(placement.memory.map(|memory| format!("#SBATCH --mem={}M", memory.mebibytes())));
    let mut values = placement.values("their own machines");
    values.extend([
        ("FILE", FILE.to_owned()),
        ("NODES", (placement.agents + 1).to_string()),
        ("SBATCH", limits.join("\n")),
        ("PROGRAM", shell(&placement.program.to_string())),
        ("ALLOW_SHELL", placement.allow(shell, "", " ")),
    ]);
    vec![(FILE, fill(SLURM, &values))]
}

/// Returns the script that starts agents by ssh.
pub fn ssh(placement: &Placement) -> Vec<Placed> {
    const FILE: &str = "fleet.sh";
    let hosts: Vec<String> = placement.hosts.iter().map(ToString::to_string).collect();
    let mut values = placement.values("their own machines");
    values.extend([
        ("FILE", FILE.to_owned()),
        ("HOSTS", hosts.join(" ")),
        ("PROGRAM", shell(&placement.program.to_string())),
        ("ALLOW_SHELL", placement.allow(shell, "", " ")),
    ]);
    vec![(FILE, fill(SSH, &values))]
}
