//! Bars as a picture: names at the left, parts in their colours, the whole at the end.

use crate::escape;
use crate::picture::{INK, MUTED, paint};
use plimsoll_report::plain::{clip, printable};
use plimsoll_report::sheet::{BARS_MAX, Bar, Bars};
use std::fmt::Write as _;

const WIDTH: f64 = 720.0;
/// Room for the names, and for the text behind the longest bar.
const NAMES: f64 = 150.0;
const TEXTS: f64 = 90.0;
/// Height of a bar with its gap, and of the legend above all of them.
const ROW: f64 = 22.0;
const BAR: f64 = 15.0;
const HEAD: f64 = 24.0;
/// Longest name, characters.
const NAME_CHARS_MAX: usize = 23;

/// Returns the picture; empty if there is nothing to draw.
pub fn svg(bars: &Bars) -> String {
    let shown = &bars.bars[..bars.bars.len().min(BARS_MAX)];
    let whole = |bar: &Bar| bar.values.iter().filter(|value| value.is_finite()).sum::<f64>();
    let most = shown.iter().map(whole).fold(0.0, f64::max);
    if shown.is_empty() || most <= 0.0 {
        return String::new();
    }
    let height = HEAD + ROW * shown.len() as f64;
    let mut out = format!(
        "<svg class=\"bars\" viewBox=\"0 0 {WIDTH} {height}\" width=\"100%\" role=\"img\" font-family=\"sans-serif\" \
         font-size=\"12\" aria-label=\"{}\">",
        escape::line(&bars.caption)
    );
    legend(&mut out, &bars.parts);
    for (index, bar) in shown.iter().enumerate() {
        draw(&mut out, bar, &bars.parts, HEAD + ROW * index as f64, (WIDTH - NAMES - TEXTS) / most);
    }
    out.push_str("</svg>");
    out
}

fn legend(out: &mut String, parts: &[(String, &'static str)]) {
    let mut at = NAMES;
    for (name, tone) in parts {
        rect(out, tone, (at, 4.0), (10.0, 10.0));
        text(out, MUTED, (at + 15.0, 13.0), "start", name);
        at += 34.0 + 6.6 * name.chars().count() as f64;
    }
}

fn draw(out: &mut String, bar: &Bar, parts: &[(String, &'static str)], top: f64, scale: f64) {
    let name = clip(&printable(&bar.name), NAME_CHARS_MAX);
    text(out, INK, (NAMES - 8.0, top + 12.0), "end", &name);
    let mut at = NAMES;
    for (value, (_, tone)) in bar.values.iter().zip(parts).filter(|(value, _)| **value > 0.0) {
        let wide = value * scale;
        rect(out, tone, (at, top), (wide, BAR));
        at += wide;
    }
    text(out, MUTED, (at + 6.0, top + 12.0), "start", &bar.text);
}

fn rect(out: &mut String, tone: &str, (x, y): (f64, f64), (wide, high): (f64, f64)) {
    let _ = write!(
        out,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{wide:.1}\" height=\"{high}\" fill=\"{}\"/>",
        paint(tone)
    );
}

fn text(out: &mut String, paint: &str, (x, y): (f64, f64), anchor: &str, text: &str) {
    let _ = write!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{paint}\">{}</text>",
        escape::line(text)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_parts_together() {
        let bar = |name: &str, values: [f64; 2]| Bar {
            name: name.to_owned(),
            values: values.to_vec(),
            text: "1 s".to_owned(),
        };
        let bars = Bars {
            parts: vec![("cpu".to_owned(), "cpu"), ("other".to_owned(), "neutral")],
            bars: vec![bar("<b>", [1.0, 3.0]), bar("b", [2.0, 0.0])],
            ..Bars::default()
        };
        let svg = svg(&bars);
        // 480 pixels for 4 units: 120 for each.
        for part in ["width=\"120.0\"", "width=\"360.0\"", "width=\"240.0\"", "&lt;b&gt;"] {
            assert!(svg.contains(part), "{part} in {svg}");
        }
        assert!(!svg.contains("width=\"0.0\"") && !svg.contains("style="), "{svg}");
    }

    #[test]
    fn nothing_is_no_picture() {
        let empty = Bar { values: vec![0.0, f64::NAN], ..Bar::default() };
        assert_eq!(svg(&Bars { bars: vec![empty], ..Bars::default() }), "");
        assert_eq!(svg(&Bars::default()), "");
    }
}
