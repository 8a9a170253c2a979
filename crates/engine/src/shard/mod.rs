//! A shard: one thread's share of a run, with its connections, sessions and books.
//!
//! It is made of parts that own their state, in the order in which a request meets them:
//!
//! | part | owns | a request |
//! |---|---|---|
//! | `Course` | start, end, whatever ends the run early | has its deadlines from it |
//! | `Agenda` | schedule, admission, who rests | becomes due, is let in or refused |
//! | `Flights` | requests in flight, their deadlines | is written into its slot |
//! | `Connections` | which are open, idle, needed; codecs; what is to be sent again | gets its connection |
//! | `Line` | network, TLS, buffers, what goes out together | is sent, and answered |
//! | `Books` | recorders, seconds, samples, windows, marks | is written down |
//!
//! Parts do not know each other. The shard takes a request from one to the next: `due` lets it begin, `sending` encodes and
//! sends it, `receiving` decodes what comes back, `settling` ends it; `opening`, `securing` and `losing` are about
//! connections that come and go, `unserved` and `ending` about the end of the run. The invariants of a part stand above it and
//! are asserted there; what must hold between parts is in `audit`. Nothing on the walk allocates, locks or formats.

mod agenda;
mod books;
mod connections;
mod course;
mod flight;
mod line;
mod plan;

// The walk of a request from part to part.
mod audit;
mod due;
mod ending;
mod losing;
mod opening;
mod reason;
mod receiving;
mod securing;
mod sending;
mod settling;
mod unserved;

use crate::net::{Net, RoundTrip, WaitMode};
use agenda::Agenda;
use audit::Rounds;
use books::Books;
pub use books::{Mark, Message, Outbox, Slow};
use connections::Connections;
use course::Course;
use flight::Flights;
use line::Line;
pub use plan::{Agreement, Part, ShardPlan, Timeouts, UsersBefore};
use plimsoll_core::clock::{Clock, SECOND_NS};
use plimsoll_core::interval::Interval;
use plimsoll_core::schedule::ModelError;
use plimsoll_core::verdict::Health;
use plimsoll_wire::{Protocol, Sessions};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Time that a stop that the user asked for waits for answers, ns.
const STOP_GRACE_NS: u64 = SECOND_NS / 2;
/// Longest wait before looking whether a stop was asked for, ns.
const STOP_CHECK_NS: u64 = SECOND_NS / 20;
/// Longest time for which completions are taken before deadlines are looked at, ns, and how many of them pass between two
/// looks at the clock.
const ROUND_NS: u64 = SECOND_NS / 50;
const ROUND_LOOK: u64 = 64;

/// Result of a shard.
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
    /// Time at which the measured stretch began and ended, ns on the engine's clock.
    pub measured_ns: (u64, u64),
    /// Sum over clients of the time from their first measured moment to their last answer, to the end of the schedule
    /// when that was later, or to when they had nothing left to ask, ns.
    pub client_elapsed_ns: u64,
    /// Clients that had a measured moment.
    pub clients_measured: u32,
    /// Measurements of itself over the measured stretch.
    pub health: Health,
    /// Time at which its last success ended, ns on the engine's clock, and how many requests failed after it.
    pub last_success: (u64, u64),
    /// Connections that came to be used.
    pub connections: u32,
    /// Resources used at the beginning and at the end of the measured stretch.
    pub marks: (Mark, Mark),
    /// True if it was asked to stop before the end of the measured stretch.
    pub interrupted: bool,
    /// True if it was asked to stop after that, while it waited for the last replies or sent what was left: what was cut is
    /// `unfinished` or `unsent`.
    pub drain_cut: bool,
    /// Reason why the target would not have it, where a login was refused: the run ended with it.
    pub refused: Option<&'static str>,
}

/// One thread's share of a run.
pub struct Shard<P: Protocol, N: Net, C: Clock> {
    plan: ShardPlan,
    protocol: P,
    clock: C,
    sessions: Box<dyn Sessions<P>>,
    /// True if the sessions ask replies for the server's own time.
    asks_server_time: bool,
    course: Course,
    agenda: Agenda,
    flights: Flights<P>,
    connections: Connections<P>,
    line: Line<N>,
    books: Books,
    /// Completions of the last batch; of an only connection, requests that ended in it.
    last_batch: u64,
    rounds: Rounds,
}

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
        let agenda = match Agenda::new(&plan, protocol.depth()) {
            Ok(agenda) => agenda,
            Err(error) => {
                sessions.finish(clock.now_ns());
                return Err(error);
            }
        };
        let clients = agenda.clients();
        Ok(Self {
            course: Course::new(&plan, stop),
            flights: Flights::new(),
            connections: Connections::new(&plan, clients, agenda.is_managed()),
            line: Line::new(net, plan.connections),
            books: Books::new(&plan, clients, protocol.depth(), outbox),
            last_batch: 0,
            rounds: Rounds::default(),
            plan,
            protocol,
            clock,
            asks_server_time: sessions.asks_server_time(),
            sessions,
            agenda,
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
        if let Err(error) = self.begin_run(start_ns) {
            self.abandon();
            return Err(error);
        }
        loop {
            let now_ns = self.clock.now_ns();
            self.notice(now_ns);
            self.wake_resting(now_ns);
            self.call_clients(now_ns);
            self.send_again();
            // Before anything is sent: a timeout frees a client and a connection for the next request.
            if now_ns >= self.flights.next_scan_ns() {
                self.expire(now_ns);
            }
            self.expire_ahead(now_ns);
            self.books.sending_begins(now_ns);
            let next_due_ns = self.dispatch();
            self.flush();
            let now_ns = self.clock.now_ns();
            self.books.sending_ends(now_ns);
            let next_due_ns = if self.grow() { now_ns } else { next_due_ns };
            self.books.show(self.flights.len(), self.agenda.queued());
            let is_second_over = self.books.tick(now_ns, self.flights.len());
            if self.is_over(now_ns) {
                break;
            }
            self.audit(is_second_over);
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

    pub(super) fn begin_run(&mut self, start_ns: u64) -> Result<(), ModelError> {
        self.agenda.begin(&self.plan, start_ns)?;
        self.course.begin(start_ns);
        self.connections.begin(start_ns);
        self.books.begin(&self.plan, &self.course);
        // A run that was stopped before its start sends nothing, though its first requests are due.
        self.course.notice_stop(start_ns, || true);
        if self.course.refusal().is_some() || self.course.is_stop_asked() {
            self.course.end_by(start_ns);
            self.end_schedule(start_ns);
        }
        Ok(())
    }

    /// Notices what the shard does itself to the times, and takes the marks that are due.
    #[inline]
    fn notice(&mut self, now_ns: u64) {
        if self.books.look(now_ns) {
            let signs = self.line.vitals();
            self.books.notice(now_ns, signs);
        }
        let end_ns = self.course.end_ns();
        if now_ns >= self.books.next_mark_ns(end_ns) {
            let mark = self.mark(now_ns);
            self.books.set_mark(mark, end_ns);
        }
    }

    /// Returns the resources used up to now.
    fn mark(&mut self, at_ns: u64) -> Mark {
        let signs = self.line.vitals();
        self.books.mark(at_ns, self.line.idle_ns(), signs)
    }

    /// Time at which the next thing happens that no completion announces.
    fn wake_time(&self, now_ns: u64, next_due_ns: u64) -> u64 {
        let end_ns = self.course.end_ns();
        let over_ns =
            if self.course.has_ended(now_ns) { self.course.drained_by_ns() } else { end_ns };
        // The connection of a request broke behind the last look at those to be sent again.
        let again_ns = if self.connections.is_again_due() { now_ns } else { u64::MAX };
        // Growth looks behind a wait that slept, and no more once all requests have begun.
        let growth_ns = match self.agenda.is_done() {
            true => u64::MAX,
            false => self.connections.next_growth_ns().max(now_ns + GROWTH_LOOK_NS),
        };
        let ahead_ns = self.connections.ahead_since_ns().map(|ns| self.course.connect_by_ns(ns));
        next_due_ns
            .min(ahead_ns.unwrap_or(u64::MAX))
            .min(self.agenda.next_rest_ns(|| self.sessions.wake_ns()))
            .min(self.agenda.next_expiry_ns())
            .min(again_ns)
            .min(growth_ns)
            .min(self.books.next_mark_ns(end_ns))
            .min(over_ns)
            .min(self.flights.next_scan_ns())
            .min(self.books.next_tick_ns())
            .min(now_ns + STOP_CHECK_NS)
    }

    /// Receives nothing for a moment, as the sessions cannot take it. In that time the generator stands still: it counts for no
    /// request.
    fn hold(&mut self, now_ns: u64) {
        self.line.wait(now_ns + HOLD_NS, WaitMode::Hold);
        let passed_ns = self.clock.now_ns().saturating_sub(now_ns);
        self.flights.postpone(passed_ns);
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
        self.line.wait(until_ns, mode);
    }

    fn take_completions(&mut self) {
        let mut buffer = self.line.take_buffer();
        let ended_before = self.books.completed();
        let mut taken = 0;
        let mut by_ns = u64::MAX;
        while let Some((key, completion)) = self.line.next(&mut buffer) {
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
        self.line.return_buffer(buffer);
        // Where one connection carries all that is in flight, one completion may be the answers to all of it; of several,
        // each may have something to be gathered.
        let ended = self.books.completed() - ended_before;
        self.last_batch = if self.connections.len() == 1 { ended.max(taken) } else { taken };
    }
}

/// Time that nothing is received before the sessions are asked again whether they can take it, ns.
const HOLD_NS: u64 = SECOND_NS / 1000;
/// Connections that are missing are looked for at most this often while nothing else happens, ns.
const GROWTH_LOOK_NS: u64 = 50_000;
/// Answers in flight from which on gathering pays.
pub const BATCHING_FROM: u32 = 16;
/// Time to gather, ns.
const GATHER_NS: u64 = 50_000;
