//! Results of vegeta, one line a request, as `vegeta encode` writes them: JSON, or CSV without a head.

use super::vegeta::FROM;
use crate::error::ImportError;
use crate::imported::{Basis, Imported};
use crate::reading::{Lines, rfc3339_ns, torn_note};
use crate::samples::{End, Sample, Samples};
use plimsoll_core::outcome::Failure;
use serde::Deserialize;
use std::borrow::Cow;
use std::io::BufRead;

/// One request; bodies and headers are skipped.
#[derive(Deserialize)]
struct Row<'a> {
    #[serde(borrow, default)]
    attack: Cow<'a, str>,
    code: u16,
    timestamp: Cow<'a, str>,
    latency: u64,
    #[serde(borrow, default)]
    error: Cow<'a, str>,
    #[serde(borrow, default)]
    url: Cow<'a, str>,
}

/// Reads the results.
pub fn parse(input: &mut dyn BufRead) -> Result<Imported, ImportError> {
    let first = input.fill_buf()?.iter().find(|b| !b.is_ascii_whitespace()).copied();
    let mut samples = Samples::new(Basis::Service);
    let mut imported = Imported {
        tool: "vegeta".to_owned(),
        times_from: FROM.to_owned(),
        exact_to: "3 significant digits, of nanoseconds".to_owned(),
        ..Imported::default()
    };
    if first == Some(b'{') {
        json_lines(input, &mut samples, &mut imported)?;
    } else {
        csv_rows(input, &mut samples, &mut imported)?;
    }
    if samples.count() == 0 {
        return Err(ImportError::Form("no request in it".to_owned()));
    }
    samples.finish(&mut imported, true);
    Ok(imported)
}

fn json_lines(
    input: &mut dyn BufRead,
    samples: &mut Samples,
    imported: &mut Imported,
) -> Result<(), ImportError> {
    let mut lines = Lines::new(input);
    let mut torn = None;
    while let Some(line) = lines.next()? {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        match serde_json::from_slice::<Row<'_>>(line) {
            Ok(row) => {
                let start_ns = rfc3339_ns(&row.timestamp);
                add(samples, imported, &row, start_ns);
            }
            Err(error) => {
                let problem = format!("not a result of vegeta: {error}");
                if lines.has_end {
                    return Err(ImportError::line(lines.number, problem));
                }
                torn = Some(lines.number);
            }
        }
    }
    imported.warnings.extend(torn.map(torn_note));
    Ok(())
}

fn csv_rows(
    input: &mut dyn BufRead,
    samples: &mut Samples,
    imported: &mut Imported,
) -> Result<(), ImportError> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(input);
    let mut record = csv::ByteRecord::new();
    let mut damaged: Option<u64> = None;
    // Versions have 6 to 12 columns, and a file has as many in all of its rows.
    let mut columns = None;
    while reader
        .read_byte_record(&mut record)
        .map_err(|error| ImportError::Form(format!("not CSV: {error}")))?
    {
        // Only the last row may be cut.
        if let Some(line) = damaged {
            return Err(ImportError::line(line, "not a result of vegeta as CSV (12 columns)"));
        }
        let text = |index: usize| String::from_utf8_lossy(record.get(index).unwrap_or_default());
        let figures = text(0).parse::<u64>().ok().zip(text(1).parse::<u16>().ok());
        let figures = figures.zip(text(2).parse::<u64>().ok());
        match figures {
            Some(((start_ns, code), latency))
                if record.len() >= *columns.get_or_insert(record.len().max(6)) =>
            {
                let row = Row {
                    attack: text(7),
                    code,
                    timestamp: Cow::Borrowed(""),
                    latency,
                    error: text(5),
                    url: text(10),
                };
                add(samples, imported, &row, Some(start_ns));
            }
            _ => damaged = Some(record.position().map_or(0, csv::Position::line)),
        }
    }
    imported.warnings.extend(damaged.map(torn_note));
    Ok(())
}

fn add(samples: &mut Samples, imported: &mut Imported, row: &Row<'_>, start_ns: Option<u64>) {
    if imported.target.is_none() && !row.url.is_empty() {
        imported.target = Some(row.url.to_string());
    }
    if !row.attack.is_empty() {
        imported.settings.entry("attack".to_owned()).or_insert_with(|| row.attack.to_string());
    }
    let end = match row.code {
        200..400 => End::Ok,
        0 => End::Failed(without_reply(&row.error)),
        _ => End::Failed(Failure::Status),
    };
    if end != End::Ok {
        let words = match row.code {
            0 => row.error.to_string(),
            status => format!("status {status}"),
        };
        samples.failure(&words);
    }
    samples.add(&Sample {
        class: &row.url,
        end_ns: start_ns.map(|start_ns| start_ns.saturating_add(row.latency)),
        time_ns: row.latency,
        service_ns: None,
        end,
        status: (row.code != 0).then_some(row.code),
    });
}

/// The kind of an error of Go's client.
fn without_reply(error: &str) -> Failure {
    let has = |word: &str| error.contains(word);
    if has("Client.Timeout") || has("timeout") || has("deadline exceeded") {
        Failure::Timeout
    } else if has("tls:") || has("x509:") {
        Failure::Tls
    } else if has("dial ") || has("connection refused") || has("no such host") {
        Failure::Connect
    } else if has("unexpected EOF") {
        Failure::Short
    } else if has("malformed") {
        Failure::Protocol
    } else {
        Failure::Reset
    }
}
