//! A page as text, for tests: what it shows, and whether each number is the one of the record.

use crate::sheet::{Cell, Part, Plot, PlotKind, Sheet, Table, Tone};
use plimsoll_record::RunRecord;
use serde_json::Value;
use std::fmt::Write as _;

/// Returns sections of a page as text: words, tables, and the lines of plots with their first and last points.
///
/// # Panics
/// When a section does not exist.
#[must_use]
pub fn outline(sheet: &Sheet, ids: &[&str]) -> String {
    let mut out = String::new();
    for id in ids {
        let section = sheet.section(id).unwrap_or_else(|| panic!("no section {id}"));
        let _ = writeln!(out, "# {} ({id})", section.title);
        if !section.note.is_empty() {
            let _ = writeln!(out, "{}", section.note);
        }
        section.parts.iter().for_each(|part| put(&mut out, part));
        out.push('\n');
    }
    out
}

fn put(out: &mut String, part: &Part) {
    match part {
        Part::Text(tone, text) => {
            let _ = writeln!(out, "{tone:?}: {text}");
        }
        Part::Facts(facts) => {
            for (name, cell) in facts {
                let _ = writeln!(out, "- {name}: {}", shown(cell));
            }
        }
        Part::Table(table) => put_table(out, table),
        Part::Plot(plot) => put_plot(out, plot),
        Part::Bars(bars) => {
            let parts = bars.parts.iter().map(|(name, tone)| format!("{name} ({tone})"));
            let parts: Vec<String> = parts.collect();
            let _ = writeln!(out, "bars '{}': {}", bars.caption, parts.join(", "));
            for bar in &bars.bars {
                let _ = writeln!(out, "  {} {:?} {}", bar.name, bar.values, bar.text);
            }
            put_table(out, &bars.twin);
        }
        other => {
            let _ = writeln!(out, "{other:?}");
        }
    }
}

fn shown(cell: &Cell) -> String {
    match cell {
        Cell::Number { text, from, .. } => format!("{text} <{from}>"),
        cell => cell.shown().to_owned(),
    }
}

fn put_table(out: &mut String, table: &Table) {
    let heads: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
    let _ = writeln!(out, "table '{}': {}", table.caption, heads.join(" | "));
    for row in &table.rows {
        let cells: Vec<String> = row.cells.iter().map(shown).collect();
        let tone = match row.tone {
            Tone::Plain => String::new(),
            tone => format!(" [{tone:?}]"),
        };
        let _ = writeln!(out, "  {}{tone}", cells.join(" | "));
    }
}

fn put_plot(out: &mut String, plot: &Plot) {
    let _ = writeln!(out, "plot {} '{}'", plot.id, plot.caption);
    match &plot.kind {
        PlotKind::Lines(lines) | PlotKind::Curve(lines) | PlotKind::Scatter(lines) => {
            let log = if lines.x_is_log { ", log" } else { "" };
            let axes: Vec<&str> = lines.y.iter().map(|axis| axis.unit.as_str()).collect();
            let _ = writeln!(out, "  x {}{log}; y {axes:?}", lines.x_label);
            for line in &lines.lines {
                let known: Vec<f64> = line.y.numbers.iter().copied().flatten().collect();
                let (first, last) = (known.first(), known.last());
                let kind = if line.is_dots { "dots" } else { "line" };
                let (label, tone) = (&line.label, line.tone);
                let number = format!("{} of {}", known.len(), line.y.numbers.len());
                let _ = writeln!(out, "  {kind} {label} ({tone}) {number}: {first:?} {last:?}");
            }
            for band in &lines.bands {
                let _ = writeln!(out, "  band {} to {}: {}", band.from, band.to, band.label);
            }
            for mark in &lines.marks {
                let _ = writeln!(out, "  mark at {}: {}", mark.x, mark.label);
            }
            for level in &lines.levels {
                let _ = writeln!(out, "  level {}: {}", level.y, level.label);
            }
        }
        PlotKind::Grid(grid) => {
            let _ = writeln!(out, "  grid of {:?} by {:?} {}", grid.rows, grid.columns, grid.unit);
            for row in &grid.cells {
                let text = |cell: &Option<(f64, String)>| match cell {
                    Some((_, text)) => text.clone(),
                    None => "-".to_owned(),
                };
                let texts: Vec<String> = row.iter().map(text).collect();
                let _ = writeln!(out, "  {}", texts.join(" | "));
            }
        }
        PlotKind::Heat(heat) => {
            let _ = writeln!(out, "  heat of {} columns", heat.columns.len());
        }
    }
    put_table(out, &plot.twin);
}

/// Checks that each number of a page is the one at its place in the record, and returns how many have a place.
///
/// # Panics
/// When a number is another one than that of the record, or its place does not exist.
pub fn check_places(sheet: &Sheet, record: &RunRecord) -> usize {
    let record: Value =
        serde_json::from_str(&crate::json::pretty(record)).expect("a record is JSON");
    check_places_in(sheet, &record)
}

/// Checks that each number of a page is the one at its place in a JSON document, and returns how many have a place.
///
/// # Panics
/// When a number is another one than that of the document, or its place does not exist.
pub fn check_places_in(sheet: &Sheet, document: &Value) -> usize {
    let mut placed = 0;
    for (section, cell) in cells(sheet) {
        let Cell::Number { value, text, from } = cell else { continue };
        if from.is_empty() {
            continue;
        }
        let own = document.pointer(from).and_then(Value::as_f64);
        assert_eq!(own, Some(*value), "{section}: '{text}' is not {from}");
        placed += 1;
    }
    placed
}

/// Returns the numbers of these sections that name no place in the record: what the page derives.
#[must_use]
pub fn derived(sheet: &Sheet, ids: &[&str]) -> Vec<String> {
    let own = |(section, cell): (&str, &Cell)| match cell {
        Cell::Number { text, from, .. } if from.is_empty() && ids.contains(&section) => {
            Some(format!("{section}: {text}"))
        }
        _ => None,
    };
    cells(sheet).filter_map(own).collect()
}

fn cells(sheet: &Sheet) -> impl Iterator<Item = (&str, &Cell)> {
    sheet.sections.iter().flat_map(|section| {
        section.parts.iter().flat_map(of_part).map(|cell| (section.id.as_str(), cell))
    })
}

fn of_part(part: &Part) -> Vec<&Cell> {
    let table = match part {
        Part::Facts(facts) => return facts.iter().map(|(_, cell)| cell).collect(),
        Part::Table(table) => table,
        Part::Plot(plot) => &plot.twin,
        Part::Bars(bars) => &bars.twin,
        _ => return Vec::new(),
    };
    table.rows.iter().flat_map(|row| &row.cells).collect()
}
