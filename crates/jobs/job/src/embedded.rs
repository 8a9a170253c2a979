//! Targets of plimsoll's own, each in a process of its own so that target and generator can be distinguished.

use crate::child::{LOOK_EVERY, plimsoll, spawn_on, stop};
use crate::signals;
use anyhow::{Context, Result, bail};
use plimsoll_core::clock::now_ns;
use rustix::process::Signal;
use rustix::thread::CpuSet;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Longest time that a target may take until it answers: the largest graph that fits takes some minutes.
const READY_WITHIN: Duration = Duration::from_secs(900);
/// Longest time that it may take to shut down cleanly.
const PATIENCE: Duration = Duration::from_secs(10);

/// A running `plimsoll serve ...`. Dropping it stops it.
///
/// Ctrl-C in the terminal does not reach it: it ends when this process has no more use for it, or dies.
pub struct Embedded {
    child: Child,
    /// URL of its ready line, such as `http://127.0.0.1:8080`.
    pub url: String,
}

impl Embedded {
    /// Starts `plimsoll serve` with these arguments, bound to `processors` where some are named, and waits until
    /// it answers.
    ///
    /// # Errors
    /// When it does not start, or the user stops this process first ([`signals::Stopped`]).
    pub fn start(arguments: &[String], processors: &[usize]) -> Result<Self> {
        Self::start_telling(arguments, processors, Stdio::inherit())
    }

    /// Starts it as [`Embedded::start`] does, and sends its stderr there.
    ///
    /// # Errors
    /// As [`Embedded::start`].
    pub fn start_telling(
        arguments: &[String],
        processors: &[usize],
        stderr: Stdio,
    ) -> Result<Self> {
        let arguments = [&["serve".to_owned()], arguments].concat();
        let shown = arguments.join(" ");
        let bound = (!processors.is_empty()).then(|| {
            let mut set = CpuSet::new();
            processors.iter().for_each(|&processor| set.set(processor));
            set
        });
        let mut command = plimsoll(&arguments)?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr);
        let child = spawn_on(&mut command, bound).with_context(|| format!("starting {shown}"))?;
        // From here on, whatever goes wrong ends it.
        remember(child.id());
        let mut server = Self { child, url: String::new() };
        let stdout = server.child.stdout.take().context("its stdout")?;
        let line = ready_line(&first_line(stdout), &shown)?;
        match line.trim().strip_prefix("ready ").and_then(|rest| rest.split(' ').nth(1)) {
            Some(url) => url.clone_into(&mut server.url),
            None => bail!("{shown} did not start: it said '{}'", line.trim()),
        }
        Ok(server)
    }

    /// The process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns true if it is still there.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// `host` and `port` of its address.
    ///
    /// # Errors
    /// When its ready line named none.
    pub fn host_and_port(&self) -> Result<(String, u16)> {
        self.url
            .split_once("://")
            .and_then(|(_, address)| address.rsplit_once(':'))
            .and_then(|(host, port)| Some((host.to_owned(), port.parse().ok()?)))
            .with_context(|| format!("'{}' is not an address", self.url))
    }
}

/// The first line of a stream, read on a thread so that waiting for it has a limit.
fn first_line(stdout: ChildStdout) -> Receiver<String> {
    let (sender, line) = channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        // An empty line stands for a server that printed nothing, or ended.
        let _ = BufReader::new(stdout).read_line(&mut line);
        let _ = sender.send(line);
    });
    line
}

fn ready_line(line: &Receiver<String>, shown: &str) -> Result<String> {
    let until_ns = now_ns() + READY_WITHIN.as_nanos() as u64;
    loop {
        match line.recv_timeout(LOOK_EVERY) {
            Ok(line) => return Ok(line),
            Err(RecvTimeoutError::Disconnected) => return Ok(String::new()),
            Err(RecvTimeoutError::Timeout) => {}
        }
        signals::go_on("before the server answered")?;
        if now_ns() > until_ns {
            bail!("{shown} did not answer within {} s", READY_WITHIN.as_secs());
        }
    }
}

/// Processes of the targets that run now.
static RUNNING: Mutex<Vec<u32>> = Mutex::new(Vec::new());

fn locked() -> MutexGuard<'static, Vec<u32>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn remember(pid: u32) {
    locked().push(pid);
}

/// The processes of all targets that this process started and that have not been stopped.
#[must_use]
pub fn running() -> Vec<u32> {
    locked().clone()
}

impl Drop for Embedded {
    fn drop(&mut self) {
        locked().retain(|pid| *pid != self.child.id());
        stop(&mut self.child, Signal::TERM, PATIENCE);
    }
}
