//! A server that stands still, measured by the schedule: what `tests/load/truth.rs` claims of real sockets, on virtual time.

use crate::multiplex::{Many, REPLY, Server, frame, plan, run};
use plimsoll_core::clock::{MILLISECOND_NS, SECOND_NS};
use plimsoll_core::outcome::{Failure, Outcome};
use plimsoll_core::recorder::Times;
use plimsoll_core::schedule::{Arrivals, LoadModel};
use plimsoll_engine::shard::ShardPlan;
use plimsoll_engine::sim::Act;
use plimsoll_wire::{Judgement, Sessions, Submission, Turn};
use std::cell::RefCell;
use std::rc::Rc;

/// Keeps the response time of each request, us.
#[derive(Default)]
struct Responses(Rc<RefCell<Vec<u64>>>);

impl Sessions<Many> for Responses {
    fn next(&mut self, _client: u32, _target: u32, _request: &mut ()) -> Turn {
        Turn::Ask(Submission::default())
    }

    fn judge(&mut self, _: u32, _: &Submission, _: &bool, times: Times) -> Judgement {
        self.0.borrow_mut().push((times.done_ns - times.intended_ns) / 1_000);
        Judgement { outcome: Outcome::Ok, status: 0, hits: None, body_bytes: 0 }
    }

    fn lost(&mut self, _: u32, _: &Submission, failure: Failure, _: Times) {
        panic!("{failure:?}");
    }

    fn describe(&self, _: &Submission, _: &()) -> String {
        String::new()
    }

    fn explain(&self, _: &Submission, _: &bool) -> (String, String) {
        (String::new(), String::new())
    }
}

#[test]
fn a_stall_is_in_the_response_time_of_each_request_that_was_due_in_it() {
    // 1000 requests a second; in each 5 s the server stands still for the last one.
    let stall = |request: usize| match request as u64 % 5_000 {
        at_ms @ 4_000.. => (5_000 - at_ms) * MILLISECOND_NS,
        _ => 0,
    };
    let server =
        Server::new(move |request, tag| vec![(stall(request), Act::Bytes(frame(REPLY, tag)))]);
    let model = LoadModel::Open { rate_per_s: 1_000.0, arrivals: Arrivals::Uniform };
    let responses = Responses::default();
    let times = Rc::clone(&responses.0);
    let end = run(ShardPlan { model, ..plan(1, 1, Some(10_000)) }, 2_000, &server, responses);
    assert_eq!((end.rest.ledger.scheduled, end.rest.ledger.ok), (10_000, 10_000));
    assert!(end.measured_ns.1 - end.measured_ns.0 >= 9 * SECOND_NS);
    let mut times = times.take();
    times.sort_unstable();
    for (quantile, truth_ms) in [(0.90, 500), (0.95, 750), (0.99, 950), (1.0, 1_000)] {
        let place = (quantile * times.len() as f64) as usize;
        let found_us = times[place.max(1) - 1];
        // Both ways take 20 us each, and a request comes every millisecond.
        assert!(found_us.abs_diff(truth_ms * 1_000) <= 1_100, "{quantile}: {found_us} us");
    }
}
