//! A load line as it is shown: the sections of the page for every job that searches, the CSV of a line over time, and the
//! line in a few words.

mod over_time;
mod rows;
mod sheet;
#[cfg(test)]
mod tests;

pub use sheet::{say, sheet};

use plimsoll_core::seek::finding::{Finding, Measured, Verdict};
use plimsoll_record::RunRecord;
use plimsoll_report::figures::{Figure, Unit};
use plimsoll_report::number::{count, millis, percent, significant};
use plimsoll_report::page::{Column, Page, Tone};
use plimsoll_report::plain::printable;

/// Rows of the curve on the page; the record holds all.
const CURVE_MAX: usize = 16;
/// The same on a page that is not verbose.
const CURVE_FEW: usize = 8;

/// Returns the CSV of a line that was followed over time: a row a stretch.
#[must_use]
pub fn csv(record: &RunRecord) -> Option<Vec<Vec<String>>> {
    record.job_results.seek()?.finding.watch.as_deref().map(rows::rows)
}

/// Returns the line in a few words.
#[must_use]
pub fn headline(record: &RunRecord) -> Option<String> {
    let finding = &record.job_results.seek()?.finding;
    Some(match (&finding.certified, finding.estimate_per_s) {
        (Some(run), _) => format!("{}/s hold the limits", significant(run.rate_per_s)),
        (None, Some(estimate)) => format!("line near {}/s, none certified", significant(estimate)),
        (None, None) => "no load line".to_owned(),
    })
}

/// Returns the figures that a comparison looks at: the certified rate, and the estimate of the line. Times are those of many rates
/// together, and are left out.
#[must_use]
pub fn figures(record: &RunRecord) -> Option<Vec<Figure>> {
    if let Some(rival) = record.job_results.rival() {
        return Some(vec![Figure::new("max-rate", Unit::PerS, rival.rate_per_s)]);
    }
    let found = record.job_results.seek()?;
    let certified =
        found.certified_rate_per_s.map(|rate| Figure::new("max-rate", Unit::PerS, rate));
    let estimate = found.finding.estimate_per_s;
    let estimate = estimate.map(|rate| Figure::new("max-rate", Unit::PerS, rate).of("estimate"));
    Some(certified.into_iter().chain(estimate).collect())
}

/// Writes the line, how sure it is, and the curve that it was read from.
pub fn sections(page: &mut Page<'_>, finding: &Finding) {
    if let Some(watched) = &finding.watch {
        over_time::sections(page, finding, watched);
        if page.is_verbose() {
            time(page, finding);
            notes(page, finding);
            curve(page, finding);
        }
        return;
    }
    match &finding.certified {
        Some(certified) => {
            let text = format!("{} requests/s hold the limits", significant(certified.rate_per_s));
            page.headline(&text, Tone::Strong);
            page.entry("Certified", &seen(certified), Tone::Good);
        }
        None if finding.verdict == Verdict::Infeasible => {
            page.headline("no rate holds the limits", Tone::Bad);
        }
        None => page.headline("no rate was certified", Tone::Strong),
    }
    broken(page, finding);
    if let (Some(estimate), Some((low, high))) = (finding.estimate_per_s, finding.interval_per_s) {
        let confidence = percent(finding.confidence);
        let half =
            finding.half_width.map_or(String::new(), |half| format!(" (+- {})", percent(half)));
        let text = format!(
            "{}/s; with a confidence of {confidence} between {} and {}{half}",
            significant(estimate),
            significant(low),
            significant(high)
        );
        page.entry("Estimate", &text, Tone::Plain);
    }
    if let Some(binding) = &finding.binding {
        page.entry("Limit", &format!("{} breaks first", printable(binding)), Tone::Plain);
    }
    if let Some(capacity) = finding.capacity_per_s {
        let peak = finding
            .peak_per_s
            .map_or(String::new(), |peak| format!(", {}/s for a while", significant(peak)));
        let text = format!("{}/s when overloaded{peak}", significant(capacity));
        page.entry("Capacity", &text, Tone::Plain);
    }
    if page.is_verbose() {
        if let Some(floor_s) = finding.floor_s.filter(|floor_s| floor_s.is_finite()) {
            let text = format!("{} ms mean response at the lowest load", millis(floor_s * 1e3));
            page.entry("Floor", &text, Tone::Plain);
        }
        time(page, finding);
        notes(page, finding);
    }
    curve(page, finding);
}

/// The rates that fail: surely, or perhaps by chance.
fn broken(page: &mut Page<'_>, finding: &Finding) {
    if let Some(failing) = &finding.failing {
        let text = format!("{}/s and above: {}", significant(failing.rate_per_s), seen(failing));
        page.entry("Fails at", &text, Tone::Plain);
    }
    if let Some(broke) = &finding.broke {
        let why = match finding.interval_per_s {
            Some((low, _)) if broke.rate_per_s < low => {
                "perhaps by chance: the interval lies above"
            }
            Some(_) => "perhaps by chance: the rate lies in the interval",
            None => "perhaps by chance: the run was short",
        };
        let text = format!("{}/s: {}; {why}", significant(broke.rate_per_s), seen(broke));
        page.entry("Broke at", &text, Tone::Plain);
    }
}

/// Prints assumptions, observations and ways to narrow the interval.
fn notes(page: &mut Page<'_>, finding: &Finding) {
    for (index, note) in finding.notes.iter().enumerate() {
        page.entry(if index == 0 { "Notes" } else { "" }, &printable(note), Tone::Plain);
    }
}

fn seen(measured: &Measured) -> String {
    format!(
        "late {} of {} in {} s, mean {} ms",
        shares(measured),
        count(measured.scheduled),
        significant(measured.seconds),
        millis(measured.response_mean_s * 1e3)
    )
}

/// One share a limit.
fn shares(measured: &Measured) -> String {
    measured.late_share.iter().map(|share| percent(*share)).collect::<Vec<_>>().join(", ")
}

fn time(page: &mut Page<'_>, finding: &Finding) {
    let phases = finding
        .phases
        .iter()
        .map(|span| {
            let name = serde_json::to_value(span.phase).ok();
            let name = name.as_ref().and_then(|name| name.as_str()).unwrap_or("phase").to_owned();
            format!("{name} {}", significant(span.until_s - span.from_s))
        })
        .collect::<Vec<_>>()
        .join(", ");
    let mut text = format!("{} s: {phases}", significant(finding.elapsed_s));
    if let Some(forecast) = &finding.forecast_first {
        text += &format!("; forecast after the pilot {} s", significant(forecast.total_s));
    }
    page.entry("Time", &text, Tone::Plain);
}

fn curve(page: &mut Page<'_>, finding: &Finding) {
    let columns = [
        Column::number("Rate/s", 0),
        Column::number("seconds", 3),
        Column::number("requests", 1),
        Column::number("late", 0),
        Column::number("failed", 2),
        Column::number("mean, ms", 0),
    ];
    // An even choice of a long curve, with both of its ends.
    let points = finding.curve.len();
    let shown = points.min(if page.is_verbose() { CURVE_MAX } else { CURVE_FEW });
    let rows: Vec<(Vec<String>, Tone)> = (0..shown)
        .map(|row| &finding.curve[if shown > 1 { row * (points - 1) / (shown - 1) } else { 0 }])
        .map(|point| {
            let cells = vec![
                significant(point.rate_per_s),
                significant(point.seconds),
                count(point.scheduled),
                shares(point),
                count(point.failed),
                millis(point.response_mean_s * 1e3),
            ];
            (cells, Tone::Plain)
        })
        .collect();
    if rows.is_empty() {
        return;
    }
    page.blank();
    page.table(&columns, &rows);
    if shown < points {
        page.note(&format!("{shown} of {points} rates; the record has all"));
    }
}
