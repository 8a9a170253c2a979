//! Placement on machines by systemd.

use super::guard::{CA, CERTIFICATE, KEY, Login};
use super::{Placed, Placement};
use crate::fleet::quoting::{fill, unit};

const BUS_UNIT: &str = include_str!("../../../templates/bus.service");
const AGENT_UNIT: &str = include_str!("../../../templates/agent@.service");
const WATCHER_UNIT: &str = include_str!("../../../templates/watcher.service");

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

/// A file that systemd hands to a unit: its name there, and its place on the machine.
type Credential = (&'static str, String);

/// Folder of the files of a fleet.
const FOLDER: &str = "/etc/plimsoll";

/// Returns the units for systemd: one for the bus, a template of which each agent is an instance, and one for a machine that is
/// watched.
pub fn systemd(placement: &Placement) -> Vec<Placed> {
    let guard = &placement.guard;
    let host = placement.bus_host.as_ref().map_or_else(|| LOOPBACK.to_owned(), ToString::to_string);
    let listen = if placement.bus_host.is_some() { "0.0.0.0" } else { LOOPBACK };
    let mut limits = Vec::new();
    limits.extend(placement.cpu.map(|cpu| format!("CPUQuota={}%", cpu.milli.div_ceil(10))));
    limits.extend(placement.memory.map(|memory| format!("MemoryMax={}", memory.bytes)));
    let (bus_flags, bus_files) = bus_unit(placement);
    let client = client_unit(placement);
    let given: String =
        client.iter().map(|(flag, (name, _))| format!(" {flag} %d/{name}")).collect();
    let words: String = client.iter().map(|(flag, (_, file))| format!(" {flag} {file}")).collect();
    let client_files: Vec<Credential> = client.into_iter().map(|(_, file)| file).collect();
    let at = format!("{}://{host}:{}", guard.scheme(), placement.port);
    let mut values = placement.values("their own machines");
    values.extend([
        ("BUS_STEPS", bus_steps(placement, &bus_files)),
        ("BUS_FLAGS", bus_flags),
        ("BUS_CREDENTIALS", loaded(&bus_files)),
        ("CLIENT_STEPS", steps(&client_files)),
        ("CLIENT_FLAGS", given),
        ("CLIENT_WORDS", words),
        ("CLIENT_CREDENTIALS", loaded(&client_files)),
        ("PROGRAM", unit(&placement.program.to_string())),
        ("LISTEN", listen.to_owned()),
        ("COORDINATOR", placement.coordinator(&at)),
        ("BUS_HOST", host),
        ("LIMITS", limits.join("\n")),
        ("HARDENING", HARDENING.to_owned()),
        ("ALLOW_UNIT", placement.allow(unit, "", " ")),
        ("WATCH_UNIT", placement.watch(unit, "", " ")),
    ]);
    let mut units = vec![
        ("plimsoll-bus.service", fill(BUS_UNIT, &values)),
        ("plimsoll-agent@.service", fill(AGENT_UNIT, &values)),
    ];
    if placement.watching.is_on() {
        units.push(("plimsoll-watcher.service", fill(WATCHER_UNIT, &values)));
    }
    units
}

/// Flags of `serve nats`, and the files that they name.
fn bus_unit(placement: &Placement) -> (String, Vec<Credential>) {
    let guard = &placement.guard;
    let (mut flags, mut files) = match &guard.login {
        Login::Nkey(key) => (format!(" --nkey {key}"), Vec::new()),
        _ => {
            let token = ("bus-token", format!("{FOLDER}/{}", placement.secret()));
            (" --token-file %d/bus-token".to_owned(), vec![token])
        }
    };
    let of_tls = [("--tls-cert", CERTIFICATE), ("--tls-key", KEY), ("--tls-ca", CA)];
    let count = match (guard.has_tls(), guard.wants_certificates()) {
        (false, _) => 0,
        (true, false) => 2,
        (true, true) => of_tls.len(),
    };
    for (flag, file) in &of_tls[..count] {
        flags += &format!(" {flag} %d/{file}");
        files.push((*file, format!("{FOLDER}/bus/{file}")));
    }
    (flags, files)
}

/// Flags of a client of the bus, each with its file.
fn client_unit(placement: &Placement) -> Vec<(&'static str, Credential)> {
    let guard = &placement.guard;
    let name = if guard.has_token() { "bus-token" } else { "bus-nkey" };
    let login = (guard.credential_flag(), (name, format!("{FOLDER}/{}", placement.secret())));
    let of_tls = guard.client_files().into_iter();
    let of_tls = of_tls.map(|(flag, file)| (flag, (file, format!("{FOLDER}/client/{file}"))));
    std::iter::once(login).chain(of_tls).collect()
}

/// The lines of a unit that hand it its files.
fn loaded(files: &[Credential]) -> String {
    let line = |(name, file): &Credential| format!("LoadCredential={name}:{file}");
    files.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The files as a remark.
fn steps(files: &[Credential]) -> String {
    files.iter().map(|(_, file)| format!("#   {file}")).collect::<Vec<_>>().join("\n")
}

/// The files of the bus as a remark: the token is made there, and others are brought.
fn bus_steps(placement: &Placement, files: &[Credential]) -> String {
    let mut lines = Vec::new();
    let (token, others): (Vec<_>, Vec<_>) =
        files.iter().cloned().partition(|(name, _)| *name == "bus-token");
    for (_, file) in token {
        lines.push(format!(
            "#   (umask 077; od -An -vtx1 -N32 /dev/urandom | tr -d ' \\n' >{file})"
        ));
    }
    if !others.is_empty() {
        let name =
            placement.bus_host.as_ref().map_or_else(|| LOOPBACK.to_owned(), ToString::to_string);
        lines.push(format!("#   # and the certificate for the name {name}, its key, and for clients' certificates the authority (mode 0600):"));
        lines.push(steps(&others));
    }
    lines.join("\n")
}
