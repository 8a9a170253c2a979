//! Runs of any kind over SQL and VoltDB, in parts and whole, for the tests of both.

use plimsoll_core::rng::Rng;
use plimsoll_core::scenario::Scenario;
use plimsoll_core::schedule::LoadModel;
use plimsoll_engine::sim::parts::{any_scenario, asked, difference, in_parts};
use plimsoll_engine::target::Target;
use plimsoll_job::prepare::{check_limits, plan_of};
use plimsoll_wire::{Protocol, Sessions};

/// A scenario with any load and any order.
pub fn drawn(seed: u64) -> Scenario {
    let mut rng = Rng::new(!seed);
    let mut scenario = any_scenario(seed);
    let orders = match scenario.load {
        LoadModel::Users { .. } => &["file", "block", "interleaved", "shuffle", "random"][..],
        _ => &["file", "shuffle", "random"][..],
    };
    orders[rng.below(orders.len() as u64) as usize].clone_into(&mut scenario.order);
    scenario
}

/// The text of a file of statements.
pub fn lines(seed: u64) -> String {
    (0..1 + Rng::new(seed).below(30)).map(|line| format!("SELECT {line}\n")).collect()
}

/// The first request that differs between a run in parts and the same one in one process.
pub fn unions_differ<P: Protocol>(
    scenario: &Scenario,
    sessions: impl Fn(&Scenario) -> Vec<Box<dyn Sessions<P> + Send>>,
    text: impl Fn(&P::Request) -> String,
) -> Option<String> {
    let mut rng = Rng::new(scenario.seed);
    let (parts, threads) = (1 + rng.below(5) as u32, 1 + rng.below(3) as u32);
    let part = |own: Scenario| {
        check_limits(&own).unwrap();
        let plan = plan_of(&own, vec![Target::resolve("127.0.0.1", 9)], None, 1);
        asked(&plan, sessions(&own), &text).unwrap()
    };
    let union = |parts, threads| in_parts(scenario, parts, threads).flat_map(part).collect();
    difference(union(parts, threads), union(1, parts * threads))
}
