//! A run on this machine: shards on threads, seconds merged as they come, and what is left at the end.

use crate::epoll::EpollNet;
use crate::health::{process_cpu_ns, rss_max_bytes};
use crate::net::RoundTrip;
use crate::shard::{Message, Shard, ShardEnd, ShardPlan, Slow};
use plimsoll_core::admission::AdmissionModel;
use plimsoll_core::clock::{MILLISECOND_NS, SystemClock, now_ns};
use plimsoll_core::interval::Interval;
use plimsoll_core::record::{Network, Sink};
use plimsoll_core::schedule::{ModelError, Slice};
use plimsoll_wire::{Protocol, Sessions};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier};
use std::time::Duration;
use thiserror::Error;

/// A run that could not take place.
#[derive(Debug, Error)]
pub enum RunError {
    /// The load model cannot be run.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The operating system refused something the engine needs.
    #[error("the engine could not start: {0}")]
    System(#[from] std::io::Error),
    /// A shard's thread died: a defect of plimsoll.
    #[error("a shard died; this is a defect in plimsoll, the run is void")]
    ShardDied,
    /// The thread that keeps the seconds died: a defect of plimsoll.
    #[error(
        "the run's seconds could not be collected; this is a defect in plimsoll, the run is void"
    )]
    CollectorDied,
}

/// What a run leaves behind.
pub struct RunEnd {
    /// Everything measured.
    pub totals: Interval,
    /// Everything before the measured stretch.
    pub warmup: Option<Interval>,
    /// The slowest requests, slowest first.
    pub slowest: Vec<Slow>,
    /// Round trips as the kernel saw them.
    pub network: Option<Network>,
    /// Length of the measured stretch, s.
    pub measured_s: f64,
    /// Sum over clients of the time from their first measured moment to their last answer, to the end of the
    /// schedule when that was later, or to when they had nothing left to ask, ns.
    pub client_elapsed_ns: u64,
    /// Clients that had a measured moment.
    pub clients_measured: u32,
    /// The first shard's start, ns on the monotonic clock.
    pub start_ns: u64,
    /// CPU time of the process in the run, s.
    pub cpu_s: f64,
    /// Share of its time that the busiest shard had work, 0 to 1.
    pub busiest: f64,
    /// Most memory resident, bytes.
    pub rss_max_bytes: u64,
    /// Whether it was told to stop before its end.
    pub interrupted: bool,
    /// Why the target would not have it, where a login was refused: the run ended with it.
    pub refused: Option<&'static str>,
    /// What the sink could not keep.
    pub sink_error: Option<std::io::Error>,
}

/// The slowest requests that a run keeps.
const SLOWEST_MAX: usize = 20;

impl RunEnd {
    /// Adds a later part of the same run.
    pub fn absorb(&mut self, later: RunEnd) {
        self.totals.in_flight = 0;
        self.totals.merge(&later.totals);
        match (&mut self.warmup, later.warmup) {
            (Some(all), Some(own)) => all.merge(&own),
            (none, own) => *none = none.take().or(own),
        }
        self.slowest.extend(later.slowest);
        self.slowest.sort_by_key(|slow| std::cmp::Reverse(slow.response_ns()));
        self.slowest.truncate(SLOWEST_MAX);
        self.network = later.network.or(self.network);
        self.measured_s += later.measured_s;
        self.client_elapsed_ns += later.client_elapsed_ns;
        self.clients_measured = self.clients_measured.max(later.clients_measured);
        self.cpu_s += later.cpu_s;
        self.busiest = self.busiest.max(later.busiest);
        self.rss_max_bytes = self.rss_max_bytes.max(later.rss_max_bytes);
        self.interrupted |= later.interrupted;
        self.refused = self.refused.or(later.refused);
        self.sink_error = self.sink_error.take().or(later.sink_error);
    }
}

/// Runs `plan` on `sessions.len()` threads, one shard each. Blocks until the end.
///
/// Seconds go to `sink` and to `progress` as they are complete. Setting `stop` ends the run within a second.
///
/// # Errors
/// [`RunError`]: nothing was measured.
pub fn run<P, F>(
    plan: &ShardPlan,
    protocol: F,
    sessions: Vec<Box<dyn Sessions<P> + Send>>,
    sink: &mut (dyn Sink + Send),
    progress: &mut (dyn FnMut(&Interval) + Send),
    stop: &Arc<AtomicBool>,
) -> Result<RunEnd, RunError>
where
    P: Protocol,
    F: Fn() -> P + Sync,
{
    let shards = sessions.len().max(1) as u32;
    let cpu_before_ns = process_cpu_ns();
    let start = StartLine::new(shards as usize, plan.part.start_ns, stop.clone());
    let (sender, receiver) = channel();
    let mut spares = Vec::new();
    let ends = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (index, sessions) in (0u32..).zip(sessions) {
            let own = plan.cut(index, shards);
            let (spare_sender, spare_receiver) = channel();
            spares.push(spare_sender);
            let (sender, start, protocol, stop) = (sender.clone(), &start, &protocol, stop.clone());
            threads.push(scope.spawn(move || {
                let outbox = Outbox { index, sender, spares: spare_receiver };
                shard_thread(own, protocol(), sessions, outbox, start, stop)
            }));
        }
        drop(sender);
        let (keeper, watcher) = (&mut *sink, &mut *progress);
        let collector = scope.spawn(move || {
            yield_to_all_others();
            Collector::new(spares).collect(&receiver, keeper, watcher)
        });
        let ends: Result<Vec<_>, RunError> = threads
            .into_iter()
            .map(|thread| thread.join().map_err(|_| RunError::ShardDied)?)
            .collect();
        let collected = collector.join().map_err(|_| RunError::CollectorDied);
        Ok::<_, RunError>((ends?, collected?))
    });
    let (ends, collected) = ends?;
    let cpu_s = (process_cpu_ns() - cpu_before_ns) as f64 / 1e9;
    let mut end = assemble(ends, collected, plan.classes, start.agreed_ns(), cpu_s, sink);
    if plan.ignore_first > 0 && end.clients_measured > 0 {
        // Each client has a measured stretch of its own; rates are those of their mean.
        end.measured_s = end.client_elapsed_ns as f64 / 1e9 / f64::from(end.clients_measured);
    }
    Ok(end)
}

impl ShardPlan {
    /// The part of this plan that shard `index` of `of` carries out.
    #[must_use]
    pub fn cut(&self, index: u32, of: u32) -> ShardPlan {
        let part = Slice { index, of };
        let share = |total: u32| part.share(u64::from(total)) as u32;
        let mut own = self.clone();
        own.slice = self.slice.cut(index, of);
        own.part.windows = self.part.windows.get(index as usize).cloned().into_iter().collect();
        own.part.gauges = self.part.gauges.get(index as usize).cloned().into_iter().collect();
        own.connections = match self.model.clients() {
            // A client and its connection belong to the same shard.
            Some(clients) if clients == self.connections => {
                own.slice.share(u64::from(clients)) as u32
            }
            _ => share(self.connections).max(1),
        };
        if let AdmissionModel::Managed { slots, queue_max, queue_timeout_ns } = self.admission {
            own.admission = AdmissionModel::Managed {
                slots: share(slots).max(1),
                queue_max: share(queue_max),
                queue_timeout_ns,
            };
        }
        own
    }
}

/// Where shards wait for each other after their connections are open.
struct StartLine {
    barrier: Barrier,
    /// Agreed with others.
    not_before_ns: u64,
    start_ns: AtomicU64,
    stop: Arc<AtomicBool>,
}

/// Shards come from the start line so long before an agreed start, and wait for the rest with their own timers.
const AHEAD_NS: u64 = 20 * MILLISECOND_NS;

impl StartLine {
    fn new(shards: usize, not_before_ns: Option<u64>, stop: Arc<AtomicBool>) -> Self {
        Self {
            barrier: Barrier::new(shards),
            not_before_ns: not_before_ns.unwrap_or(0),
            start_ns: AtomicU64::new(0),
            stop,
        }
    }

    /// Waits for the others and returns the start that all agree on.
    fn wait(&self) -> u64 {
        if self.barrier.wait().is_leader() {
            while now_ns() + AHEAD_NS < self.not_before_ns && !self.stop.load(Ordering::Relaxed) {
                let left_ns = self.not_before_ns.saturating_sub(now_ns() + AHEAD_NS);
                std::thread::sleep(Duration::from_nanos(left_ns.min(10 * MILLISECOND_NS)));
            }
            let start_ns = self.not_before_ns.max(now_ns() + MILLISECOND_NS);
            self.start_ns.store(start_ns, Ordering::Release);
        }
        self.barrier.wait();
        self.agreed_ns()
    }

    fn agreed_ns(&self) -> u64 {
        self.start_ns.load(Ordering::Acquire)
    }
}

struct Outbox {
    index: u32,
    sender: Sender<(u32, Message)>,
    spares: Receiver<Box<Interval>>,
}

fn shard_thread<P: Protocol>(
    plan: ShardPlan,
    protocol: P,
    sessions: Box<dyn Sessions<P> + Send>,
    outbox: Outbox,
    start: &StartLine,
    stop: Arc<AtomicBool>,
) -> Result<ShardEnd, RunError> {
    // The default slack of 50 us would be added to every intended start.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let Outbox { index, sender, spares } = outbox;
    let deliver = move |message| {
        // The collector outlives all shards; without it there is nobody to tell.
        let _ = sender.send((index, message));
        spares.try_recv().ok()
    };
    let net = match EpollNet::new() {
        Ok(net) => net,
        Err(error) => {
            start.wait();
            return Err(error.into());
        }
    };
    let made = Shard::new(plan, protocol, net, SystemClock, sessions, Box::new(deliver), stop);
    let shard = match made {
        Ok(shard) => shard,
        Err(error) => {
            start.wait();
            return Err(error.into());
        }
    };
    Ok(shard.run(|| start.wait())?)
}

/// Seconds of all shards, merged.
struct Collected {
    totals: Interval,
    sink_error: Option<std::io::Error>,
}

/// Merges the shards' seconds and hands their memory back, emptied.
struct Collector {
    /// The end of the last second that each shard has delivered, ns.
    reached_ns: Vec<u64>,
    /// Ways back to the shards.
    spares: Vec<Sender<Box<Interval>>>,
    /// Seconds that some shard still owes its part of, with the shard whose memory they are in.
    pending: BTreeMap<u64, (usize, Box<Interval>)>,
}

impl Collector {
    fn new(spares: Vec<Sender<Box<Interval>>>) -> Self {
        Self { reached_ns: vec![0; spares.len()], spares, pending: BTreeMap::new() }
    }

    fn collect(
        mut self,
        receiver: &Receiver<(u32, Message)>,
        sink: &mut dyn Sink,
        progress: &mut dyn FnMut(&Interval),
    ) -> Collected {
        let mut collected = Collected { totals: Interval::default(), sink_error: None };
        while let Ok((index, message)) = receiver.recv() {
            match message {
                Message::Failure(sample) => {
                    if let Err(error) = sink.failure(&sample) {
                        collected.sink_error.get_or_insert(error);
                    }
                }
                Message::Second(second) => {
                    self.add(index as usize, second);
                    let all_past = self.reached_ns.iter().copied().min().unwrap_or(0);
                    self.take_until(all_past, &mut collected, sink, progress);
                }
            }
        }
        self.take_until(u64::MAX, &mut collected, sink, progress);
        collected
    }

    fn add(&mut self, shard: usize, second: Box<Interval>) {
        self.reached_ns[shard] = second.to_ns;
        match self.pending.entry(second.to_ns) {
            Entry::Occupied(mut merged) => {
                merged.get_mut().1.merge(&second);
                self.give_back(shard, second);
            }
            Entry::Vacant(place) => {
                place.insert((shard, second));
            }
        }
    }

    fn take_until(
        &mut self,
        end_ns: u64,
        collected: &mut Collected,
        sink: &mut dyn Sink,
        progress: &mut dyn FnMut(&Interval),
    ) {
        while self.pending.first_key_value().is_some_and(|(&to_ns, _)| to_ns <= end_ns) {
            let Some((_, (shard, second))) = self.pending.pop_first() else { break };
            collected.take(&second, sink, progress);
            self.give_back(shard, second);
        }
    }

    /// Empties the memory here, where nobody waits, and not on the shard's time.
    fn give_back(&self, shard: usize, mut second: Box<Interval>) {
        second.clear();
        // A shard that has ended no longer takes it.
        let _ = self.spares[shard].send(second);
    }
}

/// Lets every other thread go first: a shard whose request is due must not wait until this one has encoded
/// its histograms, not even where both are bound to one core.
fn yield_to_all_others() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the call reads one structure that outlives it, and concerns the calling thread only. Should the
    // system refuse, the run is as valid; its lag shows what that cost.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) };
}

impl Collected {
    fn take(
        &mut self,
        second: &Interval,
        sink: &mut dyn Sink,
        progress: &mut dyn FnMut(&Interval),
    ) {
        self.totals.merge(second);
        if let Err(error) = sink.interval(second) {
            self.sink_error.get_or_insert(error);
        }
        progress(second);
    }
}

fn assemble(
    ends: Vec<ShardEnd>,
    mut collected: Collected,
    classes: usize,
    start_ns: u64,
    cpu_s: f64,
    sink: &mut dyn Sink,
) -> RunEnd {
    let mut rest = Interval::new(classes);
    rest.from_ns = u64::MAX;
    let mut warmup: Option<Interval> = None;
    let (mut slowest, mut trips) = (Vec::new(), Vec::new());
    let (mut from_ns, mut to_ns) = (u64::MAX, 0);
    let (mut client_elapsed_ns, mut clients_measured, mut busiest) = (0, 0, 0.0f64);
    let (mut interrupted, mut refused) = (false, None);
    for end in ends {
        rest.merge(&end.rest);
        if let Some(own) = end.warmup {
            match &mut warmup {
                Some(all) => all.merge(&own),
                None => warmup = Some(own),
            }
        }
        slowest.extend(end.slowest);
        trips.extend(end.round_trips);
        from_ns = from_ns.min(end.measured_ns.0);
        to_ns = to_ns.max(end.measured_ns.1);
        client_elapsed_ns += end.client_elapsed_ns;
        clients_measured += end.clients_measured;
        busiest = busiest.max(end.busy);
        interrupted |= end.interrupted;
        refused = refused.or(end.refused);
    }
    rest.from_ns = rest.from_ns.min(rest.to_ns);
    collected.take(&rest, sink, &mut |_| {});
    slowest.sort_by_key(|slow| std::cmp::Reverse(slow.response_ns()));
    RunEnd {
        totals: collected.totals,
        warmup,
        slowest,
        network: network(trips),
        measured_s: to_ns.saturating_sub(from_ns) as f64 / 1e9,
        client_elapsed_ns,
        clients_measured,
        start_ns,
        cpu_s,
        busiest,
        rss_max_bytes: rss_max_bytes(),
        interrupted,
        refused,
        sink_error: collected.sink_error,
    }
}

fn network(mut trips: Vec<RoundTrip>) -> Option<Network> {
    trips.sort_by_key(|trip| trip.min_us);
    let rtt_min_us = trips.first()?.min_us;
    let rtt_floor_median_us = trips[trips.len() / 2].min_us;
    let retransmits = trips.iter().map(|trip| u64::from(trip.retransmits)).sum();
    trips.sort_by_key(|trip| trip.smoothed_us);
    Some(Network {
        connections: trips.len() as u32,
        rtt_min_us,
        rtt_floor_median_us,
        rtt_median_us: trips[trips.len() / 2].smoothed_us,
        retransmits,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::record::FailureSample;

    /// Keeps the end and the scheduled count of each second it is given.
    #[derive(Default)]
    struct Kept(Vec<(u64, u64)>);

    impl Sink for Kept {
        fn interval(&mut self, interval: &Interval) -> std::io::Result<()> {
            self.0.push((interval.to_ns, interval.ledger.scheduled));
            Ok(())
        }

        fn failure(&mut self, _: &FailureSample) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn second(to_ns: u64, scheduled: u64) -> Message {
        let mut interval = Interval::new(1);
        interval.to_ns = to_ns;
        interval.ledger.scheduled = scheduled;
        interval.lag.record(scheduled);
        Message::Second(Box::new(interval))
    }

    #[test]
    fn seconds_are_kept_in_order_once_every_shard_has_passed_them() {
        let (sender, receiver) = channel();
        let (ways, backs): (Vec<_>, Vec<_>) = (0..2).map(|_| channel()).unzip();
        // The second shard slept through its first second.
        for (shard, to_ns, scheduled) in [(0, 1, 5), (0, 2, 6), (1, 2, 10), (0, 3, 7), (1, 3, 20)] {
            sender.send((shard, second(to_ns, scheduled))).unwrap();
        }
        drop(sender);
        let (mut kept, mut seen) = (Kept::default(), Vec::new());
        let mut progress = |interval: &Interval| seen.push(interval.to_ns);
        let collected = Collector::new(ways).collect(&receiver, &mut kept, &mut progress);
        assert_eq!(kept.0, [(1, 5), (2, 16), (3, 27)]);
        assert_eq!(seen, [1, 2, 3]);
        assert_eq!(collected.totals.ledger.scheduled, 48);
        assert_eq!(collected.totals.lag.count(), 5);
        let returned: Vec<Vec<Box<Interval>>> =
            backs.iter().map(|b| b.try_iter().collect()).collect();
        assert_eq!((returned[0].len(), returned[1].len()), (3, 2), "each gets its own memory back");
        assert!(returned.iter().flatten().all(|interval| interval.is_empty()));
    }
}
