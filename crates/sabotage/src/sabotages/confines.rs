//! Limits of a process from its start.

use std::path::Path;
use std::process::Command;

/// The resources that the generator lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Confine {
    /// Nothing less.
    #[default]
    Free,
    /// The target's core instead of one of its own.
    OnTargetsCore,
    /// This many file descriptors.
    Files(u32),
    /// The lowest priority.
    Nice,
    /// This many local ports, in a separate network. The target runs there, too.
    Ports(u32),
    /// A small file system under its record, in kB.
    Disk(u32),
}

/// The first local port of a network with few.
const FIRST_PORT: u32 = 30_000;

impl Confine {
    /// A program that starts in this confinement, its arguments to be added.
    #[must_use]
    pub fn command(self, program: &Path) -> Command {
        let with_shell = |script: String| {
            let mut command = Command::new("sh");
            command.args(["-c", &script, "sh"]).arg(program);
            command
        };
        match self {
            Confine::Files(count) => with_shell(format!("ulimit -n {count}; exec \"$@\"")),
            Confine::Nice => {
                let mut command = Command::new("nice");
                command.args(["-n", "19"]).arg(program);
                command
            }
            Confine::Free | Confine::OnTargetsCore | Confine::Ports(_) | Confine::Disk(_) => {
                Command::new(program)
            }
        }
    }

    /// A shell in a network of its own with so few ports, which starts `serve` on `core` and then becomes the program
    /// that follows; that finds the target's address in place of `URL`. The target's process id goes to `pid_file`.
    #[must_use]
    pub fn in_few_ports(
        ports: u32,
        program: &Path,
        serve: &str,
        (core, folder): (usize, &Path),
    ) -> Command {
        let last = FIRST_PORT + ports - 1;
        let script = format!(
            "ip link set lo up && echo '{FIRST_PORT} {last}' > /proc/sys/net/ipv4/ip_local_port_range || exit 99\n\
             taskset -c {core} {program} serve {serve} --port 8080 --ready-file {folder}/ready > {folder}/served &\n\
             echo $! > {folder}/pid\n\
             while [ ! -s {folder}/ready ]; do sleep 0.05; done\n\
             exec {program} \"$@\"",
            program = program.display(),
            folder = folder.display(),
        );
        let mut command = Command::new("unshare");
        command.args(["-n", "sh", "-c", &script, "sh"]);
        command
    }
}
