//! What a shard notices of itself, against what its thread really went through; and connections that come when they are
//! needed.

use crate::multiplex::{self, Asker, Many, Server, answer, plan};
use plimsoll_core::admission::AdmissionModel;
use plimsoll_core::clock::{Clock, MILLISECOND_NS as MS, SECOND_NS, VirtualClock};
use plimsoll_core::schedule::{Arrivals, Limits, LoadModel, Think};
use plimsoll_engine::shard::{Shard, ShardEnd, ShardPlan};
use plimsoll_engine::sim::thread::{Absence, Thread, Why};
use plimsoll_engine::sim::{Act, Acts, Arrival, Link, Peer, SimNet};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

const START_NS: u64 = SECOND_NS;

/// Requests at even distances for two seconds, over as many connections as they need.
fn open(rate_per_s: f64) -> ShardPlan {
    ShardPlan {
        model: LoadModel::Open { rate_per_s, arrivals: Arrivals::Uniform },
        limits: Limits { duration_ns: 2 * SECOND_NS, requests: None },
        connections: 4096,
        warm_connections: Some(64),
        ..plan(1, 1, None)
    }
}

/// Runs it against a server that takes `service_ns` whatever it is asked, driven by this thread.
fn run(plan: ShardPlan, service_ns: u64, thread: Thread) -> ShardEnd {
    run_late(plan, service_ns, thread, 0)
}

/// The same where all were to begin `late_ns` ago.
fn run_late(plan: ShardPlan, service_ns: u64, thread: Thread, late_ns: u64) -> ShardEnd {
    let server = Server::new(move |_, tag| {
        let mut acts = answer(tag);
        acts.iter_mut().for_each(|(after_ns, _): &mut (u64, Act)| *after_ns = service_ns);
        acts
    });
    multiplex::run_late(thread, late_ns, plan, 1, &server, Asker::default())
}

fn absent(from_ms: u64, for_ms: u64, why: Why) -> Thread {
    let absence = Absence { from_ns: START_NS + from_ms * MS, for_ns: for_ms * MS, why };
    Thread { absences: vec![absence], ..Thread::default() }
}

fn quantile_ms(end: &ShardEnd, quantile: f64) -> f64 {
    end.rest.all_classes().response.quantile_ns(quantile) as f64 / 1e6
}

/// 500 requests a second of 200 ms each are 100 in flight: more than there are connections at first, and nobody waits.
#[test]
fn open_load_has_the_connections_that_it_needs() {
    let end = run(open(500.0), 200 * MS, Thread::default());
    assert_eq!((end.rest.ledger.ok, end.rest.counters.waited), (1000, 0));
    assert!((199.0..201.0).contains(&quantile_ms(&end, 0.99)), "{}", quantile_ms(&end, 0.99));
    // Half more than 100, and not all that there may be.
    assert!((101..250).contains(&end.connections), "{}", end.connections);
    let few = ShardPlan { connections: 64, warm_connections: None, ..open(500.0) };
    let end = run(few, 200 * MS, Thread::default());
    assert!(end.rest.counters.waited > 500 && quantile_ms(&end, 0.5) > 400.0);
    assert_eq!(end.rest.delays.connection.count(), end.rest.counters.waited);
}

/// A server that notes which connections are asked from a moment on.
struct Asked {
    server: Rc<RefCell<Server>>,
    from_ns: u64,
    connections: BTreeSet<u64>,
}

impl Peer for Asked {
    fn connecting(&mut self, connection: u64, address: SocketAddr, now_ns: u64) -> Arrival {
        self.server.borrow_mut().connecting(connection, address, now_ns)
    }

    fn received(&mut self, connection: u64, bytes: &[u8], now_ns: u64, acts: &mut Acts) {
        if now_ns >= self.from_ns {
            self.connections.insert(connection);
        }
        self.server.borrow_mut().received(connection, bytes, now_ns, acts);
    }

    fn woken(&mut self, _: u64, _: u64, _: u64, _: &mut Acts) {}

    fn closed(&mut self, connection: u64) {
        self.server.borrow_mut().closed(connection);
    }
}

/// The target is slow for a second, and connections come to be needed. When it is fast again they rest: walking over all
/// of them costs both sides more.
#[test]
fn connections_that_were_needed_once_rest_until_they_are_needed_again() {
    let clock = VirtualClock::new();
    clock.advance_to(START_NS);
    let server = Server::new(|seen, tag| {
        let mut acts = answer(tag);
        acts.iter_mut().for_each(|act| act.0 = if seen < 500 { 200 * MS } else { MS });
        acts
    });
    let from_ns = START_NS + 1500 * MS;
    let asked = Asked { server, from_ns, connections: BTreeSet::new() };
    let asked = Rc::new(RefCell::new(asked));
    let net = SimNet::new(clock.clone(), asked.clone(), Link::default(), 1);
    let asker = Box::new(Asker::default());
    let plan = open(500.0);
    let shard =
        Shard::new(plan, Many(1), net, clock.clone(), asker, Box::new(|_| None), Arc::default());
    let end = shard.unwrap().run(|| clock.now_ns()).unwrap();
    assert!(end.connections > 100, "{}", end.connections);
    assert_eq!(asked.borrow().connections.len(), 64, "the first ones, in turn");
}

/// A generator that has no time left sees more in flight than there are; more connections would not help it.
#[test]
fn a_saturated_generator_opens_no_more_connections() {
    let busy = Thread { completion_ns: 100_000, ..Thread::default() };
    let end = run(open(20_000.0), MS, busy);
    assert!(end.connections < 150, "{} connections", end.connections);
    assert!(end.health.busy > 0.97, "{:?}", end.health);
}

/// The thread is away for 30 ms of every 100: replies wait for it, and so do requests.
#[test]
fn what_keeps_the_thread_is_in_its_health_and_in_its_delays() {
    for (why, starved, throttled) in [(Why::Neighbour, true, false), (Why::Throttled, false, true)]
    {
        let absences = (0..20)
            .map(|i| Absence { from_ns: START_NS + (50 + i * 100) * MS, for_ns: 30 * MS, why })
            .collect();
        let end = run(open(1000.0), 5 * MS, Thread { absences, ..Thread::default() });
        let (health, delays) = (end.health, &end.rest.delays);
        assert_eq!((health.starved > 0.2, health.throttled > 0.2), (starved, throttled));
        assert!(delays.starved.count() > 100, "{}", delays.starved.count());
        // A third of the requests came due while it was away, or soon after in the crowd that it let go.
        assert!((400..1400).contains(&delays.disturbed), "{}", delays.disturbed);
    }
    let quiet = run(open(1000.0), 5 * MS, Thread::default());
    assert!(quiet.rest.delays.is_empty(), "{:?}", quiet.rest.delays.disturbed);
    assert_eq!(quiet.health.withheld(), 0.0);
}

/// No count of the kernel shows a stop; the signal that ends it does, and the replies that came meanwhile are late.
#[test]
fn a_stop_is_seen_in_replies_and_in_lag() {
    let end = run(open(1000.0), 5 * MS, absent(500, 40, Why::Stopped));
    assert_eq!(end.health.stops, 1);
    assert!(end.rest.lag.max_ns() > 35 * MS);
    assert!(end.rest.delays.disturbed >= 38, "{}", end.rest.delays.disturbed);
    // Closed load has no intended times: its replies wait, and that is all that can be seen.
    let closed = ShardPlan {
        limits: Limits { duration_ns: 2 * SECOND_NS, requests: None },
        ..plan(8, 8, None)
    };
    let end = run(closed, 5 * MS, absent(500, 40, Why::Stopped));
    let receive = &end.rest.delays.receive;
    assert!(receive.count() >= 8 && receive.max_ns() >= 35 * MS, "{}", receive.max_ns());
    assert!(end.rest.all_classes().response.max_ns() >= 35 * MS);
}

/// Replies of one batch wait for those before them to be judged.
#[test]
fn replies_wait_while_others_are_judged() {
    let costly = Thread { completion_ns: 200_000, ..Thread::default() };
    let together =
        ShardPlan { model: LoadModel::Burst { size: 32, every_ns: 50 * MS }, ..open(1.0) };
    let end = run(together.clone(), MS, costly);
    let receive = &end.rest.delays.receive;
    // Up to 31 times 0.2 ms, in every burst.
    assert!((5_900_000..6_600_000).contains(&receive.max_ns()), "{}", receive.max_ns());
    assert!(receive.count() > 32 * 35, "{}", receive.count());
    let end = run(together, MS, Thread::default());
    assert!(end.rest.delays.receive.is_empty());
}

fn refusals(end: &ShardEnd) -> (u64, u64, u64) {
    let refused = end.rest.ledger.refused;
    (refused.queue_full, refused.queue_timeout, end.rest.counters.refused_late)
}

/// A client that is behind its cycle offers its request when the target lets it, and not late for the generator's sake.
#[test]
fn a_client_behind_its_cycle_is_refused_for_the_targets_sake() {
    let managed = |queue_max, queue_timeout_ns| ShardPlan {
        model: LoadModel::Closed { clients: 8, think: Think::None, cycle_ns: 10 * MS },
        admission: AdmissionModel::Managed { slots: 1, queue_max, queue_timeout_ns },
        limits: Limits { duration_ns: SECOND_NS, requests: None },
        ..plan(8, 8, None)
    };
    let (full, _, late) = refusals(&run(managed(2, SECOND_NS), 20 * MS, Thread::default()));
    assert!(full > 100 && late == 0, "{full} refused, {late} of them late");
    let (full, timed_out, late) = refusals(&run(managed(100, 15 * MS), 20 * MS, Thread::default()));
    assert!(
        full == 0 && timed_out > 100 && late == 0,
        "{timed_out} timed out, {late} of them late"
    );
}

/// Requests that are older than the queue's timeout when a stopped thread goes on were never in the queue.
#[test]
fn requests_that_a_stall_kept_from_the_queue_are_refused_late() {
    let managed = |slots| ShardPlan {
        admission: AdmissionModel::Managed { slots, queue_max: 1000, queue_timeout_ns: 20 * MS },
        connections: slots,
        warm_connections: None,
        ..open(1000.0)
    };
    let (full, timed_out, late) =
        refusals(&run(managed(64), 5 * MS, absent(500, 60, Why::Stopped)));
    assert!(full == 0 && (36..=42).contains(&timed_out), "{timed_out} timed out");
    assert!(late + 2 >= timed_out, "{late} of {timed_out} were late");
    // A target that is too slow for the rate is not the generator's doing.
    let (_, timed_out, late) = refusals(&run(managed(1), 5 * MS, Thread::default()));
    assert!(timed_out > 1000 && late == 0, "{timed_out} timed out, {late} of them late");
}

/// A burst is due at once: what a full queue refuses of it, it would have refused at the right time, too.
#[test]
fn a_late_burst_is_refused_for_its_size() {
    let managed = ShardPlan {
        model: LoadModel::Burst { size: 50, every_ns: 200 * MS },
        admission: AdmissionModel::Managed { slots: 5, queue_max: 10, queue_timeout_ns: SECOND_NS },
        connections: 20,
        warm_connections: None,
        limits: Limits { duration_ns: SECOND_NS, requests: None },
        ..open(1.0)
    };
    let (full, _, late) = refusals(&run(managed, 5 * MS, absent(395, 20, Why::Stopped)));
    assert!(full >= 4 * 35 && late == 0, "{full} refused, {late} of them late");
}

/// Clients who ask at full speed all begin together: a thread that begins late begins later and disturbs nothing.
/// Requests that were due meanwhile, at a rate or a cycle, go out at once and do.
#[test]
fn a_late_beginning_at_full_speed_is_no_stall() {
    let disturbed = |model, connections| {
        let limits = Limits { duration_ns: SECOND_NS / 5, requests: None };
        let plan = ShardPlan { model, limits, connections, ..plan(1, 1, None) };
        let end = run_late(plan, 20 * MS, Thread::default(), 50 * MS);
        assert!(end.rest.ledger.ok > 40, "{:?}", end.rest.ledger);
        end.rest.delays.disturbed
    };
    let closed = |cycle_ns| LoadModel::Closed { clients: 8, think: Think::None, cycle_ns };
    assert_eq!(disturbed(closed(0), 8), 0);
    assert!(disturbed(closed(25 * MS), 8) > 0);
    assert!(disturbed(LoadModel::Open { rate_per_s: 500.0, arrivals: Arrivals::Uniform }, 64) > 0);
}

/// The thread stands from the warm-up until nothing is waited for any more: the arrivals are too many to be drawn one by one,
/// and those that were to be measured are in the ledger nevertheless.
#[test]
fn arrivals_of_a_run_that_was_suspended_past_its_end_are_counted() {
    let plan = ShardPlan {
        model: LoadModel::Open { rate_per_s: 1e6, arrivals: Arrivals::Poisson },
        warmup_ns: SECOND_NS,
        ..open(1.0)
    };
    let end = run(plan, MS, absent(10, 60_000, Why::Stopped));
    let (measured, warmup) = (end.rest.ledger, end.warmup.unwrap().ledger);
    for ledger in [&measured, &warmup] {
        ledger.balance().unwrap();
        assert!(ledger.scheduled.abs_diff(1_000_000) < 6_000, "{ledger:?}");
    }
    assert_eq!(measured.unsent.stopped, measured.scheduled);
}
