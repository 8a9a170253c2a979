//! The summary of vespa-fbench, and of `plimsoll fbench`, which prints the same lines.
//!
//! vespa-fbench counts a request without any answer as successful. Where the table of statuses shows such requests, they are
//! failed here.

use crate::error::ImportError;
use crate::imported::{Counts, Imported, Times, TimesOf};
use crate::reading::{count, field, number, whole};
use std::collections::BTreeMap;
use std::io::BufRead;

/// Reads a summary; of several, as `-p` prints them, the last.
pub fn parse(input: &mut dyn BufRead) -> Result<Imported, ImportError> {
    let whole = whole(input)?;
    let start = whole.rfind("Benchmark Summary").unwrap_or(0);
    let text = &whole[start..];
    let lacks = |what: &str| ImportError::lacks("vespa-fbench", what);
    let get = |label: &str| field(text, label).and_then(number);
    let ok = field(text, "successful requests:").and_then(count);
    let ok = ok.ok_or_else(|| lacks("line 'successful requests:'"))?;
    let failed = field(text, "failed requests:").and_then(count);
    let failed = failed.ok_or_else(|| lacks("line 'failed requests:'"))?;
    let rate = get("actual query rate:").ok_or_else(|| lacks("line 'actual query rate:'"))?;
    let is_ours = whole.contains("*** plimsoll: ");
    let mut imported = Imported {
        tool: if is_ours { "plimsoll fbench" } else { "vespa-fbench" }.to_owned(),
        times_from: "the send, with the time for a connection that must be opened".to_owned(),
        times_of: TimesOf::All,
        exact_to: "0.1 ms up to 10.24 s, cells of vespa-fbench's histogram; above that estimated"
            .to_owned(),
        ok_per_s: Some(rate),
        ..Imported::default()
    };
    for (label, name) in [
        ("clients:", "clients"),
        ("cycle time:", "cycle time"),
        ("lower response limit:", "lower response limit"),
        ("utilization:", "utilization"),
        ("connection reuse count --", "requests on a kept connection"),
        // What was asked for: a run that ends earlier prints the same.
        ("ran for:", "asked to run for"),
    ] {
        if let Some(value) = field(text, label) {
            imported.settings.insert(name.to_owned(), value.to_owned());
        }
    }
    // The rate is that of the clients' mean time: successes by rate is what they took.
    imported.duration_s = (rate > 0.0 && ok > 0).then(|| ok as f64 / rate);
    counts(&mut imported, text, ok, failed);
    imported.service = times(text, ok, &mut imported.percentiles);
    imported.rates_from_counts();
    Ok(imported)
}

fn counts(imported: &mut Imported, text: &str, ok: u64, failed: u64) {
    let statuses = statuses(text);
    let bad: u64 =
        statuses.iter().filter(|(status, _)| !(200..400).contains(*status)).map(|(_, n)| n).sum();
    let answered: u64 = statuses.values().sum();
    // vespa-fbench takes any answer, and none, for a success; plimsoll does not.
    let hidden = bad.saturating_sub(failed).min(ok);
    if hidden > 0 {
        imported.warnings.push(format!(
            "{hidden} of the 'successful requests' had no answer or another status than 2xx and 3xx; \
             vespa-fbench counts them as successful, and their times are among the others"
        ));
        imported.ok_per_s = imported.ok_per_s.map(|rate| rate * (ok - hidden) as f64 / ok as f64);
    }
    imported.counts = Counts::ended(ok - hidden, failed.saturating_add(hidden));
    for (status, many) in statuses.iter().filter(|(status, _)| !(200..400).contains(*status)) {
        let words = match status {
            0 => "no answer".to_owned(),
            status => format!("status {status}"),
        };
        imported.failures.insert(words, *many);
    }
    if answered > 0 {
        imported.statuses = Some(statuses.into_iter().filter(|(status, _)| *status != 0).collect());
    }
}

/// Lines `       200 :    75463 ` below `http request status breakdown:`.
fn statuses(text: &str) -> BTreeMap<u16, u64> {
    let (_, part) = text.split_once("http request status breakdown:").unwrap_or_default();
    let line = |line: &str| {
        let (status, many) = line.split_once(" : ")?;
        Some((status.trim().parse::<u16>().ok()?, count(many)?))
    };
    part.lines()
        .map_while(|text| if text.trim().is_empty() { Some(None) } else { line(text).map(Some) })
        .flatten()
        .collect()
}

fn times(text: &str, ok: u64, percentiles: &mut Vec<(f64, f64)>) -> Times {
    if ok == 0 {
        return Times::default();
    }
    let get = |label: &str| field(text, label).and_then(number);
    let mut times = Times {
        count: Some(ok),
        min: get("minimum response time:"),
        mean: get("average response time:"),
        max: get("maximum response time:"),
        ..Times::default()
    };
    // `99.5 percentile:              6.70 ms`; older ones have one blank, `95 percentile:`.
    for line in text.lines() {
        let Some((percentile, ms)) = line.split_once("percentile:") else { continue };
        let Ok(percentile) = percentile.trim().parse::<f64>() else { continue };
        if let Some(ms) = number(ms).filter(|_| (0.0..=100.0).contains(&percentile)) {
            times.put(percentile, ms);
            percentiles.push((percentile, ms));
        }
    }
    times
}
