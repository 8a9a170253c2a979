//! The ledger as a flow: each stage a bar that divides into the next.

use crate::escape;
use crate::picture::{INK, MUTED, paint};
use plimsoll_report::number::count;
use plimsoll_report::sheet::{Stage, Tone};
use std::fmt::Write as _;

const WIDTH: f64 = 720.0;
/// Height of a stage with its labels.
const STAGE: f64 = 62.0;
const BAR: f64 = 22.0;
/// A part that holds something is never thinner.
const THINNEST: f64 = 3.0;

/// Returns the picture of a flow.
pub fn svg(stages: &[Stage]) -> String {
    let height = STAGE * stages.len() as f64;
    let mut out = format!(
        "<svg class=\"flow\" viewBox=\"0 0 {WIDTH} {height}\" width=\"100%\" height=\"{height}\" role=\"img\" \
         font-family=\"sans-serif\" font-size=\"12\" aria-label=\"{}\">",
        escape::line(&in_words(stages))
    );
    let whole = stages.iter().map(|stage| stage.count).max().unwrap_or(0).max(1) as f64;
    for (index, stage) in stages.iter().enumerate() {
        draw(&mut out, stage, STAGE * index as f64, whole);
    }
    out.push_str("</svg>");
    out
}

/// `600 scheduled = 600 sent + 0 refused + 0 unsent`, a line for each stage.
pub fn in_words(stages: &[Stage]) -> String {
    let line = |stage: &Stage| {
        let parts: Vec<String> = stage
            .parts
            .iter()
            .map(|(name, number, _)| format!("{} {name}", count(*number)))
            .collect();
        format!("{} {} = {}", count(stage.count), stage.name, parts.join(" + "))
    };
    stages.iter().map(line).collect::<Vec<_>>().join("; ")
}

fn draw(out: &mut String, stage: &Stage, top: f64, whole: f64) {
    let parts: Vec<&(String, u64, Tone)> = stage.parts.iter().filter(|part| part.1 > 0).collect();
    let _ = write!(
        out,
        "<text x=\"0\" y=\"{:.1}\" fill=\"{INK}\">{} {}</text>",
        top + 13.0,
        count(stage.count),
        escape::line(&stage.name)
    );
    let mut at = 0.0_f64;
    let mut label_at = 0.0_f64;
    for (name, number, tone) in parts {
        let wide = (*number as f64 / whole * WIDTH).max(THINNEST);
        let name_of_tone = match tone {
            Tone::Plain => "achieved",
            Tone::Good => "good",
            Tone::Warn => "warn",
            Tone::Bad => "bad",
        };
        let _ = write!(
            out,
            "<rect x=\"{at:.1}\" y=\"{:.1}\" width=\"{wide:.1}\" height=\"{BAR}\" \
             fill=\"{}\"/>",
            top + 18.0,
            paint(name_of_tone)
        );
        let label = format!("{} {name}", count(*number));
        let from = label_at.max(at).min(WIDTH - 7.0 * label.chars().count() as f64).max(0.0);
        let _ = write!(
            out,
            "<text x=\"{from:.1}\" y=\"{:.1}\" fill=\"{MUTED}\">{}</text>",
            top + 53.0,
            escape::line(&label)
        );
        label_at = from + 7.0 * label.chars().count() as f64 + 12.0;
        at += wide;
    }
}
