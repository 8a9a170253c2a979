//! What makes room on a connection besides a reply: whoever waited for it waited for the target, and the generator was not late.

use crate::multiplex::{Asker, RESET, Server, TAKES, answer, frame, run};
use plimsoll_core::clock::{MILLISECOND_NS, SECOND_NS};
use plimsoll_core::schedule::{Arrivals, LoadModel};
use plimsoll_engine::shard::{ShardPlan, Timeouts};
use plimsoll_engine::sim::{Act, Acts, closed_plan};

/// By how much a thread without costs may be late, ns.
const LATE_NS: u64 = 200_000;

/// A hundred requests a second on one connection.
fn plan(request_ns: u64) -> ShardPlan {
    ShardPlan {
        model: LoadModel::Open { rate_per_s: 100.0, arrivals: Arrivals::Uniform },
        timeouts: Timeouts { connect_ns: SECOND_NS, request_ns },
        preconnect: true,
        ..closed_plan(1, SECOND_NS)
    }
}

#[test]
fn a_request_that_the_peer_gives_up_makes_room() {
    let server = Server::new(|_, tag| vec![(30 * MILLISECOND_NS, Act::Bytes(frame(RESET, tag)))]);
    let end = run(plan(SECOND_NS), 1, &server, Asker::default());
    assert!(end.rest.ledger.failed.reset > 30, "{:?}", end.rest.ledger);
    assert!(end.rest.lag.max_ns() <= LATE_NS, "{}", end.rest.lag.max_ns());
}

#[test]
fn a_request_that_is_given_up_makes_room() {
    let server = Server::new(|_, _| Acts::new());
    let end = run(plan(30 * MILLISECOND_NS), 1, &server, Asker::default());
    assert!(end.rest.ledger.failed.timeout > 30, "{:?}", end.rest.ledger);
    assert!(end.rest.lag.max_ns() <= LATE_NS, "{}", end.rest.lag.max_ns());
}

#[test]
fn a_limit_that_the_peer_raises_makes_room() {
    let server = Server::new(|seen, tag| {
        let mut acts = answer(tag);
        if seen == 20 {
            acts.push((MILLISECOND_NS, Act::Bytes(frame(TAKES, 0))));
            acts.push((200 * MILLISECOND_NS, Act::Bytes(frame(TAKES, 1))));
        }
        acts
    });
    let end = run(plan(SECOND_NS), 1, &server, Asker::default());
    assert_eq!(end.rest.ledger.ok, 100);
    assert!(end.rest.all_classes().response.max_ns() > 150 * MILLISECOND_NS);
    assert!(end.rest.lag.max_ns() <= LATE_NS, "{}", end.rest.lag.max_ns());
}
