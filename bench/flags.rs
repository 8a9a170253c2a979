//! What can be asked of the benchmark.

use anyhow::{Result, bail};
use clap::{Parser, ValueEnum};
use std::path::PathBuf;

/// Where the tables live that `--write` refreshes.
const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/performance.md");

/// Measures plimsoll beside its peers on this machine and prints ratios.
#[derive(Parser, Debug)]
#[command(name = "peers")]
pub struct Flags {
    /// Rounds of each measure; each round runs every tool once. Searches of each line, for `lines`.
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub rounds: u32,
    /// Seconds of each run within a round; a fixed rate takes half of it. Budget of a search, for `lines`.
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub seconds: u32,
    /// Only these measures.
    #[arg(long, value_name = "MEASURE", value_delimiter = ',')]
    only: Vec<Measure>,
    /// Refresh the tables in this document, or in docs/performance.md.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = DOCUMENT)]
    pub write: Option<PathBuf>,
    /// The program to measure.
    #[arg(long, value_name = "FILE", default_value = env!("CARGO_BIN_EXE_plimsoll"))]
    pub plimsoll: PathBuf,
    /// Another build of plimsoll, such as the commit before, for the measure `against`.
    #[arg(long, value_name = "FILE")]
    pub before: Option<PathBuf>,
    /// Commit of that build, for tables and the history.
    #[arg(long, value_name = "COMMIT")]
    pub before_name: Option<String>,
    /// Commit of the program to measure.
    #[arg(long, value_name = "COMMIT")]
    pub now_name: Option<String>,
    /// Add the result of `against` to the history in this folder.
    #[arg(long, value_name = "DIR")]
    pub history: Option<PathBuf>,
    /// Scenes of `against` whose names begin so; all by default.
    #[arg(long, value_name = "SCENE", value_delimiter = ',')]
    pub scenes: Vec<String>,
    /// Exit code 1 if a claim is missed.
    #[arg(long)]
    pub gate: bool,
    /// Given by `cargo bench`; without a meaning here.
    #[arg(long, hide = true)]
    bench: bool,
}

/// One measure, which is one section of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Measure {
    /// Closed loop against nginx: the server is the limit, CPU per request tells.
    Nginx,
    /// Closed loop against the null target: the generator is the limit.
    Null,
    /// Fixed rate: how late requests are sent, and how regularly they arrive.
    Lag,
    /// Memory with 32, 1000 and 10,000 connections, and over time.
    Memory,
    /// From starting the program to its first request.
    Start,
    /// Feeding and querying the embedded search target.
    Search,
    /// Loading and querying it beside OpenSearch.
    Engines,
    /// Words with four edits, and scans of raw text beside a copy of it.
    Distance,
    /// Visiting: beside `vespa visit` and a download, and over a long way.
    Visit,
    /// Feeding, beside `vespa feed`.
    Feed,
    /// Votes, beside VoltDB's client for Java, VoltDB and PostgreSQL.
    Voter,
    /// The page of a run in Chromium: bytes, time until it is drawn, frames a second.
    Page,
    /// A live page, metrics and watched resources: the cost of a run with them, and fifty tabs that follow it.
    Outlets,
    /// The lines that `seek` finds of queues beside the truth, `--rounds` searches of `--seconds` each; only when asked for.
    Lines,
    /// The same of nginx, the embedded search target and PostgreSQL.
    ProgramLines,
    /// Comparisons of one queue with itself by `plimsoll ab`, `--rounds` with a budget of `--seconds`; only when asked for.
    AbQueue,
    /// The same of one nginx with itself.
    AbNginx,
    /// The same of a queue with one that is 5 % slower.
    AbSlower,
    /// The same with more load than the generator can send, half a minute each.
    AbLimited,
    /// CPU time of an operation in this build and in that of `--before`; only when asked for.
    Against,
}

impl Measure {
    /// Its name on the command line and in the document.
    pub fn name(self) -> &'static str {
        match self {
            Measure::Nginx => "nginx",
            Measure::Null => "null",
            Measure::Lag => "lag",
            Measure::Memory => "memory",
            Measure::Start => "start",
            Measure::Search => "search",
            Measure::Engines => "engines",
            Measure::Distance => "distance",
            Measure::Visit => "visit",
            Measure::Feed => "feed",
            Measure::Voter => "voter",
            Measure::Page => "page",
            Measure::Outlets => "outlets",
            Measure::Lines => "lines",
            Measure::ProgramLines => "program-lines",
            Measure::AbQueue => "ab-queue",
            Measure::AbNginx => "ab-nginx",
            Measure::AbSlower => "ab-slower",
            Measure::AbLimited => "ab-limited",
            Measure::Against => "against",
        }
    }
}

impl Flags {
    /// The measures asked for, in the order of the document.
    pub fn measures(&self) -> Vec<Measure> {
        let wanted = |measure: &Measure| match self.only.is_empty() {
            true => !matches!(
                measure,
                Measure::AbQueue
                    | Measure::AbNginx
                    | Measure::AbSlower
                    | Measure::AbLimited
                    | Measure::Lines
                    | Measure::ProgramLines
                    | Measure::Against
            ),
            false => self.only.contains(measure),
        };
        Measure::value_variants().iter().copied().filter(wanted).collect()
    }

    /// Refuses what cannot be measured.
    ///
    /// # Errors
    /// The first flag that is out of its range.
    pub fn check(&self) -> Result<()> {
        if !(1..=100).contains(&self.rounds) {
            bail!("--rounds {}: give 1 to 100", self.rounds);
        }
        if !(1..=600).contains(&self.seconds) {
            bail!("--seconds {}: give 1 to 600", self.seconds);
        }
        for (flag, program) in
            [("plimsoll", Some(&self.plimsoll)), ("before", self.before.as_ref())]
        {
            if let Some(program) = program.filter(|program| !program.is_file()) {
                bail!("--{flag} {}: there is no such program", program.display());
            }
        }
        // Known before hours of measurements, and not after them.
        if let Some(page) = self.write.as_ref().filter(|page| !page.is_file()) {
            bail!(
                "--write {}: there is no such file; the path is one from the folder crates/cli, or an absolute one",
                page.display()
            );
        }
        Ok(())
    }
}
