//! Sizing as a web page: answers, plot, table, models.

use crate::sizing::{Row, Sizing, per_second};
use crate::text::title;
use plimsoll_report::number::{percent, significant};
use plimsoll_report::sheet::{
    Cell, Level, Line, Lines, Part, Plot, PlotKind, Section, Sheet, Table, Tone, Values, YAxis,
};

/// Returns the page.
pub fn sheet(sizing: &Sizing) -> Sheet {
    let unit = sizing.unit;
    let is_missing = sizing.declined.is_some();
    let outcome = match (&sizing.declined, sizing.answers.first()) {
        (Some(reason), _) => reason.clone(),
        (None, Some(answer)) => answer.words.clone(),
        (None, None) => String::new(),
    };
    let limit = sizing.slo.as_ref().map_or(String::new(), |slo| format!(" at {slo}"));
    let mut answers = Section::new("answers", "Answers", "");
    for answer in &sizing.answers {
        let tone = if answer.answered { Tone::Plain } else { Tone::Warn };
        answers =
            answers.with(Part::Text(tone, format!("{}: {}", title(answer.question), answer.words)));
    }
    if let Some(check) = &sizing.check {
        let tone = if check.inside { Tone::Good } else { Tone::Bad };
        answers = answers.with(Part::Text(tone, format!("Check: {}", check.words)));
    }
    let note = format!(
        "Rate that each number of {unit} holds{limit}, with the {} prediction interval of a further measurement.",
        percent(sizing.level)
    );
    let held = Section::new("held", &format!("Rate by number of {unit}"), &note)
        .with(Part::Plot(Box::new(plot(sizing))))
        .with(Part::Table(rows(&sizing.held, unit)));
    let mut sections = vec![answers, held];
    if !sizing.models.is_empty() {
        sections.push(models(sizing));
    }
    let mut assumed = Section::new("assumed", "Assumptions and records", "");
    for assumption in &sizing.assumptions {
        assumed = assumed.with(Part::Text(Tone::Plain, assumption.clone()));
    }
    sections.push(assumed.with(Part::Table(records(sizing))));
    Sheet {
        title: format!("How many {unit}?"),
        when: sizing.rate_per_s.map_or(String::new(), |per_s| {
            format!(
                "asked for: {}{limit}, headroom {}",
                per_second(per_s),
                percent(sizing.headroom)
            )
        }),
        verdict: if is_missing { "declined" } else { "answered" }.to_owned(),
        tone: if is_missing { Tone::Warn } else { Tone::Good },
        outcome,
        sections,
        footer: vec![format!("plimsoll {}, {}", env!("CARGO_PKG_VERSION"), sizing.schema)],
    }
}

fn rows(held: &[Row], unit: &str) -> Table {
    let count = format!("#{unit}");
    let mut table = Table::new(&[&count, "#rate", "#low", "#high", "source"]);
    for row in held {
        let source = match (row.worst, row.disagreement) {
            (Some(worst), Some(disagreement)) => {
                format!("predicted by {worst}, models disagree by {}", percent(disagreement))
            }
            _ => row.source.to_owned(),
        };
        table.row(
            Tone::Plain,
            vec![
                Cell::number(row.n, row.n.to_string()),
                Cell::per_s(row.per_s),
                Cell::per_s(row.interval_per_s.0),
                Cell::per_s(row.interval_per_s.1),
                Cell::text(source),
            ],
        );
    }
    table
}

fn plot(sizing: &Sizing) -> Plot {
    let held = &sizing.held;
    let x = Values::of("size-n", held.iter().map(|row| row.n));
    let values =
        |name: &str, of: &dyn Fn(&Row) -> Option<f64>| Values::new(name, held.iter().map(of));
    let low = Line::new("low", "neutral", values("size-low", &|row| Some(row.interval_per_s.0)));
    let high = Line::new("high", "neutral", values("size-high", &|row| Some(row.interval_per_s.1)));
    let middle = Line::new("rate", "series-1", values("size-rate", &|row| Some(row.per_s)));
    let measured = |row: &Row| (row.source == "measured").then_some(row.per_s);
    let mut lines = vec![high.down_to("low"), low, middle];
    if held.iter().any(|row| measured(row).is_some()) {
        lines.push(Line {
            is_dots: true,
            ..Line::new("measured", "good", values("size-measured", &measured))
        });
    }
    let asked = sizing.rate_per_s.map(|per_s| Level {
        y: per_s,
        label: format!("asked for {}", per_second(per_s)),
        axis: 0,
    });
    let lines = Lines {
        x: Some(x),
        x_label: sizing.unit.to_owned(),
        y: vec![YAxis::linear("/s")],
        lines,
        levels: asked.into_iter().collect(),
        ..Lines::default()
    };
    let shown = held.len().min(Plot::TWIN_ROWS_MAX);
    Plot {
        id: "size".to_owned(),
        caption: format!("Rate by number of {}", sizing.unit),
        kind: PlotKind::Lines(lines),
        twin: rows(&held[..shown], sizing.unit),
        is_pictured: true,
    }
}

fn models(sizing: &Sizing) -> Section {
    let most = sizing.held.last().map_or(0.0, |row| row.n);
    let mut table =
        Table::new(&["model", "parameters", "#rate", "#low", "#high", "#squares", "state"]);
    for model in &sizing.models {
        let tone = if model.ruled_out { Tone::Warn } else { Tone::Plain };
        table.row(
            tone,
            vec![
                Cell::text(model.name),
                Cell::text(model.parameters.clone()),
                Cell::per_s(model.per_s),
                Cell::per_s(model.interval_per_s.0),
                Cell::per_s(model.interval_per_s.1),
                Cell::number(model.squares, significant(model.squares)),
                Cell::text(if model.ruled_out { "ruled out by the points" } else { "possible" }),
            ],
        );
    }
    let note = format!(
        "Rival models, fitted to the measured points, and their predictions for {most} {}. squares: sum of squared residuals in squared standard errors.",
        sizing.unit
    );
    Section::new("models", "Models", &note).with(Part::Table(table))
}

fn records(sizing: &Sizing) -> Table {
    let count = format!("#{}", sizing.unit);
    let mut table = Table::new(&[&count, "#rate", "#standard error", "source", "records"]);
    for one in &sizing.measured {
        let error = one.error.map_or(Cell::Unknown, Cell::share);
        table.row(
            Tone::Plain,
            vec![
                Cell::number(one.n, one.n.to_string()),
                Cell::per_s(one.per_s),
                error,
                Cell::text(one.source.clone()),
                Cell::text(one.runs.join(" ")),
            ],
        );
    }
    table
}
