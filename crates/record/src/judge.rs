//! Holding assertions against a record.

use crate::{AssertionResult, ClassRecord, RunRecord};
use plimsoll_core::assertion::{Assertion, Condition, Metric, Point, Scope, Time, Which};
use plimsoll_core::histogram::{Histogram, LatencySummary};
use plimsoll_core::judged::{Judged, Point as Judgeable};

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
    /// Requests that count for this scope and have no class: refused or never sent.
    never_sent: u64,
}

/// Judgement of a record.
pub trait Judge {
    /// Judges a record: one result, or one per class if it is about each of them.
    #[must_use]
    fn judge(&self, record: &RunRecord) -> Vec<AssertionResult>;
}

impl Judge for Assertion {
    fn judge(&self, record: &RunRecord) -> Vec<AssertionResult> {
        let of = figures(self, record);
        of.iter().map(|figures| judge_one(self, record, figures)).collect()
    }
}

fn figures(assertion: &Assertion, record: &RunRecord) -> Vec<Figures> {
    let sent: u64 = record.classes.values().map(|class| class.sent).sum();
    let never_sent = record.ledger.scheduled.saturating_sub(sent);
    let of_class = |name: &String| {
        let class = record.classes.get(name);
        let count = |n: fn(&ClassRecord) -> u64| class.map_or(0, n);
        Figures {
            scope: Scope::Class(name.clone()),
            all: count(|class| class.sent),
            ok: count(|class| class.ok),
            ok_per_s: class.map_or(0.0, |class| class.ok_per_s),
            response: class.map(|class| class.latency_ms.response).unwrap_or_default(),
            service: class.map(|class| class.latency_ms.service).unwrap_or_default(),
            classes: vec![name.clone()],
            // With several classes, the class of a request that was never sent is unknown.
            never_sent: if record.classes.len() == 1 { never_sent } else { 0 },
        }
    };
    match &assertion.scope {
        Scope::Global => vec![Figures {
            scope: Scope::Global,
            all: record.ledger.scheduled,
            ok: record.ledger.ok,
            ok_per_s: record.rate.ok_per_s,
            response: record.latency_ms.response,
            service: record.latency_ms.service,
            classes: record.classes.keys().cloned().collect(),
            never_sent,
        }],
        Scope::Each => record.classes.keys().map(of_class).collect(),
        Scope::Class(name) => vec![of_class(name)],
    }
}

fn judge_one(assertion: &Assertion, record: &RunRecord, figures: &Figures) -> AssertionResult {
    let actual = actual(assertion.metric, record, figures);
    let is_time = matches!(assertion.metric, Metric::Time(..));
    AssertionResult {
        assertion: assertion.to_string(),
        scope: figures.scope.to_string(),
        metric: assertion.metric.to_string(),
        condition: assertion.condition.shown(assertion.metric.unit()),
        actual: actual.map(Figure::value),
        unit: assertion.metric.unit().to_owned(),
        held: actual.is_some_and(|figure| holds_for(&assertion.condition, figure, is_time)),
        at_least: matches!(actual, Some(Figure::AtLeast(_))),
    }
}

/// A figure of a record.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Figure {
    Exactly(f64),
    /// It depends on requests that did not succeed.
    AtLeast(f64),
}

impl Figure {
    const fn value(self) -> f64 {
        match self {
            Self::Exactly(value) | Self::AtLeast(value) => value,
        }
    }
}

impl From<Judgeable> for Figure {
    fn from(point: Judgeable) -> Self {
        match point {
            Judgeable::Exactly(ns) => Self::Exactly(ns / 1e6),
            Judgeable::AtLeast(ns) => Self::AtLeast(ns / 1e6),
        }
    }
}

/// The figure, if the record knows it.
fn actual(metric: Metric, record: &RunRecord, figures: &Figures) -> Option<Figure> {
    if let Some(import) = record.job_results.import() {
        return foreign::figure(metric, record, import, figures);
    }
    own_figure(metric, record, figures)
}

/// The figure of a record that plimsoll measured, or of one that holds all that its own records hold for it.
fn own_figure(metric: Metric, record: &RunRecord, figures: &Figures) -> Option<Figure> {
    let of = |which: Which| match which {
        Which::All => figures.all,
        Which::Ok => figures.ok,
        Which::Failed => figures.all.saturating_sub(figures.ok),
    };
    let exactly = |value: f64| Some(Figure::Exactly(value));
    match metric {
        Metric::Count(which) => exactly(of(which) as f64),
        Metric::Percent(_) if figures.all == 0 => None,
        Metric::Percent(which) => exactly(of(which) as f64 * 100.0 / figures.all as f64),
        Metric::Rate => exactly(figures.ok_per_s),
        Metric::Time(time, point) => time_figure(record, figures, time, point),
    }
}

/// A time over all requests of a scope as limits judge them ([`plimsoll_core::judged`]); the shortest time and the deviation are
/// those of the successful ones.
fn time_figure(record: &RunRecord, figures: &Figures, time: Time, point: Point) -> Option<Figure> {
    let (summary, name) = match time {
        Time::Response => (&figures.response, "response"),
        Time::Service => (&figures.service, "service"),
    };
    if summary.count == 0 {
        return None;
    }
    let known = |value: f64| Some(Figure::Exactly(value));
    let all_succeeded = figures.all == figures.ok;
    match point {
        Point::Min => known(summary.min),
        Point::Mean if all_succeeded => known(summary.mean),
        Point::Max if all_succeeded => known(summary.max),
        Point::Deviation => known(times(record, &figures.classes, name)?.deviation_ns() / 1e6),
        // As for a limit of `--slo`: such requests are in the mean with what they waited at least.
        Point::Mean => known(judged(record, figures, time)?.mean()?.ns() / 1e6),
        Point::Max => judged(record, figures, time)?.max().map(Figure::from),
        Point::Percentile(p) => {
            judged(record, figures, time)?.quantile(p / 100.0).map(Figure::from)
        }
    }
}

/// All requests of a scope. A request that was never sent has no service time.
fn judged(record: &RunRecord, figures: &Figures, time: Time) -> Option<Judged> {
    let name = match time {
        Time::Response => "response",
        Time::Service => "service",
    };
    let timeout_ns = record.timeout_ns();
    let ok = times(record, &figures.classes, name)?;
    let mut judged = Judged { ok, lost: Histogram::new(), timeout_ns };
    // One that is damaged leaves the times unknown; a record without any has none to add.
    let stored = |name: &str| match record.histograms.get(name) {
        Some(text) => Histogram::decode(text).ok(),
        None => Some(Histogram::new()),
    };
    for class in &figures.classes {
        for (failed_ns, count) in stored(&format!("{class}/failed"))?.cells() {
            judged.lost.record_many(failed_ns.max(timeout_ns), count);
        }
    }
    let classes = figures.classes.iter().filter_map(|class| record.classes.get(class));
    let mut lost: u64 = classes.map(|class| class.sent.saturating_sub(class.ok)).sum();
    // Requests that were never sent, or not answered by the end, count for the whole, and for a class if it is the only one.
    let is_whole = figures.scope == Scope::Global || record.classes.len() == 1;
    if time == Time::Response && is_whole {
        lost += figures.never_sent;
        judged.lost.merge(&stored("unserved")?);
    }
    // The waits of the rest are unknown.
    judged.lost.record_many(timeout_ns, lost.saturating_sub(judged.lost.count()));
    Some(judged)
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

/// Returns whether a figure is what it must be. One that is only known to be at least this much cannot be below anything.
fn holds_for(condition: &Condition, figure: Figure, is_time: bool) -> bool {
    match (figure, condition) {
        (Figure::Exactly(value), _) => holds(condition, value, is_time),
        (Figure::AtLeast(value), Condition::Above(_) | Condition::AtLeast(_)) => {
            holds(condition, value, is_time)
        }
        (Figure::AtLeast(_), _) => false,
    }
}

/// Returns true if a value is what it must be.
fn holds(condition: &Condition, value: f64, is_time: bool) -> bool {
    let equal = |wanted: f64| {
        let tolerated = if is_time { wanted * TIME_DIGITS } else { 1e-9 * wanted.max(1.0) };
        (value - wanted).abs() <= tolerated
    };
    match condition {
        Condition::Below(limit) => value < *limit,
        Condition::AtMost(limit) => value <= *limit,
        Condition::Above(limit) => value > *limit,
        Condition::AtLeast(limit) => value >= *limit,
        Condition::Is(wanted) => equal(*wanted),
        Condition::In(values) => values.iter().any(|wanted| equal(*wanted)),
        Condition::Between(low, high) => (*low..=*high).contains(&value),
        Condition::Around(centre, distance) => (value - centre).abs() <= *distance,
        Condition::Deviates(centre, share) => (value - centre).abs() <= share * centre,
    }
}

mod foreign;
#[cfg(test)]
mod tests;
