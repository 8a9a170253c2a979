//! The table to decide from: figures that matter, their limits, and whether those held.

use super::said::limit_cell;
use crate::intervals;
use crate::number::time;
use crate::rate::is_lower_bound;
use crate::sheet::{Cell, Part, Row, Section, Sheet, Table, Tone};
use crate::text::samples_needed;
use plimsoll_record::import::ImportResult;
use plimsoll_record::{AssertionResult, PercentileInterval, RunRecord, SloResult};

/// Most rows: what can be read in ten seconds.
pub const ROWS_MAX: usize = 9;
/// Most limits among them; all of them have a section of their own.
const LIMITS_MAX: usize = 5;

/// The table to decide from. Comparisons are the record's own; a figure that the record does not have is left out.
pub fn section(record: &RunRecord) -> Option<Section> {
    let mut table = Table::new(&["", "#value", "limit", "held"]);
    let mut limits = limit_rows(record);
    // What was missed comes first.
    limits.sort_by_key(|row| row.tone != Tone::Bad);
    let left_out = limits.len().saturating_sub(LIMITS_MAX);
    limits.truncate(LIMITS_MAX);
    table.rows = limits;
    let named: Vec<String> = record.slo.keys().cloned().collect();
    let is_new = |name: &str| !named.iter().any(|known| known == name);
    for (name, label, cell) in figures(record) {
        if table.rows.len() < ROWS_MAX && is_new(name) {
            let cells = vec![Cell::text(label), cell, Cell::text(""), Cell::text("")];
            table.rows.push(Row { cells, tone: Tone::Plain });
        }
    }
    if table.rows.is_empty() {
        return None;
    }
    let mut note = String::new();
    if left_out > 0 {
        note = format!("{left_out} more limits are in the section Limits.");
    }
    Some(Section::new("decide", "To decide from", &note).with(Part::Table(table)))
}

/// All limits and assertions.
pub fn limits(record: &RunRecord) -> Option<Section> {
    let mut table = Table::new(&["", "#value", "limit", "held"]).sortable();
    table.rows = limit_rows(record);
    if table.rows.len() <= LIMITS_MAX {
        return None;
    }
    let note = "Limits (--slo) and assertions (--assert), as the run judged them.";
    Some(Section::new("limits", "Limits", note).with(Part::Table(table)))
}

/// A figure of a job in the table to decide from.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Name.
    pub label: String,
    /// Value, with its place in the record.
    pub value: Cell,
    /// Limit; empty if there is none.
    pub limit: String,
    /// True if the limit held; `None` without one.
    pub held: Option<bool>,
}

impl Decision {
    /// Returns a figure without a limit.
    #[must_use]
    pub fn figure(label: &str, value: Cell) -> Self {
        Self { label: label.to_owned(), value, limit: String::new(), held: None }
    }

    /// Adds a limit, and whether it held.
    #[must_use]
    pub fn against(mut self, limit: &str, held: bool) -> Self {
        limit.clone_into(&mut self.limit);
        self.held = Some(held);
        self
    }

    fn row(&self) -> Row {
        let (said, tone) = self.held.map_or((Cell::text(""), Tone::Plain), held);
        let cells = vec![
            Cell::text(self.label.clone()),
            self.value.clone(),
            Cell::text(self.limit.clone()),
            said,
        ];
        Row { cells, tone }
    }
}

/// Puts the figures of a job at the top of the table to decide from. Limits stay; figures of all requests together stay if
/// `others_matter`, as far as there is room.
pub fn put_first(sheet: &mut Sheet, decisions: &[Decision], others_matter: bool) {
    let mut rows: Vec<Row> = decisions.iter().map(Decision::row).collect();
    let is_new =
        |row: &Row, rows: &[Row]| rows.iter().all(|other| other.cells.first() != row.cells.first());
    let before = sheet.section("decide").and_then(|section| match section.parts.first() {
        Some(Part::Table(table)) => Some(table.rows.clone()),
        _ => None,
    });
    for row in before.unwrap_or_default() {
        let is_limit = row.cells.last().is_some_and(|held| !held.shown().is_empty());
        if (others_matter || is_limit) && is_new(&row, &rows) {
            rows.push(row);
        }
    }
    // What was missed is never cut.
    let missed = rows.iter().filter(|row| row.tone == Tone::Bad).count();
    let mut room = ROWS_MAX.saturating_sub(missed);
    rows.retain(|row| {
        let is_kept = row.tone == Tone::Bad || room > 0;
        room -= usize::from(is_kept && row.tone != Tone::Bad);
        is_kept
    });
    rows.truncate(ROWS_MAX);
    let mut table = Table::new(&["", "#value", "limit", "held"]);
    table.rows = rows;
    let note = sheet.section("decide").map_or(String::new(), |section| section.note.clone());
    let section = Section::new("decide", "To decide from", &note).with(Part::Table(table));
    match sheet.section("decide") {
        Some(_) => sheet.put(section),
        None => sheet.put_after("asked", section),
    }
}

fn limit_rows(record: &RunRecord) -> Vec<Row> {
    let limits = record.slo.iter().map(|(name, slo)| limit_row(name, slo));
    let assertions = record.assertions.iter().enumerate();
    limits.chain(assertions.map(|(index, one)| assertion_row(index, one))).collect()
}

fn held(held: bool) -> (Cell, Tone) {
    if held { (Cell::text("held"), Tone::Good) } else { (Cell::text("MISSED"), Tone::Bad) }
}

fn limit_row(name: &str, slo: &SloResult) -> Row {
    let (said, tone) = held(slo.held);
    let value = limit_cell(slo.measured, &slo.unit, slo.at_least).from(&["slo", name, "measured"]);
    let limit = slo.limit.clone();
    let label = match name {
        "rate" | "errors" => name.to_owned(),
        name => format!("response {name}"),
    };
    Row { cells: vec![Cell::text(label), value, Cell::text(limit), said], tone }
}

fn assertion_row(index: usize, one: &AssertionResult) -> Row {
    let (said, tone) = held(one.held);
    let at = index.to_string();
    let value = Cell::or_unknown(one.actual, |value| limit_cell(value, &one.unit, one.at_least))
        .from(&["assertions", &at, "actual"]);
    let label = format!("{} {}", one.scope, one.metric);
    Row { cells: vec![Cell::text(label), value, Cell::text(one.condition.clone()), said], tone }
}

/// Rates of requests, each with the name of the limit that would judge it.
fn rates(record: &RunRecord) -> Vec<(&'static str, &'static str, Cell)> {
    let rate = &record.rate;
    let ok = limit_cell(rate.ok_per_s, "/s", is_lower_bound(record)).from(&["rate", "ok_per_s"]);
    let mut rates = vec![("rate", "successful requests/s", ok)];
    if rate.offered_per_s != rate.ok_per_s {
        let offered = Cell::per_s(rate.offered_per_s).from(&["rate", "offered_per_s"]);
        rates.push(("offered", "offered requests/s", offered));
    }
    rates
}

/// Percentiles and maximum of the response time, as far as there are enough samples.
fn times(record: &RunRecord) -> Vec<(&'static str, &'static str, Cell)> {
    let response = &record.latency_ms.response;
    let points = [
        ("p50", "response p50", response.p50),
        ("p95", "response p95", response.p95),
        ("p99", "response p99", response.p99),
        ("max", "response max", response.max),
    ];
    let is_shown = |name: &str| response.count >= samples_needed(name);
    let shown = points.into_iter().filter(|(name, ..)| is_shown(name));
    let cell = |name: &'static str, value| {
        let text = match record.intervals.get(name) {
            Some(&PercentileInterval::Known { low, high, .. }) => {
                intervals::shown(value, low, high)
            }
            _ => time(value),
        };
        Cell::number(value, text).from(&["latency_ms", "response", name])
    };
    shown.map(|(name, label, value)| (name, label, cell(name, value))).collect()
}

/// Figures of an import: those that its source does not give are unknown.
fn imported(record: &RunRecord, import: &ImportResult) -> Vec<(&'static str, &'static str, Cell)> {
    let mut figures = rates(record);
    let has_ok = record.is_known("rate.ok_per_s");
    if !has_ok && record.is_known("rate.achieved_per_s") {
        let achieved = Cell::per_s(record.rate.achieved_per_s).from(&["rate", "achieved_per_s"]);
        figures.push(("achieved", "requests/s that ended", achieved));
    }
    let labels = match record.is_known("latency_ms.response") {
        true => ["response p50", "response p95", "response p99", "response max"],
        false => ["service p50", "service p95", "service p99", "service max"],
    };
    let (kind, times) = match record.is_known("latency_ms.response") {
        true => ("response", &record.latency_ms.response),
        false => ("service", &record.latency_ms.service),
    };
    // Of no request there is no time.
    let is_empty = times.count == 0 && record.is_known(&format!("latency_ms.{kind}.count"));
    let values = [("p50", times.p50), ("p95", times.p95), ("p99", times.p99), ("max", times.max)];
    for ((name, value), label) in values.into_iter().zip(labels).filter(|_| !is_empty) {
        figures.push((name, label, Cell::ms(value).from(&["latency_ms", kind, name])));
    }
    let failed = Cell::or_unknown(import.failed, Cell::count).from(&["import", "failed"]);
    figures.push(("errors", "failed requests", failed));
    figures.push(("lag", "lag of the generator p99", Cell::Unknown));
    figures
}

/// Figures without a limit, each with the name of the limit that would judge it.
fn figures(record: &RunRecord) -> Vec<(&'static str, &'static str, Cell)> {
    if let Some(import) = record.job_results.import() {
        return imported(record, import);
    }
    let mut figures = Vec::new();
    if record.ledger.scheduled == 0 {
        return figures;
    }
    figures.extend(rates(record));
    figures.extend(times(record));
    let failed = record.ledger.failed.total();
    let counted = Cell::count(failed);
    let is_in_record = record.latency_ms.failed.count == failed;
    let counted =
        if is_in_record { counted.from(&["latency_ms", "failed", "count"]) } else { counted };
    figures.push(("errors", "failed requests", counted));
    let lag = &record.generator.lag_ms;
    if lag.count >= samples_needed("p99") {
        let cell = Cell::ms(lag.p99).from(&["generator", "lag_ms", "p99"]);
        figures.push(("lag", "lag of the generator p99", cell));
    }
    if record.generator.threads > 0 {
        let busy =
            Cell::share(record.generator.busiest_thread).from(&["generator", "busiest_thread"]);
        figures.push(("busy", "busiest thread of the generator", busy));
    }
    figures
}
