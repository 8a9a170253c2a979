//! The page that is data of a feed beside queries.

use plimsoll_core::histogram::LatencySummary;
use plimsoll_feed::sheet::{add_sections, decisions};
use plimsoll_job::line::say;
use plimsoll_record::RunRecord;
use plimsoll_record::feed::{MixPart, MixResult};
use plimsoll_report::number::{significant, time};
use plimsoll_report::sections::{Decision, put_first};
use plimsoll_report::series::Series;
use plimsoll_report::sheet::{Cell, Part, Section, Sheet, Table, Tone};

/// Response times beside the feed that are this much longer are a finding.
const SLOWER: f64 = 1.2;
/// With fewer requests on either side nothing is compared.
const REQUESTS_MIN: u64 = 100;

/// Adds the sections of a mix. Changes nothing for a record without one.
pub(crate) fn sheet(sheet: &mut Sheet, record: &RunRecord, _course: &Series) {
    let results = &record.job_results;
    let Some((mix, feed)) = results.mix().zip(results.feed()) else { return };
    let mut rows: Vec<Decision> = parts(mix)
        .into_iter()
        .filter(|(.., part)| part.ok > 0)
        .map(|(name, key, part)| {
            let p95 = Cell::ms(part.response.p95).from(&["mix", key, "response", "p95"]);
            Decision::figure(&format!("queries {name}: response p95"), p95)
        })
        .collect();
    rows.extend(decisions(feed).into_iter().take(3));
    put_first(sheet, &rows, true);
    sheet.put_after("decide", beside(mix));
    add_sections(sheet, feed, "beside");
    if let Some(text) = finding(mix) {
        say(sheet, text);
    }
}

fn parts(mix: &MixResult) -> [(&'static str, &'static str, &MixPart); 2] {
    [
        ("while feeding", "while_feeding", &mix.while_feeding),
        ("without a feed", "without", &mix.without),
    ]
}

/// The queries with and without the feed.
fn beside(mix: &MixResult) -> Section {
    let heads = [
        "queries",
        "#for",
        "#ok",
        "#failed",
        "#response p50",
        "#response p95",
        "#response p99",
        "#response max",
        "#service p50",
        "#service p99",
    ];
    let mut table = Table::new(&heads);
    for (name, key, part) in parts(mix) {
        let at = |field: &'static str| ["mix", key, field];
        let mut cells = vec![
            Cell::text(name),
            Cell::seconds(part.seconds).from(&at("seconds")),
            Cell::count(part.ok).from(&at("ok")),
            Cell::count(part.failed).from(&at("failed")),
        ];
        let (response, service) = (&part.response, &part.service);
        let points: [(&str, &str, &LatencySummary, f64); 6] = [
            ("response", "p50", response, response.p50),
            ("response", "p95", response, response.p95),
            ("response", "p99", response, response.p99),
            ("response", "max", response, response.max),
            ("service", "p50", service, service.p50),
            ("service", "p99", service, service.p99),
        ];
        cells.extend(points.map(|(of, field, summary, value)| match summary.count {
            0 => Cell::Unknown,
            _ => Cell::ms(value).from(&["mix", key, of, field]),
        }));
        table.row(if part.failed > 0 { Tone::Bad } else { Tone::Plain }, cells);
    }
    let note = "Only whole seconds are counted: those in which documents arrived, and those after the last one.";
    Section::new("beside", "Queries beside the feed", note).with(Part::Table(table))
}

/// The effect of the feed on the queries, if the figures show one.
fn finding(mix: &MixResult) -> Option<String> {
    let (fed, alone) = (&mix.while_feeding.response, &mix.without.response);
    if fed.count < REQUESTS_MIN || alone.count < REQUESTS_MIN || fed.p95 < SLOWER * alone.p95 {
        return None;
    }
    Some(format!(
        "The feed slows the queries down: their response p95 is {} beside it and {} without it ({} times as long).",
        time(fed.p95),
        time(alone.p95),
        significant(fed.p95 / alone.p95)
    ))
}

#[cfg(test)]
mod tests;
