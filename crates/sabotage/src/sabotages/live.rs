//! Disturbances of a process while it runs.

use rustix::process::{Pid, Signal, kill_process};
use rustix::time::{ClockId, Timespec, clock_gettime, clock_settime};
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// One thing that is done to a running process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Live {
    /// Stopped for the first time, every second time, again and again.
    Pulses {
        /// Time that it is stopped.
        stopped: Duration,
        /// From one stop to the next.
        every: Duration,
    },
    /// This many busy threads on its core.
    Neighbours(u32),
    /// This many busy threads on all cores.
    NeighboursAnywhere(u32),
    /// Absent again and again, at random times for 5 to 200 ms.
    Bursts(Absent),
    /// Stopped once.
    StoppedOnce {
        /// Time after the start.
        after: Duration,
        /// Time that it is stopped.
        stopped: Duration,
    },
    /// This percentage of a core, by a quota of its control group.
    Quota(u32),
    /// SIGINT after this time.
    Interrupt(Duration),
    /// The file system of its run record is frozen for the first time, every second time.
    FrozenDisk {
        /// Time that it is frozen.
        frozen: Duration,
        /// From one freeze to the next.
        every: Duration,
    },
    /// Its output `FOLDER/out` is read slowly.
    SlowReader,
    /// The wall clock is set forward by this after each second, and back after the next. Root may do that.
    ClockSteps(Duration),
}

/// The way that a process is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// SIGSTOP and SIGCONT.
    Stopped,
    /// Frozen, and no counter says so.
    Unreported,
    /// Frozen, and counted as stolen time.
    Stolen,
}

/// A thread that does something again and again; it ends when dropped, and what it did is undone.
pub struct Doing {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Doing {
    /// Starts it.
    pub(super) fn start(act: impl FnOnce(&AtomicBool) + Send + 'static) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let seen = over.clone();
        Self { over, thread: Some(std::thread::spawn(move || act(&seen))) }
    }
}

impl Drop for Doing {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Sleeps, and says whether to go on.
pub(super) fn goes_on(over: &AtomicBool, time: Duration) -> bool {
    let mut left = time;
    while !over.load(Ordering::Relaxed) && !left.is_zero() {
        let nap = left.min(Duration::from_millis(20));
        std::thread::sleep(nap);
        left -= nap;
    }
    !over.load(Ordering::Relaxed)
}

/// Stops and continues a process.
#[must_use]
pub fn pulses(pid: Pid, stopped: Duration, every: Duration) -> Doing {
    Doing::start(move |over| {
        while goes_on(over, every.saturating_sub(stopped)) {
            let _ = kill_process(pid, Signal::STOP);
            std::thread::sleep(stopped);
            let _ = kill_process(pid, Signal::CONT);
        }
    })
}

/// Stops a process once, and continues it.
#[must_use]
pub fn stopped_once(pid: Pid, after: Duration, stopped: Duration) -> Doing {
    Doing::start(move |over| {
        if goes_on(over, after) {
            let _ = kill_process(pid, Signal::STOP);
            goes_on(over, stopped);
            let _ = kill_process(pid, Signal::CONT);
        }
    })
}

/// Interrupts a process once.
#[must_use]
pub fn interrupt(pid: Pid, after: Duration) -> Doing {
    Doing::start(move |over| {
        if goes_on(over, after) {
            let _ = kill_process(pid, Signal::INT);
        }
    })
}

/// Sets the wall clock forward and back again.
///
/// # Errors
/// When this process is not allowed to set it.
pub fn clock_steps(by: Duration) -> Result<Doing, String> {
    let step = move |forward: bool| {
        let now = clock_gettime(ClockId::Realtime);
        let by_s = i64::try_from(by.as_secs()).unwrap_or(0);
        let tv_sec = if forward { now.tv_sec + by_s } else { now.tv_sec - by_s };
        clock_settime(ClockId::Realtime, Timespec { tv_sec, ..now })
            .map_err(|error| format!("the clock cannot be set: {error}"))
    };
    // Asked for here, so that a clock that may not be set is known before the run.
    step(true).and_then(|()| step(false))?;
    Ok(Doing::start(move |over| {
        let mut ahead = false;
        while goes_on(over, Duration::from_secs(1)) {
            ahead ^= step(!ahead).is_ok();
        }
        if ahead {
            let _ = step(false);
        }
    }))
}

/// Freezes and thaws a file system.
#[must_use]
pub fn freezes(mounted: PathBuf, frozen: Duration, every: Duration) -> Doing {
    Doing::start(move |over| {
        let call = |flag: &str| run("fsfreeze", &[flag, &mounted.display().to_string()]);
        while goes_on(over, every.saturating_sub(frozen)) {
            if call("-f").is_ok() {
                std::thread::sleep(frozen);
                let _ = call("-u");
            }
        }
    })
}

/// Makes a pipe at `path` and reads it at about 3 MB/s.
///
/// # Errors
/// When no pipe can be made.
pub fn slow_reader(path: &Path) -> Result<Doing, String> {
    run("mkfifo", &[&path.display().to_string()])?;
    // Opened for both, so that nobody has to wait for the other side to open it.
    let mut pipe = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
        .open(path)
        .map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Doing::start(move |over| {
        let mut buffer = vec![0; 65_536];
        while goes_on(over, Duration::from_millis(20)) {
            let _ = pipe.read(&mut buffer);
        }
    }))
}

/// Runs a program of the system to its end.
///
/// # Errors
/// Its name and what it said, when it fails or is not there.
pub fn run(program: &str, args: &[&str]) -> Result<(), String> {
    let output = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// A control group with a quota; removed when dropped.
pub struct Quota {
    folder: PathBuf,
}

const PERIOD_US: u32 = 100_000;

impl Quota {
    /// Makes a group with a quota of this percentage of a core, and puts a process into it.
    ///
    /// # Errors
    /// When control groups cannot be made here.
    pub fn of(pid: Pid, percent: u32) -> Result<Self, String> {
        let name = format!("plimsoll-sabotage-{}", pid.as_raw_nonzero());
        let first = Path::new("/sys/fs/cgroup/cpu");
        let own = if first.join("cpu.cfs_quota_us").exists() {
            first.join(name)
        } else {
            Path::new("/sys/fs/cgroup").join(name)
        };
        let said = |error: std::io::Error| format!("{}: {error}", own.display());
        std::fs::create_dir(&own).map_err(said)?;
        let group = Self { folder: own.clone() };
        let quota_us = PERIOD_US / 100 * percent;
        let write = |file: &str, text: String| std::fs::write(own.join(file), text).map_err(said);
        if own.join("cpu.cfs_quota_us").exists() {
            write("cpu.cfs_period_us", PERIOD_US.to_string())?;
            write("cpu.cfs_quota_us", quota_us.to_string())?;
        } else {
            write("cpu.max", format!("{quota_us} {PERIOD_US}"))?;
        }
        write("cgroup.procs", pid.as_raw_nonzero().to_string())?;
        Ok(group)
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        // A process that has just ended may still be in it.
        for _ in 0..50 {
            if std::fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A file system of its own; unmounted when dropped.
pub struct Mounted {
    /// Mount point.
    pub at: PathBuf,
}

impl Mounted {
    /// One in memory with this many kB.
    ///
    /// # Errors
    /// When nothing can be mounted here.
    pub fn small(at: PathBuf, kilobytes: u32) -> Result<Self, String> {
        std::fs::create_dir_all(&at).map_err(|error| error.to_string())?;
        let size = format!("size={kilobytes}k");
        run("mount", &["-t", "tmpfs", "-o", &size, "tmpfs", &at.display().to_string()])?;
        Ok(Self { at })
    }

    /// One in a file, which can be frozen.
    ///
    /// # Errors
    /// When nothing can be mounted here.
    pub fn in_a_file(at: PathBuf) -> Result<Self, String> {
        let image = at.with_extension("img");
        std::fs::create_dir_all(&at).map_err(|error| error.to_string())?;
        let file = std::fs::File::create(&image).map_err(|error| error.to_string())?;
        file.set_len(64 << 20).map_err(|error| error.to_string())?;
        let image = image.display().to_string();
        run("mkfs.ext4", &["-q", "-F", &image])?;
        run("mount", &["-o", "loop", &image, &at.display().to_string()])?;
        Ok(Self { at })
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        for _ in 0..50 {
            if run("umount", &[&self.at.display().to_string()]).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
