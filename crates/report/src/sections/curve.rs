//! The distribution of times over the whole run: the table of percentiles, and the percentile curve.

use super::timeline::ms;
use crate::intervals::PERCENTILES as PERCENTILES_OF_RUN;
use crate::number::count;
use crate::sheet::{Cell, Line, Lines, Part, Plot, PlotKind, Section, Table, Tone, Values, YAxis};
use crate::source;
use crate::text::samples_needed;
use crate::times::of_all_classes;
use plimsoll_core::histogram::{Histogram, LatencySummary};
use plimsoll_record::import::ImportResult;
use plimsoll_record::{PercentileInterval, RunRecord};

/// Points of the curve for each factor of ten of the number of requests.
const POINTS_PER_DECADE: i32 = 20;
/// Percentiles of the table beside the curve, and the field of a summary that has them.
const PERCENTILES: [(f64, &str, &str); 14] = [
    (0.0, "0 (min)", "min"),
    (0.1, "10", ""),
    (0.25, "25", ""),
    (0.5, "50", "p50"),
    (0.75, "75", ""),
    (0.9, "90", "p90"),
    (0.95, "95", "p95"),
    (0.99, "99", "p99"),
    (0.995, "99.5", ""),
    (0.999, "99.9", "p99_9"),
    (0.9999, "99.99", ""),
    (0.99999, "99.999", ""),
    (0.999999, "99.9999", ""),
    (1.0, "100 (max)", "max"),
];

/// Times of all classes together, from the histograms that the record keeps.
struct Merged {
    response: Histogram,
    service: Histogram,
    server: Histogram,
    /// Kinds of time that are left out, since a histogram of them is damaged.
    left_out: Vec<Part>,
}

impl Merged {
    fn of(record: &RunRecord) -> Self {
        let mut left_out = Vec::new();
        let times = |kind: &str| {
            of_all_classes(record, kind).unwrap_or_else(|problem| {
                let text = format!("The curve has no {kind} times: {problem}.");
                left_out.push(Part::Text(Tone::Warn, text));
                Histogram::new()
            })
        };
        let [response, service, server] = ["response", "service", "server"].map(times);
        Self { response, service, server, left_out }
    }
}

/// Response, service, failed, judged and lag, in ms.
pub fn summary(record: &RunRecord) -> Table {
    let columns = ["", "#count", "#min", "#mean", "#p50", "#p90", "#p95", "#p99", "#p99.9", "#max"];
    let mut table = Table::new(&columns).captioned("Times of the whole run");
    let times = &record.latency_ms;
    let mut row = |label: &str, at: &[&str], times: &LatencySummary, tone: Tone| {
        let pointer = |field: &'static str| [at, &[field]].concat();
        let mut cells = vec![Cell::text(label), Cell::count(times.count).from(&pointer("count"))];
        let points = [
            ("min", "min", times.min),
            ("mean", "mean", times.mean),
            ("p50", "p50", times.p50),
            ("p90", "p90", times.p90),
            ("p95", "p95", times.p95),
            ("p99", "p99", times.p99),
            ("p99.9", "p99_9", times.p99_9),
            ("max", "max", times.max),
        ];
        // Of few samples a percentile says no more than the maximum.
        // Another tool has printed its percentiles, from however few samples; their number can be unknown.
        let is_printed = record.job_results.import().is_some();
        let is_counted = record.is_known(&[at, &["count"]].concat().join("."));
        cells.extend(points.map(|(name, field, value)| match times.count {
            count if is_printed && (count > 0 || !is_counted) => {
                Cell::ms(value).from(&pointer(field))
            }
            0 => Cell::text("-"),
            few if few < samples_needed(name) => Cell::text("-"),
            _ => Cell::ms(value).from(&pointer(field)),
        }));
        table.row(tone, cells);
    };
    row("response", &["latency_ms", "response"], &times.response, Tone::Plain);
    row("service", &["latency_ms", "service"], &times.service, Tone::Plain);
    if times.failed.count > 0 {
        row("failed", &["latency_ms", "failed"], &times.failed, Tone::Bad);
    }
    if let Some(server) = &times.server {
        row("server", &["latency_ms", "server"], server, Tone::Plain);
    }
    if let Some(judged) = &times.judged {
        row("judged", &["latency_ms", "judged"], judged, Tone::Bad);
    }
    row("lag", &["generator", "lag_ms"], &record.generator.lag_ms, Tone::Plain);
    table
}

/// The percentile curve on the HDR scale: response and service in one plot.
pub fn section(record: &RunRecord) -> Option<Section> {
    let merged = Merged::of(record);
    if merged.response.is_empty() && merged.service.is_empty() {
        // Without the distribution there is a table, if another tool measured or the distribution is damaged.
        let import = record.job_results.import();
        if import.is_none() && merged.left_out.is_empty() {
            return None;
        }
        let note = import.map(imported_note).unwrap_or_default();
        let section = Section::new("curve", "Times", &note).with(Part::Table(summary(record)));
        return Some(merged.left_out.into_iter().fold(section, Section::with));
    }
    let line = |name: &str, tone: &'static str, times: &Histogram| {
        let (x, y) = points(times);
        Line::new(name, tone, Values::of(&format!("{name}_ms"), y))
            .over(Values::of(&format!("{name}_q"), x))
    };
    let all =
        [("response", &merged.response), ("service", &merged.service), ("server", &merged.server)];
    let known = all.into_iter().filter(|(_, times)| !times.is_empty());
    let all: Vec<Line> = known.clone().map(|(name, times)| line(name, name, times)).collect();
    let names: Vec<&str> = known.map(|(name, _)| name).filter(|name| *name != "server").collect();
    let lines = Lines {
        x_label: "percentile".to_owned(),
        x_is_log: true,
        y: vec![YAxis::log("ms")],
        lines: all,
        ..Lines::default()
    };
    let plot = Plot {
        id: "curve".to_owned(),
        caption: match names.as_slice() {
            ["service"] => "Service time by percentile".to_owned(),
            ["response"] => "Response time by percentile".to_owned(),
            _ => "Response and service time by percentile".to_owned(),
        },
        kind: PlotKind::Curve(lines),
        twin: twin(record, &merged),
        is_pictured: true,
    };
    let mut note =
        "The further right, the rarer: 99 is one request of a hundred, 99.9 one of a thousand. "
            .to_owned();
    note += &match record.job_results.import() {
        Some(import) => imported_note(import),
        None => "Where response time lies above service time, requests waited before they were sent. Successful requests only."
            .to_owned(),
    };
    if record.latency_ms.judged.is_some() {
        note += " judged: every scheduled request; one without success misses every limit; the mean has its timeout.";
    }
    let section =
        Section::new("curve", "Percentile curve", &note).with(Part::Table(summary(record)));
    let section = match record.intervals.is_empty() {
        true => section,
        false => section.with(Part::Table(intervals(record))),
    };
    let section = merged.left_out.into_iter().fold(section, Section::with);
    Some(section.with(Part::Plot(Box::new(plot))))
}

/// The confidence intervals of the percentiles, or the reasons why there are none.
fn intervals(record: &RunRecord) -> Table {
    let columns =
        ["percentile of the response time", "#estimate", "#low", "#high", "batches, or reason"];
    let mut table = Table::new(&columns).captioned("95 % confidence intervals of this run");
    for (key, name, _) in PERCENTILES_OF_RUN {
        let from = |field: &'static str| ["intervals", key, field];
        let cells = match record.intervals.get(key) {
            None => continue,
            Some(PercentileInterval::Known { estimate, low, high, batches, .. }) => vec![
                Cell::ms(*estimate).from(&from("estimate")),
                Cell::ms(*low).from(&from("low")),
                Cell::ms(*high).from(&from("high")),
                Cell::text(format!("{batches} batches")),
            ],
            Some(PercentileInterval::Missing { reason }) => {
                let dash = || Cell::text("-");
                vec![dash(), dash(), dash(), Cell::text(format!("no interval: {reason}"))]
            }
        };
        table.row(Tone::Plain, [vec![Cell::text(name)], cells].concat());
    }
    table
}

/// Meaning of the times of another tool.
fn imported_note(import: &ImportResult) -> String {
    if import.times.is_empty() {
        return format!("{} does not say any time.", import.tool);
    }
    let (times, response) = (source::times(import), source::response(import));
    format!("{times}. Exact to: {}. {response}", import.exact_to).trim_end().to_owned()
}

/// The curve: 1 / (1 - quantile), and the time in ms, from the fastest request to the slowest.
fn points(times: &Histogram) -> (Vec<f64>, Vec<f64>) {
    let most = times.count() as f64;
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for step in 0.. {
        let at = 10f64.powf(f64::from(step) / f64::from(POINTS_PER_DECADE));
        let last = at >= most;
        let at = at.min(most.max(1.0));
        // The slowest request has the quantile 1; the axis ends one request before.
        let quantile = if last { 1.0 } else { 1.0 - 1.0 / at };
        x.push(at);
        y.push(ms(times.quantile_ns(quantile)));
        if last {
            return (x, y);
        }
    }
    (x, y)
}

fn twin(record: &RunRecord, merged: &Merged) -> Table {
    let mut heads = vec!["percentile", "#response", "#service", "#slower requests"];
    let server = record.latency_ms.server.as_ref().filter(|_| !merged.server.is_empty());
    if server.is_some() {
        heads.insert(3, "#server");
    }
    let mut table = Table::new(&heads);
    let most = merged.response.count().max(merged.service.count());
    for (quantile, label, field) in PERCENTILES {
        // Beyond the number of requests there is only the maximum.
        if quantile < 1.0 && (1.0 - quantile) * (most as f64) < 1.0 {
            continue;
        }
        let own = |times: &Histogram, name: &str, summary: &LatencySummary| {
            let value = ms(times.quantile_ns(quantile));
            let cell = if times.is_empty() { Cell::Unknown } else { Cell::ms(value) };
            let recorded = match field {
                "min" => summary.min,
                "p50" => summary.p50,
                "p90" => summary.p90,
                "p95" => summary.p95,
                "p99" => summary.p99,
                "p99_9" => summary.p99_9,
                "max" => summary.max,
                _ => return cell,
            };
            if recorded == value { cell.from(&["latency_ms", name, field]) } else { cell }
        };
        let slower = ((1.0 - quantile) * most as f64).round() as u64;
        let mut cells = vec![
            Cell::text(label),
            own(&merged.response, "response", &record.latency_ms.response),
            own(&merged.service, "service", &record.latency_ms.service),
        ];
        cells.extend(server.map(|server| own(&merged.server, "server", server)));
        cells.push(Cell::number(slower as f64, count(slower)));
        table.row(Tone::Plain, cells);
    }
    table
}
