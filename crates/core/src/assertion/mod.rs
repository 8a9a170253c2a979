//! Assertions: what a record must say, with a scope, a metric and a condition.
//!
//! `global p95 < 500ms`, `each failed.percent <= 1%`, `class search rate between 90/s and 110/s`. They are judged over the
//! finished record alone, so that a record of last week is judged as well as that of a run that has just ended.
//!
//! | part | written |
//! |---|---|
//! | scope | `global`, `each` (every class by itself), `class NAME` |
//! | metric, times | `mean`, `max`, `p95`, `p99.9` of every scheduled request ([`crate::judged`]); `min` and `stddev` of the successful ones; of the time from sending: `service.p95` |
//! | metric, counts | `requests`, `ok.count`, `ok.percent`, `failed.count`, `failed.percent` |
//! | metric, rate | `rate`: successful requests per second |
//! | condition | `<`, `<=`, `>`, `>=`, `is V`, `in V, V, ...`, `between V and V`, `around V by D`, `deviates V by 10%` |
//!
//! A request is failed when it was due and did not succeed, whatever the reason: refused, unsent and unfinished ones too.

#[cfg(test)]
mod tests;
mod text;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use thiserror::Error;

/// Requests whose figures are judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those of the whole run.
    Global,
    /// Those of every class, each by itself.
    Each,
    /// Those of one class.
    Class(String),
}

/// Response time or service time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Time {
    /// From the intended start to the last byte.
    #[default]
    Response,
    /// From sending to the last byte.
    Service,
}

/// A figure of a distribution of times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Point {
    /// The shortest.
    Min,
    /// The arithmetic mean.
    Mean,
    /// The longest.
    Max,
    /// The standard deviation.
    Deviation,
    /// The time that this percentage of requests do not exceed, above 0 and up to 100.
    Percentile(f64),
}

/// Requests that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// All that were due.
    All,
    /// Those that succeeded.
    Ok,
    /// All others.
    Failed,
}

/// Figure that is judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Metric {
    /// A time, ms.
    Time(Time, Point),
    /// Number of requests.
    Count(Which),
    /// Share of all requests, percent.
    Percent(Which),
    /// Successful requests per second.
    Rate,
}

/// Condition on the figure. Values are in the metric's own unit: ms, percent, per second, or a count.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// Less than this.
    Below(f64),
    /// At most this.
    AtMost(f64),
    /// More than this.
    Above(f64),
    /// At least this.
    AtLeast(f64),
    /// This, to a thousandth for times, whose histograms keep three digits.
    Is(f64),
    /// One of these.
    In(Vec<f64>),
    /// Between the two, with both of them.
    Between(f64, f64),
    /// No further from the first than the second.
    Around(f64, f64),
    /// No further from the first than this share of it.
    Deviates(f64, f64),
}

/// One assertion.
#[derive(Clone, Debug, PartialEq)]
pub struct Assertion {
    /// Requests whose figures are judged.
    pub scope: Scope,
    /// Figure that is judged.
    pub metric: Metric,
    /// Condition on the figure.
    pub condition: Condition,
}

/// An assertion that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("'{text}' is not an assertion: {problem}; write for example 'global p95 < 500ms'")]
pub struct AssertionError {
    text: String,
    problem: String,
}

impl Metric {
    /// The unit of its values.
    #[must_use]
    pub const fn unit(&self) -> &'static str {
        match self {
            Self::Time(..) => "ms",
            Self::Count(_) => "",
            Self::Percent(_) => "%",
            Self::Rate => "/s",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Global => f.write_str("global"),
            Self::Each => f.write_str("each"),
            // Whatever parts words, or stands by itself, would be read as something else.
            Self::Class(name)
                if name.is_empty()
                    || name.contains(|c: char| c.is_whitespace() || "'<>=,()".contains(c)) =>
            {
                write!(f, "class \"{name}\"")
            }
            Self::Class(name) => write!(f, "class {name}"),
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let which = |which: &Which| match which {
            Which::All => "all",
            Which::Ok => "ok",
            Which::Failed => "failed",
        };
        match self {
            Self::Time(time, point) => {
                if *time == Time::Service {
                    f.write_str("service.")?;
                }
                match point {
                    Point::Min => f.write_str("min"),
                    Point::Mean => f.write_str("mean"),
                    Point::Max => f.write_str("max"),
                    Point::Deviation => f.write_str("stddev"),
                    Point::Percentile(p) => write!(f, "p{p}"),
                }
            }
            Self::Count(Which::All) => f.write_str("requests"),
            Self::Count(requests) => write!(f, "{}.count", which(requests)),
            Self::Percent(requests) => write!(f, "{}.percent", which(requests)),
            Self::Rate => f.write_str("rate"),
        }
    }
}

impl Condition {
    /// The condition with the unit of its metric at every value.
    #[must_use]
    pub fn shown(&self, unit: &str) -> String {
        let value = |v: f64| format!("{v}{unit}");
        match self {
            Self::Below(v) => format!("< {}", value(*v)),
            Self::AtMost(v) => format!("<= {}", value(*v)),
            Self::Above(v) => format!("> {}", value(*v)),
            Self::AtLeast(v) => format!(">= {}", value(*v)),
            Self::Is(v) => format!("is {}", value(*v)),
            Self::In(values) => {
                let values: Vec<String> = values.iter().map(|v| value(*v)).collect();
                format!("in {}", values.join(", "))
            }
            Self::Between(a, b) => format!("between {} and {}", value(*a), value(*b)),
            Self::Around(v, d) => format!("around {} by {}", value(*v), value(*d)),
            Self::Deviates(v, share) => {
                // Rounding away what the division by 100 added.
                let percent = (share * 1e10).round() / 1e8;
                format!("deviates {} by {percent}%", value(*v))
            }
        }
    }
}

impl fmt::Display for Assertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.scope, self.metric, self.condition.shown(self.metric.unit()))
    }
}

impl Serialize for Assertion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Assertion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
