//! Plots over the time of a run, each with its table.

use crate::series::{Column, Series, Times};
use crate::sheet::{
    Band, Cell, Level, Line, Lines, Mark, Plot, PlotKind, Table, Tone, Values, YAxis,
};
use plimsoll_core::units::Span;
use plimsoll_record::RunRecord;
use serde_json::Value;

/// A column shorter than this share of the longest one has no rate: a millisecond is too short for one.
const RATE_SHARE_MIN: f64 = 0.1;

/// A column with its percentiles.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Counts.
    pub column: Column,
    /// Response times.
    pub response: Option<Times>,
    /// Service times.
    pub service: Option<Times>,
    /// Lag.
    pub lag: Option<Times>,
    /// The server's own times.
    pub server: Option<Times>,
    has_rate: bool,
}

impl Seen {
    /// Returns a count per second; `None` behind the end of the measured stretch, and for columns that are too short.
    pub fn per_s(&self, count: u64) -> Option<f64> {
        self.column.per_s(count).filter(|_| self.has_rate)
    }

    /// Response times, or service times if the source of an import has only those.
    pub fn times(&self) -> Option<Times> {
        self.response.or(self.service)
    }
}

/// One figure of each column.
pub struct Measure {
    /// Name of the numbers on the page.
    pub name: &'static str,
    /// Name in legend and table.
    pub label: &'static str,
    /// Colour by meaning.
    pub tone: &'static str,
    /// Index of its axis.
    pub axis: usize,
    /// Label of the measure down to which the space is filled.
    pub below: Option<&'static str>,
    /// The figure, in the unit of its axis.
    pub value: fn(&Seen) -> Option<f64>,
    /// The figure as the table shows it.
    pub cell: fn(f64) -> Cell,
}

/// The columns of a run, as many as there are and few for tables.
#[derive(Debug)]
pub struct Timeline {
    /// All columns.
    pub fine: Vec<Seen>,
    /// The same time in at most [`Plot::TWIN_ROWS_MAX`] columns.
    pub coarse: Vec<Seen>,
    /// Start of each column, s since the start of the measured stretch.
    pub t: Values,
    bands: Vec<Band>,
}

/// Nanoseconds in milliseconds.
#[must_use]
pub fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// Nanoseconds in seconds.
#[must_use]
pub fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

impl Timeline {
    /// Returns the columns of a series with their percentiles.
    #[must_use]
    pub fn new(record: &RunRecord, series: &Series) -> Self {
        let end_s = if record.duration_s > 0.0 { record.duration_s } else { f64::INFINITY };
        let see = |columns: &[Column]| -> Vec<Seen> {
            let longest_s = columns.iter().map(Column::seconds).fold(0.0, f64::max);
            let seen = |column: &Column| Seen {
                response: Times::of(&column.response),
                service: Times::of(&column.service),
                lag: Times::of(&column.lag),
                server: Times::of(&column.server),
                has_rate: column.seconds() >= longest_s * RATE_SHARE_MIN
                    && seconds(column.from_ns) < end_s,
                column: column.clone(),
            };
            columns.iter().map(seen).collect()
        };
        let fine = see(series.columns());
        let coarse = see(&series.coarse(Plot::TWIN_ROWS_MAX));
        let t = Values::of("t", fine.iter().map(|seen| seconds(seen.column.from_ns)));
        Self { fine, coarse, t, bands: bands(record) }
    }

    /// Returns true if there is nothing to plot.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fine.is_empty()
    }

    /// Returns true if there are service times and no response times: of an import whose source counts from the send.
    #[must_use]
    pub fn has_only_service(&self) -> bool {
        self.fine.iter().all(|seen| seen.response.is_none())
            && self.fine.iter().any(|seen| seen.service.is_some())
    }

    /// Returns a figure of all columns.
    #[must_use]
    pub fn values(&self, measure: &Measure) -> Values {
        Values::new(measure.name, self.fine.iter().map(measure.value))
    }

    /// Returns a plot of these measures; those that are unknown for all columns are left out.
    #[must_use]
    pub fn plot(&self, id: &str, caption: &str, y: Vec<YAxis>, measures: &[Measure]) -> Plot {
        let known =
            |measure: &&Measure| self.fine.iter().any(|seen| (measure.value)(seen).is_some());
        let measures: Vec<&Measure> = measures.iter().filter(known).collect();
        let line = |measure: &&Measure| {
            let line = Line::new(measure.label, measure.tone, self.values(measure));
            let is_shown = |below: &&str| measures.iter().any(|other| other.label == *below);
            Line {
                below: measure.below.filter(is_shown).map(str::to_owned),
                ..line.on(measure.axis)
            }
        };
        let lines = Lines {
            x: Some(self.t.clone()),
            x_label: "s".to_owned(),
            is_time: true,
            y,
            lines: measures.iter().map(line).collect(),
            bands: self.bands.clone(),
            ..Lines::default()
        };
        Plot {
            id: id.to_owned(),
            caption: caption.to_owned(),
            kind: PlotKind::Lines(lines),
            twin: self.twin(&measures),
            is_pictured: false,
        }
    }

    fn twin(&self, measures: &[&Measure]) -> Table {
        let heads = measures.iter().map(|measure| format!("#{}", measure.label));
        let heads: Vec<String> =
            ["#from s".to_owned(), "#to s".to_owned()].into_iter().chain(heads).collect();
        let mut table = Table::new(&heads.iter().map(String::as_str).collect::<Vec<_>>());
        for seen in &self.coarse {
            let ends = [seen.column.from_ns, seen.column.to_ns];
            let cells = ends.map(|ns| Cell::number(seconds(ns), format!("{:.1}", seconds(ns))));
            let own = measures
                .iter()
                .map(|measure| Cell::or_unknown((measure.value)(seen), measure.cell));
            table.row(Tone::Plain, cells.into_iter().chain(own).collect());
        }
        table
    }
}

/// The measured phases that are in the journal, if there are several, s since the start of the measured stretch.
fn bands(record: &RunRecord) -> Vec<Band> {
    let warmup = record.scenario.get("warmup").and_then(Value::as_str);
    let warmup_s = warmup.and_then(|text| text.parse::<Span>().ok()).map_or(0.0, Span::as_seconds);
    let measured: Vec<_> = record.phases.iter().filter(|phase| phase.measured).collect();
    if measured.len() < 2 {
        return Vec::new();
    }
    let band = |phase: &&plimsoll_record::PhaseRecord| Band {
        from: (phase.from_s - warmup_s).max(0.0),
        to: (phase.from_s - warmup_s + phase.duration_s).max(0.0),
        label: phase.name.clone(),
    };
    measured.iter().map(band).collect()
}

/// Adds levels and marks to a plot of lines.
#[must_use]
pub fn annotated(mut plot: Plot, levels: Vec<Level>, marks: Vec<Mark>) -> Plot {
    if let PlotKind::Lines(lines) | PlotKind::Curve(lines) | PlotKind::Scatter(lines) =
        &mut plot.kind
    {
        lines.levels.extend(levels);
        lines.marks.extend(marks);
    }
    plot
}
