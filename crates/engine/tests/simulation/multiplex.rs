//! A protocol with many requests on a connection: they share it, and end one by one.

use plimsoll_core::admission::AdmissionModel;
use plimsoll_core::clock::{Clock, MILLISECOND_NS, SECOND_NS, VirtualClock};
use plimsoll_core::interval::Interval;
use plimsoll_core::outcome::{Failure, Outcome};
use plimsoll_core::recorder::Times;
use plimsoll_core::rng::Rng;
use plimsoll_core::schedule::Limits;
use plimsoll_engine::net::NetError;
use plimsoll_engine::shard::{Message, Shard, ShardEnd, ShardPlan};
use plimsoll_engine::sim::thread::Thread;
use plimsoll_engine::sim::{Act, Acts, Arrival, Link, Peer, SimNet, closed_plan};
use plimsoll_wire::{Event, Fault, Judgement, Protocol, Sessions, Submission, Turn, UNTIL_CALLED};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

/// Frames of five bytes: what it is, and the tag of the request.
pub const ASK: u8 = b'?';
pub const CANCEL: u8 = b'c';
pub const PIECE: u8 = b'p';
pub const REPLY: u8 = b'r';
pub const RESET: u8 = b'x';
pub const NOT_LOOKED_AT: u8 = b'u';
/// A reply that says that nothing was done and that it may be asked again.
pub const AGAIN: u8 = b'a';
/// Not of a request: the server will not have this client.
pub const UNWANTED: u8 = b'w';
/// Not of a request: how many requests the connection takes from now on stands where the tag stands.
pub const TAKES: u8 = b't';

pub fn frame(kind: u8, tag: u32) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend(tag.to_le_bytes());
    bytes
}

/// The protocol, with how many requests a connection takes.
#[derive(Clone, Copy)]
pub struct Many(pub u32);

#[derive(Default)]
pub struct Conn {
    tags: BTreeSet<u32>,
    /// Those whose reply has begun.
    begun: BTreeSet<u32>,
    held: Vec<u8>,
    /// What the peer has said that it takes.
    takes: Option<u32>,
}

impl Protocol for Many {
    type Conn = Conn;
    type Request = ();
    /// Whether it may be asked again.
    type Reply<'a> = bool;

    fn open(&self, _out: &mut Vec<u8>) -> Conn {
        Conn::default()
    }

    fn depth(&self) -> u32 {
        self.0
    }

    fn capacity(&self, conn: &Conn) -> u32 {
        conn.takes.unwrap_or(self.0).saturating_sub(conn.tags.len() as u32)
    }

    fn submit(&self, conn: &mut Conn, _request: &(), tag: u32, out: &mut Vec<u8>) {
        assert!(self.capacity(conn) > 0, "more requests than the connection takes");
        assert!(conn.tags.insert(tag));
        conn.begun.remove(&tag);
        out.extend(frame(ASK, tag));
    }

    fn receive<'a>(
        &self,
        conn: &'a mut Conn,
        input: &'a [u8],
        _out: &mut Vec<u8>,
    ) -> Result<Event<'a, bool>, Fault> {
        let consumed = input.len().min(5 - conn.held.len());
        conn.held.extend_from_slice(&input[..consumed]);
        let &[kind, ref tag @ ..] = &conn.held[..] else { return Ok(Event::More) };
        let Ok(tag) = tag.try_into().map(u32::from_le_bytes) else { return Ok(Event::More) };
        conn.held.clear();
        if kind == TAKES {
            conn.takes = Some(tag);
            return Ok(Event::Progress { consumed });
        }
        if kind == UNWANTED {
            return Err(Fault::Refused("not you"));
        }
        if !conn.tags.contains(&tag) {
            // It was given up before.
            return Ok(Event::Progress { consumed });
        }
        let fault = Fault::Closed { began: false };
        Ok(match kind {
            PIECE => {
                conn.begun.insert(tag);
                Event::Part { tag, bytes: &input[..consumed], consumed }
            }
            REPLY | AGAIN => {
                conn.tags.remove(&tag);
                conn.begun.remove(&tag);
                Event::Reply { tag, reply: kind == AGAIN, consumed, reusable: true }
            }
            RESET | NOT_LOOKED_AT => {
                conn.tags.remove(&tag);
                Event::GivenUp { tag, fault, unprocessed: kind == NOT_LOOKED_AT, consumed }
            }
            _ => return Err(Fault::Protocol("no such frame")),
        })
    }

    fn end<'a>(&self, _conn: &'a mut Conn) -> Result<Event<'a, bool>, Fault> {
        Err(Fault::Closed { began: false })
    }

    fn began(&self, conn: &Conn, tag: u32) -> Option<bool> {
        Some(conn.begun.contains(&tag))
    }

    fn cancel(&self, conn: &mut Conn, tag: u32, out: &mut Vec<u8>) -> bool {
        assert!(conn.tags.remove(&tag));
        out.extend(frame(CANCEL, tag));
        true
    }
}

/// What a server does with the n-th request that it sees.
type Script = Box<dyn FnMut(usize, u32) -> Acts>;

pub struct Server {
    script: Script,
    pub seen: usize,
    /// How often bytes came.
    pub pieces: usize,
    cancelled: u64,
    /// Connections that are taken before all others are refused.
    pub accepts: usize,
    held: BTreeMap<u64, Vec<u8>>,
}

impl Server {
    pub fn new(script: impl FnMut(usize, u32) -> Acts + 'static) -> Rc<RefCell<Self>> {
        let script = Box::new(script);
        Rc::new(RefCell::new(Self {
            script,
            seen: 0,
            pieces: 0,
            cancelled: 0,
            accepts: usize::MAX,
            held: BTreeMap::new(),
        }))
    }
}

impl Peer for Server {
    fn connecting(&mut self, _: u64, _: SocketAddr, _: u64) -> Arrival {
        if self.accepts == 0 {
            return Arrival::FailedAtOnce(NetError::Refused);
        }
        self.accepts -= 1;
        Arrival::Accepted { after_ns: MILLISECOND_NS }
    }

    fn received(&mut self, connection: u64, bytes: &[u8], _: u64, acts: &mut Acts) {
        let held = self.held.entry(connection).or_default();
        held.extend_from_slice(bytes);
        self.pieces += 1;
        let whole = held.len() / 5 * 5;
        for asked in held.drain(..whole).collect::<Vec<_>>().chunks(5) {
            let tag = u32::from_le_bytes(asked[1..].try_into().unwrap());
            if asked[0] == CANCEL {
                self.cancelled += 1;
                continue;
            }
            acts.extend((self.script)(self.seen, tag));
            self.seen += 1;
        }
    }

    fn woken(&mut self, _: u64, _: u64, _: u64, _: &mut Acts) {}

    fn closed(&mut self, connection: u64) {
        self.held.remove(&connection);
    }
}

/// Sessions that ask at once, or as many at a time as a window allows.
#[derive(Default)]
pub struct Asker {
    /// Most requests under way; no limit when it is 0.
    window: u32,
    under_way: u32,
    most_under_way: Rc<RefCell<u32>>,
    pieces: Rc<RefCell<u64>>,
}

impl Asker {
    fn ended(&mut self) {
        self.under_way -= 1;
    }
}

impl Sessions<Many> for Asker {
    fn next(&mut self, _client: u32, _target: u32, _request: &mut ()) -> Turn {
        if self.window > 0 && self.under_way >= self.window {
            return Turn::Rest { until_ns: UNTIL_CALLED };
        }
        self.under_way += 1;
        let mut most = self.most_under_way.borrow_mut();
        *most = self.under_way.max(*most);
        Turn::Ask(Submission::default())
    }

    fn judge(&mut self, _: u32, _: &Submission, _: &bool, _: Times) -> Judgement {
        self.ended();
        Judgement { outcome: Outcome::Ok, status: 0, hits: None, body_bytes: 0 }
    }

    fn lost(&mut self, _: u32, _: &Submission, _: Failure, _: Times) {
        self.ended();
    }

    fn part(&mut self, _: u32, _: &Submission, bytes: &[u8], times: Times) -> bool {
        assert!(!bytes.is_empty() && times.done_ns > times.sent_ns);
        *self.pieces.borrow_mut() += 1;
        true
    }

    fn called(&mut self, _now_ns: u64) -> u32 {
        self.window.saturating_sub(self.under_way)
    }

    fn describe(&self, _: &Submission, _: &()) -> String {
        String::new()
    }

    fn explain(&self, _: &Submission, _: &bool) -> (String, String) {
        (String::new(), String::new())
    }
}

pub fn plan(clients: u32, connections: u32, requests: Option<u64>) -> ShardPlan {
    ShardPlan {
        limits: Limits { duration_ns: 10 * SECOND_NS, requests },
        connections,
        preconnect: true,
        ..closed_plan(clients, 10 * SECOND_NS)
    }
}

pub fn run(
    plan: ShardPlan,
    depth: u32,
    server: &Rc<RefCell<impl Peer + 'static>>,
    asker: impl Sessions<Many> + 'static,
) -> ShardEnd {
    run_on(Thread::default(), plan, depth, server, asker)
}

/// The same, driven by this thread.
pub fn run_on(
    thread: Thread,
    plan: ShardPlan,
    depth: u32,
    server: &Rc<RefCell<impl Peer + 'static>>,
    asker: impl Sessions<Many> + 'static,
) -> ShardEnd {
    run_late(thread, 0, plan, depth, server, asker)
}

/// The same where all were to begin `late_ns` ago.
pub fn run_late(
    thread: Thread,
    late_ns: u64,
    plan: ShardPlan,
    depth: u32,
    server: &Rc<RefCell<impl Peer + 'static>>,
    asker: impl Sessions<Many> + 'static,
) -> ShardEnd {
    let clock = VirtualClock::new();
    clock.advance_to(SECOND_NS);
    let net = SimNet::new(clock.clone(), server.clone(), Link::default(), 1).driven_by(thread);
    let seconds = Rc::new(RefCell::new(Interval::new(1)));
    let all = seconds.clone();
    let outbox = Box::new(move |message| {
        if let Message::Second(second) = message {
            all.borrow_mut().merge(&second);
        }
        None
    });
    let shard =
        Shard::new(plan, Many(depth), net, clock.clone(), Box::new(asker), outbox, Arc::default());
    let mut end = shard.unwrap().run(|| clock.now_ns() - late_ns).unwrap();
    end.rest.merge(&seconds.borrow());
    end
}

pub fn answer(tag: u32) -> Acts {
    vec![(MILLISECOND_NS, Act::Bytes(frame(REPLY, tag)))]
}

#[test]
fn many_requests_share_a_connection() {
    let server = Server::new(|_, tag| answer(tag));
    let asker = Asker::default();
    let most = asker.most_under_way.clone();
    let end = run(plan(32, 2, Some(3200)), 16, &server, asker);
    assert_eq!((end.rest.ledger.ok, end.rest.counters.connects), (3200, 2));
    assert_eq!(*most.borrow(), 32);
    // A hundred times a reply and two ways of 20 us.
    let took_ns = end.measured_ns.1 - end.measured_ns.0;
    assert!(took_ns < 110 * MILLISECOND_NS, "{took_ns}");
}

/// Answers that come together over one connection are a batch, although they are one completion: there is no nap in order to
/// gather more.
#[test]
fn answers_that_come_together_are_a_batch() {
    let mut answers = Vec::new();
    let server = Server::new(move |seen, tag| {
        answers.extend(frame(REPLY, tag));
        if seen % 32 < 31 {
            return Acts::new();
        }
        vec![(0, Act::Bytes(std::mem::take(&mut answers)))]
    });
    let plan = ShardPlan { batching: true, ..plan(32, 1, Some(3200)) };
    let end = run(plan, 32, &server, Asker::default());
    assert_eq!((end.rest.ledger.ok, server.borrow().pieces), (3200, 100));
    // A hundred times two ways of 20 us. With a nap each time it would be 5 ms.
    let took_ns = end.measured_ns.1 - end.measured_ns.0;
    assert!(took_ns < 4_500_000, "{took_ns}");
}

/// A clock that counts how often it is read.
#[derive(Clone)]
struct Counted {
    clock: VirtualClock,
    readings: Rc<Cell<u64>>,
}

impl Clock for Counted {
    fn now_ns(&self) -> u64 {
        self.readings.set(self.readings.get() + 1);
        self.clock.now_ns()
    }
}

/// How often the clock is read for 3200 requests in 100 rounds.
fn readings(connections: u32, depth: u32) -> u64 {
    let clock = VirtualClock::new();
    let server = Server::new(|_, tag| answer(tag));
    let net = SimNet::new(clock.clone(), server, Link::default(), 1);
    let clock = Counted { clock, readings: Rc::default() };
    let (readings, asker) = (clock.readings.clone(), Box::new(Asker::default()));
    let plan = plan(32, connections, Some(3200));
    let shard =
        Shard::new(plan, Many(depth), net, clock, asker, Box::new(|_| None), Arc::default());
    assert_eq!(shard.unwrap().run(|| MILLISECOND_NS).unwrap().rest.ledger.ok, 3200);
    readings.get()
}

/// Requests that are only encoded share a reading of the clock. One that was handed to the network by itself took its time:
/// the next one is not said to have begun before.
#[test]
fn requests_that_go_out_together_share_a_reading_of_the_clock() {
    let (by_themselves, together) = (readings(32, 1), readings(1, 32));
    // Besides, each answer that is taken from the network is given its own.
    assert!(by_themselves >= 2 * 3200, "{by_themselves}");
    assert!(together < 2 * 3200 - 3200 / 8 * 6, "{together}");
}

#[test]
fn a_connection_takes_no_more_than_it_says() {
    let server = Server::new(|_, tag| answer(tag));
    let asker = Asker::default();
    let most = asker.most_under_way.clone();
    let end = run(plan(32, 2, Some(640)), 5, &server, asker);
    assert_eq!((end.rest.ledger.ok, *most.borrow()), (640, 10));
}

/// A connection that waits for work learns that it takes less than what it has: whoever is due waits for it, and is
/// not forgotten.
#[test]
fn a_connection_that_takes_less_than_before_loses_nobody() {
    let server = Server::new(|seen, tag| {
        let mut acts = answer(tag);
        if seen % 20 == 10 {
            acts.push((MILLISECOND_NS, Act::Bytes(frame(TAKES, 1))));
            acts.push((50 * MILLISECOND_NS, Act::Bytes(frame(TAKES, 8))));
        }
        acts
    });
    let end = run(plan(8, 1, Some(400)), 8, &server, Asker::default());
    assert_eq!((end.rest.ledger.ok, end.rest.counters.connects), (400, 1));
    let queued =
        AdmissionModel::Managed { slots: 8, queue_max: 100, queue_timeout_ns: 10 * SECOND_NS };
    let plan = ShardPlan { admission: queued, ..plan(8, 1, Some(400)) };
    let end = run(plan, 8, &server, Asker::default());
    assert_eq!((end.rest.ledger.scheduled, end.rest.ledger.ok), (400, 400));
}

#[test]
fn a_timeout_takes_nothing_else_with_it() {
    let server = Server::new(|seen, tag| if seen % 10 == 3 { Acts::new() } else { answer(tag) });
    let end = run(plan(8, 1, Some(200)), 8, &server, Asker::default());
    let ledger = end.rest.ledger;
    assert_eq!((ledger.ok, ledger.failed.timeout, ledger.failed.total()), (180, 20, 20));
    assert_eq!(end.rest.counters.connects, 1);
    // The last one may still be on its way when the run ends.
    assert!((19..=20).contains(&server.borrow().cancelled));
}

#[test]
fn pieces_keep_a_request_alive() {
    let server = Server::new(|_, tag| {
        let mut acts: Acts =
            (1..9).map(|i| (i * SECOND_NS / 2, Act::Bytes(frame(PIECE, tag)))).collect();
        acts.push((SECOND_NS / 2 * 9, Act::Bytes(frame(REPLY, tag))));
        acts
    });
    let asker = Asker::default();
    let pieces = asker.pieces.clone();
    let end = run(plan(2, 2, Some(2)), 8, &server, asker);
    assert_eq!((end.rest.ledger.ok, *pieces.borrow()), (2, 16));
    // Pieces that stop are a timeout like any other.
    let server = Server::new(|_, tag| vec![(SECOND_NS / 2, Act::Bytes(frame(PIECE, tag)))]);
    let end = run(plan(1, 1, Some(1)), 8, &server, Asker::default());
    assert_eq!(end.rest.ledger.failed.timeout, 1);
    let took_ns = end.measured_ns.1 - end.measured_ns.0;
    assert!(took_ns.abs_diff(1500 * MILLISECOND_NS) < 20 * MILLISECOND_NS, "{took_ns}");
}

#[test]
fn what_a_peer_did_not_look_at_is_sent_again() {
    let refused = |tag| vec![(MILLISECOND_NS, Act::Bytes(frame(NOT_LOOKED_AT, tag)))];
    let server = Server::new(move |seen, tag| if seen == 2 { refused(tag) } else { answer(tag) });
    let end = run(plan(4, 1, Some(40)), 4, &server, Asker::default());
    assert_eq!((end.rest.ledger.ok, end.rest.counters.retries), (40, 1));
    let server = Server::new(move |_, tag| refused(tag));
    let end = run(plan(4, 1, Some(40)), 4, &server, Asker::default());
    let ledger = end.rest.ledger;
    // Sixteen times at most, after the first.
    assert_eq!((ledger.ok, ledger.failed.reset, server.borrow().seen), (0, 40, 40 * 17));
    assert_eq!(end.rest.counters.retries, 40 * 16);
    let reset = |tag| vec![(MILLISECOND_NS, Act::Bytes(frame(RESET, tag)))];
    let server = Server::new(move |seen, tag| if seen < 7 { reset(tag) } else { answer(tag) });
    let end = run(plan(4, 1, Some(40)), 4, &server, Asker::default());
    assert_eq!((end.rest.ledger.ok, end.rest.ledger.failed.reset), (33, 7));
    assert_eq!(end.rest.counters.connects, 1);
}

#[test]
fn clients_rest_until_they_are_called() {
    let server = Server::new(|_, tag| answer(tag));
    let asker = Asker { window: 3, ..Asker::default() };
    let most = asker.most_under_way.clone();
    let end = run(plan(64, 1, Some(300)), 100, &server, asker);
    assert_eq!((end.rest.ledger.ok, *most.borrow()), (300, 3));
}

#[test]
fn books_balance_whatever_a_peer_does() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let server = Server::new(move |_, tag| {
            let after_ns = rng.below(400) * MILLISECOND_NS;
            let act = |kind| Act::Bytes(frame(kind, tag));
            match rng.below(20) {
                0 => vec![(after_ns, Act::Reset)],
                1 => vec![(after_ns, Act::Close)],
                2 => Acts::new(),
                3 => vec![(after_ns, act(RESET))],
                4 => vec![(after_ns, act(NOT_LOOKED_AT))],
                5 => vec![(after_ns, act(b'!'))],
                6..9 => vec![(0, act(PIECE)), (after_ns, act(PIECE)), (after_ns, act(REPLY))],
                _ => vec![(after_ns, act(REPLY))],
            }
        });
        let window = (seed % 3) as u32 * 5;
        let asker = Asker { window, ..Asker::default() };
        let (clients, connections) = (1 + (seed % 40) as u32, 1 + (seed % 5) as u32);
        let end = run(plan(clients, connections, Some(400)), 1 + (seed % 9) as u32, &server, asker);
        let ledger = end.rest.ledger;
        assert_eq!(ledger.balance(), Ok(()), "seed {seed}: {ledger:?}");
        assert_eq!(ledger.sent + ledger.unsent.stopped, ledger.scheduled, "seed {seed}");
        assert!(ledger.ok > 0, "seed {seed}: {ledger:?}");
    }
}
