//! Limits that a run must hold, and whether it did.

mod class;

pub use class::ClassSlo;

use crate::judged::{Judged, Point};
use crate::ledger::Ledger;
use crate::record::{Rates, SloResult};
use crate::units::{Rate, Share, Span};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// One limit: `p95=500ms`, `p99.9=2s`, `mean=50ms`, `max=1s`, `errors=0.1%`, `rate=1000`.
///
/// Latencies are response times (from the intended start) of every scheduled request: one that did not succeed is
/// late for every limit ([`crate::judged`]). `errors` is the share of scheduled requests that did not succeed; `rate`
/// is the fewest successful requests per second.
///
/// A number without its unit is refused, since `p95=100` was nearly always meant as 100 ms, and `errors=1` as 1 %. Only
/// `errors=0` can mean one thing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Slo {
    /// The response time that this share (0 to 1) of requests must not exceed.
    Quantile {
        /// Share of requests, 0 to 1.
        quantile: f64,
        /// The limit.
        limit: Span,
    },
    /// The mean response time must not exceed this.
    Mean(Span),
    /// No response time may exceed this.
    Max(Span),
    /// The largest share (0 to 1) of scheduled requests that may fail.
    Errors(f64),
    /// The fewest successful requests per second.
    Rate(f64),
}

/// A limit that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "'{text}' is not a limit: {problem}; write for example p95=500ms, max=2s, errors=0.1% or rate=1000"
)]
pub struct SloError {
    text: String,
    problem: String,
}

impl FromStr for Slo {
    type Err = SloError;

    fn from_str(text: &str) -> Result<Self, SloError> {
        let wrong = |problem: String| SloError { text: text.to_owned(), problem };
        let (name, value) =
            text.split_once('=').ok_or_else(|| wrong("'=' is missing".to_owned()))?;
        let (name, value) = (name.trim(), value.trim());
        let span = || {
            let bare = value.starts_with(|c: char| c.is_ascii_digit() || c == '.');
            if bare && value.parse::<f64>().is_ok() {
                return Err(wrong(format!(
                    "a time needs its unit: {name}={value}ms or {name}={value}s"
                )));
            }
            value.parse::<Span>().map_err(|e| wrong(e.to_string()))
        };
        let number = |text: &str| {
            let number: Option<f64> = text.trim().parse().ok();
            number
                .filter(|n| n.is_finite() && *n >= 0.0)
                .ok_or_else(|| wrong(format!("'{text}' is not a number")))
        };
        match name {
            "mean" | "avg" => span().map(Slo::Mean),
            "max" => span().map(Slo::Max),
            "rate" => {
                let rate = value.parse::<Rate>().map_err(|e| wrong(e.to_string()))?;
                Ok(Slo::Rate(rate.per_s))
            }
            "errors" => {
                let share = match value.strip_suffix('%') {
                    Some(percent) => number(percent)? / 100.0,
                    None => match number(value)? {
                        0.0 => 0.0,
                        _ => return Err(wrong(format!("a share needs its unit: errors={value}%"))),
                    },
                };
                if share > 1.0 {
                    return Err(wrong("a share of errors is at most 100%".to_owned()));
                }
                Ok(Slo::Errors(share))
            }
            _ => {
                let percentile = name
                    .strip_prefix('p')
                    .and_then(|digits| digits.parse::<f64>().ok())
                    .filter(|p| *p > 0.0 && *p <= 100.0)
                    .ok_or_else(|| {
                        wrong(format!("'{name}' is not a percentile, mean, max, errors or rate"))
                    })?;
                Ok(Slo::Quantile { quantile: percentile / 100.0, limit: span()? })
            }
        }
    }
}

impl Slo {
    /// The limit's name: `p95`, `errors` ...
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            // Rounding away what the division by 100 added.
            Slo::Quantile { quantile, .. } => format!("p{}", (quantile * 1e8).round() / 1e6),
            Slo::Mean(_) => "mean".to_owned(),
            Slo::Max(_) => "max".to_owned(),
            Slo::Errors(_) => "errors".to_owned(),
            Slo::Rate(_) => "rate".to_owned(),
        }
    }

    /// Returns whether a run met it. `judged` holds every scheduled request of the stretch ([`crate::judged`]).
    #[must_use]
    pub fn judge(&self, judged: &Judged, ledger: &Ledger, rates: &Rates) -> SloResult {
        let ms = |ns: f64| ns / 1e6;
        let latency = |point: Option<Point>, ok_only_ns: f64, limit: Span, held: bool| {
            let measured_ns = point.map_or(0.0, Point::ns);
            let differs = !judged.lost.is_empty() && !judged.ok.is_empty();
            SloResult {
                limit: limit.to_string(),
                measured: ms(measured_ns),
                unit: "ms".to_owned(),
                held: point.is_some() && held,
                at_least: matches!(point, Some(Point::AtLeast(_))),
                ok_only: differs.then_some(ms(ok_only_ns)).filter(|ok| *ok != ms(measured_ns)),
            }
        };
        let within = |point: Option<Point>, limit: Span| {
            point.is_some_and(|point| point.is_within(limit.ns as f64))
        };
        let plain = |limit: String, measured: f64, unit: &str, held: bool| SloResult {
            limit,
            measured,
            unit: unit.to_owned(),
            held,
            ..SloResult::default()
        };
        match *self {
            Slo::Quantile { quantile, limit } => {
                let point = judged.quantile(quantile);
                let ok_only_ns = judged.ok.quantile_ns(quantile) as f64;
                latency(point, ok_only_ns, limit, within(point, limit))
            }
            Slo::Mean(limit) => {
                let point = judged.mean();
                let held = point.is_some_and(|point| point.ns() <= limit.ns as f64);
                latency(point, judged.ok.mean_ns(), limit, held && !judged.ok.is_empty())
            }
            Slo::Max(limit) => {
                let point = judged.max();
                latency(point, judged.ok.max_ns() as f64, limit, within(point, limit))
            }
            Slo::Errors(share) => {
                let scheduled = ledger.scheduled.max(1);
                let errors = scheduled.saturating_sub(ledger.ok);
                let percent = errors as f64 * 100.0 / scheduled as f64;
                let share = Share(share);
                plain(share.to_string(), percent, "%", share.allows(errors, scheduled))
            }
            Slo::Rate(least) => {
                plain(format!("{least}/s"), rates.ok_per_s, "/s", rates.ok_per_s >= least)
            }
        }
    }
}

impl fmt::Display for Slo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Slo::Quantile { limit, .. } | Slo::Mean(limit) | Slo::Max(limit) => {
                write!(f, "{}={limit}", self.name())
            }
            Slo::Errors(share) => write!(f, "errors={}", Share(*share)),
            Slo::Rate(rate) => write!(f, "rate={rate}"),
        }
    }
}

impl Serialize for Slo {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Slo {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::Interval;

    #[test]
    fn limits_are_read_and_shown_alike() {
        for text in ["p95=500ms", "p99.9=2s", "mean=50ms", "max=1s", "errors=0.1%", "rate=1000"] {
            assert_eq!(text.parse::<Slo>().unwrap().to_string(), text);
        }
        assert_eq!("errors=0".parse::<Slo>(), Ok(Slo::Errors(0.0)));
        for same in ["rate=1k", "rate=1000/s", "rate=60k/min"] {
            assert_eq!(same.parse::<Slo>(), Ok(Slo::Rate(1000.0)), "{same}");
        }
        let wrong = ["p95", "p0=1s", "p101=1s", "p95=fast", "q=1s", "errors=200%", "rate=-1"];
        for wrong in wrong.into_iter().chain(["rate=5/s/s", "rate="]) {
            assert!(wrong.parse::<Slo>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_number_without_its_unit_is_refused_with_what_to_write() {
        for (wrong, instead) in [
            ("p95=100", "p95=100ms"),
            ("p99.9=0.5", "p99.9=0.5s"),
            ("mean=5", "mean=5ms"),
            ("max=1e3", "max=1e3ms"),
            ("errors=1", "errors=1%"),
            ("errors=0.01", "errors=0.01%"),
        ] {
            let told = wrong.parse::<Slo>().unwrap_err().to_string();
            assert!(told.contains(instead), "{wrong}: {told}");
        }
    }

    fn totals(ok: u64, failed: u64) -> Interval {
        let mut totals = Interval::new(1);
        for _ in 0..ok {
            totals.classes[0].record_ok(400_000_000, 400_000_000);
        }
        for _ in 0..failed {
            totals.classes[0].record_failed(1_000_000);
        }
        totals.ledger.scheduled = ok + failed;
        totals.ledger.sent = ok + failed;
        totals.ledger.ok = ok;
        totals.ledger.failed.status = failed;
        totals
    }

    fn judge(text: &str, totals: &Interval) -> SloResult {
        let judged = Judged::of(totals, 1_000_000_000);
        text.parse::<Slo>().unwrap().judge(&judged, &totals.ledger, &Rates::default())
    }

    #[test]
    fn a_run_without_a_success_meets_no_limit() {
        for limit in ["p95=500ms", "p1=1h", "mean=500ms", "max=1h", "errors=50%"] {
            assert!(!judge(limit, &totals(0, 10)).held, "{limit}");
            assert!(judge(limit, &totals(10, 0)).held, "{limit}");
        }
        assert!(!judge("p95=500ms", &totals(0, 0)).held);
    }

    /// A share that is exactly the limit is allowed: 7 of 1,000 are 0.7 %, whatever 0.7 / 100 comes to in binary.
    #[test]
    fn a_share_of_errors_that_is_exactly_the_limit_holds() {
        for tenths in 1..1000u64 {
            let text = format!("errors={}%", tenths as f64 / 10.0);
            let slo = text.parse::<Slo>().unwrap();
            assert_eq!(slo.to_string(), text);
            let held = |failed: u64| {
                let ledger = Ledger { scheduled: 1000, ok: 1000 - failed, ..Ledger::default() };
                slo.judge(&Judged::default(), &ledger, &Rates::default()).held
            };
            assert!(held(tenths) && !held(tenths + 1), "{text}");
        }
    }

    /// One request in twelve fails after 1 ms: what is judged is not what the successful ones show.
    #[test]
    fn failed_requests_count_as_late_and_the_difference_is_kept() {
        let totals = totals(11, 1);
        let p95 = judge("p95=500ms", &totals);
        assert!(!p95.held && p95.at_least && p95.measured > 999.0, "{p95:?}");
        assert!(p95.ok_only.is_some_and(|ok| (399.0..401.0).contains(&ok)), "{p95:?}");
        assert!(!judge("max=1h", &totals).held);
        assert!(judge("p90=500ms", &totals).held);
        let mean = judge("mean=430ms", &totals);
        assert!(!mean.held && mean.at_least && mean.measured > 440.0, "{mean:?}");
        assert!(judge("errors=10%", &totals).held);
    }
}
