//! Sizing as text: answers, table, plot, models.

use crate::sizing::{Row, Sizing, per_second};
use plimsoll_report::number::{percent, significant};
use plimsoll_report::plain::printable;
use std::fmt::Write as _;

/// Width of a line of words.
const WIDTH: usize = 96;
/// Columns of a bar.
const BAR: usize = 40;
/// Width of the names of answers.
const NAMES: usize = 12;

/// Returns the text.
pub fn render(sizing: &Sizing) -> String {
    let mut text = String::new();
    for answer in &sizing.answers {
        put(&mut text, title(answer.question), &answer.words);
    }
    let is_said = |words: &String| sizing.answers.iter().any(|answer| answer.words == *words);
    if let Some(declined) = sizing.declined.as_ref().filter(|words| !is_said(words)) {
        put(&mut text, "Declined", declined);
    }
    if let Some(check) = &sizing.check {
        put(&mut text, "Check", &check.words);
    }
    text += "\n";
    table(&mut text, sizing);
    models(&mut text, sizing);
    text += "\n";
    for (index, assumption) in sizing.assumptions.iter().enumerate() {
        put(&mut text, if index == 0 { "Assumed" } else { "" }, assumption);
    }
    let runs: Vec<String> = sizing.measured.iter().flat_map(|one| one.runs.clone()).collect();
    put(&mut text, "Records", &runs.join(" "));
    if let Some(check) = &sizing.check {
        put(&mut text, "Checked by", &check.runs.join(" "));
    }
    text
}

/// Returns the name of an answer.
pub fn title(question: &str) -> &'static str {
    match question {
        "rate" => "Rate",
        "nodes" => "Needed",
        "one-lost" => "One lost",
        "more-traffic" => "10 % more",
        "first-resource" => "First limit",
        "twice-the-cores" => "Twice",
        "peak" => "Peak",
        _ => "Users",
    }
}

/// Adds a name and words, broken into lines.
fn put(text: &mut String, name: &str, words: &str) {
    let mut line = format!("{name:NAMES$}");
    let mut is_first = true;
    for word in printable(words).split(' ') {
        if !is_first && line.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(text, "{}", line.trim_end());
            line = " ".repeat(NAMES);
            is_first = true;
        }
        if !is_first {
            line.push(' ');
        }
        line += word;
        is_first = false;
    }
    let _ = writeln!(text, "{}", line.trim_end());
}

/// The table, with a bar a row: filled to the rate, with the interval's ends marked.
fn table(text: &mut String, sizing: &Sizing) {
    let ends = sizing.held.iter().map(|row| row.interval_per_s.1);
    let most = ends.chain(sizing.rate_per_s).fold(0.0, f64::max);
    let _ = writeln!(
        text,
        "{:>8}  {:>9}  {:>9}  {:>9}  {:12}  0 to {}",
        sizing.unit,
        "rate/s",
        "low",
        "high",
        "source",
        per_second(most)
    );
    for row in &sizing.held {
        let source = row.worst.map_or(row.source.to_owned(), |worst| format!("by {worst}"));
        let _ = writeln!(
            text,
            "{:>8}  {:>9}  {:>9}  {:>9}  {source:12}  {}",
            row.n,
            significant(row.per_s),
            significant(row.interval_per_s.0),
            significant(row.interval_per_s.1),
            bar(row, most)
        );
    }
    let _ = writeln!(
        text,
        "low and high: {} prediction interval of a further measurement; bar: # rate, [ ] interval{}",
        percent(sizing.level),
        sizing
            .rate_per_s
            .map_or(String::new(), |per_s| format!("; asked for: {}", per_second(per_s)))
    );
}

fn bar(row: &Row, most: f64) -> String {
    let place = |per_s: f64| ((per_s / most.max(f64::MIN_POSITIVE)) * BAR as f64).round() as usize;
    let filled = place(row.per_s).min(BAR);
    let mut cells: Vec<char> = (0..=BAR).map(|at| if at < filled { '#' } else { ' ' }).collect();
    cells[place(row.interval_per_s.0).min(BAR)] = '[';
    cells[place(row.interval_per_s.1).min(BAR)] = ']';
    cells.into_iter().collect::<String>().trim_end().to_owned()
}

fn models(text: &mut String, sizing: &Sizing) {
    let Some(last) = sizing.held.last().filter(|_| !sizing.models.is_empty()) else { return };
    let _ = writeln!(text, "\nModels for {} {}:", last.n, sizing.unit);
    for model in &sizing.models {
        let parameters = if model.parameters.is_empty() {
            String::new()
        } else {
            format!("  {}", model.parameters)
        };
        let state = if model.ruled_out { "  ruled out by the points" } else { "" };
        let _ = writeln!(
            text,
            "{:>8}  {:>9}  {:>9}  {:>9}{parameters}{state}",
            model.name,
            significant(model.per_s),
            significant(model.interval_per_s.0),
            significant(model.interval_per_s.1),
        );
    }
}
