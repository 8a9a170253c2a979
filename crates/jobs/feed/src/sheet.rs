//! The page that is data of a feed: its window over time, the answers by status, and what was not accepted.

use plimsoll_core::histogram::LatencySummary;
use plimsoll_record::RunRecord;
use plimsoll_record::feed::{FeedMoment, FeedResult, RefusedOperation};
use plimsoll_report::number::{count, counted, significant};
use plimsoll_report::sections::{Decision, put_first};
use plimsoll_report::series::Series;
use plimsoll_report::sheet::{Cell, Field, Listed, Part, Plot, Section, Sheet, Table, Tone, YAxis};

/// Share of the time from which on waiting for the input is a finding.
const MOST: f64 = 0.5;

/// Adds the sections of a feed that is not part of another job's run. Changes nothing for a record without one.
pub(crate) fn sheet(sheet: &mut Sheet, record: &RunRecord, _course: &Series) {
    let results = &record.job_results;
    let is_part = results.mix().is_some() || results.seek().is_some();
    let Some(feed) = results.feed().filter(|_| !is_part) else { return };
    put_first(sheet, &decisions(feed), false);
    add_sections(sheet, feed, "decide");
}

/// Adds the sections of a feed behind the one with the id `after`.
pub fn add_sections(sheet: &mut Sheet, feed: &FeedResult, after: &str) {
    sheet.put_after(after, result(feed));
    let mut after = "feed";
    for (id, section) in
        [("window", window(feed)), ("statuses", statuses(feed)), ("not-accepted", refused(feed))]
    {
        if let Some(section) = section {
            sheet.put_after(after, section);
            after = id;
        }
    }
    if let Some(text) = finding(feed) {
        plimsoll_job::line::say(sheet, text);
    }
}

/// The rows of a feed to decide from.
#[must_use]
pub fn decisions(feed: &FeedResult) -> Vec<Decision> {
    let own = |cell: Cell, field: &'static str| cell.from(&["feed", field]);
    vec![
        Decision::figure("operations accepted", own(Cell::count(feed.accepted), "accepted"))
            .against(&format!("all of {}", count(feed.operations)), feed.complete),
        Decision::figure("accepted/s", own(Cell::per_s(feed.accepted_per_s), "accepted_per_s")),
        Decision::figure("refused", own(Cell::count(feed.refused), "refused")),
        Decision::figure("not settled", own(Cell::count(feed.unsettled), "unsettled")),
        Decision::figure(
            "window at the end",
            Cell::count(feed.inflight.last.into()).from(&["feed", "inflight", "last"]),
        ),
        Decision::figure(
            "time in which the input was the limit",
            own(Cell::seconds(feed.input_limited_s), "input_limited_s"),
        ),
        Decision::figure("length", own(Cell::seconds(feed.seconds), "seconds")),
    ]
}

fn result(feed: &FeedResult) -> Section {
    let own = |name: &str, cell: Cell, field: &'static str| {
        (name.to_owned(), cell.from(&["feed", field]))
    };
    let inflight = |name: &str, value: u64, field: &'static str| {
        (name.to_owned(), Cell::count(value).from(&["feed", "inflight", field]))
    };
    let window = &feed.inflight;
    let cpu = match feed.cpu_us_per_operation {
        // Where a query load ran beside it, nobody knows.
        0.0 => Cell::Unknown,
        us => Cell::number(us, format!("{} us", significant(us))),
    };
    let facts = vec![
        own("operations of the input", Cell::count(feed.operations), "operations"),
        own("malformed", Cell::count(feed.malformed), "malformed"),
        own(
            "accepted without fields that the target ignored",
            Cell::count(feed.ignored_fields),
            "ignored_fields",
        ),
        own("ignored by the target", Cell::count(feed.ignored_operations), "ignored_operations"),
        own("read and no longer wanted", Cell::count(feed.left), "left"),
        own("skipped at the start of the input", Cell::count(feed.skipped), "skipped"),
        own("requests", Cell::count(feed.requests), "requests"),
        own("bytes of request bodies", Cell::bytes(feed.body_bytes as f64), "body_bytes"),
        own("bytes of reply bodies", Cell::bytes(feed.reply_bytes as f64), "reply_bytes"),
        ("HTTP".to_owned(), Cell::text(feed.http.clone())),
        own("connections", Cell::count(feed.connections.into()), "connections"),
        inflight("most that might be in flight", window.limit.into(), "limit"),
        inflight("most in flight", window.most.into(), "most"),
        inflight("times that refusals made the window smaller", window.shrinks, "shrinks"),
        inflight("times that everything was rejected", window.pauses, "pauses"),
        own("CPU of this process per operation", cpu, "cpu_us_per_operation"),
    ];
    let said = if feed.complete {
        Part::Text(Tone::Good, "Every operation was accepted.".to_owned())
    } else {
        let why = match &feed.trouble {
            Some(trouble) => format!(": {trouble}"),
            None => String::new(),
        };
        Part::Text(Tone::Bad, format!("NOT every operation was accepted{why}."))
    };
    let fixed = if window.fixed { "fixed by --inflight" } else { "found by measuring" };
    let note = format!(
        "The window is the number of operations that may be in flight, all threads together; it was {fixed}."
    );
    Section::new("feed", "Feed", &note).with(said).with(Part::Facts(facts))
}

/// Window, operations in flight and rates over time.
fn window(feed: &FeedResult) -> Option<Section> {
    let list = Listed { at: &["feed", "over_time"], items: &feed.over_time };
    let until = Field::new("until s", "to_s", |one: &FeedMoment| Cell::seconds(one.to_s));
    let sizes = vec![
        Field::new("window", "window", |one: &FeedMoment| Cell::count(one.window))
            .toned("series-1"),
        Field::new("in flight", "in_flight", |one: &FeedMoment| Cell::count(one.in_flight))
            .toned("series-6"),
    ];
    let caption = "Operations that might be in flight, and that were";
    let sizes = list.plot(("feed-window", caption), &until, vec![YAxis::linear("")], sizes)?;
    let rates = vec![
        Field::new("accepted/s", "accepted_per_s", |one: &FeedMoment| {
            Cell::per_s(one.accepted_per_s)
        })
        .toned("ok"),
        Field::new("refused/s", "refused_per_s", |one: &FeedMoment| Cell::per_s(one.refused_per_s))
            .toned("failed"),
        Field::new("sent again/s", "retried_per_s", |one: &FeedMoment| {
            Cell::per_s(one.retried_per_s)
        })
        .toned("warn"),
    ];
    let caption = "Operations per second: accepted, refused, sent again";
    let rates = list.plot(("feed-rates", caption), &until, vec![YAxis::linear("/s")], rates);
    let note = "Seconds since the feed began. Window and operations in flight are those at the end of a stretch.";
    Some(
        Section::new("window", "Window over time", note)
            .with(Part::Plot(Box::new(sizes)))
            .with_some(rates.map(|plot| Part::Plot(Box::new(plot)))),
    )
}

/// The times of the answers by status, repetitions, and requests without an answer.
fn statuses(feed: &FeedResult) -> Option<Section> {
    if feed.codes.is_empty() && feed.lost.is_empty() && feed.retries.is_empty() {
        return None;
    }
    let heads = [
        "status",
        "#answers",
        "#server p50",
        "#server p99",
        "#server max",
        "#whole p50",
        "#whole p99",
        "#whole max",
    ];
    let mut table = Table::new(&heads).sortable();
    for (status, times) in &feed.codes {
        let mut cells = vec![
            Cell::text(status.clone()),
            Cell::count(times.count).from(&["feed", "codes", status, "count"]),
        ];
        for (of, summary) in [("server", &times.server), ("whole", &times.whole)] {
            cells.extend(points(summary).map(|(field, value)| match summary.count {
                0 => Cell::text("-"),
                _ => Cell::ms(value).from(&["feed", "codes", status, of, field]),
            }));
        }
        let tone = if status.starts_with('2') { Tone::Plain } else { Tone::Warn };
        table.row(tone, cells);
    }
    let mut section = Section::new(
        "statuses",
        "Answers by status",
        "server: from sending to the last byte, every answer. whole: from an operation's turn to the answer that settled it, with \
         waiting for earlier operations on the same document, pauses and repetitions.",
    )
    .with(Part::Table(table));
    for (head, key, reasons, tone) in [
        ("repetitions because of", "retries", &feed.retries, Tone::Warn),
        ("requests without an answer", "lost", &feed.lost, Tone::Bad),
    ] {
        if reasons.is_empty() {
            continue;
        }
        let mut table = Table::new(&[head, "#requests"]).sortable();
        for (why, requests) in reasons {
            let requests = Cell::count(*requests).from(&["feed", key, why]);
            table.row(tone, vec![Cell::text(why.clone()), requests]);
        }
        section = section.with(Part::Table(table));
    }
    Some(section)
}

fn points(times: &LatencySummary) -> [(&'static str, f64); 3] {
    [("p50", times.p50), ("p99", times.p99), ("max", times.max)]
}

/// Some of the operations that were not accepted.
fn refused(feed: &FeedResult) -> Option<Section> {
    if feed.examples.is_empty() && feed.unread.is_none() {
        return None;
    }
    let list = Listed { at: &["feed", "examples"], items: &feed.examples };
    let fields = [
        Field::new("operation", "operation", |one: &RefusedOperation| Cell::count(one.operation)),
        Field::text("place", |one: &RefusedOperation| format!("{}:{}", one.file, one.line)),
        Field::text("document", |one: &RefusedOperation| one.id.clone()),
        Field::new("status", "status", |one: &RefusedOperation| match one.status {
            0 => Cell::text("no answer"),
            status => Cell::number(status.into(), status.to_string()),
        }),
        Field::text("reason", |one: &RefusedOperation| one.reason.clone()),
    ];
    let note = match &feed.failed_files[..] {
        [operations, reasons] => {
            format!("Some of them; all are in {operations}, their reasons in {reasons}.")
        }
        _ => "Some of them.".to_owned(),
    };
    let mut section = Section::new("not-accepted", "Operations that were not accepted", &note);
    if let Some(place) = &feed.unread {
        let text = format!(
            "{} was not read from line {} on; --skip {} feeds the rest.",
            place.file,
            count(place.line),
            place.skip
        );
        section =
            section.with(Part::Text(if feed.complete { Tone::Plain } else { Tone::Bad }, text));
    }
    if !feed.examples.is_empty() {
        section = section.with(Part::Table(list.some(&fields, Plot::TWIN_ROWS_MAX, |_| Tone::Bad)));
    }
    Some(section)
}

/// The bottleneck in a sentence, if the figures show one.
fn finding(feed: &FeedResult) -> Option<String> {
    if feed.seconds > 0.0 && feed.input_limited_s >= MOST * feed.seconds {
        return Some(format!(
            "The input was the limit: for {} s of {} s more operations could have been sent and none had been read.",
            significant(feed.input_limited_s),
            significant(feed.seconds)
        ));
    }
    (feed.inflight.shrinks > 0).then(|| {
        format!(
            "The target was the limit: it refused operations, which made the window smaller {}.",
            counted(feed.inflight.shrinks, "time")
        )
    })
}

#[cfg(test)]
mod tests;
