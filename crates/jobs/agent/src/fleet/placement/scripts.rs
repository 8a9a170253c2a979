//! Placement on machines by scripts: of Slurm, and over ssh.

use super::guard::{CA, CERTIFICATE, KEY};
use super::{Placed, Placement};
use crate::fleet::quoting::{fill, shell};
use crate::fleet::values::SshHost;

const SLURM: &str = include_str!("../../../templates/slurm.sh");
const SSH: &str = include_str!("../../../templates/ssh.sh");

/// Parts of both scripts: the wait for the bus, the end of all that was started, the stdin that agents behind ssh are held by, their
/// end with it, and the wait for a child.
const BUS_READY: &str = include_str!("../../../templates/parts/bus-ready.sh");
const END: &str = include_str!("../../../templates/parts/end.sh");
const HOLD: &str = include_str!("../../../templates/parts/hold.sh");
const HELD: &str = include_str!("../../../templates/parts/held.sh");
const WAIT: &str = include_str!("../../../templates/parts/wait.sh");
/// Agents that watch, in each of the scripts.
const SLURM_WATCHERS: &str = include_str!("../../../templates/parts/slurm-watchers.sh");
const SSH_WATCHERS: &str = include_str!("../../../templates/parts/ssh-watchers.sh");

/// Returns the batch script for Slurm.
pub fn slurm(placement: &Placement) -> Vec<Placed> {
    const FILE: &str = "fleet.sbatch";
    let mut limits = Vec::new();
    let cpus = |milli: u64| format!("#SBATCH --cpus-per-task={}", milli.div_ceil(1000));
    limits.extend(placement.cpu.map(|cpu| cpus(cpu.milli)));
    limits.extend(placement.memory.map(|memory| format!("#SBATCH --mem={}M", memory.mebibytes())));
    let guard = &placement.guard;
    let of_bus = [("--tls-cert", CERTIFICATE), ("--tls-key", KEY), ("--tls-ca", CA)];
    let count = match (guard.has_tls(), guard.wants_certificates()) {
        (false, _) => 0,
        (true, false) => 2,
        (true, true) => of_bus.len(),
    };
    let flags = |part: &str, files: &[(&str, &str)]| {
        let one = |(flag, file): &(&str, &str)| format!(" {flag} \"$tls/{part}/{file}\"");
        files.iter().map(one).collect::<String>()
    };
    let folder =
        if guard.has_tls() { "\"${PLIMSOLL_TLS:-$SLURM_SUBMIT_DIR/tls}\"" } else { "\"\"" };
    let clean = ("rm -f \"$token\" \"$files/ready\"", "; see $SLURM_SUBMIT_DIR/$files");
    let mut values = script(placement, FILE, clean);
    values.extend([
        ("NODES", (placement.agents + 1).to_string()),
        ("SBATCH", limits.join("\n")),
        ("TLS_STEPS", tls_steps(placement)),
        ("TLS_FOLDER", folder.to_owned()),
        ("TLS_BUS", flags("bus", &of_bus[..count])),
        ("TLS_CLIENT", flags("client", &guard.client_files())),
    ]);
    vec![(FILE, with_watchers(placement, SLURM, SLURM_WATCHERS, values))]
}

/// Returns the script that starts agents by ssh.
pub fn ssh(placement: &Placement) -> Vec<Placed> {
    const FILE: &str = "fleet.sh";
    let mut values = script(placement, FILE, ("rm -rf \"$files\"", ""));
    values.push(("HOSTS", words(&placement.hosts)));
    vec![(FILE, with_watchers(placement, SSH, SSH_WATCHERS, values))]
}

fn words(hosts: &[SshHost]) -> String {
    hosts.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// Values of both scripts; `end` is the last command of their end, and what they add if there is no bus.
fn script(placement: &Placement, file: &str, end: (&str, &str)) -> Vec<(&'static str, String)> {
    let wait = |child: &str| fill(WAIT, &[("CHILD", child.to_owned())]);
    let mut values = placement.values("their own machines");
    values.extend([
        ("FILE", file.to_owned()),
        ("PROGRAM", shell(&placement.program.to_string())),
        ("ALLOW_SHELL", placement.allow(shell, "", " ")),
        ("WATCH_SHELL", placement.watch(shell, "", " ")),
        ("WATCHERS_FLAG", placement.watchers()),
        ("WATCHED", words(&placement.watching.hosts)),
        ("END_PART", fill(END, &[("CLEAN", end.0.to_owned())])),
        ("BUS_READY", fill(BUS_READY, &[("SEE", end.1.to_owned())])),
        ("HOLD", HOLD.to_owned()),
        ("HELD", fill(HELD, &[("WAIT", wait("agent"))])),
        ("WAIT", wait("coordinator")),
    ]);
    values
}

/// A script with its part for agents that watch, if there are any.
fn with_watchers(
    placement: &Placement,
    template: &str,
    part: &str,
    mut values: Vec<(&'static str, String)>,
) -> String {
    let part = if placement.watching.is_on() { fill(part, &values) } else { String::new() };
    values.push(("WATCHERS_PART", part));
    fill(template, &values)
}

/// The files of TLS as a remark.
fn tls_steps(placement: &Placement) -> String {
    let guard = &placement.guard;
    if !guard.has_tls() {
        return String::new();
    }
    let mut lines = vec![
        "#".to_owned(),
        "# The bus speaks TLS. Its files are in the folder PLIMSOLL_TLS of the environment (default: tls, where sbatch is called), which is".to_owned(),
        "# on all nodes, each with mode 0600:".to_owned(),
        "#   bus/tls.crt bus/tls.key: the certificate of the bus for the names of the nodes, and its key".to_owned(),
        "#   client/ca.crt: the authority of that certificate".to_owned(),
    ];
    if guard.wants_certificates() {
        lines.push("#   client/tls.crt client/tls.key: the certificate of agents and coordinator, and its key".to_owned());
        lines.push("#   bus/ca.crt: the authority of that certificate".to_owned());
    }
    lines.join("\n")
}
