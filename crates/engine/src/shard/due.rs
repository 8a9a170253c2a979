//! From due to sent.

use super::books::noticing::STALL_NS;
use super::connections::closed::ClosedConnections;
use super::connections::connection::State;
use super::connections::idle::IdleOpen;
use super::{Rest, Shard};
use crate::net::Net;
use plimsoll_core::admission::{Due, Offer};
use plimsoll_core::clock::Clock;
use plimsoll_core::recorder::{Recorder, Times};
use plimsoll_core::schedule::{Next, Schedule};
use plimsoll_wire::{Protocol, Turn, UNTIL_CALLED};
use std::cmp::Reverse;

/// Idle connections that are looked at for one that suits a request better.
const LOOKED_AT_MAX: usize = 64;
/// How long a client or a user waits after its request was refused, ns.
const REFUSED_PAUSE_NS: u64 = 10_000_000;

impl<P: Protocol, N: Net, C: Clock> Shard<P, N, C> {
    /// Sends everything that is due and can be sent; says when the schedule wants to be asked again, ns.
    pub(super) fn dispatch(&mut self) -> u64 {
        self.send_again();
        self.reading.left = 0;
        if self.managed.is_some() {
            return self.dispatch_managed();
        }
        while !self.schedule_done && (self.dedicated || self.has_idle()) {
            let was_shared = self.reading.left > 0;
            let now_ns = self.read_clock();
            self.schedule.see_backlog(u64::from(self.flights.len()), now_ns);
            match self.schedule.next(now_ns) {
                Next::Send { intended_ns, client } => {
                    let due = Due { intended_ns, client };
                    match self.pick(client) {
                        Some(key) => self.begin(due, key, now_ns),
                        // Only a dedicated connection can be busy here, and its client is then waiting.
                        None => debug_assert!(false, "a client that waits became due"),
                    }
                }
                // It may have become due since the reading.
                Next::Wait { .. } if was_shared => self.reading.left = 0,
                Next::Wait { until_ns } => return until_ns,
                Next::Blocked => return u64::MAX,
                Next::Done => self.schedule_done = true,
            }
        }
        // Also while every connection is busy: a backlog that has fallen far enough is seen when it has.
        self.schedule.see_backlog(u64::from(self.flights.len()), self.clock.now_ns());
        u64::MAX
    }

    fn dispatch_managed(&mut self) -> u64 {
        let now_ns = self.clock.now_ns();
        let mut next_due_ns = u64::MAX;
        let mut first_ns = None;
        while !self.schedule_done {
            match self.schedule.next(now_ns) {
                Next::Send { intended_ns, client } => {
                    // A burst is due at once, whoever is late; what was due one after the other was not.
                    let is_bunched = intended_ns
                        .saturating_sub(*first_ns.get_or_insert(intended_ns))
                        >= STALL_NS;
                    self.offer(Due { intended_ns, client }, now_ns, is_bunched)
                }
                Next::Wait { until_ns } => {
                    next_due_ns = until_ns;
                    break;
                }
                Next::Blocked => break,
                Next::Done => self.schedule_done = true,
            }
        }
        while let Some(due) = self.managed.as_mut().and_then(|queue| queue.expired(now_ns)) {
            self.timed_out_in_queue(due, now_ns);
        }
        while self.has_idle() {
            let under_way = self.flights.len();
            let Some(due) = self.managed.as_mut().and_then(|queue| queue.take(under_way)) else {
                break;
            };
            let Some(key) = self.pick(due.client) else { break };
            let now_ns = self.read_clock();
            let waited_ns = now_ns.saturating_sub(due.intended_ns);
            self.standing.longest_wait_ns = self.standing.longest_wait_ns.max(waited_ns);
            self.begin(due, key, now_ns);
        }
        self.look_at_backlog(next_due_ns)
    }

    /// Tells the schedule how many wait, now that all who could go have gone; says when it wants to be asked again, ns.
    fn look_at_backlog(&mut self, next_due_ns: u64) -> u64 {
        let queued = self.managed.as_ref().map_or(0, |queue| queue.len() as u64);
        self.schedule.see_backlog(queued, self.clock.now_ns());
        match &self.schedule {
            Schedule::Paced(paced) if !self.schedule_done => paced.upcoming_ns(),
            _ => next_due_ns,
        }
    }

    /// Puts a due request into the managed queue, or refuses it. It is counted when it leaves the queue, so
    /// that the books of every second balance.
    fn offer(&mut self, due: Due, now_ns: u64, is_bunched: bool) {
        let under_way = self.flights.len();
        let Some(queue) = &mut self.managed else { return };
        if queue.offer(due, under_way) == Offer::Refused {
            let is_late = is_bunched && now_ns.saturating_sub(self.could_ask_ns(due)) >= STALL_NS;
            let interval = self.recorder_for(due.intended_ns, due.client).interval_mut();
            interval.ledger.refused.queue_full += 1;
            interval.counters.refused_late += u64::from(is_late);
            // It did not wait: it was turned away at once.
            interval.unserved.record(0);
            self.standing.queue_full += 1;
            self.turned_away(due, now_ns);
        }
    }

    /// Counts a request whose time in the queue is over. While a slot was free it would have had that, had this thread
    /// looked in time; but not a client that was behind its cycle, and could ask only when that time was over.
    fn timed_out_in_queue(&mut self, due: Due, now_ns: u64) {
        let in_flight = self.flights.len();
        let was_free = self.managed.as_ref().is_some_and(|queue| queue.has_slot(in_flight));
        let is_late = was_free && self.could_ask_ns(due) < self.expiry_ns(due);
        let interval = self.recorder_for(due.intended_ns, due.client).interval_mut();
        interval.ledger.refused.queue_timeout += 1;
        interval.counters.refused_late += u64::from(is_late);
        interval.unserved.record(now_ns.saturating_sub(due.intended_ns));
        self.standing.queue_timeout += 1;
        self.turned_away(due, now_ns);
    }

    /// When the queue no longer holds a request, ns.
    fn expiry_ns(&self, due: Due) -> u64 {
        self.managed.as_ref().map_or(u64::MAX, |queue| queue.expiry_ns(due))
    }

    /// When whoever asks could ask, ns: a client that is behind its cycle is late for the target's sake, not for the
    /// generator's.
    #[inline]
    fn could_ask_ns(&self, due: Due) -> u64 {
        let client_free_ns = match self.schedule.user_turn(due.client) {
            Some(turn) => turn.free_ns,
            None => self.client_free_since_ns.get(due.client as usize).copied().unwrap_or(0),
        };
        due.intended_ns.max(client_free_ns)
    }

    /// Counts a request that was refused. Its client, where there is one, pauses: it would ask again in the
    /// same moment, and be refused again, without end.
    fn turned_away(&mut self, due: Due, now_ns: u64) {
        self.count_due(due.intended_ns);
        self.recorder_for(due.intended_ns, due.client).scheduled(1);
        if self.plan.model.has_askers() {
            let until_ns = now_ns + REFUSED_PAUSE_NS;
            let client = Some((due.client, due.intended_ns));
            self.resting.push(Reverse(Rest { until_ns, connection: None, client }));
        }
    }

    /// Counts a request by when it was due, where somebody asks for that.
    #[inline]
    pub(super) fn count_due(&self, intended_ns: u64) {
        if let Some(windows) = self.plan.part.windows.first() {
            windows.due(intended_ns.saturating_sub(self.start_ns));
        }
    }

    /// Whether a connection can be picked; of those that are open, the one that has been idle longest comes first.
    #[inline]
    pub(super) fn has_idle(&mut self) -> bool {
        // What a schedule has given is gone from it: only a connection that can be picked counts.
        self.drop_stale();
        !self.idle_open.is_empty() || !self.idle_closed.is_empty()
    }

    /// A connection for a due request: an open one before one that must be opened. [`Shard::has_idle`] has been asked.
    #[inline]
    pub(super) fn pick(&mut self, client: u32) -> Option<u32> {
        if self.dedicated {
            let connection = &self.connections[client as usize];
            let free = connection.opening_for.is_none() && connection.under_way.is_empty();
            return free.then_some(client);
        }
        loop {
            let key = self.idle_open.take().or_else(|| self.idle_closed.take())?;
            let connection = &mut self.connections[key as usize];
            connection.queued = false;
            let is_free = matches!(connection.state, State::Open | State::Closed)
                && connection.opening_for.is_none();
            debug_assert!(is_free, "a connection in state {:?} was idle", connection.state);
            if is_free {
                return Some(key);
            }
        }
    }

    /// Takes connections that have no room any more from the front of the open ones.
    #[inline]
    fn drop_stale(&mut self) {
        while let Some(key) = self.idle_open.front()
            && !self.has_room(key)
        {
            self.idle_open.take();
            let connection = &mut self.connections[key as usize];
            if connection.state == State::Closed {
                // Its peer closed it while it was idle.
                self.idle_closed.give_back(key, connection.target);
            } else {
                // It takes less than when it was queued, and is given back when it takes more again.
                debug_assert!(connection.state == State::Open, "{:?}", connection.state);
                connection.queued = false;
            }
        }
    }

    /// The connection that a request written for connection `key` goes on: another one, if the codec says that this one does
    /// not suit it and one that does is idle.
    fn better_connection(&mut self, key: u32, tag: u32) -> u32 {
        let request = &self.flights.get(tag).request;
        let suits = |key: u32| {
            let codec = self.connections[key as usize].codec.as_ref();
            codec.is_none_or(|codec| self.protocol.suits(codec, request))
        };
        if self.dedicated || suits(key) {
            return key;
        }
        let looked_at = self.idle_open.iter().take(LOOKED_AT_MAX);
        let mut suited = looked_at.filter(|&other| self.has_room(other) && suits(other));
        let Some(better) = suited.next() else { return key };
        drop(suited);
        self.idle_open.remove(better);
        self.connections[better as usize].queued = false;
        self.put_back(key);
        better
    }

    /// Whether a connection is open and takes one more request.
    #[inline]
    pub(super) fn has_room(&self, key: u32) -> bool {
        let connection = &self.connections[key as usize];
        let codec = connection.codec.as_ref().filter(|_| connection.state == State::Open);
        codec.is_some_and(|codec| self.takes_more(codec, connection.carried))
    }

    /// Whether a connection that has carried so many requests takes one more.
    #[inline]
    pub(super) fn takes_more(&self, codec: &P::Conn, carried: u64) -> bool {
        (self.plan.keep_alive || carried == 0) && self.protocol.capacity(codec) > 0
    }

    /// Whether a request counts, by its intended start and by how many its client has done.
    #[inline]
    fn is_measured(&self, intended_ns: u64, client: u32) -> bool {
        intended_ns >= self.start_ns + self.plan.warmup_ns
            && (self.plan.ignore_first == 0
                || self
                    .client_ended
                    .get(client as usize)
                    .is_none_or(|&ended| ended >= self.plan.ignore_first))
    }

    pub(super) fn recorder_for(&mut self, intended_ns: u64, client: u32) -> &mut Recorder {
        let measured = self.is_measured(intended_ns, client);
        self.recorder_of(measured)
    }

    #[inline]
    pub(super) fn recorder_of(&mut self, measured: bool) -> &mut Recorder {
        match &mut self.warmup {
            Some(warmup) if !measured => warmup,
            _ => &mut self.recorder,
        }
    }

    /// Lets a session write its next request and sends it on connection `key`.
    fn begin(&mut self, mut due: Due, key: u32, now_ns: u64) {
        let mut measured = self.is_measured(due.intended_ns, due.client);
        let tag = self.flights.take_slot();
        let flight = self.flights.get_mut(tag);
        let target = self.connections[key as usize].target;
        if let Some(turn) = self.schedule.user_turn(due.client) {
            self.sessions.user(due.client, turn);
        }
        let what = match self.sessions.next(due.client, target, &mut flight.request) {
            Turn::Ask(what) => what,
            Turn::Exhausted => {
                self.flights.release(tag);
                self.schedule.withdraw();
                self.exhausted = true;
                if let Some(exhausted_ns) = self.client_exhausted_ns.get_mut(due.client as usize) {
                    *exhausted_ns = now_ns;
                }
                self.put_back(key);
                return;
            }
            Turn::Rest { until_ns } => {
                self.flights.release(tag);
                self.schedule.postpone();
                self.rest_client(due, until_ns);
                self.put_back(key);
                return;
            }
        };
        let key = self.better_connection(key, tag);
        if let Some(due_ns) = self.sessions.due_ns() {
            due.intended_ns = due_ns.min(now_ns);
            measured = self.is_measured(due.intended_ns, due.client);
        }
        let times = Times { intended_ns: due.intended_ns, sent_ns: now_ns, done_ns: 0 };
        self.flights.get_mut(tag).begin(what, due.client, key, times, measured);
        let connection = &self.connections[key as usize];
        let could_ask_ns = self.could_ask_ns(due);
        let could_start_ns =
            could_ask_ns.max(connection.free_since_ns).max(self.slot_free_since_ns);
        // Behind slots it is the queue that requests wait in, unless a slot was free and no connection was.
        let could_have_ns = could_ask_ns.max(self.slot_free_since_ns);
        let waited_ns = if self.dedicated { 0 } else { could_start_ns - could_have_ns };
        // Only a connection that its client always uses may be open and take nothing now.
        let takes_it = connection.state == State::Open && (!self.dedicated || self.has_room(key));
        if self.plan.ignore_first > 0 {
            self.begin_to_measure(due.client, could_ask_ns);
        }
        self.count_due(due.intended_ns);
        if let Some(windows) = self.plan.part.windows.first() {
            windows.sent(due.intended_ns.saturating_sub(self.start_ns), what.class);
        }
        self.standing.sent += 1;
        let recorder = self.recorder_of(measured);
        recorder.scheduled(1);
        recorder.sent(what.class, could_start_ns, now_ns);
        if waited_ns > 0 {
            recorder.waited(waited_ns);
        }
        self.notice_lag(now_ns.saturating_sub(could_start_ns), now_ns, measured);
        if takes_it {
            self.submit(key, tag, now_ns);
        } else {
            self.wait_for_connection(key, tag, now_ns);
        }
    }

    /// Where the first requests of each client do not count, its time begins when it could ask the first that does.
    fn begin_to_measure(&mut self, client: u32, could_ask_ns: u64) {
        let client = client as usize;
        if self.client_ended.get(client) == Some(&self.plan.ignore_first) {
            self.client_from_ns[client] = could_ask_ns;
        }
    }

    /// Lets a request wait for its connection, for as long as one may take to open.
    fn wait_for_connection(&mut self, key: u32, tag: u32, now_ns: u64) {
        let deadline_ns = self.deadline_ns(now_ns, self.plan.timeouts.connect_ns);
        self.flights.set_deadline(tag, deadline_ns);
        self.scan_by(deadline_ns);
        self.reading.left = 0;
        self.wait_on(key, tag);
    }

    /// Lets a request wait until its connection takes it, and opens that unless it is open or being opened.
    pub(super) fn wait_on(&mut self, key: u32, tag: u32) {
        let connection = &mut self.connections[key as usize];
        if connection.opening_for.is_some() {
            debug_assert!(false, "a connection is opened for one request");
            return self.wait_to_go_again(tag);
        }
        connection.opening_for = Some(tag);
        if connection.state == State::Closed {
            self.open(key);
        }
    }

    /// Lets a client rest that has nothing to ask.
    fn rest_client(&mut self, due: Due, until_ns: u64) {
        let client = (due.client, due.intended_ns);
        if until_ns == UNTIL_CALLED {
            self.uncalled.push_back(client);
        } else {
            self.resting.push(Reverse(Rest { until_ns, connection: None, client: Some(client) }));
        }
    }

    /// Lets as many clients go on as their sessions have something to ask for.
    pub(super) fn call_clients(&mut self, now_ns: u64) {
        if self.uncalled.is_empty() {
            return;
        }
        for _ in 0..self.sessions.called(now_ns) {
            let Some((client, intended_ns)) = self.uncalled.pop_front() else { break };
            self.client_goes_on(client, intended_ns, now_ns);
        }
    }

    #[inline]
    pub(super) fn scan_by(&mut self, deadline_ns: u64) {
        self.next_scan_ns = self.next_scan_ns.min(deadline_ns);
    }

    /// Puts a connection that is not in use back among the idle ones, behind the others.
    #[inline]
    pub(super) fn give_back(&mut self, key: u32) {
        self.may_send_again |= !self.unprocessed.is_empty();
        self.queue_idle(key, IdleOpen::give_back, ClosedConnections::give_back);
    }

    /// Puts a connection that was picked and not used back where it was.
    fn put_back(&mut self, key: u32) {
        self.queue_idle(key, IdleOpen::put_back, ClosedConnections::put_back);
    }

    /// Puts a connection into the queue that its state says, unless it is in one.
    #[inline]
    fn queue_idle(
        &mut self,
        key: u32,
        open: fn(&mut IdleOpen, u32),
        closed: fn(&mut ClosedConnections, u32, u32),
    ) {
        let connection = &mut self.connections[key as usize];
        if self.dedicated || connection.queued {
            return;
        }
        match connection.state {
            State::Open => open(&mut self.idle_open, key),
            State::Closed => closed(&mut self.idle_closed, key, connection.target),
            State::Connecting | State::Handshaking | State::Resting => return,
        }
        connection.queued = true;
    }
}
