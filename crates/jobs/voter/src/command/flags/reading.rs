//! From words and flags to the shape of a run; what contradicts itself is reported.

use super::{BenchFlags, MAX_VOTES, ModeFlag, RhythmFlag, TuneByFlag, WHOLE};
use crate::TunedLatency;
use crate::command::start::start_us;
use anyhow::Result;
use plimsoll_core::clock::wall_us;
use plimsoll_core::schedule::{Arrivals, Slice};
use plimsoll_job::flags::ArrivalsFlag;
use plimsoll_job::postgres;
use plimsoll_job::prepare::only_whole;
use plimsoll_job::together::{has_agents, has_processes, parts_in_all};
use plimsoll_job::usage::usage;
use plimsoll_record::bench_shape::{
    Bench, Managed, PRESETS, Rhythm, SLOTS, Shape, Verbosity, WORDS, preset,
};

/// Calls in a burst where only the rhythm was named.
const BURST: u32 = 100;
/// Contestants that there are names for.
const NAMES_MAX: usize = 12;
/// Longest name that a process's number fits behind.
const CLIENT_CHARS_MAX: usize = 38;
/// Most key ranges that one database is shared out in.
const SLICES_MAX: u32 = 1_000;

/// The words without a flag, distinguished.
#[derive(Debug, Default, PartialEq)]
struct Words {
    targets: Vec<String>,
    preset: Option<String>,
    shape: Option<Shape>,
}

impl Words {
    fn read(words: &[String]) -> Result<Self> {
        let mut read = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if word == "run" && read.shape.is_none() {
                let rest: Vec<&str> = words.as_slice().iter().map(String::as_str).collect();
                let end = rest.iter().position(|word| word.contains("://")).unwrap_or(rest.len());
                let own = &rest[..end];
                let shape = Shape::of_words(own).map_err(|error| usage(error.to_string()))?;
                read.shape = Some(shape);
                words.nth(WORDS - 1);
            } else if word.contains("://") {
                read.targets.push(word.clone());
            } else if word.contains(':') {
                return Err(usage(format!(
                    "target '{}': write volt://{0} or postgres://USER@HOST:PORT/DATABASE",
                    plimsoll_core::secrets::without_address_secrets(word)
                )));
            } else if read.preset.is_none() {
                read.preset = Some(word.clone());
            } else {
                return Err(usage(format!("'{word}': a preset is already named; name one only")));
            }
        }
        Ok(read)
    }
}

/// Returns true if a short name may be a slip of another: one letter is wrong, or two have changed places.
fn is_slip(word: &str, name: &str) -> bool {
    let sorted = |text: &str| {
        let mut letters: Vec<u8> = text.bytes().collect();
        letters.sort_unstable();
        letters
    };
    let wrong = word.bytes().zip(name.bytes()).filter(|(one, other)| one != other).count();
    word.len() == name.len() && (wrong == 1 || sorted(word) == sorted(name))
}

/// A preset by its name.
fn known_preset(name: &str) -> Result<Shape> {
    let known = PRESETS.map(|(name, _)| name);
    let word = name.to_ascii_uppercase();
    preset(name).ok_or_else(|| match known.iter().find(|known| is_slip(&word, known)) {
        Some(near) => usage(format!("unknown preset '{name}'; did you mean '{near}'?")),
        None => usage(format!(
            "unknown preset '{name}'; write one of {}, or a database: volt://HOST:PORT or \
             postgres://USER@HOST:PORT/DATABASE",
            known.join(", ")
        )),
    })
}

impl BenchFlags {
    /// The shape of the run, and the targets that were named.
    ///
    /// # Errors
    /// Words and flags that make no run, or contradict each other.
    pub fn shape(&self, bench: Bench) -> Result<(Shape, Vec<String>)> {
        let words = Words::read(&self.words)?;
        let targets = [&words.targets[..], &self.target].concat();
        let named = match (words.preset, &self.preset) {
            (Some(_), Some(_)) => return Err(usage("the preset is named twice; name it once")),
            (word, flag) => word.or_else(|| flag.clone()),
        };
        let own = if bench == Bench::Hello { "HSD" } else { "VSD" };
        let mut shape = match (words.shape, &named) {
            (Some(_), Some(name)) => {
                return Err(usage(format!(
                    "'{name}': a preset cannot be combined with the words after run; leave one out"
                )));
            }
            (Some(shape), None) => shape,
            (None, Some(name)) => known_preset(name)?,
            (None, None) => known_preset(own)?,
        };
        if bench == Bench::Hello && shape.bench != bench {
            return Err(usage(format!(
                "'{}' calls voter; write plimsoll voter, or use HSD",
                shape.client
            )));
        }
        self.change(&mut shape)?;
        shape.check().map_err(|error| usage(error.to_string()))?;
        Ok((shape, targets))
    }

    /// True if Erlvolt's lines are wanted: its words were used, or its verbosity was named.
    pub fn asks_for_lines(&self) -> bool {
        let is_quiet = self.verbosity.as_deref() == Some(Verbosity::Quiet.name());
        !is_quiet && (self.verbosity.is_some() || self.words.iter().any(|word| word == "run"))
    }

    /// Puts the flags into a preset.
    fn change(&self, shape: &mut Shape) -> Result<()> {
        if let Some(client) = &self.client {
            shape.client.clone_from(client);
        }
        match (self.calls, self.duration) {
            (Some(calls), _) => shape.calls = Some(calls),
            (None, Some(_)) => shape.calls = None,
            // A load that is tuned takes its time.
            (None, None) if self.auto_tune.is_some() => shape.calls = None,
            (None, None) => {}
        }
        self.check_rhythm()?;
        self.change_rhythm(shape)?;
        self.change_mode(shape)?;
        shape.limit = self.limit.or(shape.limit);
        if let Some(word) = &self.verbosity {
            shape.verbosity = Verbosity::of_word(word).map_err(|e| usage(format!("--{e}")))?;
        }
        shape.dump_interval = self.dump_interval.unwrap_or(shape.dump_interval);
        Ok(())
    }

    /// Rejects flags of a rhythm that is not asked for: they would have no effect.
    fn check_rhythm(&self) -> Result<()> {
        let unused = [
            ("--arrivals", self.arrivals.is_some(), "--rate", self.rate.is_some()),
            ("--tune-by", self.tune_by.is_some(), "--auto-tune", self.auto_tune.is_some()),
            ("--budget", self.budget.is_some(), "--seek", !self.seek.is_empty()),
        ];
        match unused.iter().find(|(_, is_given, _, has_use)| *is_given && !has_use) {
            Some((flag, _, with, _)) => {
                Err(usage(format!("{flag} goes with {with}; add {with}, or leave out {flag}")))
            }
            None => Ok(()),
        }
    }

    fn change_rhythm(&self, shape: &mut Shape) -> Result<()> {
        let other = self.rate.is_some() || self.auto_tune.is_some() || !self.seek.is_empty();
        let wish = [self.rate.is_some(), self.auto_tune.is_some(), !self.seek.is_empty()];
        if wish.iter().filter(|wished| **wished).count() > 1 {
            return Err(usage("--rate, --auto-tune and --seek exclude each other; give one"));
        }
        if other && (self.rhythm.is_some() || self.workers.is_some() || self.burst.is_some()) {
            return Err(usage(
                "--rate, --auto-tune and --seek set the pace; leave out --rhythm, --clients and --burst",
            ));
        }
        // A search judges its own limits, and nothing beside them.
        let has_others = !self.slo.is_empty() || !self.assertions.is_empty();
        if !self.seek.is_empty() && has_others {
            return Err(usage(
                "--seek searches for its own limits: write each further limit as another --seek, and leave out --slo and --assert",
            ));
        }
        match self.rhythm {
            Some(RhythmFlag::Burst) if shape.rhythm != Rhythm::Burst => {
                (shape.rhythm, shape.size, shape.delay) = (Rhythm::Burst, BURST, None);
            }
            Some(RhythmFlag::Steady) if shape.rhythm != Rhythm::Steady => {
                (shape.rhythm, shape.size, shape.delay) = (Rhythm::Steady, 200, None);
            }
            _ => {}
        }
        let is_burst = shape.rhythm == Rhythm::Burst && !other;
        if !is_burst && (self.burst.is_some() || self.delay.is_some() || self.limit.is_some()) {
            return Err(usage("--burst, --delay and --limit go with --rhythm burst"));
        }
        if is_burst && self.workers.is_some() {
            return Err(usage("--clients goes with --rhythm steady; a burst has a size, --burst"));
        }
        shape.size = self.workers.or(self.burst).unwrap_or(shape.size);
        shape.delay = self.delay.or(shape.delay);
        if let Some(rate_per_s) = self.rate.map(|rate| rate.per_s) {
            let arrivals = match self.arrivals {
                Some(ArrivalsFlag::Poisson) => Arrivals::Poisson,
                Some(ArrivalsFlag::Uniform) | None => Arrivals::Uniform,
            };
            shape.rhythm = Rhythm::Open { rate_per_s, arrivals };
        } else if let Some(goal) = &self.auto_tune {
            shape.rhythm = Rhythm::Tuned { goal: goal.to_string() };
        } else if !self.seek.is_empty() {
            let goals: Vec<String> = self.seek.iter().map(ToString::to_string).collect();
            shape.rhythm = Rhythm::Sought { goal: goals.join(" and ") };
            shape.calls = None;
        }
        Ok(())
    }

    fn change_mode(&self, shape: &mut Shape) -> Result<()> {
        match self.mode {
            Some(ModeFlag::Direct) => shape.managed = None,
            Some(ModeFlag::Managed) if shape.managed.is_none() => {
                shape.managed = Some(Managed { queue: None, slots: SLOTS });
            }
            _ => {}
        }
        match &mut shape.managed {
            Some(managed) => {
                managed.queue = self.queue.or(managed.queue);
                managed.slots = self.slots.unwrap_or(managed.slots);
            }
            None if self.queue.is_some() => {
                return Err(usage("--queue goes with --mode managed"));
            }
            None if self.slots.is_some() => {
                return Err(usage("--slots goes with --mode managed"));
            }
            None if self.queue_timeout.is_some() => {
                return Err(usage("--queue-timeout goes with --mode managed"));
            }
            None => {}
        }
        if shape.managed.is_some() && self.auto_tune.is_some() {
            return Err(usage(
                "--auto-tune sets the number of calls in flight, not slots; use --mode direct",
            ));
        }
        Ok(())
    }

    /// The names of the contestants, where they are not the usual ones, and how many there are.
    ///
    /// # Errors
    /// A list that is too long, empty, or has an empty name.
    pub fn names(&self) -> Result<(usize, Option<Vec<String>>)> {
        let too_long = |n: usize| usage(format!("--contestants {n}: use 1 to {NAMES_MAX}"));
        let Some(list) = &self.names else {
            return match self.contestants.unwrap_or(6) {
                0 => Err(usage("--contestants must be 1 to 12")),
                n if n > NAMES_MAX => Err(too_long(n)),
                n => Ok((n, None)),
            };
        };
        let names: Vec<String> = list.split(',').map(|name| name.trim().to_owned()).collect();
        if names.len() > NAMES_MAX {
            return Err(too_long(names.len()));
        }
        if names.iter().any(|name| name.is_empty() || name.len() > 50) {
            return Err(usage("--names: a name has 1 to 50 bytes; write A,B,C"));
        }
        if (1..names.len()).any(|at| names[..at].contains(&names[at])) {
            return Err(usage("--names: two contestants have the same name"));
        }
        if self.contestants.is_some_and(|n| n != names.len()) {
            return Err(usage(format!("--contestants: --names names {}", names.len())));
        }
        Ok((names.len(), Some(names)))
    }

    /// This client's share of the telephone numbers.
    ///
    /// # Errors
    /// When it is not a share.
    pub fn slice(&self) -> Result<Slice> {
        let wrong = || {
            usage(format!(
                "--slice '{}': write I/N from 1/N to N/N, N at most {SLICES_MAX}",
                self.slice
            ))
        };
        let (index, of) = self.slice.split_once('/').ok_or_else(wrong)?;
        let (index, of): (u32, u32) = index.parse().ok().zip(of.parse().ok()).ok_or_else(wrong)?;
        if index == 0 || index > of || of > SLICES_MAX {
            return Err(wrong());
        }
        Ok(Slice { index: index - 1, of })
    }

    /// Returns the number of this process among several.
    ///
    /// # Errors
    /// When it is no part.
    pub fn part(&self) -> Result<Slice> {
        let Some(text) = &self.part else { return Ok(Slice::WHOLE) };
        text.parse().map_err(|error| usage(format!("--part {error}")))
    }

    /// Returns true if each process of the run votes in a key range of its own. The coordinator and its processes agree on it.
    pub fn has_own_ranges(&self) -> bool {
        self.own_range || (has_processes() && !self.is_of_search)
    }

    /// Threads of all parts together.
    fn threads_in_all(&self) -> Result<u32> {
        Ok(self.cores.saturating_mul(parts_in_all(self.part()?)))
    }

    /// Rejects in a part of a larger run what needs the whole of it.
    fn check_part(&self, targets: &[String]) -> Result<()> {
        let part = self.part()?;
        let controls = "the number of calls in flight follows from all answers";
        if self.auto_tune.is_some() || (!self.seek.is_empty() && !self.is_of_search) {
            only_whole(part, "a load of --auto-tune or --seek", controls)?;
        }
        let has_start = self.start_at.is_some() || self.start_delay.is_some();
        if has_agents() && !has_processes() && has_start {
            return Err(usage("agents start together; leave out --start-at and --start-delay"));
        }
        if targets.is_empty() && !self.has_own_ranges() {
            only_whole(part, "a run with a database of its own", "name one with --target")?;
        }
        Ok(())
    }

    /// Returns true if anything is said about the election.
    fn has_election(&self) -> bool {
        self.names.is_some()
            || self.contestants.is_some()
            || self.max_votes != MAX_VOTES
            || self.slice != WHOLE
    }

    /// Returns the latency by which the load is tuned.
    #[must_use]
    pub const fn tuned_latency(&self) -> TunedLatency {
        match self.tune_by {
            Some(TuneByFlag::Server) => TunedLatency::Server,
            Some(TuneByFlag::Client) | None => TunedLatency::Client,
        }
    }

    /// When the calls begin, microseconds since the Unix epoch; `None` is at once.
    ///
    /// # Errors
    /// As [`start_us`].
    pub fn start_us(&self) -> Result<Option<u64>> {
        start_us(self.start_at.as_deref(), self.start_delay, wall_us())
    }

    /// Refuses numbers and combinations that make no sense for these targets.
    ///
    /// # Errors
    /// The first of them.
    pub fn check(&self, shape: &Shape, targets: &[String]) -> Result<()> {
        let is_sql = targets.iter().any(|target| postgres::is_address(target));
        let sql_only = self.sql.is_some() || self.isolation.is_some() || self.retries.is_some();
        self.check_part(targets)?;
        let several = self.has_own_ranges();
        let parts = parts_in_all(self.part()?);
        let wrong = if sql_only && !is_sql {
            "--sql, --isolation and --retries are PostgreSQL's; name a postgres:// target"
        } else if is_sql && self.tune_by == Some(TuneByFlag::Server) {
            "--tune-by server: PostgreSQL reports no times with its answers; leave it out"
        } else if self.connections == Some(0) {
            "--connections must be at least 1"
        } else if !self.seek.is_empty() && (self.calls.is_some() || self.duration.is_some()) {
            "--seek takes as long as its --budget; leave out --calls and --duration"
        } else if self.max_votes == 0 {
            "--max-votes must be at least 1; the first vote of a telephone always counts"
        } else if several && shape.client.len() > CLIENT_CHARS_MAX {
            "--client: each process appends its number to the name; use at most 38 characters"
        } else if several && shape.calls.is_some_and(|calls| calls < parts.into()) {
            "--calls: fewer than one for each of the processes"
        } else if shape.rhythm == Rhythm::Steady && shape.size < self.threads_in_all()? {
            "--clients: fewer than one for each thread; use more clients, or fewer --threads and --processes"
        } else if shape.bench == Bench::Hello && self.has_election() {
            "--names, --contestants, --max-votes and --slice are the election's; leave them out for hello"
        } else {
            return Ok(());
        };
        Err(usage(wrong))
    }
}
