//! Parts of a record that follow from the run alone.

use plimsoll_core::scenario::Scenario;
use plimsoll_engine::run::RunEnd;
use plimsoll_engine::shard::{BATCHING_FROM, Slow};
use plimsoll_record::{Generator, SlowRequest};

/// Returns the generator of a run as far as the engine knows it.
pub(super) fn generator_of(scenario: &Scenario, end: &RunEnd) -> Generator {
    let wait = wait_of(scenario);
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

/// Kind of wait that the engine chooses, tried in its order.
fn wait_of(scenario: &Scenario) -> &'static str {
    if scenario.batching
        && scenario.load.is_full_speed()
        && scenario.own_connections() / scenario.threads >= BATCHING_FROM
    {
        "batch"
    } else if scenario.spin.ns > 0 {
        "spin"
    } else {
        "sleep"
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

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::schedule::{LoadModel, Think};
    use plimsoll_core::units::Span;

    #[test]
    fn a_load_with_many_clients_is_batched_although_it_could_spin() {
        let load = LoadModel::Closed { clients: 64, think: Think::None, cycle_ns: 0 };
        let scenario = Scenario { load, spin: Span { ns: 60_000 }, ..Scenario::default() };
        assert_eq!(wait_of(&scenario), "batch");
        assert_eq!(wait_of(&Scenario { batching: false, ..scenario.clone() }), "spin");
        let sleeps = Scenario { batching: false, spin: Span { ns: 0 }, ..scenario };
        assert_eq!(wait_of(&sleeps), "sleep");
    }
}
