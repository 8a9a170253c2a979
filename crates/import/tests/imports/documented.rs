//! Files from the documented form of tools that cannot be had here: Gatling, vespa-fbench, FeedSim, benchpress.

use super::{import, import_bytes, near};

#[test]
fn a_simulation_log_has_requests_groups_and_failures() {
    let log = import("gatling-3.9-simulation.log", "gatling-log");
    assert_eq!(log.tool_version.as_deref(), Some("3.9.2"));
    assert_eq!((log.counts.sent, log.counts.ok, log.counts.failed), (Some(5), Some(3), Some(2)));
    let kinds = log.counts.kinds.unwrap();
    assert_eq!((kinds.status, kinds.timeout), (1, 1));
    // OK: 112, 90 and 250 ms; KO: 1500 and 40 ms.
    near(log.service.min, 90.0);
    super::near_cell(log.service.p50, 112.0);
    near(log.service.max, 250.0);
    near(log.failed.max, 1500.0);
    let names: Vec<&str> = log.classes.iter().map(|class| class.name.as_str()).collect();
    assert_eq!(names, ["Home", "Checkout / Pay / Card"]);
    assert_eq!(log.started_us, Some(1_680_605_883_400_000));
    near(log.duration_s, 2.64);
    assert_eq!(
        (log.settings["users"].as_str(), log.settings["description"].as_str()),
        ("2", "after the change")
    );
    let mut ended = Vec::new();
    log.seconds
        .unwrap()
        .each(|second| {
            ended.push(second.ledger.finished());
            Ok(())
        })
        .unwrap();
    assert_eq!(ended, [2, 0, 2, 1]);
}

#[test]
fn older_simulation_logs_have_users_and_scenarios_before_the_name() {
    let log = import("gatling-3.3-simulation.log", "gatling-log");
    let names: Vec<&str> = log.classes.iter().map(|class| class.name.as_str()).collect();
    assert_eq!(names, ["Home", "Checkout / Card"]);
    near(log.service.max, 260.0);
    let old = import("gatling-2.3-simulation.log", "gatling-log");
    assert_eq!(old.tool_version.as_deref(), Some("2.3.0"));
    assert_eq!((old.classes[0].name.as_str(), old.counts.ok), ("Home", Some(1)));
}

#[test]
fn statistics_of_gatling_are_those_of_ok_requests() {
    let stats = import("gatling-stats.json", "gatling-stats");
    assert_eq!(
        (stats.counts.sent, stats.counts.ok, stats.counts.failed),
        (Some(900), Some(740), Some(160))
    );
    let times = &stats.service;
    for (found, expected) in [
        (times.min, 115.0),
        (times.mean, 386.0),
        (times.p50, 332.0),
        (times.p95, 814.0),
        (times.p99, 1151.0),
        (stats.failed.p50, 186.0),
        (stats.ok_per_s, 2.458),
        (stats.achieved_per_s, 2.99),
    ] {
        near(found, expected);
    }
    assert_eq!((times.p90, times.p99_9), (None, None));
    let names: Vec<&str> = stats.classes.iter().map(|class| class.name.as_str()).collect();
    assert_eq!(names, ["Home", "Checkout / Card"]);
    assert_eq!(stats.classes[1].counts.failed, Some(160));
    near(stats.classes[1].service.p99, 1190.0);
}

#[test]
fn a_summary_of_vespa_fbench_is_read_and_its_hidden_failures_are_failures() {
    let fbench = import("vespa-fbench.txt", "fbench");
    assert_eq!(fbench.tool, "vespa-fbench");
    assert_eq!((fbench.counts.ok, fbench.counts.failed), (Some(75_463), Some(0)));
    for (found, expected) in [
        (fbench.service.min, 0.02),
        (fbench.service.mean, 1.71),
        (fbench.service.p99, 5.3),
        (fbench.service.p99_9, 73.8),
        (fbench.service.max, 108.38),
        (fbench.ok_per_s, 18_702.94),
    ] {
        near(found, expected);
    }
    assert_eq!(fbench.percentiles.len(), 12);
    // `failed requests: 0`, while 18131 requests had no answer.
    let down = import("vespa-fbench-down.txt", "fbench");
    assert_eq!((down.counts.ok, down.counts.failed), (Some(30_810), Some(18_131)));
    assert_eq!(down.failures["no answer"], 18_131);
    near(down.ok_per_s, 18_702.94 * 30_810.0 / 48_941.0);
    let ours = import("plimsoll-fbench.txt", "fbench");
    assert_eq!((ours.tool.as_str(), ours.counts.ok), ("plimsoll fbench", Some(231)));
    near(ours.service.p95, 24.63);
}

#[test]
fn the_last_trial_of_feedsim_is_its_result() {
    let table = import("feedsim_results.txt", "feedsim");
    for (found, expected) in [
        (table.offered_per_s, 20.49),
        (table.achieved_per_s, 21.55),
        (table.duration_s, 2737.0 / 21.55),
        (table.service.min, 352.849),
        (table.service.p95, 509.429),
        (table.service.p99_9, 556.451),
    ] {
        near(found, expected);
    }
    assert_eq!((table.counts.sent, table.counts.ok, table.service.max), (Some(2737), None, None));
    assert_eq!((table.bytes_received, table.bytes_sent), (Some(44_727_453), Some(8_276_688)));
    let search = import("feedsim-search.txt", "feedsim-log");
    near(search.service.p95, 487.25);
    near(search.achieved_per_s, 22.41);
    near(search.offered_per_s, 22.5);
    assert_eq!((search.service.p50, search.counts.sent), (None, None));
}

#[test]
fn metrics_of_benchpress_are_kept() {
    let run = import("benchpress.json", "benchpress");
    near(run.achieved_per_s, 25.31);
    near(run.offered_per_s, 25.08);
    near(run.service.p95, 498.75);
    assert_eq!(run.started_us, Some(1_650_388_812_000_000));
    assert_eq!(run.settings["benchmark"], "feedsim_default");
    assert_eq!((run.service.p50, run.counts.sent, run.duration_s), (None, None, None));
}

#[test]
fn what_is_no_format_is_one_clear_line() {
    for (bytes, words) in [
        (&b""[..], "run it again"),
        (&[0; 4096], "of no format that plimsoll imports"),
        (b"dear diary\n", "no known format begins with 'dear diary'"),
        (b"{\"a\": 1}", "no known format begins with"),
        (&[0x1f, 0x8b, 8, 0, 0], "gunzip"),
        (&[0, 0, 0, 6, 3, 1, 2], "Gatling 3.12"),
        (b"\x01\0\0Attack\0\0Latency\0", "vegeta encode"),
        (b"{\"schema\": \"plimsoll.run/1\"}", "plimsoll report"),
    ] {
        let error = import_bytes(bytes).unwrap_err().to_string();
        assert!(error.contains(words) && !error.contains('\n'), "{error}");
    }
}
