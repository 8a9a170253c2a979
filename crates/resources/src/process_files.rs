//! The files of a process under `/proc`, as figures.

use crate::reading::Buffer;
use rustix::io::{Errno, Result};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Most threads of a process whose context switches are read: each thread has a file of its own.
pub const THREADS_READ_MAX: u64 = 256;

/// `/proc/PID/stat`: counts since the process began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// Name of the program, at most 15 bytes.
    pub comm: String,
    /// True for a process that has ended and that its parent has not waited for.
    pub has_ended: bool,
    /// Parent.
    pub parent: u32,
    /// Counts of the process itself.
    pub own: Counts,
    /// Counts of its children that have ended and were waited for, and of theirs.
    pub children: Counts,
    /// Threads.
    pub threads: u64,
    /// Start, clock ticks since the machine started; with the PID, the identity of a process.
    pub started_ticks: u64,
    /// Resident memory, pages.
    pub rss_pages: u64,
}

/// Counts of a process that only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// CPU time in user mode, clock ticks.
    pub user_ticks: u64,
    /// CPU time in the kernel, clock ticks.
    pub system_ticks: u64,
    /// Page faults without reading from disk.
    pub minor_faults: u64,
    /// Page faults that read from disk.
    pub major_faults: u64,
}

impl Counts {
    /// Adds other counts.
    pub fn add(&mut self, other: &Self) {
        self.user_ticks += other.user_ticks;
        self.system_ticks += other.system_ticks;
        self.minor_faults += other.minor_faults;
        self.major_faults += other.major_faults;
    }

    /// The increase since `earlier`, 0 for a count that fell.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            user_ticks: self.user_ticks.saturating_sub(earlier.user_ticks),
            system_ticks: self.system_ticks.saturating_sub(earlier.system_ticks),
            minor_faults: self.minor_faults.saturating_sub(earlier.minor_faults),
            major_faults: self.major_faults.saturating_sub(earlier.major_faults),
        }
    }
}

/// Bytes that a process read from disk and wrote to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskBytes {
    /// Read.
    pub read: u64,
    /// Written; pages that were dropped before they were written are not counted.
    pub written: u64,
}

/// Context switches of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// It gave up its processor to wait.
    pub voluntary: u64,
    /// Its processor was taken away.
    pub involuntary: u64,
}

/// A folder like `/proc`.
#[derive(Debug)]
pub struct ProcessFiles {
    root: PathBuf,
    buffer: Buffer,
}

impl ProcessFiles {
    /// Reads below this folder.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), buffer: Buffer::default() }
    }

    /// The folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Numbers of all processes, in no order.
    #[must_use]
    pub fn pids(&self) -> Vec<u32> {
        numbers(&self.root)
    }

    /// Reads `stat`.
    ///
    /// # Errors
    /// The process is gone, or belongs to a user whose processes are hidden.
    pub fn stat(&mut self, pid: u32) -> Result<Stat> {
        let path = self.path(pid, "stat");
        // The name of a program may be any bytes.
        let text = self.buffer.read_any(&path)?;
        parse_stat(&text).ok_or(Errno::INVAL)
    }

    /// Reads the bytes of `io`.
    ///
    /// # Errors
    /// The process is gone, or belongs to another user.
    pub fn disk_bytes(&mut self, pid: u32) -> Result<DiskBytes> {
        let path = self.path(pid, "io");
        let text = self.buffer.read(&path)?;
        let field = |name| number_after(text, name).ok_or(Errno::INVAL);
        let written = field("write_bytes: ")?.saturating_sub(field("cancelled_write_bytes: ")?);
        Ok(DiskBytes { read: field("read_bytes: ")?, written })
    }

    /// Reads the context switches of each thread into `threads`, in the place of what was there.
    ///
    /// # Errors
    /// The process is gone, or belongs to a user whose processes are hidden.
    pub fn switches(&mut self, pid: u32, threads: &mut HashMap<u32, Switches>) -> Result<()> {
        let tasks = self.path(pid, "task");
        threads.clear();
        for thread in numbers(&tasks) {
            let path = tasks.join(thread.to_string()).join("status");
            // A thread may have ended in the meantime.
            let Ok(text) = self.buffer.read(&path) else { continue };
            let (Some(voluntary), Some(involuntary)) = (
                number_after(text, "\nvoluntary_ctxt_switches:\t"),
                number_after(text, "nonvoluntary_ctxt_switches:\t"),
            ) else {
                return Err(Errno::INVAL);
            };
            threads.insert(thread, Switches { voluntary, involuntary });
        }
        if threads.is_empty() { Err(Errno::SRCH) } else { Ok(()) }
    }

    /// The first argument that the program was started with; empty for a thread of the kernel.
    #[must_use]
    pub fn first_argument(&mut self, pid: u32) -> String {
        self.arguments(pid).into_iter().next().unwrap_or_default()
    }

    /// The arguments that the program was started with, its name first.
    #[must_use]
    pub fn arguments(&mut self, pid: u32) -> Vec<String> {
        let path = self.path(pid, "cmdline");
        let text = self.buffer.read_any(&path).unwrap_or_default();
        text.split_terminator('\0').map(str::to_owned).collect()
    }

    /// Number of processors that the process may use, by its affinity.
    #[must_use]
    pub fn processors(&mut self, pid: u32) -> Option<u32> {
        let path = self.path(pid, "status");
        let text = self.buffer.read(&path).ok()?;
        let mask = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed:"))?;
        let digits = mask.trim().chars().filter(|c| *c != ',');
        digits.map(|digit| digit.to_digit(16).map(u32::count_ones)).sum()
    }

    /// Path of the process's control group of version 2, below the mount of control groups.
    #[must_use]
    pub fn control_group(&mut self, pid: u32) -> Option<String> {
        let path = self.path(pid, "cgroup");
        let text = self.buffer.read_any(&path).ok()?;
        text.lines().find_map(|line| line.strip_prefix("0::")).map(str::to_owned)
    }

    /// Identity of the process's network: processes of one machine or container have the same.
    #[must_use]
    pub fn network(&self, pid: u32) -> Option<PathBuf> {
        std::fs::read_link(self.path(pid, "ns/net")).ok()
    }

    /// Table of the network interfaces that the process sees.
    #[must_use]
    pub fn interfaces(&self, pid: u32) -> PathBuf {
        self.path(pid, "net/dev")
    }

    /// True if the process has one of these sockets open; a process of another user is not seen.
    #[must_use]
    pub fn has_socket(&self, pid: u32, inodes: &[u64]) -> bool {
        let Ok(descriptors) = std::fs::read_dir(self.path(pid, "fd")) else { return false };
        descriptors.flatten().any(|descriptor| {
            let Ok(link) = std::fs::read_link(descriptor.path()) else { return false };
            let inode = link
                .to_str()
                .and_then(|link| link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok());
            inode.is_some_and(|inode| inodes.contains(&inode))
        })
    }

    fn path(&self, pid: u32, name: &str) -> PathBuf {
        let mut path = self.root.join(pid.to_string());
        path.push(name);
        path
    }
}

/// Names in a folder that are numbers.
fn numbers(folder: &Path) -> Vec<u32> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The number behind a word.
pub fn number_after(text: &str, word: &str) -> Option<u64> {
    let rest = &text[text.find(word)? + word.len()..];
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

fn parse_stat(text: &str) -> Option<Stat> {
    // The name stands in brackets and may have brackets and blanks itself.
    let (open, close) = (text.find('(')?, text.rfind(')')?);
    let fields: Vec<&str> = text.get(close + 1..)?.split_ascii_whitespace().collect();
    // Numbered from 3 in proc_pid_stat(5): the state.
    let number = |index: usize| fields.get(index - 3)?.parse::<u64>().ok();
    let counts = |faults: usize, user: usize| {
        Some(Counts {
            user_ticks: number(user)?,
            system_ticks: number(user + 1)?,
            minor_faults: number(faults)?,
            major_faults: number(faults + 2)?,
        })
    };
    Some(Stat {
        comm: text.get(open + 1..close)?.to_owned(),
        has_ended: matches!(*fields.first()?, "Z" | "X"),
        parent: number(4)? as u32,
        own: counts(10, 14)?,
        children: counts(11, 16)?,
        threads: number(20)?,
        started_ticks: number(22)?,
        rss_pages: number(24)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fields stand where proc_pid_stat(5) has them, also behind a name with brackets and blanks.
    #[test]
    fn a_stat_line_is_read_by_the_numbers_of_its_fields() {
        let text = "4711 (a) b (c) S 12 4711 4711 0 -1 4194560 100 200 3 4 500 60 7 8 20 0 9 0 1234 999 77 1 2 3\n";
        let stat = parse_stat(text).unwrap();
        assert_eq!((stat.comm.as_str(), stat.parent, stat.has_ended), ("a) b (c", 12, false));
        let own = Counts { user_ticks: 500, system_ticks: 60, minor_faults: 100, major_faults: 3 };
        let children =
            Counts { user_ticks: 7, system_ticks: 8, minor_faults: 200, major_faults: 4 };
        assert_eq!((stat.own, stat.children), (own, children));
        assert_eq!((stat.threads, stat.started_ticks, stat.rss_pages), (9, 1234, 77));
        assert_eq!(parse_stat("4711 (a) S 12"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn this_process_has_all_its_files() {
        let mut files = ProcessFiles::new(Path::new("/proc"));
        let own = std::process::id();
        assert!(files.pids().contains(&own));
        let stat = files.stat(own).unwrap();
        assert!(stat.rss_pages > 0 && stat.threads > 0 && !stat.has_ended);
        assert!(files.disk_bytes(own).is_ok());
        let mut threads = HashMap::new();
        files.switches(own, &mut threads).unwrap();
        assert!(threads.contains_key(&own), "the first thread has the number of the process");
        assert!(files.first_argument(own).contains("plimsoll_resources"));
        assert!(files.processors(own).is_some_and(|count| count > 0));
        assert!(files.network(own).is_some());
        assert_eq!(files.stat(u32::MAX), Err(Errno::NOENT));
    }

    #[test]
    fn a_socket_is_found_at_its_process() {
        use std::os::unix::fs::MetadataExt;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&listener);
        let inode = std::fs::metadata(format!("/proc/self/fd/{fd}")).unwrap().ino();
        let files = ProcessFiles::new(Path::new("/proc"));
        assert!(files.has_socket(std::process::id(), &[inode]));
        assert!(!files.has_socket(std::process::id(), &[inode + 1_000_000]));
    }
}
