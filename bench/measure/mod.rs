//! The measures, each a section of the result.

mod ab;
mod bare_timer;
mod distance;
mod engines;
mod feed;
mod lag;
mod lines;
mod long_runs;
mod memory;
mod outlets;
mod page;
mod search;
mod speed;
mod start;
mod visit;
mod voter;

use crate::flags::Measure;
use crate::generator::Variant;
use crate::machine::Cores;
use crate::table::Table;
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What every measure needs to know.
pub struct Bench {
    /// The program under measurement.
    pub plimsoll: PathBuf,
    /// Rounds of each measure.
    pub rounds: u32,
    /// Length of a run, s.
    pub seconds: u32,
    /// Where target and generator run.
    pub cores: Cores,
    /// Set when the user asked to stop.
    pub interrupted: Arc<AtomicBool>,
    /// Files of this run, removed at its end.
    pub folder: tempfile::TempDir,
}

/// A measure's result.
pub struct Section {
    /// What was measured.
    pub title: String,
    /// The figures.
    pub tables: Vec<Table>,
    /// What plimsoll claims, and whether it held this time.
    pub claims: Vec<Claim>,
    /// Remarks for the reader, one a line.
    pub notes: Vec<String>,
}

/// A figure that has to stay on one side of a limit.
pub struct Claim {
    /// What it is.
    pub what: String,
    /// As measured.
    pub value: f64,
    /// The limit.
    pub limit: f64,
    /// Which side of the limit is good.
    pub side: Side,
}

/// The good side of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The limit or less.
    Most,
    /// The limit or more.
    Least,
}

impl Claim {
    /// `value` must be at most `limit`.
    pub fn most(what: &str, value: f64, limit: f64) -> Self {
        Self { what: what.to_owned(), value, limit, side: Side::Most }
    }

    /// `value` must be at least `limit`.
    pub fn least(what: &str, value: f64, limit: f64) -> Self {
        Self { what: what.to_owned(), value, limit, side: Side::Least }
    }

    /// True if the figure is on the good side of its limit.
    pub fn holds(&self) -> bool {
        match self.side {
            Side::Most => self.value <= self.limit,
            Side::Least => self.value >= self.limit,
        }
    }

    fn line(&self) -> String {
        // One digit more than the tables have, so that a figure just beside its limit can be told from it.
        let short = |value: f64| match value.abs() {
            size if size < 10.0 => format!("{value:.3}"),
            _ => crate::statistics::short(value),
        };
        let word = if self.side == Side::Most { "at most" } else { "at least" };
        let verdict = if self.holds() { "holds" } else { "MISSED" };
        let (value, limit) = (short(self.value), short(self.limit));
        format!("- {verdict}: {} is {value}, to be {word} {limit}\n", self.what)
    }
}

impl Section {
    /// Tables, claims and notes as Markdown.
    pub fn body(&self) -> String {
        let mut out = String::new();
        for table in &self.tables {
            out.push_str(&table.render());
            out.push('\n');
        }
        for claim in &self.claims {
            out.push_str(&claim.line());
        }
        if !self.claims.is_empty() {
            out.push('\n');
        }
        for note in &self.notes {
            out.push_str(note);
            out.push_str("\n\n");
        }
        out
    }
}

impl Bench {
    /// The same for another build of plimsoll, with a folder of its own.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn of(&self, plimsoll: &Path) -> Result<Self> {
        Ok(Self {
            plimsoll: plimsoll.to_owned(),
            rounds: self.rounds,
            seconds: self.seconds,
            cores: self.cores,
            interrupted: Arc::clone(&self.interrupted),
            folder: tempfile::Builder::new().prefix("plimsoll-bench-").tempdir()?,
        })
    }

    /// True if the user asked to stop.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Longest time of one run of a measure, s.
    pub fn seconds_of(&self, measure: Measure) -> u32 {
        match measure {
            Measure::AbLimited => ab::LIMITED_S.min(self.seconds),
            _ => self.seconds,
        }
    }

    /// Runs one measure.
    ///
    /// # Errors
    /// When a tool is missing or fails, or the user asked to stop.
    pub fn run(&self, measure: Measure) -> Result<Section> {
        match measure {
            Measure::Nginx => speed::nginx(self),
            Measure::Null => speed::null(self),
            Measure::Lag => lag::lag(self),
            Measure::Memory => memory::memory(self),
            Measure::Start => start::start(self),
            Measure::Search => search::search(self),
            Measure::Engines => engines::engines(self),
            Measure::Distance => distance::distance(self),
            Measure::Visit => visit::visit(self),
            Measure::Feed => feed::feed(self),
            Measure::Voter => voter::voter(self),
            Measure::Page => page::page(self),
            Measure::Outlets => outlets::outlets(self),
            Measure::AbQueue => ab::queue(self),
            Measure::AbNginx => ab::nginx(self),
            Measure::AbSlower => ab::slower(self),
            Measure::AbLimited => ab::limited(self),
            Measure::Lines => lines::queues(self),
            Measure::ProgramLines => lines::programs(self),
            Measure::Against => unreachable!("compared in main, with options of its own"),
        }
    }

    /// Runs every variant once a round and hands each result to `take`, with the variant's place. Each round begins
    /// with another variant, so that none always follows the same one.
    ///
    /// # Errors
    /// The first error of `take`.
    pub fn alternate(
        &self,
        variants: &[Variant],
        mut take: impl FnMut(usize, &Variant) -> Result<()>,
    ) -> Result<()> {
        for round in 0..self.rounds as usize {
            for step in 0..variants.len() {
                let at = (round + step) % variants.len();
                eprint!("\rround {} of {}: {:<40}", round + 1, self.rounds, variants[at].name);
                take(at, &variants[at])?;
            }
        }
        eprint!("\r{:<60}\r", "");
        Ok(())
    }
}
