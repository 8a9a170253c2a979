//! Requests that share connections which break: whatever may be sent again is, and nobody is forgotten.

use crate::multiplex::{self, ASK, CANCEL, Many, NOT_LOOKED_AT, PIECE, REPLY, TAKES, frame, plan};
use plimsoll_core::admission::AdmissionModel;
use plimsoll_core::clock::{Clock, MILLISECOND_NS, SECOND_NS, VirtualClock};
use plimsoll_core::interval::Interval;
use plimsoll_core::outcome::{Failure, Outcome};
use plimsoll_core::recorder::Times;
use plimsoll_core::rng::Rng;
use plimsoll_core::schedule::{Arrivals, Limits, LoadModel};
use plimsoll_engine::net::NetError;
use plimsoll_engine::shard::{Message, Shard, ShardEnd, ShardPlan};
use plimsoll_engine::sim::{Act, Acts, Arrival, Link, Peer, SimNet};
use plimsoll_wire::{Judgement, Sessions, Submission, Turn};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Longest time that a server here takes for an answer, ns.
const SERVICE_NS: u64 = 30 * MILLISECOND_NS;
/// No request may take longer: two tries, and two ways to a new connection.
const PATIENCE_NS: u64 = 200 * MILLISECOND_NS;

/// The clients' requests, of which some may be repeated.
struct Mixed {
    rng: Rng,
    idempotent: u64,
    /// Since when each client waits for an answer, ns; none while it does not.
    asked: Rc<RefCell<BTreeMap<u64, bool>>>,
    item: u64,
}

impl Mixed {
    fn new(seed: u64, idempotent: u64) -> Self {
        Self { rng: Rng::new(seed), idempotent, asked: Rc::default(), item: 0 }
    }

    fn ended(&self, what: &Submission) {
        let was = self.asked.borrow_mut().remove(&what.item);
        assert_eq!(was, Some(what.idempotent), "request {} ended twice", what.item);
    }
}

impl Sessions<Many> for Mixed {
    fn next(&mut self, _client: u32, _target: u32, _request: &mut ()) -> Turn {
        self.item += 1;
        let idempotent = self.rng.below(1000) < self.idempotent;
        self.asked.borrow_mut().insert(self.item, idempotent);
        Turn::Ask(Submission { class: 0, item: self.item, idempotent })
    }

    fn judge(&mut self, _: u32, what: &Submission, _: &bool, _: Times) -> Judgement {
        self.ended(what);
        Judgement { outcome: Outcome::Ok, status: 0, hits: None, body_bytes: 0 }
    }

    fn lost(&mut self, _: u32, what: &Submission, failure: Failure, times: Times) {
        self.ended(what);
        let waited_ns = times.done_ns - times.intended_ns;
        assert!(failure != Failure::Timeout, "{what:?} timed out after {waited_ns} ns");
    }

    fn describe(&self, _: &Submission, _: &()) -> String {
        String::new()
    }

    fn explain(&self, _: &Submission, _: &bool) -> (String, String) {
        (String::new(), String::new())
    }
}

/// Replies of a connection that its end cuts, where replies come in pieces.
const CUT: u64 = 8;

/// The server's treatment of its connections.
#[derive(Clone, Copy, Debug)]
struct Manners {
    /// Requests of a connection before it ends, least and most.
    lives: (u64, u64),
    /// Requests that it does not look at, of 1,000.
    passed_over: u64,
    /// Replies that begin with a piece, of 1,000.
    pieces: u64,
    /// Connections that are refused, of 1,000.
    refused: u64,
    /// The error of a refusal.
    refusal: NetError,
    /// Replies that change the number of requests that the connection takes, of 1,000; the new number may be 0.
    takes: u64,
}

struct Host {
    rng: Rng,
    manners: Manners,
    /// Requests left for each connection.
    left: BTreeMap<u64, u64>,
    held: BTreeMap<u64, Vec<u8>>,
}

impl Host {
    fn new(seed: u64, manners: Manners) -> Rc<RefCell<Self>> {
        let (left, held) = (BTreeMap::new(), BTreeMap::new());
        Rc::new(RefCell::new(Self { rng: Rng::new(seed), manners, left, held }))
    }

    fn answer(&mut self, connection: u64, tag: u32, acts: &mut Acts) {
        let (manners, rng) = (self.manners, &mut self.rng);
        let Some(left) = self.left.get_mut(&connection).filter(|left| **left > 0) else { return };
        *left -= 1;
        let cut = CUT.min(manners.lives.0 / 2);
        let after_ns = rng.below(SERVICE_NS);
        let mut act =
            |after_ns, kind, number| acts.push((after_ns, Act::Bytes(frame(kind, number))));
        if rng.below(1000) < manners.passed_over {
            act(after_ns, NOT_LOOKED_AT, tag);
        } else {
            let begins = rng.below(1000) < manners.pieces;
            if begins {
                act(0, PIECE, tag);
            }
            // The last replies are cut, those that have begun and those that have not.
            if manners.pieces == 0 || *left >= cut {
                act(after_ns, REPLY, tag);
            }
        }
        if rng.below(1000) < manners.takes {
            act(after_ns, TAKES, rng.below(3) as u32);
            act(after_ns + rng.below(SERVICE_NS), TAKES, 1 + rng.below(8) as u32);
        }
        let ends = if manners.pieces == 0 { *left == 0 } else { *left + 1 == cut };
        if ends {
            let end = if rng.below(2) == 0 { Act::Close } else { Act::Reset };
            acts.push((rng.below(SERVICE_NS), end));
        }
    }
}

impl Peer for Host {
    fn connecting(&mut self, connection: u64, _: SocketAddr, _: u64) -> Arrival {
        if self.rng.below(1000) < self.manners.refused {
            return Arrival::FailedAtOnce(self.manners.refusal);
        }
        let (least, most) = self.manners.lives;
        self.left.insert(connection, least + self.rng.below(most - least + 1));
        Arrival::Accepted { after_ns: self.rng.below(2 * MILLISECOND_NS) }
    }

    fn received(&mut self, connection: u64, bytes: &[u8], _: u64, acts: &mut Acts) {
        let held = self.held.entry(connection).or_default();
        held.extend_from_slice(bytes);
        let whole = held.len() / 5 * 5;
        let asked: Vec<u8> = held.drain(..whole).collect();
        for asked in asked.chunks(5) {
            assert!(asked[0] == ASK || asked[0] == CANCEL);
            if asked[0] == ASK {
                self.answer(connection, u32::from_le_bytes(asked[1..].try_into().unwrap()), acts);
            }
        }
    }

    fn woken(&mut self, _: u64, _: u64, _: u64, _: &mut Acts) {}

    fn closed(&mut self, connection: u64) {
        self.left.remove(&connection);
        self.held.remove(&connection);
    }
}

/// Carries a run out; the totals, and how many requests were never heard of again.
fn play(
    plan: ShardPlan,
    depth: u32,
    host: &Rc<RefCell<Host>>,
    mixed: Mixed,
    link: Link,
    stop_ns: Option<u64>,
) -> (Interval, ShardEnd, usize) {
    let clock = VirtualClock::new();
    clock.advance_to(SECOND_NS);
    let mut net = SimNet::new(clock.clone(), host.clone(), link, plan.seed);
    let stop = Arc::new(AtomicBool::new(false));
    if let Some(stop_ns) = stop_ns {
        let stop = stop.clone();
        net.at(stop_ns, move || stop.store(true, Ordering::Relaxed));
    }
    let seconds = Rc::new(RefCell::new(Interval::new(1)));
    let (all, asked) = (seconds.clone(), mixed.asked.clone());
    let outbox = Box::new(move |message| {
        if let Message::Second(second) = message {
            all.borrow_mut().merge(&second);
        }
        None
    });
    let at_ns = clock.now_ns();
    let shard = Shard::new(plan, Many(depth), net, clock, Box::new(mixed), outbox, stop);
    let end = shard.unwrap().run(|| at_ns + 10 * MILLISECOND_NS).unwrap();
    let mut totals = seconds.borrow().clone();
    totals.merge(&end.rest);
    let open = asked.borrow().len();
    (totals, end, open)
}

const CLOSES: Manners = Manners {
    lives: (300, 300),
    passed_over: 0,
    pieces: 0,
    refused: 0,
    refusal: NetError::Refused,
    takes: 0,
};

/// A server that closes each connection after 300 requests, as many do: whoever is lost with a connection goes on the next.
#[test]
fn all_that_a_lost_connection_carried_goes_on_the_next_one() {
    let open = LoadModel::Open { rate_per_s: 2000.0, arrivals: Arrivals::Uniform };
    for (clients, connections, open) in [(8, 1, None), (32, 3, None), (8, 1, Some(open))] {
        let mut plan = plan(clients, connections, Some(1500));
        plan.model = open.unwrap_or(plan.model);
        let host = Host::new(7, CLOSES);
        let (totals, _, left) = play(plan, 64, &host, Mixed::new(1, 1000), Link::default(), None);
        let ledger = totals.ledger;
        assert_eq!((ledger.ok, ledger.failed.total(), left), (1500, 0, 0), "{ledger:?}");
        assert!(totals.counters.retries > 4, "{:?}", totals.counters);
        assert!(totals.classes[0].response.max_ns() < PATIENCE_NS);
    }
}

/// Only those whose own reply had begun are cut short by the end of their connection.
#[test]
fn a_reply_that_has_begun_does_not_speak_for_the_others() {
    let manners = Manners { pieces: 600, lives: (60, 60), ..CLOSES };
    let host = Host::new(7, manners);
    let plan = plan(16, 1, Some(1500));
    let (totals, _, _) = play(plan, 64, &host, Mixed::new(1, 1000), Link::default(), None);
    let (failed, retries) = (totals.ledger.failed, totals.counters.retries);
    assert_eq!(failed.total(), failed.short, "{failed:?}");
    assert!(failed.short > 4 && retries > 10, "{failed:?}, {retries} retries");
}

/// A connection of one client that takes nothing for a while is not asked.
#[test]
fn a_client_waits_for_its_own_connection_to_have_room() {
    let server = multiplex::Server::new(|seen, tag| {
        let mut acts = multiplex::answer(tag);
        if seen == 3 {
            acts.insert(0, (0, Act::Bytes(frame(TAKES, 0))));
            acts.push((50 * MILLISECOND_NS, Act::Bytes(frame(TAKES, 1))));
        }
        acts
    });
    let end = multiplex::run(plan(1, 1, Some(10)), 4, &server, Mixed::new(1, 0));
    assert_eq!((end.rest.ledger.ok, end.rest.counters.connects), (10, 1));
    assert!(end.rest.classes[0].response.max_ns() > 45 * MILLISECOND_NS);
}

/// One that takes nothing any more is a timeout, and the connection is not blamed.
#[test]
fn a_client_whose_connection_takes_nothing_times_out() {
    struct Patient(Mixed);
    impl Sessions<Many> for Patient {
        fn next(&mut self, client: u32, target: u32, request: &mut ()) -> Turn {
            self.0.next(client, target, request)
        }
        fn judge(&mut self, c: u32, what: &Submission, reply: &bool, times: Times) -> Judgement {
            self.0.judge(c, what, reply, times)
        }
        fn lost(&mut self, _: u32, _: &Submission, _: Failure, _: Times) {
            unreachable!("it was never sent");
        }
        fn undone(&mut self, _: u32, what: &Submission, failure: Failure, _: Times) {
            assert_eq!(failure, Failure::Timeout);
            self.0.ended(what);
        }
        fn describe(&self, _: &Submission, _: &()) -> String {
            String::new()
        }
        fn explain(&self, _: &Submission, _: &bool) -> (String, String) {
            (String::new(), String::new())
        }
    }
    let server = multiplex::Server::new(|_, tag| {
        vec![(0, Act::Bytes(frame(TAKES, 0))), (0, Act::Bytes(frame(REPLY, tag)))]
    });
    let end = multiplex::run(plan(1, 1, Some(3)), 4, &server, Patient(Mixed::new(1, 0)));
    let ledger = end.rest.ledger;
    assert_eq!((ledger.ok, ledger.failed.timeout, end.rest.counters.connects), (1, 2, 1));
}

fn drawn_plan(rng: &mut Rng, seed: u64) -> ShardPlan {
    let clients = 1 + rng.below(24) as u32;
    let connections = if rng.below(3) == 0 { clients } else { 1 + rng.below(4) as u32 };
    let mut plan = plan(clients, connections, Some(300 + rng.below(500)));
    if rng.below(3) == 0 {
        let arrivals = if rng.below(2) == 0 { Arrivals::Uniform } else { Arrivals::Poisson };
        plan.model = LoadModel::Open { rate_per_s: 50.0 + 300.0 * rng.uniform(), arrivals };
    }
    if rng.below(4) == 0 {
        plan.admission = AdmissionModel::Managed {
            slots: 1 + rng.below(30) as u32,
            queue_max: 5 + rng.below(30) as u32,
            queue_timeout_ns: SECOND_NS,
        };
    }
    plan.limits = Limits { duration_ns: 3 * SECOND_NS, ..plan.limits };
    plan.preconnect = rng.below(2) == 0;
    plan.seed = seed;
    plan
}

/// The server answers whatever it looks at, and takes new connections sooner or later: then no request times out, whichever of
/// them may be repeated and however its connections end; and if it refuses none, nobody waits long for an answer.
#[test]
fn nobody_is_forgotten_when_connections_end() {
    for seed in 0..1500 {
        let mut rng = Rng::new(seed);
        let mut some = |most: u64| rng.below(2) * rng.below(most);
        let least = 2 + some(40);
        let manners = Manners {
            lives: (least, least + some(200)),
            passed_over: some(60),
            pieces: some(400),
            refused: some(2) * 200,
            refusal: if seed.is_multiple_of(2) { NetError::Refused } else { NetError::Exhausted },
            takes: some(60),
        };
        let idempotent = [0, 500, 1000][rng.below(3) as usize];
        let (plan, depth) = (drawn_plan(&mut rng, seed), 1 + rng.below(32) as u32);
        let stop_ns = (rng.below(4) == 0).then(|| SECOND_NS + rng.below(SECOND_NS));
        let link = Link { oversleep_max_ns: 60_000, ..Link::default() };
        let shown = format!("seed {seed}: {manners:?} {depth} {idempotent} {plan:?}");
        let host = Host::new(seed, manners);
        let mixed = Mixed::new(seed, idempotent);
        let (is_open, own) = (plan.model.is_open(), plan.model.clients() == Some(plan.connections));
        let (totals, end, left) = play(plan, depth, &host, mixed, link, stop_ns);
        let ledger = totals.ledger;
        assert_eq!(ledger.balance(), Ok(()), "{shown}");
        assert_eq!(ledger.unfinished, left as u64, "{shown}");
        assert!(end.interrupted || left == 0, "{left} were forgotten: {shown}");
        assert_eq!(ledger.failed.timeout + ledger.failed.protocol, 0, "{ledger:?} {shown}");
        assert!(manners.pieces > 0 || ledger.failed.short == 0, "{ledger:?} {shown}");
        assert!(manners.refused > 0 || ledger.failed.connect == 0, "{ledger:?} {shown}");
        let is_ours = manners.refusal == NetError::Exhausted && ledger.failed.connect > 0;
        assert!(!is_ours || totals.counters.exhausted >= ledger.failed.connect, "{shown}");
        assert!(is_ours || ledger.failed.connect == 0 || totals.counters.exhausted == 0, "{shown}");
        if manners.refused == 0 && manners.takes == 0 && own && !is_open {
            let slowest_ns = totals.classes[0].response.max_ns();
            assert!(slowest_ns < 16 * PATIENCE_NS, "{slowest_ns} ns, {shown}");
        }
    }
}
