//! Sessions that cannot take what arrives: while they hold, nothing in flight ages, and nothing is lost.
#![allow(clippy::unwrap_used, missing_docs)]

use plimsoll_core::clock::{Clock, MILLISECOND_NS, SECOND_NS, VirtualClock};
use plimsoll_core::interval::Interval;
use plimsoll_core::outcome::{Failure, Outcome};
use plimsoll_core::recorder::Times;
use plimsoll_engine::shard::{Message, Shard};
use plimsoll_engine::sim::{Act, Acts, Arrival, Link, Peer, SimNet, closed_plan};
use plimsoll_wire::http1::{Http1, Keep, Reply, Request};
use plimsoll_wire::{Judgement, Sessions, Submission, Turn};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Sends a reply of ten pieces, one every 10 ms.
struct Server;

impl Peer for Server {
    fn connecting(&mut self, _: u64, _: SocketAddr, _: u64) -> Arrival {
        Arrival::Accepted { after_ns: MILLISECOND_NS }
    }

    fn received(&mut self, _: u64, bytes: &[u8], _: u64, acts: &mut Acts) {
        assert!(bytes.ends_with(b"\r\n\r\n"), "one request comes whole");
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n".to_vec();
        acts.push((10 * MILLISECOND_NS, Act::Bytes(head)));
        for piece in 1..=10 {
            acts.push((piece * 10 * MILLISECOND_NS, Act::Bytes(vec![b'x'; 100])));
        }
    }

    fn woken(&mut self, _: u64, _: u64, _: u64, _: &mut Acts) {}

    fn closed(&mut self, _: u64) {}
}

/// One client that asks five times; its sessions are full for some time in the middle of the second reply.
struct Holding {
    clock: VirtualClock,
    /// From when on they are full, ns; 0 before that is known, and the same for how long.
    full_ns: Rc<RefCell<(u64, u64)>>,
    asked: u32,
    pieces: Rc<RefCell<Vec<Times>>>,
}

impl Sessions<Http1> for Holding {
    fn next(&mut self, _: u32, _: u32, request: &mut Request) -> Turn {
        if self.asked == 5 {
            return Turn::Exhausted;
        }
        self.asked += 1;
        request.bytes = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n".to_vec();
        request.keep = Keep { head: false, body: true, stream: true };
        Turn::Ask(Submission::default())
    }

    fn part(&mut self, _: u32, _: &Submission, _: &[u8], times: Times) -> bool {
        self.pieces.borrow_mut().push(times);
        if self.pieces.borrow().len() == 14 {
            self.full_ns.borrow_mut().0 = self.clock.now_ns();
        }
        true
    }

    fn judge(&mut self, _: u32, _: &Submission, reply: &Reply<'_>, _: Times) -> Judgement {
        let outcome = Outcome::Ok;
        Judgement { outcome, status: reply.status, hits: None, body_bytes: reply.body_bytes }
    }

    fn lost(&mut self, _: u32, _: &Submission, _: Failure, _: Times) {}

    fn is_full(&self) -> bool {
        let (from_ns, for_ns) = *self.full_ns.borrow();
        from_ns > 0 && self.clock.now_ns() < from_ns + for_ns
    }

    fn describe(&self, _: &Submission, _: &Request) -> String {
        String::new()
    }

    fn explain(&self, _: &Submission, _: &Reply<'_>) -> (String, String) {
        (String::new(), String::new())
    }
}

/// Returns what was recorded, and how long it took, ns, where the sessions are full for so long.
fn run(for_ns: u64) -> (Interval, u64, usize) {
    let clock = VirtualClock::new();
    clock.advance_to(SECOND_NS);
    let pieces = Rc::new(RefCell::new(Vec::new()));
    let full_ns = Rc::new(RefCell::new((0, for_ns)));
    let own = Holding { clock: clock.clone(), full_ns, asked: 0, pieces: pieces.clone() };
    let server = Rc::new(RefCell::new(Server));
    let net = SimNet::new(clock.clone(), server, Link::default(), 1);
    let seconds = Rc::new(RefCell::new(Interval::new(1)));
    let all = seconds.clone();
    let outbox = Box::new(move |message| {
        if let Message::Second(second) = message {
            all.borrow_mut().merge(&second);
        }
        None
    });
    let stop = Arc::new(AtomicBool::new(false));
    let shard = Shard::new(
        closed_plan(1, 1000 * SECOND_NS),
        Http1::default(),
        net,
        clock.clone(),
        Box::new(own),
        outbox,
        stop,
    );
    let mut end = shard.unwrap().run(|| clock.now_ns()).unwrap();
    end.rest.merge(&seconds.borrow());
    let pieces = pieces.borrow().len();
    (end.rest, clock.now_ns() - SECOND_NS, pieces)
}

#[test]
fn what_is_held_up_by_its_own_side_does_not_age() {
    let (without, quick_ns, pieces) = run(0);
    // Longer than the timeout of a request, and than a second of the journal.
    let (with, slow_ns, all) = run(30 * SECOND_NS);
    assert!(slow_ns >= quick_ns + 29 * SECOND_NS, "{slow_ns}");
    assert!(all <= pieces, "{all} of {pieces}: what waited comes together");
    for end in [&without, &with] {
        assert_eq!((end.ledger.ok, end.ledger.failed.total()), (5, 0));
        for times in [&end.classes[0].response, &end.classes[0].service] {
            let longest_ns = times.max_ns();
            assert!(longest_ns < 250 * MILLISECOND_NS, "{} ms", longest_ns / MILLISECOND_NS);
        }
    }
}
