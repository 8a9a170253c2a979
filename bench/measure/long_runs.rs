//! Searches of real programs and long runs in turn: the line that is sought, on a machine that is not equally fast all the time.

use super::Bench;
use super::lines::{Found, Subject, Truth, limit_ms, number, read};
use crate::server::Server;
use crate::statistics::{median, quantile};
use anyhow::{Context, Result};
use plimsoll_core::rng::Rng;
use serde_json::Value;

/// Rates of the long runs, as shares of the middle estimate, in turn, and their length, s.
const AROUND: [f64; 5] = [1.0, 0.88, 1.12, 0.94, 1.06];
/// Length of a long run, s.
pub const LONG_S: u32 = 30;
/// Length of a closed run that measures the speed of the machine, s, and its clients.
pub const SPEED_S: u32 = 4;
const CLIENTS: u32 = 16;
/// Rate of the first long run if no search has an estimate yet, of the speed.
const BELOW_SPEED: f64 = 0.8;
/// Most long runs beyond one a search, and the step of each, if none of the others crosses the limit.
const MORE_MOST: usize = 8;
const MORE: f64 = 0.06;
/// Farthest distance of a percentile from its limit that counts, in logarithms.
const FAR: f64 = 3.0;
/// Draws of long runs with replacement, for the interval of the line (Efron, *Bootstrap methods*, 1979), and its confidence level.
const DRAWS: usize = 2_000;
const LEVEL: f64 = 0.95;
/// Time that a run may take beyond its length, s.
const PATIENCE_S: u32 = 60;

/// A long run: its rate, of the speed at that time, and ln(percentile/limit).
type Point = (f64, f64);

/// Searches and long runs against one server.
struct Series<'a> {
    subject: &'a Subject,
    bench: &'a Bench,
    server: &'a Server,
    flags: &'a [&'a str],
    /// Speed after the last run, requests/s of a closed run.
    speed_per_s: f64,
    points: Vec<Point>,
}

/// One search after the other against the same server, each with a long run behind it. Returns the searches and the line, with all
/// rates as those of the machine's median speed.
///
/// The line comes with the interval within which the long runs show it.
///
/// # Errors
/// When a run fails, no search has an estimate, or the long runs do not cross the limit.
pub fn search(
    subject: &Subject,
    bench: &Bench,
    server: &Server,
    flags: &[&str],
) -> Result<(Vec<Found>, Truth)> {
    let mut series = Series { subject, bench, server, flags, speed_per_s: 0.0, points: Vec::new() };
    series.speed_per_s = series.speed()?;
    let (mut found, mut speeds, mut estimates) = (Vec::new(), Vec::new(), Vec::new());
    for seed in 1..=bench.rounds {
        let before = series.speed_per_s;
        let one = read(bench, subject.seek(bench, server, seed, flags)?)?;
        series.speed_per_s = series.speed()?;
        let speed = f64::midpoint(before, series.speed_per_s);
        estimates.extend(one.estimate_per_s.map(|per_s| per_s / speed));
        found.push(one);
        speeds.push(speed);
        let middle = if estimates.is_empty() { BELOW_SPEED } else { median(&estimates) };
        series.long_run(AROUND[(seed as usize - 1) % AROUND.len()] * middle)?;
    }
    anyhow::ensure!(!estimates.is_empty(), "{}: no search made an estimate", subject.name);
    let line = series.line()?;
    let usual = median(&speeds);
    for (one, speed) in found.iter_mut().zip(&speeds) {
        one.scale(usual / speed);
    }
    let (least, most) = speeds.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), speed| {
        (least.min(*speed), most.max(*speed))
    });
    eprintln!("  speed of the machine: {:.2} to {:.2} of the median", least / usual, most / usual);
    let (low, high) = drawn(&series.points);
    let truth = Truth {
        line_per_s: line * usual,
        interval_per_s: Some((low.min(line) * usual, high.max(line) * usual)),
    };
    Ok((found, truth))
}

impl Series<'_> {
    /// The line, of the speed; more long runs are made until there are some on both sides of it.
    fn line(&mut self) -> Result<f64> {
        for _ in 0..MORE_MOST {
            if let Some(line) = crossing(&self.points) {
                return Ok(line);
            }
            let holds = self.points.iter().all(|(_, excess)| *excess <= 0.0);
            let edge = self.points.iter().map(|(rate, _)| *rate);
            let next = match holds {
                true => (1.0 + MORE) * edge.fold(0.0, f64::max),
                false => (1.0 - MORE) * edge.fold(f64::INFINITY, f64::min),
            };
            self.long_run(next)?;
        }
        crossing(&self.points).context("the long runs do not cross the limit")
    }

    /// A long run at a rate, of the speed, and the speed after it.
    fn long_run(&mut self, rate: f64) -> Result<()> {
        let before = self.speed_per_s;
        let per_s = rate * before;
        let words = format!(
            "--rate {per_s:.3} --arrivals poisson --warmup 5s --duration {LONG_S}s --seed {}",
            1000 + self.points.len()
        );
        let record = self.load(&words, LONG_S)?;
        self.speed_per_s = self.speed()?;
        let limit = limit_ms(self.subject.limit)?;
        // No value: more requests failed than the percentile leaves out.
        let measured = number(&record, "/slo/p95/measured").unwrap_or(f64::INFINITY);
        eprintln!("  long run at {per_s:.1}/s: p95 {measured:.1} of {limit:.1}");
        let excess = (measured / limit).ln().clamp(-FAR, FAR);
        self.points.push((per_s / f64::midpoint(before, self.speed_per_s), excess));
        Ok(())
    }

    /// Requests/s of a closed run.
    fn speed(&self) -> Result<f64> {
        let words = format!("--clients {CLIENTS} --duration {SPEED_S}s");
        number(&self.load(&words, SPEED_S)?, "/rate/ok_per_s")
    }

    fn load(&self, words: &str, seconds: u32) -> Result<Value> {
        let child = self.subject.start(self.bench, "load", self.server, words, self.flags)?;
        let ended = child.finish(seconds + PATIENCE_S, &self.bench.interrupted)?;
        serde_json::from_str(&ended.output)
            .with_context(|| format!("a run ended with: {}", ended.errors.trim()))
    }
}

/// The interval of the crossing, from draws of the points with replacement. Draws that do not cross are left out.
fn drawn(points: &[Point]) -> (f64, f64) {
    let mut rng = Rng::new(1);
    let mut draw = || -> Vec<Point> {
        points.iter().map(|_| points[rng.below(points.len() as u64) as usize]).collect()
    };
    let lines: Vec<f64> = (0..DRAWS).filter_map(|_| crossing(&draw())).collect();
    let tail = (1.0 - LEVEL) / 2.0;
    (quantile(&lines, tail), quantile(&lines, 1.0 - tail))
}

/// Returns the rate at which points cross zero, on straight lines through the rising steps that fit them best: neighbours that fall
/// are replaced by their mean (Ayer and others, *An empirical distribution function for sampling with incomplete information*, 1955).
fn crossing(points: &[Point]) -> Option<f64> {
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Sums of rates and of excesses, and their number.
    let mut steps: Vec<(f64, f64, f64)> = Vec::new();
    for (rate, excess) in sorted {
        steps.push((rate, excess, 1.0));
        while let [.., below, above] = &steps[..]
            && below.1 / below.2 >= above.1 / above.2
        {
            let joined = (below.0 + above.0, below.1 + above.1, below.2 + above.2);
            steps.truncate(steps.len() - 2);
            steps.push(joined);
        }
    }
    let means: Vec<Point> =
        steps.iter().map(|(rate, excess, count)| (rate / count, excess / count)).collect();
    let pair = means.windows(2).find(|pair| pair[0].1 <= 0.0 && pair[1].1 > 0.0)?;
    let ((from, below), (to, above)) = (pair[0], pair[1]);
    Some(from + (to - from) * -below / (above - below))
}
