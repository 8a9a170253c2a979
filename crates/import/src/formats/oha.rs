//! oha: its text and its JSON.
//!
//! Neither of them tells whether oha had `--latency-correction`, which counts from the intended start.

use crate::error::ImportError;
use crate::imported::{Counts, Imported, Times, TimesOf};
use crate::reading::{count, field, json_count, json_number, number, time_ms, whole, whole_json};
use plimsoll_core::ledger::Failed;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::BufRead;

/// An empty import of oha.
fn begun(exact_to: &str) -> Imported {
    Imported {
        tool: "oha".to_owned(),
        times_from: "the send, unless oha had --latency-correction, which the file does not say"
            .to_owned(),
        times_of: TimesOf::All,
        exact_to: exact_to.to_owned(),
        ..Imported::default()
    }
}

/// Reads the text of oha.
pub fn text(input: &mut dyn BufRead) -> Result<Imported, ImportError> {
    let text = whole(input)?;
    let rate = field(&text, "Requests/sec:").and_then(number);
    let rate = rate.ok_or_else(|| ImportError::lacks("oha", "line 'Requests/sec:'"))?;
    field(&text, "Success rate:")
        .ok_or_else(|| ImportError::lacks("oha", "line 'Success rate:'"))?;
    let (_, statuses) = text
        .split_once("Status code distribution:")
        .ok_or_else(|| ImportError::lacks("oha", "part 'Status code distribution:'"))?;
    let (statuses, errors) = statuses.split_once("Error distribution:").unwrap_or((statuses, ""));
    let bracketed = |line: &str| {
        let (inner, rest) = line.trim().strip_prefix('[')?.split_once(']')?;
        Some((inner.trim().to_owned(), rest.trim().to_owned()))
    };
    let status = |line: &str| {
        let (status, replies) = bracketed(line)?;
        Some((status.split(' ').next()?.parse::<u16>().ok()?, count(&replies)?))
    };
    let error = |line: &str| {
        let (many, words) = bracketed(line)?;
        Some((words, count(&many)?))
    };
    let mut imported = begun("the printed digits");
    let statuses: BTreeMap<u16, u64> = statuses.lines().filter_map(status).collect();
    let errors: BTreeMap<String, u64> = errors.lines().filter_map(error).collect();
    imported.duration_s = field(&text, "Total:").and_then(time_ms).map(|ms| ms / 1e3);
    finish(&mut imported, statuses, errors, rate);
    let line = |line: &str| {
        let (percentile, time) = line.trim().split_once("% in ")?;
        Some((percentile.parse::<f64>().ok()?, time_ms(time)?))
    };
    let point = |label: &str| field(&text, label).and_then(time_ms);
    let times = [point("Fastest:"), point("Average:"), point("Slowest:")];
    set_times(&mut imported, times, text.lines().filter_map(line).collect());
    Ok(imported)
}

/// Reads the JSON of oha.
pub fn json(input: &mut dyn BufRead) -> Result<Imported, ImportError> {
    let value = whole_json(input)?;
    let summary =
        value.get("summary").ok_or_else(|| ImportError::lacks("oha", "object 'summary'"))?;
    let figure = |name: &str| json_number(summary.get(name));
    let rate = figure("requestsPerSec")
        .ok_or_else(|| ImportError::lacks("oha", "figure 'summary.requestsPerSec'"))?;
    let mut imported = begun("nanoseconds, of all requests");
    let statuses = entries(value.get("statusCodeDistribution"))
        .filter_map(|(status, many)| Some((status.parse::<u16>().ok()?, many)))
        .collect();
    let errors = entries(value.get("errorDistribution")).collect();
    imported.duration_s = figure("total");
    finish(&mut imported, statuses, errors, rate);
    let ms = |name: &str| figure(name).map(|s| s * 1e3);
    let percentiles = value.get("latencyPercentiles").and_then(Value::as_object);
    let percentile = |(name, seconds): (&String, &Value)| {
        let percentile = name.strip_prefix('p')?.parse::<f64>().ok()?;
        Some((percentile, json_number(Some(seconds))? * 1e3))
    };
    let percentiles = percentiles.into_iter().flatten().filter_map(percentile).collect();
    set_times(&mut imported, [ms("fastest"), ms("average"), ms("slowest")], percentiles);
    Ok(imported)
}

fn entries(object: Option<&Value>) -> impl Iterator<Item = (String, u64)> + '_ {
    let fields = object.and_then(Value::as_object).into_iter().flatten();
    fields.filter_map(|(name, many)| Some((name.clone(), json_count(Some(many))?)))
}

fn finish(
    imported: &mut Imported,
    statuses: BTreeMap<u16, u64>,
    errors: BTreeMap<String, u64>,
    rate: f64,
) {
    let replies: u64 = statuses.values().sum();
    let bad: u64 = statuses.iter().filter(|(status, _)| **status >= 400).map(|(_, n)| n).sum();
    // `aborted due to deadline`: in flight when the time was over.
    let is_cut = |words: &str| words.contains("aborted due to deadline");
    let cut: u64 = errors.iter().filter(|(words, _)| is_cut(words)).map(|(_, n)| n).sum();
    let lost: u64 = errors.values().sum::<u64>() - cut;
    let failed = bad.saturating_add(lost);
    let ok = replies.saturating_sub(bad);
    imported.counts = Counts {
        sent: Some(ok.saturating_add(failed).saturating_add(cut)),
        unfinished: Some(cut),
        kinds: (lost == 0).then(|| Failed { status: bad, ..Failed::default() }),
        ..Counts::ended(ok, failed)
    };
    for (status, many) in statuses.iter().filter(|(status, _)| **status >= 400) {
        imported.failures.insert(format!("status {status}"), *many);
    }
    imported.failures.extend(errors.into_iter().filter(|(words, _)| !is_cut(words)));
    imported.achieved_per_s = Some(rate);
    if failed == 0 {
        imported.ok_per_s = Some(rate);
    }
    imported.statuses = Some(statuses);
    imported.rates_from_counts();
}

fn set_times(imported: &mut Imported, points: [Option<f64>; 3], percentiles: Vec<(f64, f64)>) {
    let replies: u64 = imported.statuses.iter().flat_map(BTreeMap::values).sum();
    if replies == 0 {
        return;
    }
    let [min, mean, max] = points;
    imported.service = Times { count: Some(replies), min, mean, max, ..Times::default() };
    for &(percentile, ms) in &percentiles {
        imported.service.put(percentile, ms);
    }
    imported.percentiles = percentiles;
    imported.warn_of_mixed_times();
}
