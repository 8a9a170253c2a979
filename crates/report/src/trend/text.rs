//! A history as text.

use super::{Figures, Finding, Group, Trend, too_short};
use crate::number::counted;
use crate::plain::{columns_of, printable};
use plimsoll_core::verdict::VerdictKind;
use std::fmt::Write as _;

/// Marks of a trend, from low to high.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Most marks of a trend.
const MARKS_MAX: usize = 40;

impl Trend {
    /// Returns the history as text.
    #[must_use]
    pub fn render(&self) -> String {
        let mut out = String::new();
        for group in &self.groups {
            render_group(&mut out, group);
            out.push('\n');
        }
        let findings = self.findings().count();
        // Writing to a text cannot fail.
        let _ = match findings {
            0 => writeln!(out, "No change of level was found."),
            many => writeln!(
                out,
                "{}: candidates, until 'plimsoll ab' has confirmed them.",
                counted(many as u64, "change")
            ),
        };
        for remark in &self.remarks {
            let _ = writeln!(out, "{remark}");
        }
        out
    }
}

fn render_group(out: &mut String, group: &Group) {
    let about = [&group.likeness.job, &group.likeness.target, &group.load];
    let about: Vec<String> =
        about.iter().filter(|text| !text.is_empty()).map(|text| printable(text)).collect();
    let _ = writeln!(out, "{}", about.join("  "));
    let _ = writeln!(out, "  machine {}", printable(&group.likeness.machine));
    let first = group.runs.first().map_or("", |run| &run.started_at);
    let last = group.runs.last().map_or("", |run| &run.started_at);
    let left_out = group.runs.len() - group.counted();
    let not_counted = match left_out {
        0 => String::new(),
        some => format!(", {some} of them not counted ({})", kinds(group)),
    };
    let runs = counted(group.runs.len() as u64, "run");
    let _ = writeln!(out, "  {runs}, {first} to {last}{not_counted}");
    if let Some(words) = too_short(group.counted()) {
        let _ = writeln!(out, "  {words}");
    }
    let mut rows = vec![["", "first", "median", "newest", "oldest to newest"].map(str::to_owned)];
    rows.extend(group.trends.iter().map(|trend| cells(group, trend)));
    let width = |column: usize| rows.iter().map(|row| columns_of(&row[column])).max().unwrap_or(0);
    let widths: Vec<usize> = (0..5).map(width).collect();
    for row in &rows {
        let mut line = "  ".to_owned();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let blank = " ".repeat(width - columns_of(cell));
            line += &match column {
                0 => format!("{cell}{blank}"),
                4 => format!("  {cell}"),
                _ => format!("  {blank}{cell}"),
            };
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
    for trend in &group.trends {
        trend.findings.iter().for_each(|finding| {
            let _ = writeln!(out, "  {}", words(trend, finding));
            let _ = writeln!(out, "    candidate: confirm with {}", printable(&finding.confirm));
        });
    }
}

/// The verdicts of the runs that do not count.
fn kinds(group: &Group) -> String {
    let mut kinds: Vec<&str> = Vec::new();
    for run in group.runs.iter().filter(|run| run.verdict != VerdictKind::Valid) {
        if !kinds.contains(&run.verdict.name()) {
            kinds.push(run.verdict.name());
        }
    }
    kinds.join(", ")
}

fn cells(group: &Group, trend: &Figures) -> [String; 5] {
    let known: Vec<f64> = group
        .runs
        .iter()
        .zip(&trend.values)
        .filter(|(run, _)| run.verdict == VerdictKind::Valid)
        .filter_map(|(_, value)| *value)
        .collect();
    let shown = |value: Option<f64>| value.map_or("-".to_owned(), |value| trend.unit.shown(value));
    [
        printable(&trend.name()),
        shown(known.first().copied()),
        shown(trend.median),
        shown(known.last().copied()),
        marks(&known),
    ]
}

/// The newest values as marks; equal ones are in the middle.
fn marks(values: &[f64]) -> String {
    let newest = &values[values.len().saturating_sub(MARKS_MAX)..];
    let low = newest.iter().copied().fold(f64::INFINITY, f64::min);
    let high = newest.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mark = |value: &f64| match high - low {
        range if range > 0.0 => LEVELS[(((value - low) / range) * 7.0).round() as usize],
        _ => LEVELS[3],
    };
    newest.iter().map(mark).collect()
}

/// A finding in a sentence.
pub fn words(trend: &Figures, finding: &Finding) -> String {
    let change = match finding.before_level {
        before if before > 0.0 => format!(" ({:+.1} %)", (finding.level / before - 1.0) * 100.0),
        _ => String::new(),
    };
    format!(
        "{} is {} since {} ({}): {} -> {}{change}, p = {:.4}",
        printable(&trend.name()),
        finding.direction,
        finding.run_id,
        finding.started_at,
        trend.unit.shown(finding.before_level),
        trend.unit.shown(finding.level),
        finding.p_value
    )
}
