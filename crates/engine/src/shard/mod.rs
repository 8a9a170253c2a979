//! A shard: one thread's share of a run, with its connections, sessions and recorder.
//!
//! The walk of a request: [`Schedule::next`] makes it due, `begin` gives it a connection and lets its
//! session write it, the codec encodes it into the shared buffer, the network takes it; a reply is decoded, judged by
//! its session, and recorded. Nothing on that walk allocates, locks or formats.

mod books;
mod connections;
mod due;
mod ending;
mod flight;
mod losing;
mod opening;
mod plan;
mod receiving;
mod securing;
mod sending;
mod unserved;

use crate::gauge::Reading;
use crate::net::{Net, RoundTrip, WaitMode};
pub use books::marks::Mark;
use books::marks::Marks;
use books::noticing::Noticing;
pub use books::samples::Slow;
use books::samples::Slowest;
use connections::closed::ClosedConnections;
use connections::connection::Connection;
use connections::growing::Growth;
use connections::idle::IdleOpen;
use flight::Flights;
pub use plan::{Part, ShardPlan, Timeouts, UsersBefore};
use plimsoll_core::admission::ManagedQueue;
use plimsoll_core::clock::{Clock, SECOND_NS};
use plimsoll_core::interval::Interval;
use plimsoll_core::record::FailureSample;
use plimsoll_core::recorder::Recorder;
use plimsoll_core::schedule::{LoadModel, ModelError, Schedule};
use plimsoll_core::verdict::Health;
use plimsoll_wire::{Protocol, Sessions};
use sending::ClockReading;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes taken from the kernel at once.
const RECEIVE_BYTES: usize = 64 * 1024;
/// How long a stop that the user asked for waits for answers, ns.
const STOP_GRACE_NS: u64 = SECOND_NS / 2;
/// Longest wait before looking whether a stop was asked for, ns.
const STOP_CHECK_NS: u64 = SECOND_NS / 20;
/// Longest time for which completions are taken before deadlines are looked at, ns, and how many of them pass between two
/// looks at the clock.
const ROUND_NS: u64 = SECOND_NS / 50;
const ROUND_LOOK: u64 = 64;

/// What a shard tells while it runs.
pub enum Message {
    /// One second has passed.
    Second(Box<Interval>),
    /// A request failed; one of a bounded sample.
    Failure(Box<FailureSample>),
    /// Nothing: the shard asks for an empty interval.
    WantsSpare,
}

/// What a shard leaves behind.
pub struct ShardEnd {
    /// The last, unfinished second.
    pub rest: Interval,
    /// Requests of the warm-up, measured apart.
    pub warmup: Option<Interval>,
    /// The slowest requests.
    pub slowest: Vec<Slow>,
    /// The kernel's view of the round trips of connections: of those open at the end first, then of those
    /// closed before, at most a thousand.
    pub round_trips: Vec<RoundTrip>,
    /// When the measured stretch began and ended, ns on the engine's clock.
    pub measured_ns: (u64, u64),
    /// Sum over clients of the time from their first measured moment to their last answer, to the end of the schedule
    /// when that was later, or to when they had nothing left to ask, ns.
    pub client_elapsed_ns: u64,
    /// Clients that had a measured moment.
    pub clients_measured: u32,
    /// What it measured of itself over the measured stretch.
    pub health: Health,
    /// When its last success ended, ns on the engine's clock, and how many requests failed after it.
    pub last_success: (u64, u64),
    /// Connections that came to be used.
    pub connections: u32,
    /// What it had used where the measured stretch began, and where it ended.
    pub marks: (Mark, Mark),
    /// Whether it was told to stop before the end of the measured stretch.
    pub interrupted: bool,
    /// Whether it was told to stop after that, while it waited for the last replies or sent what was left: what was cut is
    /// `unfinished` or `unsent`.
    pub drain_cut: bool,
    /// Why the target would not have it, where a login was refused: the run ended with it.
    pub refused: Option<&'static str>,
}

/// A connection that pauses after a failure, a client that was turned away, or both together.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Rest {
    until_ns: u64,
    connection: Option<u32>,
    client: Option<(u32, u64)>,
}

/// One thread's share of a run.
pub struct Shard<P: Protocol, N: Net, C: Clock> {
    plan: ShardPlan,
    protocol: P,
    net: N,
    clock: C,
    sessions: Box<dyn Sessions<P>>,
    schedule: Schedule,
    managed: Option<ManagedQueue>,
    /// Most requests under way at once; all that fit when admission is direct.
    slots: u32,
    /// When the last of all slots became free again, ns.
    slot_free_since_ns: u64,
    recorder: Recorder,
    /// Requests that are not measured go here.
    warmup: Option<Recorder>,
    connections: Vec<Connection<P>>,
    /// Whether client i always uses connection i.
    dedicated: bool,
    idle_open: IdleOpen,
    idle_closed: ClosedConnections,
    resting: BinaryHeap<Reverse<Rest>>,
    /// Clients that rest until their sessions call for them, with the intended start of what they asked last, ns.
    uncalled: VecDeque<(u32, u64)>,
    flights: Flights<P>,
    /// The time, for requests that go out together.
    reading: ClockReading,
    /// Connections with requests that are not handed to the network yet.
    unflushed: Vec<u32>,
    /// Requests that a peer has not looked at, or has undone, to be sent once more.
    unprocessed: VecDeque<u32>,
    /// Whether one of them may find a connection that did not before.
    may_send_again: bool,
    next_scan_ns: u64,
    /// Bytes to send, before TLS.
    plain: Vec<u8>,
    /// Bytes to send, after TLS.
    cipher: Vec<u8>,
    buffer: Vec<u8>,
    decrypted: Vec<u8>,
    slowest: Slowest,
    /// Of connections that were closed.
    round_trips: Vec<RoundTrip>,
    failures_told: [u32; plimsoll_core::outcome::Failure::COUNT],
    client_ended: Vec<u32>,
    client_from_ns: Vec<u64>,
    client_to_ns: Vec<u64>,
    /// When each client had nothing left to ask, ns; 0: it had.
    client_exhausted_ns: Vec<u64>,
    /// Since when each client could ask again, ns.
    client_free_since_ns: Vec<u64>,
    start_ns: u64,
    end_ns: u64,
    next_tick_ns: u64,
    spare: Option<Box<Interval>>,
    /// How far the connections have grown.
    growth: Growth,
    /// What it has noticed of itself.
    noticing: Noticing,
    /// When the last success ended, ns, and how many requests failed after it.
    last_success: (u64, u64),
    /// What was used where the measured stretch began and ended.
    marks: Marks,
    last_ended_ns: u64,
    schedule_done: bool,
    /// Whether a session had nothing left to ask.
    exhausted: bool,
    /// Completions of the last batch; of an only connection, requests that ended in it.
    last_batch: u64,
    outbox: Outbox,
    stop: Arc<AtomicBool>,
    /// When a stop was noticed, ns.
    stopped_ns: Option<u64>,
    interrupted: bool,
    drain_cut: bool,
    /// Why a login was refused.
    refused: Option<&'static str>,
    /// How it stands, for its gauge.
    standing: Reading,
}

/// Where a shard's messages go; returns an empty interval for later use when there is one.
pub type Outbox = Box<dyn FnMut(Message) -> Option<Box<Interval>>>;

impl<P: Protocol, N: Net, C: Clock> Shard<P, N, C> {
    /// Makes a shard that has not started.
    ///
    /// # Errors
    /// When the load model cannot be run.
    pub fn new(
        plan: ShardPlan,
        protocol: P,
        net: N,
        clock: C,
        sessions: Box<dyn Sessions<P>>,
        outbox: Outbox,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, ModelError> {
        let schedule = Schedule::start(&plan.model, plan.slice, plan.limits, plan.seed, 0)?;
        let (managed, slots) = plan.slots(protocol.depth());
        let clients = plan.model.clients().map_or(0, |c| plan.slice.share(u64::from(c)) as usize);
        let dedicated = managed.is_none() && clients == plan.connections as usize;
        let connections = plan.connections_to_targets(dedicated);
        let growth = Growth::from(
            plan.warm_connections.map_or(plan.connections, |warm| warm.clamp(1, plan.connections)),
        );
        let separate = plan.warmup_ns > 0 || plan.ignore_first > 0;
        Ok(Self {
            protocol,
            net,
            clock,
            sessions,
            schedule,
            managed,
            slots,
            slot_free_since_ns: 0,
            recorder: Recorder::new(plan.classes),
            warmup: separate.then(|| Recorder::new(plan.classes)),
            connections,
            dedicated: dedicated && clients > 0,
            // Each target has a connection among the first.
            idle_open: IdleOpen::new(growth.in_play.max(plan.targets.len() as u32)),
            idle_closed: ClosedConnections::new(plan.targets.len()),
            resting: BinaryHeap::new(),
            uncalled: VecDeque::new(),
            flights: Flights::new(),
            reading: ClockReading::default(),
            unflushed: Vec::new(),
            unprocessed: VecDeque::new(),
            may_send_again: false,
            next_scan_ns: u64::MAX,
            plain: Vec::with_capacity(4096),
            cipher: Vec::new(),
            buffer: vec![0; RECEIVE_BYTES],
            decrypted: Vec::new(),
            slowest: Slowest::new(),
            round_trips: Vec::new(),
            failures_told: Default::default(),
            client_ended: vec![0; clients],
            client_from_ns: vec![0; clients],
            client_to_ns: vec![0; clients],
            client_exhausted_ns: vec![0; clients],
            client_free_since_ns: vec![0; clients],
            start_ns: 0,
            end_ns: 0,
            next_tick_ns: u64::MAX,
            spare: Some(Box::new(Interval::new(plan.classes))),
            growth,
            noticing: Noticing::default(),
            last_success: (0, 0),
            marks: Marks::default(),
            last_ended_ns: 0,
            schedule_done: false,
            exhausted: false,
            last_batch: 0,
            outbox,
            stop,
            stopped_ns: None,
            interrupted: false,
            drain_cut: false,
            refused: None,
            standing: Reading::default(),
            plan,
        })
    }

    /// Opens connections, runs the schedule from the time that `ready` returns, drains, and returns what is left to tell.
    /// Where that time has passed, what was due since is late.
    ///
    /// # Errors
    /// When the load model cannot be run.
    pub fn run(mut self, ready: impl FnOnce() -> u64) -> Result<ShardEnd, ModelError> {
        self.open_connections();
        let start_ns = ready();
        self.run_from(start_ns)
    }

    /// The same behind [`Shard::open_connections`].
    ///
    /// # Errors
    /// When the load model cannot be run.
    pub fn run_from(mut self, start_ns: u64) -> Result<ShardEnd, ModelError> {
        self.begin_run(start_ns)?;
        loop {
            let now_ns = self.clock.now_ns();
            self.notice(now_ns);
            self.take_marks(now_ns);
            self.wake_resting(now_ns);
            self.call_clients(now_ns);
            self.send_again();
            // Before anything is sent: a timeout frees a client and a connection for the next request.
            if now_ns >= self.next_scan_ns {
                self.expire(now_ns);
            }
            self.sending_begins(now_ns);
            let next_due_ns = self.dispatch();
            self.flush();
            let now_ns = self.clock.now_ns();
            self.sending_ends(now_ns);
            self.grow();
            self.show_standing();
            self.tick(now_ns);
            if self.is_over(now_ns) {
                break;
            }
            if self.sessions.is_full() {
                self.hold(now_ns);
                continue;
            }
            let until_ns = self.wake_time(now_ns, next_due_ns);
            self.wait(until_ns, now_ns);
            self.take_completions();
        }
        Ok(self.finish())
    }

    /// Shows how the shard stands, where somebody looks.
    fn show_standing(&mut self) {
        let Some(gauge) = self.plan.part.gauges.first() else { return };
        self.standing.under_way = u64::from(self.flights.len());
        self.standing.queued = self.managed.as_ref().map_or(0, ManagedQueue::len) as u64;
        gauge.show(&self.standing);
        self.standing.longest_wait_ns = 0;
    }

    /// When the next thing happens that no completion announces.
    fn wake_time(&self, now_ns: u64, next_due_ns: u64) -> u64 {
        let rest_ns = self.resting.peek().map_or(u64::MAX, |Reverse(rest)| rest.until_ns);
        let expiry_ns =
            self.managed.as_ref().and_then(ManagedQueue::next_expiry_ns).unwrap_or(u64::MAX);
        let call_ns = if self.uncalled.is_empty() { u64::MAX } else { self.sessions.wake_ns() };
        let end_ns = if now_ns < self.end_ns { self.end_ns } else { self.drained_by_ns() };
        // The connection of a request broke behind the last look at those to be sent again.
        let again_ns =
            if self.may_send_again && !self.unprocessed.is_empty() { now_ns } else { u64::MAX };
        next_due_ns
            .min(rest_ns)
            .min(expiry_ns)
            .min(call_ns)
            .min(again_ns)
            .min(self.next_mark_ns())
            .min(end_ns)
            .min(self.next_scan_ns)
            .min(self.next_tick_ns())
            .min(now_ns + STOP_CHECK_NS)
    }

    /// Receives nothing for a moment, as the sessions cannot take it. In that time the generator stands still: it counts for no
    /// request.
    fn hold(&mut self, now_ns: u64) {
        self.net.wait(now_ns + HOLD_NS, WaitMode::Hold);
        let passed_ns = self.clock.now_ns().saturating_sub(now_ns);
        self.flights.postpone(passed_ns);
        self.next_scan_ns = self.next_scan_ns.saturating_add(passed_ns);
    }

    fn wait(&mut self, until_ns: u64, now_ns: u64) {
        let under_way = self.flights.len();
        let gather_ns = self.sessions.gather_ns();
        let mode = if gather_ns > 0 {
            WaitMode::Batch { gather_ns }
        } else if self.plan.batching && under_way >= BATCHING_FROM {
            // Sleeping and waking for each answer costs the server too; a short nap gathers many.
            if self.last_batch * 4 < u64::from(under_way) {
                WaitMode::Batch { gather_ns: GATHER_NS }
            } else {
                WaitMode::Sleep
            }
        } else if self.plan.spin_ns > 0 && until_ns > now_ns {
            WaitMode::Spin { before_ns: self.plan.spin_ns }
        } else {
            WaitMode::Sleep
        };
        self.net.wait(until_ns, mode);
    }

    fn take_completions(&mut self) {
        let mut buffer = std::mem::take(&mut self.buffer);
        let ended_before = self.standing.completed();
        let mut taken = 0;
        let mut by_ns = u64::MAX;
        while let Some((key, completion)) = self.net.next(&mut buffer) {
            taken += 1;
            self.complete(key, completion, &buffer);
            // What is left is found again by the next wait; deadlines and the end must not wait for costly checks.
            if taken % ROUND_LOOK == 0 {
                let now_ns = self.clock.now_ns();
                if now_ns >= by_ns {
                    break;
                }
                by_ns = by_ns.min(now_ns + ROUND_NS);
            }
        }
        self.buffer = buffer;
        // Where one connection carries all that is under way, one completion may be the answers to all of it; of several,
        // each may have something to be gathered.
        let ended = self.standing.completed() - ended_before;
        self.last_batch = if self.connections.len() == 1 { ended.max(taken) } else { taken };
    }

    /// Whether everything has come to its end.
    fn is_over(&mut self, now_ns: u64) -> bool {
        if self.stopped_ns.is_none() && self.stop.load(Ordering::Relaxed) {
            self.stopped_ns = Some(now_ns);
            // Whoever stops a run that only waits for its last replies takes nothing from what was to be measured.
            self.interrupted = now_ns < self.end_ns;
            self.drain_cut = !self.interrupted && (self.flights.len() > 0 || !self.schedule_done);
            self.end_ns = self.end_ns.min(now_ns);
        }
        if self.plan.part.end_early.as_ref().is_some_and(|early| early.load(Ordering::Relaxed)) {
            self.end_ns = self.end_ns.min(now_ns);
            self.end_schedule(self.end_ns);
        }
        if now_ns >= self.backlog_until_ns() {
            self.end_schedule(self.end_ns);
        }
        if now_ns >= self.drained_by_ns() {
            self.flights.all_overdue(now_ns);
            self.expire(now_ns);
        }
        if !self.schedule_done {
            return false;
        }
        let queued = self.managed.as_ref().is_some_and(|queue| !queue.is_empty());
        let under_way = self.flights.len() > 0 || queued;
        let has_waited = self.stopped_ns.is_some_and(|at_ns| now_ns >= at_ns + STOP_GRACE_NS);
        !under_way || has_waited
    }
}

/// How long nothing is received before the sessions are asked again whether they can take it, ns.
const HOLD_NS: u64 = SECOND_NS / 1000;
/// Answers under way from which on gathering pays.
pub const BATCHING_FROM: u32 = 16;
/// How long to gather, ns.
const GATHER_NS: u64 = 50_000;

/// Whether a model goes as fast as the target answers, so that answers may be gathered in batches.
#[must_use]
pub fn is_full_speed(model: &LoadModel) -> bool {
    model.is_full_speed()
}
