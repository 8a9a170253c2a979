//! Thousands of calls on a connection: what they cost, which of them may have been done, and which are asked again.

use crate::multiplex::{AGAIN, Many, REPLY, Server, UNWANTED, answer, frame, plan, run};
use plimsoll_core::admission::AdmissionModel;
use plimsoll_core::clock::{MILLISECOND_NS, SECOND_NS};
use plimsoll_core::outcome::{Failure, Outcome};
use plimsoll_core::recorder::Times;
use plimsoll_core::rng::Rng;
use plimsoll_engine::gauge::Gauge;
use plimsoll_engine::shard::ShardPlan;
use plimsoll_engine::sim::{Act, Acts};
use plimsoll_wire::{Judgement, Sessions, Submission, Turn};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// What became of the calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    answered: u64,
    lost: u64,
    undone: u64,
    under_way: u64,
    most_under_way: u64,
}

/// Sessions that ask at once, and ask again what may be asked again.
#[derive(Default)]
pub struct Caller {
    ends: Rc<RefCell<Ends>>,
    /// How often.
    tries_max: u8,
}

impl Caller {
    fn ended(&self, count: impl FnOnce(&mut Ends) -> &mut u64) {
        let mut ends = self.ends.borrow_mut();
        *count(&mut ends) += 1;
        ends.under_way -= 1;
    }
}

impl Sessions<Many> for Caller {
    fn next(&mut self, _client: u32, _target: u32, _request: &mut ()) -> Turn {
        let mut ends = self.ends.borrow_mut();
        ends.under_way += 1;
        ends.most_under_way = ends.most_under_way.max(ends.under_way);
        Turn::Ask(Submission::default())
    }

    fn again(&mut self, _: u32, _: &Submission, again: &bool, tries: u8) -> bool {
        *again && tries < self.tries_max
    }

    fn judge(&mut self, _: u32, _: &Submission, again: &bool, _: Times) -> Judgement {
        self.ended(|ends| &mut ends.answered);
        let outcome = if *again { Outcome::Failed(Failure::App) } else { Outcome::Ok };
        Judgement { outcome, status: 0, hits: None, body_bytes: 0 }
    }

    fn lost(&mut self, _: u32, _: &Submission, failure: Failure, _: Times) {
        assert_ne!(failure, Failure::Connect);
        self.ended(|ends| &mut ends.lost);
    }

    fn undone(&mut self, _: u32, _: &Submission, _: Failure, _: Times) {
        self.ended(|ends| &mut ends.undone);
    }

    fn describe(&self, _: &Submission, _: &()) -> String {
        String::new()
    }

    fn explain(&self, _: &Submission, _: &bool) -> (String, String) {
        (String::new(), String::new())
    }
}

pub fn caller(tries_max: u8) -> (Caller, Rc<RefCell<Ends>>) {
    let ends = Rc::new(RefCell::new(Ends::default()));
    (Caller { ends: ends.clone(), tries_max }, ends)
}

#[test]
fn what_is_due_together_goes_out_together() {
    let server = Server::new(|_, tag| answer(tag));
    let (caller, ends) = caller(0);
    let end = run(plan(3000, 1, Some(60_000)), 3000, &server, caller);
    assert_eq!((end.rest.ledger.ok, end.rest.counters.connects), (60_000, 1));
    assert_eq!(ends.borrow().most_under_way, 3000);
    // Five bytes each: a round of 3000 fits into one piece.
    let pieces = server.borrow().pieces;
    assert!(pieces <= 60, "{pieces} pieces");
}

#[test]
fn slots_are_places_on_connections_and_not_connections() {
    for (slots, most) in [(50, 50), (1000, 80)] {
        let server = Server::new(|_, tag| answer(tag));
        let (caller, ends) = caller(0);
        let admission =
            AdmissionModel::Managed { slots, queue_max: 10_000, queue_timeout_ns: SECOND_NS };
        let plan = ShardPlan { admission, ..plan(500, 2, Some(5000)) };
        let end = run(plan, 40, &server, caller);
        assert_eq!((end.rest.ledger.ok, ends.borrow().most_under_way), (5000, most));
    }
}

#[test]
fn a_call_that_was_rolled_back_is_one_call_with_one_time() {
    let server =
        Server::new(|seen, tag| vec![(MILLISECOND_NS, Act::Bytes(frame(kind(seen < 60), tag)))]);
    let (caller, ends) = caller(5);
    // Thirty at a time, and all of them roll back twice.
    let end = run(plan(30, 1, Some(30)), 30, &server, caller);
    let ledger = end.rest.ledger;
    assert_eq!((ledger.scheduled, ledger.sent, ledger.ok), (30, 30, 30));
    assert_eq!((end.rest.counters.retries, ends.borrow().answered), (60, 30));
    let response = end.rest.all_classes().response;
    assert!(response.min_ns() >= 3 * MILLISECOND_NS, "{}", response.min_ns());
    // Where it never ends, it ends after six times.
    let server = Server::new(|_, tag| vec![(MILLISECOND_NS, Act::Bytes(frame(AGAIN, tag)))]);
    let (caller, _) = self::caller(5);
    let end = run(plan(10, 1, Some(10)), 10, &server, caller);
    assert_eq!((end.rest.ledger.failed.app, server.borrow().seen), (10, 60));
}

const fn kind(again: bool) -> u8 {
    if again { AGAIN } else { REPLY }
}

/// A call that is waiting to be asked again when its time is over was rolled back, and so surely not done.
#[test]
fn what_was_rolled_back_and_not_asked_again_is_undone() {
    let server = Server::new(|seen, tag| match seen {
        // The only connection is gone before the call can be asked again, and no other comes up.
        0 => vec![(MILLISECOND_NS, Act::Bytes(frame(AGAIN, tag))), (MILLISECOND_NS, Act::Close)],
        _ => answer(tag),
    });
    server.borrow_mut().accepts = 1;
    let (caller, ends) = caller(5);
    let end = run(plan(1, 1, Some(1)), 1, &server, caller);
    let told = *ends.borrow();
    assert_eq!(end.rest.ledger.finished(), 1);
    assert!(told.undone == 1 || server.borrow().seen == 2, "{told:?}");
}

#[test]
fn whatever_the_server_has_seen_is_answered_or_may_have_been_done() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let server = Server::new(move |_, tag| {
            let after_ns = rng.below(300) * MILLISECOND_NS;
            match rng.below(30) {
                0 => vec![(after_ns, Act::Reset)],
                1 => vec![(after_ns, Act::Close)],
                2 => Acts::new(),
                3 => vec![(after_ns, Act::Bytes(frame(b'!', tag)))],
                _ => vec![(after_ns, Act::Bytes(frame(REPLY, tag)))],
            }
        });
        server.borrow_mut().accepts = 1 + (seed % 7) as usize;
        let (caller, ends) = caller(0);
        let gauge = Arc::new(Gauge::default());
        let mut plan = plan(1 + (seed % 50) as u32, 1 + (seed % 3) as u32, Some(600));
        plan.part.gauges.push(gauge.clone());
        plan.limits.duration_ns = 3 * SECOND_NS;
        let end = run(plan, 1 + (seed % 60) as u32, &server, caller);
        let (ledger, ends) = (end.rest.ledger, *ends.borrow());
        assert_eq!(ledger.balance(), Ok(()), "seed {seed}: {ledger:?}");
        assert_eq!(ends.answered + ends.lost + ends.undone, ledger.sent, "seed {seed}: {ends:?}");
        let seen = server.borrow().seen as u64;
        assert!(seen <= ends.answered + ends.lost, "seed {seed}: {seen} seen, {ends:?}");
        assert!(ends.undone >= ledger.failed.connect, "seed {seed}: {ends:?} {ledger:?}");
        let shown = gauge.look();
        assert_eq!(
            (shown.sent, shown.completed()),
            (ledger.sent, ledger.finished()),
            "seed {seed}"
        );
        assert_eq!(shown.ok, ledger.ok, "seed {seed}");
    }
}

#[test]
fn who_is_not_wanted_goes_at_once() {
    let server = Server::new(|seen, tag| match seen {
        100 => vec![(MILLISECOND_NS, Act::Bytes(frame(UNWANTED, 0)))],
        _ => answer(tag),
    });
    let (caller, ends) = caller(0);
    let end = run(plan(10, 1, None), 10, &server, caller);
    assert_eq!(end.refused, Some("not you"));
    let took_ns = end.measured_ns.1 - end.measured_ns.0;
    assert!(took_ns < 100 * MILLISECOND_NS, "{took_ns}");
    assert_eq!(end.rest.ledger.balance(), Ok(()));
    let ends = *ends.borrow();
    assert_eq!((ends.lost, ends.undone > 0), (0, true), "a login that is refused does nothing");
}
