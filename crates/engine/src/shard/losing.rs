//! Requests that are sent once more: those lost with a connection, and those that a peer has not looked at.
//!
//! All of them wait in one queue. A request that was lost may be sent again if nothing says that the peer acted on it
//! more than once: it is idempotent, its connection had carried a request before, and its own reply had not begun.

use super::Shard;
use super::connections::Lost;
use super::flight::NOWHERE;
use super::reason::Reason;
use crate::net::Net;
use plimsoll_core::clock::Clock;
use plimsoll_core::outcome::Failure;
use plimsoll_wire::Protocol;

impl<P: Protocol, N: Net, C: Clock> Shard<P, N, C> {
    /// Closes a connection on which nothing is in flight.
    pub(super) fn close_in_order(&mut self, key: u32) {
        self.line.say_goodbye(key);
        // More requests than the reply's own may have been in flight on a multiplexed connection.
        self.lose(key, Failure::Reset, "the connection was closed");
    }

    /// Gives a connection up: each request in flight on it has failed, or is sent again.
    pub(super) fn lose<'r>(&mut self, key: u32, failure: Failure, reason: impl Into<Reason<'r>>) {
        let reason = reason.into();
        let now_ns = self.clock.now_ns();
        if self.connections.get(key).carried() > 0 {
            self.books.closing(|| self.line.round_trip(key));
        }
        self.line.close(key);
        self.connections.closes(key, now_ns);
        let Lost { codec, had_carried, under_way, waiting } =
            self.connections.get_mut(key).lose(now_ns);
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
                self.books.counters(measured).retries += 1;
                self.wait_to_go_again(tag);
            } else {
                self.give_up(tag, own, &reason, now_ns);
            }
        }
        if let Some(tag) = waiting {
            // It was never sent. On a connection that has served others, a new one may serve it.
            if had_carried && failure == Failure::Reset {
                self.flights.get_mut(tag).lost_on = key;
                self.wait_to_go_again(tag);
            } else {
                self.give_up(tag, failure, &reason, now_ns);
            }
        }
        // One that was idle keeps its place in the queue, and moves behind the open ones when its turn comes.
        self.connections.give_back(key);
    }

    /// Puts a request that is on no connection into the queue of those to be sent again.
    pub(super) fn wait_to_go_again(&mut self, tag: u32) {
        self.flights.get_mut(tag).connection = NOWHERE;
        self.connections.again().push(tag);
    }

    /// Sends again what waits for it and finds a connection, before anything new. Each has the deadline that it had.
    #[inline]
    pub(super) fn send_again(&mut self) {
        if self.connections.again().begin_look() {
            self.send_waiting_again();
        }
    }

    fn send_waiting_again(&mut self) {
        for _ in 0..self.connections.again().len() {
            let Some(tag) = self.connections.again().pop() else { break };
            let flight = self.flights.get(tag);
            let (client, lost_on) = (flight.client, flight.lost_on);
            let is_bound = self.plan.targets.len() > 1 && self.protocol.names_target();
            let target = is_bound.then_some(flight.target);
            let key = self.connections.pick_again(client, (lost_on, target), &self.protocol);
            let Some(key) = key else {
                self.connections.again().put_back(tag);
                continue;
            };
            let flight = self.flights.get_mut(tag);
            flight.connection = key;
            if flight.lost_on == NOWHERE {
                flight.resent += 1;
                let measured = flight.measured;
                self.books.counters(measured).retries += 1;
            }
            self.flights.get_mut(tag).lost_on = NOWHERE;
            if self.connections.has_room(key, &self.protocol) {
                let now_ns = self.clock.now_ns();
                self.submit(key, tag, now_ns);
            } else {
                self.wait_on(key, tag);
            }
        }
    }
}
