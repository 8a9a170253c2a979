//! Files that the real tools wrote.

use super::{import, near, near_cell};
use plimsoll_import::{Counts, TimesOf};

fn sent_ok_failed(counts: &Counts) -> (Option<u64>, Option<u64>, Option<u64>) {
    (counts.sent, counts.ok, counts.failed)
}

#[test]
fn wrk_prints_four_percentiles_and_no_other() {
    let wrk = import("wrk-latency.txt", "wrk");
    let times = &wrk.service;
    for (found, expected) in [
        (times.mean, 9.54),
        (times.p50, 7.67),
        (times.p90, 20.54),
        (times.p99, 40.38),
        (times.max, 63.51),
        (wrk.ok_per_s, 490.82),
        (wrk.duration_s, 3.0),
    ] {
        near(found, expected);
    }
    assert_eq!((times.min, times.p95, times.p99_9), (None, None, None));
    assert!(wrk.response.is_unknown() && wrk.failed.is_unknown());
    assert_eq!(wrk.percentiles[1], (75.0, 13.29));
    assert_eq!(sent_ok_failed(&wrk.counts), (Some(1473), Some(1473), Some(0)));
    assert_eq!((wrk.counts.scheduled, wrk.counts.unfinished, wrk.bytes_sent), (None, None, None));
    assert_eq!(wrk.bytes_received, Some((211.46f64 * 1024.0).round() as u64));
    assert_eq!(wrk.target.as_deref(), Some("http://127.0.0.1:8097/"));
    assert_eq!(wrk.settings["connections"], "4");
    assert!(wrk.seconds.is_none() && wrk.started_us.is_none() && wrk.statuses.is_none());
}

#[test]
fn wrk_without_latency_has_no_percentile_and_its_failures_are_counted() {
    let plain = import("wrk-plain.txt", "wrk");
    near(plain.service.mean, 0.053_89);
    near(plain.service.max, 2.59);
    assert_eq!((plain.service.p50, plain.service.p99), (None, None));
    assert_eq!(sent_ok_failed(&plain.counts), (Some(176_113), Some(176_113), Some(0)));

    let failed = import("wrk-errors.txt", "wrk");
    assert_eq!(sent_ok_failed(&failed.counts), (Some(76_627), Some(0), Some(76_627)));
    assert_eq!(failed.counts.kinds.unwrap().status, 76_627);
    near(failed.achieved_per_s, 36_495.81);
    assert_eq!(failed.ok_per_s, Some(0.0));
    assert!(failed.warnings.iter().any(|w| w.contains("the times include failed requests")));
}

#[test]
fn wrk2_counts_from_the_intended_start_and_has_a_histogram() {
    let wrk2 = import("wrk2-latency.txt", "wrk2");
    assert!(wrk2.service.is_unknown(), "it is not called service time");
    for (found, expected) in
        [(wrk2.response.p50, 0.88), (wrk2.response.p99, 1.54), (wrk2.response.p99_9, 1.67)]
    {
        near(found, expected);
    }
    // Of 5998 requests, those after the calibration have times.
    assert_eq!((wrk2.counts.sent, wrk2.response.count), (Some(5998), Some(989)));
    assert_eq!(wrk2.response.histogram.as_ref().unwrap().count(), 989);

    let both = import("wrk2-both.txt", "wrk2");
    near(both.response.p50, 0.844);
    near(both.response.max, 1.97);
    near(both.service.mean, 0.066);
    near(both.service.max, 0.201);
    near(both.service.p50, 0.055);
    assert_eq!((both.response.count, both.service.count), (Some(593), Some(593)));
}

#[test]
fn hey_prints_tenths_of_milliseconds() {
    let hey = import("hey.txt", "hey");
    for (found, expected) in [
        (hey.service.min, 0.2),
        (hey.service.mean, 7.6),
        (hey.service.p50, 5.3),
        (hey.service.p99, 37.8),
        (hey.service.max, 53.3),
        (hey.duration_s, 3.7617),
        (hey.achieved_per_s, 79.7511),
    ] {
        near(found, expected);
    }
    assert_eq!(hey.service.p99_9, None);
    assert_eq!(sent_ok_failed(&hey.counts), (Some(300), Some(300), Some(0)));
    assert_eq!(hey.statuses.unwrap()[&200], 300);
    // `0%% in 0.0000 secs` is no percentile.
    let few = import("hey-errors.txt", "hey");
    assert_eq!(few.percentiles.last(), Some(&(95.0, 0.4)));
    assert_eq!((few.service.p99, few.counts.failed), (None, Some(20)));
}

#[test]
fn tables_of_requests_become_histograms_and_seconds() {
    let hey = import("hey.csv", "hey-csv");
    assert_eq!(hey.service.count, Some(60));
    near(hey.service.max, 23.3);
    assert!(hey.seconds.is_some() && hey.started_us.is_none());
    let oha = import("oha.csv", "oha-csv");
    near(oha.service.min, 0.363_572);
    near(oha.service.max, 48.219_416);
    assert_eq!(oha.counts.ok, Some(60));
    let ab = import("ab-gnuplot.tsv", "ab-tsv");
    assert_eq!(
        (ab.service.count, ab.service.histogram.as_ref().map(|h| h.count())),
        (Some(300), Some(300))
    );
    near_cell(ab.service.p50, 8.0);
    near(ab.service.max, 49.0);
    // The table has no status.
    assert_eq!(sent_ok_failed(&ab.counts), (Some(300), None, None));
    assert_eq!(ab.started_us, Some(1_795_600_811_000_000));
}

#[test]
fn oha_has_seconds_in_its_json_and_units_in_its_text() {
    let json = import("oha.json", "oha-json");
    near(json.service.p50, 5.281_771);
    near(json.service.p99_9, 44.974_634);
    near(json.service.min, 0.025_508);
    near(json.ok_per_s, 492.834_85);
    assert_eq!(json.percentiles[3], (75.0, 10.547_189));
    let text = import("oha.txt", "oha");
    near(text.service.p95, 26.5242);
    near(text.service.min, 0.0428);
    near(text.duration_s, 0.461_522);
    assert_eq!(sent_ok_failed(&text.counts), (Some(200), Some(200), Some(0)));
    // oha calls every reply a success; a status of 404 is none.
    let missing = import("oha-404.json", "oha-json");
    assert_eq!(sent_ok_failed(&missing.counts), (Some(100), Some(0), Some(100)));
    // Without a reply it prints NaN and inf.
    let refused = import("oha-errors.txt", "oha");
    assert!(refused.service.is_unknown());
    assert_eq!(refused.failures["Connection refused (os error 111)"], 30);
    assert_eq!((refused.counts.failed, refused.counts.kinds), (Some(30), None));
}

#[test]
fn ab_prints_whole_milliseconds() {
    let ab = import("ab.txt", "ab");
    assert_eq!(ab.tool_version.as_deref(), Some("2.3"));
    let times = &ab.service;
    assert_eq!(
        [times.min, times.mean, times.p50, times.p90, times.p99, times.max].map(Option::unwrap),
        [0.0, 9.0, 8.0, 18.0, 40.0, 49.0]
    );
    assert_eq!(times.p99_9, None);
    near(ab.ok_per_s, 514.06);
    assert_eq!((ab.bytes_received, ab.bytes_sent), (Some(49_800), None));
    assert_eq!(ab.target.as_deref(), Some("http://127.0.0.1:8097/"));
    // `Failed requests: 0`, but no reply had a status of success.
    let missing = import("ab-errors.txt", "ab");
    assert_eq!(sent_ok_failed(&missing.counts), (Some(30), Some(0), Some(30)));
    let table = import("ab-percentiles.csv", "ab-csv");
    near(table.service.p50, 8.448);
    assert_eq!(table.percentiles.len(), 101);
    assert_eq!((table.service.count, table.counts.sent, table.service.mean), (None, None, None));
}

#[test]
fn vegeta_s_report_is_the_same_as_text_and_as_json() {
    for (file, format) in [("vegeta-report.json", "vegeta-json"), ("vegeta.txt", "vegeta")] {
        let vegeta = import(file, format);
        for (found, expected) in [
            (vegeta.service.min, 0.324_774),
            (vegeta.service.mean, 0.648_054),
            (vegeta.service.p50, 0.387_668),
            (vegeta.service.p95, 2.122),
            (vegeta.service.p99, 5.448),
            (vegeta.service.max, 5.546),
            (vegeta.achieved_per_s, 20.34),
            (vegeta.ok_per_s, 20.33),
            (vegeta.duration_s, 2.951),
        ] {
            near(found, expected);
        }
        assert_eq!(sent_ok_failed(&vegeta.counts), (Some(60), Some(60), Some(0)));
        assert!(vegeta.response.is_unknown());
        assert_eq!(vegeta.bytes_received, None, "{file}: body bytes are not those on the wire");
    }
    let mixed = import("vegeta-mixed.txt", "vegeta");
    assert_eq!(sent_ok_failed(&mixed.counts), (Some(40), Some(14), Some(26)));
    assert_eq!((mixed.failures["no reply"], mixed.failures["status 404"]), (13, 13));
}

#[test]
fn vegeta_s_results_are_the_same_as_json_and_as_csv() {
    for file in ["vegeta-mixed-results.json", "vegeta-mixed-results.csv"] {
        let results = import(file, "vegeta-results");
        assert_eq!(sent_ok_failed(&results.counts), (Some(40), Some(14), Some(26)));
        let kinds = results.counts.kinds.unwrap();
        assert_eq!((kinds.status, kinds.connect, kinds.total()), (13, 13, 26));
        assert_eq!(results.times_of, TimesOf::Successful);
        near(results.service.min, 0.320_698);
        near(results.service.max, 2.990_102);
        near(results.failed.max, 1.854_097);
        assert_eq!(results.classes.len(), 3);
        assert_eq!(results.started_us, Some(1_795_600_158_100_260));
        let seconds = results.seconds.as_ref().unwrap();
        let mut ok = Vec::new();
        seconds
            .each(|second| {
                ok.push(second.ledger.ok);
                Ok(())
            })
            .unwrap();
        assert_eq!((ok.len(), ok.iter().sum::<u64>()), (3, 14), "{ok:?}");
    }
}

#[test]
fn h2load_has_no_percentile() {
    let h2load = import("h2load.txt", "h2load");
    let times = &h2load.service;
    near(times.min, 0.041);
    near(times.max, 0.603);
    near(times.mean, 0.298);
    assert_eq!((times.p50, times.p99), (None, None));
    assert_eq!(sent_ok_failed(&h2load.counts), (Some(1000), Some(1000), Some(0)));
    assert_eq!((h2load.counts.unfinished, h2load.bytes_received), (Some(0), Some(739_196)));
    near(h2load.ok_per_s, 45_985.47);
    let timed = import("h2load-timed.txt", "h2load");
    assert_eq!(sent_ok_failed(&timed.counts), (Some(274_793), Some(0), Some(274_793)));
    near(timed.duration_s, 3.0);
    near(timed.service.max, 3.87);
}

#[test]
fn pgbench_counts_from_the_schedule_if_it_has_a_rate() {
    let plain = import("pgbench.txt", "pgbench");
    assert_eq!(plain.tool_version.as_deref(), Some("15.18"));
    near(plain.service.mean, 0.838);
    near(plain.ok_per_s, 2_374.625_29);
    assert_eq!(sent_ok_failed(&plain.counts), (Some(4745), Some(4745), Some(0)));
    assert!(plain.response.is_unknown() && plain.service.p50.is_none());
    let rate = import("pgbench-rate.txt", "pgbench");
    near(rate.response.mean, 0.868);
    assert!(rate.service.is_unknown());
    assert_eq!(import("pgbench-skip.txt", "pgbench").counts.unsent, Some(0));
    let aborted = import("pgbench-fail.txt", "pgbench");
    assert!(aborted.warnings[0].contains("Run was aborted"), "{:?}", aborted.warnings);
}

#[test]
fn pgbench_s_logs_have_each_transaction_or_each_second() {
    let log = import("pgbench-log.txt", "pgbench-log");
    assert_eq!(sent_ok_failed(&log.counts), (Some(120), Some(120), Some(0)));
    near(log.service.min, 0.174);
    near(log.service.max, 9.45);
    assert!(log.response.is_unknown() && log.seconds.is_some());
    let rate = import("pgbench-log-rate.txt", "pgbench-log");
    near(rate.response.min, 0.208);
    near(rate.response.max, 8.313);
    // Without its lag, in the seventh column.
    near(rate.service.min, 0.130);
    near(rate.service.max, 7.778);
    let sums = import("pgbench-aggregate.txt", "pgbench-aggregate");
    assert_eq!(sums.counts.ok, Some(23_749 + 30_145 + 32_072));
    near(sums.service.mean, (1_676_636.0 + 1_913_223.0 + 1_915_439.0) / 85_966.0 / 1e3);
    near(sums.service.min, 0.022);
    near(sums.service.max, 10.809);
    assert_eq!((sums.service.p99, sums.duration_s), (None, Some(3.0)));
    let scheduled = import("pgbench-aggregate-rate.txt", "pgbench-aggregate");
    near(scheduled.response.max, 16.285);
    assert!(scheduled.service.is_unknown());
}

#[test]
fn k6_s_summaries_have_the_percentiles_that_were_asked_for() {
    let export = import("k6-summary-export.json", "k6-summary");
    near(export.service.p50, 0.306_309);
    near(export.service.p95, 0.491_552_6);
    near(export.achieved_per_s, 19.701_202);
    assert_eq!((export.service.p99, export.service.p99_9), (None, None));
    assert_eq!(sent_ok_failed(&export.counts), (Some(40), Some(40), Some(0)));
    assert_eq!((export.bytes_sent, export.bytes_received), (Some(2_800), Some(34_000)));
    // Of successful requests, since k6 has them apart.
    let handled = import("k6-handle-summary.json", "k6-summary");
    assert_eq!(sent_ok_failed(&handled.counts), (Some(73), Some(61), Some(12)));
    assert_eq!(handled.times_of, TimesOf::Successful);
    near(handled.service.mean, 0.378_183);
    near(handled.duration_s, 3.001_532_895);
}

#[test]
fn k6_s_points_are_requests() {
    let k6 = import("k6.ndjson", "k6-json");
    assert_eq!(sent_ok_failed(&k6.counts), (Some(73), Some(61), Some(12)));
    assert_eq!(k6.counts.kinds.unwrap().status, 12);
    near(k6.service.min, 0.288_811);
    near_cell(k6.service.p50, 0.372_377);
    near(k6.service.max, 0.611_873);
    near(k6.failed.min, 0.073_089);
    assert_eq!((k6.bytes_sent, k6.bytes_received), (Some(5_194), Some(55_546)));
    let names: Vec<&str> = k6.classes.iter().map(|class| class.name.as_str()).collect();
    assert_eq!(names, ["home", "missing"]);
    near(k6.duration_s, 3.000_882);
    let mut ended = 0;
    k6.seconds
        .unwrap()
        .each(|second| {
            ended += second.ledger.finished();
            Ok(())
        })
        .unwrap();
    assert_eq!(ended, 73);
}
