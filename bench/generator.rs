//! The generators: how each is called, and what its output means.

use crate::child::{Child, require};
use crate::measure::Bench;
use crate::reply::{self, Sample};
use anyhow::{Context, Result, bail};
use std::path::PathBuf;

/// Connections of every closed run.
pub const CONNECTIONS: u32 = 32;
/// How much longer than its own duration a generator may take, s.
const PATIENCE_S: u32 = 20;

/// A program that makes load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// This project's.
    Plimsoll,
    /// wg/wrk, one thread.
    Wrk,
    /// nghttp2's h2load over HTTP/1.1, one thread.
    H2load,
    /// Apache's ab with kept connections.
    Ab,
}

/// A tool with its flags, under the name that the tables use.
#[derive(Clone)]
pub struct Variant {
    /// The name in tables.
    pub name: String,
    tool: Tool,
    program: PathBuf,
    /// Flags beyond those every closed run has.
    extra: Vec<String>,
}

impl Variant {
    /// A tool as `name`, with further flags.
    ///
    /// # Errors
    /// When it is not installed.
    pub fn new(bench: &Bench, tool: Tool, name: &str, extra: &[&str]) -> Result<Self> {
        let program = match tool {
            Tool::Plimsoll => bench.plimsoll.clone(),
            Tool::Wrk => require("wrk")?,
            Tool::H2load => require("h2load")?,
            Tool::Ab => require("ab")?,
        };
        let extra = extra.iter().map(|&flag| flag.to_owned()).collect();
        Ok(Self { name: name.to_owned(), tool, program, extra })
    }

    /// The same, with another schedule where the tool has random ones.
    pub fn with_seed(&self, seed: usize) -> Self {
        let mut seeded = self.clone();
        if self.tool == Tool::Plimsoll {
            seeded.extra.extend(["--seed".to_owned(), seed.to_string()]);
        }
        seeded
    }

    /// The command line of a run of `seconds` against `url`.
    fn arguments(&self, url: &str, seconds: u32) -> Vec<String> {
        let connections = CONNECTIONS;
        let line = match self.tool {
            Tool::Plimsoll => {
                let model = if self.extra.iter().any(|flag| flag == "--rate") {
                    format!("--connections {connections}")
                } else {
                    format!("--clients {connections}")
                };
                format!("load {url} {model} --duration {seconds}s --no-record --quiet --json -")
            }
            Tool::Wrk => format!("-t1 -c{connections} -d{seconds}s --latency {url}"),
            Tool::H2load => format!("--h1 -c{connections} -t1 -D {seconds} {url}"),
            // The time limit implies a small number of requests unless one follows it.
            Tool::Ab => {
                let most = u64::from(seconds) * 1_000_000;
                format!("-k -q -c{connections} -t{seconds} -n{most} {url}")
            }
        };
        let mut arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
        // Flags go before the address, which is the last argument of all but one of them.
        let at = if self.tool == Tool::Plimsoll { arguments.len() } else { arguments.len() - 1 };
        arguments.splice(at..at, self.extra.iter().cloned());
        arguments
    }

    /// Starts it against `url`, pinned to the generator's core.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start(&self, bench: &Bench, url: &str, seconds: u32) -> Result<Child> {
        Child::start(&self.program, &self.arguments(url, seconds), Some(bench.cores.generator))
    }

    /// Runs it against `url` for `seconds`.
    ///
    /// # Errors
    /// When it does not start or end, when a request of it failed, or its output cannot be read.
    pub fn run(&self, bench: &Bench, url: &str, seconds: u32) -> Result<Sample> {
        self.finish(bench, self.start(bench, url, seconds)?, seconds)
    }

    /// Waits for a run that was started for `seconds`.
    ///
    /// # Errors
    /// As [`Variant::run`].
    pub fn finish(&self, bench: &Bench, child: Child, seconds: u32) -> Result<Sample> {
        let ended = child.finish(seconds + PATIENCE_S, &bench.interrupted)?;
        // plimsoll ends with 3 when it judges that a run does not say much about the target; it is itself what is
        // measured here.
        let fine = ended.code == Some(0) || self.tool == Tool::Plimsoll && ended.code == Some(3);
        if !fine {
            bail!("{} failed with {:?}: {}", self.name, ended.code, ended.errors.trim());
        }
        let parsed = match self.tool {
            Tool::Plimsoll => reply::plimsoll(&ended.output),
            Tool::Wrk => reply::wrk(&ended.output),
            Tool::H2load => reply::h2load(&ended.output),
            Tool::Ab => reply::ab(&ended.output),
        };
        let sample = parsed.with_context(|| format!("reading what {} said", self.name))?;
        Ok(Sample { cpu_s: ended.cpu_s, ..sample })
    }
}
