//! Figures of a record that another tool measured: only what its file gives, and nothing in its place.

use super::{Figure, Figures, own_figure, times};
use crate::import::ImportResult;
use crate::{Latencies, RunRecord};
use plimsoll_core::assertion::{Metric, Point, Scope, Time, Which};
use plimsoll_core::histogram::LatencySummary;

/// The figure, if the source gives it.
pub(super) fn figure(
    metric: Metric,
    record: &RunRecord,
    import: &ImportResult,
    figures: &Figures,
) -> Option<Figure> {
    let counts = |names: &[&str]| names.iter().all(|name| !import.lacks(&path(figures, name)));
    match metric {
        Metric::Rate if import.lacks(&rate_path(figures)) => None,
        Metric::Count(Which::Ok) if !counts(&["ok"]) => None,
        Metric::Count(Which::All) | Metric::Percent(_) if !counts(&["sent"]) => None,
        Metric::Count(Which::Failed) | Metric::Percent(_) if !counts(&["sent", "ok"]) => None,
        Metric::Time(time, point) => time_figure(time, point, record, import, figures),
        _ => own_figure(metric, record, figures),
    }
}

/// Path of a count of the scope.
fn path(figures: &Figures, name: &str) -> String {
    match figures.scope {
        Scope::Global => format!("ledger.{name}"),
        _ => format!("classes.*.{name}"),
    }
}

fn rate_path(figures: &Figures) -> String {
    let of = if matches!(figures.scope, Scope::Global) { "rate" } else { "classes.*" };
    format!("{of}.ok_per_s")
}

fn time_figure(
    time: Time,
    point: Point,
    record: &RunRecord,
    import: &ImportResult,
    figures: &Figures,
) -> Option<Figure> {
    let kind = match time {
        Time::Response => "response",
        Time::Service => "service",
    };
    let of =
        if matches!(figures.scope, Scope::Global) { "latency_ms" } else { "classes.*.latency_ms" };
    let at = |name: &str| !import.lacks(&format!("{of}.{kind}.{name}"));
    if import.lacks(&format!("{of}.{kind}")) {
        return None;
    }
    let has_samples = figures
        .classes
        .iter()
        .all(|class| record.histograms.contains_key(&format!("{class}/{kind}")));
    if has_samples && !figures.classes.is_empty() && import.times_of == "successful" {
        return own_figure(Metric::Time(time, point), record, figures);
    }
    let summary = match time {
        Time::Response => &figures.response,
        Time::Service => &figures.service,
    };
    let name = name(point)?;
    let printed = match (named(summary, name), point) {
        (Some(value), _) if at(name) => Some(value),
        (_, Point::Percentile(p)) if has_samples => {
            let samples = times(record, &figures.classes, kind)?;
            Some(samples.quantile_ns(p / 100.0) as f64 / 1e6)
        }
        (_, Point::Percentile(p)) if is_main(&record.latency_ms, time, figures) => import
            .percentiles
            .iter()
            .find(|one| (one.percentile - p).abs() < 1e-9)
            .map(|one| one.ms),
        _ => None,
    };
    // A request that failed misses every limit: what the others took is the least that all of them took. Where the file
    // tells of no failure, its times are those of all requests.
    let counts_known = !import.lacks(&path(figures, "ok")) && !import.lacks(&path(figures, "sent"));
    let some_failed = counts_known && figures.all > figures.ok;
    match (some_failed, point) {
        (false, _) | (true, Point::Min) => printed.map(Figure::Exactly),
        (true, Point::Mean | Point::Deviation) => None,
        (true, Point::Max | Point::Percentile(_)) => printed.map(Figure::AtLeast),
    }
}

/// True if the printed percentiles are of these times: those of the whole, and of the response time if there is one.
fn is_main(times: &Latencies, time: Time, figures: &Figures) -> bool {
    let response_is_main = times.response.count > 0;
    matches!(figures.scope, Scope::Global) && (time == Time::Response) == response_is_main
}

fn name(point: Point) -> Option<&'static str> {
    Some(match point {
        Point::Min => "min",
        Point::Mean => "mean",
        Point::Max => "max",
        Point::Deviation => return None,
        Point::Percentile(p) => match p {
            p if (p - 50.0).abs() < 1e-9 => "p50",
            p if (p - 90.0).abs() < 1e-9 => "p90",
            p if (p - 95.0).abs() < 1e-9 => "p95",
            p if (p - 99.0).abs() < 1e-9 => "p99",
            p if (p - 99.9).abs() < 1e-9 => "p99_9",
            p if (p - 100.0).abs() < 1e-9 => "max",
            // Only what the source printed.
            _ => "other",
        },
    })
}

fn named(summary: &LatencySummary, name: &str) -> Option<f64> {
    Some(match name {
        "min" => summary.min,
        "mean" => summary.mean,
        "max" => summary.max,
        "p50" => summary.p50,
        "p90" => summary.p90,
        "p95" => summary.p95,
        "p99" => summary.p99,
        "p99_9" => summary.p99_9,
        _ => return None,
    })
}
