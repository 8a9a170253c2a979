//! A run on this machine: shards on threads, seconds merged as they come, and what is left at the end.

mod collector;
mod start;

use crate::epoll::EpollNet;
use crate::health::rss_max_bytes;
use crate::net::RoundTrip;
use crate::shard::{Message, Shard, ShardEnd, ShardPlan, Slow};
use crate::vitals::Clocks;
use collector::{Collected, Collector};
use plimsoll_core::admission::AdmissionModel;
use plimsoll_core::clock::{Clock, SystemClock};
use plimsoll_core::interval::Interval;
use plimsoll_core::priority::{StepBack, step_back};
use plimsoll_core::record::{Network, Sink};
use plimsoll_core::schedule::{ModelError, Slice};
use plimsoll_core::verdict::Health;
use plimsoll_wire::http::Http;
use plimsoll_wire::postgres::Postgres;
use plimsoll_wire::rank::Rank;
use plimsoll_wire::volt::Volt;
use plimsoll_wire::{Protocol, Sessions};
use start::{OnTheWay, StartLine};
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Builder;
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
    /// A thread cannot be started.
    #[error(
        "thread {number} of {of} cannot be started: {error}; use fewer --threads, or raise ulimit -u"
    )]
    Thread {
        /// Its number, from 1.
        number: usize,
        /// Number of threads wanted.
        of: usize,
        /// The system's reason.
        error: std::io::Error,
    },
    /// A shard's thread died: a defect of plimsoll.
    #[error("a worker thread ended with a defect in plimsoll; the run is void, please report it")]
    ShardDied,
    /// The thread that keeps the seconds died: a defect of plimsoll.
    #[error(
        "the run's seconds could not be collected; this is a defect in plimsoll, the run is void"
    )]
    CollectorDied,
}

/// Result of a run.
#[derive(Debug, Default)]
pub struct RunEnd {
    /// Everything measured.
    pub totals: Interval,
    /// Everything before the measured stretch.
    pub warmup: Option<Interval>,
    /// The slowest requests, slowest first.
    pub slowest: Vec<Slow>,
    /// Round trips of the connections as the kernel saw them.
    pub round_trips: Vec<RoundTrip>,
    /// Length of the measured stretch, s.
    pub measured_s: f64,
    /// Sum over clients of the time from their first measured moment to their last answer, to the end of the
    /// schedule when that was later, or to when they had nothing left to ask, ns.
    pub client_elapsed_ns: u64,
    /// Clients that had a measured moment.
    pub clients_measured: u32,
    /// The first shard's start, ns on the monotonic clock.
    pub start_ns: u64,
    /// CPU time of the generator in the measured stretch, s: of its shards, and of the thread that keeps the seconds.
    pub cpu_s: f64,
    /// Health of the generator and its machine over the measured stretch.
    pub health: Health,
    /// Time from the last success to the end of the stretch, s, and the number of requests that failed in it.
    pub since_success: (f64, u64),
    /// Connections that came to be used.
    pub connections: u32,
    /// Most memory resident, bytes.
    pub rss_max_bytes: u64,
    /// True if it was stopped before the end of the measured stretch.
    pub interrupted: bool,
    /// True if it was stopped after that, while it waited for the last replies or sent what was left: what was cut is
    /// `unfinished` or `unsent`.
    pub drain_cut: bool,
    /// Reason why the target would not have it, where a login was refused: the run ended with it.
    pub refused: Option<Cow<'static, str>>,
    /// Error of the sink.
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
        if !later.round_trips.is_empty() {
            self.round_trips = later.round_trips;
        }
        self.health.followed_by(self.measured_s, &later.health, later.measured_s);
        self.measured_s += later.measured_s;
        self.client_elapsed_ns += later.client_elapsed_ns;
        self.clients_measured = self.clients_measured.max(later.clients_measured);
        self.cpu_s += later.cpu_s;
        self.since_success = later.since_success;
        self.connections = self.connections.max(later.connections);
        self.rss_max_bytes = self.rss_max_bytes.max(later.rss_max_bytes);
        self.interrupted |= later.interrupted;
        self.drain_cut |= later.drain_cut;
        self.refused = self.refused.take().or(later.refused);
        self.sink_error = self.sink_error.take().or(later.sink_error);
    }

    /// Adds a part of the same run that another machine carried out at the same time. Both count from the same start.
    ///
    /// The memory of its histograms stays where it is: that of some megabytes serves for one part after the other.
    pub fn beside(&mut self, other: &mut RunEnd) {
        self.totals.merge(&other.totals);
        match (&mut self.warmup, &mut other.warmup) {
            (Some(all), Some(own)) => all.merge(own),
            (none, own) => *none = none.take().or(own.take()),
        }
        self.slowest.append(&mut other.slowest);
        self.slowest.sort_by_key(|slow| std::cmp::Reverse(slow.response_ns()));
        self.slowest.truncate(SLOWEST_MAX);
        self.round_trips.append(&mut other.round_trips);
        self.health.absorb(&other.health);
        self.measured_s = self.measured_s.max(other.measured_s);
        self.client_elapsed_ns += other.client_elapsed_ns;
        self.clients_measured += other.clients_measured;
        self.cpu_s += other.cpu_s;
        let (since_s, failed) = other.since_success;
        self.since_success = (self.since_success.0.min(since_s), self.since_success.1 + failed);
        self.connections += other.connections;
        self.rss_max_bytes = self.rss_max_bytes.max(other.rss_max_bytes);
        self.interrupted |= other.interrupted;
        self.drain_cut |= other.drain_cut;
        self.refused = self.refused.take().or(other.refused.take());
        self.sink_error = self.sink_error.take().or(other.sink_error.take());
    }

    /// Round trips over all connections; `None` if none was looked at.
    #[must_use]
    pub fn network(&self) -> Option<Network> {
        network(self.round_trips.clone())
    }
}

/// A run that is to be carried out: what [`run`] is given.
pub struct Work<'a, P: Protocol> {
    plan: &'a ShardPlan,
    protocol: &'a (dyn Fn() -> P + Sync),
    sessions: Vec<Box<dyn Sessions<P> + Send>>,
    sink: &'a mut (dyn Sink + Send),
    progress: &'a mut (dyn FnMut(&Interval) + Send),
    stop: &'a Arc<AtomicBool>,
}

/// A protocol that [`run`] drives. Its shards are compiled here, once, and not again in each crate that starts a run.
pub trait Driven: Protocol + Sized {
    /// Carries a run out, and blocks until its end.
    ///
    /// # Errors
    /// [`RunError`]: nothing was measured.
    fn carry_out(work: Work<'_, Self>) -> Result<RunEnd, RunError>;
}

macro_rules! driven {
    ($($protocol:ty),*) => {$(
        impl Driven for $protocol {
            fn carry_out(work: Work<'_, Self>) -> Result<RunEnd, RunError> {
                on_threads(work)
            }
        }
    )*};
}

driven!(Http, Postgres, Rank, Volt);

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
    P: Driven,
    F: Fn() -> P + Sync,
{
    P::carry_out(Work { plan, protocol: &protocol, sessions, sink, progress, stop })
}

fn on_threads<P: Protocol>(work: Work<'_, P>) -> Result<RunEnd, RunError> {
    let Work { plan, protocol, sessions, sink, progress, stop } = work;
    let shards = sessions.len().max(1);
    let clocks = Clocks::read();
    let start = StartLine::new(shards, &plan.part, stop.clone());
    let (sender, receiver) = channel();
    let (ways, spares): (Vec<_>, Vec<_>) = (0..shards).map(|_| channel()).unzip();
    let (ends, collected) = std::thread::scope(|scope| {
        let (keeper, watcher) = (&mut *sink, &mut *progress);
        let refused = |number, error| {
            start.give_up();
            RunError::Thread { number, of: shards + 1, error }
        };
        let collector = Builder::new().spawn_scoped(scope, move || {
            step_back(StepBack::Behind);
            Collector::new(ways).collect(&receiver, keeper, watcher)
        });
        let collector = collector.map_err(|error| refused(1, error))?;
        let mut threads = Vec::new();
        for ((index, sessions), spares) in (0u32..).zip(sessions).zip(spares) {
            let own = plan.cut(index, shards as u32);
            let outbox = Outbox { index, sender: sender.clone(), spares };
            let (start, stop) = (&start, stop.clone());
            let thread = Builder::new().spawn_scoped(scope, move || {
                // What dies before the line lets the others go.
                let on_the_way = OnTheWay::new(start);
                shard_thread(own, protocol(), sessions, outbox, on_the_way, stop)
            });
            threads.push(thread.map_err(|error| refused(index as usize + 2, error))?);
        }
        drop(sender);
        let ends: Vec<_> = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or(Err(RunError::ShardDied)))
            .collect();
        let collected = collector.join().map_err(|_| RunError::CollectorDied)?;
        Ok::<_, RunError>((ends, collected))
    })?;
    let ends: Result<Vec<Option<ShardEnd>>, RunError> = ends.into_iter().collect();
    // No shard was let go: that takes an error.
    let ends: Vec<ShardEnd> = ends?.into_iter().flatten().collect();
    let mut end = assemble(ends, collected, plan.classes, start.agreed_ns(), sink);
    (end.health.suspended_s, end.health.clock_step_s) = Clocks::read().since(&clocks);
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
        own.warm_connections = self.warm_connections.map(|warm| share(warm).max(1));
        own.connections = match self.model.clients() {
            // A client and its connection belong to the same shard.
            Some(clients) if self.slice.share(clients.into()) == u64::from(self.connections) => {
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

struct Outbox {
    index: u32,
    sender: Sender<(u32, Option<Message>)>,
    spares: Receiver<Box<Interval>>,
}

impl Outbox {
    fn deliver(&self, message: Message) -> Option<Box<Interval>> {
        if !matches!(message, Message::WantsSpare) {
            // The collector outlives all shards; without it no one takes the message.
            let _ = self.sender.send((self.index, Some(message)));
        }
        self.spares.try_recv().ok()
    }
}

impl Drop for Outbox {
    /// The collector no longer waits for a shard that has ended, or has died.
    fn drop(&mut self) {
        let _ = self.sender.send((self.index, None));
    }
}

fn shard_thread<P: Protocol>(
    plan: ShardPlan,
    protocol: P,
    sessions: Box<dyn Sessions<P> + Send>,
    outbox: Outbox,
    start: OnTheWay<'_>,
    stop: Arc<AtomicBool>,
) -> Result<Option<ShardEnd>, RunError> {
    // The default slack of 50 us would be added to every intended start.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let net = match EpollNet::new() {
        Ok(net) => net,
        Err(error) => {
            sessions.finish(SystemClock.now_ns());
            return Err(error.into());
        }
    };
    // The start is the same for all shards: the first one reports it.
    let first = (outbox.index == 0).then(|| outbox.sender.clone());
    let before_ns = (plan.warmup_ns, plan.part.offset_ns);
    let deliver = Box::new(move |message| outbox.deliver(message));
    let mut shard = Shard::new(plan, protocol, net, SystemClock, sessions, deliver, stop)?;
    shard.open_connections();
    let Some(start_ns) = start.wait() else {
        shard.abandon();
        return Ok(None);
    };
    if let Some(sender) = first {
        let counts_from_ns = start_ns.saturating_add(before_ns.0).saturating_sub(before_ns.1);
        // Without a collector no one takes the message.
        let _ = sender.send((0, Some(Message::CountsFrom(counts_from_ns))));
    }
    Ok(Some(shard.run_from(start_ns)?))
}

fn assemble(
    ends: Vec<ShardEnd>,
    mut collected: Collected,
    classes: usize,
    start_ns: u64,
    sink: &mut dyn Sink,
) -> RunEnd {
    let mut cpu_ns = collected.cpu_ns;
    let mut rest = Interval::new(classes);
    rest.from_ns = u64::MAX;
    let mut warmup: Option<Interval> = None;
    let (mut slowest, mut trips) = (Vec::new(), Vec::new());
    let (mut from_ns, mut to_ns) = (u64::MAX, 0);
    let (mut client_elapsed_ns, mut clients_measured, mut health) = (0, 0, Health::default());
    let (mut last_success_ns, mut failed_since, mut connections) = (0, 0, 0);
    let (mut interrupted, mut drain_cut, mut refused) = (false, false, None);
    for end in ends {
        rest.merge(&end.rest);
        // All of one part of a run.
        rest.phase = end.rest.phase;
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
        health.absorb(&end.health);
        last_success_ns = last_success_ns.max(end.last_success.0);
        failed_since += end.last_success.1;
        connections += end.connections;
        cpu_ns += end.marks.1.signs.since(&end.marks.0.signs).cpu_ns;
        interrupted |= end.interrupted;
        drain_cut |= end.drain_cut;
        refused = refused.or(end.refused.map(Cow::Borrowed));
    }
    rest.from_ns = rest.from_ns.min(rest.to_ns);
    collected.take(&rest, sink, &mut |_| {});
    slowest.sort_by_key(|slow| std::cmp::Reverse(slow.response_ns()));
    RunEnd {
        totals: collected.totals,
        warmup,
        slowest,
        round_trips: trips,
        measured_s: to_ns.saturating_sub(from_ns) as f64 / 1e9,
        client_elapsed_ns,
        clients_measured,
        start_ns,
        cpu_s: cpu_ns as f64 / 1e9,
        health,
        since_success: (to_ns.saturating_sub(last_success_ns) as f64 / 1e9, failed_since),
        connections,
        rss_max_bytes: rss_max_bytes(),
        interrupted,
        drain_cut,
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
