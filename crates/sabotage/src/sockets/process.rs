//! Processes that end with their owner, whatever happens.

use crate::sabotages::cores;
use plimsoll_core::clock::now_ns;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// A process; it is ended by its id when dropped.
pub struct Process {
    child: Child,
}

/// Interval at which an end is looked for.
const LOOK: Duration = Duration::from_millis(10);

impl Process {
    /// Starts a command on a core. Its output goes to files in `folder`.
    ///
    /// # Errors
    /// The error of the system.
    pub fn start(mut command: Command, core: usize, folder: &Path) -> Result<Self, String> {
        let said = |error: std::io::Error| format!("{}: {error}", folder.display());
        let file = |name: &str| File::create(folder.join(name)).map_err(said);
        command.stdin(Stdio::null()).stdout(file("stdout")?).stderr(file("stderr")?);
        Ok(Self { child: spawn(command, core)? })
    }

    /// Starts a target on a core and waits until it answers; gives its address, too.
    ///
    /// # Errors
    /// The error of the system, or that no ready line came.
    pub fn serve(mut command: Command, core: usize) -> Result<(Self, String), String> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = Self { child: spawn(command, core)? };
        let mut line = String::new();
        if let Some(stdout) = process.child.stdout.take() {
            let mut reader = BufReader::new(stdout);
            reader.read_line(&mut line).map_err(|error| error.to_string())?;
            // What it says later is read, so that it does not wait for that.
            std::thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
        }
        match line.split_whitespace().nth(2) {
            Some(address) => Ok((process, address.to_owned())),
            None => Err(format!("the target did not get ready: '{}'", line.trim())),
        }
    }

    /// Its id.
    #[must_use]
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Waits for its end, at most this long; `None` if it has not ended by then.
    ///
    /// # Errors
    /// The error of the system.
    pub fn wait(&mut self, longest: Duration) -> Result<Option<ExitStatus>, String> {
        let until_ns = now_ns() + longest.as_nanos() as u64;
        loop {
            let ended = self.child.try_wait().map_err(|error| error.to_string())?;
            if ended.is_some() || now_ns() >= until_ns {
                return Ok(ended);
            }
            std::thread::sleep(LOOK);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_some()) {
            return;
        }
        // A stopped process would not hear of anything.
        let _ = kill_process(self.pid(), Signal::CONT);
        let _ = kill_process(self.pid(), Signal::TERM);
        if !matches!(self.wait(Duration::from_secs(3)), Ok(Some(_))) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Starts a child that is bound to a core from its first instruction on: it inherits that from the thread that starts it.
fn spawn(mut command: Command, core: usize) -> Result<Child, String> {
    let start = move || {
        cores::bind_to(core);
        command.spawn().map_err(|error| format!("{}: {error}", command.get_program().display()))
    };
    let started = std::thread::spawn(start).join();
    started.unwrap_or_else(|_| Err("the thread that starts processes died".to_owned()))
}

/// The socket's address in `http://127.0.0.1:8080` or any such.
///
/// # Errors
/// When there is none.
pub fn address(url: &str) -> Result<SocketAddr, String> {
    let bare = url.split_once("://").map_or(url, |(_, rest)| rest);
    let bare = bare.split('/').next().unwrap_or_default();
    bare.parse().map_err(|error| format!("{url}: {error}"))
}
