//! The part of the page that shows an import, and its result in a few words.

use crate::unknown::{self, has_times};
use plimsoll_core::histogram::LatencySummary;
use plimsoll_core::outcome::Failure;
use plimsoll_record::RunRecord;
use plimsoll_record::fbench::Percentile;
use plimsoll_record::import::ImportResult;
use plimsoll_report::forms::Below;
use plimsoll_report::number::{bytes, count, counted, millis, percent, significant, time};
use plimsoll_report::page::{Column, Page, Tone};
use plimsoll_report::plain::{clip, printable};
use plimsoll_report::source;

/// Longest name of a class on the page, characters.
const NAME_CHARS_MAX: usize = 32;
/// Most classes on the page, those with the most requests; the record holds more.
const HEAVIEST: usize = 8;
/// The same on a verbose page.
const CLASSES_MAX: usize = 200;
/// Most percentiles beside those of the table.
const PERCENTILES_MAX: usize = 30;
/// Most kinds of failures on the page.
const FAILURES_MAX: usize = 8;
const UNKNOWN: &str = "unknown";

/// Shows an import in the order of the page of a run; what the source does not give stands together at the end.
pub fn page(page: &mut Page<'_>, record: &RunRecord) -> Option<Below> {
    let import = record.job_results.import()?;
    headline(page, record, import);
    failures(page, record, import);
    latency(page, record, import);
    classes(page, record, import);
    percentiles(page, import);
    if page.is_verbose() {
        rates(page, record);
        if !is_told_first(record, import) {
            ledger(page, record, import);
        }
        traffic(page, record);
    }
    settings(page, import);
    for (index, text) in unknown::all(record, import).iter().enumerate() {
        page.entry(if index == 0 { "Unknown" } else { "" }, text, Tone::Plain);
    }
    Some(Below::Ending)
}

/// The result in a few words: `491 ok/s, service p99 40.4 ms`.
pub fn headline_words(record: &RunRecord) -> Option<String> {
    let import = record.job_results.import()?;
    let mut parts = Vec::new();
    parts.extend(rate_words(record, "/s"));
    let (kind, points) = points(record, import);
    if let Some((name, ms)) = points.last() {
        parts.push(format!("{kind} {name} {}", shown_time(import, *ms)));
    }
    if parts.is_empty() {
        return Some(format!("figures of {}", import.tool));
    }
    Some(parts.join(", "))
}

fn rate_words(record: &RunRecord, unit: &str) -> Option<String> {
    let rate = &record.rate;
    match (record.is_known("rate.ok_per_s"), record.is_known("rate.achieved_per_s")) {
        (true, _) => Some(format!("{} ok{unit}", significant(rate.ok_per_s))),
        (false, true) => Some(format!("{} ended{unit}", significant(rate.achieved_per_s))),
        (false, false) => None,
    }
}

/// The kind of the times, and those of p50, p95 and p99 that are known; else mean and maximum.
fn points(record: &RunRecord, import: &ImportResult) -> (&'static str, Vec<(&'static str, f64)>) {
    let response = import.times.iter().any(|kind| kind == "response");
    let (kind, times) = match response {
        true => ("response", &record.latency_ms.response),
        false => ("service", &record.latency_ms.service),
    };
    let known = |name: &str, value: f64| {
        let path = format!("latency_ms.{kind}.{name}");
        (record.is_known(&path) && value.is_finite()).then_some(value)
    };
    if times.count == 0 && record.is_known(&format!("latency_ms.{kind}.count")) {
        return (kind, Vec::new());
    }
    let of = |all: &[(&'static str, f64)]| -> Vec<(&'static str, f64)> {
        all.iter().filter(|(name, value)| known(name, *value).is_some()).copied().collect()
    };
    let percentiles = of(&[("p50", times.p50), ("p95", times.p95), ("p99", times.p99)]);
    if percentiles.is_empty() {
        return (kind, of(&[("mean", times.mean), ("max", times.max)]));
    }
    (kind, percentiles)
}

/// The place of a point's column in the order in which columns leave a narrow page; 0 stays.
fn leaves(point: &str) -> u8 {
    match point {
        "min" => 1,
        "p90" => 2,
        "mean" => 3,
        "p99.9" => 4,
        _ => 0,
    }
}

/// Rate and failures in one line, as of a run. Without a rate: the number of requests and their times.
fn headline(page: &mut Page<'_>, record: &RunRecord, import: &ImportResult) {
    let failed = import.failed.unwrap_or(0);
    let mut text = match rate_words(record, "/s") {
        Some(_) if record.is_known("rate.ok_per_s") && import.failed == Some(0) => {
            format!("{} requests/s", significant(record.rate.ok_per_s))
        }
        Some(rate) => rate,
        None => without_rate(record, import),
    };
    if failed > 0 {
        text += &format!(", {} failed", share_failed(record, failed));
    }
    page.headline(&text, if failed > 0 { Tone::Bad } else { Tone::Strong });
}

fn without_rate(record: &RunRecord, import: &ImportResult) -> String {
    let (kind, points) = points(record, import);
    let times = points.iter().map(|(name, ms)| format!("{name} {}", shown_time(import, *ms)));
    let times: Vec<String> = times.collect();
    let requests = record.known("ledger.sent", record.ledger.sent);
    let mut parts: Vec<String> =
        requests.map(|sent| counted(sent, "request")).into_iter().collect();
    parts.push("unknown rate".to_owned());
    if !times.is_empty() {
        parts.push(format!("{kind} {}", times.join("   ")));
    }
    parts.join(", ")
}

fn share_failed(record: &RunRecord, failed: u64) -> String {
    let sent = record.ledger.sent;
    match record.is_known("ledger.sent") && sent > 0 {
        true => percent(failed as f64 / sent as f64),
        false => count(failed),
    }
}

/// A time with its unit; 0 is shown as below the smallest time that the source distinguishes.
fn shown_time(import: &ImportResult, ms: f64) -> String {
    match source::below(import).filter(|_| ms == 0.0) {
        Some(below) => format!("{below} ms"),
        None => time(ms),
    }
}

/// The same in milliseconds, without the unit.
fn shown_ms(import: &ImportResult, ms: f64) -> String {
    source::below(import).filter(|_| ms == 0.0).unwrap_or_else(|| millis(ms))
}

const POINTS: [(&str, &str); 8] = [
    ("min", "min"),
    ("mean", "mean"),
    ("p50", "p50"),
    ("p90", "p90"),
    ("p95", "p95"),
    ("p99", "p99"),
    ("p99.9", "p99_9"),
    ("max", "max"),
];

fn point(times: &LatencySummary, field: &str) -> f64 {
    match field {
        "min" => times.min,
        "mean" => times.mean,
        "p50" => times.p50,
        "p90" => times.p90,
        "p95" => times.p95,
        "p99" => times.p99,
        "p99_9" => times.p99_9,
        _ => times.max,
    }
}

/// A table of the times that the source has; a column that it has for none of them is left out.
fn latency(page: &mut Page<'_>, record: &RunRecord, import: &ImportResult) {
    let times = &record.latency_ms;
    let all =
        [("response", &times.response), ("service", &times.service), ("failed", &times.failed)];
    let rows: Vec<_> = all.into_iter().filter(|(kind, _)| has_times(record, kind)).collect();
    if rows.is_empty() {
        return;
    }
    let is_known = |kind: &str, field: &str| record.is_known(&format!("latency_ms.{kind}.{field}"));
    let shown: Vec<_> = POINTS
        .into_iter()
        .filter(|(_, field)| rows.iter().any(|(kind, _)| is_known(kind, field)))
        .collect();
    let has_count = rows.iter().any(|(kind, _)| is_known(kind, "count"));
    let mut columns = vec![Column::text("Latency, ms")];
    columns.extend(has_count.then_some(Column::number("count", 0)));
    columns.extend(shown.iter().map(|(name, _)| Column::number(name, leaves(name))));
    let cell = |kind: &str, field: &str, text: String| match is_known(kind, field) {
        true => text,
        false => UNKNOWN.to_owned(),
    };
    let line = |(kind, times): &(&str, &LatencySummary)| {
        let mut cells = vec![format!("  {kind}")];
        cells.extend(has_count.then(|| cell(kind, "count", count(times.count))));
        let point =
            |(_, field): &(&str, &str)| cell(kind, field, shown_ms(import, point(times, field)));
        cells.extend(shown.iter().map(point));
        (cells, if *kind == "failed" { Tone::Bad } else { Tone::Plain })
    };
    page.table(&columns, &rows.iter().map(line).collect::<Vec<_>>());
    page.note(&source::times(import));
    page.note(&format!("exact to: {}", import.exact_to));
    page.blank();
}

/// Percentiles that the source printed and the table does not have.
fn percentiles(page: &mut Page<'_>, import: &ImportResult) {
    let in_table = [50.0, 90.0, 95.0, 99.0, 99.9, 100.0];
    let is_other = |p: f64| !in_table.iter().any(|known| (known - p).abs() < 1e-9);
    let others: Vec<_> = import.percentiles.iter().filter(|one| is_other(one.percentile)).collect();
    if others.is_empty() {
        return;
    }
    let text = if others.len() > PERCENTILES_MAX {
        format!("{} more percentiles are in the record", others.len())
    } else {
        let one = |one: &&Percentile| format!("p{} {}", one.percentile, shown_time(import, one.ms));
        others.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    page.entry("Also", &text, Tone::Plain);
}

/// One line a class, the one with the most requests first.
fn classes(page: &mut Page<'_>, record: &RunRecord, import: &ImportResult) {
    if record.classes.len() < 2 {
        return;
    }
    let kind =
        if record.is_known("classes.*.latency_ms.response") { "response" } else { "service" };
    let known = |field: &str| record.is_known(&format!("classes.*.{field}"));
    let point_known = |field: &str| known(&format!("latency_ms.{kind}.{field}"));
    let shown: Vec<_> = POINTS.into_iter().filter(|(_, field)| point_known(field)).collect();
    let counts = known("sent") && known("ok");
    let mut columns = vec![Column::text("Classes")];
    if counts {
        columns.extend(["sent", "ok", "failed"].map(|name| Column::number(name, 0)));
    } else if point_known("count") {
        columns.push(Column::number("count", 0));
    }
    columns.extend(shown.iter().map(|(name, _)| {
        let goes = match *name {
            "p95" => 5,
            "max" => 6,
            _ => leaves(name),
        };
        Column::number(name, goes)
    }));
    // The counts and two times stay beside the name on the narrowest page.
    let name_chars = page.width().saturating_sub(38).clamp(16, NAME_CHARS_MAX);
    let mut rows: Vec<_> = record
        .classes
        .iter()
        .map(|(name, class)| {
            let times = if kind == "response" {
                &class.latency_ms.response
            } else {
                &class.latency_ms.service
            };
            let mut cells = vec![format!("  {}", clip(&printable(name), name_chars))];
            let failed = class.sent.saturating_sub(class.ok);
            if counts {
                cells.extend([class.sent, class.ok, failed].map(count));
            } else if point_known("count") {
                cells.push(count(times.count));
            }
            cells.extend(shown.iter().map(|(_, field)| match times.count {
                0 if point_known("count") => "-".to_owned(),
                _ => shown_ms(import, point(times, field)),
            }));
            let weight = if counts { class.sent } else { times.count };
            (weight, (cells, if counts && failed > 0 { Tone::Bad } else { Tone::Plain }))
        })
        .collect();
    rows.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    let most = if page.is_verbose() { CLASSES_MAX } else { HEAVIEST };
    // A single one more is as long as the line that would stand for it.
    let shown = if rows.len() <= most + 1 { rows.len() } else { most };
    let left_out = rows.len() - shown;
    rows.truncate(shown);
    let rows: Vec<_> = rows.into_iter().map(|(_, row)| row).collect();
    page.table(&columns, &rows);
    page.note(&format!("{kind} time, ms"));
    if left_out > 0 {
        page.note(&format!("{left_out} more classes are in the CSV and in the record"));
    }
    page.blank();
}

/// Offered and achieved rate, if they say something beside the rate of the headline.
fn rates(page: &mut Page<'_>, record: &RunRecord) {
    let rates = &record.rate;
    let one = |path: &str, per_s: f64| record.known(path, per_s).map(significant);
    let ok = one("rate.ok_per_s", rates.ok_per_s);
    let offered = one("rate.offered_per_s", rates.offered_per_s);
    let achieved = one("rate.achieved_per_s", rates.achieved_per_s);
    let mut parts = Vec::new();
    parts
        .extend(offered.filter(|rate| Some(rate) != ok.as_ref()).map(|r| format!("{r}/s offered")));
    // Without the rate of the successful ones, the headline has this one.
    let achieved = achieved.filter(|rate| ok.as_ref().is_some_and(|ok| rate != ok));
    parts.extend(achieved.map(|rate| format!("{rate}/s finished, successful or not")));
    if !parts.is_empty() {
        page.entry("Rate", &parts.join(", "), Tone::Plain);
    }
}

/// True if the ledger says something to know before the figures.
fn is_told_first(record: &RunRecord, import: &ImportResult) -> bool {
    let ledger = &record.ledger;
    import.failed.is_some_and(|failed| failed > 0)
        || ledger.unsent.stopped > 0
        || ledger.unfinished > 0
}

/// The ledger if not every request succeeded, with the failures in the words of the source and the replies by status.
fn failures(page: &mut Page<'_>, record: &RunRecord, import: &ImportResult) {
    if !is_told_first(record, import) {
        return;
    }
    let tone = if import.failed.is_some_and(|failed| failed > 0) { Tone::Bad } else { Tone::Warn };
    for line in ledger_lines(record, import) {
        page.alert("Ledger", &line, tone);
    }
    let is_sum = |words: &str, many: u64| words == "failed" && import.failed == Some(many);
    let mut all: Vec<(&String, &u64)> =
        import.failures.iter().filter(|(words, many)| !is_sum(words, **many)).collect();
    all.sort_by_key(|(_, many)| std::cmp::Reverse(**many));
    for (words, many) in all.iter().take(FAILURES_MAX) {
        page.alert("Failures", &format!("{}: {}", printable(words), count(**many)), Tone::Bad);
    }
    if all.len() > FAILURES_MAX {
        let text = format!("{} more kinds are in the record", all.len() - FAILURES_MAX);
        page.alert("Failures", &text, Tone::Plain);
    }
    // The words of most sources are those statuses.
    let is_told = import.failures.keys().any(|words| words.starts_with("status "));
    if let Some(text) = statuses(record).filter(|_| !is_told || page.is_verbose()) {
        page.alert("Status", &text, Tone::Plain);
    }
}

/// The ledger and the replies by status of an import without a failure.
fn ledger(page: &mut Page<'_>, record: &RunRecord, import: &ImportResult) {
    for (index, line) in ledger_lines(record, import).iter().enumerate() {
        page.entry(if index == 0 { "Ledger" } else { "" }, line, Tone::Plain);
    }
    if let Some(text) = statuses(record) {
        page.entry("Status", &text, Tone::Plain);
    }
}

/// The sums of the ledger, as far as all of their parts are known; otherwise the known counts.
fn ledger_lines(record: &RunRecord, import: &ImportResult) -> Vec<String> {
    let ledger = &record.ledger;
    let known = |path: &str, number: u64| record.known(path, number);
    let due = [
        ("scheduled", known("ledger.scheduled", ledger.scheduled)),
        ("unsent", known("ledger.unsent", ledger.unsent.stopped)),
    ];
    let due: Vec<String> =
        due.iter().filter_map(|(name, n)| Some(format!("{} {name}", count((*n)?)))).collect();
    let parts = [
        ("ok", known("ledger.ok", ledger.ok)),
        ("failed", import.failed),
        ("unfinished", known("ledger.unfinished", ledger.unfinished)),
    ];
    let known_parts = parts.iter().filter_map(|(name, number)| Some((*name, (*number)?)));
    let known_parts: Vec<(&str, u64)> = known_parts.collect();
    let sum: u64 = known_parts.iter().map(|(_, number)| number).sum();
    let parts: Vec<String> = known_parts
        .iter()
        .map(|(name, number)| match *name {
            "failed" if import.failures.is_empty() => {
                format!("{} failed{}", count(*number), kinds(record))
            }
            name => format!("{} {name}", count(*number)),
        })
        .collect();
    let sent = known("ledger.sent", ledger.sent).map(|n| format!("{} sent", count(n)));
    let account = match sent {
        Some(sent) if sum == ledger.sent && !parts.is_empty() => {
            format!("{sent} = {}", parts.join(" + "))
        }
        sent => sent.into_iter().chain(parts).collect::<Vec<_>>().join(", "),
    };
    [due.join(", "), account].into_iter().filter(|line| !line.is_empty()).collect()
}

/// ` (timeout 20, reset 10)`, if the kinds of the failures are known and there are some.
fn kinds(record: &RunRecord) -> String {
    let failed = &record.ledger.failed;
    if !record.is_known("ledger.failed") || failed.total() == 0 {
        return String::new();
    }
    let some = Failure::ALL.into_iter().filter(|kind| failed.get(*kind) > 0);
    let all: Vec<String> =
        some.map(|kind| format!("{} {}", kind.name(), count(failed.get(kind)))).collect();
    format!(" ({})", all.join(", "))
}

fn statuses(record: &RunRecord) -> Option<String> {
    let is_told = record.is_known("statuses") && !record.statuses.is_empty();
    let one = |(status, many): (&u16, &u64)| format!("{status}: {}", count(*many));
    is_told.then(|| record.statuses.iter().map(one).collect::<Vec<_>>().join(", "))
}

fn traffic(page: &mut Page<'_>, record: &RunRecord) {
    let one = |path: &str, value: u64, what: &str| {
        record.known(path, value).map(|value| format!("{} {what}", bytes(value as f64)))
    };
    let all = [
        one("bytes.sent", record.bytes.sent, "sent"),
        one("bytes.received", record.bytes.received, "received"),
    ];
    let all: Vec<String> = all.into_iter().flatten().collect();
    if !all.is_empty() {
        page.entry("Traffic", &all.join(", "), Tone::Plain);
    }
}

fn settings(page: &mut Page<'_>, import: &ImportResult) {
    let all: Vec<String> = import
        .settings
        .iter()
        .map(|(name, value)| format!("{}: {}", printable(name), printable(value)))
        .collect();
    if !all.is_empty() {
        page.entry("Settings", &all.join(", "), Tone::Plain);
    }
}
