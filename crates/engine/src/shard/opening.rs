//! Connections that come up: before the start, for a request, and ahead of need.

use super::Shard;
use super::connections::State;
use super::reason::Reason;
use super::sending::BROKE;
use crate::net::{Net, NetError, WaitMode};
use plimsoll_core::clock::{Clock, SECOND_NS};
use plimsoll_core::outcome::Failure;
use plimsoll_wire::Protocol;

/// Connections being opened at once before the run starts.
const OPENING_MAX: usize = 512;
/// The run does not wait for connections of which none has come up or failed for this long, ns. A listener whose
/// queue is full drops what comes, and the kernel sends it again after one second.
const OPENING_IDLE_MAX_NS: u64 = SECOND_NS * 3 / 2;

impl<P: Protocol, N: Net, C: Clock> Shard<P, N, C> {
    /// Opens the connections that can be opened before the first request.
    pub fn open_connections(&mut self) {
        if self.plan.preconnect {
            self.open_all();
        }
        // Whatever did not come up is opened again by the first request that needs it.
        self.agenda.resting().clear();
        self.connections.forget_idle();
        for key in 0..self.connections.in_play() {
            if !self.connections.get(key).is_open() {
                self.line.close(key);
                self.connections.get_mut(key).reset();
            }
            self.connections.give_back(key);
        }
        let signs = self.line.vitals();
        self.books.set_ready(signs);
    }

    /// Opens all connections, as far as they come up. A host that says nothing at all is not waited for: its
    /// requests would still have their own timeouts before them, and the run must end within one of them.
    fn open_all(&mut self) {
        let patience_ns = self.plan.timeouts.connect_ns.min(OPENING_IDLE_MAX_NS);
        let mut give_up_ns = self.clock.now_ns() + patience_ns;
        let mut keys = 0..self.connections.in_play();
        // Only those that are being opened are looked at again and again, not all there are.
        let mut opening: Vec<u32> = Vec::with_capacity(OPENING_MAX);
        loop {
            let now_ns = self.clock.now_ns();
            let before = opening.len();
            opening.retain(|&key| self.is_opening(key));
            if opening.len() < before {
                give_up_ns = now_ns + patience_ns;
            }
            while opening.len() < OPENING_MAX
                && let Some(key) = keys.next()
            {
                self.open(key);
                opening.push(key);
            }
            let stopped = self.course.is_stop_asked();
            let all_tried = keys.is_empty() && !opening.iter().any(|&k| self.is_opening(k));
            if all_tried || now_ns >= give_up_ns || stopped {
                break;
            }
            self.line.wait(give_up_ns.min(now_ns + SECOND_NS / 20), WaitMode::Sleep);
            self.take_completions();
        }
    }

    fn is_opening(&self, key: u32) -> bool {
        let connection = self.connections.get(key);
        match connection.state() {
            State::Connecting | State::Handshaking => true,
            State::Open => connection.codec().is_some_and(|c| !self.protocol.is_ready(c)),
            State::Closed | State::Resting => false,
        }
    }

    /// Begins to connect to the next address of the connection's target.
    pub(super) fn open(&mut self, key: u32) {
        let mut refusal = None;
        let now_ns = self.clock.now_ns();
        loop {
            let connection = self.connections.get_mut(key);
            let target = &self.plan.targets[connection.target() as usize];
            let Some(address) = connection.dial(&target.addresses, now_ns) else {
                let reason = if target.addresses.is_empty() {
                    format!("host name '{}' cannot be resolved", target.host)
                } else {
                    refusal.unwrap_or(NetError::Unreachable).to_string()
                };
                self.open_failed(key, Failure::Connect, &reason);
                return;
            };
            match self.line.connect(key, address) {
                Ok(()) => return,
                Err(error) => refusal = Some(error),
            }
            self.count_exhausted(refusal);
            self.connections.get_mut(key).turn_to_next_address();
        }
    }

    /// Counts what this machine had no room for: that is not the target's failure.
    pub(super) fn count_exhausted(&mut self, error: Option<NetError>) {
        if error == Some(NetError::Exhausted) {
            let now_ns = self.clock.now_ns();
            self.books.counters(self.course.is_counting(now_ns)).exhausted += 1;
        }
    }

    /// The socket is connected; TLS or the codec takes over.
    pub(super) fn socket_is_up(&mut self, key: u32) {
        let now_ns = self.clock.now_ns();
        self.books.counters(self.course.is_counting(now_ns)).connects += 1;
        self.secure(key);
    }

    /// The connection is ready for requests; the one that waited for it goes first.
    pub(super) fn opened(&mut self, key: u32) {
        let now_ns = self.clock.now_ns();
        let mut greeting = Vec::new();
        let codec = self.protocol.open(&mut greeting);
        self.connections.opened(key, codec, now_ns);
        if !greeting.is_empty() && self.line.write(key, &greeting).is_err() {
            return self.lose(key, Failure::Reset, BROKE);
        }
        let takes_one = self.connections.has_room(key, &self.protocol);
        let connection = self.connections.get_mut(key);
        match connection.take_waiting() {
            Some(tag) if takes_one => self.submit(key, tag, now_ns),
            Some(tag) => connection.wait(tag),
            None => self.connections.give_back(key),
        }
    }

    /// A connection could not be made: the next address, or a failed request and a pause.
    pub(super) fn open_failed<'r>(
        &mut self,
        key: u32,
        failure: Failure,
        reason: impl Into<Reason<'r>>,
    ) {
        let now_ns = self.clock.now_ns();
        self.line.close(key);
        let connection = self.connections.get_mut(key);
        let addresses = self.plan.targets[connection.target() as usize].addresses.len();
        connection.turn_to_next_address();
        if failure == Failure::Connect && connection.has_untried(addresses) {
            return self.open(key);
        }
        let waiting = connection.take_waiting();
        let until_ns = now_ns + connection.rest();
        self.connections.again().look_again();
        let client = waiting.map(|tag| {
            let flight = self.flights.get(tag);
            let client = (flight.client, flight.times.intended_ns);
            self.settle_lost(tag, failure, reason, now_ns);
            client
        });
        self.agenda.resting().rest_connection(key, client, until_ns);
        // What was due in time may be sent after the end, but not to a target that is not there.
        // One that no request waited for says nothing about those that are open.
        if client.is_some() && self.course.has_begun() && self.course.has_ended(now_ns) {
            self.end_schedule(self.course.end_ns());
        }
    }

    /// Gives up connections that no request waits for, and that have not opened within the time for it.
    #[inline]
    pub(super) fn expire_ahead(&mut self, now_ns: u64) {
        while self.connections.ahead_since_ns().is_some()
            && let Some((key, asked_ns)) = self.connections.oldest_ahead()
            && self.course.connect_by_ns(asked_ns) <= now_ns
        {
            self.open_failed(key, Failure::Timeout, "no connection in time");
        }
    }

    /// The target will not have us: nothing that comes after will fix that.
    pub(super) fn turned_out(&mut self, why: &'static str) {
        self.course.refuse(why);
        if self.course.has_begun() {
            self.course.end_by(self.clock.now_ns());
            self.end_schedule(self.course.end_ns());
        }
    }

    /// Opens connections that will be needed. Returns true if a request that waits can use one at once.
    #[inline]
    pub(super) fn grow(&mut self) -> bool {
        self.connections.may_grow() && self.grow_to_need()
    }

    fn grow_to_need(&mut self) -> bool {
        let slept = self.connections.slept(self.line.idle_ns());
        if !slept || self.agenda.is_done() {
            return false;
        }
        let now_ns = self.clock.now_ns();
        let mut is_usable = false;
        let missing = self.connections.missing(self.flights.len(), self.protocol.depth(), now_ns);
        for _ in 0..missing {
            let Some(key) = self.connections.take_to_open() else { break };
            if self.connections.keep_alive() {
                self.open(key);
                self.connections.opens_ahead(key);
            } else {
                // Its request opens it. Before now it was not there to be used.
                self.connections.get_mut(key).set_free_since(now_ns);
                self.connections.give_back(key);
                is_usable = true;
            }
        }
        is_usable
    }
}
