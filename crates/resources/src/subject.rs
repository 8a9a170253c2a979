//! A thing that is watched: its name, and how its processes are known.

use plimsoll_record::resources::WatchedKind;
use std::net::SocketAddr;

/// A thing that is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// Its name, unique in a record.
    pub name: String,
    /// Reason why it is watched: `--watch nginx`, `listens on port 8080`.
    pub found_by: String,
    /// Name of the program, or path of the control group.
    pub program: String,
    /// Its processes.
    pub roots: Roots,
}

/// Rule by which the processes of a watched thing are known. Those that they start belong to it as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Roots {
    /// These processes and no others.
    Processes(Vec<Identity>),
    /// All processes with this name, also those that begin later.
    Named(String),
    /// These processes, which listen on this address; when they are gone, those that listen there later.
    Listening(SocketAddr, Vec<Identity>),
    /// Each process that this one starts, and has started: engines that come and go.
    StartedBy(u32),
    /// Those of a control group; its path below the mount.
    Group(String),
}

/// A process. Its number alone can be given to another one later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its number.
    pub pid: u32,
    /// Its start, clock ticks since the machine started.
    pub started_ticks: u64,
}

impl Subject {
    /// Its kind in the record.
    #[must_use]
    pub const fn kind(&self) -> WatchedKind {
        match self.roots {
            Roots::Group(_) => WatchedKind::Cgroup,
            _ => WatchedKind::Pid,
        }
    }
}

/// True if a process is called so: its name, or its first argument or the end of that.
///
/// The kernel cuts names to 15 bytes; a longer name must be the end of the first argument.
#[must_use]
pub fn is_called(comm: &str, first_argument: &str, name: &str) -> bool {
    let ends = |before: &str| before.is_empty() || before.ends_with('/');
    comm == name || first_argument.strip_suffix(name).is_some_and(ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_called_by_its_name_and_by_the_end_of_its_first_argument() {
        assert!(is_called("nginx", "nginx: master process", "nginx"));
        assert!(is_called("MainThread", "/opt/bin/server", "server"));
        assert!(is_called("MainThread", "/opt/bin/server", "/opt/bin/server"));
        assert!(is_called("a-very-long-nam", "./a-very-long-name", "a-very-long-name"));
        assert!(!is_called("nginx", "/usr/sbin/nginx", "inx"));
        assert!(!is_called("a-very-long-nam", "./a-very-long-nami", "a-very-long-name"));
    }
}
