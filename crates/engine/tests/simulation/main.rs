//! Thousands of runs on a virtual clock, over a network in memory that fails on purpose.
//!
//! A run that fails says its seed; `SIMULATION_SEED=n` runs that one alone.

#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

mod asker;
mod books;
mod closing;
mod connecting;
mod scene;
mod scripted;

use plimsoll_core::clock::{MILLISECOND_NS, SECOND_NS};
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
