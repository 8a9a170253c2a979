//! Tables of all requests that hey (`-o csv`) and oha (`--output-format csv`) write, one row a request.

use crate::error::ImportError;
use crate::imported::{Basis, Imported};
use crate::reading::{Lines, torn_note};
use crate::samples::{End, Sample, Samples};
use plimsoll_core::outcome::Failure;
use std::io::BufRead;

/// Columns of a table.
struct Columns {
    tool: &'static str,
    head: &'static str,
    /// Start of a request since the first one, s.
    start: usize,
    /// Its time, s.
    time: usize,
    status: usize,
}

/// Reads `hey -o csv`.
pub fn hey(input: &mut dyn BufRead) -> Result<Imported, ImportError> {
    let columns = Columns {
        tool: "hey",
        head: "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset",
        start: 7,
        time: 0,
        status: 6,
    };
    let mut imported = table(input, &columns)?;
    imported.times_from = "the send, with the time for a connection that must be opened".to_owned();
    imported.exact_to = "0.1 ms, the digits of the file".to_owned();
    imported.below_ms = Some(0.05);
    imported.warnings.push("hey writes no row for a request without a reply".to_owned());
    Ok(imported)
}

/// Reads `oha --output-format csv`.
pub fn oha(input: &mut dyn BufRead) -> Result<Imported, ImportError> {
    let columns = Columns {
        tool: "oha",
        head: "request-start,DNS,DNS+dialup,Response-delay,request-duration,bytes,status",
        start: 0,
        time: 4,
        status: 6,
    };
    let mut imported = table(input, &columns)?;
    imported.times_from =
        "the send, unless oha had --latency-correction, which the file does not say".to_owned();
    imported.exact_to = "3 significant digits, of nanoseconds".to_owned();
    imported.warnings.push("oha writes no row for a request without a reply".to_owned());
    Ok(imported)
}

fn table(input: &mut dyn BufRead, columns: &Columns) -> Result<Imported, ImportError> {
    let mut lines = Lines::new(input);
    let first = lines.next_text()?.unwrap_or_default().to_owned();
    if first != columns.head {
        return Err(ImportError::line(1, format!("expected '{}'", columns.head)));
    }
    let mut samples = Samples::new(Basis::Service);
    let mut imported = Imported { tool: columns.tool.to_owned(), ..Imported::default() };
    let mut torn = None;
    while let Some(line) = lines.next_text()? {
        if line.trim().is_empty() {
            continue;
        }
        let width = columns.head.split(',').count();
        let is_whole = line.split(',').count() == width;
        // The last figure of a line without an end may be cut as well.
        let row = row(line, columns).filter(|_| is_whole);
        match row.filter(|_| lines.has_end) {
            Some((start_s, time_s, status)) => {
                let time_ns = (time_s * 1e9).round() as u64;
                let end = match status {
                    400.. => End::Failed(Failure::Status),
                    _ => End::Ok,
                };
                if status >= 400 {
                    samples.failure(&format!("status {status}"));
                }
                samples.add(&Sample {
                    class: "",
                    end_ns: Some(((start_s * 1e9).round() as u64).saturating_add(time_ns)),
                    time_ns,
                    service_ns: None,
                    end,
                    status: Some(status),
                });
            }
            _ if !lines.has_end => torn = Some(lines.number),
            _ => {
                return Err(ImportError::line(
                    lines.number,
                    format!("expected '{}'", columns.head),
                ));
            }
        }
    }
    if samples.count() == 0 {
        return Err(ImportError::Form("no request in it".to_owned()));
    }
    imported.warnings.extend(torn.map(torn_note));
    samples.finish(&mut imported, false);
    Ok(imported)
}

/// Start, time and status of a row.
fn row(line: &str, columns: &Columns) -> Option<(f64, f64, u16)> {
    let fields: Vec<&str> = line.split(',').collect();
    let number = |index: usize| {
        let value: f64 = fields.get(index)?.trim().parse().ok()?;
        (value.is_finite() && value >= 0.0).then_some(value)
    };
    let status = fields.get(columns.status)?.trim();
    // oha writes `200` or `200 OK`.
    let status = status.split(' ').next()?.parse().ok()?;
    Some((number(columns.start)?, number(columns.time)?, status))
}
