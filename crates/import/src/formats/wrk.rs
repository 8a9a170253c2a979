//! wrk and wrk2: the text that they print.
//!
//! wrk counts a time from the send and prints four percentiles. wrk2 counts it from the intended start and prints its whole
//! histogram; with `-U` a second one from the send.

use super::hgrm;
use crate::error::ImportError;
use crate::imported::{Counts, Imported, Times, TimesOf};
use crate::reading::{after, bytes, count, field, number, time_ms, whole};
use plimsoll_core::ledger::Failed;
use std::io::BufRead;

/// Reads the output of wrk, or of wrk2.
pub fn parse(input: &mut dyn BufRead, is_wrk2: bool) -> Result<Imported, ImportError> {
    let text = whole(input)?;
    let tool = if is_wrk2 { "wrk2" } else { "wrk" };
    let rate = field(&text, "Requests/sec:").and_then(number);
    let rate = rate.ok_or_else(|| ImportError::lacks(tool, "line 'Requests/sec:'"))?;
    let ended = text.lines().find_map(|line| line.trim().split_once(" requests in "));
    let (replies, rest) = ended.ok_or_else(|| ImportError::lacks(tool, "line 'N requests in'"))?;
    let mut parts = rest.split(',');
    let mut imported = Imported {
        tool: tool.to_owned(),
        duration_s: parts.next().and_then(time_ms).map(|ms| ms / 1e3).filter(|s| *s > 0.0),
        target: after(&text, " test @ ").map(str::to_owned),
        times_of: TimesOf::All,
        achieved_per_s: Some(rate),
        bytes_received: parts.next().and_then(bytes).map(|b| b.round() as u64),
        ..Imported::default()
    };
    settings(&mut imported, &text);
    let replies = count(replies).ok_or_else(|| ImportError::lacks(tool, "number of requests"))?;
    counts(&mut imported, &text, replies);
    if imported.counts.failed == Some(0) {
        imported.ok_per_s = Some(rate);
    }
    match is_wrk2 {
        true => wrk2_times(&mut imported, &text)?,
        false => wrk_times(&mut imported, &text, replies),
    }
    imported.warn_of_mixed_times();
    imported.rates_from_counts();
    Ok(imported)
}

/// `2 threads and 8 connections`.
fn settings(imported: &mut Imported, text: &str) {
    let line = text.lines().find_map(|line| line.trim().split_once(" threads and "));
    if let Some((threads, connections)) = line {
        let connections = connections.trim_end_matches(" connections");
        imported.settings.insert("threads".to_owned(), threads.to_owned());
        imported.settings.insert("connections".to_owned(), connections.to_owned());
    }
}

/// Replies with a status that is no success, and socket errors, are printed only if there are some.
fn counts(imported: &mut Imported, text: &str, replies: u64) {
    let status = field(text, "Non-2xx or 3xx responses:").and_then(count).unwrap_or(0);
    let errors = field(text, "Socket errors:").unwrap_or_default();
    let error = |kind: &str| {
        let part = errors.split(',').find_map(|part| part.trim().strip_prefix(kind));
        part.and_then(count).unwrap_or(0)
    };
    let kinds = Failed {
        status,
        connect: error("connect"),
        reset: error("read") + error("write"),
        timeout: error("timeout"),
        ..Failed::default()
    };
    // A reply after the timeout is counted among both, so that what was sent is unknown then.
    let failed = kinds.total();
    let is_clear = kinds.timeout == 0;
    imported.counts = Counts {
        sent: is_clear.then_some(replies + failed - status),
        ok: Some(replies.saturating_sub(status)),
        failed: Some(failed),
        kinds: Some(kinds),
        ..Counts::default()
    };
    for (words, many) in [
        ("status other than 2xx or 3xx", status),
        ("socket error: connect", kinds.connect),
        ("socket error: read", error("read")),
        ("socket error: write", error("write")),
        ("timeout", kinds.timeout),
    ] {
        if many > 0 {
            imported.failures.insert(words.to_owned(), many);
        }
    }
}

fn wrk_times(imported: &mut Imported, text: &str, replies: u64) {
    imported.times_from =
        "the send; a reply slower than the timeout (2 s) is in no time".to_owned();
    imported.exact_to =
        "printed digits of a histogram of whole microseconds; wrk adds times that it did not measure \
         for requests that a slow reply held up"
            .to_owned();
    let times = &mut imported.service;
    times.count = (replies > 0).then_some(replies);
    spread(times, text);
    for (percentile, ms) in percentiles(text) {
        times.put(percentile, ms);
        imported.percentiles.push((percentile, ms));
    }
}

/// Mean and maximum of the line `Latency  122.66us  275.90us  5.97ms  98.03%`.
fn spread(times: &mut Times, text: &str) {
    let line = field(text, "Latency ").filter(|line| !line.starts_with("Distribution"));
    let mut words = line.unwrap_or_default().split_whitespace();
    times.mean = words.next().and_then(time_ms);
    times.max = words.nth(1).and_then(time_ms);
}

/// Lines ` 99%    1.36ms`.
fn percentiles(text: &str) -> Vec<(f64, f64)> {
    let line = |line: &str| {
        let (percentile, time) = line.trim().split_once('%')?;
        let percentile: f64 = percentile.trim().parse().ok()?;
        Some((percentile, time_ms(time)?))
    };
    text.lines().filter_map(line).filter(|(p, _)| (0.0..=100.0).contains(p)).collect()
}

fn wrk2_times(imported: &mut Imported, text: &str) -> Result<(), ImportError> {
    imported.times_from = "the intended start, in the schedule of its connection; \
                           requests of the first 10 s, the calibration, are in no time"
        .to_owned();
    imported.exact_to =
        "lines of the printed spectrum; whole microseconds, 3 significant digits".to_owned();
    let uncorrected = text.find("HdrHistogram - Uncorrected");
    let (corrected, sent) = text.split_at(uncorrected.unwrap_or(text.len()));
    if corrected.contains("Detailed Percentile spectrum") {
        imported.response = hgrm::distribution(corrected, 1e6, imported)?;
    } else {
        spread(&mut imported.response, text);
        imported.exact_to = "printed digits; use wrk2 --latency for the whole histogram".to_owned();
    }
    imported.percentiles = percentiles(corrected.split("Detailed").next().unwrap_or_default());
    for &(percentile, ms) in &imported.percentiles {
        imported.response.put(percentile, ms);
    }
    if uncorrected.is_some() && sent.contains("Detailed Percentile spectrum") {
        imported.service = hgrm::distribution(sent, 1e6, imported)?;
    }
    if imported.response.is_unknown() {
        imported.warnings.push(
            "the file has no time: wrk2 measures none in its first 10 s, the calibration"
                .to_owned(),
        );
    }
    Ok(())
}
