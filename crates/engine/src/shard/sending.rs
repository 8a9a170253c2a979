//! From begun to sent: requests of a round share a call of the network and a reading of the clock.

use super::Shard;
use super::line::Line;
use crate::net::Net;
use plimsoll_core::clock::Clock;
use plimsoll_core::outcome::Failure;
use plimsoll_wire::Protocol;

/// Reason why a request is lost that could not be sent.
const BROKE: &str = "the connection broke while sending";

impl<P: Protocol, N: Net, C: Clock> Shard<P, N, C> {
    /// Encodes a request on an open connection and hands it to the network.
    pub(super) fn submit(&mut self, key: u32, tag: u32, now_ns: u64) {
        let connection = self.connections.get_mut(key);
        let Some(codec) = connection.codec_mut() else { return };
        let flight = self.flights.get_mut(tag);
        let (place, out) = self.line.draft(key);
        let before = out.len();
        self.protocol.submit(codec, &flight.request, tag, out);
        let bytes = out.len() - before;
        (flight.place, flight.on_kept_connection) = connection.submitted(tag);
        flight.may_be_done = true;
        let (measured, is_second) = (flight.measured, flight.retried || flight.resent > 0);
        // A second sending does not get a second timeout.
        let deadline_ns =
            if is_second { self.flights.deadline_ns(tag) } else { self.course.reply_by_ns(now_ns) };
        self.flights.set_deadline(tag, deadline_ns);
        self.books.counters(measured).bytes_sent += bytes as u64;
        self.line.encoded(bytes);
        // More may follow in this round, and go with it.
        if Line::<N>::may_wait(bytes) && self.connections.has_room(key, &self.protocol) {
            if self.line.keep(key, place) {
                self.flush();
            }
        } else if self.line.hand_over(key, place).is_err() {
            // What the peer may have said before it went was not said to this request.
            self.lose(key, Failure::Reset, BROKE);
        }
        if self.connections.has_room(key, &self.protocol) {
            self.connections.give_back(key);
        }
    }

    /// Sends the request that waits for a connection, if that takes it now.
    #[inline]
    pub(super) fn serve_waiting(&mut self, key: u32) {
        if self.connections.get(key).opening_for().is_some()
            && self.connections.has_room(key, &self.protocol)
        {
            let waiting = self.connections.get_mut(key).take_waiting();
            let now_ns = self.clock.now_ns();
            waiting.into_iter().for_each(|tag| self.submit(key, tag, now_ns));
        }
    }

    /// Hands the requests that waited for each other to the network.
    #[inline]
    pub(super) fn flush(&mut self) {
        while let Some((key, result)) = self.line.flush_next() {
            if result.is_err() {
                self.lose(key, Failure::Reset, BROKE);
            }
        }
    }
}
