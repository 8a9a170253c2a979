//! Runs whose generator was in trouble, and runs whose was not.

use super::super::{Evidence, Health, Verdict, VerdictKind, judge, judge_rate};
use super::ConnectionLimit;
use crate::clock::MILLISECOND_NS as MS;
use crate::interval::Interval;
use crate::record::Rates;
use crate::verdict::held_up_by;

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
    let says = |verdict: &Verdict, what: &str| {
        assert!(verdict.reasons[0].contains(what), "{:?}", verdict.reasons);
    };
    says(&verdict, "up to 50 % more requests: replies waited");
    // Of each round it took two thirds.
    let later = run(1000, 10 * MS, 1, 20 * MS);
    let verdict = judge_rate(&Evidence { rates, ..closed(&later) });
    says(&verdict, "up to 3.0 times as many requests: replies waited");
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
    // Also if none of them came to the target.
    let mut none = run(1000, MS, 1000, 0);
    (none.ledger.ok, none.ledger.failed.connect) = (0, 1000);
    none.classes[0].response.clear();
    none.counters.exhausted = 1000;
    let verdict = judge(&Evidence::of(&none));
    assert_eq!(verdict.kind, VerdictKind::GeneratorLimited);
    assert!(verdict.reasons.join("; ").contains("ulimit"), "{:?}", verdict.reasons);
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

/// One stall of 50 ms is 1 % of a run of five seconds and bends its p50; who had the processor meanwhile is said.
#[test]
fn a_stall_names_who_had_the_processor() {
    let mut totals = run(30, 300 * MS, 10, 50 * MS);
    totals.delays.disturbed = 20;
    let with = |health| {
        let verdict = judge(&Evidence { health, measured_s: 5.0, ..Evidence::of(&totals) });
        assert_eq!(verdict.kind, VerdictKind::GeneratorLimited);
        verdict.reasons[0].clone()
    };
    let starved = with(Health { starved: 0.0102, ..Health::default() });
    assert!(starved.contains("; other programs had its core for 1 % of the time"), "{starved}");
    let stolen = with(Health { stolen: 0.0049, starved: 0.0003, ..Health::default() });
    assert!(stolen.contains("; the hypervisor ran other machines for 24.5 ms"), "{stolen}");
    // What nobody else took was lost by the generator itself.
    let itself = with(Health { starved: 0.0003, busy: 0.2, ..Health::default() });
    assert!(itself.contains("; busy 20 %"), "{itself}");
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

/// Clients of a stopped process ask nobody: the rate is short by the time for which it was stopped.
#[test]
fn a_stopped_process_bounds_the_rate_by_the_time_it_was_stopped() {
    let totals = run(3000, 10 * MS, 3000, 0);
    let rates = Rates { offered_per_s: 300.0, achieved_per_s: 300.0, ok_per_s: 300.0 };
    let health = |stopped| Health { stopped, stops: 6, ..Health::default() };
    let clients = Some(4);
    let closed =
        Evidence { rates, open: false, clients, measured_s: 10.0, ..Evidence::of(&totals) };
    let fastest = |stopped| {
        let verdict = judge(&Evidence { health: health(stopped), ..closed });
        verdict.bounds.unwrap().ok_per_s[1]
    };
    assert!((300.0..303.0).contains(&fastest(0.0)), "{}", fastest(0.0));
    assert!((370.0..380.0).contains(&fastest(0.2)), "{}", fastest(0.2));
    let long = Evidence { health: health(0.4), ..closed };
    assert!(judge(&long).reasons[0].contains("a signal stopped it for 40 %"));
}

/// A slot is held until the reply has been judged: a costly check lets fewer requests in, and no more than were refused.
#[test]
fn slots_that_a_costly_check_held_longer_bound_the_rate() {
    let mut totals = run(4000, 30 * MS, 4000, 0);
    totals.ledger.scheduled += 1000;
    totals.ledger.refused.queue_full = 1000;
    let rates = Rates { offered_per_s: 500.0, achieved_per_s: 400.0, ok_per_s: 400.0 };
    let with = |busy, threads| {
        let health = Health { busy, ..Health::default() };
        let evidence =
            Evidence { rates, health, threads, measured_s: 10.0, ..Evidence::of(&totals) };
        judge(&evidence).bounds.unwrap().ok_per_s[1]
    };
    // 0.5 ms of each 30 ms, and a whole one where two threads are as busy.
    assert!((406.0..409.0).contains(&with(0.2, 1)), "{}", with(0.2, 1));
    assert!((412.0..417.0).contains(&with(0.2, 2)), "{}", with(0.2, 2));
    let capped = with(0.9, 100);
    assert!((499.0..502.0).contains(&capped), "{capped}");
}

/// What is too little to be called the limit is within the bounds all the same.
#[test]
fn a_wait_for_a_connection_is_in_the_bounds_whoever_set_their_number() {
    let mut totals = run(600, 20 * MS, 1000, 0);
    let waited = run(400, 20 * MS, 1, MS / 2);
    totals.classes[0].response.merge(&waited.classes[0].response);
    totals.classes[0].service.merge(&waited.classes[0].service);
    totals.ledger = run(1000, 20 * MS, 1, 0).ledger;
    totals.delays.connection.record_many(MS / 2, 400);
    for limit in [ConnectionLimit::Asked(64), ConnectionLimit::Own(8192)] {
        let verdict = judge(&Evidence { connections: limit, ..Evidence::of(&totals) });
        let [low, high] = verdict.bounds.unwrap().p95_ms;
        assert!(low < 20.1 && high > 20.4, "{limit:?}: {low} {high}");
    }
}

/// One connection for 183 slots: nobody waits for a connection, because whoever would have to is refused.
#[test]
fn fewer_connections_than_slots_are_the_limit_where_requests_are_refused() {
    let mut totals = run(100, 2 * MS, 100, 0);
    totals.ledger.scheduled += 900;
    totals.ledger.refused.queue_full = 900;
    let asked = Evidence { connections: ConnectionLimit::Asked(1), ..Evidence::of(&totals) };
    let verdict = judge(&asked);
    assert_eq!(verdict.kind, VerdictKind::ConnectionLimited);
    assert!(verdict.reasons[0].contains("900 requests were refused"), "{:?}", verdict.reasons);
    let none = Evidence { connections: ConnectionLimit::None, ..Evidence::of(&totals) };
    assert_eq!(kind(&none), VerdictKind::Valid);
}

/// Clients that a costly check keeps from asking leave a busy target with less to do: it looks quicker than it is.
#[test]
fn a_closed_load_may_show_a_target_too_quick() {
    let mut totals = run(3000, 17 * MS, 3000, 0);
    totals.delays.receive.record_many(3 * MS, 3000);
    let rates = Rates { offered_per_s: 300.0, achieved_per_s: 300.0, ok_per_s: 300.0 };
    let evidence = Evidence { rates, measured_s: 10.0, ..Evidence::of(&totals) };
    let closed = judge(&Evidence { open: false, clients: Some(30), ..evidence });
    let [low, high] = closed.bounds.unwrap().p50_ms;
    assert!((13.8..14.1).contains(&low) && (19.9..20.3).contains(&high), "{low} {high}");
    assert!(closed.reasons[0].contains("ms too high or 3.02 ms too low"), "{:?}", closed.reasons);
    assert!((16.9..17.1).contains(&judge(&evidence).bounds.unwrap().p50_ms[1]));
}

#[test]
fn a_search_names_who_had_the_processor_for_long() {
    let of = |starved| held_up_by(&Health { starved, ..Health::default() }, 60.0, 0.02);
    assert_eq!(of(0.079).as_deref(), Some("other programs had its core for 8 % of the time"));
    assert_eq!(of(0.019), None);
}
