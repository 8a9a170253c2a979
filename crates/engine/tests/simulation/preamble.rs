//! TLS that is asked for in clear, as PostgreSQL has it, of servers that answer in every way.

use crate::scene::{address, target};
use crate::scripted::{closed_plan, flush, server_tls};
use plimsoll_core::clock::{Clock, MILLISECOND_NS, SECOND_NS, VirtualClock};
use plimsoll_core::interval::Interval;
use plimsoll_core::outcome::{Failure, Outcome};
use plimsoll_core::recorder::Times;
use plimsoll_core::rng::Rng;
use plimsoll_engine::shard::{Message, Shard, ShardEnd, ShardPlan, Timeouts};
use plimsoll_engine::sim::{Act, Acts, Arrival, Link, Peer, SimNet};
use plimsoll_engine::tls::{Speaks, Tls, TlsOptions, Trust};
use plimsoll_wire::postgres::{Login, Postgres, Reply, Request};
use plimsoll_wire::{Judgement, Sessions, Submission, Turn};
use rustls::version::{TLS12, TLS13};
use rustls::{ServerConfig, ServerConnection};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];
/// Trust, then ready.
const WELCOME: &[u8] = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";
const DONE: &[u8] = b"C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I";
const PATIENT: Timeouts = Timeouts { connect_ns: SECOND_NS, request_ns: SECOND_NS };

#[derive(Default)]
struct Line {
    number: usize,
    asked: bool,
    session: Option<ServerConnection>,
    welcomed: bool,
    pending: Vec<u8>,
}

/// A server that trusts everybody and answers the question for TLS as its script says.
struct Server {
    script: Box<dyn FnMut(usize) -> Acts>,
    tls: Arc<ServerConfig>,
    lines: BTreeMap<u64, Line>,
    knocks: usize,
    /// Queries that came in clear, and over TLS.
    queries: (u64, u64),
    /// What came in clear after the question.
    in_clear: usize,
}

impl Server {
    fn new(script: impl FnMut(usize) -> Acts + 'static) -> Self {
        let (lines, queries) = (BTreeMap::new(), (0, 0));
        let script = Box::new(script);
        Self { script, tls: server_tls(&TLS13), lines, knocks: 0, queries, in_clear: 0 }
    }

    /// One that says these bytes, and means it when they are a grant.
    fn saying(answer: &'static [u8]) -> Self {
        Self::new(move |_| vec![(MILLISECOND_NS, Act::Bytes(answer.to_vec()))])
    }
}

impl Peer for Server {
    fn connecting(&mut self, connection: u64, _: SocketAddr, _: u64) -> Arrival {
        self.lines.insert(connection, Line { number: self.knocks, ..Line::default() });
        self.knocks += 1;
        Arrival::Accepted { after_ns: MILLISECOND_NS }
    }

    fn received(&mut self, connection: u64, mut bytes: &[u8], _: u64, acts: &mut Acts) {
        let Some(line) = self.lines.get_mut(&connection) else { return };
        if !line.asked {
            assert_eq!(bytes, SSL_REQUEST, "nothing else comes before the answer");
            line.asked = true;
            let answer = (self.script)(line.number);
            let is_granted = answer
                .iter()
                .any(|(_, act)| matches!(act, Act::Bytes(bytes) if bytes.first() == Some(&b'S')));
            line.session = is_granted.then(|| ServerConnection::new(self.tls.clone()).unwrap());
            acts.extend(answer);
            return;
        }
        let is_secure = line.session.is_some();
        match &mut line.session {
            None => {
                self.in_clear += bytes.len();
                line.pending.extend_from_slice(bytes);
            }
            Some(session) => {
                while !bytes.is_empty() {
                    session.read_tls(&mut bytes).unwrap();
                    let Ok(state) = session.process_new_packets() else { return };
                    let mut plain = vec![0; state.plaintext_bytes_to_read()];
                    session.reader().read_exact(&mut plain).unwrap();
                    line.pending.extend(plain);
                }
                flush(session, 0, acts);
            }
        }
        // The first message has no kind before its length.
        while let Some(length) = line.pending.get(usize::from(line.welcomed)..) {
            let Some(length) = length.first_chunk::<4>() else { return };
            let length = u32::from_be_bytes(*length) as usize + usize::from(line.welcomed);
            if line.pending.len() < length {
                return;
            }
            line.pending.drain(..length);
            let said = if line.welcomed { DONE } else { WELCOME };
            if line.welcomed {
                let count = if is_secure { &mut self.queries.1 } else { &mut self.queries.0 };
                *count += 1;
            }
            line.welcomed = true;
            match &mut line.session {
                None => acts.push((0, Act::Bytes(said.to_vec()))),
                Some(session) => {
                    session.writer().write_all(said).unwrap();
                    flush(session, 0, acts);
                }
            }
        }
    }

    fn woken(&mut self, _: u64, _: u64, _: u64, _: &mut Acts) {}

    fn closed(&mut self, connection: u64) {
        self.lines.remove(&connection);
    }
}

struct Asker;

impl Sessions<Postgres> for Asker {
    fn next(&mut self, _client: u32, _target: u32, request: &mut Request) -> Turn {
        request.query("SELECT 1").unwrap();
        Turn::Ask(Submission::default())
    }

    fn judge(&mut self, _: u32, _: &Submission, reply: &Reply<'_>, _: Times) -> Judgement {
        assert!(reply.error.is_none() && reply.tag == b"SELECT 1");
        Judgement { outcome: Outcome::Ok, status: 0, hits: None, body_bytes: 0 }
    }

    fn lost(&mut self, _: u32, _: &Submission, _: Failure, _: Times) {}

    fn describe(&self, _: &Submission, _: &Request) -> String {
        String::new()
    }

    fn explain(&self, _: &Submission, _: &Reply<'_>) -> (String, String) {
        (String::new(), String::new())
    }
}

/// Four clients over TLS, forty requests.
fn plan(preconnect: bool) -> ShardPlan {
    let options =
        TlsOptions { trust: Trust::Anything, speaks: Speaks::Postgresql, ..TlsOptions::default() };
    ShardPlan {
        targets: Arc::new(vec![target(vec![address(0, 1)])]),
        tls: Some(Tls::new(&options).unwrap()),
        preconnect,
        ..closed_plan(4, 40, PATIENT, false)
    }
}

struct End {
    shard: ShardEnd,
    /// Why requests failed, as they were told.
    reasons: Vec<String>,
}

fn run(plan: ShardPlan, must: bool, link: Link, server: &Rc<RefCell<Server>>) -> End {
    let clock = VirtualClock::new();
    clock.advance_to(SECOND_NS);
    let net = SimNet::new(clock.clone(), server.clone(), link, 1);
    let login = Login::new("me", None, "db", &[]).unwrap();
    let protocol = Postgres::new(login).requiring_tls(must);
    let told = Rc::new(RefCell::new((Interval::new(plan.classes), Vec::new())));
    let all = told.clone();
    let outbox = Box::new(move |message| {
        let mut all = all.borrow_mut();
        match message {
            Message::Second(second) => all.0.merge(&second),
            Message::Failure(sample) => all.1.push(sample.reason),
            Message::WantsSpare | Message::CountsFrom(_) => {}
        }
        None
    });
    let shard =
        Shard::new(plan, protocol, net, clock.clone(), Box::new(Asker), outbox, Arc::default())
            .unwrap();
    let mut shard = shard.run(|| clock.now_ns()).unwrap();
    let (seconds, reasons) =
        Rc::try_unwrap(told).ok().map_or_else(Default::default, RefCell::into_inner);
    shard.rest.merge(&seconds);
    shard.rest.ledger.balance().unwrap();
    End { shard, reasons }
}

#[test]
fn a_grant_is_followed_by_tls_and_nothing_in_clear() {
    for version in [&TLS12, &TLS13] {
        for (must, preconnect) in [(false, false), (true, false), (true, true)] {
            let mut server = Server::saying(b"S");
            server.tls = server_tls(version);
            let server = Rc::new(RefCell::new(server));
            let end = run(plan(preconnect), must, Link::default(), &server);
            let seen = server.borrow();
            assert_eq!((end.shard.rest.ledger.ok, seen.queries), (40, (0, 40)));
            assert_eq!((seen.knocks, seen.in_clear), (4, 0));
            if preconnect {
                // There and back: question, handshake and login were before the clock started.
                let slowest_ns = end.shard.rest.all_classes().service.max_ns();
                assert!(slowest_ns < 41_000, "{slowest_ns}");
            }
        }
    }
}

#[test]
fn a_server_without_tls_is_put_up_with_or_refused() {
    let server = Rc::new(RefCell::new(Server::saying(b"N")));
    let end = run(plan(true), false, Link::default(), &server);
    assert_eq!((end.shard.rest.ledger.ok, server.borrow().queries), (40, (40, 0)));
    assert_eq!(server.borrow().knocks, 4);
    let server = Rc::new(RefCell::new(Server::saying(b"N")));
    let end = run(plan(false), true, Link::default(), &server);
    assert_eq!((end.shard.rest.ledger.ok, end.shard.rest.ledger.failed.tls), (0, 40));
    assert_eq!(server.borrow().in_clear, 0, "user and database are said to nobody");
    assert!(end.reasons[0].contains("does not speak TLS"), "{:?}", end.reasons);
}

#[test]
fn what_is_no_answer_is_a_failure_with_its_reason() {
    for (answer, word) in [
        (&b"H"[..], "not a PostgreSQL server"),
        (b"HTTP/1.1 400 Bad Request\r\n", "not a PostgreSQL server"),
        (b"E\0\0\0\x0bSFATAL\0\0", "with an error"),
        // Bytes that somebody put behind the answer, in the hope that they are taken for what came over TLS.
        (b"SZ\0\0\0\x05I", "unexpected plain text"),
        (b"SR\0\0\0\x08\0\0\0\0Z\0\0\0\x05I", "unexpected plain text"),
        (b"NR\0\0\0\x08\0\0\0\0Z\0\0\0\x05I", "unexpected plain text"),
    ] {
        let server = Rc::new(RefCell::new(Server::saying(answer)));
        let end = run(plan(false), false, Link::default(), &server);
        let ledger = end.shard.rest.ledger;
        assert_eq!((ledger.ok, ledger.failed.tls, ledger.failed.total()), (0, 40, 40));
        assert!(end.reasons[0].contains(word), "{:?}", end.reasons);
        let seen = server.borrow();
        assert_eq!((seen.in_clear, seen.queries), (0, (0, 0)), "{word}");
        assert!(seen.lines.values().all(|line| line.pending.is_empty()));
    }
}

/// The same bytes on their own, while the client waits for the handshake: they are no TLS.
#[test]
fn clear_bytes_between_the_grant_and_the_handshake_are_not_believed() {
    let server = Server::new(|_| {
        vec![(0, Act::Bytes(b"S".to_vec())), (10_000, Act::Bytes(WELCOME.to_vec()))]
    });
    let server = Rc::new(RefCell::new(server));
    let end = run(plan(false), true, Link::default(), &server);
    let ledger = end.shard.rest.ledger;
    assert_eq!((ledger.failed.tls, ledger.failed.total()), (40, 40));
    assert!(end.reasons[0].contains("accepted TLS and then did not use it"), "{:?}", end.reasons);
    assert_eq!(server.borrow().queries, (0, 0));
}

#[test]
fn no_answer_is_waited_for_as_long_as_a_connection_may_take() {
    let server = Rc::new(RefCell::new(Server::new(|_| Acts::new())));
    let mut plan = plan(true);
    plan.limits.requests = Some(4);
    let end = run(plan, false, Link::default(), &server);
    let ledger = end.shard.rest.ledger;
    assert_eq!((ledger.failed.timeout, ledger.failed.total()), (4, 4));
    assert!(end.reasons[0].contains("no TLS in time"), "{:?}", end.reasons);
    let took_ns = end.shard.measured_ns.1 - end.shard.measured_ns.0;
    assert!(took_ns.abs_diff(PATIENT.connect_ns) < 60 * MILLISECOND_NS, "{took_ns}");
    for act in [Act::Close, Act::Reset] {
        let act = act.clone();
        let server = Server::new(move |_| vec![(0, act.clone())]);
        let server = Rc::new(RefCell::new(server));
        let ledger = run(self::plan(false), false, Link::default(), &server).shard.rest.ledger;
        assert_eq!((ledger.failed.tls, ledger.failed.total()), (40, 40));
    }
}

#[test]
fn books_balance_whatever_is_answered() {
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let server = Server::new(move |_| {
            let after_ns = rng.below(300) * MILLISECOND_NS;
            let bytes = |bytes: &[u8]| Act::Bytes(bytes.to_vec());
            match rng.below(16) {
                0 => vec![(after_ns, Act::Reset)],
                1 => vec![(after_ns, Act::Close)],
                2 => Acts::new(),
                3 => vec![(after_ns, bytes(b"?"))],
                4 => vec![(after_ns, bytes(b"S")), (after_ns, Act::Reset)],
                5 => vec![(0, bytes(b"S")), (after_ns, bytes(WELCOME))],
                6..9 => vec![(after_ns, bytes(b"N"))],
                _ => vec![(after_ns, bytes(b"S"))],
            }
        });
        let server = Rc::new(RefCell::new(server));
        let link = Link { split_per_mille: 300, partial_per_mille: 300, ..Link::default() };
        let end = run(plan(seed % 2 == 0), seed % 3 == 0, link, &server);
        let ledger = end.shard.rest.ledger;
        assert_eq!(ledger.sent + ledger.unsent.stopped, ledger.scheduled, "seed {seed}");
        let (clear, secure) = server.borrow().queries;
        assert!(clear + secure >= ledger.ok, "seed {seed}: {ledger:?}");
        assert!(seed % 3 > 0 || clear == 0, "seed {seed}: in clear where that is refused");
    }
}
