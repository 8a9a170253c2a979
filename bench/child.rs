//! Child processes: pinned to a core, bounded in time, killed on every way out, their CPU time taken from the kernel.

use anyhow::{Context, Result, bail};
use plimsoll_core::clock::now_ns;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::Timespec;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// How long a server may take to stop in order, ns.
const STOP_NS: u64 = 2_000_000_000;

/// A process that was started here. Dropping it kills it.
pub struct Child {
    name: String,
    pid: Pid,
    pidfd: OwnedFd,
    output: File,
    errors: File,
    reaped: bool,
}

/// How a process ended and what it took.
pub struct Ended {
    /// Exit code, or none when a signal ended it.
    pub code: Option<i32>,
    /// User and system time of the process and the children it waited for, s.
    pub cpu_s: f64,
    /// What it wrote to stdout.
    pub output: String,
    /// What it wrote to stderr.
    pub errors: String,
}

impl Child {
    /// Starts a program that may run on `core` only, if one is given.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(program: &Path, arguments: &[String], core: Option<usize>) -> Result<Self> {
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (output, errors) = (tempfile::tempfile()?, tempfile::tempfile()?);
        let parent = rustix::process::getpid();
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null());
        // Real engines are installed beside the folders of the builds, and never into the user's own.
        if let Some(target) = program.parent().and_then(Path::parent) {
            command.env("PLIMSOLL_HOME", target.join("engines"));
        }
        command.stdout(output.try_clone()?).stderr(errors.try_clone()?);
        let settle = move || -> std::io::Result<()> {
            if let Some(core) = core {
                let mut set = CpuSet::new();
                set.set(core);
                sched_setaffinity(None, &set)?;
            }
            // Should this program be killed, its children go with it.
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            if rustix::process::getppid() != Some(parent) {
                return Err(Errno::SRCH.into());
            }
            Ok(())
        };
        // SAFETY: between fork and exec `settle` only makes system calls; it neither allocates nor takes a lock.
        unsafe { command.pre_exec(settle) };
        let child = command.spawn().with_context(|| format!("starting {}", program.display()))?;
        let pid = Pid::from_raw(i32::try_from(child.id())?).context("a process without an id")?;
        // The standard library's handle neither waits nor kills when dropped; `wait4` below does the waiting.
        let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
        Ok(Self { name, pid, pidfd, output, errors, reaped: false })
    }

    /// The process id.
    pub fn id(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Whether it ended within `wait_ns`.
    ///
    /// # Errors
    /// When this program was asked to stop.
    pub fn ends_within(&self, wait_ns: u64, interrupted: &AtomicBool) -> Result<bool> {
        let end_ns = now_ns().saturating_add(wait_ns);
        loop {
            if interrupted.load(Ordering::Relaxed) {
                bail!("interrupted");
            }
            let left_ns = end_ns.saturating_sub(now_ns());
            // Short waits, as a signal may come between the look above and the wait.
            let wait = timespec(left_ns.min(200_000_000));
            let mut polled = [PollFd::new(&self.pidfd, PollFlags::IN)];
            match poll(&mut polled, Some(&wait)) {
                Ok(0) if left_ns == 0 => return Ok(false),
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(true),
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Waits until it ends by itself.
    ///
    /// # Errors
    /// When it does not within `limit_s`, or this program was asked to stop; it is killed then.
    pub fn finish(mut self, limit_s: u32, interrupted: &AtomicBool) -> Result<Ended> {
        if !self.ends_within(u64::from(limit_s) * 1_000_000_000, interrupted)? {
            bail!("{} did not end within {limit_s} s", self.name);
        }
        self.reap()
    }

    /// Asks it to stop, and kills it when it does not.
    ///
    /// # Errors
    /// When the kernel does not say how it ended.
    pub fn stop(mut self) -> Result<Ended> {
        self.terminate();
        self.reap()
    }

    /// The first line that it wrote to stderr.
    ///
    /// # Errors
    /// When what it wrote cannot be read.
    pub fn complaint(&self) -> Result<String> {
        Ok(first_line(&self.errors_so_far()?))
    }

    /// All that it has written to stderr so far.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn errors_so_far(&self) -> Result<String> {
        // The place in the file is the child's as well, and must stay where it is.
        let mut bytes = vec![0; usize::try_from(self.errors.metadata()?.len())?];
        let count = self.errors.read_at(&mut bytes, 0)?;
        Ok(String::from_utf8_lossy(&bytes[..count]).into_owned())
    }

    fn terminate(&self) {
        let _ = kill_process(self.pid, Signal::TERM);
        // An interrupt must not keep it from being killed.
        if !self.ends_within(STOP_NS, &AtomicBool::new(false)).unwrap_or(false) {
            let _ = kill_process(self.pid, Signal::KILL);
        }
    }

    fn reap(&mut self) -> Result<Ended> {
        let mut status = 0;
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: both pointers are to live memory of the right type.
        let pid = unsafe { libc::wait4(self.id(), &raw mut status, 0, usage.as_mut_ptr()) };
        self.reaped = true;
        if pid != self.id() {
            bail!("waiting for {}: {}", self.name, std::io::Error::last_os_error());
        }
        // SAFETY: `wait4` succeeded and has filled the structure, which was zeroed before.
        let usage = unsafe { usage.assume_init() };
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        Ok(Ended {
            code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
            cpu_s: seconds(usage.ru_utime) + seconds(usage.ru_stime),
            output: read_whole(&mut self.output)?,
            errors: read_whole(&mut self.errors)?,
        })
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.reaped {
            let _ = kill_process(self.pid, Signal::KILL);
            let _ = self.reap();
        }
    }
}

/// The first line of what a program wrote to stderr, without plimsoll's name.
pub fn first_line(errors: &str) -> String {
    let line = errors.trim().lines().next().unwrap_or("it said nothing");
    line.strip_prefix("plimsoll: ").unwrap_or(line).to_owned()
}

fn read_whole(file: &mut File) -> Result<String> {
    file.rewind()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}

/// Where a program lies: on the path, or where Debian keeps servers and Go its programs.
pub fn find(program: &str) -> Option<PathBuf> {
    let mut folders: Vec<PathBuf> =
        std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect();
    folders.extend(["/usr/sbin", "/sbin"].map(PathBuf::from));
    if let Some(home) = std::env::var_os("HOME") {
        folders.push(PathBuf::from(home).join("go/bin"));
    }
    folders.into_iter().map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// Where the package installer puts the peers' own clients.
fn clients() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"), PathBuf::from);
    target.join("clients")
}

/// The folder with the jars of a client for Java.
///
/// # Errors
/// When it is not there, with the way to install it.
pub fn client_jars(name: &str) -> Result<PathBuf> {
    let folder = clients().join("java").join(name);
    if !folder.is_dir() {
        bail!("{name} is not installed; run: make bench-tools");
    }
    Ok(folder.canonicalize()?)
}

/// Where the real `vespa` lies, which the package installer has put into the project's own folder.
///
/// # Errors
/// When it is not there, with the way to install it.
pub fn vespa() -> Result<PathBuf> {
    let inside = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    };
    // A wheel holds the programs of all platforms.
    let this = format!("linux_{}", if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" });
    inside(&clients().join("lib"))
        .iter()
        .flat_map(|python| inside(&python.join("site-packages/vespacli/go-binaries")))
        .filter(|folder| folder.to_string_lossy().contains(&this))
        .map(|folder| folder.join("bin/vespa"))
        .find(|program| program.is_file())
        .context("the vespa CLI is not installed; run: make bench-tools")
}

/// Where a program lies that the benchmark cannot do without.
///
/// # Errors
/// When it is not installed, with the way to install it.
pub fn require(program: &str) -> Result<PathBuf> {
    find(program).with_context(|| format!("{program} is not installed; run: make bench-tools"))
}
