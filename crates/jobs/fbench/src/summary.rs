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

use plimsoll_record::RunRecord;
use plimsoll_record::fbench::FbenchResult;
use plimsoll_report::text::{self, Style};
use std::fmt::Write as _;
use std::path::Path;

/// The summary, from the keep-alive statistics to the last status line.
#[must_use]
pub fn summary(result: &FbenchResult) -> String {
    let mut out = String::new();
    if result.keepalive {
        out.push_str("*** HTTP keep-alive statistics ***\n");
        let _ = writeln!(out, "connection reuse count -- {}", result.reuse_count);
    }
    out.push_str("***************** Benchmark Summary *****************\n");
    let mut count = |label: &str, value: &dyn std::fmt::Display, unit: &str| {
        let _ = writeln!(out, "{label:<24}{value:>8}{unit}");
    };
    count("clients:", &result.clients, "");
    count("ran for:", &result.ran_for_s, " seconds");
    count("cycle time:", &result.cycle_ms, " ms");
    count("lower response limit:", &result.lower_limit_bytes, " bytes");
    count("skipped requests:", &result.skipped, "");
    count("failed requests:", &result.failed, "");
    count("successful requests:", &result.ok, "");
    count("cycles not held:", &result.cycles_not_held, "");
    let mut real = |label: &str, value: f64, unit: &str| {
        let _ = writeln!(out, "{label:<24}{value:>8.2}{unit}");
    };
    real("minimum response time:", result.min_ms, " ms");
    real("maximum response time:", result.max_ms, " ms");
    real("average response time:", result.avg_ms, " ms");
    for point in &result.percentiles {
        let label = percentile_label(point.percentile);
        let _ = writeln!(out, "{label:<26}{:>8.2} ms", point.ms);
    }
    let mut real = |label: &str, value: f64, unit: &str| {
        let _ = writeln!(out, "{label:<24}{value:>8.2}{unit}");
    };
    real("actual query rate:", result.rate_per_s, " Q/s");
    real("utilization:", result.utilization_pct, " %");
    let _ = writeln!(out, "{:<24}{:>8}", "zero hit queries:", result.zero_hits);
    let _ = writeln!(out, "{:<24}{:>8.2} %", "zero hit percentage:", result.zero_hit_pct);
    out.push_str("http request status breakdown:\n");
    for (status, count) in &result.statuses {
        let _ = writeln!(out, "  {status:>8} : {count:>8} ");
    }
    out
}

/// `25  ` with two blanks up to 99, `99.5` with one: the original's two formats.
fn percentile_label(percentile: f64) -> String {
    if percentile.fract() == 0.0 {
        format!("{percentile:>2}   percentile:")
    } else {
        format!("{percentile:>2.1} percentile:")
    }
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
    let block = text::figures(record, folder, style);
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
    use crate::result_filter::numbers::number_after_colon;
    use plimsoll_core::interval::Interval;
    use plimsoll_record::fbench::{FbenchOptions, FbenchSums, PERCENTILES, Percentile};
    use std::collections::BTreeMap;

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
        assert_eq!(summary(&golden_result()), GOLDEN);
    }

    #[test]
    fn without_keep_alive_its_statistics_are_left_out() {
        let result = FbenchResult { keepalive: false, ..golden_result() };
        let expected = GOLDEN.split_once("*****************").unwrap().1;
        assert_eq!(summary(&result), format!("*****************{expected}"));
    }

    #[test]
    fn the_own_block_has_no_number_that_the_originals_filter_takes() {
        let style = Style { verbose: true, ..Style::default() };
        let own = own_block(&plimsoll_report::samples::good(), None, &style);
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
        let summary = summary(&result);
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
