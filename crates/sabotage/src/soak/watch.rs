//! Memory, descriptors and threads of processes, read again and again from the outside.

use plimsoll_core::clock::now_ns;
use rustix::process::Pid;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Interval at which the end is looked for.
const LOOK: Duration = Duration::from_millis(20);

/// The use of a process at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Level {
    /// Time since the watch began, s.
    pub at_s: f64,
    /// Resident memory, bytes.
    pub rss_bytes: u64,
    /// Open descriptors.
    pub descriptors: u64,
    /// Threads.
    pub threads: u64,
}

/// Returns the use of a process now; `None` when it has ended or cannot be read.
#[must_use]
pub fn level(pid: Pid) -> Option<Level> {
    let folder = format!("/proc/{}", pid.as_raw_nonzero());
    let status = std::fs::read_to_string(format!("{folder}/status")).ok()?;
    let descriptors = std::fs::read_dir(format!("{folder}/fd")).ok()?.count() as u64;
    Some(Level {
        at_s: 0.0,
        rss_bytes: number(&status, "VmRSS:")? * 1024,
        descriptors,
        threads: number(&status, "Threads:")?,
    })
}

fn number(status: &str, name: &str) -> Option<u64> {
    let rest = status.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// A thread that looks at processes; it ends when dropped.
pub struct Watch {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<Vec<Level>>>>,
}

impl Watch {
    /// Begins to look at these processes, with this interval between two looks.
    #[must_use]
    pub fn start(processes: Vec<Pid>, every: Duration) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let ended = over.clone();
        Self { over, thread: Some(std::thread::spawn(move || look(&processes, every, &ended))) }
    }

    /// Ends it and returns the levels of each process, in the order of time.
    #[must_use]
    pub fn end(mut self) -> Vec<Vec<Level>> {
        self.over.store(true, Ordering::Relaxed);
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

fn look(processes: &[Pid], every: Duration, over: &AtomicBool) -> Vec<Vec<Level>> {
    let begun_ns = now_ns();
    let mut levels = vec![Vec::new(); processes.len()];
    let mut next_ns = begun_ns;
    while !over.load(Ordering::Relaxed) {
        if now_ns() < next_ns {
            std::thread::sleep(LOOK);
            continue;
        }
        next_ns += every.as_nanos() as u64;
        for (pid, levels) in processes.iter().zip(&mut levels) {
            let at_s = (now_ns() - begun_ns) as f64 / 1e9;
            levels.extend(level(*pid).map(|level| Level { at_s, ..level }));
        }
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shell that opens `files` descriptors more, and then waits.
    fn shell(files: &str) -> (std::process::Child, Level) {
        use std::io::BufRead as _;
        use std::process::{Command, Stdio};
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{files} echo ready; read end")]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        std::io::BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let level = level(Pid::from_child(&child)).unwrap();
        (child, level)
    }

    #[test]
    fn memory_descriptors_and_threads_of_a_process_are_seen() {
        let (mut few, before) = shell("");
        let (mut more, after) = shell("exec 7</dev/null 8</dev/null 9</dev/null;");
        assert_eq!(after.descriptors, before.descriptors + 3);
        assert!(before.rss_bytes > 100_000 && before.threads == 1, "{before:?}");
        for child in [&mut few, &mut more] {
            drop(child.stdin.take());
            child.wait().unwrap();
        }
        assert_eq!(level(Pid::from_child(&few)), None);
        assert_eq!(number("Name:\tx\nVmRSS:\t  1234 kB\n", "VmRSS:"), Some(1234));
        assert_eq!(number("Name:\tx\n", "VmRSS:"), None);
    }
}
