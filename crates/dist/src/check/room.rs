//! A root folder with nothing in it but what a test puts there, and programs that run in it as an ordinary user.

use crate::elf::Needs;
use crate::programs::{ended, output};
use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// An ordinary user, unknown to any system.
pub const NOBODY: u64 = 65_534;

/// A root folder.
pub struct Room<'a> {
    /// Its folder outside.
    pub root: &'a Path,
    /// The user of its programs.
    pub user: u64,
    /// True if programs see `/proc` and `/dev/null`.
    pub proc: bool,
}

impl Room<'_> {
    /// Makes a folder in which the user may write.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn own_folder(&self, path: &str) -> Result<()> {
        let folder = self.root.join(path);
        std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let id = Some(self.user as u32);
        std::os::unix::fs::chown(&folder, id, id).context("this check needs root; run it with sudo")
    }

    /// Copies the libraries that a binary needs from this machine.
    ///
    /// # Errors
    /// When this machine does not have one of them.
    pub fn add_libraries(&self, needs: &Needs) -> Result<()> {
        let known = output(Command::new("/sbin/ldconfig").arg("-p"))?;
        let place = |name: &str| {
            let line =
                known.lines().find(|line| line.trim_start().starts_with(&format!("{name} ")));
            line.and_then(|line| line.split(" => ").nth(1)).map(PathBuf::from)
        };
        let mut paths: Vec<PathBuf> = needs.interpreter.iter().map(PathBuf::from).collect();
        for name in needs.versions.keys().filter(|name| !name.starts_with("ld-linux")) {
            paths.push(place(name).with_context(|| format!("{name} is not on this machine"))?);
        }
        for path in paths {
            let inside = self.root.join(path.strip_prefix("/")?);
            std::fs::create_dir_all(inside.parent().context("a library in no folder")?)?;
            std::fs::copy(&path, &inside).with_context(|| path.display().to_string())?;
        }
        Ok(())
    }

    /// Makes `/dev/null`, which every system and every container has.
    fn add_null(&self) -> Result<()> {
        let device = self.root.join("dev/null");
        if !device.exists() {
            std::fs::create_dir_all(self.root.join("dev"))?;
            output(Command::new("mknod").args(["--mode=666"]).arg(&device).args(["c", "1", "3"]))?;
        }
        Ok(())
    }

    /// A command in this root, started in `folder`.
    ///
    /// # Errors
    /// When the folder for `/proc` cannot be made.
    pub fn command(&self, folder: &str, program: &str, arguments: &[&str]) -> Result<Command> {
        let mut unshare = Command::new("unshare");
        unshare.args(["--mount", "--pid", "--fork", "--kill-child"]);
        unshare.arg(format!("--root={}", self.root.display())).arg(format!("--wd={folder}"));
        if self.proc {
            std::fs::create_dir_all(self.root.join("proc"))?;
            self.add_null()?;
            unshare.arg("--mount-proc=/proc");
        }
        unshare.args([format!("--setgid={}", self.user), format!("--setuid={}", self.user)]);
        unshare
            .arg(program)
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", folder);
        Ok(unshare)
    }

    /// Runs a command of `plimsoll` to its end and returns its stdout.
    ///
    /// # Errors
    /// When it ends with another code than 0.
    pub fn run(&self, folder: &str, program: &str, arguments: &[&str]) -> Result<String> {
        output(&mut self.command(folder, program, arguments)?)
    }

    /// Starts a server of `plimsoll`, and returns it with its address once it is ready.
    ///
    /// # Errors
    /// When it ends before.
    pub fn serve(&self, folder: &str, program: &str, arguments: &[&str]) -> Result<Server> {
        let all = [&["serve"], arguments, &["--port", "0"]].concat();
        let mut command = self.command(folder, program, &all)?;
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = child.spawn().context("starting unshare")?;
        let out = child.stdout.take().context("no stdout")?;
        let mut server = Server { child, url: String::new() };
        for line in BufReader::new(out).lines() {
            let line = line?;
            if let Some(rest) = line.strip_prefix("ready ") {
                let url = rest.split_whitespace().find(|word| word.starts_with("http://"));
                url.with_context(|| format!("no address in '{line}'"))?.clone_into(&mut server.url);
                return Ok(server);
            }
        }
        bail!("plimsoll serve {} ended before it was ready", arguments.join(" "))
    }

    /// Serves, loads and counts: the smallest use of the program. Returns a line about it.
    ///
    /// # Errors
    /// When a request fails.
    pub fn load(&self, folder: &str, program: &str) -> Result<String> {
        let server = self.serve(folder, program, &["null"])?;
        let flags = ["--clients", "2", "--requests", "500", "--no-record"];
        self.measure(folder, program, &[&["load", server.url.as_str()], &flags[..]].concat())
    }

    /// Runs a command that measures, and returns a line about its requests.
    ///
    /// # Errors
    /// When a request fails.
    pub fn measure(&self, folder: &str, program: &str, arguments: &[&str]) -> Result<String> {
        counted(&self.tried(folder, program, &[arguments, &["--quiet", "--json", "-"]].concat())?)
    }

    /// Runs the quickstart, and returns a line about the requests of its last run.
    ///
    /// # Errors
    /// When a request fails.
    pub fn quickstart(&self, folder: &str, program: &str) -> Result<String> {
        self.tried(folder, program, &["run", "quickstart"])?;
        counted(&self.run(folder, program, &["report", "--format", "json"])?)
    }

    /// Runs a command that measures, and returns its stdout. A machine that is too busy for a measurement is not in question
    /// here.
    fn tried(&self, folder: &str, program: &str, arguments: &[&str]) -> Result<String> {
        let ended = ended(&mut self.command(folder, program, arguments)?)?;
        if !matches!(ended.status.code(), Some(0 | 3)) {
            let said = String::from_utf8_lossy(&ended.stderr);
            bail!("{}: {}: {said}", arguments.join(" "), ended.status);
        }
        Ok(String::from_utf8_lossy(&ended.stdout).into_owned())
    }
}

/// A line about the requests of a record, all of which must have succeeded.
fn counted(record: &str) -> Result<String> {
    let record: serde_json::Value = serde_json::from_str(record).context("the record")?;
    let count = |field: &str| record["ledger"][field].as_u64().unwrap_or_default();
    let (sent, ok) = (count("sent"), count("ok"));
    if sent == 0 || ok != sent {
        bail!("of {sent} requests {ok} succeeded");
    }
    Ok(format!("{ok} requests of {sent} succeeded"))
}

/// A server that ends when it is dropped.
pub struct Server {
    child: Child,
    /// Its address.
    pub url: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process that made the room has one child, the program in it, and ends with it.
        let id = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
        for child in children.unwrap_or_default().split_whitespace() {
            let _ = Command::new("kill").args(["-KILL", child]).status();
        }
        let _ = self.child.wait();
    }
}
