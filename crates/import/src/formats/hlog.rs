//! Interval logs of HdrHistogram: one histogram a line, with or without a tag.
//!
//! The log does not say what its values are, nor their unit. Where it has a divisor for the column of the largest value, that
//! column is in milliseconds by convention, and the unit follows.

use super::{Options, hdr};
use crate::error::ImportError;
use crate::imported::{Basis, Class, Counts, Imported, Times, TimesOf};
use crate::reading::{Lines, torn_note};
use crate::samples::CLASSES_MAX;
use crate::seconds::{CELLS_MAX, Ends, Kind, Seconds};
use plimsoll_core::histogram::Histogram;
use plimsoll_report::number::count;
use std::io::BufRead;

const FORM: &str =
    "expected 'start,length,largest,histogram' or 'Tag=NAME,start,length,largest,histogram'";

/// A line of the log.
struct Row<'a> {
    tag: &'a str,
    start_s: f64,
    length_s: f64,
    encoded: &'a str,
}

/// The log so far.
struct Log {
    names: Vec<String>,
    classes: Vec<Histogram>,
    seconds: Seconds,
    start_time_s: Option<f64>,
    base_time_s: Option<f64>,
    divisor: Option<f64>,
    /// The comment that names the times: plimsoll writes `response times in nanoseconds`.
    says: String,
    bounds_s: Option<(f64, f64)>,
    longest_s: f64,
    torn: Option<u64>,
}

/// Reads a log.
pub fn parse(input: &mut dyn BufRead, options: &Options) -> Result<Imported, ImportError> {
    let mut lines = Lines::new(input);
    let mut log = Log {
        names: Vec::new(),
        classes: Vec::new(),
        seconds: Seconds::default(),
        start_time_s: None,
        base_time_s: None,
        divisor: None,
        says: String::new(),
        bounds_s: None,
        longest_s: 0.0,
        torn: None,
    };
    while let Some(line) = lines.next_text()? {
        if let Some(comment) = line.strip_prefix('#') {
            log.comment(comment);
        } else if line.starts_with('"') || line.trim().is_empty() {
            // The line of the columns' names.
        } else {
            let read = row(line).and_then(|row| log.add(&row, options));
            match read {
                Ok(()) if log.seconds.is_full() => {
                    let most = count(CELLS_MAX as u64);
                    let problem = format!(
                        "an interval has more than {most} different times up to here; import a part of the tags at a time"
                    );
                    return Err(ImportError::line(lines.number, problem));
                }
                Ok(()) => {}
                Err(_) if !lines.has_end => log.torn = Some(lines.number),
                Err(problem) => return Err(ImportError::line(lines.number, problem)),
            }
        }
    }
    for kind in ["lag", "failed"] {
        if log.says.contains(&format!(": {kind} times")) {
            return Err(ImportError::Form(format!(
                "a log of {kind} times; import service.hlog or response.hlog of the run instead"
            )));
        }
    }
    if log.classes.is_empty() {
        return Err(ImportError::Form("no histogram in it".to_owned()));
    }
    Ok(log.finish(options))
}

/// `Tag=NAME,start,length,largest,histogram`.
fn row(line: &str) -> Result<Row<'_>, String> {
    let wrong = || FORM.to_owned();
    let (tag, rest) = match line.strip_prefix("Tag=") {
        Some(rest) => rest.split_once(',').ok_or_else(wrong)?,
        None => ("", line),
    };
    let fields: Vec<&str> = rest.split(',').collect();
    let [start, length, _, encoded] = fields.as_slice() else { return Err(wrong()) };
    let number = |text: &str| {
        let value = text.trim().parse::<f64>().ok();
        value.filter(|n| n.is_finite() && (0.0..1e11).contains(n))
    };
    let (start_s, length_s) = number(start).zip(number(length)).ok_or_else(wrong)?;
    Ok(Row { tag, start_s, length_s, encoded: encoded.trim() })
}

impl Log {
    fn comment(&mut self, text: &str) {
        let seconds = |label: &str| {
            let (_, rest) = text.split_once(label)?;
            let value = rest.trim().split([' ', ']']).next()?.parse::<f64>().ok()?;
            (value.is_finite() && value >= 0.0).then_some(value)
        };
        self.start_time_s = seconds("[StartTime:").or(self.start_time_s);
        self.base_time_s = seconds("[BaseTime:").or(self.base_time_s);
        self.divisor = seconds("[MaxValueDivisor:").filter(|d| *d > 0.0).or(self.divisor);
        if text.contains(" times in nanoseconds") {
            self.says = text.trim().to_owned();
        }
    }

    /// Nanoseconds of one unit of the values.
    fn unit_ns(&self, options: &Options) -> f64 {
        let told = options.unit_ns.or_else(|| (!self.says.is_empty()).then_some(1.0));
        told.unwrap_or_else(|| self.divisor.map_or(1.0, |divisor| 1e6 / divisor))
    }

    fn add(&mut self, row: &Row<'_>, options: &Options) -> Result<(), String> {
        let unit_ns = self.unit_ns(options);
        let class = self.class(row.tag);
        // Without a base the starts count from the log's own, or from the Unix epoch if they are that large.
        let zero_s = match self.base_time_s.or(self.start_time_s) {
            Some(zero_s) if row.start_s < zero_s / 2.0 => zero_s,
            _ => 0.0,
        };
        let (from_s, to_s) = (zero_s + row.start_s, zero_s + row.start_s + row.length_s);
        let at_ns = ((from_s + row.length_s / 2.0) * 1e9) as u64;
        let (classes, seconds) = (&mut self.classes, &mut self.seconds);
        let mut count = 0u64;
        hdr::decode(row.encoded, &mut |value, many| {
            let value_ns = (value as f64 * unit_ns).round() as u64;
            classes[class].record_many(value_ns, many);
            seconds.time(at_ns, class, Kind::Service, value_ns, many);
            count = count.saturating_add(many);
        })?;
        seconds.count(at_ns, &Ends { class, ok: count, ..Ends::default() });
        self.longest_s = self.longest_s.max(row.length_s);
        let bounds = self.bounds_s.get_or_insert((from_s, to_s));
        *bounds = (bounds.0.min(from_s), bounds.1.max(to_s));
        Ok(())
    }

    fn class(&mut self, tag: &str) -> usize {
        let full =
            self.names.len() + 1 >= CLASSES_MAX && !self.names.iter().any(|name| name == tag);
        let tag = if full { "(others)" } else { tag };
        if let Some(index) = self.names.iter().position(|name| name == tag) {
            return index;
        }
        self.names.push(tag.to_owned());
        self.classes.push(Histogram::new());
        self.names.len() - 1
    }

    /// True if the times are known to be from the intended start.
    fn basis(&self) -> Basis {
        if self.says.contains(": response times") { Basis::Response } else { Basis::Service }
    }

    fn finish(mut self, options: &Options) -> Imported {
        let mut imported = Imported {
            tool: if self.says.starts_with("plimsoll") { "plimsoll" } else { "HdrHistogram" }
                .to_owned(),
            // Beside its record, plimsoll keeps the times of successful requests.
            times_of: match self.says.starts_with("plimsoll") {
                true => TimesOf::Successful,
                false => TimesOf::All,
            },
            exact_to: "3 significant digits".to_owned(),
            times_from: match (self.basis(), self.says.is_empty()) {
                (Basis::Response, _) => "the intended start".to_owned(),
                (Basis::Service, false) => "the send".to_owned(),
                (Basis::Service, true) => {
                    "a moment that the file does not name; taken for the send".to_owned()
                }
            },
            ..Imported::default()
        };
        self.warn(&mut imported, options);
        let (from_s, to_s) = self.bounds_s.unwrap_or((0.0, 0.0));
        imported.duration_s = Some(to_s - from_s).filter(|s| *s > 0.0);
        // Times of the clock begin in 2001.
        imported.started_us = (from_s > 1e9).then_some((from_s * 1e6) as u64);
        self.seconds.coarsen_to(self.longest_s.round() as u64);
        self.seconds.close(((from_s * 1e9) as u64, (to_s * 1e9) as u64), self.classes.len());
        if self.basis() == Basis::Response {
            self.seconds.take_service_for_response();
        }
        imported.seconds = Some(self.seconds.clone()).filter(|_| imported.duration_s.is_some());
        let mut all = Histogram::new();
        self.classes.iter().for_each(|histogram| all.merge(histogram));
        let basis = self.basis();
        let split = |histogram: Histogram| match basis {
            Basis::Response => (Times::of(histogram), Times::default()),
            Basis::Service => (Times::default(), Times::of(histogram)),
        };

        imported.achieved_per_s = imported.duration_s.map(|s| all.count() as f64 / s);
        // A histogram has times; whether a request succeeded it does not say.
        imported.counts = Counts::default();
        (imported.response, imported.service) = split(all);
        if self.names.iter().any(|name| !name.is_empty()) {
            for (name, histogram) in self.names.into_iter().zip(self.classes) {
                let name = if name.is_empty() { "(no tag)".to_owned() } else { name };
                let (response, service) = split(histogram);
                imported.classes.push(Class { name, response, service, ..Class::default() });
            }
        }
        imported
    }

    fn warn(&self, imported: &mut Imported, options: &Options) {
        if options.unit_ns.is_none() && self.says.is_empty() {
            imported.warnings.push(match self.divisor {
                Some(divisor) => format!(
                    "the unit of the values is taken from the divisor {divisor} of the log, by which they \
                     become milliseconds (--unit ns, us, ms or s)"
                ),
                None => "the file does not give its unit; values are taken for nanoseconds (--unit ns, us, ms or s)"
                    .to_owned(),
            });
        }
        imported.warnings.extend(self.torn.map(torn_note));
    }
}
