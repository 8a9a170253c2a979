//! Blocks: each is a process that runs the job once, so that both sides begin in the same state.

use crate::arms::Arm;
use crate::jobs::{Kind, Length, remove};
use crate::measured::{Measured, cut, read_record, read_seconds};
use crate::number::Number;
use crate::sought::{limit, load_words};
use anyhow::{Context, Result, anyhow};
use plimsoll_core::clock::now_ns;
use plimsoll_core::interval::Interval;
use plimsoll_job::child::{End, follow, program, spawn_on};
use plimsoll_job::tool::pass_command;
use plimsoll_job::usage::{bounded, unreachable, usage};
use rustix::thread::CpuSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// Exit codes of a block whose target is not there, and of wrong usage.
const TARGET_FAILED: i32 = 4;
const USAGE: i32 = 64;
/// Longest time that a block may take to stop.
const PATIENCE: Duration = Duration::from_secs(35);

/// One block to run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Order {
    /// Length of the measured part, s; `None`: as long as the job makes it.
    pub length_s: Option<f64>,
    /// Time that is left out before it, s.
    pub discard_s: f64,
    /// Rate of a step near the line, requests per second; `None` if the job itself says what is sent.
    pub rate_per_s: Option<f64>,
    /// Seed of its choices.
    pub seed: u64,
    /// True if its seconds are wanted one by one.
    pub wants_seconds: bool,
}

/// All that blocks have in common.
pub struct Blocks {
    /// Their job.
    pub kind: Kind,
    /// The way they get their length.
    pub length: Length,
    /// Place of the number that another program prints.
    pub number: Option<Number>,
    /// True if the question is which generator is better.
    pub are_generators: bool,
    /// Longest time of one block.
    pub limit: Duration,
    /// Place of their files.
    pub folder: TempDir,
}

/// A block that runs.
pub struct Running {
    child: Child,
    files: PathBuf,
    started_ns: u64,
    letter: char,
    order: Order,
}

/// A block that has ended.
pub enum Ended {
    /// It was measured; its seconds, if they were wanted.
    Measured(Box<Measured>, Vec<Interval>),
    /// The user stopped the comparison.
    Stopped,
}

/// The words of a block.
#[must_use]
pub fn words(kind: Kind, length: Length, own: &[String], order: &Order) -> Vec<String> {
    if kind == Kind::Seek {
        return sought(own, order);
    }
    let mut words = own.to_vec();
    if let (Some(length_s), true) = (order.length_s, length != Length::Whole) {
        let whole_s = if length == Length::Cut { length_s + order.discard_s } else { length_s };
        remove(&mut words, kind.length_flag());
        words.extend([kind.length_flag().to_owned(), time(kind, whole_s)]);
    }
    if length == Length::Planned {
        remove(&mut words, kind.warmup_flag());
        words.extend([kind.warmup_flag().to_owned(), time(kind, order.discard_s)]);
    }
    if kind.has_seed() {
        words.extend(["--seed".to_owned(), order.seed.to_string()]);
    }
    words
}

/// The words of a step near the line, or of a whole search.
fn sought(own: &[String], order: &Order) -> Vec<String> {
    let times = |seconds: f64| time(Kind::Load, seconds);
    let mut words = match (order.rate_per_s, limit(own)) {
        (Some(per_s), Some(limit)) => {
            let mut words = load_words(own, limit);
            words.extend(["--rate".to_owned(), format!("{per_s:.3}")]);
            words.extend(["--warmup".to_owned(), times(order.discard_s)]);
            words
        }
        _ => own.to_vec(),
    };
    let flag = if order.rate_per_s.is_some() { "--duration" } else { "--budget" };
    if let Some(length_s) = order.length_s {
        remove(&mut words, flag);
        words.extend([flag.to_owned(), times(length_s)]);
    }
    words.extend(["--seed".to_owned(), order.seed.to_string()]);
    words
}

/// A time as the job reads it.
fn time(kind: Kind, seconds: f64) -> String {
    match kind.whole_seconds() {
        true => format!("{:.0}", seconds.ceil()),
        false => format!("{:.0}ms", (seconds * 1e3).ceil()),
    }
}

impl Blocks {
    /// Starts a block, bound to `processors` if some are named.
    ///
    /// # Errors
    /// When its program cannot be started.
    pub fn start(&self, arm: &Arm, order: Order, processors: Option<CpuSet>) -> Result<Running> {
        let files = self.folder.path().join(arm.letter.to_string());
        // What the block before has left would be read as this one's.
        let _ = std::fs::remove_dir_all(&files);
        std::fs::create_dir_all(&files).with_context(|| files.display().to_string())?;
        let (out, err) = (File::create(files.join("out"))?, File::create(files.join("err"))?);
        let mut command = program(&arm.program);
        command.args(words(self.kind, self.length, &arm.words, &order));
        if self.kind != Kind::Command {
            command.arg("--quiet").arg("--json").arg(files.join("record.json"));
            match order.wants_seconds || self.length == Length::Cut {
                true => command.arg("--runs").arg(files.join("runs")),
                false => command.arg("--no-record"),
            };
            pass_command(&mut command);
        }
        command.stdin(Stdio::null()).stdout(out).stderr(err);
        let child = spawn_on(&mut command, processors).map_err(|error| {
            let shown = Path::new(&arm.program).display();
            usage(format!("the program of {}: '{shown}' cannot be started: {error}", arm.letter))
        })?;
        Ok(Running { child, files, started_ns: now_ns(), letter: arm.letter, order })
    }

    /// Waits for the end of a block, and reads what it left.
    ///
    /// # Errors
    /// When its target cannot be reached, its words are wrong, or its program fails.
    pub fn finish(&self, mut running: Running) -> Result<Ended> {
        let code = match follow(&mut running.child, self.limit, PATIENCE) {
            End::Stopped | End::StoppedAfter => return Ok(Ended::Stopped),
            End::TimedOut => {
                return Err(anyhow!(
                    "a block of {} took longer than {} s; use a larger --budget or a shorter job",
                    running.letter,
                    self.limit.as_secs()
                ));
            }
            End::Exit(code) => code,
        };
        let wall_s = now_ns().saturating_sub(running.started_ns) as f64 / 1e9;
        if self.kind == Kind::Command {
            return self.read_output(&running, code, wall_s);
        }
        if !matches!(code, Some(0 | 2 | 3)) {
            return Err(failure(&running, code));
        }
        let record = read_record(&running.files.join("record.json"))
            .with_context(|| format!("a block of {}", running.letter))?;
        let seconds = match std::fs::read_dir(running.files.join("runs")) {
            Ok(mut found) => match found.next() {
                Some(Ok(entry)) => read_seconds(&entry.path())?,
                _ => Vec::new(),
            },
            Err(_) => Vec::new(),
        };
        let is_cut = self.length == Length::Cut && !running.order.wants_seconds;
        let measured = Measured {
            record: Some(Box::new(record)),
            cut: if is_cut { cut(&seconds, running.order.discard_s) } else { None },
            wall_s,
            is_of_generator: self.are_generators,
            ..Measured::default()
        };
        Ok(Ended::Measured(Box::new(measured), seconds))
    }

    /// Runs one block.
    ///
    /// # Errors
    /// As [`Blocks::start`] and [`Blocks::finish`].
    pub fn run(&self, arm: &Arm, order: Order) -> Result<Ended> {
        self.finish(self.start(arm, order, None)?)
    }

    fn read_output(&self, running: &Running, code: Option<i32>, wall_s: f64) -> Result<Ended> {
        if code != Some(0) {
            return Err(failure(running, code));
        }
        let mut measured = Measured { wall_s, ..Measured::default() };
        if let Some(number) = &self.number {
            let text = std::fs::read_to_string(running.files.join("out")).unwrap_or_default();
            measured.number = number.find(&text);
            if measured.number.is_none() {
                return Err(usage(format!(
                    "--number: the program of {} printed no such number above 0; its output begins with '{}'",
                    running.letter,
                    text.lines().next().unwrap_or_default()
                )));
            }
        }
        Ok(Ended::Measured(Box::new(measured), Vec::new()))
    }
}

/// The error of a block, in the words of its own last line.
fn failure(running: &Running, code: Option<i32>) -> anyhow::Error {
    let text = std::fs::read_to_string(running.files.join("err")).unwrap_or_default();
    let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let line = line.trim().strip_prefix("plimsoll: ").unwrap_or(line.trim());
    let ended = match code {
        Some(code) => format!("ended with exit code {code}"),
        None => "was ended by a signal".to_owned(),
    };
    let said = if line.is_empty() { ended } else { line.to_owned() };
    let line = bounded(format!("a block of {}: {said}", running.letter));
    match code {
        Some(USAGE) => usage(line),
        Some(TARGET_FAILED) => unreachable(line),
        _ => anyhow!(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words_of(kind: Kind, text: &str, order: &Order) -> String {
        let own: Vec<String> = text.split(' ').map(str::to_owned).collect();
        words(kind, kind.length(&own), &own, order).join(" ")
    }

    #[test]
    fn a_block_has_the_planned_length_and_leaves_its_beginning_out() {
        let order = Order { length_s: Some(1.5), discard_s: 0.25, seed: 7, ..Order::default() };
        assert_eq!(
            words_of(Kind::Load, "load http://h --rate 5 --duration 9s --warmup=3s", &order),
            "load http://h --rate 5 --duration 1500ms --warmup 250ms --seed 7"
        );
        assert_eq!(
            words_of(Kind::Load, "load http://h --requests 9", &order),
            "load http://h --requests 9 --seed 7"
        );
        assert_eq!(words_of(Kind::Fbench, "fbench -s 60 h 80", &order), "fbench h 80 -s 2");
        assert_eq!(words_of(Kind::Rank, "rank -q 40", &order), "rank -q 40 -d 2 -w 1 --seed 7");
        assert_eq!(words_of(Kind::Feed, "feed http://h f", &order), "feed http://h f");
        assert_eq!(
            words_of(Kind::Voter, "voter volt://h", &order),
            "voter volt://h --duration 1750ms --seed 7"
        );
    }
}
