//! Tables of ab: percentiles (`-e`), and all requests (`-g`).

use crate::error::ImportError;
use crate::imported::{Basis, Imported, Times, TimesOf};
use crate::reading::{Lines, torn_note, whole};
use crate::samples::{End, Sample, Samples};
use std::io::BufRead;

const FROM: &str =
    "the start of connecting: ab opens a connection for each request unless it has -k";

/// Reads `ab -e FILE`: the percentiles 0 to 100, ms with three decimals.
pub fn percentiles(input: &mut dyn BufRead) -> Result<Imported, ImportError> {
    let text = whole(input)?;
    let mut imported = Imported {
        tool: "ab".to_owned(),
        times_from: FROM.to_owned(),
        times_of: TimesOf::All,
        exact_to: "microseconds, at whole percentiles".to_owned(),
        ..Imported::default()
    };
    let mut times = Times::default();
    for (index, line) in text.lines().enumerate().skip(1) {
        let row = line.split_once(',').and_then(|(percentile, ms)| {
            let percentile: f64 = percentile.trim().parse().ok()?;
            let ms: f64 = ms.trim().parse().ok()?;
            ((0.0..=100.0).contains(&percentile) && ms.is_finite() && ms >= 0.0)
                .then_some((percentile, ms))
        });
        let (percentile, ms) = row.ok_or_else(|| {
            ImportError::line(index as u64 + 1, "expected 'PERCENT,MILLISECONDS'")
        })?;
        if percentile == 0.0 {
            times.min = Some(ms);
        }
        times.put(percentile, ms);
        imported.percentiles.push((percentile, ms));
    }
    if imported.percentiles.last().map(|(percentile, _)| *percentile) != Some(100.0) {
        return Err(ImportError::Form(
            "ends before the 100th percentile, which a whole file of ab -e has; the file is cut"
                .to_owned(),
        ));
    }
    imported.service = times;
    Ok(imported)
}

/// Reads `ab -g FILE`: one line a request, in the order of their times.
pub fn requests(input: &mut dyn BufRead) -> Result<Imported, ImportError> {
    const FORM: &str =
        "expected 'starttime, seconds, ctime, dtime, ttime, wait', separated by tabs";
    let mut lines = Lines::new(input);
    if !lines.next_text()?.unwrap_or_default().starts_with("starttime\tseconds\t") {
        return Err(ImportError::line(1, FORM));
    }
    let mut samples = Samples::new(Basis::Service);
    let mut torn = None;
    while let Some(line) = lines.next_text()? {
        if line.trim().is_empty() {
            continue;
        }
        let fields: Vec<&str> = line.split('\t').collect();
        let number = |index: usize| fields.get(index).and_then(|text| text.parse::<u64>().ok());
        let row = (fields.len() == 6).then(|| number(1).zip(number(4)).zip(number(5))).flatten();
        // The last figure of a line without an end may be cut as well.
        match row.filter(|_| lines.has_end) {
            Some(((start_s, total_ms), _)) => {
                let time_ns = total_ms.saturating_mul(1_000_000);
                samples.add(&Sample {
                    class: "",
                    end_ns: Some(start_s.saturating_mul(1_000_000_000).saturating_add(time_ns)),
                    time_ns,
                    service_ns: None,
                    end: End::Ok,
                    status: None,
                });
            }
            None if !lines.has_end => torn = Some(lines.number),
            None => return Err(ImportError::line(lines.number, FORM)),
        }
    }
    if samples.count() == 0 {
        return Err(ImportError::Form("no request in it".to_owned()));
    }
    let mut imported = Imported {
        tool: "ab".to_owned(),
        times_from: FROM.to_owned(),
        exact_to: "whole milliseconds, rounded: 0 is less than 0.5 ms; starts in whole seconds"
            .to_owned(),
        below_ms: Some(0.5),
        ..Imported::default()
    };
    samples.finish(&mut imported, true);
    // The table has no status: what is in it has ended, and no more is known.
    let replies = imported.counts.ok;
    imported.times_of = TimesOf::All;
    imported.counts = crate::imported::Counts { sent: replies, ..Default::default() };
    (imported.ok_per_s, imported.achieved_per_s) = (None, None);
    imported.failed = Times::default();
    // Starts are whole seconds, so that the length is only known to that.
    if imported.duration_s.is_some_and(|s| s >= 10.0) {
        imported.achieved_per_s = replies.zip(imported.duration_s).map(|(n, s)| n as f64 / s);
    } else {
        imported.duration_s = None;
    }
    for class in &mut imported.classes {
        class.counts = imported.counts;
        class.ok_per_s = None;
        class.failed = Times::default();
    }
    imported.warnings.extend(torn.map(torn_note));
    Ok(imported)
}
