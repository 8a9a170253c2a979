//! Connections that come and go, deadlines, seconds, the beginning and the end of a run.

use super::connections::connection::State;
use super::flight::NOWHERE;
use super::{Message, Rest, Shard, ShardPlan, UsersBefore};
use crate::net::{Net, NetError, WaitMode};
use plimsoll_core::clock::{Clock, SECOND_NS};
use plimsoll_core::outcome::Failure;
use plimsoll_core::schedule::{LoadModel, ModelError, Schedule};
use plimsoll_wire::Protocol;
use std::cmp::Reverse;

/// The first measured moment of a client that has had none.
pub(super) const NOT_YET: u64 = u64::MAX;
/// Connections being opened at once before the run starts.
const OPENING_MAX: usize = 512;
/// The run does not wait for connections of which none has come up or failed for this long, ns. A listener whose
/// queue is full drops what comes, and the kernel sends it again after one second.
const OPENING_IDLE_MAX_NS: u64 = SECOND_NS * 3 / 2;

impl ShardPlan {
    /// The cycle time of a closed model, or the pace of users, ns; 0: none.
    pub(super) const fn cycle_ns(&self) -> u64 {
        match self.model {
            LoadModel::Closed { cycle_ns, .. } => cycle_ns,
            LoadModel::Users { pace, .. } => pace.ns,
            _ => 0,
        }
    }
}

impl<P: Protocol, N: Net, C: Clock> Shard<P, N, C> {
    /// Opens the connections that can be opened before the first request.
    pub fn open_connections(&mut self) {
        if self.plan.preconnect {
            self.open_all();
        }
        // Whatever did not come up is opened again by the first request that needs it.
        self.resting.clear();
        self.idle_open.clear();
        self.idle_closed.clear();
        for key in 0..self.growth.in_play {
            self.connections[key as usize].queued = false;
            if self.connections[key as usize].state != State::Open {
                self.net.close(key);
                self.connections[key as usize].reset();
            }
            self.give_back(key);
        }
        self.mark_ready();
    }

    /// Opens all connections, as far as they come up. A host that says nothing at all is not waited for: its
    /// requests would still have their own timeouts before them, and the run must end within one of them.
    fn open_all(&mut self) {
        let patience_ns = self.plan.timeouts.connect_ns.min(OPENING_IDLE_MAX_NS);
        let mut give_up_ns = self.clock.now_ns() + patience_ns;
        let mut keys = 0..self.growth.in_play;
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
            let stopped = self.stop.load(std::sync::atomic::Ordering::Relaxed);
            let all_tried = keys.is_empty() && !opening.iter().any(|&k| self.is_opening(k));
            if all_tried || now_ns >= give_up_ns || stopped {
                break;
            }
            self.net.wait(give_up_ns.min(now_ns + SECOND_NS / 20), WaitMode::Sleep);
            self.take_completions();
        }
    }

    fn is_opening(&self, key: u32) -> bool {
        let connection = &self.connections[key as usize];
        match connection.state {
            State::Connecting | State::Handshaking => true,
            State::Open => connection.codec.as_ref().is_some_and(|c| !self.protocol.is_ready(c)),
            State::Closed | State::Resting => false,
        }
    }

    pub(super) fn begin_run(&mut self, start_ns: u64) -> Result<(), ModelError> {
        let plan = &self.plan;
        self.schedule = Schedule::start(&plan.model, plan.slice, plan.limits, plan.seed, start_ns)?;
        if let Some(UsersBefore { before_ns, answer_ns }) = plan.part.users_before {
            self.schedule.begin_before(before_ns, answer_ns);
        }
        self.start_ns = start_ns;
        self.end_ns = start_ns.saturating_add(plan.limits.duration_ns);
        self.last_ended_ns = start_ns;
        if let Some(windows) = plan.part.windows.first() {
            windows.start(start_ns);
        }
        for recorder in [Some(&mut self.recorder), self.warmup.as_mut()].into_iter().flatten() {
            recorder.begin(plan.part.phase, plan.part.offset_ns);
        }
        let measured_from_ns = self.measured_from_ns();
        self.client_from_ns.fill(if self.plan.ignore_first > 0 {
            NOT_YET
        } else {
            measured_from_ns
        });
        for connection in &mut self.connections {
            connection.free_since_ns = start_ns;
        }
        self.next_tick_ns = measured_from_ns + SECOND_NS;
        if self.refused.is_some() {
            self.end_ns = start_ns;
            self.end_schedule(start_ns);
        }
        Ok(())
    }

    pub(super) fn measured_from_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.plan.warmup_ns)
    }

    /// Whether the warm-up by time is over.
    pub(super) fn is_measuring(&self, now_ns: u64) -> bool {
        now_ns >= self.measured_from_ns()
    }

    /// Begins to connect to the next address of the connection's target.
    pub(super) fn open(&mut self, key: u32) {
        debug_assert!(
            !self.connections[key as usize].queued,
            "a connection in use is picked by nobody"
        );
        let mut refusal = None;
        loop {
            let connection = &mut self.connections[key as usize];
            let addresses = &self.plan.targets[connection.target as usize].addresses;
            if connection.tried >= addresses.len() {
                let reason = if addresses.is_empty() {
                    format!(
                        "'{}' does not resolve",
                        self.plan.targets[connection.target as usize].host
                    )
                } else {
                    refusal.unwrap_or(NetError::Unreachable).to_string()
                };
                self.open_failed(key, Failure::Connect, &reason);
                return;
            }
            let address = addresses[connection.address % addresses.len()];
            connection.tried += 1;
            connection.state = State::Connecting;
            match self.net.connect(key, address) {
                Ok(()) => return,
                Err(error) => refusal = Some(error),
            }
            self.count_exhausted(refusal);
            let connection = &mut self.connections[key as usize];
            connection.address = connection.address.wrapping_add(1);
        }
    }

    /// Counts what this machine had no room for: that is not the target's failure.
    pub(super) fn count_exhausted(&mut self, error: Option<NetError>) {
        if error == Some(NetError::Exhausted) {
            let now_ns = self.clock.now_ns();
            let measured = self.is_measuring(now_ns) || self.start_ns == 0;
            self.recorder_of(measured).interval_mut().counters.exhausted += 1;
        }
    }

    /// The socket is connected; TLS or the codec takes over.
    pub(super) fn socket_is_up(&mut self, key: u32) {
        let now_ns = self.clock.now_ns();
        let measured = self.is_measuring(now_ns) || self.start_ns == 0;
        self.recorder_of(measured).interval_mut().counters.connects += 1;
        self.secure(key);
    }

    /// The connection is ready for requests; the one that waited for it goes first.
    pub(super) fn opened(&mut self, key: u32) {
        let now_ns = self.clock.now_ns();
        let mut greeting = Vec::new();
        let connection = &mut self.connections[key as usize];
        connection.connected();
        connection.codec = Some(self.protocol.open(&mut greeting));
        connection.state = State::Open;
        connection.tried = 0;
        connection.free_since_ns = connection.free_since_ns.max(now_ns);
        if !greeting.is_empty()
            && connection.write(key, &mut self.net, &greeting, &mut self.cipher).is_err()
        {
            return self.lose(key, Failure::Reset, "the connection broke while sending");
        }
        match self.connections[key as usize].opening_for.take() {
            Some(tag) if self.has_room(key) => self.submit(key, tag, now_ns),
            Some(tag) => self.connections[key as usize].opening_for = Some(tag),
            None => self.give_back(key),
        }
    }

    /// Sends the request that waits for a connection, if that takes it now.
    #[inline]
    pub(super) fn serve_waiting(&mut self, key: u32) {
        if self.connections[key as usize].opening_for.is_some() && self.has_room(key) {
            let waiting = self.connections[key as usize].opening_for.take();
            let now_ns = self.clock.now_ns();
            waiting.into_iter().for_each(|tag| self.submit(key, tag, now_ns));
        }
    }

    /// A connection could not be made: the next address, or a failed request and a pause.
    pub(super) fn open_failed(&mut self, key: u32, failure: Failure, reason: &str) {
        let now_ns = self.clock.now_ns();
        self.net.close(key);
        let connection = &mut self.connections[key as usize];
        let addresses = self.plan.targets[connection.target as usize].addresses.len();
        connection.address = connection.address.wrapping_add(1);
        if failure == Failure::Connect && connection.tried < addresses {
            return self.open(key);
        }
        let waiting = connection.opening_for.take();
        connection.reset();
        connection.state = State::Resting;
        let until_ns = now_ns + connection.next_backoff_ns();
        self.may_send_again = true;
        let client = waiting.map(|tag| {
            let flight = self.flights.get(tag);
            let client = (flight.client, flight.times.intended_ns);
            self.settle_lost(tag, failure, reason, now_ns);
            client
        });
        self.resting.push(Reverse(Rest { until_ns, connection: Some(key), client }));
        // What was due in time may be sent after the end, but not to a target that is not there.
        if self.start_ns > 0 && now_ns >= self.end_ns {
            self.end_schedule(self.end_ns);
        }
    }

    /// Lets connections and clients go on whose pause is over.
    pub(super) fn wake_resting(&mut self, now_ns: u64) {
        while let Some(Reverse(rest)) = self.resting.peek() {
            if rest.until_ns > now_ns {
                break;
            }
            let Some(Reverse(rest)) = self.resting.pop() else { break };
            if let Some(key) = rest.connection {
                let connection = &mut self.connections[key as usize];
                connection.state = State::Closed;
                connection.free_since_ns = now_ns;
                if connection.opening_for.is_some() {
                    self.open(key);
                } else {
                    self.give_back(key);
                }
            }
            if let Some((client, intended_ns)) = rest.client {
                self.client_goes_on(client, intended_ns, now_ns);
            }
        }
    }

    /// Closes a connection on which nothing is under way.
    pub(super) fn close_in_order(&mut self, key: u32) {
        if let Some(tls) = &mut self.connections[key as usize].tls {
            tls.send_close_notify();
            let _ = self.connections[key as usize].flush_tls(key, &mut self.net, &mut self.cipher);
        }
        // More requests than the reply's own may have been under way on a multiplexed connection.
        self.lose(key, Failure::Reset, "the connection was closed");
    }

    /// The target will not have us: nothing that comes after will mend that.
    pub(super) fn turned_out(&mut self, why: &'static str) {
        self.refused.get_or_insert(why);
        if self.start_ns > 0 {
            self.end_ns = self.end_ns.min(self.clock.now_ns());
            self.end_schedule(self.end_ns);
        }
    }

    /// Takes a request off its connection, wherever it stands there: thousands may be under way on one.
    pub(super) fn take_off(&mut self, key: u32, tag: u32) {
        let place = self.flights.get(tag).place as usize;
        let under_way = &mut self.connections[key as usize].under_way;
        if under_way.get(place) != Some(&tag) {
            return;
        }
        under_way.swap_remove(place);
        if let Some(&moved) = under_way.get(place) {
            self.flights.get_mut(moved).place = place as u32;
        }
    }

    /// Ends every request whose deadline has come.
    pub(super) fn expire(&mut self, now_ns: u64) {
        let mut from = 0;
        while let Some(tag) = self.flights.overdue(now_ns, from) {
            from = tag + 1;
            let key = self.flights.get(tag).connection;
            if key == NOWHERE {
                self.give_up_waiting(tag, now_ns);
                continue;
            }
            let connection = &mut self.connections[key as usize];
            if connection.opening_for == Some(tag) && connection.state == State::Open {
                connection.opening_for = None;
                self.give_up(
                    tag,
                    Failure::Timeout,
                    "the connection took no request in time",
                    now_ns,
                );
            } else if connection.opening_for == Some(tag) {
                let handshaking = connection.state == State::Handshaking;
                connection.tried = usize::MAX;
                let text = if handshaking { "no TLS in time" } else { "no connection in time" };
                self.open_failed(key, Failure::Timeout, text);
            } else {
                self.take_off(key, tag);
                self.give_up(tag, Failure::Timeout, "no complete reply in time", now_ns);
                self.cancel(key, tag);
            }
        }
        self.next_scan_ns = self.flights.first_deadline_ns();
    }

    /// Ends a request that was to be sent again when its time is over.
    fn give_up_waiting(&mut self, tag: u32, now_ns: u64) {
        self.unprocessed.retain(|&other| other != tag);
        self.give_up(tag, Failure::Timeout, "no connection took it again in time", now_ns);
    }

    /// Tells the peer that nobody waits for a reply any more. Where the connection cannot go on without it,
    /// all that is under way on it is lost.
    fn cancel(&mut self, key: u32, tag: u32) {
        let connection = &mut self.connections[key as usize];
        let mut said = Vec::new();
        let goes_on = connection
            .codec
            .as_mut()
            .is_some_and(|codec| self.protocol.cancel(codec, tag, &mut said));
        let written =
            goes_on && connection.write(key, &mut self.net, &said, &mut self.cipher).is_ok();
        if !written {
            return self.lose(key, Failure::Reset, "closed after a timeout");
        }
        if self.has_room(key) {
            self.give_back(key);
        }
    }

    pub(super) const fn next_tick_ns(&self) -> u64 {
        self.next_tick_ns
    }

    /// Hands out the second that has passed.
    pub(super) fn tick(&mut self, now_ns: u64) {
        if now_ns < self.next_tick_ns {
            return;
        }
        let passed = (now_ns - self.next_tick_ns) / SECOND_NS;
        let boundary_ns = self.next_tick_ns + passed * SECOND_NS;
        self.next_tick_ns = boundary_ns + SECOND_NS;
        let spare = self.spare.take().or_else(|| (self.outbox)(Message::WantsSpare));
        let Some(spare) = spare else {
            // Whoever keeps the seconds is behind: this one goes on, so that nothing is lost and no memory added.
            return;
        };
        let to_ns = boundary_ns - self.measured_from_ns() + self.plan.part.offset_ns;
        let full = self.recorder.swap(to_ns, self.flights.len(), *spare);
        self.spare = (self.outbox)(Message::Second(Box::new(full)));
    }
}
