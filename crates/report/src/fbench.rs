//! The summary of vespa-fbench, to the character, and our own figures below it.
//!
//! Labels, widths and formulas are those of the original, so that scripts which read its output keep
//! working. Times are service times (send to last byte), as the original measures. Where our numbers are made
//! differently, on purpose:
//!
//! - Failed requests are failed: they are in no time, rate or percentile.
//! - Percentiles come from an HDR histogram (three digits, to over an hour) instead of 0.1 ms buckets up to
//!   10.24 s. There is no range beyond which values are guessed, so `ms (approx)` is never printed.
//! - A request that got no answer is listed under status 0, never under the status of the one before it.

use crate::text::{self, Style};
use plimsoll_core::interval::{ClassPart, Interval};
use plimsoll_core::record::RunRecord;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// The record's key for [`FbenchResult`].
pub const KEY: &str = "fbench";

/// Percentiles that the summary prints.
pub const PERCENTILES: [f64; 12] =
    [25.0, 50.0, 75.0, 90.0, 95.0, 98.0, 99.0, 99.5, 99.6, 99.7, 99.8, 99.9];

/// What the summary says about how it was called.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FbenchOptions {
    /// `-n`.
    pub clients: u32,
    /// `-s` when the run took its time; after an interrupt the whole seconds that passed.
    pub ran_for_s: i64,
    /// `-c`, ms; negative means "as long as the answer took".
    pub cycle_ms: i64,
    /// `-l`.
    pub lower_limit_bytes: u64,
    /// Keep-alive in use, that is: no `-k`.
    pub keepalive: bool,
}

/// What the clients know exactly and histograms do not hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FbenchSums {
    /// Clients that ran to their end.
    pub clients_ended: u32,
    /// Time between start and end of logging, summed over those clients, ns.
    pub elapsed_ns: u64,
    /// Lines of the query files that were longer than `-m`.
    pub skipped: u64,
}

/// The figures of the summary; stored in the record under [`KEY`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct FbenchResult {
    pub clients: u32,
    pub ran_for_s: i64,
    pub cycle_ms: i64,
    pub lower_limit_bytes: u64,
    /// Lines of the query files that were too long.
    pub skipped: u64,
    pub failed: u64,
    pub ok: u64,
    /// Requests that took as long as the cycle or longer; all of them when the cycle is 0.
    pub cycles_not_held: u64,
    /// Requests answered on a connection that had carried one before.
    pub reuse_count: u64,
    pub keepalive: bool,
    /// Exact, ms, successful requests only; so are the next two.
    pub min_ms: f64,
    pub max_ms: f64,
    pub avg_ms: f64,
    pub percentiles: Vec<Percentile>,
    /// Successful requests per second of the clients' mean elapsed time.
    pub rate_per_s: f64,
    /// Share of the clients' time that was spent inside successful requests.
    pub utilization_pct: f64,
    pub zero_hits: u64,
    /// Of the successful requests.
    pub zero_hit_pct: f64,
    /// Requests by status; 0 is "no answer".
    pub statuses: BTreeMap<u16, u64>,
}

/// One point of the distribution of service times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Percentile {
    pub percentile: f64,
    pub ms: f64,
}

impl FbenchResult {
    /// The figures of a run.
    ///
    /// `actual query rate = clients * ok / elapsed` and `utilization = 100 * service / elapsed`, both sums over
    /// the clients (the original's formulas, `fbench.cpp`).
    #[must_use]
    pub fn new(options: &FbenchOptions, totals: &Interval, sums: &FbenchSums) -> Self {
        let all = totals.all_classes();
        let ok = all.service.count();
        let ms = |ns: f64| ns / 1e6;
        let (min_ns, max_ns, sum_ns) = exact_times(&all);
        let elapsed_s = sums.elapsed_ns as f64 / 1e9;
        let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        let percentile = |&percentile: &f64| Percentile {
            percentile,
            // The histogram's cells are a little wider than the exact extremes that stand beside them.
            ms: ms((all.service.quantile_ns(percentile / 100.0) as f64).clamp(min_ns, max_ns)),
        };
        Self {
            clients: options.clients,
            ran_for_s: options.ran_for_s,
            cycle_ms: options.cycle_ms,
            lower_limit_bytes: options.lower_limit_bytes,
            skipped: sums.skipped,
            failed: totals.ledger.failed.total(),
            ok,
            cycles_not_held: match options.cycle_ms {
                0 => totals.ledger.finished(),
                ..0 => 0,
                _ => totals.counters.cycles_late,
            },
            reuse_count: totals.counters.reused,
            keepalive: options.keepalive,
            min_ms: ms(min_ns),
            max_ms: ms(max_ns),
            avg_ms: ms(share(sum_ns, ok as f64)),
            percentiles: PERCENTILES.iter().map(percentile).collect(),
            rate_per_s: share(f64::from(sums.clients_ended) * ok as f64, elapsed_s),
            utilization_pct: 100.0 * share(sum_ns / 1e9, elapsed_s),
            zero_hits: all.zero_hits,
            zero_hit_pct: 100.0 * share(all.zero_hits as f64, ok as f64),
            statuses: statuses_with_unanswered(totals),
        }
    }

    /// What the record of an `fbench` run holds.
    #[must_use]
    pub fn of(record: &RunRecord) -> Option<Self> {
        serde_json::from_value(record.job_results.get(KEY)?.clone()).ok()
    }

    /// The entry for [`RunRecord::job_results`].
    #[must_use]
    pub fn job_results(&self) -> Map<String, Value> {
        let value = serde_json::to_value(self).expect("plain fields with text keys");
        Map::from_iter([(KEY.to_owned(), value)])
    }

    /// The summary, from the keep-alive statistics to the last status line.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut out = String::new();
        if self.keepalive {
            out.push_str("*** HTTP keep-alive statistics ***\n");
            let _ = writeln!(out, "connection reuse count -- {}", self.reuse_count);
        }
        out.push_str("***************** Benchmark Summary *****************\n");
        let mut count = |label: &str, value: &dyn std::fmt::Display, unit: &str| {
            let _ = writeln!(out, "{label:<24}{value:>8}{unit}");
        };
        count("clients:", &self.clients, "");
        count("ran for:", &self.ran_for_s, " seconds");
        count("cycle time:", &self.cycle_ms, " ms");
        count("lower response limit:", &self.lower_limit_bytes, " bytes");
        count("skipped requests:", &self.skipped, "");
        count("failed requests:", &self.failed, "");
        count("successful requests:", &self.ok, "");
        count("cycles not held:", &self.cycles_not_held, "");
        let mut real = |label: &str, value: f64, unit: &str| {
            let _ = writeln!(out, "{label:<24}{value:>8.2}{unit}");
        };
        real("minimum response time:", self.min_ms, " ms");
        real("maximum response time:", self.max_ms, " ms");
        real("average response time:", self.avg_ms, " ms");
        for point in &self.percentiles {
            let label = percentile_label(point.percentile);
            let _ = writeln!(out, "{label:<26}{:>8.2} ms", point.ms);
        }
        let mut real = |label: &str, value: f64, unit: &str| {
            let _ = writeln!(out, "{label:<24}{value:>8.2}{unit}");
        };
        real("actual query rate:", self.rate_per_s, " Q/s");
        real("utilization:", self.utilization_pct, " %");
        let _ = writeln!(out, "{:<24}{:>8}", "zero hit queries:", self.zero_hits);
        let _ = writeln!(out, "{:<24}{:>8.2} %", "zero hit percentage:", self.zero_hit_pct);
        out.push_str("http request status breakdown:\n");
        for (status, count) in &self.statuses {
            let _ = writeln!(out, "  {status:>8} : {count:>8} ");
        }
        out
    }
}

/// `25  ` with two blanks up to 99, `99.5` with one: the original's two formats.
fn percentile_label(percentile: f64) -> String {
    if percentile.fract() == 0.0 {
        format!("{percentile:>2}   percentile:")
    } else {
        format!("{percentile:>2.1} percentile:")
    }
}

/// Exact smallest, largest and sum in ns; from the histogram when the recorder kept none.
fn exact_times(all: &ClassPart) -> (f64, f64, f64) {
    if all.service_max_ns > 0 {
        return (all.service_min_ns as f64, all.service_max_ns as f64, all.service_sum_ns as f64);
    }
    let sum_ns = all.service.mean_ns() * all.service.count() as f64;
    (all.service.min_ns() as f64, all.service.max_ns() as f64, sum_ns)
}

/// Every ended request has a line: those without any reply are status 0.
fn statuses_with_unanswered(totals: &Interval) -> BTreeMap<u16, u64> {
    let mut statuses = totals.statuses.clone();
    let answered: u64 = statuses.values().sum();
    let unanswered = totals.ledger.finished().saturating_sub(answered);
    if unanswered > 0 {
        *statuses.entry(0).or_default() += unanswered;
    }
    statuses
}

/// The first line that the original prints.
pub const STARTING: &str = "Starting clients...\n";

/// The lines that the original prints when the run is over, with a dot for each client that ends only now. One more is
/// empty when the run was interrupted.
#[must_use]
pub fn stopped_lines(clients: u32, interrupted: bool) -> String {
    let dots = ".".repeat(clients as usize);
    let empty = if interrupted { "\n" } else { "" };
    format!("Stopping clients\nClients stopped.\n{dots}\nClients Joined.\n{empty}")
}

/// Our own figures, to follow the summary: response time, ledger, verdict, where the record lies.
#[must_use]
pub fn own_block(record: &RunRecord, folder: Option<&Path>, style: &Style) -> String {
    let title = "*** plimsoll: times from the intended start, failures apart ***";
    let block = text::figures(record, folder, style) + &text::result(record, style);
    format!("{title}\n{}", without_colons_before_numbers(&block))
}

/// Writes `=` for a colon and a blank before a number: the original's filter takes such a number for one of the summary's.
fn without_colons_before_numbers(text: &str) -> String {
    let mut pieces = text.split(": ");
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let number = piece.trim_start().trim_start_matches(['-', '+']);
        let before =
            if number.starts_with(|c: char| c.is_ascii_digit() || c == '.') { " = " } else { ": " };
        out.push_str(before);
        out.push_str(piece);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result_filter::number_after_colon;
    use plimsoll_core::ledger::Ledger;

    /// The original's own output against a real server (`-n 32 -s 4`).
    const GOLDEN: &str = include_str!("../testdata/vespa-fbench-summary.txt");

    fn golden_result() -> FbenchResult {
        let ms = [0.7, 1.3, 2.1, 3.0, 3.6, 4.5, 5.3, 6.7, 7.7, 10.66, 21.4, 73.8];
        let point = |(&percentile, &ms): (&f64, &f64)| Percentile { percentile, ms };
        FbenchResult {
            clients: 32,
            ran_for_s: 4,
            failed: 0,
            ok: 75_463,
            cycles_not_held: 75_463,
            reuse_count: 75_431,
            keepalive: true,
            min_ms: 0.02,
            max_ms: 108.38,
            avg_ms: 1.71,
            percentiles: PERCENTILES.iter().zip(&ms).map(point).collect(),
            rate_per_s: 18_702.94,
            utilization_pct: 99.94,
            statuses: BTreeMap::from([(200, 75_463)]),
            ..FbenchResult::default()
        }
    }

    #[test]
    fn the_summary_is_the_originals_to_the_character() {
        assert_eq!(golden_result().summary(), GOLDEN);
    }

    #[test]
    fn without_keep_alive_its_statistics_are_left_out() {
        let result = FbenchResult { keepalive: false, ..golden_result() };
        let expected = GOLDEN.split_once("*****************").unwrap().1;
        assert_eq!(result.summary(), format!("*****************{expected}"));
    }

    #[test]
    fn the_formulas_are_the_originals() {
        let mut totals = Interval::new(2);
        // Two clients for 1 s each: 3 requests ok (100, 200, 300 ms), one refused, one 503.
        for (class, service_ms) in [(0, 100u64), (0, 200), (1, 300)] {
            totals.classes[class].record_ok(900_000_000, service_ms * 1_000_000 + 7);
            totals.classes[class].ledger.ok += 1;
        }
        totals.classes[1].zero_hits = 1;
        totals.ledger = Ledger { scheduled: 5, sent: 5, ok: 3, ..Ledger::default() };
        totals.ledger.failed.connect = 1;
        totals.ledger.failed.status = 1;
        totals.statuses = BTreeMap::from([(200, 3), (503, 1)]);
        totals.counters.cycles_late = 2;
        let options =
            FbenchOptions { clients: 2, ran_for_s: 1, cycle_ms: 250, ..FbenchOptions::default() };
        let sums = FbenchSums { clients_ended: 2, elapsed_ns: 2_000_000_000, skipped: 4 };
        let result = FbenchResult::new(&options, &totals, &sums);
        assert_eq!((result.ok, result.failed, result.skipped), (3, 2, 4));
        assert_eq!(result.cycles_not_held, 2);
        assert_eq!((result.min_ms, result.max_ms), (100.000_007, 300.000_007));
        assert!((result.avg_ms - 200.000_007).abs() < 1e-9);
        assert!((result.rate_per_s - 3.0).abs() < 1e-9);
        assert!((result.utilization_pct - 30.000_001_05).abs() < 1e-9);
        assert!((result.zero_hit_pct - 100.0 / 3.0).abs() < 1e-9);
        assert_eq!(result.statuses, BTreeMap::from([(0, 1), (200, 3), (503, 1)]));
        assert_eq!(result.percentiles[11].ms, result.max_ms);
        let median = result.percentiles[1].ms;
        assert!((median - 200.0).abs() < 0.2, "{median}");

        let always = FbenchOptions { cycle_ms: 0, ..options };
        assert_eq!(FbenchResult::new(&always, &totals, &sums).cycles_not_held, 5);
        let never = FbenchOptions { cycle_ms: -1, ..options };
        assert_eq!(FbenchResult::new(&never, &totals, &sums).cycles_not_held, 0);
    }

    #[test]
    fn the_own_block_has_no_number_that_the_originals_filter_takes() {
        let style = Style::default();
        let own = own_block(&crate::samples::good(), None, &style);
        assert!(
            own.lines().any(|line| line.starts_with("Status") && line.contains(" = ")),
            "{own}"
        );
        let taken: Vec<_> = own.lines().filter_map(number_after_colon).collect();
        assert!(taken.is_empty(), "{taken:?}");
    }

    #[test]
    fn nothing_sent_prints_zeros() {
        let options = FbenchOptions { clients: 2, ..FbenchOptions::default() };
        let result = FbenchResult::new(&options, &Interval::new(1), &FbenchSums::default());
        let summary = result.summary();
        assert!(!summary.contains("NaN") && !summary.contains("inf"), "{summary}");
        assert!(summary.contains("utilization:                0.00 %\n"), "{summary}");
        assert!(summary.ends_with("http request status breakdown:\n"), "{summary}");
    }

    #[test]
    fn the_last_lines_are_the_originals() {
        let lines = "Stopping clients\nClients stopped.\n...\nClients Joined.\n";
        assert_eq!(stopped_lines(3, false), lines);
        assert_eq!(stopped_lines(3, true), format!("{lines}\n"));
    }
}
