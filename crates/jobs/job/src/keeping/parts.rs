//! Parts of a record that follow from the run alone.

use plimsoll_core::interval::Interval;
use plimsoll_core::scenario::Scenario;
use plimsoll_engine::run::RunEnd;
use plimsoll_engine::shard::{BATCHING_FROM, Slow};
use plimsoll_record::{Generator, Latencies, PhaseRecord, SlowRequest};
use plimsoll_report::assemble::rates;

/// Phase before the measured stretch.
pub(super) fn warmup_phase(scenario: &Scenario, warmup: &Interval) -> PhaseRecord {
    let all = warmup.all_classes();
    PhaseRecord {
        name: "warmup".to_owned(),
        from_s: 0.0,
        duration_s: scenario.warmup.as_seconds(),
        measured: false,
        schedule: serde_json::to_value(&scenario.load).unwrap_or_default(),
        ledger: warmup.ledger,
        rate: rates(&warmup.ledger, &warmup.counters, scenario.warmup.as_seconds()),
        latency_ms: Latencies {
            response: all.response.summary(),
            service: all.service.summary(),
            failed: all.failed_summary(),
            server: all.server.as_ref().map(|server| server.times.summary()),
            judged: None,
        },
    }
}

/// Returns the generator of a run as far as the engine knows it.
pub(super) fn generator_of(scenario: &Scenario, end: &RunEnd) -> Generator {
    let wait = if scenario.spin.ns > 0 {
        "spin"
    } else if scenario.batching
        && scenario.load.is_full_speed()
        && scenario.own_connections() / scenario.threads >= BATCHING_FROM
    {
        "batch"
    } else {
        "sleep"
    };
    Generator {
        cpu_s: end.cpu_s,
        threads: scenario.threads,
        rss_max_bytes: end.rss_max_bytes,
        busiest_thread: end.health.busy,
        health: end.health,
        wait: wait.to_owned(),
        ..Generator::default()
    }
}

/// Returns one of the slowest requests.
pub(super) fn slow_request(slow: &Slow, end: &RunEnd, names: &[String]) -> SlowRequest {
    let times = slow.times;
    SlowRequest {
        class: names.get(slow.what.class as usize).cloned().unwrap_or_default(),
        item: slow.what.item,
        response_ms: slow.response_ns() as f64 / 1e6,
        service_ms: times.done_ns.saturating_sub(times.sent_ns) as f64 / 1e6,
        at_s: times.intended_ns.saturating_sub(end.start_ns) as f64 / 1e9,
        outcome: match slow.outcome {
            plimsoll_core::outcome::Outcome::Ok => "ok".to_owned(),
            plimsoll_core::outcome::Outcome::Failed(kind) => kind.name().to_owned(),
        },
        request: slow.text.clone(),
        trace_id: slow.trace_id.clone(),
    }
}
