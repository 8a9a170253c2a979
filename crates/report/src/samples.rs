//! Runs for tests: made from intervals, as the engine hands them over.

mod outline;

pub use outline::{check_places, check_places_in, derived, outline};

use crate::assemble::{Ending, PhasePlan, RecordHeader, Tally, assemble};
use crate::naming::Naming;
use plimsoll_core::interval::Interval;
use plimsoll_core::seek::finding::Finding;
use plimsoll_core::verdict::{Verdict, VerdictKind};
use plimsoll_record::seek::SeekResult;
use plimsoll_record::{
    Generator, Machine, Network, RunRecord, SloResult, SlowRequest, TargetInfo, Tool,
};
use serde_json::json;
use std::collections::BTreeMap;

/// A run of a warm-up and a measured phase over two classes.
pub fn header() -> RecordHeader {
    let phase = |name: &str, measured: bool, from_s| PhasePlan {
        from_s,
        duration_s: (!measured).then_some(1.0),
        name: name.to_owned(),
        measured,
        schedule: json!({"kind": "open", "rate_per_s": 100.0}),
    };
    RecordHeader {
        tool: Tool { version: "0.1.0".to_owned(), commit: "0123abc".to_owned(), ..Tool::default() },
        run_id: "1a2b3c4d".to_owned(),
        job: "load".to_owned(),
        naming: Naming::default(),
        started_at: "2026-11-21T20:48:22Z".to_owned(),
        command: ["plimsoll", "load", "http://127.0.0.1:8080/search/", "--rate", "100"]
            .map(str::to_owned)
            .to_vec(),
        scenario: json!({"seed": 42, "rate": 100}),
        target: TargetInfo {
            url: "http://127.0.0.1:8080/search/".to_owned(),
            same_host: true,
            addresses: vec!["127.0.0.1:8080".to_owned()],
        },
        machine: Machine {
            cpu: "a processor".to_owned(),
            cpus: 2,
            cpus_allowed: Some(1),
            memory_bytes: 8_000_000_000,
            kernel: "6.1.0".to_owned(),
            os: "Debian 12".to_owned(),
            hostname: "here".to_owned(),
            architecture: "x86_64".to_owned(),
            distribution: "debian".to_owned(),
            caches: BTreeMap::from([("L2 cache".to_owned(), "4 MiB (2 instances)".to_owned())]),
        },
        class_names: vec!["one term".to_owned(), "fuzzy".to_owned()],
        phases: vec![phase("warmup", false, 0.0), phase("steady", true, 1.0)],
    }
}

/// One second in which `requests` requests end: every eighth of class 1, the rest of class 0.
pub fn second(index: u64, phase: u32, requests: u64) -> Interval {
    let mut interval = Interval::new(2);
    interval.from_ns = index * 1_000_000_000;
    interval.to_ns = interval.from_ns + 1_000_000_000;
    interval.phase = phase;
    for i in 0..requests {
        let class = usize::from(i % 8 == 7);
        let service_ns = if class == 1 { 20_000_000 } else { 1_000_000 } + i * 40_000 + index;
        let part = &mut interval.classes[class];
        part.record_ok(service_ns + 150_000, service_ns);
        part.ledger.sent += 1;
        part.ledger.ok += 1;
        part.hits_known += 1;
        part.zero_hits += u64::from(i % 10 == 9);
        interval.lag.record(20_000 + i * 100);
        interval.counters.bytes_sent += 120;
        interval.counters.bytes_received += 4_096;
    }
    interval.ledger.scheduled = requests;
    interval.ledger.sent = requests;
    interval.ledger.ok = requests;
    if requests > 0 {
        interval.statuses.insert(200, requests);
    }
    interval.counters.reused = requests;
    interval.counters.ended_in_time = requests;
    interval.counters.ok_in_time = requests;
    interval
}

/// Ending of a successful run, as the caller knows it.
pub fn ending() -> Ending {
    let slow = |item: u64, response_ms: f64, request: &str| SlowRequest {
        class: "fuzzy".to_owned(),
        item,
        response_ms,
        service_ms: response_ms - 0.15,
        at_s: 2.5,
        outcome: "ok".to_owned(),
        request: request.to_owned(),
        trace_id: None,
    };
    let long = "GET /search/?query=fuzzy+and+long&ranking=default&hits=10&timeout=5s&summary=all";
    Ending {
        generator: Generator {
            cpu_s: 0.003_6,
            threads: 1,
            rss_max_bytes: 12_300_000,
            busiest_thread: 0.012,
            wait: "sleep".to_owned(),
            ..Generator::default()
        },
        network: Some(Network {
            connections: 8,
            rtt_min_us: 15,
            rtt_floor_median_us: 21,
            rtt_median_us: 40,
            retransmits: 0,
        }),
        slowest: vec![
            slow(17, 23.8, long),
            slow(9, 23.4, "GET /search/?q=\u{1b}[2J\nAuthorization: x"),
        ],
        slo: BTreeMap::from([(
            "p95".to_owned(),
            SloResult {
                limit: "<= 500 ms".to_owned(),
                measured: 22.1,
                unit: "ms".to_owned(),
                held: true,
                ..SloResult::default()
            },
        )]),
        ..Ending::default()
    }
}

/// The seconds of a good run: one of warm-up, three measured.
pub fn seconds() -> Vec<Interval> {
    let mut seconds: Vec<_> =
        (0..4).map(|i| second(i, u32::from(i > 0), if i == 0 { 50 } else { 100 })).collect();
    seconds[0].counters.connects = 8;
    seconds
}

/// The record of these seconds.
pub fn record_of(seconds: &[Interval], ending: Ending) -> RunRecord {
    let header = header();
    let mut tally = Tally::new(&header);
    seconds.iter().for_each(|second| tally.add(second));
    let (totals, phases) = tally.finish();
    assemble(&header, &totals, phases, ending)
}

/// A run that ended well.
pub fn good() -> RunRecord {
    record_of(&seconds(), ending())
}

/// A closed port: every request failed to connect.
pub fn failed() -> RunRecord {
    let mut header = header();
    header.class_names = vec!["all".to_owned()];
    header.phases.remove(0);
    header.phases[0].from_s = 0.0;
    let mut interval = Interval::new(1);
    interval.counters.ended_in_time = 40;
    interval.to_ns = 2_000_000_000;
    for i in 0..40u64 {
        interval.classes[0].failed.record(200_000 + i * 1_000);
        interval.lag.record(30_000);
    }
    interval.ledger.scheduled = 40;
    interval.ledger.sent = 40;
    interval.ledger.failed.connect = 40;
    interval.classes[0].ledger.sent = 40;
    interval.classes[0].ledger.failed.connect = 40;
    let reason = "no request of 40 succeeded: connection refused by 127.0.0.1:8080; \
                  is the target running?";
    let ending = Ending {
        generator: ending().generator,
        verdict: verdict(VerdictKind::TargetFailed, reason),
        ..Ending::default()
    };
    let mut tally = Tally::new(&header);
    tally.add(&interval);
    let (totals, phases) = tally.finish();
    assemble(&header, &totals, phases, ending)
}

/// A verdict with one reason.
pub fn verdict(kind: VerdictKind, reason: &str) -> Verdict {
    Verdict::new(kind, vec![reason.to_owned()])
}

/// A search that followed its target, which got faster meanwhile.
pub fn followed() -> RunRecord {
    let stretch = |(from_s, until_s, state), line: Option<(f64, f64, f64)>, note: Option<&str>| {
        serde_json::json!({
            "from_s": from_s, "until_s": until_s, "state": state,
            "line_per_s": line.map(|l| l.0), "interval_per_s": line.map(|l| (l.1, l.2)),
            "capacity_per_s": 200.0, "blocks": 8, "blocks_from_s": from_s, "note": note,
        })
    };
    let found = serde_json::json!({
        "verdict": "ok", "reason": "the line moved from 155/s to 208/s",
        "certified": null, "certified_last": false, "failing": null, "estimate_per_s": null,
        "interval_per_s": null, "confidence": 0.95, "half_width": null, "forecast": null,
        "forecast_first": null, "capacity_per_s": 266.0, "floor_s": 0.02,
        "binding": "p95=100ms", "slope": null, "curve": [], "phases": [], "elapsed_s": 130.0,
        "watch": [
            stretch((23.0, 60.0, 1), Some((155.0, 149.0, 162.0)), None),
            stretch((60.0, 92.0, 1), None, Some("the target got faster: it completes 266/s")),
            stretch((92.0, 130.0, 2), Some((208.0, 199.0, 217.0)), Some("a new state of the target")),
        ],
    });
    let mut record = good();
    record.job = "seek".to_owned();
    let finding: Finding = serde_json::from_value(found).expect("a finding");
    record.job_results.put(SeekResult::from(finding));
    record
}
