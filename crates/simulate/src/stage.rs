//! One run: a scene, a protocol, sessions and a peer, and what was left behind.

use crate::diary::Diary;
use crate::planted::{Planted, StageClock};
use crate::played::{Played, WINDOW_LIMIT_NS, WINDOW_NS};
use crate::scene::Scene;
use plimsoll_core::clock::{Clock, MILLISECOND_NS, SECOND_NS, VirtualClock};
use plimsoll_core::interval::Interval;
use plimsoll_core::seek::plant::Window;
use plimsoll_engine::gauge::Gauge;
use plimsoll_engine::shard::{Message, Shard};
use plimsoll_engine::sim::{Peer, SimNet};
use plimsoll_engine::windows::{WindowCounts, WindowLimit};
use plimsoll_wire::{Protocol, Sessions};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Enough for the longest run with all it waits for.
const WINDOWS: usize = 300;

/// Seconds of a run that are kept apart; a feed may have thousands.
const SECONDS_KEPT: usize = 6;

fn keep(seconds: &mut Vec<Interval>, second: &Interval) {
    if seconds.len() < SECONDS_KEPT {
        seconds.push(second.clone());
    } else if let Some(last) = seconds.last_mut() {
        last.merge(second);
    }
}

/// Carries a run out.
///
/// # Panics
/// When the engine finds that its own books do not hold, or the load model cannot be run.
pub fn play<P, K>(
    scene: &Scene,
    protocol: P,
    sessions: Box<dyn Sessions<P>>,
    diary: &Rc<RefCell<Diary>>,
    (peer, clock): (&Rc<RefCell<K>>, VirtualClock),
    planted: Planted,
) -> Played
where
    P: Protocol,
    K: Peer + 'static,
{
    clock.advance_to(SECOND_NS);
    let net = SimNet::new(clock.clone(), peer.clone(), scene.link, scene.seed);
    let mut net = net.driven_by(scene.thread.clone());
    let stop = Arc::new(AtomicBool::new(false));
    if let Some(stop_ns) = scene.stop_ns {
        let stop = stop.clone();
        net.at(stop_ns, move || stop.store(true, Ordering::Relaxed));
    }
    let kept = Rc::new(RefCell::new((Vec::new(), Vec::new())));
    let own = kept.clone();
    let outbox = move |message: Message| match message {
        Message::Second(mut second) => {
            keep(&mut own.borrow_mut().0, &second);
            second.clear();
            Some(second)
        }
        Message::Failure(sample) => {
            own.borrow_mut().1.push((sample.request, sample.reason));
            None
        }
        Message::CountsFrom(_) | Message::WantsSpare => None,
    };
    let mut plan = scene.plan.clone();
    let limits = [WINDOW_LIMIT_NS, u64::MAX].map(WindowLimit::of_all);
    let counts = Arc::new(WindowCounts::new(WINDOW_NS, WINDOWS, &limits));
    let gauge = Arc::new(Gauge::default());
    plan.part.windows.push(counts.clone());
    plan.part.gauges.push(gauge.clone());
    let own_clock = StageClock::new(clock.clone(), planted);
    let shard = Shard::new(plan, protocol, net, own_clock, sessions, Box::new(outbox), stop);
    let shard = shard.unwrap_or_else(|error| panic!("{error}"));
    let mut start_ns = 0;
    let end = shard.run(|| {
        start_ns = clock.now_ns() + MILLISECOND_NS;
        if scene.late_ns > 0 {
            clock.advance_to(start_ns + scene.late_ns);
        }
        start_ns
    });
    let end = end.unwrap_or_else(|error| panic!("{error}"));
    let (seconds, failures_told) = kept.take();
    let mut windows = vec![Window::default(); WINDOWS];
    counts.add_to(&mut windows);
    let mut played = Played {
        end,
        seconds,
        diary: diary.take(),
        start_ns,
        over_ns: clock.now_ns(),
        failures_told,
        windows,
        gauge: gauge.look(),
    };
    planted.tamper(&mut played);
    played
}
