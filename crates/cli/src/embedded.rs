//! Targets of plimsoll's own, each in a process of its own so that target and generator can be told apart.

use anyhow::{Context, Result, bail};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// A running `plimsoll serve ...`. Dropping it stops it.
pub struct Embedded {
    child: Child,
    /// What its ready line names, such as `http://127.0.0.1:8080`.
    pub url: String,
}

impl Embedded {
    /// Starts `plimsoll serve` with these arguments, bound to `processors` where some are named, and waits until
    /// it answers.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start(arguments: &[String], processors: &[usize]) -> Result<Self> {
        let program = std::env::current_exe().context("finding this program")?;
        // What a thread starts inherits its processors; it takes its own back at once.
        let own = sched_getaffinity(None)?;
        if !processors.is_empty() {
            let mut set = CpuSet::new();
            processors.iter().for_each(|&processor| set.set(processor));
            sched_setaffinity(None, &set).context("binding an instance to its processors")?;
        }
        let started = Command::new(program)
            .arg("serve")
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn();
        sched_setaffinity(None, &own)?;
        let mut child =
            started.with_context(|| format!("starting serve {}", arguments.join(" ")))?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line).context("waiting for the server")?;
        }
        match line.trim().strip_prefix("ready ").and_then(|rest| rest.split(' ').nth(1)) {
            Some(url) => Ok(Self { url: url.to_owned(), child }),
            None => {
                let _ = child.kill();
                let _ = child.wait();
                bail!("serve {} did not start: it said '{}'", arguments.join(" "), line.trim())
            }
        }
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
            .with_context(|| format!("'{}' is no address", self.url))
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let _ = self.child.wait();
    }
}
