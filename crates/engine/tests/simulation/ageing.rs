//! Connections that the target closes after a number of requests: their ends are spread over time, and the handshakes of those
//! that replace them are no load of their own.

use crate::multiplex::{self, Asker, REPLY, frame, plan};
use crate::scene::{address, target};
use plimsoll_core::clock::{MILLISECOND_NS as MS, SECOND_NS};
use plimsoll_core::schedule::{Arrivals, Limits, LoadModel};
use plimsoll_engine::shard::ShardPlan;
use plimsoll_engine::sim::{Act, Acts, Arrival, Peer};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

const START_NS: u64 = SECOND_NS;
/// Time of the target's core for a request, ns.
const REQUEST_NS: u64 = 30_000;
/// Length of a run.
const LENGTH_NS: u64 = 20 * SECOND_NS;

/// A target with one core, which closes each connection after its last request.
struct OneCore {
    /// Time of the core for a handshake, ns.
    handshake_ns: u64,
    /// Requests of a connection.
    lives: u32,
    /// When the core has done all that has come, ns.
    free_ns: u64,
    /// Pauses of the core, the next one last: when each begins, and its length, ns.
    pauses_ns: Vec<(u64, u64)>,
    /// Requests that each open connection has carried.
    carried: BTreeMap<u64, u32>,
    /// Least number of open connections in the second half of the run.
    least_open: usize,
    /// When connections were asked for, ns since the start of the run.
    asked_ns: Vec<u64>,
}

impl OneCore {
    /// Time from now until the core has done this, too, ns.
    fn work(&mut self, cost_ns: u64, now_ns: u64) -> u64 {
        while let Some((_, length_ns)) = self.pauses_ns.pop_if(|(from_ns, _)| *from_ns <= now_ns) {
            self.free_ns = self.free_ns.max(now_ns) + length_ns;
        }
        self.free_ns = self.free_ns.max(now_ns) + cost_ns;
        self.free_ns - now_ns
    }
}

impl Peer for OneCore {
    fn connecting(&mut self, connection: u64, _: SocketAddr, now_ns: u64) -> Arrival {
        self.carried.insert(connection, 0);
        self.asked_ns.push(now_ns.saturating_sub(START_NS));
        Arrival::Accepted { after_ns: self.work(self.handshake_ns, now_ns) }
    }

    fn received(&mut self, connection: u64, bytes: &[u8], now_ns: u64, acts: &mut Acts) {
        let after_ns = self.work(REQUEST_NS, now_ns);
        if now_ns > START_NS + LENGTH_NS / 2 {
            self.least_open = self.least_open.min(self.carried.len());
        }
        let tag = u32::from_le_bytes(bytes[1..].try_into().unwrap());
        acts.push((after_ns, Act::Bytes(frame(REPLY, tag))));
        let carried = self.carried.entry(connection).or_default();
        *carried += 1;
        if *carried == self.lives {
            acts.push((after_ns, Act::Close));
        }
    }

    fn woken(&mut self, _: u64, _: u64, _: u64, _: &mut Acts) {}

    fn closed(&mut self, connection: u64) {
        self.carried.remove(&connection);
    }
}

/// Result of a run.
struct Seen {
    /// When connections were asked for, ns since the start.
    asked_ns: Vec<u64>,
    /// Connections that were ever open at once, at most.
    connections: u32,
    /// Connections that were open at least, in the second half.
    least_open: usize,
    ok: u64,
    /// Requests that waited for a connection.
    waited: u64,
    p99_ns: u64,
}

impl Seen {
    /// The largest number of connections that were asked for within `span_ns` in the second half.
    fn most_within(&self, span_ns: u64) -> usize {
        let is_late = |ns: &u64| *ns >= LENGTH_NS / 2;
        let late: Vec<u64> = self.asked_ns.iter().copied().filter(is_late).collect();
        let within = |first: usize| late.partition_point(|&ns| ns < late[first] + span_ns) - first;
        (0..late.len()).map(within).max().unwrap_or(0)
    }
}

fn run(plan: ShardPlan, handshake_ns: u64, lives: u32) -> Seen {
    run_with_pauses(plan, handshake_ns, lives, Vec::new())
}

/// The same with pauses of the core, the last one first.
fn run_with_pauses(
    plan: ShardPlan,
    handshake_ns: u64,
    lives: u32,
    pauses_ns: Vec<(u64, u64)>,
) -> Seen {
    let target = Rc::new(RefCell::new(OneCore {
        handshake_ns,
        lives,
        free_ns: 0,
        pauses_ns,
        carried: BTreeMap::new(),
        least_open: usize::MAX,
        asked_ns: Vec::new(),
    }));
    let end = multiplex::run(plan, 1, &target, Asker::default());
    let mut target = target.borrow_mut();
    Seen {
        asked_ns: std::mem::take(&mut target.asked_ns),
        connections: end.connections,
        least_open: target.least_open,
        ok: end.rest.ledger.ok,
        waited: end.rest.counters.waited,
        p99_ns: end.rest.all_classes().response.quantile_ns(0.99),
    }
}

/// Requests at even distances.
fn open(rate_per_s: f64, connections: u32, warm: Option<u32>) -> ShardPlan {
    ShardPlan {
        model: LoadModel::Open { rate_per_s, arrivals: Arrivals::Uniform },
        limits: Limits { duration_ns: LENGTH_NS, requests: None },
        connections,
        warm_connections: warm,
        ..plan(1, 1, None)
    }
}

/// 50 connections of 100 requests each, at 5,000/s: one of them ends in 20 ms on average, and is replaced. In strict turns all would end
/// within 10 ms, once a second; without replacement, few would carry all requests.
#[test]
fn connections_that_were_opened_together_do_not_end_together() {
    for (warm, targets) in [(None, 1), (Some(50), 1), (None, 2), (Some(50), 2)] {
        let connections = if warm.is_some() { 8_192 } else { 50 };
        let all = (0..targets).map(|number| target(vec![address(number, 0)])).collect();
        let plan = ShardPlan { targets: Arc::new(all), ..open(5_000.0, connections, warm) };
        let seen = run(plan, 100_000, 100);
        assert_eq!((seen.ok, seen.connections), (100_000, 50));
        let opened = seen.asked_ns.len();
        assert!((1_000..=1_050).contains(&opened), "{opened}");
        assert!(seen.least_open >= 40, "{} were left", seen.least_open);
        let most = seen.most_within(20 * MS);
        assert!(most < 12, "{most} connections were asked for within 20 ms");
    }
}

/// The target's core has a load of 15 % by requests and of 3 % by the handshakes of connections that it closed. If these come
/// together, requests wait, more connections are opened for them, and those end together, too.
#[test]
fn connections_that_a_target_closes_do_not_swing_up_to_a_storm_of_handshakes() {
    let seen = run(open(5_000.0, 8_192, Some(64)), MS / 2, 100);
    assert!(seen.connections < 150, "{} connections", seen.connections);
    assert!(seen.p99_ns < 10 * MS, "p99 {} ns", seen.p99_ns);
}

/// The target's core has a load of 60 % by requests and of 4 % by handshakes when it pauses. If a connection were opened for each
/// request that comes meanwhile, the core would have no time left for requests until all 8,192 are open.
#[test]
fn a_pause_of_the_target_begins_no_storm_of_handshakes() {
    let expensive = (2 * MS, 1_000);
    let cheap = (MS / 5, 100);
    for ((handshake_ns, lives), pause_ms, connections, p99_ms) in
        [(cheap, 5, 250, 1), (cheap, 20, 300, 1), (cheap, 100, 500, 100), (expensive, 20, 800, 800)]
    {
        let pauses_ns = vec![(START_NS + LENGTH_NS / 4, pause_ms * MS)];
        let plan = open(20_000.0, 8_192, Some(64));
        let seen = run_with_pauses(plan, handshake_ns, lives, pauses_ns);
        assert_eq!(seen.ok, 400_000);
        assert!(seen.connections < connections, "{pause_ms} ms: {} connections", seen.connections);
        assert!(seen.p99_ns < p99_ms * MS, "{pause_ms} ms: p99 {} ns", seen.p99_ns);
    }
}

/// Each second the core pauses for 100 ms, in which 500 requests come. No connection opens in a pause, so that after some of
/// them there are enough, and requests wait for the target, and not for a connection.
#[test]
fn a_target_that_pauses_has_as_many_connections_as_a_pause_needs() {
    let pause_ns = |number: u64| (START_NS + number * SECOND_NS, 100 * MS);
    let pauses_ns = (1..20).rev().map(pause_ns).collect();
    let seen = run_with_pauses(open(5_000.0, 8_192, Some(64)), MS / 5, u32::MAX, pauses_ns);
    assert!((510..1_000).contains(&seen.connections), "{} connections", seen.connections);
    // 436, 404, 356, 284, 176 and 14 of those that come in the first pauses, and none later.
    assert!(seen.waited < 2_500, "{} requests waited for a connection", seen.waited);
}
