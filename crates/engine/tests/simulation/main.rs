//! Thousands of runs on a virtual clock, over a network in memory that fails on purpose.
//!
//! A run that fails says its seed; `SIMULATION_SEED=n` runs that one alone.

#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

mod ageing;
mod asker;
mod books;
mod breaking;
mod bursts;
mod calls;
mod closing;
mod connecting;
mod contract;
mod driven;
mod freed;
mod golden;
mod hanging;
mod multiplex;
mod noticing;
mod preamble;
mod scene;
mod scripted;
mod shared;

use plimsoll_core::clock::{MILLISECOND_NS, SECOND_NS};
use plimsoll_core::schedule::{Arrivals, Limits, LoadModel};
use scene::Scene;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Failed runs that are shown before the test gives up.
const FAILURES_SHOWN: usize = 10;

fn run_seeds(seeds: std::ops::Range<u64>) {
    let only = std::env::var("SIMULATION_SEED").ok().and_then(|seed| seed.parse::<u64>().ok());
    let (mut failed, mut first) = (Vec::new(), None);
    for seed in seeds {
        if only.is_some_and(|only| only != seed) {
            continue;
        }
        let scene = Scene::draw(seed);
        let result = catch_unwind(AssertUnwindSafe(|| books::check(&scene, &scene.run())));
        if let Err(panic) = result {
            eprintln!("SIMULATION_SEED={seed} failed: {scene:#?}");
            failed.push(seed);
            first = first.or(Some(panic));
        }
        if failed.len() >= FAILURES_SHOWN {
            break;
        }
    }
    if let Some(panic) = first {
        eprintln!("failed: {failed:?}");
        resume_unwind(panic);
    }
}

#[test]
fn the_books_hold_in_every_run_a() {
    run_seeds(0..1250);
}

#[test]
fn the_books_hold_in_every_run_b() {
    run_seeds(1250..2500);
}

#[test]
fn the_same_seed_gives_the_same_record() {
    for seed in 5000..5040 {
        let scene = Scene::draw(seed);
        assert_eq!(scene.run().record(), scene.run().record(), "seed {seed}");
    }
}

/// With arrivals at even distances and a server frozen for D of every P, a request waits for what is left of
/// the freeze: the quantile q of the response time is max(0, D - (1 - q) P). However few connections there
/// are, and however little they see of it themselves, nothing of that is omitted.
#[test]
fn a_frozen_server_is_seen_whole_through_any_number_of_connections() {
    let (every_ns, frozen_ns) = (5 * SECOND_NS, SECOND_NS);
    for connections in [1, 7, 2000] {
        let scene = Scene::frozen(connections, every_ns, frozen_ns, 20 * SECOND_NS);
        let run = scene.run();
        books::check(&scene, &run);
        let totals = run.totals().all_classes();
        assert_eq!(totals.ledger.ok, 20_000);
        for quantile in [0.5, 0.79, 0.81, 0.85, 0.9, 0.95, 0.99, 0.999, 1.0] {
            let waited_ns = (1.0 - quantile) * every_ns as f64;
            let exact_ns = (frozen_ns as f64 - waited_ns).max(0.0);
            let shown_ns = totals.response.quantile_ns(quantile) as f64;
            // Three digits, and the distance between two arrivals.
            let tolerance_ns = 1e-3 * exact_ns + MILLISECOND_NS as f64 + 2_000.0;
            assert!(
                (shown_ns - exact_ns).abs() <= tolerance_ns,
                "{connections} connections, quantile {quantile}: {shown_ns} against {exact_ns}"
            );
        }
        if connections == 1 {
            // What a client that waits for its answers would have told: four slow requests.
            assert!(totals.service.quantile_ns(0.999) < 2 * MILLISECOND_NS);
        }
    }
}

/// Requests that wait for the one connection when the run ends were delayed like those before them.
#[test]
fn a_freeze_at_the_end_is_seen_as_whole_as_one_in_the_middle() {
    // Frozen from 0 to 1 s and from 5 to 6 s; the last request is due at 5.5 s.
    let scene = Scene::frozen(1, 5 * SECOND_NS, SECOND_NS, 5_500 * MILLISECOND_NS);
    let run = scene.run();
    books::check(&scene, &run);
    let totals = run.totals();
    assert_eq!((totals.ledger.ok, totals.ledger.unsent.stopped), (5_500, 0));
    // Those due in the first 600 ms of the first freeze, and all 500 of the second.
    let slow = totals.all_classes().response.count_above(400 * MILLISECOND_NS);
    assert!((1_098..=1_102).contains(&slow), "{slow}");
    assert!(totals.counters.ended_in_time < 5_010, "what ends after the run is in no rate");
}

/// 1000 requests in one second to a server that needs `service_ns` for each.
fn slow(connections: u32, service_ns: u64, timeout_ns: u64) -> Scene {
    let mut scene = Scene::frozen(connections, SECOND_NS, SECOND_NS, SECOND_NS);
    scene.script.freeze = None;
    scene.script.service_ns = (service_ns, service_ns);
    scene.plan.timeouts.connect_ns = timeout_ns;
    scene.plan.timeouts.request_ns = timeout_ns;
    scene
}

#[test]
fn a_backlog_is_sent_after_the_end_for_as_long_as_a_timeout() {
    let scene = slow(1, 10 * MILLISECOND_NS, 500 * MILLISECOND_NS);
    let run = scene.run();
    books::check(&scene, &run);
    let totals = run.totals();
    // One every 10 ms for 1.5 s.
    assert!((145..=152).contains(&totals.ledger.sent), "{:?}", totals.ledger);
    assert_eq!(totals.ledger.unsent.stopped, 1000 - totals.ledger.sent);
    let lasted_ns = run.over_ns - run.start_ns;
    assert!(lasted_ns < 1_600 * MILLISECOND_NS, "{lasted_ns}");
}

#[test]
fn nothing_is_sent_after_the_end_to_a_target_that_is_not_there() {
    let mut scene = slow(1, 0, 4 * SECOND_NS);
    scene.script.connects.refused = 1000;
    let run = scene.run();
    books::check(&scene, &run);
    let ledger = run.totals().ledger;
    assert!(ledger.unsent.stopped > 900 && ledger.failed.connect > 3, "{ledger:?}");
    let lasted_ns = run.over_ns - run.start_ns;
    assert!(lasted_ns < 1_300 * MILLISECOND_NS, "{lasted_ns}");
}

/// A server that never answers is waited for no longer because requests were left to send to it.
#[test]
fn a_backlog_for_a_server_that_never_answers_ends_in_time() {
    let mut scene = slow(10, 0, 3 * SECOND_NS);
    scene.plan.timeouts.connect_ns = 20 * SECOND_NS;
    scene.script.requests.stalled = 1000;
    let run = scene.run();
    let ledger = run.totals().ledger;
    ledger.balance().unwrap();
    // The first ten time out after 3 s, and the ten that go after them with the run.
    assert_eq!((ledger.failed.timeout, ledger.unsent.stopped), (20, 980), "{ledger:?}");
    let lasted_ns = run.over_ns - run.start_ns;
    assert!(lasted_ns <= 5_100 * MILLISECOND_NS, "{lasted_ns}");
    assert!(run.totals().all_classes().failed.min_ns() >= 2_990 * MILLISECOND_NS);
}

#[test]
fn who_stops_a_run_does_not_wait_for_its_backlog() {
    let mut scene = slow(1, 10 * MILLISECOND_NS, 4 * SECOND_NS);
    scene.stop_ns = Some(1_500 * MILLISECOND_NS);
    let run = scene.run();
    books::check(&scene, &run);
    assert!(run.totals().ledger.unsent.stopped > 400);
    assert!(run.over_ns < 1_600 * MILLISECOND_NS, "{}", run.over_ns);
}

/// A target's rate is what it answers in the stretch, however long an answer takes.
#[test]
fn answers_to_the_warmup_that_come_after_it_count_in_the_rate() {
    let mut scene = slow(2000, SECOND_NS, 4 * SECOND_NS);
    scene.plan.warmup_ns = 2 * SECOND_NS;
    scene.plan.limits.duration_ns = 4 * SECOND_NS;
    let run = scene.run();
    books::check(&scene, &run);
    let totals = run.totals();
    assert_eq!(totals.ledger.scheduled, 2000);
    // 1000/s are asked and 1000/s are answered.
    assert!(totals.counters.ok_in_time.abs_diff(2000) < 10, "{:?}", totals.counters);
}

/// Ten uniform arrivals at 10/s stand for a second, although the last one is due after 0.9 s.
#[test]
fn a_number_of_requests_is_offered_at_the_rate_that_was_asked_for() {
    let mut scene = slow(4, 0, SECOND_NS);
    scene.plan.model = LoadModel::Open { rate_per_s: 10.0, arrivals: Arrivals::Uniform };
    scene.plan.limits = Limits { duration_ns: 60 * SECOND_NS, requests: Some(10) };
    let run = scene.run();
    books::check(&scene, &run);
    assert_eq!(run.totals().ledger.ok, 10);
    assert_eq!(run.end.measured_ns.1 - run.end.measured_ns.0, SECOND_NS);
}

/// Neither a warm-up nor a wait for the last replies is in the marks that say how busy the shard was.
#[test]
fn marks_are_taken_where_the_measured_stretch_begins_and_ends() {
    let mut scene = slow(10, 10 * MILLISECOND_NS, 4 * SECOND_NS);
    scene.plan.warmup_ns = 300 * MILLISECOND_NS;
    scene.script.requests.stalled = 5;
    let run = scene.run();
    let (from, to) = run.end.marks;
    assert_eq!((from.at_ns, to.at_ns), run.end.measured_ns);
    assert_eq!(to.at_ns - from.at_ns, 700 * MILLISECOND_NS);
    assert!(run.over_ns > to.at_ns + 3 * SECOND_NS, "it waited for the stalled ones");
    assert!(to.idle_ns - from.idle_ns <= to.at_ns - from.at_ns);
}

/// The measured stretch was complete: only its last replies are missing, and they are in the books.
#[test]
fn a_stop_while_the_last_replies_are_waited_for_takes_nothing_from_what_was_measured() {
    let mut scene = slow(10, 10 * MILLISECOND_NS, 4 * SECOND_NS);
    scene.script.requests.stalled = 5;
    scene.stop_ns = Some(2_500 * MILLISECOND_NS);
    let run = scene.run();
    books::check(&scene, &run);
    assert!(!run.end.interrupted && run.end.drain_cut);
    let (ledger, (from_ns, to_ns)) = (run.totals().ledger, run.end.measured_ns);
    assert!(ledger.unfinished > 0, "{ledger:?}");
    assert_eq!(to_ns - from_ns, SECOND_NS);
    assert!(run.over_ns < 3_100 * MILLISECOND_NS, "{}", run.over_ns);
}

/// A thread that comes late to the start has not been late for nothing: its requests show it.
#[test]
fn a_late_start_is_lag() {
    let mut scene = slow(4, 0, SECOND_NS);
    scene.late_ns = 5 * MILLISECOND_NS;
    let run = scene.run();
    let totals = run.totals();
    assert_eq!(
        (totals.ledger.ok, run.end.measured_ns.1 - run.end.measured_ns.0),
        (1000, SECOND_NS)
    );
    assert!(totals.lag.max_ns() >= 4_900_000, "{}", totals.lag.max_ns());
}

#[test]
fn a_connection_that_died_idle_is_left_alone_while_a_living_one_is_free() {
    // A connection dies 80 ms after its answer, requests come every 50 ms: one connection lives on.
    let mut scene = slow(3, 0, SECOND_NS);
    scene.plan.model = LoadModel::Open { rate_per_s: 20.0, arrivals: Arrivals::Uniform };
    scene.plan.preconnect = true;
    scene.script.idle_close_ns = 80 * MILLISECOND_NS;
    let run = scene.run();
    books::check(&scene, &run);
    let totals = run.totals();
    assert_eq!((totals.ledger.ok, totals.counters.connects), (20, 3));
}

#[test]
fn a_host_that_says_nothing_delays_the_start_by_little() {
    let mut scene = slow(5, 0, 4 * SECOND_NS);
    scene.plan.preconnect = true;
    scene.script.connects.silent = 1000;
    let run = scene.run();
    books::check(&scene, &run);
    // The clock begins at 1 s.
    assert!(run.start_ns <= 2_600 * MILLISECOND_NS, "{}", run.start_ns);
    assert_eq!(run.totals().ledger.failed.timeout, 5);
}
