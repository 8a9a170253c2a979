//! The page of a visit.

use super::number::{bytes, count, percent, significant};
use super::page::{Column, Page, Tone};
use crate::plain::printable;
use plimsoll_core::record::RunRecord;
use plimsoll_core::visit::{TimeShares, VisitResult};

/// Unfinished slices on the page; the record holds all.
const UNFINISHED_MAX: usize = 8;

/// What the visit brought, where the record is one of a visit.
pub fn result(record: &RunRecord) -> Option<VisitResult> {
    record.job_results.get("visit").and_then(|visit| serde_json::from_value(visit.clone()).ok())
}

/// How much came, whether it is all, and where the time went.
pub fn documents(page: &mut Page<'_>, visit: &VisitResult) {
    if visit.matrix.is_empty() {
        one(page, visit);
    } else {
        matrix(page, visit);
    }
}

fn one(page: &mut Page<'_>, visit: &VisitResult) {
    let head = format!(
        "  {} documents     {}/s   {} Gbit/s",
        count(visit.documents + visit.removes),
        significant(visit.documents_per_s),
        significant(visit.gbps)
    );
    page.line(&head, Tone::Strong);
    page.blank();
    let (text, tone) = if visit.complete {
        let text = format!(
            "{} of {} slices came to their end, and {} replies held what they claimed",
            visit.slices_done,
            visit.slices,
            count(visit.replies)
        );
        (text, Tone::Good)
    } else {
        let text = format!(
            "NO: {} of {} slices came to their end; replies claimed {} and held {}",
            visit.slices_done,
            visit.slices,
            count(visit.document_count_claimed),
            count(visit.document_count_received)
        );
        (text, Tone::Bad)
    };
    page.entry("Complete", &text, tone);
    for slice in visit.unfinished.iter().take(UNFINISHED_MAX) {
        let place = slice.token.as_deref().map_or("at its beginning".to_owned(), |token| {
            format!("from continuation {}", printable(token))
        });
        let text = format!("slice {} {place}: {}", slice.slice, printable(&slice.reason));
        page.entry("Missing", &text, Tone::Bad);
    }
    if visit.unfinished.len() > UNFINISHED_MAX {
        let more = visit.unfinished.len() - UNFINISHED_MAX;
        page.note(&format!("and {more} slices more; the record has all"));
    }
    let mut ids = format!("digest {}", printable(&visit.id_digest));
    if visit.removes > 0 {
        ids += &format!("; {} of them removed documents", count(visit.removes));
    }
    if visit.duplicates > 0 {
        ids += &format!("; {} came again and were left out", count(visit.duplicates));
    }
    page.entry("Ids", &ids, Tone::Plain);
    if visit.resumed_from > 0 {
        let text = format!("{} documents were there from before", count(visit.resumed_from));
        page.entry("Resumed", &text, Tone::Plain);
    }
    let text = format!(
        "{} in {} s, {} replies of {}; {} s of CPU a GB",
        bytes(visit.bytes as f64),
        significant(visit.seconds),
        count(visit.replies),
        if visit.form == "lines" { "JSON lines" } else { "one object" },
        significant(visit.cpu_s_per_gb)
    );
    page.entry("Received", &text, Tone::Plain);
    page.entry("Time", &shares(&visit.time), Tone::Plain);
    for (index, file) in visit.files.iter().take(3).enumerate() {
        page.entry(if index == 0 { "Output" } else { "" }, &printable(file), Tone::Plain);
    }
    if visit.files.len() > 3 {
        page.note(&format!("and {} files more", visit.files.len() - 3));
    }
    page.blank();
}

fn shares(time: &TimeShares) -> String {
    format!(
        "waiting for the first byte {}, receiving {}, between requests {}",
        percent(time.first_byte),
        percent(time.receiving),
        percent(time.between)
    )
}

fn matrix(page: &mut Page<'_>, visit: &VisitResult) {
    let best = visit.matrix.iter().map(|cell| cell.documents_per_s).fold(0.0, f64::max);
    page.line(&format!("  at most {} documents/s", significant(best)), Tone::Strong);
    page.blank();
    let text = |name, goes| Column { name, right: false, goes };
    let number = |name, goes| Column { name, right: true, goes };
    let columns = [
        number("slices", 0),
        text("replies", 0),
        number("at once", 1),
        number("docs/s", 0),
        number("Gbit/s", 0),
        number("replies", 2),
        number("first byte", 0),
        number("receiving", 0),
        number("between", 0),
        number("CPU s/GB", 1),
        number("failed", 3),
    ];
    let rows: Vec<_> = visit
        .matrix
        .iter()
        .map(|cell| {
            let cells = vec![
                cell.slices.to_string(),
                if cell.stream { "streamed" } else { "chunked" }.to_owned(),
                cell.concurrency.map_or("-".to_owned(), |n| n.to_string()),
                significant(cell.documents_per_s),
                significant(cell.gbps),
                count(cell.replies),
                percent(cell.time.first_byte),
                percent(cell.time.receiving),
                percent(cell.time.between),
                significant(cell.cpu_s_per_gb),
                count(cell.failed),
            ];
            let tone = if cell.documents_per_s == best { Tone::Good } else { Tone::Plain };
            (cells, tone)
        })
        .collect();
    page.table(&columns, &rows);
    page.note("shares of the slices' time; nothing was written");
    page.blank();
}
