//! What each tool says at its end, read strictly: a figure that is missing is an error, never a zero.

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// One run of one tool.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// Requests that were answered well.
    pub requests: f64,
    /// The same, a second of the measured stretch.
    pub per_s: f64,
    /// CPU time of the generator, s.
    pub cpu_s: f64,
    /// Latency as the tool itself reports it, us: the median and p99. Not a number when it does not.
    pub p50_us: f64,
    /// See `p50_us`.
    pub p99_us: f64,
    /// What only plimsoll reports.
    pub own: Option<Own>,
}

/// Latency parts, us.
#[derive(Clone, Copy, Debug)]
pub struct Own {
    /// Due to last byte, median.
    pub response_p50_us: f64,
    /// Due to last byte, p99.
    pub response_p99_us: f64,
    /// Due to sent, median.
    pub lag_p50_us: f64,
    /// Due to sent, p99.
    pub lag_p99_us: f64,
}

impl Sample {
    /// CPU time of the generator for a request, us.
    pub fn cpu_us(&self) -> f64 {
        self.cpu_s * 1e6 / self.requests
    }
}

/// The word after `label` in the first line that has it.
fn after<'a>(text: &'a str, label: &str) -> Result<&'a str> {
    text.lines()
        .find_map(|line| line.split_once(label))
        .and_then(|(_, rest)| rest.split_whitespace().next())
        .with_context(|| format!("the output has no '{label}'"))
}

/// The word before `label` in the first line that has it.
fn before<'a>(text: &'a str, label: &str) -> Result<&'a str> {
    text.lines()
        .find_map(|line| line.split_once(label))
        .and_then(|(rest, _)| rest.split_whitespace().last())
        .with_context(|| format!("the output has no '{label}'"))
}

fn number(word: &str) -> Result<f64> {
    word.trim_end_matches(',').parse().with_context(|| format!("'{word}' is no number"))
}

/// A time with a unit, in us.
fn microseconds(word: &str) -> Result<f64> {
    for (unit, factor) in [("us", 1.0), ("ms", 1e3), ("s", 1e6)] {
        if let Some(value) = word.strip_suffix(unit) {
            return Ok(number(value)? * factor);
        }
    }
    bail!("'{word}' has no unit of time")
}

/// What `plimsoll load --json -` says.
pub fn plimsoll(text: &str) -> Result<Sample> {
    let record: Value = serde_json::from_str(text).context("plimsoll's record")?;
    let at = |path: &str| -> Result<f64> {
        record.pointer(path).and_then(Value::as_f64).with_context(|| format!("no {path}"))
    };
    let (sent, ok) = (at("/ledger/sent")?, at("/ledger/ok")?);
    if sent != ok || ok == 0.0 {
        bail!("plimsoll: of {sent} requests {ok} were answered well");
    }
    let us = |path: &str| at(path).map(|ms| ms * 1e3);
    Ok(Sample {
        requests: ok,
        per_s: at("/rate/ok_per_s")?,
        cpu_s: 0.0,
        p50_us: us("/latency_ms/service/p50")?,
        p99_us: us("/latency_ms/service/p99")?,
        own: Some(Own {
            response_p50_us: us("/latency_ms/response/p50")?,
            response_p99_us: us("/latency_ms/response/p99")?,
            lag_p50_us: us("/generator/lag_ms/p50")?,
            lag_p99_us: us("/generator/lag_ms/p99")?,
        }),
    })
}

/// What `wrk --latency` says.
pub fn wrk(text: &str) -> Result<Sample> {
    if text.contains("Socket errors") || text.contains("Non-2xx") {
        bail!("wrk had failures:\n{text}");
    }
    Ok(Sample {
        requests: number(before(text, " requests in ")?)?,
        per_s: number(after(text, "Requests/sec:")?)?,
        p50_us: microseconds(after(text, "    50%")?)?,
        p99_us: microseconds(after(text, "    99%")?)?,
        ..Sample::default()
    })
}

/// What `h2load` says; it has no percentiles.
pub fn h2load(text: &str) -> Result<Sample> {
    if number(before(text, " failed,")?)? != 0.0 {
        bail!("h2load had failures:\n{text}");
    }
    Ok(Sample {
        requests: number(before(text, " succeeded,")?)?,
        per_s: number(before(text, " req/s,")?)?,
        p50_us: f64::NAN,
        p99_us: f64::NAN,
        ..Sample::default()
    })
}

/// What `ab` says; its percentiles are whole milliseconds.
pub fn ab(text: &str) -> Result<Sample> {
    if number(after(text, "Failed requests:")?)? != 0.0 || text.contains("Non-2xx") {
        bail!("ab had failures:\n{text}");
    }
    Ok(Sample {
        requests: number(after(text, "Complete requests:")?)?,
        per_s: number(after(text, "Requests per second:")?)?,
        p50_us: number(after(text, "  50%")?)? * 1e3,
        p99_us: number(after(text, "  99%")?)? * 1e3,
        ..Sample::default()
    })
}
