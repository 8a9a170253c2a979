//! The body of an export: `ExportMetricsServiceRequest` of OTLP 1.x.
//!
//! Temporality is cumulative: each export holds the whole run so far, so a later one makes up for one that was lost.

use super::shape::{
    Body, Buckets, Data, Distribution, Metric, Number, Resource, ResourceMetrics, Scope,
    ScopeMetrics, attribute,
};
use crate::facts::Facts;
use crate::series::{ClassSeries, PhaseSeries, Series, Times};
use plimsoll_core::outcome::Failure;

/// OTLP's number of cumulative temporality.
const CUMULATIVE: u8 = 2;

/// Exports made and lost so far, for the export itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Exports {
    /// Exports that did not arrive.
    pub lost: u64,
}

/// Attributes of a point, by key.
type Keys<'a> = [(&'static str, &'a str)];

/// A part of what is divided: its name, and its count in a phase.
type Way = (&'static str, fn(&PhaseSeries) -> u64);

/// The points of one export: all have the same times.
struct Points {
    start_ns: u64,
    now_ns: u64,
}

impl Points {
    fn number(&self, keys: &Keys<'_>, value: u64) -> Number {
        Number {
            attributes: keys.iter().map(|(key, value)| attribute(key, value)).collect(),
            start_time_unix_nano: self.start_ns,
            time_unix_nano: self.now_ns,
            as_int: value,
        }
    }

    fn distribution<'a>(&self, keys: &Keys<'_>, times: &'a Times) -> Distribution<'a> {
        let times = &times.exponential;
        let (offset, bucket_counts) = times.buckets();
        let range = times.range_s();
        Distribution {
            attributes: keys.iter().map(|(key, value)| attribute(key, value)).collect(),
            start_time_unix_nano: self.start_ns,
            time_unix_nano: self.now_ns,
            count: times.count(),
            sum: times.sum_s(),
            scale: crate::exponential::SCALE,
            zero_count: 0,
            positive: Buckets { offset, bucket_counts },
            min: range.map(|(min_s, _)| min_s),
            max: range.map(|(_, max_s)| max_s),
        }
    }

    fn by_phase(&self, series: &Series, value: impl Fn(&PhaseSeries) -> u64) -> Vec<Number> {
        series.phases().map(|(phase, sum)| self.number(&[("phase", phase)], value(sum))).collect()
    }

    fn by_class(&self, series: &Series, value: impl Fn(&ClassSeries) -> u64) -> Vec<Number> {
        let point = |(phase, class, sum): (&str, &str, &ClassSeries)| {
            self.number(&[("class", class), ("phase", phase)], value(sum))
        };
        series.classes().map(point).collect()
    }

    /// One point for each phase and each of the ways that a part of the ledger is divided in.
    fn divided(&self, series: &Series, key: &'static str, ways: &[Way]) -> Vec<Number> {
        series
            .phases()
            .flat_map(|(phase, sum)| {
                ways.iter().map(move |(way, value)| {
                    self.number(&[(key, way), ("phase", phase)], value(sum))
                })
            })
            .collect()
    }

    fn failed(&self, series: &Series) -> Vec<Number> {
        series
            .classes()
            .flat_map(|(phase, class, sum)| {
                Failure::ALL.into_iter().map(move |kind| {
                    let keys = [("class", class), ("kind", kind.name()), ("phase", phase)];
                    self.number(&keys, sum.failed.get(kind))
                })
            })
            .collect()
    }

    fn times<'a>(
        &self,
        series: &'a Series,
        times: impl Fn(&'a ClassSeries) -> &'a Times,
    ) -> Vec<Distribution<'a>> {
        let point = |(phase, class, sum): (&str, &str, &'a ClassSeries)| {
            self.distribution(&[("class", class), ("phase", phase)], times(sum))
        };
        series.classes().map(point).collect()
    }

    fn lag<'a>(&self, series: &'a Series) -> Vec<Distribution<'a>> {
        let point = |(phase, sum): (&str, &'a PhaseSeries)| {
            self.distribution(&[("phase", phase)], &sum.lag)
        };
        series.phases().map(point).collect()
    }

    fn statuses(&self, series: &Series) -> Vec<Number> {
        let point = |(phase, code, count): (&str, &str, u64)| {
            self.number(&[("phase", phase), ("status_code", code)], count)
        };
        series.statuses().map(point).collect()
    }
}

fn counter(
    name: &'static str,
    unit: &'static str,
    description: &'static str,
    data_points: Vec<Number>,
) -> Metric<'static> {
    let data = Data::Sum { aggregation_temporality: CUMULATIVE, is_monotonic: true, data_points };
    Metric { name, description, unit, data }
}

fn histogram<'a>(
    name: &'static str,
    description: &'static str,
    data_points: Vec<Distribution<'a>>,
) -> Metric<'a> {
    let data = Data::ExponentialHistogram { aggregation_temporality: CUMULATIVE, data_points };
    Metric { name, description, unit: "s", data }
}

/// The ledger, entry by entry.
fn ledger(points: &Points, series: &Series) -> Vec<Metric<'static>> {
    const REQUEST: &str = "{request}";
    vec![
        counter(
            "plimsoll.requests.scheduled",
            REQUEST,
            "Requests that the schedule made due",
            points.by_phase(series, |sum| sum.ledger.scheduled),
        ),
        counter(
            "plimsoll.requests.sent",
            REQUEST,
            "Requests handed to a connection, or that failed for want of one",
            points.by_class(series, |sum| sum.sent),
        ),
        counter(
            "plimsoll.requests.ok",
            REQUEST,
            "Requests that succeeded",
            points.by_class(series, |sum| sum.ok),
        ),
        counter(
            "plimsoll.requests.failed",
            REQUEST,
            "Requests that were sent and failed, by kind",
            points.failed(series),
        ),
        counter(
            "plimsoll.requests.refused",
            REQUEST,
            "Requests that admission rejected, by reason",
            points.divided(
                series,
                "reason",
                &[
                    ("queue_full", |sum| sum.ledger.refused.queue_full),
                    ("queue_timeout", |sum| sum.ledger.refused.queue_timeout),
                ],
            ),
        ),
        counter(
            "plimsoll.requests.unsent",
            REQUEST,
            "Requests that were due and never sent, by reason",
            points.divided(series, "reason", &[("stopped", |sum| sum.ledger.unsent.stopped)]),
        ),
        counter(
            "plimsoll.requests.unfinished",
            REQUEST,
            "Requests in flight when the run was cut off",
            points.by_phase(series, |sum| sum.ledger.unfinished),
        ),
    ]
}

/// The body of one export.
#[must_use]
pub fn encode(facts: &Facts, series: &Series, exports: Exports, now_us: u64) -> Vec<u8> {
    let start_ns = facts.started_us * 1_000;
    // A wall clock that was set back must not make a point end before it starts.
    let points = Points { start_ns, now_ns: (now_us * 1_000).max(start_ns) };
    let mut metrics = ledger(&points, series);
    metrics.extend([
        counter("plimsoll.replies", "{reply}", "Replies by status code", points.statuses(series)),
        counter(
            "plimsoll.network.io",
            "By",
            "Bytes handed to and taken from the kernel",
            points.divided(
                series,
                "direction",
                &[("transmit", |sum| sum.bytes_sent), ("receive", |sum| sum.bytes_received)],
            ),
        ),
        counter(
            "plimsoll.connections.opened",
            "{connection}",
            "Connections opened",
            points.by_phase(series, |sum| sum.connects),
        ),
        counter(
            "plimsoll.exports.lost",
            "{export}",
            "Exports of these metrics that did not arrive",
            vec![points.number(&[], exports.lost)],
        ),
        Metric {
            name: "plimsoll.requests.in_flight",
            description: "Requests in flight at the end of the last second",
            unit: REQUESTS_NOW,
            data: Data::Gauge {
                data_points: vec![points.number(&[], u64::from(series.in_flight()))],
            },
        },
        histogram(
            "plimsoll.response.duration",
            "Response time: intended start to last byte, successful requests",
            points.times(series, |sum| &sum.response),
        ),
        histogram(
            "plimsoll.service.duration",
            "Service time: send to last byte, successful requests",
            points.times(series, |sum| &sum.service),
        ),
        histogram(
            "plimsoll.lag.duration",
            "Lag: delay of the generator itself, requests that were sent",
            points.lag(series),
        ),
    ]);
    // A metric without points says nothing, and some receivers reject it.
    metrics.retain(|metric| !metric.data.is_empty());
    let scope = Scope { name: "plimsoll", version: &facts.version };
    let body = Body {
        resource_metrics: [ResourceMetrics {
            resource: resource(facts),
            scope_metrics: [ScopeMetrics { scope, metrics }],
        }],
    };
    // Texts and numbers in memory: there is nothing that could fail.
    serde_json::to_vec(&body).unwrap_or_default()
}

/// Unit of a number of requests at a moment.
const REQUESTS_NOW: &str = "{request}";

fn resource(facts: &Facts) -> Resource {
    let mut attributes = vec![
        attribute("service.name", "plimsoll"),
        attribute("service.version", &facts.version),
        attribute("service.instance.id", &facts.run_id),
        attribute("plimsoll.job", &facts.job),
    ];
    if !facts.name.is_empty() {
        attributes.push(attribute("plimsoll.name", &facts.name));
    }
    let label =
        |(key, value): (&String, &String)| attribute(&format!("plimsoll.label.{key}"), value);
    attributes.extend(facts.labels.iter().map(label));
    Resource { attributes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::interval::Interval;
    use serde_json::Value;

    fn encoded() -> Value {
        let facts = Facts {
            run_id: "0a1b2c3d".to_owned(),
            version: "0.1.0".to_owned(),
            job: "load".to_owned(),
            name: "night\"ly".to_owned(),
            labels: [("commit".to_owned(), "3f2a".to_owned())].into(),
            classes: vec!["a\u{0}</script>".to_owned()],
            phases: vec!["steady".to_owned()],
            started_us: 1_000_000,
        };
        let mut series = Series::new(&facts.classes, &facts.phases);
        let mut second = Interval::new(1);
        second.ledger.scheduled = 3;
        second.ledger.sent = 2;
        second.ledger.ok = 2;
        second.ledger.unsent.stopped = 1;
        second.classes[0].ledger.sent = 2;
        second.classes[0].ledger.ok = 2;
        second.classes[0].record_ok(4_000_000, 2_000_000);
        second.classes[0].record_ok(4_000_000, 3_000_000);
        second.counters.bytes_received = u64::MAX;
        series.add(&second);
        serde_json::from_slice(&encode(&facts, &series, Exports { lost: 4 }, 3_000_000)).unwrap()
    }

    fn metric<'a>(body: &'a Value, name: &str) -> &'a Value {
        let all = body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
        all.iter().find(|metric| metric["name"] == name).unwrap()
    }

    #[test]
    fn whole_numbers_are_texts_and_times_follow_each_other() {
        let body = encoded();
        let points = &metric(&body, "plimsoll.network.io")["sum"];
        assert_eq!(
            (&points["aggregationTemporality"], &points["isMonotonic"]),
            (&2.into(), &true.into())
        );
        let received = &points["dataPoints"][1];
        assert_eq!(received["asInt"], u64::MAX.to_string());
        assert_eq!(received["startTimeUnixNano"], "1000000000");
        assert_eq!(received["timeUnixNano"], "3000000000");
        assert_eq!(received["attributes"][0]["value"]["stringValue"], "receive");
    }

    #[test]
    fn times_are_exponential_histograms_of_scale_6() {
        let body = encoded();
        let times = &metric(&body, "plimsoll.service.duration");
        assert_eq!(times["unit"], "s");
        let point = &times["exponentialHistogram"]["dataPoints"][0];
        assert_eq!((&point["scale"], &point["count"]), (&6.into(), &"2".into()));
        let counts = point["positive"]["bucketCounts"].as_array().unwrap();
        assert_eq!((counts.first().unwrap(), counts.last().unwrap()), (&"1".into(), &"1".into()));
        assert_eq!(counts.len(), 38, "half a doubling of 64 buckets, and one");
        assert!((point["sum"].as_f64().unwrap() - 0.005).abs() < 1e-5);
        assert_eq!(point["attributes"][0]["value"]["stringValue"], "a\u{0}</script>");
    }

    #[test]
    fn the_run_is_the_resource() {
        let body = encoded();
        let attributes = body["resourceMetrics"][0]["resource"]["attributes"].as_array().unwrap();
        let all: Vec<(&str, &str)> = attributes
            .iter()
            .map(|one| {
                (one["key"].as_str().unwrap(), one["value"]["stringValue"].as_str().unwrap())
            })
            .collect();
        assert_eq!(
            all,
            [
                ("service.name", "plimsoll"),
                ("service.version", "0.1.0"),
                ("service.instance.id", "0a1b2c3d"),
                ("plimsoll.job", "load"),
                ("plimsoll.name", "night\"ly"),
                ("plimsoll.label.commit", "3f2a"),
            ]
        );
    }

    #[test]
    fn a_metric_without_points_is_left_out() {
        let body = encoded();
        let all = body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
        assert!(all.iter().all(|metric| metric["name"] != "plimsoll.replies"));
        assert_eq!(metric(&body, "plimsoll.exports.lost")["sum"]["dataPoints"][0]["asInt"], "4");
    }
}
