//! The page of a feed.

use crate::sheet;
use plimsoll_core::histogram::LatencySummary;
use plimsoll_record::RunRecord;
use plimsoll_record::feed::{CodeTimes, FeedResult, RefusedOperation};
use plimsoll_report::forms::{Below, Forms};
use plimsoll_report::number::{bytes, count, counted, millis, significant};
use plimsoll_report::page::{Column, Page, Tone};
use plimsoll_report::plain::printable;

/// The forms in which a feed is shown.
pub const FORMS: Forms = Forms {
    page: sections,
    headline,
    figures: crate::figures::figures,
    sheet: sheet::sheet,
    ..Forms::LOAD
};

/// Refused operations on the page; the files have all.
const EXAMPLES_MAX: usize = 6;

/// The feed of a record. One beside queries, or one whose line was sought, is a part of another job's page.
fn alone(record: &RunRecord) -> Option<&FeedResult> {
    let results = &record.job_results;
    let is_part = results.mix().is_some() || results.seek().is_some();
    results.feed().filter(|_| !is_part)
}

fn sections(page: &mut Page<'_>, record: &RunRecord) -> Option<Below> {
    let feed = alone(record)?;
    page.headline(&rates(feed), Tone::Strong);
    alerts(page, feed);
    operations(page, feed);
    Some(Below::Books)
}

/// Returns the number of accepted operations.
fn headline(record: &RunRecord) -> Option<String> {
    Some(format!("{} accepted", counted(alone(record)?.accepted, "operation")))
}

/// Returns how much was accepted, and how fast.
#[must_use]
pub fn rates(feed: &FeedResult) -> String {
    let all = if feed.complete { "all " } else { "" };
    format!(
        "{all}{} accepted, {}/s, {} MB/s",
        counted(feed.accepted, "operation"),
        significant(feed.accepted_per_s),
        significant(per_second(feed.body_bytes as f64 / 1e6, feed.seconds))
    )
}

/// Says what was not accepted, and why.
pub fn alerts(page: &mut Page<'_>, feed: &FeedResult) {
    if !feed.complete {
        page.alert("Accepted", &missing(feed), Tone::Bad);
    }
    examples(page, &feed.examples);
    if let Some(place) = &feed.unread {
        let text = format!(
            "{} from line {} on; to feed the rest: --skip {}",
            printable(&place.file),
            count(place.line),
            place.skip
        );
        page.alert("Not read", &text, if feed.complete { Tone::Plain } else { Tone::Bad });
    }
    if let [operations, reasons] = &feed.failed_files[..]
        && !feed.complete
    {
        let text = format!("{}; reasons: {}", printable(operations), printable(reasons));
        page.alert("Failed", &text, Tone::Plain);
    }
}

/// Writes how long the answers took, and what was sent again or lost.
pub fn operations(page: &mut Page<'_>, feed: &FeedResult) {
    answers(page, feed);
    let retries = sum(&feed.retries);
    if retries > 0 {
        let text = format!("{} repetitions: {}", count(retries), list(&feed.retries));
        page.entry("Retries", &text, Tone::Warn);
    }
    if !feed.lost.is_empty() {
        let text = format!("{} requests without an answer: {}", sum(&feed.lost), list(&feed.lost));
        page.entry("Lost", &text, Tone::Warn);
    }
    if page.is_verbose() {
        details(page, feed);
    }
    page.blank();
}

/// Writes what only few ask for: the window, the requests, what was left out on purpose.
fn details(page: &mut Page<'_>, feed: &FeedResult) {
    page.entry("In flight", &inflight(feed), Tone::Plain);
    let text = format!(
        "{} requests with {} of bodies in {} s",
        count(feed.requests),
        bytes(feed.body_bytes as f64),
        significant(feed.seconds)
    );
    let text = match feed.cpu_us_per_operation {
        // Where a query load ran beside it, nobody knows.
        0.0 => text,
        us => format!("{text}; {} us of CPU per operation", significant(us)),
    };
    page.entry("Sent", &text, Tone::Plain);
    if feed.skipped > 0 {
        let text = format!("{} operations at the beginning of the input", count(feed.skipped));
        page.entry("Skipped", &text, Tone::Plain);
    }
    if feed.left > 0 {
        let text = format!("{} operations that were read but not sent", count(feed.left));
        page.entry("Left out", &text, Tone::Plain);
    }
}

fn per_second(count: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { count / seconds } else { 0.0 }
}

fn missing(feed: &FeedResult) -> String {
    if feed.operations == 0 {
        return "NO: nothing was fed".to_owned();
    }
    let mut text = format!("NO: {} of {} operations", count(feed.accepted), count(feed.operations));
    let parts = [
        (feed.refused, "refused"),
        (feed.ignored_fields, "written without fields that the target ignored"),
        (feed.ignored_operations, "ignored by the target"),
        (feed.malformed, "malformed"),
        (feed.unsettled, "not settled"),
    ];
    let some: Vec<_> = parts
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| format!("{} {what}", count(*n)))
        .collect();
    if !some.is_empty() {
        text += &format!("; {}", some.join(", "));
    }
    text
}

fn examples(page: &mut Page<'_>, examples: &[RefusedOperation]) {
    for refused in examples.iter().take(EXAMPLES_MAX) {
        let id = match refused.id.as_str() {
            "" => String::new(),
            id => format!(" {}", printable(id)),
        };
        let text = format!(
            "{}:{}{id}: {}",
            printable(&refused.file),
            refused.line,
            printable(&refused.reason)
        );
        page.alert("Refused", &text, Tone::Bad);
    }
}

fn inflight(feed: &FeedResult) -> String {
    let own = &feed.inflight;
    let mut text = match own.fixed {
        true => format!("at most {} (fixed), {} reached", count(own.limit.into()), own.most),
        false => format!(
            "at most {}; window {} at the end (limit {})",
            count(own.most.into()),
            count(own.last.into()),
            count(own.limit.into())
        ),
    };
    let s = if feed.connections == 1 { "" } else { "s" };
    text += &format!("; HTTP/{} on {} connection{s}", feed.http, count(feed.connections.into()));
    if own.shrinks > 0 {
        text += &format!("; reduced {} because the target rejected operations", times(own.shrinks));
    }
    if own.pauses > 0 {
        text += &format!("; paused {} because nothing was accepted", times(own.pauses));
    }
    text
}

fn sum(counts: &std::collections::BTreeMap<String, u64>) -> u64 {
    counts.values().sum()
}

/// `429 20, reset 3`
fn list(counts: &std::collections::BTreeMap<String, u64>) -> String {
    let parts: Vec<_> =
        counts.iter().map(|(why, n)| format!("{} {}", printable(why), count(*n))).collect();
    parts.join(", ")
}

fn times(number: u64) -> String {
    if number == 1 { "once".to_owned() } else { format!("{} times", count(number)) }
}

/// Every status on a line of its own: a quick refusal says nothing about the writing of documents.
fn answers(page: &mut Page<'_>, feed: &FeedResult) {
    if feed.codes.is_empty() {
        return;
    }
    let columns = [
        Column::text("Answers, ms"),
        Column::number("count", 0),
        Column::number("p50", 0),
        Column::number("p95", 0),
        Column::number("p99", 0),
        Column::number("max", 2),
        Column::number("settled", 1),
        Column::number("whole p50", 0),
        Column::number("p95", 0),
        Column::number("p99", 0),
        Column::number("max", 3),
    ];
    let row = |(status, code): (&String, &CodeTimes)| {
        let times = |times: &LatencySummary| {
            [times.p50, times.p95, times.p99, times.max].map(|ms| match times.count {
                0 => "-".to_owned(),
                _ => millis(ms),
            })
        };
        let mut cells = vec![format!("  {}", printable(status)), count(code.count)];
        cells.extend(times(&code.server));
        cells.push(count(code.whole.count));
        cells.extend(times(&code.whole));
        let tone = if status.starts_with('2') { Tone::Plain } else { Tone::Bad };
        (cells, tone)
    };
    let rows: Vec<_> = feed.codes.iter().map(row).collect();
    page.table(&columns, &rows);
    page.note(
        "p50 to max: sending to last byte of every answer; whole: intended start of the operation to its last answer",
    );
    page.blank();
}
