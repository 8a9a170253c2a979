//! Static pictures of plots, for readers whose browser runs no script: SVG with presentation attributes, so that they show
//! without styles too.

mod scale;

use crate::escape;
use plimsoll_report::number::significant;
use plimsoll_report::sheet::{Line, Lines, Plot, PlotKind, Values};
use scale::Scale;
use std::fmt::Write as _;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 280.0;
/// The frame of the plot: left, top, right, bottom.
const FRAME: [f64; 4] = [62.0, 44.0, 704.0, 248.0];
/// Stretches of x for each of which a line has its smallest and its largest value in the picture.
const BINS: usize = 200;
/// With fewer points, each is drawn as a dot too: a run of a second has one.
const DOTS_MAX: usize = 3;
/// Paints: a colour of the page's style, and one to draw with where a browser keeps styles from the page, readable on white and
/// on black.
pub const INK: &str = "var(--ink,#767676)";
pub const MUTED: &str = "var(--muted,#767676)";
const RULE: &str = "var(--rule,#9a9a9a)";

/// Returns the paint of a line by its meaning.
pub fn paint(tone: &str) -> String {
    format!("var(--tone-{tone},{})", colour(tone))
}

/// The colour without a style: distinct, and readable on white and on black.
fn colour(tone: &str) -> &'static str {
    match tone {
        "offered" | "series-4" => "#8a7a1c",
        "achieved" | "response" | "series-1" => "#2a78c2",
        "ok" | "good" | "series-3" => "#2b8a4b",
        "failed" | "bad" | "max" | "series-5" => "#d13b3b",
        "service" | "series-2" => "#c2611a",
        "server" | "network" => "#9556c4",
        "p50" => "#3f8fd6",
        "p90" => "#2a6fb0",
        "p99" => "#7a5ad0",
        "warn" | "lag" => "#b8731a",
        _ => "#767676",
    }
}

/// Returns the picture of a plot; empty if it has nothing to draw.
pub fn svg(plot: &Plot) -> String {
    match &plot.kind {
        PlotKind::Lines(lines) | PlotKind::Scatter(lines) => drawn(plot, lines, false),
        PlotKind::Curve(lines) => drawn(plot, lines, true),
        PlotKind::Heat(_) | PlotKind::Grid(_) => String::new(),
    }
}

/// A point of a line.
type Point = (f64, f64);

fn drawn(plot: &Plot, lines: &Lines, is_curve: bool) -> String {
    let is_log = lines.y.first().is_some_and(|axis| axis.is_log);
    let points: Vec<(&Line, Vec<Vec<Point>>)> = lines
        .lines
        .iter()
        .filter(|line| line.axis == 0)
        .map(|line| (line, pieces(line, lines.x.as_ref(), is_log)))
        .filter(|(_, pieces)| !pieces.is_empty())
        .collect();
    let all = || points.iter().flat_map(|(_, pieces)| pieces).flatten();
    let range = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::MAX, f64::MIN), |(low, high), at| (low.min(at), high.max(at)))
    };
    if all().next().is_none() {
        return String::new();
    }
    let x = range(&mut all().map(|point| point.0));
    let y = range(&mut all().map(|point| point.1));
    let x = if is_curve || lines.x_is_log { Scale::log(x) } else { Scale::of_time(x) };
    let y = if is_log { Scale::log(y) } else { Scale::from_zero(y) };
    let x = x.over(FRAME[0], FRAME[2]);
    let y = y.over(FRAME[3], FRAME[1]);
    let mut out = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"100%\" height=\"{HEIGHT}\" role=\"img\" font-family=\"sans-serif\" \
         font-size=\"11\" aria-label=\"{}\">",
        escape::line(&plot.caption)
    );
    axes(&mut out, lines, &x, &y, is_curve);
    for (line, pieces) in &points {
        draw_line(&mut out, line, pieces, &x, &y);
    }
    legend(&mut out, points.iter().map(|(line, _)| *line));
    out.push_str("</svg>");
    out
}

/// A line in pieces without gaps, thinned to the smallest and the largest value of each stretch.
fn pieces(line: &Line, common: Option<&Values>, is_log: bool) -> Vec<Vec<Point>> {
    let Some(x) = line.x.as_ref().or(common) else { return Vec::new() };
    let mut pieces: Vec<Vec<Point>> = Vec::new();
    let mut is_gap = true;
    for (x, y) in x.numbers.iter().zip(line.y.numbers.iter()) {
        let point = x.zip(*y).filter(|(x, y)| x.is_finite() && y.is_finite());
        match point.filter(|(_, y)| !is_log || *y > 0.0) {
            None => is_gap = true,
            Some(point) if is_gap => {
                pieces.push(vec![point]);
                is_gap = false;
            }
            Some(point) => pieces.extend_last(point),
        }
    }
    let number: usize = pieces.iter().map(Vec::len).sum();
    let together = number.div_ceil(BINS).max(1);
    pieces.iter().map(|piece| thinned(piece, together)).collect()
}

trait ExtendLast {
    fn extend_last(&mut self, point: Point);
}

impl ExtendLast for Vec<Vec<Point>> {
    fn extend_last(&mut self, point: Point) {
        if let Some(last) = self.last_mut() {
            last.push(point);
        }
    }
}

fn thinned(piece: &[Point], together: usize) -> Vec<Point> {
    if together < 3 {
        return piece.to_vec();
    }
    let mut out = Vec::new();
    for bin in piece.chunks(together) {
        let low = bin.iter().copied().reduce(|a, b| if b.1 < a.1 { b } else { a });
        let high = bin.iter().copied().reduce(|a, b| if b.1 > a.1 { b } else { a });
        let (Some(low), Some(high)) = (low, high) else { continue };
        let mut ends = [low, high];
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        out.extend(ends);
    }
    out.dedup();
    out
}

fn draw_line(out: &mut String, line: &Line, pieces: &[Vec<Point>], x: &Scale, y: &Scale) {
    let paint = paint(line.tone);
    let number: usize = pieces.iter().map(Vec::len).sum();
    let mut path = String::new();
    for piece in pieces.iter().filter(|_| !line.is_dots) {
        for (index, (at_x, at_y)) in piece.iter().enumerate() {
            let mark = if index == 0 { 'M' } else { 'L' };
            let _ = write!(path, "{mark}{:.1} {:.1}", x.place(*at_x), y.place(*at_y));
        }
    }
    let _ =
        write!(out, "<path d=\"{path}\" fill=\"none\" stroke=\"{paint}\" stroke-width=\"1.4\"/>");
    let is_alone = |piece: &&Vec<Point>| line.is_dots || number <= DOTS_MAX || piece.len() == 1;
    for (at_x, at_y) in pieces.iter().filter(is_alone).flatten() {
        let _ = write!(
            out,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{paint}\"/>",
            x.place(*at_x),
            y.place(*at_y)
        );
    }
}

fn text(out: &mut String, (x, y): Point, anchor: &str, text: &str) {
    let _ = write!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{MUTED}\">{}</text>",
        escape::line(text)
    );
}

fn rule(out: &mut String, from: Point, to: Point) {
    let _ = write!(
        out,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{RULE}\" stroke-width=\"0.5\"/>",
        from.0, from.1, to.0, to.1
    );
}

fn axes(out: &mut String, lines: &Lines, x: &Scale, y: &Scale, is_curve: bool) {
    let [left, top, right, bottom] = FRAME;
    for at in y.ticks() {
        let place = y.place(at);
        rule(out, (left, place), (right, place));
        text(out, (left - 6.0, place + 4.0), "end", &tick(at));
    }
    for at in x.ticks() {
        let place = x.place(at);
        rule(out, (place, top), (place, bottom));
        let label = if is_curve { percentile(at) } else { tick(at) };
        text(out, (place, bottom + 15.0), "middle", &label);
    }
    let unit = lines.y.first().map_or("", |axis| axis.unit.as_str());
    text(out, (left - 6.0, top - 8.0), "end", unit);
    text(out, (right, bottom + 29.0), "end", &lines.x_label);
}

/// A round number, without the digits that make others comparable.
fn tick(at: f64) -> String {
    let text = significant(at);
    match text.split_once('.') {
        Some((whole, digits)) if digits.trim_end_matches('0').is_empty() => whole.to_owned(),
        Some((whole, digits)) => format!("{whole}.{}", digits.trim_end_matches('0')),
        None => text,
    }
}

/// The percentile at a place of the HDR scale.
fn percentile(at: f64) -> String {
    match at {
        at if at < 1.5 => "0".to_owned(),
        at if at < 50.0 => significant_percent(1.0 - 1.0 / at, 0),
        at => significant_percent(1.0 - 1.0 / at, (at.log10().round() as usize).saturating_sub(2)),
    }
}

fn significant_percent(quantile: f64, places: usize) -> String {
    format!("{:.places$}", quantile * 100.0)
}

fn legend<'a>(out: &mut String, lines: impl Iterator<Item = &'a Line>) {
    let mut at = FRAME[0];
    let mut row = 13.0;
    for line in lines {
        let wide = 26.0 + 6.2 * line.label.chars().count() as f64;
        if at + wide > WIDTH {
            (at, row) = (FRAME[0], row + 14.0);
        }
        let _ = write!(
            out,
            "<rect x=\"{at:.1}\" y=\"{:.1}\" width=\"12\" height=\"4\" fill=\"{}\"/>",
            row - 5.0,
            paint(line.tone)
        );
        text(out, (at + 16.0, row), "start", &line.label);
        at += wide;
    }
}
