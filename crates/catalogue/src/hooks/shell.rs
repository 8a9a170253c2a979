//! `shell`: commands of a shell before and after the run, each with a limit of time.

use super::Hook;
use plimsoll_core::clock::now_ns;
use plimsoll_core::units::Span;
use plimsoll_job::child::{LOOK_EVERY, program, wait_within};
use plimsoll_job::signals;
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

/// File with the output of the commands.
const FILE: &str = "shell.txt";

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// Commands before the run.
    before: Vec<String>,
    /// Commands after it.
    after: Vec<String>,
    /// Longest time of each.
    timeout: Span,
}

impl Default for Options {
    fn default() -> Self {
        Self { before: Vec::new(), after: Vec::new(), timeout: Span::seconds(60) }
    }
}

pub struct Shell {
    options: Options,
    /// Folder that `cd` has led to; the commands of a hook share it as if they were one script.
    place: PathBuf,
}

impl Shell {
    pub fn new(options: Options) -> Self {
        Self { options, place: PathBuf::from(".") }
    }

    fn run(&mut self, commands: &[String], folder: &Path) -> Result<(), String> {
        let mut problems = Vec::new();
        // What undoes things after a run that was stopped is not stopped by the same signal.
        let stopped_before = signals::is_stopped();
        for command in commands {
            if signals::is_stopped() && !stopped_before {
                break;
            }
            match command.trim().strip_prefix("cd ") {
                Some(to) if !to.contains([';', '&', '|']) => self.place.push(to.trim()),
                _ => problems.extend(self.one(command, folder, !stopped_before).err()),
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
    }

    /// Runs one command to its end or its limit, or until the user stops this process where it `listens`.
    fn one(&self, command: &str, folder: &Path, listens: bool) -> Result<(), String> {
        let shown = |error: std::io::Error| format!("'{command}': {error}");
        let path = folder.join(FILE);
        let mut file = OpenOptions::new().create(true).append(true).open(path).map_err(shown)?;
        writeln!(file, "$ {command}").map_err(shown)?;
        // A group of its own, so that what it started ends with it.
        let mut child = program("sh")
            .args(["-c", command])
            .current_dir(&self.place)
            .stdin(Stdio::null())
            .stdout(file.try_clone().map_err(shown)?)
            .stderr(file)
            .spawn()
            .map_err(shown)?;
        let until_ns = now_ns().saturating_add(self.options.timeout.ns);
        loop {
            if let Some(status) = wait_within(&mut child, LOOK_EVERY) {
                let fine = status.success();
                return if fine { Ok(()) } else { Err(format!("'{command}': {status}")) };
            }
            if listens && signals::is_stopped() {
                end_group(&mut child);
                return Err(format!("'{command}': ended, since the run was stopped"));
            }
            if now_ns() >= until_ns {
                end_group(&mut child);
                let limit = self.options.timeout;
                return Err(format!("'{command}': ended after {limit}, its limit"));
            }
        }
    }
}

impl Hook for Shell {
    fn before(&mut self, folder: &Path) -> Result<(), String> {
        let commands = self.options.before.clone();
        self.run(&commands, folder)
    }

    fn after(&mut self, folder: &Path) -> Result<(), String> {
        let commands = self.options.after.clone();
        self.run(&commands, folder)
    }
}

/// Ends a command and everything that it started.
fn end_group(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(before: &[&str], timeout: Span) -> (Result<(), String>, String) {
        let dir = tempfile::tempdir().unwrap();
        let before = before.iter().map(|command| (*command).to_owned()).collect();
        let result = Shell::new(Options { before, after: Vec::new(), timeout }).before(dir.path());
        (result, std::fs::read_to_string(dir.path().join(FILE)).unwrap_or_default())
    }

    #[test]
    fn a_folder_changed_stays_changed_and_failures_are_told() {
        let (result, text) = shell(&["cd /", "pwd", "exit 3", "echo on"], Span::seconds(10));
        assert_eq!(text, "$ pwd\n/\n$ exit 3\n$ echo on\non\n");
        assert!(result.unwrap_err().contains("'exit 3'"));
    }

    #[test]
    fn a_command_without_end_is_ended() {
        let (result, _) = shell(&["sleep 60 & wait"], Span { ns: 200_000_000 });
        assert!(result.unwrap_err().contains("its limit"));
    }
}
