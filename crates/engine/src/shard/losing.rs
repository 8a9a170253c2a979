//! Requests that are sent once more: those lost with a connection, and those that a peer has not looked at.
//!
//! All of them wait in one queue. A request that was lost may be sent again if nothing says that the peer acted on it
//! more than once: it is idempotent, its connection had carried a request before, and its own reply had not begun.

use super::Shard;
use super::connections::connection::State;
use super::ending::ROUND_TRIPS_MAX;
use super::flight::NOWHERE;
use crate::net::Net;
use plimsoll_core::clock::Clock;
use plimsoll_core::outcome::Failure;
use plimsoll_wire::Protocol;

impl<P: Protocol, N: Net, C: Clock> Shard<P, N, C> {
    /// Gives a connection up: each request in flight on it has failed, or is sent again.
    pub(super) fn lose(&mut self, key: u32, failure: Failure, reason: &str) {
        let now_ns = self.clock.now_ns();
        // Where connections do not last until the end, this is the last time that they can be asked.
        if self.round_trips.len() < ROUND_TRIPS_MAX && self.connections[key as usize].carried > 0 {
            self.round_trips.extend(self.net.round_trip(key));
        }
        self.net.close(key);
        let connection = &mut self.connections[key as usize];
        let (codec, had_carried) = (connection.codec.take(), connection.carried > 0);
        let under_way = std::mem::take(&mut connection.under_way);
        let waiting = connection.opening_for.take();
        connection.reset();
        connection.free_since_ns = connection.free_since_ns.max(now_ns);
        for tag in under_way {
            let own = match codec.as_ref().and_then(|codec| self.protocol.began(codec, tag)) {
                Some(began) if matches!(failure, Failure::Reset | Failure::Short) => {
                    if began {
                        Failure::Short
                    } else {
                        Failure::Reset
                    }
                }
                _ => failure,
            };
            let flight = self.flights.get_mut(tag);
            let may_retry = own == Failure::Reset
                && flight.on_kept_connection
                && flight.what.idempotent
                && !flight.retried;
            if may_retry {
                flight.retried = true;
                flight.lost_on = key;
                let measured = flight.measured;
                self.recorder_of(measured).interval_mut().counters.retries += 1;
                self.wait_to_go_again(tag);
            } else {
                self.give_up(tag, own, reason, now_ns);
            }
        }
        if let Some(tag) = waiting {
            // It was never sent. On a connection that has served others, a new one may serve it.
            if had_carried && failure == Failure::Reset {
                self.flights.get_mut(tag).lost_on = key;
                self.wait_to_go_again(tag);
            } else {
                self.give_up(tag, failure, reason, now_ns);
            }
        }
        // One that was idle keeps its place in the queue, and moves behind the open ones when its turn comes.
        self.give_back(key);
    }

    /// Ends a request that has failed, and lets its client go on.
    pub(super) fn give_up(&mut self, tag: u32, failure: Failure, reason: &str, now_ns: u64) {
        let flight = self.flights.get(tag);
        let (client, intended_ns) = (flight.client, flight.times.intended_ns);
        self.settle_lost(tag, failure, reason, now_ns);
        self.client_goes_on(client, intended_ns, now_ns);
    }

    /// Puts a request that is on no connection into the queue of those to be sent again.
    pub(super) fn wait_to_go_again(&mut self, tag: u32) {
        self.flights.get_mut(tag).connection = NOWHERE;
        self.unprocessed.push_back(tag);
        self.may_send_again = true;
    }

    /// Sends again what waits for it and finds a connection, before anything new. Each has the deadline that it had.
    #[inline]
    pub(super) fn send_again(&mut self) {
        if self.may_send_again {
            self.send_waiting_again();
        }
    }

    fn send_waiting_again(&mut self) {
        // Whatever makes room from now on, or joins the queue, is a reason to look again.
        self.may_send_again = false;
        for _ in 0..self.unprocessed.len() {
            let Some(tag) = self.unprocessed.pop_front() else { break };
            let Some(key) = self.connection_again(tag) else {
                self.unprocessed.push_back(tag);
                continue;
            };
            let flight = self.flights.get_mut(tag);
            flight.connection = key;
            if flight.lost_on == NOWHERE {
                flight.resent += 1;
                let measured = flight.measured;
                self.recorder_of(measured).interval_mut().counters.retries += 1;
            }
            self.flights.get_mut(tag).lost_on = NOWHERE;
            if self.has_room(key) {
                let now_ns = self.clock.now_ns();
                self.submit(key, tag, now_ns);
            } else {
                self.wait_on(key, tag);
            }
        }
    }

    /// A connection for a request that is sent again. One that was lost goes on its own connection, opened anew: others
    /// that are open may be as dead as the one that it was lost on.
    fn connection_again(&mut self, tag: u32) -> Option<u32> {
        let flight = self.flights.get(tag);
        let (client, lost_on) = (flight.client, flight.lost_on);
        if !self.dedicated && lost_on != NOWHERE {
            match self.connections[lost_on as usize].state {
                State::Closed => {
                    self.unqueue(lost_on);
                    return Some(lost_on);
                }
                State::Connecting | State::Handshaking => return None,
                State::Open if self.has_room(lost_on) => return Some(lost_on),
                State::Open | State::Resting => {}
            }
        }
        self.has_idle_or_own().then(|| self.pick(client)).flatten()
    }

    fn has_idle_or_own(&mut self) -> bool {
        self.dedicated || self.has_idle()
    }

    /// Takes a connection out of the queue in which it stands.
    fn unqueue(&mut self, key: u32) {
        let connection = &mut self.connections[key as usize];
        if !std::mem::take(&mut connection.queued)
            || self.idle_closed.remove(key, connection.target)
        {
            return;
        }
        // It broke with requests in flight, and still stands where it stood when it was open.
        self.idle_open.remove(key);
    }
}
