//! The parts of a run vote as one process does: the same ballots, due at the same times.

use plimsoll_core::rng::Rng;
use plimsoll_core::scenario::Scenario;
use plimsoll_core::voter::KeyRange;
use plimsoll_engine::sim::parts::{Asked, any_scenario, asked, difference, in_parts};
use plimsoll_engine::target::Target;
use plimsoll_job::prepare::plan_of;
use plimsoll_voter::{
    Game, PostgresHello, PostgresVotes, Settings, SqlWay, VoltHello, VoltVotes, VoterTally, Voting,
};
use plimsoll_wire::{Protocol, Sessions};
use std::sync::Arc;
use std::sync::mpsc::Sender;

/// Makes the sessions of a shard.
type Make<'a, P> =
    &'a dyn Fn(Arc<Voting>, u32, u32, Sender<VoterTally>) -> Box<dyn Sessions<P> + Send>;

/// The calls of one part, in the same key range as those of the others.
fn part<P: Protocol>(scenario: &Scenario, range: KeyRange, make: Make<'_, P>) -> Vec<Asked>
where
    P::Request: std::fmt::Debug,
{
    let game = Game { seed: scenario.seed, range, ..Game::default() };
    let settings = Settings { game, slice: scenario.slice, ..Settings::default() };
    let threads = scenario.threads;
    let voting = Arc::new(Voting::new(settings, threads).unwrap());
    let (sender, _counted) = std::sync::mpsc::channel();
    let shards = 0..threads;
    let sessions = shards.map(|shard| make(voting.clone(), shard, threads, sender.clone()));
    let plan = plan_of(scenario, vec![Target::resolve("127.0.0.1", 9)], None, 1);
    asked(&plan, sessions.collect(), |request| format!("{request:?}")).unwrap()
}

fn unions_are_the_same<P: Protocol>(seed: u64, make: Make<'_, P>)
where
    P::Request: std::fmt::Debug,
{
    let mut rng = Rng::new(seed);
    let scenario = any_scenario(seed);
    let range = KeyRange { index: rng.below(3) as u32, of: 3 };
    let (parts, threads) = (1 + rng.below(5) as u32, 1 + rng.below(3) as u32);
    let union = |parts, threads| {
        in_parts(&scenario, parts, threads).flat_map(|own| part(&own, range, make)).collect()
    };
    let difference = difference(union(parts, threads), union(1, parts * threads));
    assert_eq!(difference, None, "seed {seed}: {scenario:?}");
}

#[test]
fn the_calls_of_all_parts_are_those_of_one_process() {
    for seed in 0..40 {
        unions_are_the_same(seed, &|voting, shard, shards, sender| {
            Box::new(VoltVotes::new(voting, shard, shards, sender))
        });
        unions_are_the_same(seed, &|voting, shard, shards, sender| {
            Box::new(VoltHello::new(voting, shard, shards, sender))
        });
        unions_are_the_same(seed, &|voting, shard, shards, sender| {
            Box::new(PostgresVotes::new(voting, SqlWay::Function, shard, shards, sender))
        });
        unions_are_the_same(seed, &|voting, shard, shards, sender| {
            Box::new(PostgresHello::new(voting, shard, shards, sender))
        });
    }
}
