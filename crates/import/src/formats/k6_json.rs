//! k6's `--out json`: one object a line, a point of a metric or the definition of one.
//!
//! A request is a point of `http_req_duration`; its time is that of its end.

use super::k6_summary::FROM;
use crate::error::ImportError;
use crate::imported::{Basis, Imported};
use crate::reading::{Lines, rfc3339_ns, torn_note};
use crate::samples::{End, Sample, Samples};
use plimsoll_core::outcome::Failure;
use serde::Deserialize;
use std::borrow::Cow;
use std::io::BufRead;

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    metric: Cow<'a, str>,
    #[serde(borrow)]
    data: Data<'a>,
}

/// A point; a definition has none of the fields.
#[derive(Deserialize)]
struct Data<'a> {
    time: Option<Cow<'a, str>>,
    value: Option<f64>,
    #[serde(borrow, default)]
    tags: Option<Tags<'a>>,
}

#[derive(Default, Deserialize)]
struct Tags<'a> {
    name: Option<Cow<'a, str>>,
    url: Option<Cow<'a, str>>,
    status: Option<Cow<'a, str>>,
    expected_response: Option<Cow<'a, str>>,
    error_code: Option<Cow<'a, str>>,
    error: Option<Cow<'a, str>>,
}

/// Reads the points.
pub fn parse(input: &mut dyn BufRead) -> Result<Imported, ImportError> {
    let mut lines = Lines::new(input);
    let mut samples = Samples::new(Basis::Service);
    let mut imported = Imported {
        tool: "k6".to_owned(),
        times_from: FROM.to_owned(),
        exact_to: "3 significant digits, of nanoseconds".to_owned(),
        ..Imported::default()
    };
    let mut bytes = (0.0f64, 0.0f64);
    let mut torn = None;
    while let Some(text) = lines.next_text()? {
        if text.trim().is_empty() {
            continue;
        }
        // Most lines are points of other metrics.
        let is_wanted = ["http_req_duration", "data_sent", "data_received"]
            .iter()
            .any(|metric| text.contains(metric));
        if !is_wanted && text.starts_with('{') && text.ends_with("}}}") {
            continue;
        }
        let line = match serde_json::from_str::<Line<'_>>(text) {
            Ok(line) => line,
            Err(error) => {
                let problem = format!("not a line of k6: {error}");
                if lines.has_end {
                    return Err(ImportError::line(lines.number, problem));
                }
                torn = Some(lines.number);
                continue;
            }
        };
        if line.kind != "Point" {
            continue;
        }
        let value = line.data.value.filter(|value| value.is_finite() && *value >= 0.0);
        match (line.metric.as_ref(), value) {
            ("http_req_duration", Some(ms)) => add(&mut samples, &mut imported, &line.data, ms),
            ("data_sent", Some(sent)) => bytes.0 += sent,
            ("data_received", Some(received)) => bytes.1 += received,
            _ => {}
        }
    }
    if samples.count() == 0 {
        return Err(ImportError::Form(
            "no point of 'http_req_duration' in it: the test made no HTTP request, or the file is cut".to_owned(),
        ));
    }
    imported.warnings.extend(torn.map(torn_note));
    samples.finish(&mut imported, true);
    imported.bytes_sent = (bytes.0 > 0.0).then_some(bytes.0 as u64);
    imported.bytes_received = (bytes.1 > 0.0).then_some(bytes.1 as u64);
    Ok(imported)
}

fn add(samples: &mut Samples, imported: &mut Imported, data: &Data<'_>, ms: f64) {
    let none = Tags::default();
    let tags = data.tags.as_ref().unwrap_or(&none);
    let status = tags.status.as_ref().and_then(|status| status.parse::<u16>().ok());
    let code = tags.error_code.as_ref().and_then(|code| code.parse::<u32>().ok());
    let is_expected = match tags.expected_response.as_deref() {
        Some(expected) => expected == "true",
        None => code.is_none() && status.is_none_or(|status| (1..400).contains(&status)),
    };
    let end = if is_expected {
        End::Ok
    } else {
        kind(status, code).map_or(End::FailedSomehow, End::Failed)
    };
    if !is_expected {
        let words = match (status, tags.error.as_deref(), code) {
            (Some(status @ 1..), _, _) => format!("status {status}"),
            (_, Some(error), _) => error.to_owned(),
            (_, None, Some(code)) => format!("error code {code}"),
            _ => "failed".to_owned(),
        };
        samples.failure(&words);
    }
    if let (None, Some(url)) = (&imported.target, tags.url.as_ref())
        && url.contains("://")
    {
        imported.target = Some(url.to_string());
    }
    let class = tags.name.as_deref().or(tags.url.as_deref()).unwrap_or_default();
    samples.add(&Sample {
        class,
        end_ns: data.time.as_deref().and_then(rfc3339_ns),
        time_ns: crate::reading::ms_to_ns(ms),
        service_ns: None,
        end,
        status: status.filter(|status| *status > 0),
    });
}

/// The kind of a failure by k6's error code (its documentation, "Error codes").
fn kind(status: Option<u16>, code: Option<u32>) -> Option<Failure> {
    match (status, code) {
        (Some(1..), _) => Some(Failure::Status),
        (_, Some(1050 | 1211)) => Some(Failure::Timeout),
        (_, Some(1100..=1199 | 1200 | 1210 | 1212 | 1213)) => Some(Failure::Connect),
        (_, Some(1201..=1299)) => Some(Failure::Reset),
        (_, Some(1300..=1399)) => Some(Failure::Tls),
        (_, Some(1600..=1699)) => Some(Failure::Protocol),
        _ => None,
    }
}
