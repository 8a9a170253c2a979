//! Absences of a process at random times, of random lengths, as on a machine whose host gives its processors to others.
//!
//! A process that is stopped notices it: it gets SIGCONT. One that is frozen by its control group notices nothing, and no
//! counter of the kernel says so, like a virtual machine whose host does not report stolen time. One that reports it writes
//! the same absences into the file that stands for `/proc/stat`.

use super::interposer::stat_file;
use super::live::{Absent, Doing, goes_on};
use plimsoll_core::clock::{MILLISECOND_NS, now_ns};
use plimsoll_core::rng::Rng;
use rustix::process::{Pid, Signal, kill_process};
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Shortest and longest absence, ms.
const ABSENCE_MS: (u64, u64) = (5, 200);
/// Shortest and longest time between two of them, ms.
const PRESENCE_MS: (u64, u64) = (20, 600);
/// A tick of `/proc/stat`, ns.
const TICK_NS: u64 = 10 * MILLISECOND_NS;

fn between(rng: &mut Rng, (low, high): (u64, u64)) -> Duration {
    Duration::from_millis(low + rng.below(high - low + 1))
}

/// Makes a process absent again and again.
///
/// # Errors
/// When there is no control group to freeze it with.
pub fn start(pid: Pid, absent: Absent, seed: u64, folder: &Path) -> Result<Doing, String> {
    let frost = (absent != Absent::Stopped).then(|| Frost::of(pid)).transpose()?;
    let stat = (absent == Absent::Stolen).then(|| Stat::open(folder)).transpose()?;
    let mut rng = Rng::new(seed);
    let hold = move |is_held: bool| match &frost {
        Some(frost) => frost.set(is_held),
        None => {
            let _ = kill_process(pid, if is_held { Signal::STOP } else { Signal::CONT });
        }
    };
    Ok(Doing::start(move |over| {
        let mut absent_ns = 0;
        while goes_on(over, between(&mut rng, PRESENCE_MS)) {
            let begun_ns = now_ns();
            hold(true);
            std::thread::sleep(between(&mut rng, ABSENCE_MS));
            absent_ns += now_ns() - begun_ns;
            // The count is there before the process can look.
            if let Some(stat) = &stat {
                stat.write(absent_ns / TICK_NS);
            }
            hold(false);
        }
    }))
}

/// A control group whose processes can be frozen; removed when dropped.
struct Frost {
    folder: PathBuf,
    /// The file that freezes, and the words for thawed and frozen.
    switch: (&'static str, [&'static str; 2]),
}

impl Frost {
    fn of(pid: Pid) -> Result<Self, String> {
        let name = format!("plimsoll-sabotage-{}", pid.as_raw_nonzero());
        let first = Path::new("/sys/fs/cgroup/freezer");
        let (folder, switch) = if first.join("cgroup.procs").exists() {
            (first.join(name), ("freezer.state", ["THAWED", "FROZEN"]))
        } else {
            (Path::new("/sys/fs/cgroup").join(name), ("cgroup.freeze", ["0", "1"]))
        };
        let said = |error: std::io::Error| format!("{}: {error}", folder.display());
        std::fs::create_dir(&folder).map_err(said)?;
        let group = Self { folder: folder.clone(), switch };
        let id = pid.as_raw_nonzero().to_string();
        std::fs::write(folder.join("cgroup.procs"), id).map_err(said)?;
        Ok(group)
    }

    fn set(&self, is_frozen: bool) {
        let _ =
            std::fs::write(self.folder.join(self.switch.0), self.switch.1[usize::from(is_frozen)]);
    }
}

impl Drop for Frost {
    fn drop(&mut self) {
        self.set(false);
        // A process that has just ended may still be in it.
        for _ in 0..50 {
            if std::fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The file that the process reads in place of `/proc/stat`: written over in place, since the process keeps it open.
struct Stat {
    file: File,
    begun_ns: u64,
    cpus: usize,
}

impl Stat {
    fn open(folder: &Path) -> Result<Self, String> {
        let path = stat_file(folder);
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self { file, begun_ns: now_ns(), cpus: cpus() })
    }

    fn write(&self, stolen_ticks: u64) {
        let idle_ticks = (now_ns() - self.begun_ns) / TICK_NS;
        let _ = self.file.write_all_at(text(self.cpus, idle_ticks, stolen_ticks).as_bytes(), 0);
    }
}

/// Writes the file before a process starts that opens it.
///
/// # Errors
/// The error of the system, with the path.
pub fn write_first_stat(folder: &Path) -> Result<(), String> {
    let path = stat_file(folder);
    std::fs::write(&path, text(cpus(), 0, 0))
        .map_err(|error| format!("{}: {error}", path.display()))
}

fn cpus() -> usize {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    stat.lines().filter(|line| line.starts_with("cpu")).count().saturating_sub(1).max(1)
}

/// The lines of all processors, of the same length whatever they count.
fn text(cpus: usize, idle: u64, stolen: u64) -> String {
    let mut text = String::new();
    let mut line = |name: &str, times: u64| {
        let (idle, stolen) = (idle * times, stolen * times);
        // Writing to memory cannot fail.
        let _ = writeln!(text, "{name} 0 0 0 {idle:012} 0 0 0 {stolen:012} 0 0");
    };
    line("cpu ", cpus as u64);
    (0..cpus).for_each(|cpu| line(&format!("cpu{cpu}"), 1));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_counts_stolen_time_as_the_kernel_does() {
        assert_eq!(text(2, 0, 0).len(), text(2, 9_999, 1_234).len());
        let text = text(2, 100, 30);
        let fields: Vec<Vec<&str>> =
            text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(fields.iter().map(|line| line[0]).collect::<Vec<_>>(), ["cpu", "cpu0", "cpu1"]);
        let steal: Vec<u64> = fields.iter().map(|line| line[8].parse().unwrap()).collect();
        assert_eq!(steal, [60, 30, 30]);
    }

    #[test]
    fn absences_are_of_5_to_200_ms() {
        let mut rng = Rng::new(1);
        let drawn: Vec<u128> =
            (0..2_000).map(|_| between(&mut rng, ABSENCE_MS).as_millis()).collect();
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&5), Some(&200)));
    }
}
