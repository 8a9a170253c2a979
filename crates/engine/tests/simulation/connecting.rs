//! Connections that are there before the load is.

use crate::scene::{Scene, address, target};
use crate::scripted::{Scripted, closed_plan, play, whole};
use plimsoll_core::clock::{MILLISECOND_NS, SECOND_NS};
use plimsoll_core::schedule::{Arrivals, Limits, LoadModel, Think};
use plimsoll_engine::shard::{ShardPlan, Timeouts};
use plimsoll_engine::sim::{Arrival, Link};
use rustls::version::{TLS12, TLS13};
use std::sync::Arc;

const PATIENT: Timeouts = Timeouts { connect_ns: SECOND_NS, request_ns: SECOND_NS };
/// How long the server takes to let somebody in, ns.
const DOOR_NS: u64 = 15 * MILLISECOND_NS;
const CONNECTIONS: usize = 20;

/// A closed plan and an open one, which have their own ways of finding a connection.
fn plans(tls: bool, preconnect: bool) -> [ShardPlan; 2] {
    let closed = ShardPlan {
        preconnect,
        ..closed_plan(CONNECTIONS as u32, 10 * CONNECTIONS as u64, PATIENT, tls)
    };
    let open = ShardPlan {
        model: LoadModel::Open { rate_per_s: 1000.0, arrivals: Arrivals::Poisson },
        limits: Limits::after(SECOND_NS),
        ..closed.clone()
    };
    [closed, open]
}

fn server(version: Option<&'static rustls::SupportedProtocolVersion>) -> Scripted {
    let server = Scripted::new(|asked| vec![(0, whole(asked))])
        .arriving(|_| Arrival::Accepted { after_ns: DOOR_NS });
    match version {
        Some(version) => server.with_tls(version),
        None => server,
    }
}

#[test]
fn connections_are_up_before_the_schedule_starts_and_cost_no_request_anything() {
    for version in [None, Some(&TLS12), Some(&TLS13)] {
        for plan in plans(version.is_some(), true) {
            let (link, model) = (Link::default(), plan.model.clone());
            let (outcome, server) = play(plan, link, 0, server(version));
            let (totals, server) = (outcome.totals(), server.borrow());
            assert_eq!(server.knocked_ns.len(), CONNECTIONS, "{model:?}");
            let last_ns = *server.knocked_ns.iter().max().unwrap();
            assert!(last_ns + DOOR_NS < outcome.start_ns, "{model:?}: still opening at the start");
            assert!(server.asked.iter().all(|asked| asked.at_ns > outcome.start_ns));
            assert_eq!(totals.ledger.ok, totals.ledger.scheduled);
            // There and back, and nothing else; three digits of the histogram.
            let (there_and_back_ns, most_ns) = (2 * link.latency_max_ns, 41_000);
            for times in [&totals.all_classes().service, &totals.all_classes().response] {
                assert!(times.min_ns() >= there_and_back_ns - 1_000, "{model:?}");
                assert!(times.max_ns() <= most_ns, "{version:?} {model:?}: {}", times.max_ns());
            }
            // Each of them has told of its round trips.
            assert_eq!(outcome.end.round_trips.len(), CONNECTIONS);
        }
    }
}

/// The other side of the same: without it, the first request of each connection pays.
#[test]
fn a_connection_opened_for_a_request_is_in_its_times() {
    for version in [None, Some(&TLS12), Some(&TLS13)] {
        for plan in plans(version.is_some(), false) {
            let (outcome, server) = play(plan, Link::default(), 0, server(version));
            let opened = server.borrow().knocked_ns.len();
            assert!(server.borrow().knocked_ns.iter().all(|&at_ns| at_ns >= outcome.start_ns));
            let paid = outcome
                .diary
                .asked
                .iter()
                .filter_map(|asked| asked.end)
                .filter(|(_, times)| times.done_ns - times.sent_ns > DOOR_NS);
            assert_eq!(paid.count(), opened);
            assert!(outcome.totals().all_classes().service.max_ns() > DOOR_NS);
        }
    }
}

/// A server that lets nobody in does not hold the run up for longer than a connection may take.
#[test]
fn a_door_that_stays_shut_does_not_hold_up_the_start() {
    let timeouts = Timeouts { connect_ns: 200 * MILLISECOND_NS, request_ns: SECOND_NS };
    let plan = ShardPlan { preconnect: true, ..closed_plan(4, 8, timeouts, false) };
    let server = Scripted::new(|_| Vec::new()).arriving(|_| Arrival::Silence);
    let (outcome, server) = play(plan, Link::default(), 0, server);
    // The simulation's clock shows one second when it begins.
    assert!(outcome.start_ns <= SECOND_NS + timeouts.connect_ns + 60 * MILLISECOND_NS);
    assert_eq!(outcome.totals().ledger.failed.timeout, 8);
    assert_eq!(server.borrow().asked.len(), 0);
}

/// Connecting and answering may both take almost as long as they may; the run does not wait for the sum.
#[test]
fn a_run_ends_within_its_duration_and_one_timeout_and_two_seconds() {
    let timeouts = Timeouts { connect_ns: 10 * SECOND_NS, request_ns: 10 * SECOND_NS };
    let limits = Limits::after(SECOND_NS);
    let plan = ShardPlan { limits, ..closed_plan(2, 1, timeouts, false) };
    let server =
        Scripted::new(|_| Vec::new()).arriving(|_| Arrival::Accepted { after_ns: 9 * SECOND_NS });
    let (outcome, server) = play(plan, Link::default(), 0, server);
    assert_eq!((server.borrow().asked.len(), outcome.totals().ledger.failed.timeout), (2, 2));
    let most_ns = limits.duration_ns + timeouts.request_ns + 2 * SECOND_NS;
    let took_ns = outcome.over_ns - outcome.start_ns;
    assert!(took_ns <= most_ns, "over after {} s", took_ns / SECOND_NS);
}

/// A client that pauses after each failure, and one target of several that lives: whatever stood in the queue of
/// connections before, it asks the living one after it has asked each of the others once.
#[test]
fn who_pauses_after_a_failure_comes_to_every_target_in_turn() {
    for (targets, alive) in [(2, 0), (2, 1), (3, 0), (3, 1), (3, 2), (4, 3)] {
        for connections in [targets, 2 * targets, 2 * targets + 1] {
            let mut scene = Scene::frozen(connections as u32, SECOND_NS, 1, SECOND_NS);
            let all = (0..targets).map(|number| target(vec![address(number, 0)])).collect();
            let dead = (0..targets).filter(|&n| n != alive).map(|n| address(n, 0)).collect();
            scene.plan.model = LoadModel::Closed { clients: 1, think: Think::None, cycle_ns: 0 };
            scene.plan.targets = Arc::new(all);
            scene.plan.limits = Limits::after(20 * SECOND_NS);
            scene.script.connects.dead = dead;
            scene.script.freeze = None;
            // No reply lets the connection live, so that the next request must find one again.
            scene.script.connection_close = 1000;
            // Longer than any pause of a connection that could not be made.
            scene.pause_ns = 300 * MILLISECOND_NS;
            scene.source = Some(20);
            let asked = scene.run().diary.asked;
            assert_eq!(asked.len(), 20);
            for turn in asked.windows(targets) {
                let met = turn.iter().filter(|asked| asked.target as usize == alive).count();
                assert!(met > 0, "{alive} of {targets}, {connections} connections: {asked:?}");
            }
        }
    }
}
