//! ab (ApacheBench): the text that it prints, in whole milliseconds.

use crate::error::ImportError;
use crate::imported::{Counts, Imported, Times, TimesOf};
use crate::reading::{count, field, number, time_ms, whole};
use plimsoll_core::ledger::Failed;
use std::io::BufRead;

/// Reads the output of ab.
pub fn parse(input: &mut dyn BufRead) -> Result<Imported, ImportError> {
    let text = whole(input)?;
    let lacks = |what: &str| ImportError::lacks("ab", what);
    let complete = field(&text, "Complete requests:").and_then(count);
    let complete = complete.ok_or_else(|| lacks("line 'Complete requests:'"))?;
    let rate = field(&text, "Requests per second:").and_then(number);
    let rate = rate.ok_or_else(|| lacks("line 'Requests per second:'"))?;
    if complete > 0 && !text.contains("Connection Times (ms)") {
        return Err(lacks("table 'Connection Times (ms)'"));
    }
    let mut imported = Imported {
        tool: "ab".to_owned(),
        tool_version: version(&text),
        duration_s: field(&text, "Time taken for tests:").and_then(time_ms).map(|ms| ms / 1e3),
        target: target(&text),
        times_from:
            "the start of connecting: ab opens a connection for each request unless it has -k"
                .to_owned(),
        times_of: TimesOf::All,
        exact_to: "whole milliseconds, rounded: 0 is less than 0.5 ms".to_owned(),
        below_ms: Some(0.5),
        achieved_per_s: Some(rate),
        bytes_received: field(&text, "Total transferred:").and_then(count),
        bytes_sent: field(&text, "Total body sent:").and_then(count),
        ..Imported::default()
    };
    if let Some(clients) = field(&text, "Concurrency Level:") {
        imported.settings.insert("connections".to_owned(), clients.to_owned());
    }
    if let Some(kept) = field(&text, "Keep-Alive requests:") {
        imported.settings.insert("keep-alive requests".to_owned(), kept.to_owned());
    }
    counts(&mut imported, &text, complete);
    if imported.counts.failed == Some(0) {
        imported.ok_per_s = Some(rate);
    }
    imported.service = times(&text, complete, &mut imported.percentiles);
    imported.warn_of_mixed_times();
    imported.rates_from_counts();
    Ok(imported)
}

/// `This is ApacheBench, Version 2.3 <$Revision: 1903618 $>`.
fn version(text: &str) -> Option<String> {
    let line = field(text, "This is ApacheBench, Version ")?;
    line.split_whitespace().next().map(str::to_owned)
}

fn target(text: &str) -> Option<String> {
    let host = field(text, "Server Hostname:")?;
    let port = field(text, "Server Port:")?;
    let path = field(text, "Document Path:").unwrap_or("/");
    let scheme = if text.contains("SSL/TLS Protocol:") { "https" } else { "http" };
    Some(format!("{scheme}://{host}:{port}{path}"))
}

/// A reply of another length than the first is a failed request of ab, and a reply with a status that is no success is not:
/// it can be both, so that their sum is only known if one of them is 0.
fn counts(imported: &mut Imported, text: &str, complete: u64) {
    let failed = field(text, "Failed requests:").and_then(count).unwrap_or(0);
    let status = field(text, "Non-2xx responses:").and_then(count).unwrap_or(0);
    let bad = match (failed, status) {
        (0, bad) | (bad, 0) => Some(bad.min(complete)),
        _ => {
            imported.warnings.push(
                "how many requests failed is unknown: ab counts failed requests and replies with \
                 another status than 2xx apart, and a request can be both"
                    .to_owned(),
            );
            None
        }
    };
    imported.counts = Counts {
        sent: Some(complete),
        ok: bad.map(|bad| complete - bad),
        failed: bad,
        kinds: (failed == 0).then(|| Failed { status, ..Failed::default() }),
        ..Counts::default()
    };
    for (words, many) in [("status other than 2xx", status), ("failed requests", failed)] {
        if many > 0 {
            imported.failures.insert(words.to_owned(), many);
        }
    }
    // `   (Connect: 0, Receive: 0, Length: 12, Exceptions: 0)`.
    let Some(kinds) = field(text, "(Connect:") else { return };
    for part in format!("Connect: {kinds}").trim_end_matches(')').split(',') {
        let Some((kind, many)) = part.trim().split_once(": ") else { continue };
        if let Some(many) = count(many).filter(|many| *many > 0) {
            imported.failures.insert(format!("failed: {kind}"), many);
        }
    }
}

fn times(text: &str, complete: u64, percentiles: &mut Vec<(f64, f64)>) -> Times {
    if complete == 0 {
        return Times::default();
    }
    // `Total:          0    9   7.2      8      49`.
    let line = text.lines().find_map(|line| {
        let numbers: Vec<f64> = line
            .strip_prefix("Total:")?
            .split_whitespace()
            .map_while(|word| word.parse().ok())
            .collect();
        (numbers.len() == 5).then_some(numbers)
    });
    let mut times = Times { count: Some(complete), ..Times::default() };
    if let Some([min, mean, _, median, max]) = line.as_deref() {
        times.min = Some(*min);
        times.mean = Some(*mean);
        times.p50 = Some(*median);
        times.max = Some(*max);
    }
    let (_, part) = text.split_once("served within a certain time (ms)").unwrap_or_default();
    for line in part.lines() {
        let Some((percentile, ms)) = line.trim().split_once('%') else { continue };
        let percentile = percentile.parse::<f64>().ok().filter(|p| (0.0..=100.0).contains(p));
        if let Some((percentile, ms)) = percentile.zip(number(ms)) {
            times.put(percentile, ms);
            percentiles.push((percentile, ms));
        }
    }
    times
}
