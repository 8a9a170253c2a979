//! Connections that break, are used up, or come into use: no answer is lost with them, and no request is forgotten.

use crate::multiplex::{Asker, Many, RESET, Server, answer, frame, plan, run, run_on};
use plimsoll_core::clock::{MILLISECOND_NS, SECOND_NS};
use plimsoll_core::outcome::{Failure, Outcome};
use plimsoll_core::recorder::Times;
use plimsoll_core::schedule::{Arrivals, Limits, LoadModel};
use plimsoll_engine::shard::ShardPlan;
use plimsoll_engine::sim::thread::{Absence, Thread, Why};
use plimsoll_engine::sim::{Act, Acts, Link};
use plimsoll_wire::{Judgement, Sessions, Submission, Turn};
use std::cell::RefCell;
use std::rc::Rc;

/// A request each millisecond for 50 ms, over one connection.
fn open() -> ShardPlan {
    ShardPlan {
        model: LoadModel::Open { rate_per_s: 1000.0, arrivals: Arrivals::Uniform },
        limits: Limits::after(50 * MILLISECOND_NS),
        ..plan(1, 1, None)
    }
}

/// The generator loses its core in the moment in which it sends. Until it has the core again, an answer comes, and a reset behind it:
/// the send fails before anything is read.
#[test]
fn answers_that_came_before_a_reset_count_although_sending_fails_first() {
    // The run starts when the connection is up.
    let start_ns = SECOND_NS + MILLISECOND_NS + Link::default().latency_max_ns;
    let absence = Absence {
        from_ns: start_ns + 11 * MILLISECOND_NS + 500,
        for_ns: 10 * MILLISECOND_NS,
        why: Why::Stolen,
    };
    let thread = Thread { send_ns: 1_000, absences: vec![absence], ..Thread::default() };
    let server = Server::new(|seen, tag| {
        let mut acts = answer(tag);
        if seen == 10 {
            acts.push((5 * MILLISECOND_NS, Act::Reset));
        }
        acts
    });
    let end = run_on(thread, open(), 100, &server, Asker::default());
    let (ledger, seen) = (end.rest.ledger, server.borrow().seen as u64);
    // Only the one whose send failed never reached the server.
    assert_eq!((ledger.scheduled, ledger.failed.total(), seen), (50, 1, 49), "{ledger:?}");
    assert_eq!((ledger.ok, ledger.failed.reset), (seen, 1), "{ledger:?}");
}

/// Each request has a connection of its own. One that its peer or its timeout gives up leaves a connection that takes no other
/// request: it is closed, and the next request opens it again.
#[test]
fn without_keep_alive_a_connection_whose_request_was_given_up_is_closed() {
    for connections in [1, 3, 4] {
        let server = Server::new(|seen, tag| match seen % 4 {
            0 => Acts::new(),
            1 => vec![(MILLISECOND_NS, Act::Bytes(frame(RESET, tag)))],
            _ => answer(tag),
        });
        let plan = ShardPlan {
            keep_alive: false,
            limits: Limits { duration_ns: 100 * SECOND_NS, requests: Some(40) },
            ..plan(4, connections, None)
        };
        let end = run(plan, 8, &server, Asker::default());
        let ledger = end.rest.ledger;
        assert_eq!((ledger.sent, ledger.ok), (40, 20), "{connections} connections: {ledger:?}");
        assert_eq!((ledger.failed.timeout, ledger.failed.reset), (10, 10));
        assert_eq!(end.rest.counters.connects, 40, "{connections} connections");
    }
}

/// A connection that comes into use was not there before: what waited for it did not wait for the generator. And it does not wait
/// longer than until then.
#[test]
fn without_keep_alive_a_request_goes_when_a_connection_comes_into_use() {
    for (size, rate_per_s) in [(0, 400.0), (30, 0.0)] {
        let model = match size {
            0 => LoadModel::Open { rate_per_s, arrivals: Arrivals::Uniform },
            size => LoadModel::Burst { size, every_ns: 100 * MILLISECOND_NS },
        };
        let server =
            Server::new(|_, tag| vec![(60 * MILLISECOND_NS, Act::Bytes(frame(b'r', tag)))]);
        let plan = ShardPlan {
            model,
            keep_alive: false,
            preconnect: false,
            warm_connections: Some(1),
            limits: Limits::after(SECOND_NS),
            ..plan(1, 200, None)
        };
        let end = run(plan, 1, &server, Asker::default());
        assert_eq!(end.rest.ledger.ok, end.rest.ledger.scheduled);
        // The histogram tells microseconds apart.
        assert!(end.rest.lag.max_ns() < 1_000, "{} ns of lag", end.rest.lag.max_ns());
        if size == 0 {
            assert_eq!(end.rest.counters.waited, 0, "requests that come one by one need not wait");
        }
    }
}

/// Sessions whose requests may be sent twice; they note each failure, and whether the request may have been done.
#[derive(Clone, Default)]
struct Repeatable(Rc<RefCell<Vec<(Failure, bool)>>>);

impl Sessions<Many> for Repeatable {
    fn next(&mut self, _: u32, _: u32, _: &mut ()) -> Turn {
        Turn::Ask(Submission { idempotent: true, ..Submission::default() })
    }

    fn judge(&mut self, _: u32, _: &Submission, _: &bool, _: Times) -> Judgement {
        Judgement { outcome: Outcome::Ok, status: 0, hits: None, body_bytes: 0 }
    }

    fn lost(&mut self, _: u32, _: &Submission, failure: Failure, _: Times) {
        self.0.borrow_mut().push((failure, true));
    }

    fn undone(&mut self, _: u32, _: &Submission, failure: Failure, _: Times) {
        self.0.borrow_mut().push((failure, false));
    }

    fn describe(&self, _: &Submission, _: &()) -> String {
        String::new()
    }

    fn explain(&self, _: &Submission, _: &bool) -> (String, String) {
        (String::new(), String::new())
    }
}

/// A request is lost with its kept connection, and is to be sent again; but there is no connection any more. It may have been done
/// the first time.
#[test]
fn a_request_that_was_sent_once_may_have_been_done_although_nobody_takes_it_again() {
    let server = Server::new(|seen, tag| match seen {
        0 => answer(tag),
        _ => vec![(MILLISECOND_NS, Act::Reset)],
    });
    server.borrow_mut().accepts = 1;
    let sessions = Repeatable::default();
    let end = run(plan(1, 1, Some(3)), 1, &server, sessions.clone());
    assert_eq!((end.rest.ledger.ok, end.rest.ledger.failed.connect), (1, 2));
    assert_eq!(server.borrow().seen, 2);
    // The third request was never sent.
    assert_eq!(*sessions.0.borrow(), [(Failure::Connect, true), (Failure::Connect, false)]);
}
