//! pgbench: the text that it prints. Its mean is the only time; its log (`-l`) has all of them.

use crate::error::ImportError;
use crate::imported::{Counts, Imported, Times, TimesOf};
use crate::reading::{count, field, number, time_ms, whole};
use std::io::BufRead;

/// Reads the output of pgbench.
pub fn parse(input: &mut dyn BufRead) -> Result<Imported, ImportError> {
    let text = whole(input)?;
    let lacks = |what: &str| ImportError::lacks("pgbench", what);
    let done = field(&text, "number of transactions actually processed:").and_then(count);
    let done = done.ok_or_else(|| lacks("line 'number of transactions actually processed:'"))?;
    let tps = text.lines().find_map(|line| {
        let rate = line.strip_prefix("tps = ")?;
        (!rate.contains("including connections")).then(|| number(rate)).flatten()
    });
    let tps = tps.ok_or_else(|| lacks("line 'tps ='"))?;
    let lag = field(&text, "rate limit schedule lag:");
    let mut imported = Imported {
        tool: "pgbench".to_owned(),
        // `pgbench (15.18 (Debian 15.18-0+deb12u1))`; before version 14 it prints none.
        tool_version: field(&text, "pgbench (")
            .and_then(|rest| rest.split([' ', ')']).next())
            .map(str::to_owned),
        duration_s: field(&text, "duration:").and_then(time_ms).map(|ms| ms / 1e3),
        times_of: TimesOf::Successful,
        exact_to: "printed digits: microseconds".to_owned(),
        ok_per_s: Some(tps),
        ..Imported::default()
    };
    for (label, name) in [
        ("transaction type:", "transaction type"),
        ("scaling factor:", "scaling factor"),
        ("query mode:", "query mode"),
        ("number of clients:", "clients"),
        ("number of threads:", "threads"),
    ] {
        if let Some(value) = field(&text, label) {
            imported.settings.insert(name.to_owned(), value.to_owned());
        }
    }
    counts(&mut imported, &text, done);
    let mean = field(&text, "latency average =").and_then(time_ms);
    let times = Times { count: Some(done), mean: mean.filter(|_| done > 0), ..Times::default() };
    if let Some(lag) = lag {
        // `avg 0.235 (max 4.642) ms`: pgbench's own delay and the wait for the client before are one figure.
        imported.settings.insert("schedule lag".to_owned(), lag.to_owned());
        imported.times_from = "the scheduled start (--rate)".to_owned();
        imported.response = times;
    } else {
        imported.times_from = "the send".to_owned();
        imported.service = times;
    }
    imported.rates_from_counts();
    Ok(imported)
}

fn counts(imported: &mut Imported, text: &str, done: u64) {
    let printed = |label: &str| field(text, label).and_then(count);
    let failed = printed("number of failed transactions:");
    let skipped = printed("number of transactions skipped:");
    imported.counts = Counts {
        sent: failed.map(|failed| done.saturating_add(failed)),
        ok: Some(done),
        failed,
        unsent: skipped,
        ..Counts::default()
    };
    for (label, words) in [
        ("number of serialization failures:", "serialization failure"),
        ("number of deadlock failures:", "deadlock"),
        ("number of transactions above the", "above the latency limit (not counted as failed)"),
    ] {
        let value = field(text, label).map(|rest| rest.rsplit(": ").next().unwrap_or(rest));
        if let Some(many) = value.and_then(count).filter(|many| *many > 0) {
            imported.failures.insert(words.to_owned(), many);
        }
    }
    if let Some(aborted) = text.lines().find(|line| line.contains("Run was aborted")) {
        imported.warnings.push(aborted.trim_start_matches("pgbench: ").to_owned());
    }
}
