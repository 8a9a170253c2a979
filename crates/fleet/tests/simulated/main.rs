//! A coordinator and its agents on virtual time, over a bus that loses, repeats, delays and reorders, with agents that die, freeze,
//! start late or twice, clocks that differ by seconds, and cut links.
//!
//! In every run: it ends; no number is printed as valid that is not the sum of what all agents did; no agent makes load for more
//! than ten seconds after it last heard of its coordinator. `PLIMSOLL_FLEET_SEEDS` sets the number of seeds.

// Everything here is a test, which clippy can only tell of functions marked as such.
#![allow(clippy::unwrap_used)]

mod agent;
mod scene;
mod world;

use scene::Scene;
use world::{Outcome, World};

const SECOND: u64 = 1_000_000_000;

fn seeds() -> u64 {
    let set = std::env::var("PLIMSOLL_FLEET_SEEDS").ok();
    set.and_then(|text| text.parse().ok()).unwrap_or(600)
}

#[test]
fn no_fault_makes_a_wrong_number_valid_a_run_endless_or_an_agent_an_orphan() {
    let (mut valid, mut partial, mut refused, mut dead) = (0, 0, 0, 0);
    for seed in 0..seeds() {
        let scene = Scene::of(seed);
        let shown = format!("seed {seed}: {scene:?}");
        let mut world = World::of(&scene, seed);
        let outcome = world.run().unwrap_or_else(|why| panic!("{shown}\n{why}"));
        world.check(&outcome).unwrap_or_else(|why| panic!("{shown}\n{outcome:?}\n{why}"));
        match outcome {
            Outcome::Valid(_) => valid += 1,
            Outcome::Partial(..) => partial += 1,
            Outcome::Refused(_) => refused += 1,
            Outcome::CoordinatorDied => dead += 1,
        }
    }
    // The faults do not hide that most runs are none of them.
    assert!(
        valid * 10 > seeds(),
        "{valid} valid, {partial} partial, {refused} refused, {dead} dead"
    );
    assert!(partial > 0 && refused > 0 && dead > 0, "{valid} {partial} {refused} {dead}");
}

#[test]
fn a_run_without_faults_is_valid() {
    for seed in 0..20 {
        let scene = Scene::quiet(1 + seed % 9);
        let mut world = World::of(&scene, seed);
        let outcome = world.run().unwrap();
        world.check(&outcome).unwrap();
        assert!(matches!(outcome, Outcome::Valid(_)), "{outcome:?}");
    }
}

/// Agents send no seconds in their warm-up, and are not lost for that.
#[test]
fn a_warmup_longer_than_the_longest_silence_loses_no_agent() {
    for seed in 0..4 {
        let mut scene = Scene::quiet(3);
        scene.warmup_s = 200;
        let mut world = World::of(&scene, seed);
        let outcome = world.run().unwrap();
        world.check(&outcome).unwrap();
        assert!(matches!(outcome, Outcome::Valid(_)), "{outcome:?}");
    }
}

/// A link that is cut for less than the limit of silence costs nothing.
#[test]
fn a_bus_that_is_away_for_five_seconds_loses_nothing() {
    for seed in 0..20 {
        let mut scene = Scene::quiet(4);
        scene.away = Some((3 * SECOND, 5 * SECOND));
        let mut world = World::of(&scene, seed);
        let outcome = world.run().unwrap();
        world.check(&outcome).unwrap();
        assert!(matches!(outcome, Outcome::Valid(_)), "{outcome:?}");
    }
}

/// 99 agents, each of which reports its last second late.
#[test]
fn agents_that_are_late_with_their_last_second_are_waited_for_or_named() {
    for seed in 0..4 {
        let mut scene = Scene::quiet(99);
        scene.duration_s = 3;
        scene.last_second_late_ns = 60 * SECOND;
        let mut world = World::of(&scene, seed);
        let outcome = world.run().unwrap();
        world.check(&outcome).unwrap();
        assert!(matches!(outcome, Outcome::Valid(_)), "{outcome:?}");
    }
}
