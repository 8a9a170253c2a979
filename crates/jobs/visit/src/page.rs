//! The page of a visit.

use crate::sheet;
use plimsoll_record::RunRecord;
use plimsoll_record::visit::{TimeShares, VisitResult};
use plimsoll_report::forms::{Below, Forms};
use plimsoll_report::number::{bytes, count, counted, millis, percent, significant};
use plimsoll_report::page::{Column, Page, Tone};
use plimsoll_report::plain::printable;

/// The forms in which a visit is shown.
pub const FORMS: Forms = Forms {
    page: sections,
    sheet: sheet::sheet,
    figures: crate::figures::figures,
    headline: |record| Some(counted(record.job_results.visit()?.documents, "document")),
    ..Forms::LOAD
};

/// Unfinished slices on the page; the record holds all.
const UNFINISHED_MAX: usize = 8;

/// Shorter times in which the output was the limit are nothing to speak of, s.
const LIMITED_SHOWN_S: f64 = 0.1;

/// Writes how much was received, whether it is everything, and where the time went.
fn sections(page: &mut Page<'_>, record: &RunRecord) -> Option<Below> {
    let visit = record.job_results.visit()?;
    if visit.matrix.is_empty() {
        one(page, visit);
    } else {
        matrix(page, visit);
    }
    Some(Below::Books)
}

fn one(page: &mut Page<'_>, visit: &VisitResult) {
    let head = format!(
        "{}, {}/s, {} Gbit/s",
        counted(visit.documents + visit.removes, "document"),
        significant(visit.documents_per_s),
        significant(visit.gbps)
    );
    page.headline(&head, Tone::Strong);
    let (text, tone) = completeness(visit);
    page.alert("Complete", &text, tone);
    if visit.slices == 0 {
        return;
    }
    missing(page, visit);
    if visit.output_limited_s >= LIMITED_SHOWN_S || visit.output_last_s >= LIMITED_SHOWN_S {
        let text = format!(
            "the output was the limit for {} s, in which nothing was received; {} s more to write the rest",
            significant(visit.output_limited_s),
            significant(visit.output_last_s)
        );
        page.alert("Limit", &text, Tone::Warn);
    }
    let mut ids = format!("digest {}", printable(&visit.id_digest));
    if visit.removes > 0 {
        ids += &format!("; {} of them removed documents", count(visit.removes));
    }
    if visit.duplicates > 0 {
        ids += &format!("; {} duplicates were left out", count(visit.duplicates));
    }
    if page.is_verbose() || visit.removes > 0 || visit.duplicates > 0 {
        page.entry("Ids", &ids, Tone::Plain);
    }
    if visit.resumed_from > 0 {
        let text = format!("{} documents are from an earlier run", count(visit.resumed_from));
        page.entry("Resumed", &text, Tone::Plain);
    }
    let text = format!(
        "{} in {} s, {} of {}; {} s of CPU per GB",
        bytes(visit.bytes as f64),
        significant(visit.seconds),
        if visit.replies == 1 {
            "1 reply".to_owned()
        } else {
            format!("{} replies", count(visit.replies))
        },
        if visit.form == "lines" { "JSON lines" } else { "one object" },
        significant(visit.cpu_s_per_gb)
    );
    page.entry("Received", &text, Tone::Plain);
    if page.is_verbose() {
        times(page, visit);
    }
    for (index, file) in visit.files.iter().take(3).enumerate() {
        page.entry(if index == 0 { "Output" } else { "" }, &printable(file), Tone::Plain);
    }
    if visit.files.len() > 3 {
        page.entry("", &format!("and {} files more", visit.files.len() - 3), Tone::Plain);
    }
    page.blank();
}

/// Returns whether it is all, in words.
fn completeness(visit: &VisitResult) -> (String, Tone) {
    if visit.complete {
        let text = format!(
            "{} of {} slices ended; all replies hold as many documents as they claim",
            visit.slices_done, visit.slices
        );
        (text, Tone::Good)
    } else if visit.slices == 0 {
        ("NO: nothing was read".to_owned(), Tone::Bad)
    } else if visit.slices_done == visit.slices
        && visit.document_count_claimed == visit.document_count_received
        && visit.inconsistent_replies == 0
    {
        ("NO: everything was read, but not everything was written".to_owned(), Tone::Bad)
    } else {
        let mut text = format!(
            "NO: {} of {} slices ended; replies claim {} documents and hold {}",
            visit.slices_done,
            visit.slices,
            count(visit.document_count_claimed),
            count(visit.document_count_received)
        );
        // Wrong counts can be right in sum.
        if visit.inconsistent_replies > 0 {
            let (wrong, all) = (count(visit.inconsistent_replies), count(visit.replies));
            text += &format!("; the counts of {wrong} of {all} replies are wrong");
        }
        (text, Tone::Bad)
    }
}

/// The slices that did not come to their end.
fn missing(page: &mut Page<'_>, visit: &VisitResult) {
    // The verdict says why a visit ended as a whole; its slices have nothing of their own to say then.
    let whole = visit.trouble.is_some();
    let unfinished = if whole { &[][..] } else { &visit.unfinished[..] };
    for slice in unfinished.iter().take(UNFINISHED_MAX) {
        let place = slice.token.as_deref().map_or("at its beginning".to_owned(), |token| {
            format!("from continuation {}", printable(token))
        });
        let text = format!("slice {} {place}: {}", slice.slice, printable(&slice.reason));
        page.alert("Missing", &text, Tone::Bad);
    }
    if unfinished.len() > UNFINISHED_MAX {
        let more = unfinished.len() - UNFINISHED_MAX;
        page.alert("Missing", &format!("and {more} slices more; the record has all"), Tone::Bad);
    }
}

/// Adds the lines about times.
fn times(page: &mut Page<'_>, visit: &VisitResult) {
    page.entry("Time", &shares(&visit.time), Tone::Plain);
    if visit.first_byte_ms.count > 0 {
        let times = &visit.first_byte_ms;
        let text = format!("p50 {} ms, p99 {} ms", millis(times.p50), millis(times.p99));
        page.entry("First byte", &text, Tone::Plain);
    }
    if let Some(at_once) = visit.slices_at_once.filter(|_| !visit.slices_tried.is_empty()) {
        let tried: Vec<_> = visit
            .slices_tried
            .iter()
            .map(|step| format!("{}: {} MB/s", step.slices, significant(step.mb_per_s)))
            .collect();
        let text = format!("{at_once} slices; measured on the way: {}", tried.join(", "));
        page.entry("At once", &text, Tone::Plain);
    }
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
    page.headline(&format!("at most {} documents/s", significant(best)), Tone::Strong);
    let columns = [
        Column::number("slices", 0),
        Column::text("replies"),
        Column::number("at once", 1),
        Column::number("docs/s", 0),
        Column::number("Gbit/s", 0),
        Column::number("replies", 2),
        Column::number("first byte", 0),
        Column::number("receiving", 0),
        Column::number("between", 0),
        Column::number("CPU s/GB", 1),
        Column::number("failed", 3),
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
    page.note(
        "first byte, receiving, between: shares of the time of the slices; no output was written",
    );
    page.blank();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_are_wrong_and_right_in_sum_are_in_the_page() {
        let mut visit = VisitResult {
            document_count_claimed: 400,
            document_count_received: 400,
            slices: 2,
            slices_done: 2,
            replies: 8,
            ..VisitResult::default()
        };
        assert!(completeness(&visit).0.contains("not everything was written"));
        visit.inconsistent_replies = 2;
        let (text, _) = completeness(&visit);
        let expected = "NO: 2 of 2 slices ended; replies claim 400 documents and hold 400; \
                        the counts of 2 of 8 replies are wrong";
        assert_eq!(text, expected);
    }
}
