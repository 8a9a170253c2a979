//! Records of imports: what the source does not give is unknown in every form.

use super::{all_files, import, import_bytes};
use plimsoll_core::assertion::Assertion;
use plimsoll_import::FORMS;
use plimsoll_import::record::{About, record_of};
use plimsoll_record::exit::{FINE, SLO_MISSED, of_record};
use plimsoll_record::{Judge, RunRecord};
use plimsoll_report::naming::Naming;
use plimsoll_report::text::{Style, render};
use serde_json::Value;

fn record(file: &str, format: &'static str) -> RunRecord {
    let about = About { format, run_id: "1a2b3c4d".to_owned(), ..about(file) };
    record_of(&import(file, format), &about)
}

fn about(file: &str) -> About {
    let imported_at = "2026-11-25T14:00:00Z".to_owned();
    About { file: file.to_owned(), imported_at, ..About::default() }
}

fn json(record: &RunRecord) -> Value {
    serde_json::from_str(&plimsoll_report::json::pretty(record)).unwrap()
}

#[test]
fn unknown_fields_are_null_in_json_and_read_back_as_unknown() {
    let wrk = record("wrk-latency.txt", "wrk");
    let value = json(&wrk);
    for path in [
        "/ledger/scheduled",
        "/ledger/refused",
        "/ledger/unsent",
        "/rate/offered_per_s",
        "/bytes/sent",
        "/latency_ms/response",
        "/latency_ms/failed",
        "/latency_ms/service/min",
        "/latency_ms/service/p95",
        "/latency_ms/service/p99_9",
        "/classes/all/latency_ms/service/p95",
        "/classes/all/zero_hits",
        "/generator",
        "/machine",
        "/counters",
        "/statuses",
    ] {
        assert_eq!(value.pointer(path), Some(&Value::Null), "{path}");
    }
    assert_eq!(value["latency_ms"]["service"]["p99"], 40.38);
    assert_eq!(value["import"]["tool"], "wrk");
    assert_eq!(value["verdict"]["kind"], "imported");
    let back = plimsoll_record::read(value.to_string().as_bytes()).unwrap();
    assert_eq!(json(&back), value);
    assert!(!back.is_known("latency_ms.service.p95") && back.is_known("latency_ms.service.p99"));
    assert!(back.latency_ms.service.p95.is_nan(), "no number, and not 0");
    // A null that the record does not call unknown is damage.
    let mut damaged = value;
    damaged["rate"]["ok_per_s"] = Value::Null;
    assert!(plimsoll_record::read(damaged.to_string().as_bytes()).is_err());
}

#[test]
fn every_record_reads_back_as_it_was_written() {
    for (file, bytes) in all_files() {
        let (format, imported) = import_bytes(&bytes).unwrap();
        let record = record_of(&imported, &About { format: format.name(), ..about(&file) });
        let value = json(&record);
        let back = plimsoll_record::read(value.to_string().as_bytes());
        let back = back.unwrap_or_else(|error| panic!("{file}: {error}"));
        assert_eq!(json(&back), value, "{file}");
        assert_eq!(back.ledger.failed.total(), record.ledger.failed.total(), "{file}");
    }
}

#[test]
fn page_csv_junit_and_lists_have_no_figure_that_is_unknown() {
    let style = Style::default();
    for (file, bytes) in all_files() {
        let (format, imported) = import_bytes(&bytes).unwrap();
        let record = record_of(&imported, &About { format: format.name(), ..about(&file) });
        let page = render(&record, None, &style, &[FORMS]);
        let csv = plimsoll_report::csv::render(&record, &[FORMS]);
        let junit = plimsoll_report::junit::render(&record);
        let headline = (FORMS.headline)(&record).unwrap();
        let benchpress = plimsoll_report::benchpress::render(std::slice::from_ref(&record));
        for text in [&page, &csv, &junit, &headline, &benchpress] {
            assert!(!text.contains("NaN") && !text.contains("inf "), "{file}: {text}");
        }
        assert!(headline.chars().count() <= 40, "{file}: {headline}");
        assert!(page.contains("lag, CPU and health of the generator"), "{page}");
        assert!(page.starts_with("Result     imported, not judged, exit 0\n"), "{page}");
        let mut rows = csv::Reader::from_reader(csv.as_bytes());
        let names = rows.headers().unwrap().clone();
        let run = rows.records().next().unwrap().unwrap();
        let cell = |name: &str| run.get(names.iter().position(|n| n == name).unwrap()).unwrap();
        for (column, path) in [
            ("scheduled", "ledger.scheduled"),
            ("sent", "ledger.sent"),
            ("ok", "ledger.ok"),
            ("refused", "ledger.refused"),
            ("offered_per_s", "rate.offered_per_s"),
            ("ok_per_s", "rate.ok_per_s"),
            ("response_p99_ms", "latency_ms.response.p99"),
            ("service_p99_ms", "latency_ms.service.p99"),
            ("service_count", "latency_ms.service.count"),
            ("lag_p99_ms", "generator.lag_ms.p99"),
            ("bytes_sent", "bytes.sent"),
            ("duration_s", "duration_s"),
        ] {
            assert_eq!(cell(column).is_empty(), !record.is_known(path), "{file}: {column}");
        }
        assert!(junit.contains("<skipped ") && junit.contains("errors=\"0\""), "{junit}");
        assert_eq!(junit.contains("name=\"ok_per_s\""), record.is_known("rate.ok_per_s"), "{file}");
    }
}

#[test]
fn a_page_fits_its_width() {
    for (file, bytes) in all_files() {
        let (format, imported) = import_bytes(&bytes).unwrap();
        let record = record_of(&imported, &About { format: format.name(), ..about(&file) });
        for width in [60, 80, 100, 200] {
            let page = render(&record, None, &Style { width, ..Style::default() }, &[FORMS]);
            // The first line has the target's address, which is not broken.
            let wide = page.lines().skip(1).find(|line| line.chars().count() > width);
            assert_eq!(wide, None, "{file} at {width}");
        }
    }
}

#[test]
fn the_page_of_wrk_says_what_its_times_are() {
    let page = render(&record("wrk-latency.txt", "wrk"), None, &Style::default(), &[FORMS]);
    assert_eq!(
        page,
        "\
Result     imported, not judged, exit 0
           491 requests/s
Why        plimsoll did not measure these figures: wrk did, and whether its generator kept up is
           unknown

Run        import wrk http://127.0.0.1:8097/
           measured for 3.0 s at an unknown time; read from wrk-latency.txt (wrk)

Latency, ms  count  mean   p50   p90   p99   max
  service    1,473  9.54  7.67  20.5  40.4  63.5
service: times of all replies, counted from the send; a reply slower than the timeout (2 s) is in no
time
exact to: printed digits of a histogram of whole microseconds; wrk adds times that it did not
measure for requests that a slow reply held up

Also       p75 13.3 ms
Settings   connections: 4, threads: 1
Unknown    response time: waiting before the send is in no figure (coordinated omission)
           service time: min, p95, p99.9
           ledger: scheduled, refused, unsent, unfinished
           offered rate, replies by status, bytes sent
           lag, CPU and health of the generator
"
    );
}

#[test]
fn failures_come_first_and_a_time_that_ab_rounds_to_0_is_below_half_a_millisecond() {
    let style = Style { verbose: true, ..Style::default() };
    let page = render(&record("ab-errors.txt", "ab"), None, &style, &[FORMS]);
    assert_eq!(
        page,
        "\
Result     imported, not judged, exit 0
           0 ok/s, 100 % failed
Why        plimsoll did not measure these figures: ab did, and whether its generator kept up is
           unknown

Run        import ab 2.3 http://127.0.0.1:8099/missing
           measured for 1.00 ms at an unknown time; read from ab-errors.txt (ab)

Ledger     30 sent = 0 ok + 30 failed
Failures   status other than 2xx: 30
Warning    the times include failed requests: ab does not keep them apart

Latency, ms  count   min  mean   p50   p90   p95   p99   max
  service       30  <0.5  <0.5  <0.5  <0.5  <0.5  <0.5  <0.5
service: times of all replies, counted from the start of connecting: ab opens a connection for each
request unless it has -k
exact to: whole milliseconds, rounded: 0 is less than 0.5 ms

Also       p66 <0.5 ms, p75 <0.5 ms, p80 <0.5 ms, p98 <0.5 ms
Rate       20,121/s finished, successful or not
Traffic    9.09 kB received
Settings   connections: 2
Unknown    response time: waiting before the send is in no figure (coordinated omission)
           service time: p99.9
           ledger: scheduled, refused, unsent, unfinished
           offered rate, replies by status, bytes sent
           lag, CPU and health of the generator
"
    );
}

#[test]
fn a_page_says_nothing_twice_and_no_unknown_figure_as_0() {
    for (file, bytes) in all_files() {
        let (format, imported) = import_bytes(&bytes).unwrap();
        let naming = Naming { name: "before".to_owned(), ..Naming::default() };
        let about = About { format: format.name(), naming, ..about(&file) };
        let record = record_of(&imported, &about);
        for verbose in [false, true] {
            let style = Style { verbose, ..Style::default() };
            let page = render(&record, None, &style, &[FORMS]);
            let labels: Vec<&str> = page
                .lines()
                .filter(|line| line.get(10..11) == Some(" ") && !line.starts_with(' '))
                .map(|line| line[..10].trim())
                .filter(|label| !label.contains(' '))
                .collect();
            let distinct: std::collections::BTreeSet<&&str> = labels.iter().collect();
            assert_eq!(distinct.len(), labels.len(), "{file}: {labels:?}\n{page}");
            assert!(page.contains("\n           name before\n"), "{file}: {page}");
            for wrong in ["()", " 0 ms", "0 scheduled", "0 refused", " + 0 unsent", "NaN"] {
                // A setting of vespa-fbench, in its words.
                let text = page.replace("cycle time: 0 ms", "");
                assert!(!text.contains(wrong), "{file}: '{wrong}' in\n{page}");
            }
            // In the line of what is unknown, or with its number.
            let ledger = page.lines().find_map(|line| line.split_once("ledger: "));
            let listed: Vec<&str> = ledger.map_or(Vec::new(), |(_, all)| all.split(", ").collect());
            for part in ["scheduled", "sent", "ok", "unsent", "unfinished"] {
                let path = format!("ledger.{part}");
                let is_listed = listed.contains(&part);
                assert_eq!(is_listed, !record.is_known(&path), "{file}: {part}\n{page}");
            }
        }
    }
}

fn judged(record: &RunRecord, assertion: &str) -> (Option<f64>, bool, bool) {
    let assertion: Assertion = assertion.parse().unwrap();
    let found = assertion.judge(record).remove(0);
    (found.actual, found.held, found.at_least)
}

#[test]
fn an_assertion_on_an_unknown_figure_fails() {
    let mut wrk = record("wrk-latency.txt", "wrk");
    assert_eq!(judged(&wrk, "global service.p99 < 50ms"), (Some(40.38), true, false));
    assert_eq!(judged(&wrk, "global service.p75 < 14ms"), (Some(13.29), true, false));
    assert_eq!(judged(&wrk, "global service.p95 < 1s"), (None, false, false));
    assert_eq!(judged(&wrk, "global p99 < 1s"), (None, false, false), "response is unknown");
    assert_eq!(judged(&wrk, "global failed.percent is 0%"), (Some(0.0), true, false));
    assert_eq!(judged(&wrk, "global rate > 400"), (Some(490.82), true, false));
    assert_eq!(of_record(&wrk), FINE);
    let assertion: Assertion = "global service.p95 < 1s".parse().unwrap();
    wrk.assertions = assertion.judge(&wrk);
    assert_eq!(of_record(&wrk), SLO_MISSED);
    assert!(plimsoll_report::junit::render(&wrk).contains("the imported file does not give it"));
    // Without counts, no failure can be ruled out.
    let table = record("ab-percentiles.csv", "ab-csv");
    assert_eq!(judged(&table, "global failed.percent is 0%"), (None, false, false));
    assert_eq!(judged(&table, "global failed.count is 0"), (None, false, false));
    assert_eq!(judged(&table, "global service.p50 < 9ms"), (Some(8.448), true, false));
    // A request that failed misses every limit.
    let k6 = record("k6-handle-summary.json", "k6-summary");
    assert_eq!(judged(&k6, "global service.p95 < 1s"), (Some(0.455_289), false, true));
    assert_eq!(judged(&k6, "global failed.count is 12"), (Some(12.0), true, false));
}

#[test]
fn two_records_are_compared_by_what_both_tell() {
    let compare = |a: &RunRecord, b: &RunRecord| (FORMS.compare)(a, b).unwrap();
    let (wrk, hey) = (record("wrk-latency.txt", "wrk"), record("hey.txt", "hey"));
    let compared = compare(&wrk, &hey);
    let rows = compared.value["figures"].as_array().unwrap();
    let row = |name: &str| rows.iter().find(|row| row["figure"] == name).unwrap();
    assert_eq!(row("service p99")["a"], 40.38);
    assert_eq!(row("service p99")["b"], 37.8);
    assert!(row("service p95")["a"].is_null() && row("service p95")["b"] == 23.4);
    assert!(row("service p95")["change_pct"].is_null());
    assert!(compared.text.contains("unknown"), "{}", compared.text);
    assert_eq!(compared.origins[0], "imported, measured by wrk");
    // Times from the intended start and from the send are never side by side.
    let wrk2 = record("wrk2-latency.txt", "wrk2");
    let mixed = compare(&wrk, &wrk2);
    let names: Vec<&str> = mixed.value["figures"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["figure"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["ok", "achieved", "failed"]);
    assert!(
        mixed.text.contains("only B has response times; they are not compared"),
        "{}",
        mixed.text
    );
}

#[test]
fn addresses_lose_their_secrets() {
    let text = "Running 3s test @ http://me:secret@127.0.0.1/?token=hush\n  1 requests in 3.00s, 1KB read\nRequests/sec:      0.33\n";
    let (_, imported) = import_bytes(text.as_bytes()).unwrap();
    let record = record_of(&imported, &About::default());
    let all = plimsoll_report::json::pretty(&record)
        + &render(&record, None, &Style::default(), &[FORMS]);
    assert!(!all.contains("secret") && !all.contains("hush"), "{all}");
}
