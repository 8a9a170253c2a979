//! The figures of a run that a comparison and a history look at, under the names that `--fail-on` knows.

use crate::number::{bytes, percent, samples_needed, significant, time};
use plimsoll_core::histogram::LatencySummary;
use plimsoll_decide::rule::{Better, better};
use plimsoll_record::RunRecord;
use serde::Serialize;

/// Unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Unit {
    /// Per second.
    #[serde(rename = "1/s")]
    PerS,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Ms,
    /// A share, 0 to 1.
    #[serde(rename = "share")]
    Share,
    /// Bytes per second.
    #[serde(rename = "bytes/s")]
    BytesPerS,
    /// Microseconds of CPU time.
    #[serde(rename = "us")]
    CpuUs,
}

impl Unit {
    /// Returns the value as people read it, with its unit.
    #[must_use]
    pub fn shown(self, value: f64) -> String {
        match self {
            Self::PerS => format!("{}/s", significant(value)),
            Self::Ms => time(value),
            Self::Share => percent(value),
            Self::BytesPerS => format!("{}/s", bytes(value)),
            Self::CpuUs => format!("{} us", significant(value)),
        }
    }
}

/// A figure of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Name of the metric, one of [`plimsoll_decide::rule::METRICS`].
    pub metric: &'static str,
    /// The part of the run that it is of, such as a cell of a matrix; empty for the run as a whole.
    pub of: String,
    /// The value, in `unit`.
    pub value: f64,
    /// Its unit.
    pub unit: Unit,
    /// Events and trials of a share, which has a spread of its own.
    pub counts: Option<[u64; 2]>,
}

impl Figure {
    /// Returns a figure of the whole run.
    #[must_use]
    pub const fn new(metric: &'static str, unit: Unit, value: f64) -> Self {
        Self { metric, of: String::new(), value, unit, counts: None }
    }

    /// Makes it one of a part of the run.
    #[must_use]
    pub fn of(mut self, part: &str) -> Self {
        part.clone_into(&mut self.of);
        self
    }

    /// Returns the direction in which it is better.
    #[must_use]
    pub fn better(&self) -> Better {
        better(self.metric).unwrap_or(Better::Lower)
    }

    /// Returns true if `other` is the same figure of another run.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.metric == other.metric && self.of == other.of
    }

    /// Returns the logarithm of the value, and the variance that counting adds to it. A share is counted with half an event more,
    /// so that one without an event has a logarithm too. `None` for a value that is not above 0 otherwise.
    #[must_use]
    pub fn log(&self) -> Option<(f64, f64)> {
        if let Some([events, trials]) = self.counts {
            let events = events as f64 + 0.5;
            return Some(((events / (trials as f64 + 1.0)).ln(), 1.0 / events));
        }
        (self.value > 0.0 && self.value.is_finite()).then(|| (self.value.ln(), 0.0))
    }
}

/// Returns the name of a figure: its metric and the part of the run that it is of, empty for the whole run.
#[must_use]
pub fn name(metric: &str, of: &str) -> String {
    if of.is_empty() { metric.to_owned() } else { format!("{metric} {of}") }
}

/// Returns the figures of a load: rate, response times, errors, and CPU time of the target.
#[must_use]
pub fn of_load(record: &RunRecord) -> Vec<Figure> {
    let rate = record.known("rate.ok_per_s", record.rate.ok_per_s);
    let rate = rate.map(|rate| Figure::new("rate", Unit::PerS, rate));
    let mut figures: Vec<Figure> = rate.into_iter().collect();
    let has_response = record.is_known("latency_ms.response");
    let (kind, own) = match has_response {
        true => ("response", &record.latency_ms.response),
        false => ("service", &record.latency_ms.service),
    };
    let is_told = |field: &str| record.is_known(&format!("latency_ms.{kind}.{field}"));
    let is_import = record.job_results.import().is_some();
    let told =
        times(own, is_import).into_iter().filter(|one| is_told(&one.metric.replace('.', "_")));
    figures.extend(told);
    figures.extend(errors(record));
    figures.extend(cpu(record));
    figures
}

/// Returns the percentiles of a summary, as far as it has enough samples. `is_printed`: another tool printed them, from however few.
#[must_use]
pub fn times(times: &LatencySummary, is_printed: bool) -> Vec<Figure> {
    let points = [
        ("mean", times.mean),
        ("p50", times.p50),
        ("p90", times.p90),
        ("p95", times.p95),
        ("p99", times.p99),
        ("p99.9", times.p99_9),
        ("max", times.max),
    ];
    let is_shown = |name: &str| is_printed || times.count >= samples_needed(name).max(1);
    let shown = points.into_iter().filter(|(name, _)| is_shown(name));
    shown.map(|(name, value)| Figure::new(name, Unit::Ms, value)).collect()
}

/// Returns the share of the requests sent that failed; `None` if none was sent, or their number is not known.
#[must_use]
pub fn errors(record: &RunRecord) -> Option<Figure> {
    let sent = record.known("ledger.sent", record.ledger.sent).filter(|sent| *sent > 0)?;
    let failed = match record.job_results.import() {
        Some(import) => import.failed?,
        None => record.ledger.failed.total(),
    };
    let share = Figure::new("errors", Unit::Share, failed as f64 / sent as f64);
    Some(Figure { counts: Some([failed, sent]), ..share })
}

/// Returns the CPU time of all watched processes of the target for each request that ended, us; `None` if none is watched.
#[must_use]
pub fn cpu(record: &RunRecord) -> Option<Figure> {
    let resources = record.job_results.resources()?;
    let cores: Vec<f64> = resources.targets().filter_map(|one| Some(one.cpu_cores?.mean)).collect();
    let per_s = record.rate.achieved_per_s;
    let cores = (!cores.is_empty() && per_s > 0.0).then(|| cores.iter().sum::<f64>())?;
    Some(Figure::new("cpu", Unit::CpuUs, cores * 1e6 / per_s))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn a_load_has_rate_times_and_errors() {
        let figures = of_load(&samples::good());
        let names: Vec<&str> = figures.iter().map(|one| one.metric).collect();
        // 300 requests are too few for a p99.9.
        assert_eq!(names, ["rate", "mean", "p50", "p90", "p95", "p99", "max", "errors"]);
        assert!(names.iter().all(|name| better(name).is_some()));
        let errors = figures.last().unwrap();
        assert_eq!((errors.value, errors.counts), (0.0, Some([0, 300])));
        let (log, variance) = errors.log().unwrap();
        assert!((log - (0.5f64 / 301.0).ln()).abs() < 1e-12 && variance == 2.0);
    }

    #[test]
    fn values_have_their_unit() {
        assert_eq!(Unit::PerS.shown(1234.5), "1,235/s");
        assert_eq!(Unit::Ms.shown(12.34), "12.3 ms");
        assert_eq!(Unit::Share.shown(0.02), "2.0 %");
        assert_eq!(Unit::BytesPerS.shown(2e6), "2.00 MB/s");
        assert_eq!(Unit::CpuUs.shown(37.25), "37.2 us");
        assert_eq!(Figure::new("rate", Unit::PerS, 0.0).log(), None);
    }
}
