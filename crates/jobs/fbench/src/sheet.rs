//! The page that is data of an fbench run: the figures of vespa-fbench's summary, and its cycles.

use plimsoll_record::RunRecord;
use plimsoll_record::fbench::{FbenchResult, Percentile};
use plimsoll_report::sections::{Decision, put_first};
use plimsoll_report::series::Series;
use plimsoll_report::sheet::{Cell, Field, Listed, Part, Section, Sheet, Table, Tone};

/// Adds the sections of fbench. Changes nothing for a record without a summary.
pub(crate) fn sheet(sheet: &mut Sheet, record: &RunRecord, _course: &Series) {
    let Some(result) = record.job_results.fbench() else { return };
    put_first(sheet, &decisions(result), true);
    sheet.put_after("decide", summary(result));
    sheet.put_after("summary", cycles(result));
}

fn exact(value: f64, unit: &str) -> Cell {
    Cell::number(value, format!("{value:.2} {unit}"))
}

fn decisions(result: &FbenchResult) -> Vec<Decision> {
    let own = |cell: Cell, field: &'static str| cell.from(&["fbench", field]);
    vec![
        Decision::figure("actual query rate", own(exact(result.rate_per_s, "Q/s"), "rate_per_s")),
        Decision::figure(
            "average response time (service)",
            own(exact(result.avg_ms, "ms"), "avg_ms"),
        ),
        Decision::figure("utilization", own(exact(result.utilization_pct, "%"), "utilization_pct")),
        Decision::figure("zero hit queries", own(Cell::count(result.zero_hits), "zero_hits")),
    ]
}

/// The figures of the original's summary, under its names.
fn summary(result: &FbenchResult) -> Section {
    let own = |name: &str, cell: Cell, field: &'static str| {
        (name.to_owned(), cell.from(&["fbench", field]))
    };
    let whole = |value: i64, unit: &str| Cell::number(value as f64, format!("{value} {unit}"));
    let facts = vec![
        own("clients", Cell::count(result.clients.into()), "clients"),
        own("ran for", whole(result.ran_for_s, "seconds"), "ran_for_s"),
        own("cycle time", whole(result.cycle_ms, "ms"), "cycle_ms"),
        own(
            "lower response limit",
            Cell::bytes(result.lower_limit_bytes as f64),
            "lower_limit_bytes",
        ),
        own("skipped requests", Cell::count(result.skipped), "skipped"),
        own("failed requests", Cell::count(result.failed), "failed"),
        own("successful requests", Cell::count(result.ok), "ok"),
        own("connection reuse count", Cell::count(result.reuse_count), "reuse_count"),
        own("minimum response time", exact(result.min_ms, "ms"), "min_ms"),
        own("maximum response time", exact(result.max_ms, "ms"), "max_ms"),
        own("average response time", exact(result.avg_ms, "ms"), "avg_ms"),
        own("actual query rate", exact(result.rate_per_s, "Q/s"), "rate_per_s"),
        own("utilization", exact(result.utilization_pct, "%"), "utilization_pct"),
        own("zero hit queries", Cell::count(result.zero_hits), "zero_hits"),
        own("zero hit percentage", exact(result.zero_hit_pct, "%"), "zero_hit_pct"),
    ];
    let list = Listed { at: &["fbench", "percentiles"], items: &result.percentiles };
    let columns = [
        Field::new("percentile", "percentile", |point: &Percentile| {
            Cell::number(point.percentile, point.percentile.to_string())
        }),
        Field::new("ms", "ms", |point: &Percentile| exact(point.ms, "ms")),
    ];
    let mut statuses = Table::new(&["HTTP status", "#requests"]).captioned("Requests by status");
    for (status, requests) in &result.statuses {
        let place = status.to_string();
        let name = match status {
            0 => "0 (no answer)".to_owned(),
            status => status.to_string(),
        };
        let requests = Cell::count(*requests).from(&["fbench", "statuses", &place]);
        let tone = if (200..300).contains(status) { Tone::Plain } else { Tone::Bad };
        statuses.row(tone, vec![Cell::text(name), requests]);
    }
    let note = "The figures of vespa-fbench's summary. Its response times are service times: from sending to the last byte of \
                successful requests. Failed requests are in no time, rate or percentile.";
    Section::new("summary", "Summary of fbench", note)
        .with(Part::Facts(facts))
        .with(Part::Table(list.table(&columns, |_| Tone::Plain).captioned("Distribution")))
        .with(Part::Table(statuses))
}

/// Cycles that the clients kept, and those that they did not.
fn cycles(result: &FbenchResult) -> Section {
    let late = Cell::count(result.cycles_not_held).from(&["fbench", "cycles_not_held"]);
    let ended = result.ok + result.failed;
    let said = match result.cycle_ms {
        0 => (Tone::Plain, "The cycle time is 0: each client sends its next request as soon as the reply is there.".to_owned()),
        ..0 => (Tone::Plain, "The cycle time is negative: a client waits as long as the reply took.".to_owned()),
        cycle if result.cycles_not_held == 0 => {
            (Tone::Good, format!("Every request took less than the cycle of {cycle} ms."))
        }
        cycle if 2 * result.cycles_not_held > ended => (
            Tone::Warn,
            format!(
                "Most requests took {cycle} ms or longer: the clients could not keep the cycle, and the rate is that of the \
                 target, not of the schedule."
            ),
        ),
        cycle => (Tone::Warn, format!("Some requests took {cycle} ms or longer, so that their cycles were not kept.")),
    };
    let note = "cycles not held: requests that took as long as the cycle (-c) or longer; all of them if the cycle is 0.";
    Section::new("cycles", "Cycles", note)
        .with(Part::Text(said.0, said.1))
        .with(Part::Facts(vec![("cycles not held".to_owned(), late)]))
}

#[cfg(test)]
mod tests;
