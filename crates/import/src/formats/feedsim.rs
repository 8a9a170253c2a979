//! FeedSim: its table of trials (`feedsim_results.txt`, also what `plimsoll rank` prints), and the lines of its search.
//!
//! The last trial is the result. Its driver counts a time from the send.

use crate::error::ImportError;
use crate::imported::{Counts, Imported, Times, TimesOf};
use crate::reading::{COUNT_MAX, count, number, whole};
use std::io::BufRead;

const HEAD: &str = "duration_secs,total_queries,requested_qps,achieved_qps,total_bytes_rx,total_bytes_tx,\
                    rx_MBps,tx_MBps,min_ms,avg_ms,50p_ms,90p_ms,95p_ms,99p_ms,99.9p_ms";

fn begun(exact_to: &str) -> Imported {
    Imported {
        tool: "FeedSim".to_owned(),
        times_from: "the send: the driver waits for a free connection before it sends".to_owned(),
        times_of: TimesOf::All,
        exact_to: exact_to.to_owned(),
        ..Imported::default()
    }
}

/// Reads the table.
pub fn table(input: &mut dyn BufRead) -> Result<Imported, ImportError> {
    let text = whole(input)?;
    let mut last = None;
    let mut trials = 0u32;
    let mut head = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with("duration_secs,") {
            if line != HEAD {
                return Err(ImportError::line(index as u64 + 1, format!("expected '{HEAD}'")));
            }
            head = true;
            continue;
        }
        if line.is_empty() || !head {
            continue;
        }
        let row: Vec<f64> = line
            .split(',')
            .map_while(|field| field.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0))
            .collect();
        // A row that is cut in its last figure has as many of them; all have three decimals there.
        let last_figure = line.rsplit(',').next().and_then(|figure| figure.split_once('.'));
        let is_cut =
            !text.ends_with('\n') && last_figure.is_none_or(|(_, digits)| digits.len() < 3);
        if row.len() != 15 || (is_cut && text.trim_end().ends_with(line)) {
            return Err(ImportError::line(
                index as u64 + 1,
                format!(
                    "{} of 15 whole figures; the row is cut or damaged",
                    row.len() - usize::from(row.len() == 15)
                ),
            ));
        }
        trials += 1;
        last = Some(row);
    }
    let row = last.ok_or_else(|| ImportError::lacks("FeedSim", "row of figures"))?;
    let mut imported = begun("3 decimals; cells of the driver's histogram are 10 % wide");
    imported.duration_s = (row[3] > 0.0).then(|| row[1] / row[3]);
    imported.offered_per_s = (row[2] > 0.0).then_some(row[2]);
    imported.achieved_per_s = Some(row[3]);
    imported.bytes_received = Some(row[4] as u64);
    imported.bytes_sent = Some(row[5] as u64);
    let queries = (row[1] as u64).min(COUNT_MAX);
    // The driver counts no error.
    imported.counts = Counts { sent: Some(queries), ..Counts::default() };
    imported.settings.insert("trials in the file".to_owned(), trials.to_string());
    imported.settings.insert("duration_secs of the trial".to_owned(), row[0].to_string());
    if row[2] <= 0.0 {
        imported.settings.insert("rate".to_owned(), "as fast as possible".to_owned());
    }
    let mut times =
        Times { count: Some(queries), min: Some(row[8]), mean: Some(row[9]), ..Times::default() };
    for (percentile, index) in [(50.0, 10), (90.0, 11), (95.0, 12), (99.0, 13), (99.9, 14)] {
        times.put(percentile, row[index]);
        imported.percentiles.push((percentile, row[index]));
    }
    if queries > 0 {
        imported.service = times;
    }
    if trials > 1 {
        imported.warnings.push(format!(
            "of {trials} trials the figures are those of the last, which is FeedSim's result"
        ));
    }
    Ok(imported)
}

/// Reads the lines of a search: `final requested_qps = 24, measured_qps = 24, latency = 910.8`.
pub fn log(input: &mut dyn BufRead) -> Result<Imported, ImportError> {
    let text = whole(input)?;
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("requested_qps = ")).collect();
    let last =
        lines.last().ok_or_else(|| ImportError::lacks("FeedSim", "line 'requested_qps ='"))?;
    if !last.contains("final requested_qps") {
        return Err(ImportError::lacks("FeedSim", "line 'final requested_qps ='"));
    }
    let figure = |name: &str| {
        let (_, rest) = last.split_once(&format!("{name} = "))?;
        number(rest)
    };
    let figures = (figure("requested_qps"), figure("measured_qps"), figure("latency"));
    let (Some(requested), Some(measured), Some(latency)) = figures else {
        return Err(ImportError::Form(format!(
            "expected 'final requested_qps = N, measured_qps = N, latency = N', found '{}'",
            last.trim()
        )));
    };
    let mut imported = begun("printed digits, ms");
    imported.offered_per_s = (requested > 0.0).then_some(requested);
    imported.achieved_per_s = Some(measured);
    // `Searching for QPS where 95p latency <= 500 msec`.
    let limit = text.split_once("Searching for QPS where ").map(|(_, rest)| rest);
    match limit.and_then(|rest| rest.split_once("p latency <= ")) {
        Some((percentile, rest)) => {
            if let Ok(percentile) = percentile.trim().parse::<f64>() {
                imported.service.put(percentile, latency);
                imported.percentiles.push((percentile, latency));
            }
            if let Some(ms) = count(rest) {
                imported.settings.insert("limit".to_owned(), format!("{percentile}p {ms} ms"));
            }
        }
        None => {
            imported.settings.insert("latency".to_owned(), format!("{latency} ms"));
            imported.warnings.push(
                "which percentile the latency is, the file does not say (no line 'Searching for QPS where')"
                    .to_owned(),
            );
        }
    }
    imported.settings.insert("trials in the file".to_owned(), lines.len().to_string());
    Ok(imported)
}
