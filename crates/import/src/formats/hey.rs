//! hey: the text that it prints. It prints seconds with four decimals, so that times are exact to 0.1 ms.

use crate::error::ImportError;
use crate::imported::{Counts, Imported, Times, TimesOf};
use crate::reading::{count, field, number, time_ms, whole};
use plimsoll_core::ledger::Failed;
use std::collections::BTreeMap;
use std::io::BufRead;

/// Reads the output of hey.
pub fn parse(input: &mut dyn BufRead) -> Result<Imported, ImportError> {
    let text = whole(input)?;
    let rate = field(&text, "Requests/sec:").and_then(number);
    let rate = rate.ok_or_else(|| ImportError::lacks("hey", "line 'Requests/sec:'"))?;
    let mut imported = Imported {
        tool: "hey".to_owned(),
        duration_s: field(&text, "Total:").and_then(time_ms).map(|ms| ms / 1e3),
        times_from: "the send, with the time for a connection that must be opened".to_owned(),
        times_of: TimesOf::All,
        exact_to: "0.1 ms, the printed digits".to_owned(),
        below_ms: Some(0.05),
        ..Imported::default()
    };
    if text.contains("Success rate:") {
        return Err(ImportError::Form("output of oha; write --format oha".to_owned()));
    }
    if !text.contains("Status code distribution:") && !text.contains("Error distribution:") {
        return Err(ImportError::lacks("hey", "part 'Status code distribution:'"));
    }
    let statuses = statuses(&text);
    let errors = errors(&text);
    counts(&mut imported, &statuses, &errors);
    imported.achieved_per_s = Some(rate);
    if imported.counts.failed == Some(0) {
        imported.ok_per_s = Some(rate);
    }
    let replies: u64 = statuses.values().sum();
    if replies > 0 {
        imported.service = times(&text, replies, &mut imported.percentiles);
    }
    // The text has the bytes of bodies alone, which are not the bytes on the wire.
    imported.statuses = Some(statuses);
    imported.warn_of_mixed_times();
    imported.rates_from_counts();
    Ok(imported)
}

fn times(text: &str, replies: u64, percentiles: &mut Vec<(f64, f64)>) -> Times {
    let mut times = Times {
        count: Some(replies),
        min: field(text, "Fastest:").and_then(time_ms),
        mean: field(text, "Average:").and_then(time_ms),
        max: field(text, "Slowest:").and_then(time_ms),
        ..Times::default()
    };
    for line in text.lines() {
        let Some((percentile, time)) = line.trim().split_once(" in ") else { continue };
        let percentile = percentile.trim_end_matches('%').parse::<f64>().ok();
        // With few requests hey prints `0%% in 0.0000 secs` for percentiles that it does not have.
        let Some(percentile) = percentile.filter(|p| *p > 0.0 && *p <= 100.0) else { continue };
        if let Some(ms) = time_ms(time) {
            times.put(percentile, ms);
            percentiles.push((percentile, ms));
        }
    }
    times
}

/// Lines `[200] 400 responses` below their heading.
fn statuses(text: &str) -> BTreeMap<u16, u64> {
    let (_, part) = text.split_once("Status code distribution:").unwrap_or_default();
    let part = part.split("Error distribution:").next().unwrap_or_default();
    let line = |line: &str| {
        let (status, replies) = line.trim().strip_prefix('[')?.split_once(']')?;
        Some((status.parse::<u16>().ok()?, count(replies)?))
    };
    part.lines().filter_map(line).collect()
}

/// Lines `[30] Get "http://...": connection refused` below their heading.
fn errors(text: &str) -> Vec<(String, u64)> {
    let (_, part) = text.split_once("Error distribution:").unwrap_or_default();
    let line = |line: &str| {
        let (many, words) = line.trim().strip_prefix('[')?.split_once(']')?;
        Some((words.trim().to_owned(), count(many)?))
    };
    part.lines().filter_map(line).collect()
}

/// A reply with a status of 400 or more has failed, and so has a request with an error.
fn counts(imported: &mut Imported, statuses: &BTreeMap<u16, u64>, errors: &[(String, u64)]) {
    let replies: u64 = statuses.values().sum();
    let bad: u64 = statuses.iter().filter(|(status, _)| **status >= 400).map(|(_, n)| n).sum();
    let lost: u64 = errors.iter().map(|(_, many)| many).sum();
    imported.counts = Counts::ended(replies.saturating_sub(bad), bad.saturating_add(lost));
    if lost == 0 {
        imported.counts.kinds = Some(Failed { status: bad, ..Failed::default() });
    }
    for (status, many) in statuses.iter().filter(|(status, _)| **status >= 400) {
        imported.failures.insert(format!("status {status}"), *many);
    }
    imported.failures.extend(errors.iter().cloned());
}
