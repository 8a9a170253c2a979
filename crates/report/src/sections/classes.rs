//! Classes, phases and the slowest requests.

use crate::number::{count, counted};
use crate::plain::heart_of_request;
use crate::sheet::{Cell, Part, Section, Table, Tone};
use crate::source;
use crate::text::samples_needed;
use crate::traces;
use plimsoll_core::histogram::LatencySummary;
use plimsoll_record::{ClassRecord, RunRecord, SlowRequest};

/// Most classes on a page; the CSV has all of them.
pub const CLASSES_MAX: usize = 200;
/// Most phases on a page.
const PHASES_MAX: usize = 200;

/// Percentiles of times in a table, `-` where there are fewer samples than `needed` for it; `at` is their place in the record.
fn points(times: &LatencySummary, at: &[&str], needed: impl Fn(&str) -> u64) -> Vec<Cell> {
    let points = [("p50", times.p50), ("p95", times.p95), ("p99", times.p99), ("max", times.max)];
    let cell = |(name, value): (&str, f64)| match times.count {
        few if few < needed(name) => Cell::text("-"),
        _ => Cell::ms(value).from(&[at, &[name]].concat()),
    };
    points.into_iter().map(cell).collect()
}

/// Time that the target spent on a class, ms.
fn spent(class: &ClassRecord) -> f64 {
    class.latency_ms.service.mean * class.latency_ms.service.count as f64
}

/// The classes that take most of the target's time, and the rest of them in one row.
pub fn classes(record: &RunRecord) -> Option<Section> {
    if record.classes.len() < 2 {
        return None;
    }
    let hits_known = record.classes.values().any(|class| class.hits_known > 0);
    let known = Known::of(record);
    let mut heads = vec![
        "class",
        "#sent",
        "#ok",
        "#failed",
        "#ok/s",
        "#share of service time",
        "#p50",
        "#p95",
        "#p99",
        "#max",
    ];
    heads.extend(hits_known.then_some("#without hits"));
    let mut table = Table::new(&heads).sortable();
    let whole: f64 = record.classes.values().map(spent).sum();
    let mut classes: Vec<_> = record.classes.iter().collect();
    let weight = |class: &ClassRecord| if known.time { spent(class) } else { class.sent as f64 };
    classes.sort_by(|a, b| weight(b.1).total_cmp(&weight(a.1)).then_with(|| a.0.cmp(b.0)));
    let (shown, rest) = classes.split_at(classes.len().min(CLASSES_MAX));
    for (name, class) in shown {
        let at = ["classes", name.as_str()];
        let place = |field: &'static str| [&at[..], &[field]].concat();
        let failed = class.failed.total();
        let mut cells = vec![
            Cell::text((*name).clone()),
            Cell::count(class.sent).from(&place("sent")),
            Cell::count(class.ok).from(&place("ok")),
            Cell::or_unknown(known.failed.then_some(failed), Cell::count),
            Cell::per_s(class.ok_per_s).from(&place("ok_per_s")),
            known.share(spent(class), whole),
        ];
        let times =
            if known.only_service { &class.latency_ms.service } else { &class.latency_ms.response };
        let kind = if known.only_service { "service" } else { "response" };
        cells.extend(points(times, &[at[0], at[1], "latency_ms", kind], |name| {
            known.samples_needed(name)
        }));
        cells.extend(hits_known.then(|| match class.hits_known {
            0 => Cell::Unknown,
            _ => Cell::count(class.zero_hits).from(&place("zero_hits")),
        }));
        table.row(if failed > 0 { Tone::Bad } else { Tone::Plain }, cells);
    }
    if !rest.is_empty() {
        table.row(Tone::Plain, sum_of(rest, whole, hits_known, &known));
    }
    let mut note = match record.job_results.import() {
        Some(import) if known.only_service => {
            format!("p50 to max: service time. {}", source::response(import))
        }
        Some(_) => "p50 to max: response time.".to_owned(),
        None => "The classes with the largest share of the target's time first. p50 to max: response time of successful \
                 requests."
            .to_owned(),
    };
    if !rest.is_empty() {
        note += &format!(
            " {} of {} classes are shown, the rest are summed in the last row; the CSV has all of them.",
            CLASSES_MAX,
            count(record.classes.len() as u64)
        );
    }
    Some(Section::new("classes", "Classes", &note).with(Part::Table(table)))
}

/// One row for many classes. Their percentiles are not known without their histograms.
fn sum_of(
    rest: &[(&String, &ClassRecord)],
    whole: f64,
    hits_known: bool,
    known: &Known<'_>,
) -> Vec<Cell> {
    let sum = |of: fn(&ClassRecord) -> u64| rest.iter().map(|(_, class)| of(class)).sum::<u64>();
    let time: f64 = rest.iter().map(|(_, class)| spent(class)).sum();
    let mut cells = vec![
        Cell::text(format!("{} together", counted_classes(rest.len()))),
        known.count_of("sent", sum(|class| class.sent)),
        known.count_of("ok", sum(|class| class.ok)),
        Cell::or_unknown(known.failed.then(|| sum(|class| class.failed.total())), Cell::count),
        Cell::per_s(rest.iter().map(|(_, class)| class.ok_per_s).sum()),
        known.share(time, whole),
    ];
    cells.extend(vec![Cell::Unknown; 4]);
    cells.extend(hits_known.then(|| Cell::count(sum(|class| class.zero_hits))));
    cells
}

/// Figures of the classes that are known; all of them, unless another tool measured.
struct Known<'a> {
    record: &'a RunRecord,
    /// True if only the service time is known.
    only_service: bool,
    /// True if the number of times is.
    count: bool,
    /// True if the number of failures is.
    failed: bool,
    /// True if the time that the target spent is.
    time: bool,
}

impl<'a> Known<'a> {
    fn of(record: &'a RunRecord) -> Self {
        let all = |fields: &[&str]| {
            fields.iter().all(|field| record.is_known(&format!("classes.*.{field}")))
        };
        let only_service = !all(&["latency_ms.response"]);
        let kind = if only_service { "service" } else { "response" };
        Self {
            record,
            only_service,
            count: all(&[&format!("latency_ms.{kind}.count")]),
            // Their number can be known without their kinds.
            failed: all(&["failed"]) || all(&["sent", "ok"]),
            time: all(&["latency_ms.service.mean", "latency_ms.service.count"]),
        }
    }

    /// Samples from which a percentile is shown. Another tool has printed its percentiles, from however few.
    fn samples_needed(&self, percentile: &str) -> u64 {
        match (self.record.job_results.import(), self.count) {
            (None, _) => samples_needed(percentile),
            (Some(_), true) => 1,
            (Some(_), false) => 0,
        }
    }

    fn share(&self, part: f64, whole: f64) -> Cell {
        let share = if whole > 0.0 { part / whole } else { 0.0 };
        Cell::or_unknown(self.time.then_some(share), Cell::share)
    }

    fn count_of(&self, field: &str, count: u64) -> Cell {
        Cell::or_unknown(self.record.known(&format!("classes.*.{field}"), count), Cell::count)
    }
}

fn counted_classes(number: usize) -> String {
    match number {
        1 => "1 other class".to_owned(),
        number => format!("{} other classes", count(number as u64)),
    }
}

/// One row a phase, in the order of time.
pub fn phases(record: &RunRecord) -> Option<Section> {
    if record.phases.len() < 2 {
        return None;
    }
    let heads = [
        "phase", "#from", "#length", "#offered", "#ok/s", "#failed", "#p50", "#p95", "#p99", "#max",
    ];
    let mut table = Table::new(&heads).sortable();
    for (index, phase) in record.phases.iter().enumerate().take(PHASES_MAX) {
        let index = index.to_string();
        let at = ["phases", index.as_str()];
        let place = |fields: &[&'static str]| [&at[..], fields].concat();
        let counted = if phase.measured { "" } else { " (not counted)" };
        let failed = phase.ledger.failed.total();
        let mut cells = vec![
            Cell::text(format!("{}{counted}", phase.name)),
            Cell::seconds(phase.from_s).from(&place(&["from_s"])),
            Cell::seconds(phase.duration_s).from(&place(&["duration_s"])),
            Cell::per_s(phase.rate.offered_per_s).from(&place(&["rate", "offered_per_s"])),
            Cell::per_s(phase.rate.ok_per_s).from(&place(&["rate", "ok_per_s"])),
            Cell::count(failed),
        ];
        cells.extend(points(
            &phase.latency_ms.response,
            &place(&["latency_ms", "response"]),
            samples_needed,
        ));
        table.row(if failed > 0 { Tone::Bad } else { Tone::Plain }, cells);
    }
    let mut note =
        "From and length in seconds since the start of the run. p50 to max: response time."
            .to_owned();
    if record.phases.len() > PHASES_MAX {
        note += &format!(" The first {PHASES_MAX} of {} phases.", record.phases.len());
    }
    Some(Section::new("phases", "Phases", &note).with(Part::Table(table)))
}

/// The slowest requests, slowest first.
pub fn slowest(record: &RunRecord) -> Option<Section> {
    if record.slowest.is_empty() {
        return None;
    }
    let is_traced = record.slowest.iter().any(|slow| slow.trace_id.is_some());
    let mut heads = vec!["#response", "#service", "#at", "outcome", "class", "request"];
    heads.extend(is_traced.then_some("trace"));
    let mut table = Table::new(&heads).sortable();
    for (index, slow) in record.slowest.iter().enumerate() {
        let index = index.to_string();
        let place = |field: &'static str| ["slowest", index.as_str(), field];
        let tone = if slow.outcome == "ok" { Tone::Plain } else { Tone::Bad };
        let mut cells = vec![
            Cell::ms(slow.response_ms).from(&place("response_ms")),
            Cell::ms(slow.service_ms).from(&place("service_ms")),
            Cell::seconds(slow.at_s).from(&place("at_s")),
            Cell::text(slow.outcome.clone()),
            Cell::text(slow.class.clone()),
            Cell::text(heart_of_request(&slow.request)),
        ];
        cells.extend(is_traced.then(|| trace(record, slow)));
        table.row(tone, cells);
    }
    let note = format!(
        "The {} of the measured stretch; at: intended start, seconds since its start.",
        counted(record.slowest.len() as u64, "slowest request")
    );
    Some(Section::new("slowest", "Slowest requests", &note).with(Part::Table(table)))
}

/// The trace of a request, with a link if the scenario says where traces are.
fn trace(record: &RunRecord, slow: &SlowRequest) -> Cell {
    let Some(text) = slow.trace_id.clone() else { return Cell::Unknown };
    match traces::link(record, slow) {
        Some(url) => Cell::Link { text, url },
        None => Cell::Text(text),
    }
}
