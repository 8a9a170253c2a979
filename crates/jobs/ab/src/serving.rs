//! Targets that the comparison starts by a command, and stops at its end.

use crate::shell_words;
use anyhow::{Context, Result};
use plimsoll_core::clock::now_ns;
use plimsoll_core::rng::derive_seed;
use plimsoll_engine::target::Target;
use plimsoll_job::child::{program, spawn_on, stop};
use plimsoll_job::signals;
use plimsoll_job::usage::{unreachable, usage};
use rustix::process::Signal;
use rustix::thread::CpuSet;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Longest time that a target may take until it answers.
const READY_WITHIN_S: u64 = 120;
/// Longest time that it may take to shut down.
const PATIENCE: Duration = Duration::from_secs(10);
/// Pause between two looks at whether it answers.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Longest time for one connection to it.
const CONNECT_WITHIN: Duration = Duration::from_secs(1);

/// A target that runs. Dropping it stops it.
pub struct Served {
    child: Child,
    /// Its address: of its ready line, or the one that was given.
    pub url: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        stop(&mut self.child, Signal::TERM, PATIENCE);
    }
}

/// Returns the words of a command that starts a target. Two queues with the same seed have the same service times, so that their
/// blocks would not be independent: a queue without a seed gets its own, and the sentence about it.
///
/// # Errors
/// A command that cannot be split, or is empty.
pub fn words(flag: &str, text: &str, seed: u64) -> Result<(Vec<String>, Option<String>)> {
    let mut words = shell_words::split(text).map_err(|error| usage(format!("{flag}: {error}")))?;
    if words.is_empty() {
        return Err(usage(format!(
            "{flag}: the command is empty; write a command that starts a target"
        )));
    }
    let is_queue = words.windows(2).any(|pair| pair == ["serve", "queue"]);
    let has_seed = words.iter().any(|word| word == "--seed" || word.starts_with("--seed="));
    if !is_queue || has_seed {
        return Ok((words, None));
    }
    let own = derive_seed(seed, flag) % 1_000_000_000;
    words.extend(["--seed".to_owned(), own.to_string()]);
    let note = format!(
        "{flag}: --seed {own} was added, so that the service times of the two queues are independent"
    );
    Ok((words, Some(note)))
}

impl Served {
    /// Starts a target and waits until it prints `ready NAME URL`, or until `address` answers if there is one.
    ///
    /// # Errors
    /// When it cannot be started, ends, or does not answer in time.
    pub fn start(
        flag: &str,
        words: &[String],
        address: Option<&str>,
        processors: Option<CpuSet>,
    ) -> Result<Self> {
        signals::stop_flag()?;
        let shown = words.join(" ");
        if let Some(taken) = address.filter(|address| answers(address)) {
            return Err(usage(format!(
                "{flag}: something answers at {taken} before '{shown}' was started; stop it, or leave out {flag}"
            )));
        }
        let own = std::env::current_exe().context("finding this program")?;
        let name = if words[0] == "plimsoll" { own.as_os_str() } else { words[0].as_ref() };
        let mut command = program(name);
        command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::piped());
        let child = spawn_on(&mut command, processors)
            .map_err(|error| usage(format!("{flag}: '{}' cannot be started: {error}", words[0])))?;
        let mut served = Self { child, url: address.unwrap_or_default().to_owned() };
        let stdout = served.child.stdout.take().context("its stdout")?;
        let ready = ready_lines(stdout);
        let until_ns = now_ns() + READY_WITHIN_S * 1_000_000_000;
        loop {
            if let Ok(url) = ready.try_recv() {
                if address.is_none() {
                    served.url = url;
                }
                return Ok(served);
            }
            if address.is_some_and(answers) {
                return Ok(served);
            }
            signals::go_on("while the targets started")?;
            if let Ok(Some(status)) = served.child.try_wait() {
                return Err(unreachable(format!(
                    "{flag}: '{shown}' ended before it answered ({status})"
                )));
            }
            if now_ns() > until_ns {
                return Err(unreachable(format!(
                    "{flag}: '{shown}' did not answer within {READY_WITHIN_S} s; it must print 'ready NAME URL', or its address \
                     must be given by --{}",
                    &flag[2..3]
                )));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Binds all threads of the target to these processors.
    pub fn bind(&self, processors: &CpuSet) {
        bind(self.child.id(), processors);
    }
}

/// Binds all threads of a process to these processors, as far as they can be found.
pub fn bind(pid: u32, processors: &CpuSet) {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let ids = threads.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    for id in ids.filter_map(rustix::process::Pid::from_raw) {
        // A thread that has ended meanwhile needs no processor.
        let _ = rustix::thread::sched_setaffinity(Some(id), processors);
    }
}

/// The addresses of ready lines. The thread reads to the end, so that the target never waits for its output.
fn ready_lines(stdout: ChildStdout) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let rest = line.strip_prefix("ready ");
            if let Some(url) =
                rest.and_then(|rest| rest.split(' ').find(|word| word.contains("://")))
            {
                let _ = sender.send(url.to_owned());
            }
        }
    });
    receiver
}

/// Returns true if something accepts connections at the address.
fn answers(address: &str) -> bool {
    let authority = address.split_once("://").map_or(address, |(_, rest)| rest);
    let authority = authority.split(['/', '?']).next().unwrap_or_default();
    let authority = authority.rsplit('@').next().unwrap_or_default();
    let default_port = if address.starts_with("https") { 443 } else { 80 };
    let Some((host, port)) = plimsoll_job::url::split_authority(authority, default_port) else {
        return false;
    };
    let target = Target::resolve(&host, port);
    target.addresses.iter().any(|to| TcpStream::connect_timeout(to, CONNECT_WITHIN).is_ok())
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn two_queues_never_share_their_service_times() {
        let queue = "plimsoll serve queue --port 0";
        let (a, note) = words("--a-command", queue, 1).unwrap();
        let (b, _) = words("--b-command", queue, 1).unwrap();
        assert_ne!(a, b);
        assert!(note.unwrap().contains("independent"));
        let (own, note) = words("--a-command", "plimsoll serve queue --seed=3", 1).unwrap();
        assert_eq!((own.last().unwrap().as_str(), note), ("--seed=3", None));
        assert_eq!(words("--a-command", "nginx -g x", 1).unwrap().0.len(), 3);
        assert!(words("--a-command", " ", 1).unwrap_err().to_string().contains("is empty"));
    }
}
