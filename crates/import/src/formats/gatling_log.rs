//! Gatling's simulation.log as text: version 2.3, and 3.0 to 3.11. From 3.12 on it is binary.
//!
//! A line of a request has changed: user and scenario have gone. The words `OK` and `KO` behind two times have stayed, and
//! the name and the groups before them.

use crate::error::ImportError;
use crate::imported::{Basis, Imported};
use crate::reading::{Lines, torn_note};
use crate::samples::{End, Sample, Samples};
use plimsoll_core::outcome::Failure;
use std::io::BufRead;

/// Reads a log.
pub fn parse(input: &mut dyn BufRead) -> Result<Imported, ImportError> {
    let mut lines = Lines::new(input);
    let mut samples = Samples::new(Basis::Service);
    let mut imported = Imported {
        tool: "Gatling".to_owned(),
        times_from: "the send, with the time for a connection that must be opened".to_owned(),
        exact_to: "whole milliseconds".to_owned(),
        below_ms: Some(1.0),
        ..Imported::default()
    };
    let (mut users, mut errors, mut torn, mut has_run) = (0u64, 0u64, None, false);
    while let Some(line) = lines.next_text()? {
        let line = line.to_owned();
        let fields: Vec<&str> = line.split('\t').collect();
        match fields[0] {
            "RUN" => {
                has_run = true;
                run(&mut imported, &fields);
            }
            "REQUEST" => match request(&fields) {
                Some(found) => add(&mut samples, &found),
                None if !lines.has_end => torn = Some(lines.number),
                None => {
                    let form = "expected 'REQUEST, groups, name, start, end, OK or KO, message', separated by tabs";
                    return Err(ImportError::line(lines.number, form));
                }
            },
            "USER" => users += u64::from(fields.contains(&"START")),
            "ERROR" => errors += 1,
            "GROUP" | "ASSERTION" | "" => {}
            _ if !lines.has_end => torn = Some(lines.number),
            other => {
                let word: String = other.chars().take(20).collect();
                let form = format!("expected RUN, USER, REQUEST, GROUP or ERROR, found '{word}'");
                return Err(ImportError::line(lines.number, form));
            }
        }
    }
    if samples.count() == 0 {
        return Err(ImportError::Form("no request in it".to_owned()));
    }
    if !has_run {
        imported.warnings.push("no line RUN: the log has lost its beginning".to_owned());
    }
    if errors > 0 {
        imported.warnings.push(format!("{errors} lines ERROR: requests that could not be made"));
    }
    imported.settings.insert("users".to_owned(), users.to_string());
    imported.warnings.extend(torn.map(torn_note));
    samples.finish(&mut imported, true);
    Ok(imported)
}

/// `RUN, class of the simulation, id, start, description, version`; 2.3 has two ids.
fn run(imported: &mut Imported, fields: &[&str]) {
    if let Some(simulation) = fields.get(1) {
        imported.settings.insert("simulation".to_owned(), (*simulation).to_owned());
    }
    let is_start = |text: &&str| text.len() == 13 && text.bytes().all(|b| b.is_ascii_digit());
    let start = fields.iter().position(is_start).unwrap_or(3);
    if let Some(description) = fields.get(start + 1).filter(|text| !text.trim().is_empty()) {
        imported.settings.insert("description".to_owned(), (*description).to_owned());
    }
    let version = fields.get(start + 2).map(|text| text.trim());
    imported.tool_version = version.filter(|text| !text.is_empty()).map(str::to_owned);
}

/// A request of a log.
struct Request {
    name: String,
    start_ms: u64,
    end_ms: u64,
    is_ok: bool,
    message: String,
}

fn request(fields: &[&str]) -> Option<Request> {
    // A name may be `OK` as well: the word counts that stands behind two times.
    let number = |index: usize| fields.get(index).and_then(|text| text.parse::<u64>().ok());
    let at = (4..fields.len()).find(|&index| {
        matches!(fields[index], "OK" | "KO")
            && number(index - 1).is_some()
            && number(index - 2).is_some()
    })?;
    let (name, groups) = (fields[at - 3], fields.get(at - 4).filter(|_| at > 4));
    // Before the groups there is the user's number, which is no group.
    let groups = groups.filter(|groups| !groups.trim().is_empty());
    let name = match groups {
        Some(groups) => format!("{} / {name}", groups.replace(',', " / ")),
        None => name.to_owned(),
    };
    let message = fields[at + 1..].join(" ").trim().to_owned();
    Some(Request {
        name,
        start_ms: number(at - 2)?,
        end_ms: number(at - 1)?,
        is_ok: fields[at] == "OK",
        message,
    })
}

fn add(samples: &mut Samples, request: &Request) {
    let end = match request.is_ok {
        true => End::Ok,
        false => {
            samples.failure(if request.message.is_empty() { "KO" } else { &request.message });
            kind(&request.message).map_or(End::FailedSomehow, End::Failed)
        }
    };
    samples.add(&Sample {
        class: &request.name,
        end_ns: Some(request.end_ms.saturating_mul(1_000_000)),
        time_ns: request.end_ms.saturating_sub(request.start_ms).saturating_mul(1_000_000),
        service_ns: None,
        end,
        status: None,
    });
}

/// The kind of a failure, where its message tells.
fn kind(message: &str) -> Option<Failure> {
    let has = |words: &[&str]| words.iter().any(|word| message.contains(word));
    Some(if message.starts_with("status.find") {
        Failure::Status
    } else if has(&[".find", ".findAll", ".exists", "substring(", "regex("]) {
        Failure::Check
    } else if has(&["ConnectTimeout", "ConnectException", "Connection refused", "UnknownHost"]) {
        Failure::Connect
    } else if has(&["Request timeout", "TimeoutException", "timed out"]) {
        Failure::Timeout
    } else if has(&["SSL", "SslHandshake"]) {
        Failure::Tls
    } else if has(&["Connection reset", "Premature close", "ClosedChannel"]) {
        Failure::Reset
    } else {
        return None;
    })
}
