//! h2load: the text that it prints. It prints shortest, longest and mean time, and no percentile.

use crate::error::ImportError;
use crate::imported::{Counts, Imported, Times, TimesOf};
use crate::reading::{bytes, count, field, number, time_ms, whole};
use std::collections::BTreeMap;
use std::io::BufRead;

/// Reads the output of h2load.
pub fn parse(input: &mut dyn BufRead) -> Result<Imported, ImportError> {
    let text = whole(input)?;
    let lacks = |what: &str| ImportError::lacks("h2load", what);
    let finished = field(&text, "finished in ").ok_or_else(|| lacks("line 'finished in'"))?;
    let requests = field(&text, "requests:").ok_or_else(|| lacks("line 'requests:'"))?;
    let codes = field(&text, "status codes:").ok_or_else(|| lacks("line 'status codes:'"))?;
    let mut parts = finished.split(',');
    let duration_s = parts.next().and_then(time_ms).map(|ms| ms / 1e3);
    let rate = parts.next().and_then(number);
    let mut imported = Imported {
        tool: "h2load".to_owned(),
        duration_s,
        times_from: "the send".to_owned(),
        times_of: TimesOf::All,
        exact_to: "printed digits, of microseconds; h2load keeps a sample of the times".to_owned(),
        achieved_per_s: rate,
        ..Imported::default()
    };
    counts(&mut imported, requests, codes)
        .ok_or_else(|| lacks("counts in the line 'requests:'"))?;
    if imported.counts.failed == Some(0) {
        imported.ok_per_s = rate;
    }
    // Of a test for a time, the rate is that of its main part, and the length that of all.
    if let Some(warmup) = text.split_once("Timing-based test with ").map(|(_, rest)| rest) {
        let warmup = warmup.split_whitespace().next().unwrap_or_default();
        imported.settings.insert("warm-up".to_owned(), warmup.to_owned());
        let main = text.split_once(" warm-up time and ").map_or("", |(_, rest)| rest);
        imported.duration_s = main.split_whitespace().next().and_then(time_ms).map(|ms| ms / 1e3);
    }
    // `traffic: 721.87KB (739196) total, ...`.
    let traffic = field(&text, "traffic:").unwrap_or_default();
    let exact = traffic.split_once('(').and_then(|(_, rest)| count(rest));
    imported.bytes_received = exact.or_else(|| bytes(traffic).map(|b| b.round() as u64));
    if let Some(protocol) = field(&text, "Application protocol:") {
        imported.settings.insert("protocol".to_owned(), protocol.to_owned());
    }
    imported.service =
        times(&text, imported.counts.ok.unwrap_or(0) + imported.counts.failed.unwrap_or(0));
    imported.warn_of_mixed_times();
    imported.rates_from_counts();
    Ok(imported)
}

/// `1000 total, 1000 started, 1000 done, 1000 succeeded, 0 failed, 0 errored, 0 timeout`.
fn counts(imported: &mut Imported, requests: &str, codes: &str) -> Option<()> {
    let parts: BTreeMap<&str, u64> = requests
        .split(',')
        .filter_map(|part| {
            let (many, word) = part.trim().split_once(' ')?;
            Some((word, count(many)?))
        })
        .collect();
    let get = |word: &str| parts.get(word).copied();
    let (started, done) = (get("started")?, get("done")?);
    let (ok, failed) = (get("succeeded")?, get("failed")?);
    imported.counts = Counts {
        sent: Some(started),
        unfinished: Some(started.saturating_sub(done)),
        ..Counts::ended(ok, failed)
    };
    for word in ["failed", "errored", "timeout"] {
        if let Some(many) = get(word).filter(|many| *many > 0) {
            imported.failures.insert(word.to_owned(), many);
        }
    }
    // `1000 2xx, 0 3xx, 0 4xx, 0 5xx`: the codes themselves it does not give.
    for part in codes.split(',') {
        if let Some((many, class @ ("4xx" | "5xx"))) = part.trim().split_once(' ')
            && let Some(many) = count(many).filter(|many| *many > 0)
        {
            imported.failures.insert(format!("status {class}"), many);
        }
    }
    Some(())
}

/// `time for request:       41us       603us       298us        94us    76.20%`: min, max, mean, sd.
fn times(text: &str, ended: u64) -> Times {
    let line = field(text, "time for request:").unwrap_or_default();
    let points: Vec<f64> = line.split_whitespace().map_while(time_ms).collect();
    match points.as_slice() {
        [min, max, mean, ..] if ended > 0 => Times {
            count: Some(ended),
            min: Some(*min),
            mean: Some(*mean),
            max: Some(*max),
            ..Times::default()
        },
        _ => Times::default(),
    }
}
