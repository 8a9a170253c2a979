//! The text form of Prometheus, for a scrape: counters as they are, times as classic histograms.
//!
//! Names are those that Prometheus gives to the metrics that come by OTLP.

use crate::facts::Facts;
use crate::series::{ClassSeries, PhaseSeries, Series, Times};
use plimsoll_core::outcome::Failure;
use std::fmt::Write;

/// The media type of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Labels of a sample, by name.
type Labels<'a> = [(&'a str, &'a str)];

struct Page {
    text: String,
}

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a text cannot fail.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn labels(&mut self, labels: &Labels<'_>) {
        for (index, (name, value)) in labels.iter().enumerate() {
            self.text.push(if index == 0 { '{' } else { ',' });
            self.text.push_str(name);
            self.text.push_str("=\"");
            for one in value.chars() {
                match one {
                    '\\' => self.text.push_str("\\\\"),
                    '"' => self.text.push_str("\\\""),
                    '\n' => self.text.push_str("\\n"),
                    other => self.text.push(other),
                }
            }
            self.text.push('"');
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
    }

    fn sample(&mut self, name: &str, labels: &Labels<'_>, value: impl std::fmt::Display) {
        self.text.push_str(name);
        self.labels(labels);
        let _ = writeln!(self.text, " {value}");
    }

    fn by_phase(
        &mut self,
        series: &Series,
        (name, help): (&str, &str),
        value: impl Fn(&PhaseSeries) -> u64,
    ) {
        self.head(name, "counter", help);
        for (phase, sum) in series.phases() {
            self.sample(name, &[("phase", phase)], value(sum));
        }
    }

    fn by_class(
        &mut self,
        series: &Series,
        (name, help): (&str, &str),
        value: impl Fn(&ClassSeries) -> u64,
    ) {
        self.head(name, "counter", help);
        for (phase, class, sum) in series.classes() {
            self.sample(name, &[("class", class), ("phase", phase)], value(sum));
        }
    }

    fn times(&mut self, name: &str, labels: &Labels<'_>, times: &Times) {
        let classic = &times.classic;
        let bucket = format!("{name}_bucket");
        for (bound, count) in classic.up_to() {
            let mut all = labels.to_vec();
            all.push(("le", bound));
            self.sample(&bucket, &all, count);
        }
        let mut all = labels.to_vec();
        all.push(("le", "+Inf"));
        self.sample(&bucket, &all, classic.count());
        self.sample(&format!("{name}_sum"), labels, classic.sum_s());
        self.sample(&format!("{name}_count"), labels, classic.count());
    }

    fn class_times(
        &mut self,
        series: &Series,
        (name, help): (&str, &str),
        times: impl Fn(&ClassSeries) -> &Times,
    ) {
        self.head(name, "histogram", help);
        for (phase, class, sum) in series.classes() {
            self.times(name, &[("class", class), ("phase", phase)], times(sum));
        }
    }
}

/// The page of a scrape.
#[must_use]
pub fn render(facts: &Facts, series: &Series) -> String {
    let mut page = Page { text: String::new() };
    page.head("plimsoll_run_info", "gauge", "The run; always 1");
    page.sample(
        "plimsoll_run_info",
        &[
            ("run_id", &facts.run_id),
            ("plimsoll_job", &facts.job),
            ("plimsoll_name", &facts.name),
            ("version", &facts.version),
        ],
        1,
    );
    ledger(&mut page, series);
    let replies = "plimsoll_replies_total";
    page.head(replies, "counter", "Replies by status code");
    for (phase, code, count) in series.statuses() {
        page.sample(replies, &[("phase", phase), ("status_code", code)], count);
    }
    let bytes = "plimsoll_network_io_bytes_total";
    page.head(bytes, "counter", "Bytes handed to and taken from the kernel");
    for (phase, sum) in series.phases() {
        page.sample(bytes, &[("direction", "transmit"), ("phase", phase)], sum.bytes_sent);
        page.sample(bytes, &[("direction", "receive"), ("phase", phase)], sum.bytes_received);
    }
    page.by_phase(series, ("plimsoll_connections_opened_total", "Connections opened"), |sum| {
        sum.connects
    });
    page.head(
        "plimsoll_requests_in_flight",
        "gauge",
        "Requests in flight at the end of the last second",
    );
    page.sample("plimsoll_requests_in_flight", &[], series.in_flight());
    page.class_times(
        series,
        (
            "plimsoll_response_duration_seconds",
            "Response time: intended start to last byte, successful requests",
        ),
        |sum| &sum.response,
    );
    page.class_times(
        series,
        (
            "plimsoll_service_duration_seconds",
            "Service time: send to last byte, successful requests",
        ),
        |sum| &sum.service,
    );
    let lag = "plimsoll_lag_duration_seconds";
    page.head(lag, "histogram", "Lag: delay of the generator itself, requests that were sent");
    for (phase, sum) in series.phases() {
        page.times(lag, &[("phase", phase)], &sum.lag);
    }
    page.text
}

fn ledger(page: &mut Page, series: &Series) {
    page.by_phase(
        series,
        ("plimsoll_requests_scheduled_total", "Requests that the schedule made due"),
        |sum| sum.ledger.scheduled,
    );
    page.by_class(
        series,
        (
            "plimsoll_requests_sent_total",
            "Requests handed to a connection, or that failed for want of one",
        ),
        |sum| sum.sent,
    );
    page.by_class(series, ("plimsoll_requests_ok_total", "Requests that succeeded"), |sum| sum.ok);
    let failed = "plimsoll_requests_failed_total";
    page.head(failed, "counter", "Requests that were sent and failed, by kind");
    for (phase, class, sum) in series.classes() {
        for kind in Failure::ALL {
            let labels = [("class", class), ("kind", kind.name()), ("phase", phase)];
            page.sample(failed, &labels, sum.failed.get(kind));
        }
    }
    let refused = "plimsoll_requests_refused_total";
    page.head(refused, "counter", "Requests that admission rejected, by reason");
    for (phase, sum) in series.phases() {
        let of = sum.ledger.refused;
        page.sample(refused, &[("reason", "queue_full"), ("phase", phase)], of.queue_full);
        page.sample(refused, &[("reason", "queue_timeout"), ("phase", phase)], of.queue_timeout);
    }
    let unsent = "plimsoll_requests_unsent_total";
    page.head(unsent, "counter", "Requests that were due and never sent, by reason");
    for (phase, sum) in series.phases() {
        page.sample(unsent, &[("reason", "stopped"), ("phase", phase)], sum.ledger.unsent.stopped);
    }
    page.by_phase(
        series,
        ("plimsoll_requests_unfinished_total", "Requests in flight when the run was cut off"),
        |sum| sum.ledger.unfinished,
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::interval::Interval;

    fn page() -> String {
        let facts = Facts {
            run_id: "0a1b2c3d".to_owned(),
            classes: vec!["a\"\\\nb".to_owned()],
            phases: vec!["steady".to_owned()],
            ..Facts::default()
        };
        let mut series = Series::new(&facts.classes, &facts.phases);
        let mut second = Interval::new(1);
        second.ledger.scheduled = 3;
        second.ledger.sent = 3;
        second.ledger.ok = 2;
        second.ledger.failed.status = 1;
        second.classes[0].ledger = second.ledger;
        second.classes[0].record_ok(4_000_000, 2_000_000);
        second.classes[0].record_ok(40_000_000, 3_000_000);
        second.statuses.insert(503, 1);
        series.add(&second);
        render(&facts, &series)
    }

    #[test]
    fn counters_are_exact_and_labels_are_escaped() {
        let page = page();
        for line in [
            "plimsoll_requests_scheduled_total{phase=\"steady\"} 3",
            "plimsoll_requests_ok_total{class=\"a\\\"\\\\\\nb\",phase=\"steady\"} 2",
            "plimsoll_replies_total{phase=\"steady\",status_code=\"503\"} 1",
            "plimsoll_response_duration_seconds_bucket{class=\"a\\\"\\\\\\nb\",phase=\"steady\",le=\"0.005\"} 1",
            "plimsoll_response_duration_seconds_bucket{class=\"a\\\"\\\\\\nb\",phase=\"steady\",le=\"+Inf\"} 2",
            "plimsoll_response_duration_seconds_count{class=\"a\\\"\\\\\\nb\",phase=\"steady\"} 2",
        ] {
            assert!(page.lines().any(|one| one == line), "{line}\n{page}");
        }
    }

    #[test]
    fn every_sample_has_a_type_and_no_name_has_two() {
        let page = page();
        let mut typed: Vec<&str> =
            page.lines().filter_map(|l| l.strip_prefix("# TYPE ")?.split(' ').next()).collect();
        let count = typed.len();
        typed.sort_unstable();
        typed.dedup();
        assert_eq!(typed.len(), count);
        for line in page.lines().filter(|line| !line.starts_with('#')) {
            let name = line.split(['{', ' ']).next().unwrap();
            let base = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
            assert!(
                typed.contains(&name) || base.is_some_and(|base| typed.contains(&base)),
                "{line}"
            );
            assert!(line.rsplit(' ').next().unwrap().parse::<f64>().is_ok(), "{line}");
        }
    }
}
