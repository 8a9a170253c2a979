//! Answers of the engines: agreement between engines, and recall of the documents that are known to match.

use plimsoll_record::search::SearchResult;
use plimsoll_report::number::{count, counted, percent};
use plimsoll_report::page::{Page, Tone};
use plimsoll_report::plain::printable;
use std::collections::BTreeMap;

/// Disagreements on a verbose page; the record holds all.
const DISAGREEMENTS_MAX: usize = 20;
/// Lines of recall on a verbose page; the record holds all.
const RECALL_MAX: usize = 24;
/// Lines of each on a page that is not verbose.
const FEW: usize = 5;

/// `, distance 2, 5 shards, 64MB` after a query's name.
fn place_of(distance: u8, shards: u32, size: &str) -> String {
    format!("distance {distance}, {}, {size}", counted(shards.into(), "shard"))
}

/// Number of queries (each with its distance, shards and text) that two engines or more answered.
struct Compared {
    by_two: usize,
    by_all: usize,
    asked: usize,
}

impl Compared {
    fn of(search: &SearchResult) -> Self {
        let mut places: BTreeMap<(&str, u8, u32, &str), usize> = BTreeMap::new();
        for answer in &search.answers {
            let place = (&*answer.size, answer.distance, answer.shards, &*answer.query);
            *places.entry(place).or_default() += usize::from(answer.hits.is_some());
        }
        let at_least = |least| places.values().filter(|answered| **answered >= least).count();
        Self { by_two: at_least(2), by_all: at_least(search.engines.len()), asked: places.len() }
    }

    fn told(&self) -> String {
        format!("{} of {} were answered by two engines or more", self.by_two, self.asked)
    }
}

/// Agreement between the answers of engines, if there are answers to compare.
pub(super) fn disagreements(page: &mut Page<'_>, search: &SearchResult) {
    let compared = Compared::of(search);
    if compared.asked == 0 || search.engines.len() < 2 {
        return;
    }
    if search.disagreements.is_empty() {
        match compared {
            Compared { by_all, asked, .. } if by_all == asked => {
                page.line("All engines gave the same hits to all queries", Tone::Good);
            }
            Compared { by_two: 0, .. } => page.line(
                "No query was answered by two engines, so their hits cannot be compared",
                Tone::Warn,
            ),
            some => {
                let line = format!("The same hits from all engines that answered: {}", some.told());
                page.line(&line, Tone::Plain);
            }
        }
        page.blank();
        return;
    }
    page.line("Queries to which engines gave different answers (hits)", Tone::Strong);
    let most = if page.is_verbose() { DISAGREEMENTS_MAX } else { FEW };
    for one in search.disagreements.iter().take(most) {
        let hits: Vec<String> = one
            .hits
            .iter()
            .map(|own| format!("{} {}", printable(&own.engine), count(own.hits)))
            .collect();
        let end = if one.other_documents {
            "the same number of other documents".to_owned()
        } else {
            format!("difference {}", count(one.difference))
        };
        let place = place_of(one.distance, one.shards, &one.size);
        let line = format!("  {}, {place}: {}; {end}", printable(&one.query), hits.join(", "));
        page.line(&line, Tone::Plain);
    }
    let more = search.disagreements.len().saturating_sub(most);
    if more > 0 {
        page.line(&format!("  and {more} more; the record has all"), Tone::Plain);
    }
    if compared.by_two < compared.asked {
        page.line(&format!("  {}", compared.told()), Tone::Plain);
    }
    page.blank();
}

/// The share that was found, with as many digits as show that it is not all: what is not exact should not look as if it
/// were.
pub(super) fn inexact_share(found: u64, expected: u64) -> String {
    let share = found as f64 / expected.max(1) as f64;
    let whole = percent(share);
    if whole != "100 %" {
        return whole;
    }
    let shown = |digits: usize| format!("{:.digits$} %", share * 100.0);
    (1..6)
        .map(shown)
        .find(|shown| shown.trim_end_matches(" %").parse() != Ok(100.0))
        .unwrap_or(whole)
}

/// Recall of documents known to be in the text.
pub(super) fn recall(page: &mut Page<'_>, search: &SearchResult) {
    if search.recall.is_empty() {
        return;
    }
    let exact = search.recall.iter().filter(|one| one.found == one.expected).count();
    let all = search.recall.len();
    page.line(
        &format!("Recall against the text's own truth: {exact} of {all} answers are exact"),
        if exact == all { Tone::Good } else { Tone::Strong },
    );
    let wrong: Vec<_> = search.recall.iter().filter(|one| one.found != one.expected).collect();
    let most = if page.is_verbose() { RECALL_MAX } else { FEW };
    for one in wrong.iter().take(most) {
        let shown = inexact_share(one.found, one.expected);
        let line = format!(
            "  {}, {}, {}: {} of {} ({shown})",
            printable(&one.engine),
            printable(&one.query),
            place_of(one.distance, one.shards, &one.size),
            count(one.found),
            count(one.expected),
        );
        page.line(&line, Tone::Plain);
    }
    if wrong.len() > most {
        page.line(&format!("  and {} more; the record has all", wrong.len() - most), Tone::Plain);
    }
    page.blank();
}
