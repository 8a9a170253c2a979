//! The table as it stands in docs/sizing.md.

use super::{Outcome, Truth};
use crate::page::refresh;
use crate::parallel::map;
use std::fmt::Write as _;

fn share(outcomes: &[Outcome], of: impl Fn(&Outcome) -> bool) -> String {
    let count = outcomes.iter().filter(|one| of(one)).count();
    format!("{:.1} %", 100.0 * count as f64 / outcomes.len().max(1) as f64)
}

fn quantile(mut values: Vec<f64>, p: f64) -> f64 {
    values.retain(|value| value.is_finite());
    values.sort_by(f64::total_cmp);
    let at = (p * (values.len().saturating_sub(1)) as f64).round() as usize;
    values.get(at).copied().unwrap_or(f64::NAN)
}

/// Returns the table of truths, `draws` each, as Markdown.
#[must_use]
pub fn of_truths(truths: &[Truth], draws: u64) -> String {
    let mut text = "| truth | draws | interval holds | median width | median error | 95th percentile of the error | peaks reported | 2 and 3 points declined |\n\
                    |---|---|---|---|---|---|---|---|\n"
        .to_owned();
    for truth in truths {
        let outcomes = map(draws, |seed| truth.draw(1_000_000 + seed));
        let off = || outcomes.iter().map(|one| one.off.abs()).collect::<Vec<f64>>();
        let width = outcomes.iter().map(|one| one.width).collect();
        let peaks = outcomes.iter().filter(|one| one.peak).count();
        let _ = writeln!(
            text,
            "| {} | {draws} | {} | {:.0} % | {:.1} % | {:.1} % | {peaks} | {} |",
            truth.name,
            share(&outcomes, |one| one.held),
            100.0 * quantile(width, 0.5),
            100.0 * quantile(off(), 0.5),
            100.0 * quantile(off(), 0.95),
            share(&outcomes, |one| one.declined),
        );
    }
    text
}

/// Returns the table of noises: how many peaks were reported.
#[must_use]
pub fn of_noises(noises: &[Truth], draws: u64) -> String {
    let mut text =
        "| points | draws | peaks reported | 2 and 3 points declined |\n|---|---|---|---|\n"
            .to_owned();
    for noise in noises {
        let outcomes = map(draws, |seed| noise.draw(1_000_000 + seed));
        let peaks = outcomes.iter().filter(|one| one.peak).count();
        let declined = share(&outcomes, |one| one.declined);
        let _ = writeln!(text, "| {} | {draws} | {peaks} | {declined} |", noise.name);
    }
    text
}

/// Returns a sentence about the peaks that were seen where there is one.
#[must_use]
pub fn of_retrograde(peaks: &[f64], draws: u64) -> String {
    format!(
        "USL with a peak at 6.9 nodes, measured from 1 to 16: the peak was reported in {} of {draws} draws, at {:.1} to {:.1} nodes.\n",
        peaks.len(),
        quantile(peaks.to_vec(), 0.0),
        quantile(peaks.to_vec(), 1.0),
    )
}

/// Prints all tables, and puts them into a page: `plimsoll-zoo sizing [DRAWS] [--page FILE]`.
///
/// # Errors
/// If the words are wrong, or the page cannot be written: one line.
#[allow(clippy::print_stdout)]
pub fn run(words: &[String]) -> Result<(), String> {
    let usage = "usage: plimsoll-zoo sizing [DRAWS] [--page FILE]";
    let (draws, page) = match words {
        [] => ("500", None),
        [draws] => (draws.as_str(), None),
        [flag, page] if flag == "--page" => ("500", Some(page)),
        [draws, flag, page] if flag == "--page" => (draws.as_str(), Some(page)),
        _ => return Err(usage.to_owned()),
    };
    let draws = draws.parse::<u64>().ok().filter(|draws| *draws > 0);
    let draws = draws.ok_or_else(|| format!("DRAWS is a number above 0; {usage}"))?;
    let text = [
        of_truths(&super::truths(), draws),
        of_noises(&super::noises(), draws),
        of_retrograde(&super::retrograde(draws), draws),
    ]
    .join("\n");
    println!("{text}");
    let Some(page) = page else { return Ok(()) };
    refresh(page, "sizing-zoo", &text)
}
