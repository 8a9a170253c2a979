//! Connections whose opening comes to no end.

use crate::scripted::{Asked, Scripted, Step, closed_plan, play, whole};
use plimsoll_core::clock::{MILLISECOND_NS as MS, SECOND_NS};
use plimsoll_core::schedule::{Arrivals, Limits, LoadModel};
use plimsoll_engine::shard::{ShardPlan, Timeouts};
use plimsoll_engine::sim::Link;
use rustls::version::TLS13;

const TIMEOUTS: Timeouts = Timeouts { connect_ns: SECOND_NS, request_ns: SECOND_NS };
/// Requests that a connection carries.
const LIVES: usize = 5;

/// 200 requests per second for 10 s, over few enough connections to be audited.
fn plan(tls: bool) -> ShardPlan {
    ShardPlan {
        model: LoadModel::Open { rate_per_s: 200.0, arrivals: Arrivals::Uniform },
        limits: Limits::after(10 * SECOND_NS),
        connections: 900,
        warm_connections: Some(64),
        preconnect: true,
        ..closed_plan(1, 1, TIMEOUTS, tls)
    }
}

fn reply(asked: &Asked) -> Vec<(u64, Step)> {
    let mut steps = vec![(0, whole(asked))];
    if asked.prior + 1 == LIVES {
        steps.push((0, Step::Close));
    }
    steps
}

/// For 3 s no connection opens, for want of a socket or of a handshake, and those that are open wear out. Each is replaced before
/// a request needs it, so that no request's deadline ends the opening. Were these waited for, no connection would be left.
#[test]
fn a_target_on_which_connections_hung_is_asked_again() {
    for tls in [false, true] {
        let hangs_ns = 3 * SECOND_NS..6 * SECOND_NS;
        let server = Scripted::new(reply).hanging(hangs_ns.clone());
        let server = if tls { server.with_tls(&TLS13) } else { server };
        let (outcome, server) = play(plan(tls), Link::default(), 0, server);
        let ledger = outcome.totals().ledger;
        assert_eq!((ledger.scheduled, ledger.unsent.stopped), (2_000, 0), "tls: {tls}");
        let failed = ledger.failed.timeout;
        assert_eq!(ledger.ok + failed, 2_000);
        assert!((64..=300).contains(&failed), "tls: {tls}, {failed} timeouts");
        // The openings that hung last are given up a timeout after the target is back, and pause.
        let again_ns = hangs_ns.end + TIMEOUTS.connect_ns + 250 * MS;
        let again = server.borrow().asked.iter().filter(|asked| asked.at_ns > again_ns).count();
        assert!(again > 700, "tls: {tls}, {again} requests after the target is back");
    }
}
