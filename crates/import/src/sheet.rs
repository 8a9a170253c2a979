//! The parts of a page that is data which only an import has: its source, the percentiles that the source printed, and a list of
//! the unknown figures.

use crate::unknown;
use plimsoll_record::RunRecord;
use plimsoll_record::import::ImportResult;
use plimsoll_report::sheet::{
    Cell, Line, Lines, Part, Plot, PlotKind, Section, Sheet, Table, Tone, Values, YAxis,
};

/// Fewest percentiles from which a curve says more than their table.
const CURVE_POINTS_MIN: usize = 3;

/// Adds the parts of an import.
pub fn sheet(sheet: &mut Sheet, record: &RunRecord) {
    let Some(import) = record.job_results.import() else { return };
    if let Some(asked) = sheet.section_mut("asked") {
        "Source of the figures, and the reasons of the verdict".clone_into(&mut asked.title);
        if let Some(Part::Facts(facts)) = asked.parts.first_mut() {
            facts.extend(source(record, import));
        }
    }
    if let Some(printed) = percentiles(import)
        && let Some(curve) = sheet.section_mut("curve")
    {
        // The picture of all times says more.
        let has_picture = curve.parts.iter().any(|part| matches!(part, Part::Plot(_)));
        curve.parts.push(match printed {
            Part::Plot(plot) => Part::Plot(Box::new(Plot { is_pictured: !has_picture, ..*plot })),
            table => table,
        });
    }
    let note =
        "Figures that the source does not give. They are unknown or left out, and nowhere 0.";
    let mut section = Section::new("unknown", "Unknown", note);
    let lines = unknown::all(record, import).into_iter();
    section.parts.extend(lines.map(|line| Part::Text(Tone::Plain, line)));
    sheet.put_after("ledger", section);
}

/// Tool, file, settings, and the rates and bytes of the whole measurement.
fn source(record: &RunRecord, import: &ImportResult) -> Vec<(String, Cell)> {
    let fact = |name: &str, cell: Cell| (name.to_owned(), cell);
    let text =
        |name: &str, text: &Option<String>| fact(name, Cell::or_unknown(text.clone(), Cell::text));
    let mut facts = vec![
        fact("measured by", Cell::text(import.tool.clone())),
        text("version", &import.tool_version),
        text("measured from", &import.measured_from),
        fact("file", Cell::text(import.file.clone())),
        fact("format", Cell::text(import.format.clone())),
        fact("imported", Cell::text(record.started_at.clone())),
    ];
    let rate = &record.rate;
    for (name, field, per_s) in [
        ("offered requests/s", "offered_per_s", rate.offered_per_s),
        ("requests/s that ended", "achieved_per_s", rate.achieved_per_s),
        ("successful requests/s", "ok_per_s", rate.ok_per_s),
    ] {
        facts.push(fact(name, Cell::per_s(per_s).from(&["rate", field])));
    }
    for (name, field, number) in [
        ("bytes sent", "sent", record.bytes.sent),
        ("bytes received", "received", record.bytes.received),
    ] {
        facts.push(fact(name, Cell::bytes(number as f64).from(&["bytes", field])));
    }
    let setting = |(name, value): (&String, &String)| {
        fact(&format!("setting {name}"), Cell::text(value.clone()))
    };
    facts.extend(import.settings.iter().map(setting));
    facts
}

/// The percentiles that the source printed: a curve with its table, or the table alone where they are few.
fn percentiles(import: &ImportResult) -> Option<Part> {
    if import.percentiles.is_empty() {
        return None;
    }
    let kind =
        if import.times.iter().any(|kind| kind == "response") { "response" } else { "service" };
    let caption = format!("Percentiles of the {kind} time, as {} printed them", import.tool);
    let table = |most: usize| {
        let mut table = Table::new(&["percentile", &format!("#{kind}")]);
        let all = import.percentiles.len();
        for step in 0..all.min(most) {
            // The first and the last are among them.
            let index = if all <= most { step } else { step * (all - 1) / (most - 1) };
            let at = index.to_string();
            let one = &import.percentiles[index];
            let time = Cell::ms(one.ms).from(&["import", "percentiles", &at, "ms"]);
            table.row(Tone::Plain, vec![Cell::text(one.percentile.to_string()), time]);
        }
        table
    };
    let inner: Vec<_> =
        import.percentiles.iter().filter(|one| (0.0..100.0).contains(&one.percentile)).collect();
    if inner.len() < CURVE_POINTS_MIN {
        return Some(Part::Table(table(import.percentiles.len()).captioned(&caption)));
    }
    let x = inner.iter().map(|one| 1.0 / (1.0 - one.percentile / 100.0));
    let y = inner.iter().map(|one| one.ms);
    let line = Line::new(kind, kind_tone(kind), Values::of("printed_ms", y))
        .over(Values::of("printed_q", x));
    let lines = Lines {
        x_label: "percentile".to_owned(),
        x_is_log: true,
        y: vec![YAxis::log("ms")],
        lines: vec![line],
        ..Lines::default()
    };
    Some(Part::Plot(Box::new(Plot {
        id: "printed".to_owned(),
        caption,
        kind: PlotKind::Curve(lines),
        twin: table(Plot::TWIN_ROWS_MAX),
        is_pictured: true,
    })))
}

fn kind_tone(kind: &str) -> &'static str {
    if kind == "response" { "response" } else { "service" }
}
