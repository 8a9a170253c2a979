//! From due to begun: what the schedule gives is let in, gets its connection, and is written by its session.

use super::Shard;
use super::agenda::Rest;
use super::books::{STALL_NS, Sent};
use super::connections::State;
use crate::net::Net;
use plimsoll_core::admission::{Due, Offer};
use plimsoll_core::clock::Clock;
use plimsoll_core::recorder::Times;
use plimsoll_core::schedule::Next;
use plimsoll_wire::{Protocol, Submission, Turn};

/// Time that a client or a user waits after its request was refused, ns.
const REFUSED_PAUSE_NS: u64 = 10_000_000;

impl<P: Protocol, N: Net, C: Clock> Shard<P, N, C> {
    /// Sends everything that is due and can be sent; says when the schedule wants to be asked again, ns.
    pub(super) fn dispatch(&mut self) -> u64 {
        self.send_again();
        self.line.forget_reading();
        if self.agenda.is_managed() {
            return self.dispatch_managed();
        }
        while !self.agenda.is_done() && self.connections.has_idle(&self.protocol) {
            let was_shared = self.line.shares_reading();
            let now_ns = self.line.read_clock(&self.clock);
            self.agenda.see_backlog(u64::from(self.flights.len()), now_ns);
            match self.agenda.next(now_ns) {
                Next::Send { intended_ns, client } => {
                    let due = Due { intended_ns, client };
                    match self.connections.pick(client) {
                        Some(key) => self.begin(due, key, now_ns),
                        // Only a dedicated connection can be busy here, and its client is then waiting.
                        None => debug_assert!(false, "a client that waits became due"),
                    }
                }
                // It may have become due since the reading.
                Next::Wait { .. } if was_shared => self.line.forget_reading(),
                Next::Wait { until_ns } => return until_ns,
                Next::Blocked => return u64::MAX,
                Next::Done => {}
            }
        }
        // Also while every connection is busy: a backlog that has fallen far enough is seen when it has.
        self.agenda.see_backlog(u64::from(self.flights.len()), self.clock.now_ns());
        u64::MAX
    }

    fn dispatch_managed(&mut self) -> u64 {
        let now_ns = self.clock.now_ns();
        let mut next_due_ns = u64::MAX;
        let mut first_ns = None;
        while !self.agenda.is_done() {
            match self.agenda.next(now_ns) {
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
                Next::Done => {}
            }
        }
        while let Some(due) = self.agenda.take_expired(now_ns) {
            self.timed_out_in_queue(due, now_ns);
        }
        while self.connections.has_idle(&self.protocol) {
            let Some(due) = self.agenda.take_waiting(self.flights.len()) else { break };
            let Some(key) = self.connections.pick(due.client) else { break };
            let now_ns = self.line.read_clock(&self.clock);
            self.books.left_queue(now_ns.saturating_sub(due.intended_ns));
            self.begin(due, key, now_ns);
        }
        // Bursts learn how many wait, now that all who could go have gone.
        self.agenda.see_backlog(self.agenda.queued(), self.clock.now_ns());
        self.agenda.upcoming_ns(next_due_ns)
    }

    /// Puts a due request into the managed queue, or refuses it. It is counted when it leaves the queue, so
    /// that the ledger of every second balance.
    fn offer(&mut self, due: Due, now_ns: u64, is_bunched: bool) {
        if self.agenda.offer(due, self.flights.len()) == Offer::Refused {
            let is_late =
                is_bunched && now_ns.saturating_sub(self.agenda.could_ask_ns(due)) >= STALL_NS;
            self.books.refused_queue_full(due, is_late);
            self.turned_away(due, now_ns);
        }
    }

    /// Counts a request whose time in the queue is over. While a slot was free it would have had that, had this thread
    /// looked in time; but not a client that was behind its cycle, and could ask only when that time was over.
    fn timed_out_in_queue(&mut self, due: Due, now_ns: u64) {
        let was_free = self.agenda.has_slot(self.flights.len());
        let is_late = was_free && self.agenda.could_ask_ns(due) < self.agenda.expiry_ns(due);
        self.books.refused_queue_timeout(due, is_late, now_ns);
        self.turned_away(due, now_ns);
    }

    /// The client of a refused request, where there is one, pauses: it would ask again in the
    /// same moment, and be refused again, without end.
    fn turned_away(&mut self, due: Due, now_ns: u64) {
        if self.plan.model.has_askers() {
            let until_ns = now_ns + REFUSED_PAUSE_NS;
            self.agenda.resting().rest_client(due.client, due.intended_ns, until_ns);
        }
    }

    /// Lets a session write its next request and sends it on connection `key`.
    fn begin(&mut self, mut due: Due, key: u32, now_ns: u64) {
        let tag = self.flights.take_slot();
        let Some(what) = self.ask(due, key, tag, now_ns) else { return };
        let target = self.connections.get(key).target();
        let request = &self.flights.get(tag).request;
        let key = self.connections.better_for(key, request, &self.protocol);
        if let Some(due_ns) = self.sessions.due_ns() {
            due.intended_ns = due_ns.min(now_ns);
        }
        let measured = self.books.is_measured(due.intended_ns, due.client);
        let times = Times { intended_ns: due.intended_ns, sent_ns: now_ns, done_ns: 0 };
        self.flights.get_mut(tag).begin(what, due.client, (key, target), times, measured);
        let connection = self.connections.get(key);
        let could_ask_ns = self.agenda.could_ask_ns(due);
        // Behind slots it is the queue that requests wait in, unless a slot was free and no connection was.
        let could_have_ns = could_ask_ns.max(self.agenda.slot_free_since_ns());
        let could_start_ns = could_have_ns.max(connection.free_since_ns());
        let is_dedicated = self.connections.is_dedicated();
        let waited_ns = if is_dedicated { 0 } else { could_start_ns - could_have_ns };
        // Only a connection that its client always uses may be open and take nothing now.
        let takes_it = connection.is_open()
            && (!is_dedicated || self.connections.has_room(key, &self.protocol));
        self.books.sent(&Sent {
            due,
            class: what.class,
            measured,
            now_ns,
            could_ask_ns,
            could_start_ns,
            waited_ns,
            in_flight: self.flights.len(),
        });
        if takes_it {
            self.submit(key, tag, now_ns);
        } else {
            self.wait_for_connection(key, tag, now_ns);
        }
    }

    /// Lets a session write its next request into the slot `tag`. Where it has none, slot and connection are put back,
    /// and the schedule takes the request back.
    #[inline]
    fn ask(&mut self, due: Due, key: u32, tag: u32, now_ns: u64) -> Option<Submission> {
        let target = self.connections.get(key).target();
        if let Some(turn) = self.agenda.user_turn(due.client) {
            self.sessions.user(due.client, turn);
        }
        let request = &mut self.flights.get_mut(tag).request;
        match self.sessions.next(due.client, target, request) {
            Turn::Ask(what) => return Some(what),
            Turn::Exhausted => {
                self.agenda.withdraw(due.client);
                self.books.exhausted(due.client, now_ns);
            }
            Turn::Rest { until_ns } => {
                self.agenda.postpone(due.client);
                self.agenda.resting().rest_client(due.client, due.intended_ns, until_ns);
            }
        }
        self.flights.release(tag);
        self.connections.put_back(key);
        None
    }

    /// Lets a request wait for its connection, for as long as one may take to open.
    fn wait_for_connection(&mut self, key: u32, tag: u32, now_ns: u64) {
        self.flights.set_deadline(tag, self.course.connect_by_ns(now_ns));
        self.line.forget_reading();
        self.wait_on(key, tag);
    }

    /// Lets a request wait until its connection takes it, and opens that unless it is open or being opened.
    pub(super) fn wait_on(&mut self, key: u32, tag: u32) {
        let connection = self.connections.get_mut(key);
        if connection.opening_for().is_some() {
            debug_assert!(false, "a connection is opened for one request");
            return self.wait_to_go_again(tag);
        }
        connection.wait(tag);
        if connection.state() == State::Closed {
            self.open(key);
        }
    }

    /// Lets connections and clients go on whose pause is over.
    #[inline]
    pub(super) fn wake_resting(&mut self, now_ns: u64) {
        while let Some(rest) = self.agenda.resting().take_rested(now_ns) {
            self.wake(rest, now_ns);
        }
    }

    fn wake(&mut self, rest: Rest, now_ns: u64) {
        if let Some(key) = rest.connection {
            let connection = self.connections.get_mut(key);
            connection.wake(now_ns);
            if connection.opening_for().is_some() {
                self.open(key);
            } else {
                self.connections.give_back(key);
            }
        }
        if let Some((client, intended_ns)) = rest.client {
            self.agenda.client_goes_on(client, intended_ns, now_ns);
        }
    }

    /// Lets as many clients go on as their sessions have something to ask for.
    #[inline]
    pub(super) fn call_clients(&mut self, now_ns: u64) {
        if !self.agenda.resting().is_anybody_uncalled() {
            return;
        }
        for _ in 0..self.sessions.called(now_ns) {
            let Some((client, intended_ns)) = self.agenda.resting().take_called() else { break };
            self.agenda.client_goes_on(client, intended_ns, now_ns);
        }
    }
}
