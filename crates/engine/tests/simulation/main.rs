//! Thousands of runs on a virtual clock, over a network in memory that fails on purpose.
//!
//! A run that fails says its seed; `SIMULATION_SEED=n` runs that one alone.

#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

mod asker;
mod books;
mod scene;

use scene::Scene;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

fn run_seeds(seeds: std::ops::Range<u64>) {
    let only = std::env::var("SIMULATION_SEED").ok().and_then(|seed| seed.parse::<u64>().ok());
    for seed in seeds {
        if only.is_some_and(|only| only != seed) {
            continue;
        }
        let scene = Scene::draw(seed);
        let result = catch_unwind(AssertUnwindSafe(|| books::check(&scene, &scene.run())));
        if let Err(panic) = result {
            eprintln!("seed {seed} failed: {scene:#?}");
            resume_unwind(panic);
        }
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
