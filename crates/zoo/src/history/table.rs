//! The tables: the share of series in which a change is found.

use super::rival::e_divisive;
use super::series::{Noise, Series};
use crate::parallel::map;
use plimsoll_decide::change_points::{SERIES_LEAST, Terms, change_points};
use std::fmt::Write as _;

/// Noise between runs: standard deviation of the logarithm.
const SD: f64 = 0.02;
/// Factor of a step.
const STEP: f64 = 1.05;
/// Runs after a step at which the history is looked at.
const RUNS_AFTER: usize = 5;
/// A step is found if the change stands at most this many runs beside it.
const BESIDE: usize = 3;
/// Levels of the t-test: the customary one, and that of Otava (Hunter).
const RIVAL_LEVELS: [f64; 2] = [0.05, 0.001];

/// Arguments of the command line.
pub struct Arguments {
    /// Series of each row.
    pub series: u64,
    /// First seed.
    pub seed: u64,
}

impl Arguments {
    /// Returns the arguments, and the page to write into.
    pub fn parse(words: &[String]) -> Result<(Self, Option<String>), String> {
        let (mut parsed, mut page) = (Self { series: 2_000, seed: 1 }, None);
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let value = words.next().ok_or(format!("{word} needs a value"))?;
            let number = || {
                value
                    .parse::<u64>()
                    .ok()
                    .filter(|number| *number > 0)
                    .ok_or(format!("{word} takes a number of at least 1, not '{value}'"))
            };
            match word.as_str() {
                "--series" => parsed.series = number()?,
                "--seed" => parsed.seed = number()?,
                "--page" => page = Some(value.clone()),
                _ => return Err(format!("unknown option '{word}'")),
            }
        }
        Ok((parsed, page))
    }
}

/// A method that finds changes.
type Method<'a> = &'a (dyn Fn(&[f64]) -> Vec<usize> + Sync);

/// The method of plimsoll.
pub fn ours(values: &[f64]) -> Vec<usize> {
    change_points(values, &Terms::default()).iter().map(|point| point.at).collect()
}

/// Share of series for which `holds` is true of the changes that are found.
pub fn share(
    arguments: &Arguments,
    series: &Series,
    method: Method<'_>,
    holds: impl Fn(&[usize]) -> bool + Sync,
) -> f64 {
    let judge = |index: u64| holds(&method(&series.draw(arguments.seed + index)));
    let held = map(arguments.series, judge).into_iter().filter(|held| *held).count();
    held as f64 / arguments.series as f64
}

/// True if a change is found beside the step.
pub fn is_found(found: &[usize], at: usize) -> bool {
    found.iter().any(|found| found.abs_diff(at) <= BESIDE)
}

/// All tables as Markdown.
pub fn tables(arguments: &Arguments) -> String {
    let [customary, strict] =
        RIVAL_LEVELS.map(|level| move |values: &[f64]| e_divisive(values, level));
    let methods: [Method<'_>; 3] = [&ours, &customary, &strict];
    let mut text = format!(
        "{} series a row, seed {}. Noise: standard deviation {:.0} % of the level.\n\n",
        arguments.series,
        arguments.seed,
        100.0 * SD
    );
    let heads = RIVAL_LEVELS.map(|level| format!("E-divisive, t-test at {level}"));
    let mut table = |title: &str, rows: Vec<(String, Vec<f64>)>| {
        // Writing to a text cannot fail.
        let _ = writeln!(text, "| {title} | plimsoll | {} |", heads.join(" | "));
        text += "|---|---:|---:|---:|\n";
        for (name, shares) in rows {
            let cell = |share: &f64| match share {
                share if share.is_nan() => "-".to_owned(),
                share => format!("{:.1} %", 100.0 * share),
            };
            let cells: Vec<String> = shares.iter().map(cell).collect();
            let _ = writeln!(text, "| {name} | {} |", cells.join(" | "));
        }
        text.push('\n');
    };
    table("no change: series with a finding", noise_rows(arguments, &methods));
    table("a lasting step of 5 %: series in which it is found", step_rows(arguments, &methods));
    text.truncate(text.trim_end().len());
    text + "\n"
}

fn noise_rows(arguments: &Arguments, methods: &[Method<'_>]) -> Vec<(String, Vec<f64>)> {
    let correlated = |correlation| Noise::Correlated { sd: SD, correlation };
    let noise = |runs, noise| Series::of_noise(runs, noise);
    let spiked = |factor| Series { spike: Some(factor), ..noise(100, Noise::Normal(SD)) };
    let series = [
        ("100 runs, normal noise", noise(100, Noise::Normal(SD))),
        ("20 runs, normal noise", noise(20, Noise::Normal(SD))),
        ("100 runs, heavy tail (t with 3 degrees of freedom)", noise(100, Noise::Heavy(SD))),
        ("100 runs, correlation 0.3 from run to run", noise(100, correlated(0.3))),
        ("100 runs, correlation 0.6 from run to run", noise(100, correlated(0.6))),
        ("100 runs, one of them 20 % off", spiked(1.2)),
        ("100 runs, one of them 10 times as high", spiked(10.0)),
    ];
    let all = |series: &Series| {
        let any =
            |method: &Method<'_>| share(arguments, series, *method, |found| !found.is_empty());
        methods.iter().map(any).collect()
    };
    let mut rows: Vec<(String, Vec<f64>)> =
        series.iter().map(|(name, series)| ((*name).to_owned(), all(series))).collect();
    // The history is looked at after each run: a finding at any of the looks counts.
    let looks = |values: &[f64]| {
        let mut lengths = SERIES_LEAST..=values.len();
        lengths.find_map(|n| ours(&values[..n]).first().copied()).into_iter().collect()
    };
    let normal = noise(100, Noise::Normal(SD));
    let looked = share(arguments, &normal, &looks, |found| !found.is_empty());
    let name =
        format!("100 runs, normal noise, looked at after each run from the {SERIES_LEAST}th on");
    rows.push((name, vec![looked, f64::NAN, f64::NAN]));
    rows
}

fn step_rows(arguments: &Arguments, methods: &[Method<'_>]) -> Vec<(String, Vec<f64>)> {
    let stepped = |before: usize, after: usize, noise| Series {
        step: Some((before, STEP)),
        ..Series::of_noise(before + after, noise)
    };
    let normal = Noise::Normal(SD);
    let series = [
        ("15 runs before it, 5 after", stepped(15, RUNS_AFTER, normal)),
        ("50 runs before it, 5 after", stepped(50, RUNS_AFTER, normal)),
        ("95 runs before it, 5 after", stepped(95, RUNS_AFTER, normal)),
        ("95 runs before it, 4 after", stepped(95, RUNS_AFTER - 1, normal)),
        ("95 runs before it, 3 after", stepped(95, RUNS_AFTER - 2, normal)),
        ("50 runs before it, 50 after", stepped(50, 50, normal)),
        (
            "30 runs before it, 30 after, undone for 30",
            Series { undone: Some(60), ..stepped(30, 60, normal) },
        ),
        ("50 runs before it, 5 after, heavy tail", stepped(50, RUNS_AFTER, Noise::Heavy(SD))),
    ];
    let row = |(name, series): &(&str, Series)| {
        let at = series.step.map_or(0, |(at, _)| at);
        let found =
            |method: &Method<'_>| share(arguments, series, *method, |found| is_found(found, at));
        ((*name).to_owned(), methods.iter().map(found).collect())
    };
    series.iter().map(row).collect()
}
