//! Processes that a job starts, and their ends.

use crate::signals;
use anyhow::{Context, Result};
use plimsoll_core::clock::now_ns;
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

/// Pause between two looks at a process: rare enough to cost a measurement nothing.
pub const LOOK_EVERY: Duration = Duration::from_millis(50);

/// `plimsoll ARGUMENTS`, as a process that Ctrl-C in the terminal does not reach and that ends with this one.
///
/// # Errors
/// When this program's own file cannot be found.
pub fn plimsoll(arguments: &[String]) -> Result<Command> {
    let own = std::env::current_exe().context("finding this program")?;
    let mut command = program(own);
    command.args(arguments);
    Ok(command)
}

/// Any program, as a process that Ctrl-C in the terminal does not reach and that ends with this one.
#[must_use]
pub fn program(name: impl AsRef<OsStr>) -> Command {
    ends_with_us(name, Signal::TERM)
}

/// The same for one that wants another signal than SIGTERM when this process dies.
#[must_use]
pub fn ends_with_us(name: impl AsRef<OsStr>, signal: Signal) -> Command {
    let mut command = Command::new(name);
    // A group of its own: this process passes one signal on, instead of the terminal sending it a second one.
    command.process_group(0);
    let orphaned =
        move || -> std::io::Result<()> { Ok(set_parent_process_death_signal(Some(signal))?) };
    // SAFETY: between fork and exec only prctl is called, which is safe in a signal handler, and nothing is
    // allocated or locked.
    unsafe { command.pre_exec(orphaned) };
    command
}

/// Starts a command on these processors; without any, on all that this process may use.
///
/// # Errors
/// When it cannot be started.
pub fn spawn_on(command: &mut Command, processors: Option<CpuSet>) -> std::io::Result<Child> {
    let before = sched_getaffinity(None)?;
    if let Some(processors) = processors {
        // Processes inherit the processors of the thread that starts them.
        sched_setaffinity(None, &processors)?;
    }
    let child = command.spawn();
    if processors.is_some() {
        sched_setaffinity(None, &before)?;
    }
    child
}

/// Waits for the end, at most this long; `None` when it has not ended.
pub fn wait_within(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let until_ns = now_ns().saturating_add(limit.as_nanos().min(u128::from(u64::MAX / 2)) as u64);
    let mut pause = Duration::from_millis(1);
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        if now_ns() >= until_ns {
            return None;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(LOOK_EVERY);
    }
}

/// Sends a signal to a process of plimsoll.
pub fn signal(child: &Child, signal: Signal) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // It may have ended by itself in the meantime.
        let _ = kill_process(pid, signal);
    }
}

/// Asks a process to end, and ends it after a while.
pub fn stop(child: &mut Child, gently: Signal, patience: Duration) {
    if matches!(child.try_wait(), Ok(Some(_))) {
        return;
    }
    signal(child, gently);
    if wait_within(child, patience).is_none() {
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// The way a command of a job ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum End {
    /// By itself, with this exit code; `None` after a death by signal.
    Exit(Option<i32>),
    /// Asked to, since it took longer than its limit.
    TimedOut,
    /// Asked to, since the user stopped this process.
    Stopped,
    /// By itself; the user stopped this process in what comes afterwards.
    StoppedAfter,
}

/// Waits for a command's end, passes a stop on to it once, and ends it when it does not listen.
pub fn follow(child: &mut Child, limit: Duration, patience: Duration) -> End {
    let until_ns = now_ns().saturating_add(limit.as_nanos().min(u128::from(u64::MAX / 2)) as u64);
    loop {
        if let Some(status) = wait_within(child, LOOK_EVERY) {
            return End::Exit(status.code());
        }
        let end = if signals::is_stopped() {
            End::Stopped
        } else if now_ns() >= until_ns {
            End::TimedOut
        } else {
            continue;
        };
        stop(child, Signal::TERM, patience);
        return end;
    }
}
