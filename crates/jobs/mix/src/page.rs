//! The page of a feed beside queries: the queries with and without it, then the feed, then all queries.

use crate::sheet;
use plimsoll_feed::page::{alerts, operations, rates};
use plimsoll_record::RunRecord;
use plimsoll_record::feed::{FeedResult, MixPart, MixResult};
use plimsoll_report::forms::{Below, Forms};
use plimsoll_report::number::{count, millis, significant};
use plimsoll_report::page::{Column, Page, Tone};
use plimsoll_report::text::headline;

/// The forms in which a mix is shown.
pub const FORMS: Forms =
    Forms { page: sections, figures: crate::figures::figures, sheet: sheet::sheet, ..Forms::LOAD };

fn sections(page: &mut Page<'_>, record: &RunRecord) -> Option<Below> {
    let (feed, mix) = (record.job_results.feed()?, record.job_results.mix()?);
    headline(page, record);
    alerts(page, feed);
    beside(page, mix, feed);
    page.heading("All queries");
    Some(Below::Figures)
}

/// Writes the response times of the queries with and without the feed, and then the feed.
fn beside(page: &mut Page<'_>, mix: &MixResult, feed: &FeedResult) {
    let columns = [
        Column::text("Queries, ms"),
        Column::number("for s", 0),
        Column::number("ok", 0),
        Column::number("failed", 0),
        Column::number("ok/s", 2),
        Column::number("p50", 0),
        Column::number("p95", 0),
        Column::number("p99", 0),
        Column::number("max", 1),
    ];
    let row = |name: &str, part: &MixPart| {
        let times = &part.response;
        let mut cells = vec![
            format!("  {name}"),
            significant(part.seconds),
            count(part.ok),
            count(part.failed),
            significant(if part.seconds > 0.0 { part.ok as f64 / part.seconds } else { 0.0 }),
        ];
        cells.extend([times.p50, times.p95, times.p99, times.max].map(millis));
        (cells, if part.failed > 0 { Tone::Bad } else { Tone::Plain })
    };
    let parts = [("while feeding", &mix.while_feeding), ("without", &mix.without)];
    let rows: Vec<_> = parts
        .iter()
        .filter(|(_, part)| part.seconds > 0.0)
        .map(|(name, part)| row(name, part))
        .collect();
    page.table(&columns, &rows);
    page.note("p50 to max: response time; only whole seconds are counted");
    page.blank();
    page.heading(&format!("The feed: {}", rates(feed)));
    operations(page, feed);
}
