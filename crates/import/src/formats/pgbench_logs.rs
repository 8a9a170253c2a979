//! Logs of pgbench: all transactions (`-l`), and sums a stretch (`--aggregate-interval`).
//!
//! With `--rate`, pgbench counts a time from the scheduled start, and the log has the schedule lag beside it: the difference is
//! the time from the send.

use crate::error::ImportError;
use crate::imported::{Basis, Counts, Imported, Times, TimesOf};
use crate::reading::{COUNT_MAX, Lines, torn_note};
use crate::samples::{End, Sample, Samples};
use crate::seconds::{Ends, Seconds};
use plimsoll_core::outcome::Failure;
use std::io::BufRead;

const FORM: &str = "expected 'client transaction time script epoch us [lag] [retries]'";

/// Reads `pgbench -l`.
pub fn transactions(input: &mut dyn BufRead) -> Result<Imported, ImportError> {
    let mut lines = Lines::new(input);
    let mut samples: Option<(Samples, bool)> = None;
    let mut imported = begun("3 significant digits, of microseconds");
    let (mut skipped, mut torn) = (0u64, None);
    while let Some(line) = lines.next_text()? {
        if line.trim().is_empty() {
            continue;
        }
        let line = line.to_owned();
        let fields: Vec<&str> = line.split_whitespace().collect();
        let number = |index: usize| fields.get(index).and_then(|text| text.parse::<u64>().ok());
        let ends = number(4).zip(number(5)).filter(|(_, us)| *us < 1_000_000);
        let known = (6..=8).contains(&fields.len()) && number(0).is_some() && number(3).is_some();
        let Some((s, us)) = ends.filter(|_| known && is_time(fields[2]) && lines.has_end) else {
            match lines.has_end {
                false => torn = Some(lines.number),
                true => return Err(ImportError::line(lines.number, FORM)),
            }
            continue;
        };
        // The seventh column is the lag, with --rate, or else the number of retries; which, no line tells by itself.
        let lag_us = number(6).filter(|_| fields.len() >= 7);
        let (samples, has_lag) = samples.get_or_insert_with(|| {
            let basis = if lag_us.is_some() { Basis::Response } else { Basis::Service };
            (Samples::new(basis), lag_us.is_some())
        });
        let end = match fields[2] {
            "skipped" => {
                skipped += 1;
                continue;
            }
            words if words.parse::<u64>().is_err() => {
                samples.failure(words);
                End::Failed(Failure::App)
            }
            _ => End::Ok,
        };
        let time_us = number(2).unwrap_or(0);
        let class = format!("script {}", fields[3]);
        samples.add(&Sample {
            class: &class,
            end_ns: Some(s.saturating_mul(1_000_000_000).saturating_add(us * 1_000)),
            time_ns: time_us.saturating_mul(1_000),
            service_ns: lag_us
                .filter(|_| *has_lag)
                .map(|lag| time_us.saturating_sub(lag).saturating_mul(1_000)),
            end,
            status: None,
        });
    }
    let Some((samples, has_lag)) = samples.filter(|(samples, _)| samples.count() > 0) else {
        return Err(ImportError::Form("no transaction in it".to_owned()));
    };
    samples.finish(&mut imported, true);
    imported.counts.unsent = has_lag.then_some(skipped);
    imported.times_from = match has_lag {
        true => "the scheduled start (--rate); without the lag, the send".to_owned(),
        false => "the send".to_owned(),
    };
    if has_lag {
        imported.warnings.push(
            "the seventh column is taken for the schedule lag of --rate; pgbench does not name it"
                .to_owned(),
        );
    }
    imported.warnings.extend(torn.map(torn_note));
    Ok(imported)
}

fn begun(exact_to: &str) -> Imported {
    Imported {
        tool: "pgbench".to_owned(),
        times_of: TimesOf::Successful,
        exact_to: exact_to.to_owned(),
        ..Imported::default()
    }
}

/// The third column: a time in us, or why there is none.
fn is_time(text: &str) -> bool {
    matches!(text, "skipped" | "failed" | "serialization" | "deadlock")
        || text.parse::<u64>().is_ok()
}

/// Sums of an aggregated log.
#[derive(Default)]
struct Sums {
    transactions: u64,
    time_us: f64,
    lag_us: f64,
    min_us: Option<f64>,
    max_us: f64,
    skipped: u64,
    has_skipped: bool,
    failed: u64,
    has_failed: bool,
    first_s: Option<u64>,
    last_s: u64,
    span_s: Option<u64>,
}

/// Reads `pgbench -l --aggregate-interval=N`. Each line has number, sum, sum of squares, least and largest of a stretch, so
/// that there is a mean and no percentile.
pub fn aggregate(input: &mut dyn BufRead) -> Result<Imported, ImportError> {
    let mut lines = Lines::new(input);
    let mut imported = begun("microseconds, a sum for each stretch");
    let (mut sums, mut seconds, mut torn) = (Sums::default(), Seconds::default(), None);
    while let Some(line) = lines.next_text()? {
        if line.trim().is_empty() {
            continue;
        }
        let numbers: Vec<f64> = line
            .split_whitespace()
            .map_while(|word| word.parse::<f64>().ok().filter(|n| (0.0..1e300).contains(n)))
            .collect();
        let is_whole = numbers.len() == line.split_whitespace().count();
        // A cut line may look whole; the one before tells how long it should be.
        let is_epoch = numbers.first().is_some_and(|s| (1e9..1e10).contains(s));
        if !is_whole || !is_epoch || numbers.len() < 6 || !lines.has_end {
            match lines.has_end {
                false => torn = Some(lines.number),
                true => {
                    return Err(ImportError::line(
                        lines.number,
                        "expected 'start transactions sum sum_of_squares min max ...'",
                    ));
                }
            }
            continue;
        }
        sums.add(&numbers, &mut seconds);
    }
    if sums.transactions == 0 {
        return Err(ImportError::Form("no transaction in it".to_owned()));
    }
    imported.warnings.extend(torn.map(torn_note));
    finish(&mut imported, &sums, seconds);
    Ok(imported)
}

impl Sums {
    fn add(&mut self, numbers: &[f64], seconds: &mut Seconds) {
        let at = |index: usize| numbers.get(index).copied().unwrap_or(0.0);
        let (start_s, many) = (at(0) as u64, (at(1) as u64).min(COUNT_MAX));
        if let Some(before) = self.first_s.is_some().then_some(self.last_s) {
            let span = start_s.saturating_sub(before);
            self.span_s = self.span_s.map_or(Some(span), |least| Some(least.min(span)));
        }
        self.first_s.get_or_insert(start_s);
        self.last_s = self.last_s.max(start_s);
        self.transactions = self.transactions.saturating_add(many);
        self.time_us += at(2);
        if many > 0 {
            self.min_us = Some(self.min_us.map_or(at(4), |least| least.min(at(4))));
            self.max_us = self.max_us.max(at(5));
        }
        // Version 15 writes all columns; before, those of the lag need --rate and that of the skipped a latency limit.
        self.lag_us += at(6);
        self.skipped = self.skipped.saturating_add((at(10) as u64).min(COUNT_MAX));
        self.has_skipped |= numbers.len() > 10;
        self.failed = self
            .failed
            .saturating_add((at(13) as u64).min(COUNT_MAX))
            .saturating_add((at(14) as u64).min(COUNT_MAX));
        self.has_failed |= numbers.len() >= 15;
        let ends = Ends { ok: many, ..Ends::default() };
        seconds.count(start_s.saturating_mul(1_000_000_000).saturating_add(500_000_000), &ends);
    }
}

fn finish(imported: &mut Imported, sums: &Sums, mut seconds: Seconds) {
    let failed = sums.has_failed.then_some(sums.failed);
    imported.counts = Counts {
        sent: failed.map(|failed| sums.transactions.saturating_add(failed)),
        ok: Some(sums.transactions),
        failed,
        unsent: sums.has_skipped.then_some(sums.skipped),
        ..Counts::default()
    };
    let times = Times {
        count: Some(sums.transactions),
        min: sums.min_us.map(|us| us / 1e3),
        mean: Some(sums.time_us / sums.transactions as f64 / 1e3),
        max: Some(sums.max_us / 1e3),
        ..Times::default()
    };
    if sums.lag_us > 0.0 {
        imported.times_from = "the scheduled start (--rate)".to_owned();
        imported.response = times;
    } else {
        imported.times_from = "the send".to_owned();
        imported.service = times;
    }
    let Some(first_s) = sums.first_s else { return };
    // Of a single stretch the length is unknown. The first and the last are seldom whole.
    if let Some(span_s) = sums.span_s.filter(|span| *span > 0) {
        let end_s = sums.last_s.saturating_add(span_s);
        imported.started_us = Some(first_s.saturating_mul(1_000_000));
        imported.duration_s = Some((end_s - first_s) as f64);
        imported.warnings.push(format!(
            "the log is of stretches of {span_s} s; the first and the last may be shorter, so that rates are lower bounds"
        ));
        seconds.coarsen_to(span_s);
        seconds
            .close((first_s.saturating_mul(1_000_000_000), end_s.saturating_mul(1_000_000_000)), 1);
        imported.seconds = Some(seconds);
        imported.rates_from_counts();
    }
}
