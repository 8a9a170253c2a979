//! Failures by kind, replies by status, and samples of what failed; the ledger as a flow.

use super::course::Course;
use crate::number::{counted, significant};
use crate::sheet::{Cell, Part, Row, Sample, Section, Stage, Table, Tone};
use plimsoll_core::outcome::Failure;
use plimsoll_record::import::ImportResult;
use plimsoll_record::{FailureSample, RunRecord};

/// Meaning of each kind of failure.
const fn meaning(kind: Failure) -> &'static str {
    match kind {
        Failure::Connect => "no connection could be made",
        Failure::Tls => "TLS was not agreed on",
        Failure::Timeout => "no whole reply within the timeout",
        Failure::Reset => "the connection broke",
        Failure::Short => "the reply ended early",
        Failure::Protocol => "the reply breaks the protocol",
        Failure::Status => "a status that is not a success",
        Failure::Check => "a check of the reply failed",
        Failure::App => "the reply itself reports an error",
    }
}

/// Failures by kind with samples; replies by status.
pub fn section(record: &RunRecord, course: &Course) -> Option<Section> {
    let import = record.job_results.import();
    if record.ledger.finished() == 0 && import.is_none() {
        return None;
    }
    let failed = match import {
        Some(import) => import.failed,
        None => Some(record.ledger.failed.total()),
    };
    let mut section = Section::new("failures", "Failures", "");
    let Some(failed) = failed else {
        let text = "Unknown: the source does not say how many requests failed.".to_owned();
        return Some(section.with(Part::Text(Tone::Plain, text)));
    };
    if failed == 0 {
        section.parts.push(Part::Text(Tone::Good, "No request failed.".to_owned()));
    } else if import.is_some_and(|import| has_own_words(record, import)) {
        section.parts.extend(import.map(|import| in_own_words(import, failed)));
    } else {
        let mut table = Table::new(&["kind", "#requests", "#share of ended", "meaning"]).sortable();
        let ended = record.ledger.finished() as f64;
        for kind in Failure::ALL {
            let number = record.ledger.failed.get(kind);
            if number > 0 {
                let cells = vec![
                    Cell::text(kind.name()),
                    Cell::count(number).from(&["ledger", "failed", kind.name()]),
                    Cell::share(number as f64 / ended),
                    Cell::text(meaning(kind)),
                ];
                table.row(Tone::Bad, cells);
            }
        }
        section.parts.push(Part::Table(table));
    }
    if !record.statuses.is_empty() {
        let mut table =
            Table::new(&["#status", "#replies"]).captioned("Replies by status").sortable();
        for (status, number) in &record.statuses {
            let at = status.to_string();
            let tone = if *status >= 400 { Tone::Bad } else { Tone::Plain };
            let replies = Cell::count(*number).from(&["statuses", &at]);
            table.row(tone, vec![Cell::number(f64::from(*status), at.clone()), replies]);
        }
        section.parts.push(Part::Table(table));
    }
    if !course.failures.is_empty() {
        let samples = course.failures.iter().map(sample).collect();
        section.parts.push(Part::Samples(samples));
        section.note =
            "Samples are the first failures of each kind; failures.ndjson in the record has more."
                .to_owned();
    }
    Some(section)
}

/// True if the words of another tool say more of its failures than their kinds, or if those are unknown.
fn has_own_words(record: &RunRecord, import: &ImportResult) -> bool {
    !import.failures.is_empty() || !record.is_known("ledger.failed")
}

/// Failures in the words of another tool.
fn in_own_words(import: &ImportResult, failed: u64) -> Part {
    let head = format!("failure, as {} says it", import.tool);
    let caption = format!("{} failed", counted(failed, "request"));
    let mut table = Table::new(&[&head, "#requests"]).captioned(&caption).sortable();
    for (words, number) in &import.failures {
        let requests = Cell::count(*number).from(&["import", "failures", words]);
        table.row(Tone::Bad, vec![Cell::text(words.clone()), requests]);
    }
    if table.rows.is_empty() {
        return Part::Text(Tone::Bad, format!("{caption}; their kinds are unknown."));
    }
    Part::Table(table)
}

fn sample(failure: &FailureSample) -> Sample {
    let mut title = failure.kind.clone();
    if failure.status > 0 {
        title += &format!(" {}", failure.status);
    }
    if !failure.class.is_empty() {
        title += &format!(", class {}", failure.class);
    }
    title += &format!(", at {} s", significant(failure.at_s));
    Sample {
        title,
        reason: failure.reason.clone(),
        request: failure.request.clone(),
        reply: failure.reply.clone(),
    }
}

/// The account of every request: from the schedule to its end.
pub fn ledger(record: &RunRecord) -> Option<Section> {
    let ledger = &record.ledger;
    if let Some(import) = record.job_results.import() {
        let note = "A count that the source does not give is unknown, not 0.";
        let table = Part::Table(account(record, Some(import)));
        return Some(Section::new("ledger", "Ledger", note).with(table));
    }
    if ledger.scheduled == 0 && ledger.sent == 0 {
        return None;
    }
    let (refused, failed) = (ledger.refused, ledger.failed.total());
    let part = |name: &str, number: u64, tone: Tone| (name.to_owned(), number, tone);
    let flow = vec![
        Stage {
            name: "scheduled".to_owned(),
            count: ledger.scheduled,
            parts: vec![
                part("sent", ledger.sent, Tone::Plain),
                part("refused", refused.queue_full + refused.queue_timeout, Tone::Warn),
                part("unsent", ledger.unsent.stopped, Tone::Warn),
            ],
        },
        Stage {
            name: "sent".to_owned(),
            count: ledger.sent,
            parts: vec![
                part("ok", ledger.ok, Tone::Good),
                part("failed", failed, Tone::Bad),
                part("unfinished", ledger.unfinished, Tone::Warn),
            ],
        },
    ];
    let note = "Every scheduled request is in one place: scheduled = sent + refused + unsent; sent = ok + failed + unfinished.";
    let balance = ledger.balance().err().map(|imbalance| {
        Part::Text(Tone::Bad, format!("The ledger does not balance: {imbalance}"))
    });
    Some(
        Section::new("ledger", "Ledger", note)
            .with(Part::Flow(flow))
            .with(Part::Table(account(record, None)))
            .with_some(balance),
    )
}

/// One row for each place of the ledger. A count that the source of an import does not give
/// becomes unknown by its place in the record.
fn account(record: &RunRecord, import: Option<&ImportResult>) -> Table {
    let ledger = &record.ledger;
    let (refused, unsent) = (ledger.refused, ledger.unsent);
    let mut table = Table::new(&["", "#requests", "meaning"]);
    let row = |name: &str, number: u64, at: &[&str], meaning: &str, tone: Tone| {
        let place = [&["ledger"], at].concat();
        let cells = vec![Cell::text(name), Cell::count(number).from(&place), Cell::text(meaning)];
        Row { cells, tone: if number > 0 { tone } else { Tone::Plain } }
    };
    table.rows.extend([
        row("scheduled", ledger.scheduled, &["scheduled"], "due by the schedule", Tone::Plain),
        row("sent", ledger.sent, &["sent"], "handed to a connection", Tone::Plain),
        row(
            "refused: queue full",
            refused.queue_full,
            &["refused", "queue_full"],
            "the queue of admission was full",
            Tone::Warn,
        ),
        row(
            "refused: queue timeout",
            refused.queue_timeout,
            &["refused", "queue_timeout"],
            "waited in the queue for longer than its limit",
            Tone::Warn,
        ),
        row(
            "unsent",
            unsent.stopped,
            &["unsent", "stopped"],
            "still waiting when the run ended",
            Tone::Warn,
        ),
        row("ok", ledger.ok, &["ok"], "succeeded", Tone::Good),
    ]);
    if let Some(import) = import {
        // Their number can be known without their kinds.
        let failed = Cell::or_unknown(import.failed, Cell::count).from(&["import", "failed"]);
        let tone = if import.failed.unwrap_or(0) > 0 { Tone::Bad } else { Tone::Plain };
        table.row(tone, vec![Cell::text("failed"), failed, Cell::text("did not succeed")]);
    } else {
        for kind in Failure::ALL.into_iter().filter(|kind| ledger.failed.get(*kind) > 0) {
            let name = format!("failed: {}", kind.name());
            let at = ["failed", kind.name()];
            table.rows.push(row(&name, ledger.failed.get(kind), &at, meaning(kind), Tone::Bad));
        }
    }
    table.rows.push(row(
        "unfinished",
        ledger.unfinished,
        &["unfinished"],
        "in flight when the run was cut off",
        Tone::Warn,
    ));
    table
}
