//! The target that a check starts, and its address.

use anyhow::{Context, Result, bail};
use plimsoll_core::clock::now_ns;
use plimsoll_job::child::{LOOK_EVERY, program, stop};
use plimsoll_job::signals;
use plimsoll_report::command::shell;
use rustix::process::Signal;
use std::io::{BufRead, BufReader};
use std::net::{TcpStream, ToSocketAddrs};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Longest time until a target answers.
const READY_WITHIN: Duration = Duration::from_secs(300);
/// Longest time for one try to connect.
const CONNECT_WITHIN: Duration = Duration::from_secs(1);
/// Longest time that it may take to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// Host and port of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Scheme, host and port: `http://127.0.0.1:8080`.
    origin: String,
    host: String,
    port: String,
}

impl Address {
    /// Reads the address of a URL, or of `HOST PORT` words joined by a colon.
    pub fn of(url: &str) -> Self {
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        let authority = rest.split(['/', '?']).next().unwrap_or_default();
        let (host, port) = authority.rsplit_once(':').unwrap_or((authority, ""));
        let origin = if scheme.is_empty() {
            authority.to_owned()
        } else {
            format!("{scheme}://{authority}")
        };
        Self { origin, host: host.to_owned(), port: port.to_owned() }
    }

    /// Returns the words of a command line with this address where `old` stands: as a URL, or as a host with its port behind it. A
    /// number alone may be a rate.
    pub fn in_place_of(&self, old: &Self, words: &[String]) -> Vec<String> {
        let mut replaced: Vec<String> = words.iter().map(|word| self.url(old, word)).collect();
        for at in 1..words.len() {
            if words[at - 1] == old.host && words[at] == old.port && !old.port.is_empty() {
                (replaced[at - 1], replaced[at]) = (self.host.clone(), self.port.clone());
            }
        }
        replaced
    }

    /// Returns a word with this address if it is a URL of `old`.
    fn url(&self, old: &Self, word: &str) -> String {
        let path = word.strip_prefix(&old.origin).filter(|_| !old.origin.is_empty());
        match path.filter(|path| path.is_empty() || path.starts_with(['/', '?'])) {
            Some(path) => format!("{}{path}", self.origin),
            None => word.to_owned(),
        }
    }
}

/// A running target. It is stopped when it is dropped.
pub struct Served {
    child: Child,
    /// Its address.
    pub address: Address,
}

impl Served {
    /// Starts the command and waits until it answers.
    ///
    /// # Errors
    /// If it does not start, ends, or does not answer in time.
    pub fn start(command: &str, target: Option<&str>) -> Result<Self> {
        signals::stop_flag()?;
        let own = std::env::current_exe().context("finding this program")?;
        let own = shell(&[own.to_string_lossy().into_owned()]);
        let line = match command.strip_prefix("plimsoll ") {
            Some(rest) => format!("exec {own} {rest}"),
            None => format!("exec {command}"),
        };
        let mut shell = program("sh");
        shell.args(["-c", &line]).stdin(Stdio::null()).stdout(Stdio::piped());
        let child = shell.spawn().with_context(|| format!("starting {command}"))?;
        // From here on, whatever goes wrong ends it.
        let mut served = Self { child, address: Address::of(target.unwrap_or_default()) };
        let stdout = served.child.stdout.take().context("its stdout")?;
        let lines = lines(stdout);
        let until_ns = now_ns() + READY_WITHIN.as_nanos() as u64;
        loop {
            match lines.recv_timeout(LOOK_EVERY) {
                Ok(line) if target.is_none() => {
                    let url = line.strip_prefix("ready ").and_then(|rest| rest.split(' ').nth(1));
                    if let Some(url) = url {
                        served.address = Address::of(url.trim());
                        return Ok(served);
                    }
                }
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(LOOK_EVERY),
            }
            if target.is_some() && served.answers() {
                return Ok(served);
            }
            if let Some(status) = served.child.try_wait()? {
                bail!("--serve '{command}' ended before it answered: {status}");
            }
            signals::go_on("before the target answered")?;
            if now_ns() > until_ns {
                bail!(
                    "--serve '{command}' did not answer within {} s; it must print 'ready KIND URL', or --target must name its address",
                    READY_WITHIN.as_secs()
                );
            }
        }
    }

    fn answers(&self) -> bool {
        let Address { origin, host, port } = &self.address;
        let usual = if origin.starts_with("https://") { "443" } else { "80" };
        let port = if port.is_empty() { usual } else { port.as_str() };
        let places = format!("{host}:{port}").to_socket_addrs().into_iter().flatten();
        // Without a limit, an address that nothing answers holds this up for two minutes.
        places.into_iter().any(|place| TcpStream::connect_timeout(&place, CONNECT_WITHIN).is_ok())
    }
}

/// The lines of a stream, read on a thread so that waiting for one has a limit.
fn lines(stdout: std::process::ChildStdout) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            // Nobody waits for more once the target answers; reading on keeps it from blocking.
            let _ = sender.send(line);
        }
    });
    lines
}

impl Drop for Served {
    fn drop(&mut self) {
        stop(&mut self.child, Signal::TERM, PATIENCE);
    }
}

#[cfg(test)]
mod tests {
    use super::Address;

    #[test]
    fn a_new_address_stands_in_the_place_of_the_old_one() {
        let (old, new) =
            (Address::of("http://127.0.0.1:80/a"), Address::of("http://127.0.0.1:9999"));
        let replaced = |text: &str| {
            let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            new.in_place_of(&old, &words).join(" ")
        };
        assert_eq!(replaced("http://127.0.0.1:80/a?b"), "http://127.0.0.1:9999/a?b");
        assert_eq!(replaced("http://127.0.0.1:8080/"), "http://127.0.0.1:8080/");
        assert_eq!(replaced("-n 80 127.0.0.1 80"), "-n 80 127.0.0.1 9999");
        assert_eq!(replaced("--rate 80"), "--rate 80");
    }
}
