//! From begun to sent: requests of a round share a call of the network and a reading of the clock.

use super::Shard;
use super::line::Line;
use crate::net::Net;
use plimsoll_core::clock::Clock;
use plimsoll_core::outcome::Failure;
use plimsoll_wire::Protocol;

/// Reason why a request is lost that could not be sent.
pub(super) const BROKE: &str = "the connection broke while sending";
/// Bytes that are read at once from a connection that broke, and number of reads: more than a kernel holds back.
const UNREAD_BYTES: usize = 64 << 10;
const UNREAD_READS_MAX: usize = 1024;

impl<P: Protocol, N: Net, C: Clock> Shard<P, N, C> {
    /// Encodes a request on an open connection and hands it to the network.
    pub(super) fn submit(&mut self, key: u32, tag: u32, now_ns: u64) {
        let connection = self.connections.get_mut(key);
        debug_assert!(
            !self.protocol.names_target() || connection.target() == self.flights.get(tag).target,
            "a request that names one target goes to another"
        );
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
        } else {
            let handed_over = self.line.hand_over(key, place);
            self.handed_over(key, handed_over.is_ok());
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
            self.handed_over(key, result.is_ok());
        }
    }

    /// Notes that the network has taken the requests of a connection, or that the connection is broken.
    #[inline]
    fn handed_over(&mut self, key: u32, is_taken: bool) {
        if is_taken {
            self.connections.get_mut(key).all_handed_over();
        } else {
            self.sending_failed(key);
        }
    }

    /// Loses a connection on which nothing can be sent any more. Bytes that had come on it are read first: they may answer requests
    /// that were sent before. To a request that was not sent, nothing was said.
    #[cold]
    pub(super) fn sending_failed(&mut self, key: u32) {
        if self.connections.get(key).awaits_answer() {
            self.read_unread(key);
        }
        if self.connections.get(key).is_open() {
            self.lose(key, Failure::Reset, BROKE);
        }
    }

    /// Reads what came on a connection before it broke.
    #[cold]
    pub(super) fn read_unread(&mut self, key: u32) {
        let mut buffer = vec![0; UNREAD_BYTES];
        for _ in 0..UNREAD_READS_MAX {
            let count = self.line.unread(key, &mut buffer);
            if count == 0 || !self.connections.get(key).is_open() {
                return;
            }
            self.received(key, &buffer[..count]);
        }
    }
}
