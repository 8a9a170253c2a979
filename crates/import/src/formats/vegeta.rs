//! vegeta: its report as text and as JSON.
//!
//! vegeta counts a time from the moment at which a worker takes the request, which is the send: where all workers are busy,
//! the wait before is in no time.

use crate::error::ImportError;
use crate::imported::{Counts, Imported, TimesOf};
use crate::reading::{
    count, field, json_count, json_number, rfc3339_ns, split_number, time_ms, whole, whole_json,
};
use plimsoll_core::ledger::Failed;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::BufRead;

/// The moment from which vegeta counts.
pub const FROM: &str = "the send, when a worker takes the request";

/// Reads `vegeta report`.
pub fn text(input: &mut dyn BufRead) -> Result<Imported, ImportError> {
    let text = whole(input)?;
    let lacks = |what: &str| ImportError::lacks("vegeta", what);
    let row = |label: &str| {
        let line = text.lines().find(|line| line.starts_with(label))?;
        let (_, figures) = line.split_once(']')?;
        Some(figures.split(',').map(|part| part.trim().to_owned()).collect::<Vec<_>>())
    };
    let requests = row("Requests").ok_or_else(|| lacks("line 'Requests'"))?;
    let latencies = row("Latencies").ok_or_else(|| lacks("line 'Latencies'"))?;
    let codes =
        field(&text, "Status Codes  [code:count]").ok_or_else(|| lacks("line 'Status Codes'"))?;
    let sent = requests.first().and_then(|text| count(text));
    let sent = sent.ok_or_else(|| lacks("number of requests"))?;
    let rate = |index: usize| requests.get(index).and_then(|text| Some(split_number(text)?.0));
    let mut imported = begun("nanoseconds, printed to 3 decimals; percentiles of a t-digest");
    imported.achieved_per_s = rate(1);
    imported.ok_per_s = rate(2);
    let duration = row("Duration");
    imported.duration_s =
        duration.as_ref().and_then(|parts| time_ms(parts.first()?)).map(|ms| ms / 1e3);
    let bytes = |label: &str| row(label).and_then(|parts| count(parts.first()?));
    (imported.bytes_received, imported.bytes_sent) = (bytes("Bytes In"), bytes("Bytes Out"));
    body_bytes_only(&mut imported);
    let line = text.lines().find(|line| line.starts_with("Latencies")).unwrap_or_default();
    let names =
        line.split_once('[').and_then(|(_, rest)| rest.split_once(']')).unwrap_or_default().0;
    for (name, time) in names.split(',').zip(&latencies) {
        put(&mut imported, name.trim(), time_ms(time), sent);
    }
    let status = |pair: &str| {
        let (code, many) = pair.split_once(':')?;
        Some((code.parse::<u16>().ok()?, count(many)?))
    };
    let statuses = codes.split_whitespace().filter_map(status).collect();
    let errors = text.split_once("Error Set:").map(|(_, set)| set.lines()).into_iter().flatten();
    let errors: Vec<String> =
        errors.map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect();
    counts(&mut imported, sent, statuses, &errors);
    Ok(imported)
}

/// Reads `vegeta report -type=json`.
pub fn json(input: &mut dyn BufRead) -> Result<Imported, ImportError> {
    let value = whole_json(input)?;
    let lacks = |what: &str| ImportError::lacks("vegeta", what);
    let sent = json_count(value.get("requests")).ok_or_else(|| lacks("figure 'requests'"))?;
    let latencies = value.get("latencies").and_then(Value::as_object);
    let latencies = latencies.ok_or_else(|| lacks("object 'latencies'"))?;
    let codes = value.get("status_codes").and_then(Value::as_object);
    let codes = codes.ok_or_else(|| lacks("object 'status_codes'"))?;
    let mut imported = begun("nanoseconds; percentiles of a t-digest");
    imported.achieved_per_s = json_number(value.get("rate"));
    imported.ok_per_s = json_number(value.get("throughput"));
    let length_ns = json_number(value.get("duration")).zip(json_number(value.get("wait")));
    imported.duration_s = length_ns.map(|(attack, wait)| (attack + wait) / 1e9);
    let earliest = value.get("earliest").and_then(Value::as_str);
    imported.started_us = earliest.and_then(rfc3339_ns).map(|ns| ns / 1_000);
    let bytes = |name: &str| json_count(value.get(name).and_then(|part| part.get("total")));
    (imported.bytes_received, imported.bytes_sent) = (bytes("bytes_in"), bytes("bytes_out"));
    body_bytes_only(&mut imported);
    for (name, time) in latencies {
        let name = name.trim_end_matches("th").trim_end_matches("st");
        put(&mut imported, name, json_number(Some(time)).map(|ns| ns / 1e6), sent);
    }
    let status =
        |(code, many): (&String, &Value)| Some((code.parse().ok()?, json_count(Some(many))?));
    let statuses = codes.iter().filter_map(status).collect();
    let errors = value.get("errors").and_then(Value::as_array).into_iter().flatten();
    let errors: Vec<String> = errors.filter_map(|e| e.as_str().map(str::to_owned)).collect();
    counts(&mut imported, sent, statuses, &errors);
    Ok(imported)
}

fn begun(exact_to: &str) -> Imported {
    Imported {
        tool: "vegeta".to_owned(),
        times_from: FROM.to_owned(),
        times_of: TimesOf::All,
        exact_to: exact_to.to_owned(),
        ..Imported::default()
    }
}

/// vegeta counts bodies; the bytes on the wire, which a record has, it does not give.
fn body_bytes_only(imported: &mut Imported) {
    for (name, bytes) in
        [("body bytes received", imported.bytes_received), ("body bytes sent", imported.bytes_sent)]
    {
        if let Some(bytes) = bytes {
            imported.settings.insert(name.to_owned(), bytes.to_string());
        }
    }
    (imported.bytes_received, imported.bytes_sent) = (None, None);
}

/// Takes one of the latencies by its name in the report.
fn put(imported: &mut Imported, name: &str, ms: Option<f64>, sent: u64) {
    let Some(ms) = ms.filter(|_| sent > 0) else { return };
    let times = &mut imported.service;
    times.count = Some(sent);
    match name {
        "min" => times.min = Some(ms),
        "mean" => times.mean = Some(ms),
        "max" => times.max = Some(ms),
        _ => {
            let Ok(percentile) = name.parse::<f64>() else { return };
            times.put(percentile, ms);
            imported.percentiles.push((percentile, ms));
        }
    }
}

/// A status of 200 to 399 is a success for vegeta; 0 is no reply.
fn counts(imported: &mut Imported, sent: u64, statuses: BTreeMap<u16, u64>, errors: &[String]) {
    let is_ok = |status: u16| (200..400).contains(&status);
    let many = |is: &dyn Fn(u16) -> bool| -> u64 {
        statuses.iter().filter(|(status, _)| is(**status)).map(|(_, n)| n).sum()
    };
    let (ok, lost) = (many(&is_ok), many(&|status| status == 0));
    let bad = many(&|status| status != 0 && !is_ok(status));
    imported.counts = Counts {
        sent: Some(sent),
        ok: Some(ok),
        failed: Some(bad + lost),
        kinds: (lost == 0).then(|| Failed { status: bad, ..Failed::default() }),
        ..Counts::default()
    };
    for (status, many) in statuses.iter().filter(|(status, _)| !is_ok(**status)) {
        let words = match status {
            0 => "no reply".to_owned(),
            status => format!("status {status}"),
        };
        imported.failures.insert(words, *many);
    }
    // The report has each error once, and does not say how often.
    for error in errors.iter().take(5) {
        imported.warnings.push(format!("one of the errors in the report: {error}"));
    }
    imported.statuses = Some(statuses.into_iter().filter(|(status, _)| *status != 0).collect());
    imported.warn_of_mixed_times();
    imported.rates_from_counts();
}
