//! The tables of the page.

use crate::intervals;
use crate::number::{count, millis, percent, samples_needed, significant, time};
use crate::page::{Column, Page, Tone};
use crate::plain::{clip, heart_of_request, printable};
use plimsoll_core::histogram::LatencySummary;
use plimsoll_core::outcome::Failure;
use plimsoll_record::{AssertionResult, ClassRecord, RunRecord};

/// Slowest requests on the page; the record holds more.
const SLOWEST_MAX: usize = 5;
/// Longest name of a class or phase on the page, characters.
const NAME_CHARS_MAX: usize = 28;
/// Classes on the page, those that take most of the target's time; the others are one line.
const HEAVIEST: usize = 8;
/// The same on a verbose page; CSV and JSON have all.
const CLASSES_MAX: usize = 200;
/// A request's text is never cut shorter than this.
const REQUEST_CHARS_MIN: usize = 20;

/// The value of a percentile, or a dash when there are too few samples for it to mean anything.
fn cell(times: &LatencySummary, column: &str) -> String {
    if times.count < samples_needed(column).max(1) {
        return "-".to_owned();
    }
    millis(match column {
        "min" => times.min,
        "mean" => times.mean,
        "p50" => times.p50,
        "p90" => times.p90,
        "p95" => times.p95,
        "p99" => times.p99,
        "p99.9" => times.p99_9,
        _ => times.max,
    })
}

/// Response, service, failed and lag, in milliseconds.
pub fn latency(page: &mut Page<'_>, record: &RunRecord) {
    let columns = [
        Column::text("Latency, ms"),
        Column::number("count", 0),
        Column::number("min", 1),
        Column::number("mean", 3),
        Column::number("p50", 0),
        Column::number("p90", 2),
        Column::number("p95", 0),
        Column::number("p99", 0),
        Column::number("p99.9", 4),
        Column::number("max", 0),
    ];
    let row = |label: &str, times: &LatencySummary, tone: Tone| {
        let mut cells = vec![format!("  {label}"), count(times.count)];
        cells.extend(columns[2..].iter().map(|column| {
            // One sample is its own maximum and nothing else.
            if times.count == 1 && column.name != "max" {
                "-".to_owned()
            } else {
                cell(times, column.name)
            }
        }));
        (cells, tone)
    };
    let times = &record.latency_ms;
    let mut rows = Vec::new();
    let mut notes = Vec::new();
    // Rows of dashes say less than the ledger above them.
    if times.response.count > 0 || times.failed.count == 0 {
        rows.push(row("response", &times.response, Tone::Strong));
        rows.push(row("service", &times.service, Tone::Plain));
        notes.push("response: intended start to last byte; service: sent to last byte");
        if let Some(server) = &times.server {
            rows.push(row("server", server, Tone::Plain));
            notes.push("server: the server's own time, as its replies say");
        }
    }
    if times.failed.count > 0 {
        rows.push(row("failed", &times.failed, Tone::Bad));
    }
    let judged = times.judged.as_ref().filter(|judged| **judged != times.failed);
    if let Some(judged) = judged {
        rows.push(row("judged", judged, Tone::Bad));
    }
    if page.is_verbose() {
        rows.push(row("lag", &record.generator.lag_ms, Tone::Plain));
        notes.push("lag: intended start to sent");
    }
    page.table(&columns, &rows);
    if !notes.is_empty() {
        page.note(&notes.join("; "));
    }
    if let Some(remark) = intervals::remark(record) {
        page.note(&remark);
    }
    if judged.is_some() {
        page.note("judged: every scheduled request; one without success misses every limit; the mean has its timeout");
    }
}

/// One line a class, the one that takes most of the target's time first.
pub fn classes(page: &mut Page<'_>, record: &RunRecord) {
    let mut columns = vec![
        Column::text("Classes"),
        Column::number("sent", 1),
        Column::number("ok", 0),
        Column::number("failed", 0),
        Column::number("ok/s", 2),
        Column::number("time", 0),
        Column::number("p50 ms", 0),
        Column::number("p95", 0),
        Column::number("p99", 0),
        Column::number("max", 4),
    ];
    let hits_known = record.classes.values().any(|class| class.hits_known > 0);
    columns.extend(hits_known.then(|| Column::number("no hits", 3)));
    let spent =
        |class: &ClassRecord| class.latency_ms.service.mean * class.latency_ms.service.count as f64;
    let whole: f64 = record.classes.values().map(spent).sum();
    let mut classes: Vec<_> = record.classes.iter().collect();
    classes.sort_by(|a, b| spent(b.1).total_cmp(&spent(a.1)));
    let most = if page.is_verbose() { CLASSES_MAX } else { HEAVIEST };
    // A single one more is as long as the line that would stand for it.
    let shown = if classes.len() <= most + 1 { classes.len() } else { most };
    let others = classes.split_off(shown);
    let row = |(class_name, class): (&String, &ClassRecord)| {
        let response = &class.latency_ms.response;
        let failed = class.failed.total();
        let share = if whole > 0.0 { spent(class) / whole } else { 0.0 };
        let no_hits = match class.hits_known {
            0 => "-".to_owned(),
            known => percent(class.zero_hits as f64 / known as f64),
        };
        let mut cells = vec![
            format!("  {}", clip(&printable(class_name), NAME_CHARS_MAX)),
            count(class.sent),
            count(class.ok),
            count(failed),
            significant(class.ok_per_s),
            percent(share),
            cell(response, "p50"),
            cell(response, "p95"),
            cell(response, "p99"),
            cell(response, "max"),
        ];
        cells.extend(hits_known.then_some(no_hits));
        (cells, if failed > 0 { Tone::Bad } else { Tone::Plain })
    };
    let mut rows: Vec<_> = classes.into_iter().map(row).collect();
    if !others.is_empty() {
        let rest = others.iter().fold(ClassRecord::default(), |sum, one| together(sum, one.1));
        let name = format!("{} others", count(others.len() as u64));
        let (mut cells, tone) = row((&name, &rest));
        let time: f64 = others.iter().map(|(_, class)| spent(class)).sum();
        cells[5] = percent(if whole > 0.0 { time / whole } else { 0.0 });
        rows.push((cells, tone));
    }
    page.table(&columns, &rows);
    page.note("time: share of all service time; p50 to max: response time");
}

/// The counts of two classes together. Their times are unknown: percentiles do not add up.
fn together(mut sum: ClassRecord, other: &ClassRecord) -> ClassRecord {
    sum.sent += other.sent;
    sum.ok += other.ok;
    sum.ok_per_s += other.ok_per_s;
    for kind in Failure::ALL {
        *sum.failed.column(kind) += other.failed.get(kind);
    }
    sum.hits_known += other.hits_known;
    sum.zero_hits += other.zero_hits;
    sum
}

/// One line a phase, in the order of time. A single measured phase is the run, whose figures stand above.
pub fn phases(page: &mut Page<'_>, record: &RunRecord) {
    let measured = record.phases.iter().filter(|phase| phase.measured).count();
    let is_shown = |phase: &&plimsoll_record::PhaseRecord| measured > 1 || !phase.measured;
    let columns = [
        Column::text("Phases"),
        Column::number("from s", 1),
        Column::number("for s", 2),
        Column::number("offered/s", 3),
        Column::number("ok/s", 0),
        Column::number("failed", 0),
        Column::number("p50 ms", 0),
        Column::number("p95", 0),
        Column::number("p99", 0),
    ];
    let row = |phase: &plimsoll_record::PhaseRecord| {
        let response = &phase.latency_ms.response;
        let note = if phase.measured { "" } else { " (not counted)" };
        let failed = phase.ledger.failed.total();
        let cells = vec![
            format!("  {}{note}", clip(&printable(&phase.name), NAME_CHARS_MAX)),
            significant(phase.from_s),
            significant(phase.duration_s),
            significant(phase.rate.offered_per_s),
            significant(phase.rate.ok_per_s),
            count(failed),
            cell(response, "p50"),
            cell(response, "p95"),
            cell(response, "p99"),
        ];
        (cells, if failed > 0 { Tone::Bad } else { Tone::Plain })
    };
    let rows: Vec<_> = record.phases.iter().filter(is_shown).map(row).collect();
    if !rows.is_empty() {
        page.table(&columns, &rows);
    }
}

/// The figure that an assertion found, with its unit.
pub fn actual(one: &AssertionResult) -> String {
    let figure = figure(one);
    if one.at_least { format!("at least {figure}") } else { figure }
}

fn figure(one: &AssertionResult) -> String {
    match (one.actual, one.unit.as_str()) {
        (None, _) => "unknown".to_owned(),
        (Some(value), "") => count(value as u64),
        (Some(value), "ms") => time(value),
        (Some(value), unit @ ("%" | "/s")) => format!("{} {unit}", significant(value)),
        (Some(value), unit) => format!("{value} {unit}"),
    }
}

/// The slowest requests with their text, cut to the page.
pub fn slowest(page: &mut Page<'_>, record: &RunRecord) {
    let several = record.classes.len() > 1;
    let mut columns = vec![
        Column::number("Slowest, ms", 0),
        Column::number("service", 1),
        Column::number("at s", 2),
        Column::text("outcome"),
    ];
    columns.extend(several.then(|| Column::text("class")));
    columns.push(Column::text("request"));
    let worst = &record.slowest[..record.slowest.len().min(SLOWEST_MAX)];
    if worst.is_empty() {
        return;
    }
    let mut rows: Vec<_> = worst
        .iter()
        .map(|slow| {
            let mut cells = vec![
                millis(slow.response_ms),
                millis(slow.service_ms),
                significant(slow.at_s),
                printable(&slow.outcome),
            ];
            cells.extend(several.then(|| clip(&printable(&slow.class), NAME_CHARS_MAX)));
            cells.push(String::new());
            (cells, Tone::Plain)
        })
        .collect();
    // The request takes the room that the other columns leave.
    let room = page.room_beside(&columns, &rows).max(REQUEST_CHARS_MIN);
    for ((cells, _), slow) in rows.iter_mut().zip(worst) {
        if let Some(request) = cells.last_mut() {
            *request = clip(&printable(&heart_of_request(&slow.request)), room);
        }
    }
    page.table(&columns, &rows);
}
