//! The page of `rank`: the runs, each at a rate of its own, below the load line if there was a search.

use crate::sheet;
use plimsoll_job::line;
use plimsoll_record::RunRecord;
use plimsoll_record::rank::{RankResult, RankRun};
use plimsoll_report::forms::{Below, Forms};
use plimsoll_report::number::{count, percent, significant};
use plimsoll_report::page::{Column, Page, Tone};

/// The forms in which a ranking benchmark is shown.
pub const FORMS: Forms = Forms {
    page: sections,
    headline: in_brief,
    figures: line::figures,
    sheet: sheet::sheet,
    ..Forms::LOAD
};

/// The instances' answers lie apart by more than this share of their mean: they did not do the same work.
const SPREAD_MAX: f64 = 0.1;

fn sections(page: &mut Page<'_>, record: &RunRecord) -> Option<Below> {
    let results = &record.job_results;
    let rank = results.rank()?;
    match (results.seek(), results.rival()) {
        (Some(found), _) => line::sections(page, &found.finding),
        (None, None) => headline(page, rank),
        // What another method found is one run, and shown as a load.
        (None, Some(_)) => return None,
    }
    page.blank();
    table(page, rank);
    Some(Below::Books)
}

/// Returns the load line, or else the measured rate, in a few words.
fn in_brief(record: &RunRecord) -> Option<String> {
    line::headline(record).or_else(|| {
        let run = record.job_results.rank()?.overall.as_ref()?;
        let (rate, p95) = (significant(run.achieved_per_s), significant(run.p95_ms));
        Some(format!("{rate}/s, p95 {p95} ms"))
    })
}

/// Writes the last run as the headline: times of several rates together would describe none of them.
fn headline(page: &mut Page<'_>, rank: &RankResult) {
    let Some(last) = rank.runs.last() else {
        page.headline("no run came to its end", Tone::Bad);
        return;
    };
    let text = format!(
        "{} requests/s of {}/s in the last run",
        significant(last.achieved_qps),
        significant(last.requested_qps),
    );
    page.headline(&text, Tone::Strong);
}

/// Writes all runs, and what each instance did in the last of them.
fn table(page: &mut Page<'_>, rank: &RankResult) {
    let columns = [
        Column::text("Runs"),
        Column::number("for s", 3),
        Column::number("answered/s", 0),
        Column::number("p50 ms", 0),
        Column::number("p95", 0),
        Column::number("p99", 1),
        Column::number("failed", 2),
        Column::text("limits"),
    ];
    let row = |run: &RankRun| {
        let (limits, tone) = match (run.stopped, run.held) {
            (true, _) => ("stopped", Tone::Warn),
            (false, true) => ("held", Tone::Good),
            (false, false) => ("MISSED", Tone::Bad),
        };
        let mut cells =
            vec![format!("  {}/s", significant(run.requested_qps)), significant(run.duration_secs)];
        let figures = [run.achieved_qps, run.p50_ms, run.p95_ms, run.p99_ms, run.failed as f64];
        cells.extend(figures.map(significant));
        cells.push(limits.to_owned());
        (cells, tone)
    };
    let rows: Vec<_> = rank.runs.iter().map(row).collect();
    if rows.is_empty() {
        return;
    }
    page.table(&columns, &rows);
    page.blank();
    let instances = &rank.instances;
    let mut rows = Vec::new();
    for (index, instance) in instances.iter().enumerate().filter(|_| instances.len() > 1) {
        rows.push((
            vec![
                format!("  {}", index + 1),
                significant(instance.achieved_per_s),
                significant(instance.p50_ms),
                significant(instance.p95_ms),
                count(instance.failed),
            ],
            if instance.failed > 0 { Tone::Bad } else { Tone::Plain },
        ));
    }
    if !rows.is_empty() {
        let columns = [
            Column::text("Instances, last run"),
            Column::number("answered/s", 0),
            Column::number("p50 ms", 0),
            Column::number("p95", 0),
            Column::number("failed", 0),
        ];
        page.table(&columns, &rows);
    }
    let spread = rank.spread;
    if instances.len() > 1 && spread > SPREAD_MAX {
        let text = format!(
            "the instances' answers lie {} apart: they do not have equal shares of the machine",
            percent(spread)
        );
        page.alert("Warning", &text, Tone::Warn);
    }
}

#[cfg(test)]
mod tests {
    use super::{FORMS, RankResult, RankRun};
    use plimsoll_report::samples;
    use plimsoll_report::text::{Style, render};

    #[test]
    fn a_benchmark_at_several_rates_is_not_one_figure() {
        let run = |rate: f64, ms: f64, held: bool, stopped: bool| RankRun {
            requested_qps: rate,
            achieved_qps: rate,
            duration_secs: 5.0,
            p50_ms: ms,
            p95_ms: ms,
            p99_ms: ms,
            held,
            stopped,
            ..RankRun::default()
        };
        let runs = [run(20.0, 21.0, true, false), run(40.0, 777.0, false, false)];
        let mut record = samples::good();
        let mut page = |runs: &[RankRun]| {
            record.job_results.put(RankResult { runs: runs.to_vec(), ..RankResult::default() });
            render(&record, None, &Style::default(), &[FORMS])
        };
        let text = page(&runs);
        assert!(
            text.contains("\n           40.0 requests/s of 40.0/s in the last run\n"),
            "{text}"
        );
        let place = |word: &str| text.find(word).unwrap_or_else(|| panic!("no {word} in {text}"));
        assert!(place("MISSED") < place("40.0 requests/s of") && place("Runs  ") < place("20.0/s"));
        assert!(!text.contains("Latency, ms"), "times of both rates together: {text}");
        assert!(page(&[run(20.0, 21.0, false, true)]).contains("stopped"));
    }
}
