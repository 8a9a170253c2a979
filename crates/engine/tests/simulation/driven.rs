//! A generator whose work costs CPU time, on a thread that does not always run.

use crate::scene::{address, target};
use plimsoll_core::clock::{Clock, MILLISECOND_NS, VirtualClock};
use plimsoll_engine::net::{Completion, Net, WaitMode};
use plimsoll_engine::sim::thread::{Absence, Absent, Thread, Why};
use plimsoll_engine::sim::{Act, Acts, Arrival, Link, Peer, SimNet};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

/// Answers after 1 ms with what it was sent.
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

/// Returns the times at which three requests, sent at once, were sent and answered, us, and the kernel's view of the thread.
fn three(thread: Thread) -> (Vec<u64>, Vec<u64>, Absent) {
    let clock = VirtualClock::new();
    let link = Link { latency_min_ns: 0, latency_max_ns: 0, ..Link::default() };
    let peer = Rc::new(RefCell::new(Echo));
    let mut net = SimNet::new(clock.clone(), peer, link, 1).driven_by(thread);
    let mut buffer = [0; 64];
    let (mut up, mut sent, mut taken) = (0, Vec::new(), Vec::new());
    for key in 0..3 {
        net.connect(key, target(vec![address(0, 0)]).addresses[0]).unwrap();
    }
    while taken.len() < 3 {
        net.wait(clock.now_ns() + 50 * MILLISECOND_NS, WaitMode::Sleep);
        while let Some((_, completion)) = net.next(&mut buffer) {
            match completion {
                Completion::Connected => up += 1,
                Completion::Received(_) => taken.push(clock.now_ns() / 1_000),
                other => panic!("{other:?}"),
            }
        }
        if up == 3 && sent.is_empty() {
            for key in 0..3 {
                net.send(key, b"?").unwrap();
                sent.push(clock.now_ns() / 1_000);
            }
        }
    }
    (sent, taken, net.absent())
}

#[test]
fn without_costs_everything_happens_at_once() {
    let (sent, taken, absent) = three(Thread::default());
    assert_eq!((sent, taken), (vec![0; 3], vec![1_000; 3]));
    assert_eq!(absent, Absent::default());
}

#[test]
fn replies_wait_while_the_one_before_is_judged() {
    let (sent, taken, _) = three(Thread { completion_ns: 400_000, ..Thread::default() });
    assert_eq!((sent, taken), (vec![0; 3], vec![1_000, 1_400, 1_800]));
    let (sent, taken, _) = three(Thread { send_ns: 100_000, ..Thread::default() });
    assert_eq!((sent, taken), (vec![100, 200, 300], vec![1_100, 1_200, 1_300]));
}

#[test]
fn a_thread_that_is_absent_wakes_and_works_late() {
    let from_ns = MILLISECOND_NS / 2;
    let away = |why| Thread {
        absences: vec![Absence { from_ns, for_ns: 5 * MILLISECOND_NS, why }],
        ..Thread::default()
    };
    let (sent, taken, absent) = three(away(Why::Neighbour));
    assert_eq!((sent, taken), (vec![0; 3], vec![5_500; 3]));
    // It slept for the first half millisecond of the absence: only the rest was a delay.
    assert_eq!(absent, Absent { run_delay_ns: 4_500_000, ..Absent::default() });
    let (_, taken, absent) = three(away(Why::Stopped));
    assert_eq!((taken, absent), (vec![5_500; 3], Absent { stops: 1, ..Absent::default() }));
    // In the middle of its work, too: sending takes it until 0.5 ms, and another 0.7 ms after that.
    let working = Thread { send_ns: 400_000, ..away(Why::Throttled) };
    let (sent, _, absent) = three(working);
    assert_eq!((sent, absent.throttled_ns), (vec![400, 5_800, 6_200], 5_000_000));
}
