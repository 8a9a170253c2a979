//! A codec that insists on being asked until it has said that nothing is left, as its contract says. HTTP/1.1
//! lets go of the copy of a long reply only then.

use plimsoll_core::clock::{Clock, MILLISECOND_NS, SECOND_NS, VirtualClock};
use plimsoll_core::outcome::{Failure, Outcome};
use plimsoll_core::recorder::Times;
use plimsoll_core::schedule::Limits;
use plimsoll_engine::shard::{Shard, ShardPlan};
use plimsoll_engine::sim::{Act, Acts, Arrival, Link, Peer, SimNet, closed_plan};
use plimsoll_wire::{Event, Fault, Judgement, Protocol, Sessions, Submission, Turn};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

/// One byte is a request, one byte is its reply.
struct Strict;

#[derive(Default)]
struct Conn {
    tag: u32,
    replied: bool,
}

impl Protocol for Strict {
    type Conn = Conn;
    type Request = ();
    type Reply<'a> = ();

    fn open(&self, _out: &mut Vec<u8>) -> Conn {
        Conn::default()
    }

    fn capacity(&self, _conn: &Conn) -> u32 {
        1
    }

    fn submit(&self, conn: &mut Conn, _request: &(), tag: u32, out: &mut Vec<u8>) {
        assert!(!conn.replied, "nobody asked whether more came behind the reply");
        conn.tag = tag;
        out.push(b'?');
    }

    fn receive<'a>(
        &self,
        conn: &'a mut Conn,
        input: &'a [u8],
        _out: &mut Vec<u8>,
    ) -> Result<Event<'a, ()>, Fault> {
        conn.replied = !input.is_empty();
        Ok(if conn.replied {
            Event::Reply { tag: conn.tag, reply: (), consumed: 1, reusable: true }
        } else {
            Event::More
        })
    }

    fn end<'a>(&self, _conn: &'a mut Conn) -> Result<Event<'a, ()>, Fault> {
        Err(Fault::Closed { began: false })
    }
}

struct Asker;

impl Sessions<Strict> for Asker {
    fn next(&mut self, _client: u32, _target: u32, _request: &mut ()) -> Turn {
        Turn::Ask(Submission::default())
    }

    fn judge(&mut self, _: u32, _: &Submission, _: &(), _: Times) -> Judgement {
        Judgement { outcome: Outcome::Ok, status: 0, hits: None, body_bytes: 0 }
    }

    fn lost(&mut self, _: u32, _: &Submission, _: Failure, _: Times) {}

    fn describe(&self, _: &Submission, _: &()) -> String {
        String::new()
    }

    fn explain(&self, _: &Submission, _: &()) -> (String, String) {
        (String::new(), String::new())
    }
}

struct Echo;

impl Peer for Echo {
    fn connecting(&mut self, _: u64, _: SocketAddr, _: u64) -> Arrival {
        Arrival::Accepted { after_ns: 0 }
    }

    fn received(&mut self, _: u64, bytes: &[u8], _: u64, acts: &mut Acts) {
        acts.push((MILLISECOND_NS, Act::Bytes(bytes.to_vec())));
    }

    fn woken(&mut self, _: u64, _: u64, _: u64, _: &mut Acts) {}

    fn closed(&mut self, _: u64) {}
}

#[test]
fn a_codec_is_asked_until_nothing_is_left() {
    let clock = VirtualClock::new();
    clock.advance_to(SECOND_NS);
    let net = SimNet::new(clock.clone(), Rc::new(RefCell::new(Echo)), Link::default(), 1);
    let plan = ShardPlan {
        limits: Limits { duration_ns: SECOND_NS, requests: Some(10) },
        preconnect: true,
        ..closed_plan(2, SECOND_NS)
    };
    let shard = Shard::new(
        plan,
        Strict,
        net,
        clock.clone(),
        Box::new(Asker),
        Box::new(|_| None),
        Arc::default(),
    );
    let end = shard.unwrap().run(|| clock.now_ns()).unwrap();
    assert_eq!(end.rest.ledger.ok, 10);
}
