//! Bursts that wait for each other: held against the diary, and against servers whose times are known.

use crate::books::NAP_NS;
use crate::multiplex::{Server, answer, plan, run};
use crate::scene::{Outcome, Scene};
use plimsoll_core::admission::AdmissionModel;
use plimsoll_core::clock::{MILLISECOND_NS, SECOND_NS};
use plimsoll_core::schedule::LoadModel;
use plimsoll_engine::shard::ShardPlan;
use std::collections::BTreeMap;

/// One request: sent, and ended.
struct Call {
    sent_ns: u64,
    done_ns: u64,
}

/// Checks a run of bursts with a limit. Where something was cut off not all times are known, and nothing is checked.
pub fn check(scene: &Scene, run: &Outcome) {
    let LoadModel::PacedBurst { size, delay_ns, limit: Some(limit) } = scene.plan.model else {
        return;
    };
    if run.end.interrupted || run.diary.asked.iter().any(|asked| asked.end.is_none()) {
        return;
    }
    let mut bursts: BTreeMap<u64, Vec<Call>> = BTreeMap::new();
    for (_, times) in run.diary.asked.iter().filter_map(|asked| asked.end) {
        let call = Call { sent_ns: times.sent_ns, done_ns: times.done_ns };
        bursts.entry(times.intended_ns).or_default().push(call);
    }
    let is_direct = scene.plan.admission == AdmissionModel::Direct;
    let starts: Vec<u64> = bursts.keys().copied().collect();
    for pair in starts.windows(2) {
        let (start_ns, next_ns) = (pair[0], pair[1]);
        assert!(next_ns >= start_ns + delay_ns, "the delay is not kept: {start_ns} {next_ns}");
        if is_direct {
            assert_eq!(bursts[&start_ns].len(), size as usize, "the burst at {start_ns}");
            check_wait(&bursts, (start_ns, next_ns - delay_ns), limit);
        }
    }
    if let Some(last) = starts.last() {
        assert!(bursts[last].len() <= size as usize);
    }
}

/// The backlog had fallen at the second time, and not long before.
fn check_wait(bursts: &BTreeMap<u64, Vec<Call>>, (start_ns, seen_ns): (u64, u64), limit: u32) {
    let calls = || bursts.range(..=start_ns).flat_map(|(_, calls)| calls);
    let behind_at = |at_ns: u64| calls().filter(|call| call.done_ns > at_ns).count();
    let out_ns = calls().map(|call| call.sent_ns).max().unwrap();
    assert!(out_ns <= seen_ns, "it was not looked at before all was out");
    assert!(behind_at(seen_ns) <= limit as usize, "{} behind at {seen_ns}", behind_at(seen_ns));
    let ends = calls().map(|call| call.done_ns);
    let early = ends.filter(|&at_ns| at_ns >= out_ns && at_ns + NAP_NS < seen_ns);
    for at_ns in early {
        assert!(behind_at(at_ns) > limit as usize, "seen at {seen_ns}, fallen at {at_ns}");
    }
}

fn bursts(size: u32, delay_ms: u64, limit: Option<u32>, requests: u64) -> ShardPlan {
    let delay_ns = delay_ms * MILLISECOND_NS;
    let model = LoadModel::PacedBurst { size, delay_ns, limit };
    ShardPlan { model, ..plan(1, 2, Some(requests)) }
}

/// A reply takes 1 ms and two ways of 20 us: ten bursts at once, each 5 ms after the last answer of the one before.
#[test]
fn direct_bursts_wait_for_what_is_under_way() {
    let server = Server::new(|_, tag| answer(tag));
    let end = run(bursts(50, 5, Some(0), 500), 100, &server, crate::calls::Caller::default());
    let took_ns = end.measured_ns.1 - end.measured_ns.0;
    assert_eq!((end.rest.ledger.scheduled, end.rest.ledger.ok), (500, 500));
    let each_ns = 6 * MILLISECOND_NS + 40_000;
    let expected_ns = 10 * each_ns - 5 * MILLISECOND_NS;
    assert!(took_ns.abs_diff(expected_ns) < MILLISECOND_NS, "{took_ns} of {expected_ns}");
    // Without a limit nobody waits for the answers.
    let server = Server::new(|_, tag| answer(tag));
    let end = run(bursts(50, 5, None, 500), 100, &server, crate::calls::Caller::default());
    let took_ns = end.measured_ns.1 - end.measured_ns.0;
    assert!(took_ns.abs_diff(46 * MILLISECOND_NS) < MILLISECOND_NS, "{took_ns}");
}

#[test]
fn managed_bursts_wait_for_the_queue() {
    let managed = |slots, queue_max| AdmissionModel::Managed {
        slots,
        queue_max,
        queue_timeout_ns: 10 * SECOND_NS,
    };
    // Ten slots of 1 ms: 90 of a hundred wait, and the next hundred come when ten are left: after 8 ms, and 1 more.
    let server = Server::new(|_, tag| answer(tag));
    let plan = ShardPlan { admission: managed(10, 10_000), ..bursts(100, 1, Some(10), 1000) };
    let end = run(plan, 5, &server, crate::calls::Caller::default());
    let took_ns = end.measured_ns.1 - end.measured_ns.0;
    assert_eq!((end.rest.ledger.scheduled, end.rest.ledger.ok), (1000, 1000));
    // All slots are busy throughout: a hundred rounds.
    assert!(took_ns.abs_diff(104 * MILLISECOND_NS) < 2 * MILLISECOND_NS, "{took_ns}");
    // Bursts of 500 into 50 places behind 20 slots: 70 of the first go. When the queue is empty ten are still under way, and
    // are when the next burst comes: 60 of it go. All others are turned away.
    let server = Server::new(|_, tag| answer(tag));
    let plan = ShardPlan { admission: managed(20, 50), ..bursts(500, 1, Some(0), 5000) };
    let end = run(plan, 10, &server, crate::calls::Caller::default());
    let ledger = end.rest.ledger;
    assert_eq!(ledger.balance(), Ok(()));
    assert_eq!((ledger.scheduled, ledger.refused.queue_full, ledger.ok), (5000, 4390, 610));
}

/// A server that answers nothing: the bursts after the first never come, and the run ends with its time.
#[test]
fn a_backlog_that_never_falls_does_not_hang() {
    let server = Server::new(|_, _| Vec::new());
    let mut plan = bursts(10, 1, Some(3), 1000);
    plan.limits.duration_ns = SECOND_NS / 2;
    let end = run(plan, 100, &server, crate::calls::Caller::default());
    let ledger = end.rest.ledger;
    assert_eq!((ledger.scheduled, ledger.failed.timeout), (10, 10));
    assert_eq!(ledger.balance(), Ok(()));
}
