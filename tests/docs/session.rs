//! A page's commands, executed in one folder from its first block to its last.

use crate::docs::page::{Block, Kind, Step, blocks, steps};
use crate::docs::{figures, root, shape};
use crate::process::{PATIENCE, Place, Running, find_program, until};
use regex::Regex;
use std::collections::BTreeMap;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::process::Command;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A port that a command names.
static PORT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?:port |127\.0\.0\.1:|localhost:|127\.0\.0\.1 )(\d{2,5})\b").unwrap()
});
static WORD: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b\d{2,5}\b").unwrap());
static ROWS_OF_PORTS: AtomicU32 = AtomicU32::new(0);
/// Ports as near as this keep their distance.
const NEIGHBOURS: u16 = 3;
/// A server that a command starts: it answers until the page ends.
const SERVES: &str = "plimsoll serve ";

pub struct Session {
    place: Place,
    /// The page's ports, and those that are free here.
    ports: BTreeMap<u16, u16>,
    /// Servers with their ports; a later one on the same port takes its place.
    servers: Vec<(String, Running)>,
    stdout: String,
    stderr: String,
    /// Samples with new figures: the block's first line, and what replaces its lines.
    pub replaced: Vec<figures::Replaced>,
}

impl Session {
    /// Returns a session in a folder with a share of the machine that fits its commands.
    pub fn at(place: Place) -> Self {
        let bin = place.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        symlink(figures::program(), bin.join("plimsoll")).unwrap();
        // A reply that refuses is a command that failed.
        let curl = crate::process::find_program("curl");
        let script = format!("#!/bin/sh\nexec {} --fail-with-body \"$@\"\n", curl.display());
        place.script("bin/curl", &script);
        Self {
            place,
            ports: BTreeMap::new(),
            servers: Vec::new(),
            stdout: String::new(),
            stderr: String::new(),
            replaced: Vec::new(),
        }
    }

    /// Does with all blocks of a page what their marks say.
    pub fn page(&mut self, page: &str) {
        for block in blocks(page) {
            self.block(&block);
        }
    }

    /// What a command prints that no block of the page names.
    pub fn printed(&self, command: &str) -> String {
        Running::start(self.shell(command), b"").wait(PATIENCE).expect(0).stdout
    }

    /// Does with a block what its mark says.
    pub fn block(&mut self, block: &Block) {
        for name in block.all("file") {
            let from = root().join("tests/docs/files").join(name);
            let text = std::fs::read_to_string(&from)
                .unwrap_or_else(|error| panic!("{}: {}: {error}", block.at, from.display()));
            let text = self.put_in(block, &text);
            self.place.file(name, text);
        }
        for command in block.all("serve") {
            self.step(block, &format!("{SERVES}{command}"), &[0]);
        }
        for command in block.all("before") {
            self.step(block, command, &[0]);
        }
        for command in block.all("behind") {
            self.start_behind(block, command);
        }
        match &block.kind {
            Some(Kind::Run) => {
                for step in steps(&block.lines) {
                    let exits = block.all("exit").next().unwrap_or("0").split(' ');
                    let exits: Vec<i32> = exits.map(|code| code.parse().unwrap()).collect();
                    self.step(block, &step.command, &exits);
                    self.compare_step(block, &step);
                }
            }
            Some(Kind::Output) => {
                let sample: Vec<&str> = block.lines.iter().map(String::as_str).collect();
                let lines = self.compare(block, &sample);
                self.replaced.push(figures::Replaced::new(block, 0, sample.len(), lines));
            }
            Some(Kind::Input(name)) => {
                let text = self.put_in(block, &block.lines.join("\n"));
                self.place.file(name, text + "\n");
            }
            Some(Kind::NotRun(_)) => self.check_flags(block),
            _ => {}
        }
        for command in block.all("after") {
            self.step(block, command, &[0]);
        }
    }

    fn compare_step(&mut self, block: &Block, step: &Step) {
        if !step.output.is_empty() {
            let sample: Vec<&str> = step.output.iter().map(String::as_str).collect();
            let lines = self.compare(block, &sample);
            let replaced = figures::Replaced::new(block, step.first, sample.len(), lines);
            self.replaced.push(replaced);
        }
    }

    /// Compares a sample with what was printed last; returns the printed lines in its place.
    fn compare(&self, block: &Block, sample: &[&str]) -> Vec<String> {
        let printed = if block.has("stderr") { &self.stderr } else { &self.stdout };
        let is_exact = !block.has("figures") && !block.has("shape");
        let items = if is_exact { shape::exact } else { shape::items };
        let (sample, shown) = (items(&sample.join("\n")), items(printed));
        shape::matched(&sample, &shown).unwrap_or_else(|why| {
            panic!("{}: {why}\n--- all of it\n{printed}\n--- stderr\n{}", block.at, self.stderr)
        })
    }

    /// A text with free ports, and with what the block's mark says in place of what the page says.
    fn put_in(&mut self, block: &Block, text: &str) -> String {
        let mut text = text.replace("/tmp/", "./");
        let in_tests = block.all("short").filter(|_| !figures::are_wanted());
        for change in block.all("with").chain(in_tests) {
            let (old, new) = change.split_once(" =>").unwrap_or_else(|| panic!("{change}"));
            text = text.replace(old, new.trim_start());
        }
        for found in PORT.captures_iter(&text) {
            let port: u16 = found[1].parse().unwrap();
            if !self.ports.contains_key(&port) {
                let free = self.free_port(port);
                self.ports.insert(port, free);
            }
        }
        let put_in = |found: &regex::Captures<'_>| {
            let port = found[0].parse().ok().and_then(|port: u16| self.ports.get(&port));
            port.map_or(found[0].to_owned(), ToString::to_string)
        };
        WORD.replace_all(&text, put_in).into_owned()
    }

    /// A free port in place of one of the page's; neighbours stay neighbours, as the containers of one server are.
    fn free_port(&self, port: u16) -> u16 {
        let near = self.ports.range(port.saturating_sub(NEIGHBOURS)..=port + NEIGHBOURS).next();
        if let Some((own, free)) = near {
            return free + port - own;
        }
        // Below those that the kernel deals out, and elsewhere for each process that runs tests.
        let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
        let are_free = |first: &u16| (*first - NEIGHBOURS..=first + NEIGHBOURS).all(is_free);
        let candidates = std::iter::repeat_with(|| {
            let number = std::process::id() * 64 + ROWS_OF_PORTS.fetch_add(1, Ordering::Relaxed);
            20_000 + (number % 1_000 * 12) as u16
        });
        candidates.take(1_000).find(are_free).expect("free ports in a row")
    }

    /// A command of the page, in a shell that finds the program under test.
    fn shell(&self, script: &str) -> Command {
        let mut shell = self.place.program("bash", ["-c", script]);
        let path = std::env::var("PATH").unwrap_or_default();
        let bin = self.place.path().join("bin");
        shell.env("PATH", format!("{}:{path}", bin.display())).env("COLUMNS", "100");
        shell
    }

    /// Executes a command; a server goes on until the page ends.
    fn step(&mut self, block: &Block, command: &str, exits: &[i32]) {
        let command = self.put_in(block, command);
        if command.starts_with(SERVES) {
            return self.serve(&command);
        }
        // A pipe fails with the first of its programs that does.
        let shell = self.shell(&format!("set -o pipefail; {command}"));
        let ended = Running::start(shell, b"").wait(PATIENCE);
        let is_allowed = exits.iter().any(|code| ended.code == Some(*code));
        let ended = if is_allowed { ended } else { ended.expect_of(&block.at, exits[0]) };
        self.stdout = self.as_the_page_says(&ended.stdout);
        self.stderr = self.as_the_page_says(&ended.stderr);
    }

    fn serve(&mut self, command: &str) {
        let port = PORT.captures(command).map_or(String::new(), |found| found[1].to_owned());
        self.servers.retain(|(own, _)| port.is_empty() || *own != port);
        let running = Running::start(self.shell(&format!("exec {command}")), b"");
        let printed = running.wait_for("ready ", Duration::from_secs(60));
        self.stdout = self.as_the_page_says(&printed);
        self.stderr = String::new();
        self.servers.push((port, running));
    }

    /// Starts a program that serves the block's commands: `PORT COMMAND`. It answers before anything else is done.
    fn start_behind(&mut self, block: &Block, command: &str) {
        let command = self.put_in(block, &format!("port {command}"));
        let (port, command) = command["port ".len()..].split_once(' ').unwrap();
        let program = command.split(' ').next().unwrap_or_default();
        if program != "plimsoll" {
            find_program(program);
        }
        let running = Running::start(self.shell(&format!("exec {command}")), b"");
        let address = format!("127.0.0.1:{port}");
        until(&format!("{}: {command} answers", block.at), PATIENCE, || {
            TcpStream::connect(&address).is_ok()
        });
        self.servers.push((port.to_owned(), running));
    }

    /// A text with the page's ports.
    fn as_the_page_says(&self, text: &str) -> String {
        self.ports.iter().fold(text.to_owned(), |text, (port, free)| {
            text.replace(&free.to_string(), &port.to_string())
        })
    }

    /// What is not executed has flags that exist: a further one that does not is the only one complained about.
    fn check_flags(&self, block: &Block) {
        for step in steps(&block.lines) {
            if !step.command.starts_with("plimsoll ") {
                continue;
            }
            let command = step.command.split(" #").next().unwrap().trim_end();
            let shell = self.shell(&format!("{command} --no-such-flag"));
            let ended = Running::start(shell, b"").wait(PATIENCE);
            assert!(
                ended.code == Some(64) && ended.stderr.contains("--no-such-flag"),
                "{}: {command}\n{}",
                block.at,
                ended.stderr
            );
        }
    }
}
