//! Holding assertions against a record.

use super::{Assertion, Condition, Metric, Point, Scope, Time, Which};
use crate::histogram::{Histogram, LatencySummary};
use crate::record::{AssertionResult, RunRecord};

/// Times are kept to three digits; what is equal to them is equal.
const TIME_DIGITS: f64 = 1e-3;

/// The figures of one scope.
struct Figures {
    scope: Scope,
    all: u64,
    ok: u64,
    ok_per_s: f64,
    response: LatencySummary,
    service: LatencySummary,
    /// Names of the classes whose histograms they come from.
    classes: Vec<String>,
}

impl Assertion {
    /// What the record says to it: one result, or one a class where it is about each of them.
    #[must_use]
    pub fn judge(&self, record: &RunRecord) -> Vec<AssertionResult> {
        self.figures(record).iter().map(|figures| self.judge_one(record, figures)).collect()
    }

    fn figures(&self, record: &RunRecord) -> Vec<Figures> {
        let of_class = |name: &String| {
            let class = record.classes.get(name);
            let count = |n: fn(&crate::record::ClassRecord) -> u64| class.map_or(0, n);
            Figures {
                scope: Scope::Class(name.clone()),
                all: count(|class| class.sent),
                ok: count(|class| class.ok),
                ok_per_s: class.map_or(0.0, |class| class.ok_per_s),
                response: class.map(|class| class.latency_ms.response).unwrap_or_default(),
                service: class.map(|class| class.latency_ms.service).unwrap_or_default(),
                classes: vec![name.clone()],
            }
        };
        match &self.scope {
            Scope::Global => vec![Figures {
                scope: Scope::Global,
                all: record.ledger.scheduled,
                ok: record.ledger.ok,
                ok_per_s: record.rate.ok_per_s,
                response: record.latency_ms.response,
                service: record.latency_ms.service,
                classes: record.classes.keys().cloned().collect(),
            }],
            Scope::Each => record.classes.keys().map(of_class).collect(),
            Scope::Class(name) => vec![of_class(name)],
        }
    }

    fn judge_one(&self, record: &RunRecord, figures: &Figures) -> AssertionResult {
        let actual = self.metric.actual(record, figures);
        let is_time = matches!(self.metric, Metric::Time(..));
        AssertionResult {
            assertion: self.to_string(),
            scope: figures.scope.to_string(),
            metric: self.metric.to_string(),
            condition: self.condition.shown(self.metric.unit()),
            actual,
            unit: self.metric.unit().to_owned(),
            held: actual.is_some_and(|value| self.condition.holds(value, is_time)),
        }
    }
}

impl Metric {
    /// The figure, if the record knows it.
    fn actual(self, record: &RunRecord, figures: &Figures) -> Option<f64> {
        let of = |which: Which| match which {
            Which::All => figures.all,
            Which::Ok => figures.ok,
            Which::Failed => figures.all.saturating_sub(figures.ok),
        };
        match self {
            Self::Count(which) => Some(of(which) as f64),
            Self::Percent(_) if figures.all == 0 => None,
            Self::Percent(which) => Some(of(which) as f64 * 100.0 / figures.all as f64),
            Self::Rate => Some(figures.ok_per_s),
            Self::Time(time, point) => {
                let (summary, name) = match time {
                    Time::Response => (&figures.response, "response"),
                    Time::Service => (&figures.service, "service"),
                };
                if summary.count == 0 {
                    return None;
                }
                match point {
                    Point::Min => Some(summary.min),
                    Point::Mean => Some(summary.mean),
                    Point::Max => Some(summary.max),
                    Point::Percentile(p) => {
                        let times = times(record, &figures.classes, name)?;
                        Some(times.quantile_ns(p / 100.0) as f64 / 1e6)
                    }
                    Point::Deviation => {
                        Some(times(record, &figures.classes, name)?.deviation_ns() / 1e6)
                    }
                }
            }
        }
    }
}

/// The histograms of these classes, merged; `None` where the record has none of them.
fn times(record: &RunRecord, classes: &[String], name: &str) -> Option<Histogram> {
    let mut merged: Option<Histogram> = None;
    for class in classes {
        let text = record.histograms.get(&format!("{class}/{name}"))?;
        let own = Histogram::decode(text).ok()?;
        match &mut merged {
            Some(all) => all.merge(&own),
            None => merged = Some(own),
        }
    }
    merged
}

impl Condition {
    /// Whether a value is what it must be.
    #[must_use]
    pub fn holds(&self, value: f64, is_time: bool) -> bool {
        let equal = |wanted: f64| {
            let tolerated = if is_time { wanted * TIME_DIGITS } else { 1e-9 * wanted.max(1.0) };
            (value - wanted).abs() <= tolerated
        };
        match self {
            Self::Below(limit) => value < *limit,
            Self::AtMost(limit) => value <= *limit,
            Self::Above(limit) => value > *limit,
            Self::AtLeast(limit) => value >= *limit,
            Self::Is(wanted) => equal(*wanted),
            Self::In(values) => values.iter().any(|wanted| equal(*wanted)),
            Self::Between(low, high) => (*low..=*high).contains(&value),
            Self::Around(centre, distance) => (value - centre).abs() <= *distance,
            Self::Deviates(centre, share) => (value - centre).abs() <= share * centre,
        }
    }
}
