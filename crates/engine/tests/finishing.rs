//! Sessions are ended by the engine, exactly once, however their shard ends.
#![allow(clippy::unwrap_used, missing_docs)]

use plimsoll_core::clock::{Clock, MILLISECOND_NS, SECOND_NS, VirtualClock};
use plimsoll_core::interval::Interval;
use plimsoll_core::outcome::{Failure, Outcome};
use plimsoll_core::record::{FailureSample, Sink};
use plimsoll_core::recorder::Times;
use plimsoll_core::schedule::LoadModel;
use plimsoll_engine::run::{RunError, run};
use plimsoll_engine::shard::{Shard, ShardPlan};
use plimsoll_engine::sim::{Act, Acts, Arrival, Link, Peer, SimNet, closed_plan};
use plimsoll_wire::http::Http;
use plimsoll_wire::http1::{Reply, Request};
use plimsoll_wire::{Judgement, Sessions, Submission, Turn};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Sender, channel};

/// Answers after 5 ms, or never.
struct Server {
    answers: bool,
}

impl Peer for Server {
    fn connecting(&mut self, _: u64, _: SocketAddr, _: u64) -> Arrival {
        Arrival::Accepted { after_ns: MILLISECOND_NS }
    }

    fn received(&mut self, _: u64, _: &[u8], _: u64, acts: &mut Acts) {
        if self.answers {
            let reply = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec();
            acts.push((5 * MILLISECOND_NS, Act::Bytes(reply)));
        }
    }

    fn woken(&mut self, _: u64, _: u64, _: u64, _: &mut Acts) {}

    fn closed(&mut self, _: u64) {}
}

/// What sessions counted, and when they were ended, ns.
#[derive(Debug, PartialEq, Eq)]
struct Counted {
    asked: u32,
    answered: u32,
    lost: u32,
    ended_ns: u64,
}

/// Clients that ask so often, all together.
struct Counting {
    most: u32,
    counted: Counted,
    sender: Sender<Counted>,
}

impl Counting {
    fn new(most: u32, sender: Sender<Counted>) -> Self {
        Self { most, counted: Counted { asked: 0, answered: 0, lost: 0, ended_ns: 0 }, sender }
    }
}

impl Sessions<Http> for Counting {
    fn next(&mut self, _: u32, _: u32, request: &mut Request) -> Turn {
        if self.counted.asked == self.most {
            return Turn::Exhausted;
        }
        self.counted.asked += 1;
        request.bytes = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n".to_vec();
        Turn::Ask(Submission::default())
    }

    fn judge(&mut self, _: u32, _: &Submission, reply: &Reply<'_>, _: Times) -> Judgement {
        self.counted.answered += 1;
        let outcome = Outcome::Ok;
        Judgement { outcome, status: reply.status, hits: None, body_bytes: reply.body_bytes }
    }

    fn lost(&mut self, _: u32, _: &Submission, _: Failure, _: Times) {
        self.counted.lost += 1;
    }

    fn finish(self: Box<Self>, now_ns: u64) {
        let Self { counted, sender, .. } = *self;
        sender.send(Counted { ended_ns: now_ns, ..counted }).unwrap();
    }

    fn describe(&self, _: &Submission, _: &Request) -> String {
        String::new()
    }

    fn explain(&self, _: &Submission, _: &Reply<'_>) -> (String, String) {
        (String::new(), String::new())
    }
}

/// A shard of two clients on virtual time: when it ended, ns, and all that its sessions left.
fn shard(most: u32, answers: bool, stop_ns: Option<u64>) -> (u64, Vec<Counted>) {
    let clock = VirtualClock::new();
    clock.advance_to(SECOND_NS);
    let server = Rc::new(RefCell::new(Server { answers }));
    let mut net = SimNet::new(clock.clone(), server, Link::default(), 1);
    let stop = Arc::new(AtomicBool::new(stop_ns == Some(0)));
    if let Some(stop_ns) = stop_ns {
        let stop = stop.clone();
        net.at(stop_ns, move || stop.store(true, std::sync::atomic::Ordering::Relaxed));
    }
    let (sender, counted) = channel();
    let sessions = Box::new(Counting::new(most, sender));
    let plan = closed_plan(2, 10 * SECOND_NS);
    let outbox = Box::new(|_| None);
    let shard = Shard::new(plan, Http::default(), net, clock.clone(), sessions, outbox, stop);
    shard.unwrap().run(|| clock.now_ns()).unwrap();
    (clock.now_ns(), counted.into_iter().collect())
}

#[test]
fn sessions_end_once_with_the_shard() {
    // Nothing left to ask; the end of the time; a stop in the middle; a target that never answers.
    for (most, answers, stop_ns) in [
        (7, true, None),
        (u32::MAX, true, None),
        (u32::MAX, true, Some(3 * SECOND_NS)),
        (u32::MAX, false, Some(3 * SECOND_NS)),
    ] {
        let (now_ns, all) = shard(most, answers, stop_ns);
        let [one] = &all[..] else { panic!("ended {} times", all.len()) };
        assert_eq!(one.ended_ns, now_ns, "{one:?}");
        assert_eq!((one.answered > 0, one.lost > 0), (answers, !answers), "{one:?}");
        assert!(one.asked >= one.answered + one.lost, "{one:?}");
    }
}

/// Closed clients all ask in the first round; an agent may be stopped before that, because another one cannot begin.
#[test]
fn a_run_that_is_stopped_before_its_start_asks_nothing() {
    let (now_ns, all) = shard(u32::MAX, true, Some(0));
    assert_eq!(all, [Counted { asked: 0, answered: 0, lost: 0, ended_ns: now_ns }]);
}

/// A model that has no step: no shard can run it.
fn impossible() -> ShardPlan {
    let arrivals = plimsoll_core::schedule::Arrivals::Poisson;
    let model = LoadModel::Profile { steps: Vec::new(), arrivals };
    ShardPlan { model, ..closed_plan(1, SECOND_NS) }
}

struct Nowhere;

impl Sink for Nowhere {
    fn counts_from(&mut self, _start_ns: u64) {}

    fn interval(&mut self, _: &Interval) -> std::io::Result<()> {
        Ok(())
    }

    fn failure(&mut self, _: &FailureSample) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn sessions_end_once_where_the_run_cannot_take_place() {
    let (sender, counted) = channel();
    let sessions = (0..3)
        .map(|_| Box::new(Counting::new(1, sender.clone())) as Box<dyn Sessions<Http> + Send>);
    let sessions = sessions.collect();
    let ended =
        run(&impossible(), Http::default, sessions, &mut Nowhere, &mut |_| {}, &Arc::default());
    assert!(matches!(ended, Err(RunError::Model(_))));
    drop(sender);
    let asked: Vec<u32> = counted.into_iter().map(|own| own.asked).collect();
    assert_eq!(asked, [0; 3]);
}
