//! What goes out together: requests of a round that share a call of the network and a reading of the clock.

use super::Shard;
use super::connections::connection::OUTGOING_BYTES;
use crate::net::Net;
use plimsoll_core::clock::Clock;
use plimsoll_core::outcome::Failure;
use plimsoll_wire::Protocol;

/// Why a request is lost that could not be sent.
const BROKE: &str = "the connection broke while sending";
/// Requests that share a reading of the clock at most. So few take about a microsecond together, which is what histograms
/// tell apart; and it is taken before them, so that no service time is too short.
const READING_SHARED_BY: u32 = 8;
/// Behind a longer request the clock is read again: to make it may have taken longer than a reading.
const SHARING_BYTES_MAX: usize = 256;

/// What the clock showed, for the requests that go out together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClockReading {
    at_ns: u64,
    /// For how many more requests it is good.
    pub left: u32,
}

impl<P: Protocol, N: Net, C: Clock> Shard<P, N, C> {
    /// The time for the next request. Requests that are only encoded one behind the other, to go out together, share a
    /// reading of the clock, which costs as much as encoding one of them. Whatever is handed to the network
    /// asks for another.
    #[inline]
    pub(super) fn read_clock(&mut self) -> u64 {
        if self.reading.left == 0 {
            self.reading = ClockReading { at_ns: self.clock.now_ns(), left: READING_SHARED_BY };
        }
        self.reading.left -= 1;
        self.reading.at_ns
    }

    /// Encodes a request on an open connection and hands it to the network.
    pub(super) fn submit(&mut self, key: u32, tag: u32, now_ns: u64) {
        let connection = &mut self.connections[key as usize];
        let Some(codec) = connection.codec.as_mut() else { return };
        let flight = self.flights.get_mut(tag);
        // Behind others that wait for the end of the round it is written where it stays; the first may have to go alone.
        let is_behind = !connection.outgoing.is_empty();
        let out = if is_behind { &mut connection.outgoing } else { &mut self.plain };
        if !is_behind {
            out.clear();
        }
        let before = out.len();
        self.protocol.submit(codec, &flight.request, tag, out);
        let bytes = out.len() - before;
        flight.place = connection.under_way.len() as u32;
        flight.may_be_done = true;
        connection.under_way.push(tag);
        let kept = connection.carried > 0;
        connection.carried += 1;
        flight.on_kept_connection = kept;
        let measured = flight.measured;
        // A second sending does not get a second timeout.
        let deadline_ns = if flight.retried || flight.resent > 0 {
            self.flights.deadline_ns(tag)
        } else {
            self.deadline_ns(now_ns, self.plan.timeouts.request_ns)
        };
        self.flights.set_deadline(tag, deadline_ns);
        self.scan_by(deadline_ns);
        self.recorder_of(measured).interval_mut().counters.bytes_sent += bytes as u64;
        // More may follow in this round, and go with it.
        let waits = bytes < OUTGOING_BYTES && self.has_room(key);
        if bytes > SHARING_BYTES_MAX {
            self.reading.left = 0;
        }
        if waits && !is_behind {
            self.connections[key as usize].outgoing.extend_from_slice(&self.plain);
            self.unflushed.push(key);
        }
        if !waits {
            self.hand_over(key, is_behind);
        } else if self.connections[key as usize].outgoing.len() >= OUTGOING_BYTES {
            self.flush();
        }
        if self.has_room(key) {
            self.give_back(key);
        }
    }

    /// Hands a request to the network that no other can follow now, with those that were kept before it.
    fn hand_over(&mut self, key: u32, is_behind: bool) {
        self.reading.left = 0;
        let plain = if is_behind { &[] } else { self.plain.as_slice() };
        let connection = &mut self.connections[key as usize];
        if connection.write(key, &mut self.net, plain, &mut self.cipher).is_err() {
            // What the peer may have said before it went was not said to this request.
            self.lose(key, Failure::Reset, BROKE);
        }
    }

    /// Hands the requests that waited for each other to the network.
    pub(super) fn flush(&mut self) {
        self.reading.left = 0;
        while let Some(key) = self.unflushed.pop() {
            let connection = &mut self.connections[key as usize];
            if !connection.outgoing.is_empty()
                && connection.write(key, &mut self.net, &[], &mut self.cipher).is_err()
            {
                self.lose(key, Failure::Reset, BROKE);
            }
        }
    }
}
