//! Programs of plimsoll that are flooded: servers, and a run with its live page.

use crate::process::peak_bytes;
use plimsoll_core::clock::now_ns;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Error, Read, Result};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest wait for the address of a program, s.
const START_S: u64 = 60;
/// The exit code of a run that was ended before its time.
const ENDED_EARLY: i32 = 3;

/// A place where a program listens.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Its address.
    pub address: SocketAddr,
    /// The token of a live page; empty elsewhere.
    pub token: String,
}

impl Endpoint {
    /// The endpoint of an address such as `http://127.0.0.1:8080/?token=5e1f`.
    fn of(word: &str) -> Option<Self> {
        let (_, rest) = word.trim().split_once("://")?;
        let (address, token) = rest.split_once("/?token=").unwrap_or((rest, ""));
        let address = address.trim_end_matches('/').parse().ok()?;
        Some(Self { address, token: token.to_owned() })
    }
}

/// A program that is flooded, until it is dropped.
pub struct Served {
    /// All places where it listens.
    pub endpoints: Vec<Endpoint>,
    child: Child,
    /// Reads its errors to their end.
    errors: Option<JoinHandle<String>>,
    /// Exit code of a clean end.
    code: i32,
    /// The target of a run.
    _target: Option<Box<Self>>,
}

impl Served {
    /// Starts plimsoll with the arguments of `line`. Of a run, which begins with `load`, the target is a server of its own.
    ///
    /// # Errors
    /// When it does not start, or prints no address.
    pub fn start(program: &Path, place: &Path, line: &str) -> Result<Self> {
        if line.split(' ').next() != Some("load") {
            return Self::listen(program, place, line, None);
        }
        let target = Self::listen(program, place, "serve null", None)?;
        let Some(endpoint) = target.endpoints.first() else {
            return Err(Error::other("the target of the run has no address"));
        };
        let line = format!("{line} http://{}/", endpoint.address);
        Self::listen(program, place, &line, Some(Box::new(target)))
    }

    fn listen(program: &Path, place: &Path, line: &str, target: Option<Box<Self>>) -> Result<Self> {
        let mut command = Command::new(program);
        command.args(line.split(' ')).current_dir(place).stdin(Stdio::null());
        let is_run = target.is_some();
        // A server prints its addresses on the standard output, and a run that of its page on the other.
        let output = if is_run { Stdio::null() } else { Stdio::piped() };
        let mut child = command.stdout(output).stderr(Stdio::piped()).spawn()?;
        let (found, endpoints) = channel();
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let errors = stderr.map(|stderr| {
            let found = found.clone();
            let show = move |line: &str| {
                if is_run {
                    let _ = found.send(endpoints_of(line));
                }
            };
            std::thread::spawn(move || read(stderr, show))
        });
        if let Some(stdout) = stdout {
            let show = move |line: &str| {
                let _ = found.send(endpoints_of(line));
            };
            std::thread::spawn(move || read(stdout, show));
        }
        let mut served = Self {
            endpoints: Vec::new(),
            child,
            errors,
            code: if is_run { ENDED_EARLY } else { 0 },
            _target: target,
        };
        let until_ns = now_ns() + START_S * 1_000_000_000;
        while served.endpoints.is_empty() {
            let left = Duration::from_nanos(until_ns.saturating_sub(now_ns()));
            served.endpoints = endpoints
                .recv_timeout(left)
                .map_err(|_| Error::other(format!("plimsoll {line} printed no address")))?;
            // A run may name its target before its page.
            served.endpoints.retain(|endpoint| !is_run || !endpoint.token.is_empty());
        }
        Ok(served)
    }

    /// Most memory that it had so far, bytes.
    pub fn peak_bytes(&self) -> u64 {
        peak_bytes(self.child.id())
    }

    /// Asks it to end; returns whether it ran until then and shut down cleanly in time, and what it had printed of errors.
    pub fn end(mut self, patience: Duration) -> (bool, String) {
        let ran = matches!(self.child.try_wait(), Ok(None));
        if let Some(pid) = Pid::from_raw(self.child.id().cast_signed()).filter(|_| ran) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let until_ns = now_ns() + patience.as_nanos() as u64;
        while matches!(self.child.try_wait(), Ok(None)) && now_ns() < until_ns {
            std::thread::sleep(Duration::from_millis(10));
        }
        let status = self.child.try_wait().ok().flatten();
        let ended = status.is_some_and(|status| status.code() == Some(self.code));
        let _ = self.child.kill();
        let errors = self.errors.take().and_then(|errors| errors.join().ok());
        (ran && ended, errors.unwrap_or_default())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads lines to their end, shows each, and returns all.
fn read(stream: impl Read, mut show: impl FnMut(&str)) -> String {
    let (mut reader, mut text) = (BufReader::new(stream), String::new());
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
        let shown = String::from_utf8_lossy(&line);
        show(&shown);
        text += &shown;
        line.clear();
    }
    text
}

fn endpoints_of(line: &str) -> Vec<Endpoint> {
    line.split_whitespace().filter_map(Endpoint::of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doors_are_read_from_the_lines_of_servers_and_runs() {
        let seen = |line| -> Vec<(u16, String)> {
            endpoints_of(line)
                .into_iter()
                .map(|endpoint| (endpoint.address.port(), endpoint.token))
                .collect()
        };
        let of_server = "ready: volt://127.0.0.1:21212 http://127.0.0.1:8080/\n";
        assert_eq!(seen(of_server), [(21_212, String::new()), (8_080, String::new())]);
        let of_run = "Live page: http://127.0.0.1:40001/?token=0a1b\n";
        assert_eq!(seen(of_run), [(40_001, "0a1b".to_owned())]);
        assert_eq!(seen("  1 s  200/s to http://example.net/\n"), []);
    }
}
