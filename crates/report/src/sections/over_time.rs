//! Throughput, response times and the heat map over the time of a run, and response times against the rate.

use super::timeline::{Measure, Seen, Timeline, annotated, ms, seconds};
use crate::number::{count, lasting, significant};
use crate::series::{Column, Series, Times};
use crate::sheet::{
    Cell, Heat, Level, Line, Lines, Part, Plot, PlotKind, Section, Table, Tone, Values, YAxis,
};
use crate::source;
use plimsoll_core::histogram::Packed;
use plimsoll_core::units::Span;
use plimsoll_record::RunRecord;

/// Samples of a column from which its 99.9th percentile says more than its maximum.
const P99_9_SAMPLES: u64 = 1_000;
/// Most columns of the heat map: no screen shows more.
const HEAT_COLUMNS_MAX: usize = 2_048;
/// Most rows of the heat map.
const HEAT_ROWS_MAX: usize = 120;
/// Finest rows of the heat map: this many for a factor of two.
const HEAT_ROWS_PER_OCTAVE: [u32; 4] = [16, 8, 4, 2];
/// The resolution of times below a millisecond, ns.
const UNIT_NS: f64 = 512.0;

const ACHIEVED: Measure = Measure {
    name: "achieved",
    label: "achieved",
    tone: "achieved",
    axis: 0,
    below: None,
    value: |seen| seen.per_s(seen.column.ended),
    cell: Cell::per_s,
};

/// Requests per second: offered, achieved, failed, refused. Of an import, only those that its source gives.
pub fn throughput(record: &RunRecord, timeline: &Timeline) -> Option<Section> {
    if timeline.is_empty() {
        return None;
    }
    let measures = throughput_measures();
    let lost = timeline.fine.iter().any(|seen| seen.column.refused + seen.column.unsent > 0);
    let shown = match record.job_results.import() {
        // What ended is all that a log tells; `failed` is the last of these two.
        Some(import) => &measures[1..2 + usize::from(import.failed.is_some())],
        None if lost => &measures[..],
        None => &measures[..3],
    };
    let names: Vec<&str> = shown.iter().map(|measure| measure.label).take(3).collect();
    let caption = format!("Requests per second: {}", names.join(", "));
    let mut plot = timeline.plot("throughput", &caption, vec![YAxis::linear("/s")], shown);
    plot.is_pictured = true;
    let note = match record.job_results.import() {
        Some(import) => format!(
            "achieved: requests that came to an end, good or bad. {} does not say when requests were due, so that the offered \
             rate over time is unknown. Requests per second; time in seconds since the start of the measurement.",
            import.tool
        ),
        None => "offered: requests that the schedule made due; achieved: requests that came to an end, good or bad; failed: \
                 those that did not succeed. Requests per second; time in seconds since the start of the measured stretch."
            .to_owned(),
    };
    Some(Section::new("throughput", "Throughput", &note).with(Part::Plot(Box::new(plot))))
}

fn throughput_measures() -> [Measure; 4] {
    [
        Measure {
            name: "offered",
            label: "offered",
            tone: "offered",
            axis: 0,
            below: None,
            value: |seen| seen.per_s(seen.column.scheduled),
            cell: Cell::per_s,
        },
        ACHIEVED,
        Measure {
            name: "failed",
            label: "failed",
            tone: "failed",
            axis: 0,
            below: None,
            value: |seen| seen.per_s(seen.column.failed),
            cell: Cell::per_s,
        },
        Measure {
            name: "refused",
            label: "refused or unsent",
            tone: "warn",
            axis: 0,
            below: None,
            value: |seen| seen.per_s(seen.column.refused + seen.column.unsent),
            cell: Cell::per_s,
        },
    ]
}

macro_rules! time_measure {
    ($name:literal, $label:literal, $tone:literal, $below:expr, $of:ident . $point:ident) => {
        Measure {
            name: $name,
            label: $label,
            tone: $tone,
            axis: 0,
            below: $below,
            value: |seen| seen.$of.map(|times: Times| ms(times.$point)),
            cell: Cell::ms,
        }
    };
}
pub(super) use time_measure;

/// Percentiles of response and service time over time, as bands.
pub fn latency(record: &RunRecord, timeline: &Timeline) -> Option<Section> {
    let has_times = |seen: &Seen| seen.times().is_some() || seen.column.failed_max_ns > 0;
    if !timeline.fine.iter().any(has_times) {
        return None;
    }
    let only_service = timeline.has_only_service();
    let measures = if only_service { service_measures() } else { response_measures() };
    let busy = |seen: &Seen| {
        let times = if only_service { &seen.column.service } else { &seen.column.response };
        times.count() >= P99_9_SAMPLES
    };
    let has_p99_9 = timeline.fine.iter().any(busy);
    let measures: Vec<Measure> =
        measures.into_iter().filter(|one| has_p99_9 || one.label != "p99.9").collect();
    let title = if only_service { "Service time" } else { "Response time" };
    let caption = format!("{title} over time: percentiles of each column");
    let plot = timeline.plot("latency", &caption, vec![YAxis::log("ms")], &measures);
    let mut plot = annotated(plot, limits(record), Vec::new());
    plot.is_pictured = true;
    let mut note = match record.job_results.import() {
        Some(import) => format!("{}. {}", source::times(import), source::response(import))
            .trim_end()
            .to_owned(),
        None => "Response time: intended start to last byte, so that waiting for a slow target counts. Service time: sent to \
                 last byte."
            .to_owned(),
    };
    // Of many tools, the times are those of all replies.
    if record.is_known("latency_ms.failed") {
        note += " Failed requests have a time of their own.";
    }
    note += " All times in ms.";
    if record.latency_ms.server.is_some() {
        note += " Server: the server's own time, as its replies say it; the rest of the service time is network and queues.";
    }
    Some(Section::new("latency", title, &note).with(Part::Plot(Box::new(plot))))
}

/// Bands of the response time, with the service time beside them.
fn response_measures() -> Vec<Measure> {
    vec![
        time_measure!("p50", "p50", "p50", None, response.p50_ns),
        time_measure!("p90", "p90", "p90", Some("p50"), response.p90_ns),
        time_measure!("p99", "p99", "p99", Some("p90"), response.p99_ns),
        time_measure!("p99_9", "p99.9", "max", Some("p99"), response.p99_9_ns),
        time_measure!("max", "max", "max", None, response.max_ns),
        time_measure!("service_p50", "service p50", "service", None, service.p50_ns),
        time_measure!("service_p99", "service p99", "server", None, service.p99_ns),
        time_measure!("server_p50", "server p50", "series-3", None, server.p50_ns),
        time_measure!("server_p99", "server p99", "series-2", None, server.p99_ns),
        FAILED_MAX,
    ]
}

/// Bands of the service time, for a source that has no other.
fn service_measures() -> Vec<Measure> {
    vec![
        time_measure!("p50", "p50", "p50", None, service.p50_ns),
        time_measure!("p90", "p90", "p90", Some("p50"), service.p90_ns),
        time_measure!("p99", "p99", "p99", Some("p90"), service.p99_ns),
        time_measure!("p99_9", "p99.9", "max", Some("p99"), service.p99_9_ns),
        time_measure!("max", "max", "max", None, service.max_ns),
        FAILED_MAX,
    ]
}

const FAILED_MAX: Measure = Measure {
    name: "failed_max",
    label: "failed max",
    tone: "failed",
    axis: 0,
    below: None,
    value: |seen| (seen.column.failed_max_ns > 0).then(|| ms(seen.column.failed_max_ns)),
    cell: Cell::ms,
};

/// Limits on response times, as levels.
fn limits(record: &RunRecord) -> Vec<Level> {
    let of_time = record.slo.iter().filter(|(_, slo)| slo.unit == "ms");
    let level = |(name, slo): (&String, &plimsoll_record::SloResult)| {
        let span: Span = slo.limit.parse().ok()?;
        Some(Level { y: ms(span.ns), label: format!("{name} {}", slo.limit), axis: 0 })
    };
    of_time.filter_map(level).collect()
}

/// Number of requests by their response time, over time.
pub fn heat(series: &Series, timeline: &Timeline) -> Option<Section> {
    let columns = series.coarse(HEAT_COLUMNS_MAX);
    let of = times_of(timeline);
    let ranges = columns.iter().filter_map(|column| of(column).range_ns());
    let (low, high) = ranges.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
    let starts = row_starts(low, high);
    let rows_of = |columns: &[Column]| -> Vec<Vec<(usize, u64)>> {
        columns.iter().map(|column| of(column).rows(&starts)).collect()
    };
    let is_fine = columns.len() == series.columns().len();
    let name = if is_fine { "t" } else { "t_heat" };
    let heat = Heat {
        x: Values::of(name, columns.iter().map(|column| seconds(column.from_ns))),
        unit: "ms".to_owned(),
        edges: starts.iter().map(|&ns| ms(ns)).chain([ms(high + 1)]).collect(),
        columns: rows_of(&columns),
    };
    let kind = if timeline.has_only_service() { "service time" } else { "response time" };
    let plot = Plot {
        id: "heat".to_owned(),
        caption: format!("Number of requests by {kind} and time"),
        kind: PlotKind::Heat(heat),
        twin: heat_twin(&timeline.coarse, of),
        is_pictured: false,
    };
    let note = "Each cell counts the requests that ended in its time and took that long. Two bands mean two kinds of \
                answers, which no percentile shows.";
    let title = format!("Heat map of {kind}s");
    Some(Section::new("heat", &title, note).with(Part::Plot(Box::new(plot))))
}

/// Response times of a column, or service times if there are no others.
fn times_of(timeline: &Timeline) -> fn(&Column) -> &Packed {
    if timeline.has_only_service() { |column| &column.service } else { |column| &column.response }
}

/// Smallest values of the rows, ns, ascending. Rows are even on a logarithmic scale, as fine as fits.
fn row_starts(low_ns: u64, high_ns: u64) -> Vec<u64> {
    let of = |per_octave: u32| -> Vec<u64> {
        let step = 1.0 / f64::from(per_octave);
        let first = ((low_ns.max(UNIT_NS as u64) as f64).log2() / step).floor() * step;
        let mut starts = Vec::new();
        let mut at = first;
        while at < (high_ns.max(2) as f64).log2() {
            // A row begins where a cell of the histogram does: finer ones would stay empty.
            let start = (at.exp2() / UNIT_NS).round() * UNIT_NS;
            starts.push(start as u64);
            at += step;
        }
        starts.dedup();
        starts
    };
    let all = HEAT_ROWS_PER_OCTAVE.map(of);
    let fits = all.iter().find(|starts| starts.len() <= HEAT_ROWS_MAX);
    fits.or(all.last()).cloned().unwrap_or_default()
}

/// The same counts by decade, for readers of tables.
fn heat_twin(columns: &[Seen], of: fn(&Column) -> &Packed) -> Table {
    let edges_ns = [0, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000];
    let names = [
        "#from s",
        "#to s",
        "#below 1 ms",
        "#1 to 10 ms",
        "#10 to 100 ms",
        "#0.1 to 1 s",
        "#1 s and above",
    ];
    let mut table = Table::new(&names);
    for Seen { column, .. } in columns {
        let ends = [column.from_ns, column.to_ns];
        let mut cells: Vec<Cell> = ends
            .iter()
            .map(|&ns| Cell::number(seconds(ns), format!("{:.1}", seconds(ns))))
            .collect();
        let rows = of(column).rows(&edges_ns);
        cells.extend((0..edges_ns.len()).map(|row| {
            let found = rows.iter().find(|(index, _)| *index == row);
            Cell::count(found.map_or(0, |(_, count)| *count))
        }));
        table.row(Tone::Plain, cells);
    }
    table
}

/// Response times against the rate that the target achieved in each column.
pub fn against_rate(timeline: &Timeline) -> Option<Section> {
    let known = |seen: &&Seen| seen.times().is_some() && (ACHIEVED.value)(seen).is_some();
    let mut seen: Vec<&Seen> = timeline.fine.iter().filter(known).collect();
    if seen.len() < 2 {
        return None;
    }
    let x = timeline.values(&ACHIEVED);
    let only_service = timeline.has_only_service();
    let measures = if only_service { service_measures() } else { response_measures() };
    let is_shown = |measure: &&Measure| matches!(measure.label, "p50" | "p99");
    let lines = Lines {
        x: Some(x),
        x_label: "achieved requests/s".to_owned(),
        y: vec![YAxis::log("ms")],
        lines: measures
            .iter()
            .filter(is_shown)
            .map(|measure| Line::new(measure.label, measure.tone, timeline.values(measure)))
            .collect(),
        ..Lines::default()
    };
    let kind = if only_service { "Service time" } else { "Response time" };
    seen.sort_by(|a, b| rate(a).total_cmp(&rate(b)));
    let plot = Plot {
        id: "latency-rate".to_owned(),
        caption: format!("{kind} against the achieved rate, a point for each column of time"),
        kind: PlotKind::Scatter(lines),
        twin: rate_twin(&seen, times_of(timeline)),
        is_pictured: false,
    };
    let note = "Where the points leave their floor, the target begins to queue. With a constant rate they show how much the \
                target varies.";
    Some(
        Section::new("latency-rate", &format!("{kind} against rate"), note)
            .with(Part::Plot(Box::new(plot))),
    )
}

fn rate(seen: &Seen) -> f64 {
    (ACHIEVED.value)(seen).unwrap_or_default()
}

/// The columns in groups of neighbouring rates, merged exactly.
fn rate_twin(by_rate: &[&Seen], of: fn(&Column) -> &Packed) -> Table {
    let mut table =
        Table::new(&["rate, requests/s", "#columns", "#requests", "#p50", "#p90", "#p99", "#max"]);
    for group in by_rate.chunks(by_rate.len().div_ceil(Plot::TWIN_ROWS_MAX / 2).max(1)) {
        let all: Vec<&Packed> = group.iter().map(|seen| of(&seen.column)).collect();
        let Some(times) = Times::of(&Packed::sum(&all)) else { continue };
        let ends = [group.first(), group.last()].map(|seen| seen.map_or(0.0, |seen| rate(seen)));
        let range = match ends.map(significant) {
            [low, high] if low == high => low,
            [low, high] => format!("{low} to {high}"),
        };
        let requests = all.iter().map(|times| times.count()).sum();
        let points = [times.p50_ns, times.p90_ns, times.p99_ns, times.max_ns];
        let mut cells =
            vec![Cell::text(range), Cell::count(group.len() as u64), Cell::count(requests)];
        cells.extend(points.map(|ns| Cell::ms(ms(ns))));
        table.row(Tone::Plain, cells);
    }
    table
}

/// Time that a column of the page's plots covers, in words.
#[must_use]
pub fn resolution(series: &Series) -> String {
    let columns = series.columns();
    let longest_s = columns.iter().map(Column::seconds).fold(0.0, f64::max);
    format!(
        "{} columns of up to {} each; tables show them merged to at most {}",
        count(columns.len() as u64),
        lasting(longest_s),
        Plot::TWIN_ROWS_MAX
    )
}
