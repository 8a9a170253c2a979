//! The number of calls under way finds a made-up server's limit, and stays there.

use super::*;
use crate::Trace;
use plimsoll_core::clock::MILLISECOND_NS;
use plimsoll_core::rng::Rng;
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A closed server of so many places, each busy for an exponential time of 1 ms on average. Runs for so many seconds; gives
/// back the trace.
fn run(tuner: &mut Tuner, places: u32, seconds: u64) -> Trace {
    let mut rng = Rng::new(3);
    let mut trace = Trace::default();
    let mut free: BinaryHeap<_> = (0..places).map(|_| Reverse(1u64)).collect();
    let mut under_way = BinaryHeap::new();
    let mut now_ns = 1;
    while now_ns < seconds * SECOND_NS {
        while (under_way.len() as u32) < tuner.allowed() {
            let Reverse(place_ns) = free.pop().unwrap();
            let service_ns = (rng.exponential() * 1e6) as u64;
            let done_ns = place_ns.max(now_ns) + service_ns;
            free.push(Reverse(done_ns));
            under_way.push((Reverse(done_ns), now_ns));
        }
        tuner.full();
        let (Reverse(done_ns), sent_ns) = under_way.pop().unwrap();
        now_ns = now_ns.max(done_ns);
        let late = tuner.ended(Some(now_ns - sent_ns), now_ns);
        trace.ended(now_ns, late, tuner.allowed(), tuner.retreats() > 0);
    }
    trace
}

#[test]
fn the_load_settles_where_the_limit_is() {
    for places in [4, 32, 200] {
        let goal: TuneGoal = "p99=20ms".parse().unwrap();
        let mut tuner = Tuner::new(goal.clone(), 100_000, 1);
        let result = run(&mut tuner, places, 20).result(&goal);
        let (best, capacity) = (result.best_rate_per_s.unwrap(), f64::from(places) * 1000.0);
        assert!(best > 0.9 * capacity && best < 1.05 * capacity, "{places}: {best} of {capacity}");
        // By Little's law about 20 ms of the capacity may be under way; the tail of the service takes some of it.
        let allowed = result.best_under_way.unwrap();
        let little = capacity * 0.020;
        assert!((0.5 * little..1.1 * little).contains(&allowed), "{places}: {allowed} of {little}");
        let (held, windows) = (result.windows_held, result.windows);
        assert!(held * 5 > windows * 3, "{places}: {held} of {windows}");
        assert!(tuner.retreats() > 0);
    }
}

#[test]
fn a_number_that_is_held_stays_whatever_comes_late() {
    let goal: TuneGoal = "p99=1us".parse().unwrap();
    let shares: Vec<u32> = (0..4)
        .map(|shard| Tuner::new(goal.clone(), 1000, 4).held(10, shard, 4).allowed())
        .collect();
    assert_eq!(shares, [3, 3, 2, 2], "the shards' shares are exactly the whole");
    let mut tuner = Tuner::new(goal, 1000, 1).held(40, 0, 1);
    let trace = run(&mut tuner, 8, 5);
    assert_eq!((tuner.allowed(), tuner.retreats()), (40, 0));
    let (calls, late) = trace.counts();
    assert!(calls > 30_000 && late == calls, "{late} of {calls}");
}

#[test]
fn a_limit_that_nothing_keeps_leaves_one_call_and_no_best_rate() {
    let goal: TuneGoal = "p99=10us".parse().unwrap();
    let mut tuner = Tuner::new(goal.clone(), 1000, 1);
    let result = run(&mut tuner, 8, 10).result(&goal);
    assert_eq!((tuner.allowed(), result.best_rate_per_s), (1, None));
}

#[test]
fn a_limit_that_everything_keeps_takes_all_there_is() {
    let goal: TuneGoal = "p90=10s".parse().unwrap();
    let mut tuner = Tuner::new(goal.clone(), 300, 1);
    let result = run(&mut tuner, 8, 10).result(&goal);
    assert_eq!((tuner.allowed(), tuner.retreats()), (300, 0));
    assert!(
        (result.best_rate_per_s.unwrap() - 8000.0).abs() < 300.0,
        "{:?}",
        result.best_rate_per_s
    );
}

#[test]
fn what_is_not_used_does_not_grow() {
    let mut tuner = Tuner::new("p99=10ms".parse().unwrap(), 1000, 1);
    for ms in 1..5000 {
        tuner.ended(Some(MILLISECOND_NS), ms * MILLISECOND_NS);
    }
    assert_eq!(tuner.allowed(), START);
}

#[test]
fn goals_are_read_and_others_told() {
    let goal: TuneGoal = "p99.9=5ms".parse().unwrap();
    assert!((goal.quantile - 0.999).abs() < 1e-12);
    assert_eq!((goal.limit_ns, goal.text()), (5 * MILLISECOND_NS, "p99.9=5ms"));
    assert!(goal.is_held(1, 1000) && !goal.is_held(2, 1000));
    for text in ["mean=5ms", "p100=5ms", "rate=5", "p99=0ms"] {
        let told = text.parse::<TuneGoal>().unwrap_err().to_string();
        assert!(told.contains("p99=10ms"), "{told}");
    }
    assert!("p99".parse::<TuneGoal>().unwrap_err().to_string().contains("'=' is missing"));
}

proptest! {
    #[test]
    fn it_never_leaves_its_limits(
        max in 1u32..5000, shards in 1u32..5, ends in proptest::collection::vec((0u64..30, 0u64..60), 1..3000),
    ) {
        let mut tuner = Tuner::new("p90=10ms".parse().unwrap(), max, shards);
        let mut now_ns = 1;
        for (took_ms, gap_ms) in ends {
            now_ns += gap_ms * MILLISECOND_NS;
            tuner.full();
            tuner.ended((took_ms > 0).then_some(took_ms * MILLISECOND_NS), now_ns);
            prop_assert!(tuner.allowed() >= 1);
            prop_assert!(tuner.allowed() <= max.div_ceil(shards).max(1));
        }
    }
}
