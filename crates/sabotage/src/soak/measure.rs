//! A soak: one long run, its processes watched, and each figure judged: flat, or growing by how much an hour.

use super::watch::{Level, Watch};
use crate::sabotages::interposer::Interposed;
use crate::sockets::process::Process;
use crate::sockets::stage::Stage;
use plimsoll_decide::growth::{Answer, Growth, Terms, judge};
use rustix::process::Pid;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Share of soaks without growth in which some figure may be called growing.
const ERROR: f64 = 0.01;
/// Time beyond its length that a run has to end in, for its last replies and its record.
const PATIENCE: Duration = Duration::from_secs(60);
/// Samples of a run that is too short for one a second; shortest and longest interval between two.
const SAMPLES: u32 = 120;
const OFTEN: Duration = Duration::from_millis(50);
const SELDOM: Duration = Duration::from_secs(1);
/// Least share of successful requests: the target fails 2 %.
const OK_LEAST: f64 = 0.95;
/// Timeout of a request.
const TIMEOUT: &str = "2s";

/// Stretches of a run that give one sample each.
const STRETCHES: u32 = 240;

/// A figure that must not grow, with its unit and the growth an hour that counts as none.
#[derive(Clone, Copy, Debug)]
struct Figure {
    name: &'static str,
    unit: &'static str,
    allowance: f64,
    of: fn(&Level) -> f64,
}

/// Figures of a process. At their allowances a day is harmless: 48 MB of memory, and a quarter of the usual 1,024 descriptors.
const OF_PROCESSES: [Figure; 3] = [
    Figure { name: "memory", unit: "MB", allowance: 2.0, of: |level| level.rss_bytes as f64 / 1e6 },
    Figure { name: "descriptors", unit: "", allowance: 10.0, of: |level| level.descriptors as f64 },
    Figure { name: "threads", unit: "", allowance: 10.0, of: |level| level.threads as f64 },
];

/// Percentiles of the generator's lag in each second, and their allowance, ms an hour.
const OF_LAG: [(&str, f64); 2] = [("p50", 0.1), ("p99", 0.5)];

/// A soak.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Requests per second.
    pub rate_per_s: f64,
    /// Length.
    pub length: Duration,
    /// Things that the generator is made to lose.
    pub interposed: Interposed,
}

/// One judged figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The process.
    pub subject: String,
    /// The figure.
    pub figure: String,
    /// Its unit; empty for a count.
    pub unit: &'static str,
    /// Largest value of the whole run.
    pub most: f64,
    /// The judgement.
    pub growth: Growth,
}

/// The result of a soak.
#[derive(Clone, Debug)]
pub struct Soaked {
    /// All figures.
    pub lines: Vec<Line>,
    /// The record of the run.
    pub record: Value,
}

/// A process that serves, watched beside the generator.
#[derive(Clone, Debug)]
pub struct Server {
    /// Its name in the table.
    pub name: String,
    /// Its id.
    pub pid: Pid,
}

/// Carries a soak out on `url`.
///
/// # Errors
/// When the run leaves no record, or no seconds.
pub fn run(stage: &Stage, plan: &Plan, url: &str, servers: &[Server]) -> Result<Soaked, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let folder = folder.path();
    let [json, seconds] = ["run.json", "seconds.ndjson"].map(|name| folder.join(name));
    let mut command = Command::new(&stage.program);
    command.args(["load", url, "--insecure", "--quiet", "--timeout", TIMEOUT]);
    command.args(["--rate", &plan.rate_per_s.to_string()]);
    command.args(["--duration", &format!("{}s", plan.length.as_secs_f64())]);
    command.arg("--json").arg(&json).arg("--stream").arg(&seconds);
    command.arg("--runs").arg(folder.join("runs"));
    plan.interposed.apply(&mut command, folder)?;
    let mut generator = Process::start(command, stage.generators_core, folder)?;
    let processes = std::iter::once(generator.pid()).chain(servers.iter().map(|one| one.pid));
    let every = (plan.length / SAMPLES).clamp(OFTEN, SELDOM);
    let watch = Watch::start(processes.collect(), every);
    // What the writing of the record takes is not the run's.
    let early = generator.wait(plan.length)?;
    let levels = watch.end();
    let ended = early.map_or_else(|| generator.wait(PATIENCE), |status| Ok(Some(status)))?;
    let said = |name| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    let record: Value = serde_json::from_str(&said("run.json")).map_err(|_| {
        format!("the run left no record, exit {ended:?}: {}", said("stderr").trim())
    })?;
    enough_succeeded(&record)?;
    let names = std::iter::once("plimsoll load").chain(servers.iter().map(|one| one.name.as_str()));
    let named: Vec<(&str, &[Level])> = names.zip(levels.iter().map(Vec::as_slice)).collect();
    Ok(Soaked { lines: lines(&named, &lag(&seconds)?, plan.length / STRETCHES), record })
}

/// Rejects a run in which more failed than the target was asked to fail: its figures are those of an overloaded machine.
fn enough_succeeded(record: &Value) -> Result<(), String> {
    let number = |pointer: &str| record.pointer(pointer).and_then(Value::as_f64).unwrap_or(0.0);
    let (scheduled, ok) = (number("/ledger/scheduled"), number("/ledger/ok"));
    if scheduled > 0.0 && ok >= OK_LEAST * scheduled {
        return Ok(());
    }
    Err(format!(
        "this was no soak: {ok} of {scheduled} requests succeeded; use a lower rate, or a machine that nothing else uses"
    ))
}

/// Judges all figures: those of processes, and the lag of each second as (time, p50, p99).
///
/// Levels are judged by the least value of each stretch, which a leak raises as much as any other value. A moment in which
/// connections wait raises only the others. Lag is judged by the median of each stretch.
fn lines(processes: &[(&str, &[Level])], lag: &[(f64, [f64; 2])], stretch: Duration) -> Vec<Line> {
    let count = processes.len() * OF_PROCESSES.len() + OF_LAG.len();
    let error = ERROR / count as f64;
    let line = |subject: &str, name: &str, unit, allowance, place, samples: &[(f64, f64)]| {
        let most = samples.iter().map(|one| one.1).fold(0.0, f64::max);
        let growth = judge(&of_stretches(samples, stretch, place), Terms { error, allowance });
        Line { subject: subject.to_owned(), figure: name.to_owned(), unit, most, growth }
    };
    let mut lines = Vec::new();
    for (subject, levels) in processes {
        for figure in OF_PROCESSES {
            let samples: Vec<(f64, f64)> =
                levels.iter().map(|level| (level.at_s, (figure.of)(level))).collect();
            lines.push(line(subject, figure.name, figure.unit, figure.allowance, LEAST, &samples));
        }
    }
    for (at, (name, allowance)) in OF_LAG.iter().enumerate() {
        let samples: Vec<(f64, f64)> = lag.iter().map(|second| (second.0, second.1[at])).collect();
        let name = format!("{name} of lag");
        lines.push(line("plimsoll load", &name, "ms", *allowance, MEDIAN, &samples));
    }
    lines
}

/// Places of a value among those of a stretch in ascending order, as a share of them.
const LEAST: f64 = 0.0;
const MEDIAN: f64 = 0.5;

/// Returns one sample for each stretch of `samples`: that at the given place among them.
fn of_stretches(samples: &[(f64, f64)], stretch: Duration, place: f64) -> Vec<(f64, f64)> {
    let number = |sample: &(f64, f64)| (sample.0 / stretch.as_secs_f64()).floor();
    let of_one = |together: &[(f64, f64)]| {
        let mut sorted = together.to_vec();
        sorted.sort_by(|a, b| a.1.total_cmp(&b.1));
        sorted[(place * (sorted.len() - 1) as f64) as usize]
    };
    samples.chunk_by(|a, b| number(a) == number(b)).map(of_one).collect()
}

/// The lag of each second of a stream.
fn lag(path: &Path) -> Result<Vec<(f64, [f64; 2])>, String> {
    let said = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| said(&error))?;
    let mut seconds = Vec::new();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).map_err(|error| said(&error))?;
        let number = |pointer: &str| line.pointer(pointer).and_then(Value::as_f64);
        let lag = OF_LAG.map(|(name, _)| number(&format!("/lag_ms/{name}")).unwrap_or(f64::NAN));
        // The last second may be a rest.
        if number("/lag_ms/count").is_some_and(|count| count > 0.0) {
            seconds.extend(number("/to_s").map(|to_s| (to_s, lag)));
        }
    }
    if seconds.is_empty() { Err(said(&"no seconds")) } else { Ok(seconds) }
}

impl Soaked {
    /// Returns true if some figure grows.
    #[must_use]
    pub fn grows(&self) -> bool {
        self.lines.iter().any(|line| line.growth.answer == Answer::Grows)
    }

    /// Returns the line of a figure of a process.
    #[must_use]
    pub fn line(&self, subject: &str, figure: &str) -> Option<&Line> {
        self.lines.iter().find(|line| line.subject == subject && line.figure == figure)
    }

    /// Returns the sentences about the run: its length, what happened in it, and its verdict.
    #[must_use]
    pub fn words(&self) -> String {
        let number =
            |pointer: &str| self.record.pointer(pointer).and_then(Value::as_f64).unwrap_or(0.0);
        let text =
            |pointer: &str| self.record.pointer(pointer).and_then(Value::as_str).unwrap_or("-");
        let failed = self.record.pointer("/ledger/failed").and_then(Value::as_object);
        let failed: Vec<String> = failed
            .into_iter()
            .flatten()
            .filter_map(|(kind, count)| Some((kind, count.as_u64()?)))
            .filter(|(_, count)| *count > 0)
            .map(|(kind, count)| format!("{kind} {count}"))
            .collect();
        format!(
            "{} requests, {} succeeded; failed: {}. {} connections were opened. Verdict: {}.",
            number("/ledger/sent"),
            number("/ledger/ok"),
            if failed.is_empty() { "none".to_owned() } else { failed.join(", ") },
            number("/counters/connects"),
            text("/verdict/kind"),
        )
    }

    /// Returns the table of all figures.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut text = "| process | figure | level | most | growth an hour | interval | answer |\n\
                        |---|---|--:|--:|--:|---|---|\n"
            .to_owned();
        for Line { subject, figure, unit, most, growth } in &self.lines {
            let digits = if *unit == "ms" { 3 } else { 1 };
            let of = |value: f64| match value {
                _ if !value.is_finite() => "-".to_owned(),
                // A zero has no sign.
                _ => format!("{:.digits$}", if value.abs() < 1e-9 { 0.0 } else { value }),
            };
            let (low, high) = growth.interval;
            let name = if unit.is_empty() { figure.clone() } else { format!("{figure}, {unit}") };
            // Writing to memory cannot fail.
            let _ = writeln!(
                text,
                "| {subject} | {name} | {} | {} | {} | {} to {} | {} |",
                of(growth.level),
                of(*most),
                of(growth.per_hour),
                of(low),
                of(high),
                growth.answer.words(),
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::rng::Rng;

    fn levels(count: u32, leaked_bytes_per_s: f64, descriptor_every_s: u32) -> Vec<Level> {
        let mut rng = Rng::new(u64::from(count));
        let one = |at: u32| Level {
            at_s: f64::from(at),
            rss_bytes: 40_000_000
                + 4_096 * rng.below(20)
                + (leaked_bytes_per_s * f64::from(at)) as u64,
            descriptors: u64::from(30 + at.checked_div(descriptor_every_s).unwrap_or(0)),
            threads: 4,
        };
        (0..count).map(one).collect()
    }

    fn quiet_lag(count: u32) -> Vec<(f64, [f64; 2])> {
        (0..count).map(|at| (f64::from(at), [0.05, 0.2])).collect()
    }

    fn growing(processes: &[(&str, &[Level])], seconds: u32) -> Vec<String> {
        let lines = lines(processes, &quiet_lag(seconds), Duration::from_secs(2));
        let grows = lines.iter().filter(|line| line.growth.answer == Answer::Grows);
        grows.map(|line| format!("{} {}", line.subject, line.figure)).collect()
    }

    #[test]
    fn a_kilobyte_each_thousand_requests_and_a_descriptor_a_minute_are_found() {
        let (flat, leaking) = (levels(600, 0.0, 0), levels(600, 20_000.0, 60));
        assert_eq!(growing(&[("load", &flat), ("target", &flat)], 600), Vec::<String>::new());
        assert_eq!(
            growing(&[("load", &flat), ("target", &leaking)], 600),
            ["target memory", "target descriptors"]
        );
        assert_eq!(growing(&[("load", &leaking)], 600).len(), 2);
    }

    #[test]
    fn peaks_that_pass_hide_no_leak_and_are_none() {
        let peaks = |leaks: bool| -> Vec<Level> {
            let mut rng = Rng::new(7);
            let mut levels = levels(7_200, 0.0, if leaks { 60 } else { 0 });
            for level in &mut levels {
                if rng.below(10) == 0 {
                    level.descriptors += 1_000 + rng.below(3_000);
                }
            }
            levels
        };
        let judged = |levels: &[Level]| {
            let half_minute = Duration::from_secs(30);
            let lines = lines(&[("load", levels)], &quiet_lag(7_200), half_minute);
            let descriptors = lines.iter().find(|line| line.figure == "descriptors").unwrap();
            assert!(descriptors.most > 3_900.0);
            descriptors.growth
        };
        assert_eq!(judged(&peaks(false)).answer, Answer::Flat);
        let leak = judged(&peaks(true));
        assert_eq!(leak.answer, Answer::Grows);
        assert!((leak.per_hour - 60.0).abs() < 1.0, "{leak:?}");
    }

    #[test]
    fn a_run_in_which_most_requests_failed_is_no_soak() {
        let record = |scheduled: u64, ok: u64| {
            enough_succeeded(&serde_json::json!({"ledger": {"scheduled": scheduled, "ok": ok}}))
        };
        assert_eq!(record(1_000, 979), Ok(()));
        assert!(record(1_000, 900).unwrap_err().contains("900 of 1000 requests"));
        assert!(record(0, 0).is_err());
    }

    #[test]
    fn the_table_has_the_growth_of_each_figure() {
        let leaking = levels(600, 20_000.0, 0);
        let second = Duration::from_secs(1);
        let lines = lines(&[("plimsoll load", &leaking)], &quiet_lag(600), second);
        let soaked = Soaked { lines, record: Value::Null };
        let memory = soaked.line("plimsoll load", "memory").unwrap();
        assert!((memory.growth.per_hour - 72.0).abs() < 2.0, "{memory:?}");
        let table = soaked.markdown();
        assert!(table.contains("| plimsoll load | memory, MB | "), "{table}");
        let threads = "| plimsoll load | threads | 4.0 | 4.0 | 0.0 | 0.0 to 0.0 | flat |";
        assert!(table.contains(threads), "{table}");
        let lag =
            "| plimsoll load | p99 of lag, ms | 0.200 | 0.200 | 0.000 | 0.000 to 0.000 | flat |";
        assert!(table.contains(lag), "{table}");
        assert!(soaked.grows());
    }

    #[test]
    fn the_lag_of_each_second_is_read_from_the_stream() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seconds");
        let second = |to_s: f64, count: u32| {
            serde_json::json!({"kind": "second", "to_s": to_s,
                "lag_ms": {"count": count, "p50": 0.1, "p99": 0.9}})
        };
        let text = format!("{{\"kind\":\"start\"}}\n{}\n{}\n", second(1.0, 10), second(1.2, 0));
        std::fs::write(&path, text).unwrap();
        assert_eq!(lag(&path), Ok(vec![(1.0, [0.1, 0.9])]));
        std::fs::write(&path, "{\"kind\":\"start\"}\n").unwrap();
        assert!(lag(&path).unwrap_err().ends_with("no seconds"));
    }
}
