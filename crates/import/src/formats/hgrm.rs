//! Percentile distributions as HdrHistogram prints them: `.hgrm` files, vegeta's hdrplot, and the spectrum of wrk2.

use super::Options;
use crate::error::ImportError;
use crate::imported::{Imported, Times, TimesOf};
use crate::reading::{count, whole};
use plimsoll_core::histogram::Histogram;
use std::io::BufRead;

/// Nanoseconds of a unit of the values, if no option gives it: HdrHistogram's tools print milliseconds.
const UNIT_NS: f64 = 1e6;

/// Reads a percentile distribution.
pub fn parse(input: &mut dyn BufRead, options: &Options) -> Result<Imported, ImportError> {
    let text = whole(input)?;
    let is_vegeta = text.lines().any(|line| line.starts_with("Value(ms)"));
    let tool = if is_vegeta { "vegeta" } else { "HdrHistogram" };
    let mut imported = Imported {
        tool: tool.to_owned(),
        times_of: TimesOf::All,
        times_from: match is_vegeta {
            true => "the send".to_owned(),
            false => "a moment that the file does not name; taken for the send".to_owned(),
        },
        exact_to: "lines of the printed distribution".to_owned(),
        ..Imported::default()
    };
    if !is_vegeta && options.unit_ns.is_none() {
        imported.warnings.push(
            "the file does not give its unit; values are taken for milliseconds (--unit ns, us, ms or s)"
                .to_owned(),
        );
    }
    imported.service = distribution(&text, options.unit_ns.unwrap_or(UNIT_NS), &mut imported)?;
    Ok(imported)
}

/// The times of a distribution in a text; `unit_ns` is the length of a unit of its values. Between two lines, all times are
/// taken for that of the second.
///
/// # Errors
/// If the distribution is cut: counts that go back, or no line.
pub fn distribution(
    text: &str,
    unit_ns: f64,
    imported: &mut Imported,
) -> Result<Times, ImportError> {
    let mut histogram = Histogram::new();
    let (mut counted, mut last) = (0u64, None);
    let mut points = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let Some((value, percentile, total)) = row(line) else { continue };
        let more = total.checked_sub(counted).ok_or_else(|| {
            ImportError::line(index as u64 + 1, "TotalCount is smaller than in the line before")
        })?;
        histogram.record_many((value * unit_ns).round() as u64, more);
        counted = total;
        last = Some(percentile);
        points.push((percentile * 100.0, value * unit_ns / 1e6));
    }
    let Some(last) = last else {
        return Err(ImportError::lacks(
            "HdrHistogram",
            "line of values below 'Percentile TotalCount'",
        ));
    };
    if last < 0.999_999 {
        return Err(ImportError::Form(format!(
            "ends at the percentile {last}: a whole distribution ends at 1.0; the file is cut"
        )));
    }
    let mut times = Times::of(histogram);
    // Where the text has a line for a percentile, that is its value; the histogram knows it to its cells.
    points.iter().rev().for_each(|&(percentile, ms)| times.put(percentile, ms));
    if let Some(&(0.0, ms)) = points.first().filter(|_| counted > 0) {
        times.min = Some(ms);
    }
    footer(text, unit_ns, &mut times);
    if counted == 0 {
        imported.warnings.push("the distribution is empty".to_owned());
    }
    Ok(times)
}

/// `0.844     0.500000          297         2.00`.
fn row(line: &str) -> Option<(f64, f64, u64)> {
    let mut words = line.split_whitespace();
    let value: f64 = words.next()?.parse().ok()?;
    let percentile: f64 = words.next()?.parse().ok()?;
    let total = count(words.next()?)?;
    let is_row = value.is_finite() && value >= 0.0 && (0.0..=1.0).contains(&percentile);
    // The fourth column may be missing in the last line, where it would be infinite.
    (is_row && words.count() <= 1).then_some((value, percentile, total))
}

/// `#[Mean    =        0.066, StdDeviation   =        0.031]` and `#[Max     =        0.201, Total count    =   593]`.
fn footer(text: &str, unit_ns: f64, times: &mut Times) {
    let figure = |label: &str| {
        let after = text.lines().filter(|line| line.starts_with("#[")).find_map(|line| {
            let (_, rest) = line.split_once(label)?;
            rest.trim_start().strip_prefix('=')
        })?;
        let value: f64 = after.trim_start().split([',', ']']).next()?.trim().parse().ok()?;
        (value.is_finite() && value >= 0.0).then_some(value * unit_ns / 1e6)
    };
    times.mean = figure("Mean").or(times.mean);
    times.max = figure("Max").or(times.max);
}
