//! Runs whose generator was in trouble, and runs whose was not.

use super::super::{Evidence, Health, VerdictKind, judge, judge_rate};
use super::ConnectionLimit;
use crate::clock::MILLISECOND_NS as MS;
use crate::interval::Interval;
use crate::record::Rates;

/// A run of requests of `response_ns` each, of which every `one_in`-th has a lag of `lag_ns`.
fn run(count: u64, response_ns: u64, one_in: u64, lag_ns: u64) -> Interval {
    let mut totals = Interval::new(1);
    for number in 0..count {
        let late_ns = if number % one_in == 0 { lag_ns } else { 20_000 };
        totals.classes[0].record_ok(response_ns + late_ns, response_ns);
        totals.lag.record(late_ns);
    }
    totals.ledger.scheduled = count;
    totals.ledger.sent = count;
    totals.ledger.ok = count;
    totals.counters.ended_in_time = count;
    totals
}

fn kind(evidence: &Evidence<'_>) -> VerdictKind {
    judge(evidence).kind
}

#[test]
fn a_saturated_thread_is_the_limit_in_every_model() {
    let totals = run(1000, 10 * MS, 1000, 0);
    let health = Health { busy: 0.99, ..Health::default() };
    for open in [true, false] {
        for full_speed in [true, false] {
            let evidence =
                Evidence { open, full_speed, health, measured_s: 10.0, ..Evidence::of(&totals) };
            assert_eq!(kind(&evidence), VerdictKind::GeneratorLimited);
        }
    }
    // Time on the run queue is not idle time: a thread that has work 13 % of the time and waits the rest is saturated.
    let health = Health { busy: 0.13, starved: 0.86, ..Health::default() };
    let saturated = Evidence { full_speed: true, open: false, health, ..Evidence::of(&totals) };
    let verdict = judge(&Evidence { measured_s: 10.0, ..saturated });
    assert_eq!(verdict.kind, VerdictKind::GeneratorLimited);
    assert!(verdict.reasons[0].contains("waited for a processor"), "{:?}", verdict.reasons);
}

/// How fast something went is not the target's where the generator had no time left, and its own lag is in no rate.
#[test]
fn a_rate_is_judged_by_what_limited_it() {
    let closed = |totals| Evidence { open: false, measured_s: 10.0, ..Evidence::of(totals) };
    let rates = Rates { offered_per_s: 100.0, achieved_per_s: 100.0, ok_per_s: 100.0 };
    let quick = run(1000, 10 * MS, 1000, 0);
    let busy =
        |busy| Evidence { health: Health { busy, ..Health::default() }, rates, ..closed(&quick) };
    assert_eq!(judge_rate(&busy(0.99)).kind, VerdictKind::GeneratorLimited);
    let idle = judge_rate(&busy(0.3));
    assert_eq!((idle.kind, idle.reasons.len()), (VerdictKind::Valid, 0));
    // Of each round the generator took a third: with an ideal one it might have been half as fast again.
    let late = run(1000, 10 * MS, 1, 5 * MS);
    let verdict = judge_rate(&Evidence { rates, ..closed(&late) });
    assert_eq!(verdict.kind, VerdictKind::Valid);
    assert!(verdict.reasons[0].contains("more requests through"), "{:?}", verdict.reasons);
    let mut exhausted = run(1000, 10 * MS, 1000, 0);
    exhausted.counters.exhausted = 1;
    assert_eq!(judge_rate(&closed(&exhausted)).kind, VerdictKind::GeneratorLimited);
}

/// The backlog that a late generator makes raises the response time as much as the lag; it must not excuse it.
#[test]
fn lag_is_not_compared_with_what_it_inflates() {
    let totals = run(1000, 10 * MS, 1, 900 * MS);
    assert_eq!(kind(&Evidence::of(&totals)), VerdictKind::GeneratorLimited);
}

#[test]
fn a_hiccup_in_the_tail_is_bounded_and_said() {
    // Two of a hundred: the 99th percentile is the generator's, everything below is the target's.
    let totals = run(1000, 10 * MS, 50, 30 * MS);
    let verdict = judge(&Evidence::of(&totals));
    assert_eq!(verdict.kind, VerdictKind::Valid);
    let bounds = verdict.bounds.unwrap();
    assert!((9.9..10.2).contains(&bounds.p99_ms[0]) && bounds.p99_ms[1] > 39.0, "{bounds:?}");
    assert!(verdict.reasons[0].starts_with("p99 may be 30"), "{:?}", verdict.reasons);
    // One of three hundred: not even that.
    let verdict = judge(&Evidence::of(&run(300, 10 * MS, 300, 30 * MS)));
    assert_eq!((verdict.kind, verdict.reasons.len()), (VerdictKind::Valid, 0));
}

#[test]
fn replies_that_waited_to_be_read_are_the_generators() {
    let mut totals = run(1000, 2 * MS, 1000, 0);
    totals.delays.receive.record_many(MS, 500);
    let verdict = judge(&Evidence::of(&totals));
    let bounds = verdict.bounds.unwrap();
    assert!(bounds.p99_ms[0] < 1.1 && bounds.p99_ms[1] > 1.9, "{bounds:?}");
    assert!(
        verdict.reasons[0].contains("waited up to 1.00 ms to be read"),
        "{:?}",
        verdict.reasons
    );
}

/// Closed load: N clients that wait for plimsoll ask less, and the rate is short by as much.
#[test]
fn a_closed_rate_is_short_by_the_share_that_the_generator_took() {
    let mut totals = run(8000, MS, 8000, 0);
    let rates = Rates { offered_per_s: 800.0, achieved_per_s: 800.0, ok_per_s: 800.0 };
    fn closed(totals: &Interval, rates: Rates) -> Evidence<'_> {
        let clients = Some(1);
        let measured_s = 10.0;
        Evidence {
            measured_s,
            rates,
            open: false,
            full_speed: true,
            clients,
            ..Evidence::of(totals)
        }
    }
    let bound = |totals: &Interval| judge(&closed(totals, rates)).bounds.unwrap().ok_per_s;
    assert!((bound(&totals)[1] / 800.0) < 1.05);
    // A quarter of a millisecond of each round of 1.25 ms.
    totals.delays.receive.record_many(250_000, 8000);
    let fastest = bound(&totals)[1];
    assert!((990.0..1030.0).contains(&fastest), "{fastest}");
    let starved =
        Evidence { health: Health { starved: 0.1, ..Health::default() }, ..closed(&totals, rates) };
    assert!(judge(&starved).bounds.unwrap().ok_per_s[1] > fastest * 1.1);
    let held =
        Evidence { health: Health { starved: 0.3, ..Health::default() }, ..closed(&totals, rates) };
    assert_eq!(kind(&held), VerdictKind::GeneratorLimited);
}

#[test]
fn what_ran_out_on_this_machine_is_not_the_targets() {
    let mut totals = run(1000, MS, 1000, 0);
    totals.ledger.ok = 100;
    totals.ledger.failed.connect = 900;
    totals.classes[0].response.clear();
    totals.classes[0].response.record_many(MS, 100);
    assert_eq!(kind(&Evidence::of(&totals)), VerdictKind::TargetFailed);
    totals.counters.exhausted = 900;
    assert_eq!(kind(&Evidence::of(&totals)), VerdictKind::GeneratorLimited);
    let health = Health { suspended_s: 60.0, ..Health::default() };
    let good = run(1000, MS, 1000, 0);
    assert_eq!(kind(&Evidence { health, ..Evidence::of(&good) }), VerdictKind::GeneratorLimited);
}

/// A server that takes 200 ms at any concurrency, asked over 64 connections: 1.4 s of its 1.6 s are the wait for one.
#[test]
fn a_limit_of_connections_that_shaped_the_result_is_said() {
    let mut totals = run(1000, 1_600 * MS, 1000, 0);
    totals.delays.connection.record_many(1_400 * MS, 970);
    totals.counters.waited = 970;
    let asked = |limit| Evidence { connections: limit, ..Evidence::of(&totals) };
    let verdict = judge(&asked(ConnectionLimit::Asked(64)));
    assert_eq!(verdict.kind, VerdictKind::ConnectionLimited);
    assert!(verdict.reasons[0].contains("64 connections that --connections allows"));
    assert_eq!(kind(&asked(ConnectionLimit::Own(8192))), VerdictKind::ConnectionLimited);
    assert_eq!(kind(&asked(ConnectionLimit::None)), VerdictKind::Valid);
    // A few short waits do not shape anything.
    let mut few = run(1000, 20 * MS, 1000, 0);
    few.delays.connection.record_many(MS / 2, 400);
    let evidence = Evidence { connections: ConnectionLimit::Asked(64), ..Evidence::of(&few) };
    assert_eq!(kind(&evidence), VerdictKind::Valid);
}

/// A stall makes a burst, and the burst makes a queue at the target that the schedule never asked for.
#[test]
fn the_aftermath_of_a_stall_is_not_the_targets() {
    let mut totals = run(1000, MS, 1000, 0);
    totals.classes[0].response.record_many(40 * MS, 100);
    totals.ledger.scheduled += 100;
    totals.ledger.sent += 100;
    totals.ledger.ok += 100;
    totals.lag.record_many(20_000, 100);
    assert!(judge(&Evidence::of(&totals)).bounds.unwrap().p95_ms[0] > 39.0);
    totals.delays.disturbed = 110;
    let bounds = judge(&Evidence::of(&totals)).bounds.unwrap();
    assert!(bounds.p95_ms[0] < 1.1 && bounds.p95_ms[1] > 39.0, "{bounds:?}");
}

#[test]
fn requests_refused_by_a_late_generator_make_it_the_limit() {
    let mut totals = run(1000, MS, 1000, 0);
    totals.ledger.scheduled += 100;
    totals.ledger.refused.queue_full = 100;
    assert_eq!(kind(&Evidence::of(&totals)), VerdictKind::Valid);
    totals.counters.refused_late = 60;
    assert_eq!(kind(&Evidence::of(&totals)), VerdictKind::GeneratorLimited);
}
