//! A real Prometheus, as `.ci/clients` builds it, fed by `--otlp`.

use crate::process::{Place, Running, curl, until};
use crate::record::Record;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where Prometheus is: beside the folders of the builds.
fn program() -> PathBuf {
    let script = include_str!("../../.ci/clients");
    let wanted = script.lines().find_map(|line| line.strip_prefix("PROMETHEUS=")).unwrap();
    let places = Path::new(env!("CARGO_BIN_EXE_plimsoll")).ancestors();
    let is_wanted = |place: &PathBuf| {
        std::fs::read_to_string(place.join("installed")).is_ok_and(|v| v.trim_end() == wanted)
    };
    let found = places.map(|folder| folder.join("clients/prometheus")).find(is_wanted);
    let place =
        found.unwrap_or_else(|| panic!("Prometheus {wanted} is not built; run: make test-tools"));
    place.join("prometheus")
}

/// A Prometheus on a free port; ended when dropped.
pub struct Prometheus {
    url: String,
    _process: Running,
}

impl Prometheus {
    pub fn start(place: &Place) -> Self {
        // Another program may take the port between finding and using it.
        for _ in 0..5 {
            let port = crate::server::closed_port();
            let config = place.file(&format!("prometheus-{port}.yml"), "global: {}\n");
            let data = place.path().join(format!("prometheus-{port}"));
            let command = place.program(
                program(),
                [
                    format!("--config.file={}", config.display()),
                    format!("--storage.tsdb.path={}", data.display()),
                    format!("--web.listen-address=127.0.0.1:{port}"),
                    "--web.enable-otlp-receiver".to_owned(),
                ],
            );
            let url = format!("http://127.0.0.1:{port}");
            let mut process = Running::start(command, b"");
            let mut is_ready = false;
            until("Prometheus is ready or ends", Duration::from_secs(60), || {
                let answer = std::net::TcpStream::connect(("127.0.0.1", port.parse().unwrap()));
                is_ready = answer.is_ok() && curl(&[&format!("{url}/-/ready")]).0 == 200;
                is_ready || !process.is_running()
            });
            if is_ready {
                return Self { url, _process: process };
            }
        }
        panic!("Prometheus did not start in {}", place.path().display());
    }

    /// The address for `--otlp`.
    pub fn otlp(&self) -> String {
        format!("{}/api/v1/otlp/v1/metrics", self.url)
    }

    fn ask(&self, path: &str, parameters: &[(&str, &str)]) -> Value {
        let mut args = vec!["-G".to_owned(), format!("{}{path}", self.url)];
        for (name, value) in parameters {
            args.extend(["--data-urlencode".to_owned(), format!("{name}={value}")]);
        }
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let (status, body) = curl(&args);
        assert_eq!(status, 200, "{parameters:?}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    /// The series that a query returns now.
    pub fn query(&self, query: &str) -> Vec<Value> {
        let answer = self.ask("/api/v1/query", &[("query", query)]);
        answer["data"]["result"].as_array().unwrap().clone()
    }

    /// The series that a query returns over a stretch, s since the Unix epoch, in steps of a second.
    pub fn query_range(&self, query: &str, from_s: u64, to_s: u64) -> Vec<Value> {
        let (from, to) = (from_s.to_string(), to_s.to_string());
        let parameters = [("query", query), ("start", &from), ("end", &to), ("step", "1")];
        let answer = self.ask("/api/v1/query_range", &parameters);
        answer["data"]["result"].as_array().unwrap().clone()
    }

    /// The values of a label.
    pub fn label_values(&self, label: &str, of: &str) -> Vec<String> {
        let answer = self.ask(&format!("/api/v1/label/{label}/values"), &[("match[]", of)]);
        let values = answer["data"].as_array().unwrap();
        values.iter().map(|value| value.as_str().unwrap().to_owned()).collect()
    }

    /// The one number that a query returns.
    #[track_caller]
    pub fn number(&self, query: &str) -> f64 {
        let found = self.query(query);
        assert_eq!(found.len(), 1, "{query}: {found:?}");
        found[0]["value"][1].as_str().unwrap().parse().unwrap()
    }
}

/// Requests of three classes, one of which often fails.
const QUERIES: &str = r#"{"path":"/a","class":"a"}
{"path":"/b","class":"b"}
{"path":"/c","class":"b"}
{"path":"/d","class":"d"}
"#;

/// A run with failures, a warm-up and labels, into a Prometheus.
pub fn run(place: &Place, prometheus: &Prometheus) -> Record {
    place.file("queries.ndjson", QUERIES);
    let target = place.serve(&[
        "queue",
        "--servers",
        "4",
        "--service",
        "gamma:4,4ms",
        "--error-every",
        "50",
    ]);
    let otlp = prometheus.otlp();
    let args =
        ["load", &target.url, "--queries", "queries.ndjson", "--rate", "400", "--duration", "7s"];
    let more = ["--warmup", "1s", "--name", "nightly", "--label", "commit=3f2a", "--json", "-"];
    let ended = place.run([&args[..], &more, &["--otlp", &otlp]].concat());
    let record = Record::of(&ended);
    record.expect_schema();
    record
}

#[test]
fn percentiles_and_counts_in_prometheus_are_those_of_the_record() {
    let place = Place::busy();
    let prometheus = Prometheus::start(&place);
    let record = run(&place, &prometheus);
    let of_run = format!("instance=\"{}\",phase=\"steady\"", record.text("/run_id"));
    let outlet = &record.0["outlets"][0];
    assert_eq!(
        (&outlet["kind"], &outlet["lost"], &outlet["complete"]),
        (&"otlp".into(), &0.into(), &true.into())
    );
    for (metric, pointer) in [
        ("requests_scheduled", "/ledger/scheduled"),
        ("requests_sent", "/ledger/sent"),
        ("requests_ok", "/ledger/ok"),
        ("requests_unfinished", "/ledger/unfinished"),
        ("connections_opened", "/counters/connects"),
    ] {
        let shown = prometheus.number(&format!("sum(plimsoll_{metric}_total{{{of_run}}})"));
        assert_eq!(shown as u64, record.count(pointer), "{metric}");
    }
    for (metric, key, pointer) in [
        ("requests_failed", "kind", "/ledger/failed"),
        ("requests_refused", "reason", "/ledger/refused"),
        ("requests_unsent", "reason", "/ledger/unsent"),
        ("replies", "status_code", "/statuses"),
    ] {
        for (entry, count) in record.0.pointer(pointer).unwrap().as_object().unwrap() {
            let query = format!("sum(plimsoll_{metric}_total{{{of_run},{key}=\"{entry}\"}})");
            assert_eq!(prometheus.number(&query) as u64, count.as_u64().unwrap(), "{query}");
        }
    }
    assert!(record.count("/ledger/failed/status") > 10);
    for (direction, pointer) in [("transmit", "/bytes/sent"), ("receive", "/bytes/received")] {
        let query =
            format!("plimsoll_network_io_bytes_total{{{of_run},direction=\"{direction}\"}}");
        assert_eq!(prometheus.number(&query) as u64, record.count(pointer));
    }
    for (class, values) in record.0["classes"].as_object().unwrap() {
        let query = format!("plimsoll_requests_ok_total{{{of_run},class=\"{class}\"}}");
        assert_eq!(prometheus.number(&query) as u64, values["ok"].as_u64().unwrap());
    }
    percentiles(&prometheus, &record, &of_run);
    let warmup = format!("instance=\"{}\",phase=\"warmup\"", record.text("/run_id"));
    let shown = prometheus.number(&format!("plimsoll_requests_scheduled_total{{{warmup}}}"));
    assert_eq!(shown as u64, record.count("/phases/0/ledger/scheduled"));
    let info = &prometheus.query("target_info")[0]["metric"];
    let wanted =
        [("plimsoll_name", "nightly"), ("plimsoll_label_commit", "3f2a"), ("plimsoll_job", "load")];
    wanted.iter().for_each(|(label, value)| assert_eq!(info[label], *value, "{info}"));
}

/// Within 1 %: a bucket is 1.09 % wide, and these times are spread over many.
fn percentiles(prometheus: &Prometheus, record: &Record, of_run: &str) {
    for (quantile, name) in [("0.5", "p50"), ("0.9", "p90"), ("0.95", "p95"), ("0.99", "p99")] {
        for (metric, pointer) in [
            ("response", "/latency_ms/response"),
            ("service", "/latency_ms/service"),
            ("lag", "/generator/lag_ms"),
        ] {
            let times = format!("sum(plimsoll_{metric}_duration_seconds{{{of_run}}})");
            let shown_ms =
                1e3 * prometheus.number(&format!("histogram_quantile({quantile}, {times})"));
            let kept_ms = record.number(&format!("{pointer}/{name}"));
            // Below 1 us the record itself has no digits.
            let off = (shown_ms - kept_ms).abs();
            assert!(off <= kept_ms * 0.01 + 0.001, "{metric} {name}: {shown_ms} {kept_ms}");
        }
    }
    for (class, values) in record.0["classes"].as_object().unwrap() {
        let times = format!("plimsoll_response_duration_seconds{{{of_run},class=\"{class}\"}}");
        let shown_ms = 1e3 * prometheus.number(&format!("histogram_quantile(0.99, {times})"));
        let kept_ms = values["latency_ms"]["response"]["p99"].as_f64().unwrap();
        assert!((shown_ms / kept_ms - 1.0).abs() <= 0.0109, "{class}: {shown_ms} {kept_ms}");
    }
    let count = prometheus
        .number(&format!("histogram_count(sum(plimsoll_response_duration_seconds{{{of_run}}}))"));
    assert_eq!(count as u64, record.count("/latency_ms/response/count"));
}
