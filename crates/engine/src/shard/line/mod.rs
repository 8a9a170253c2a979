//! The line of a shard: the network, TLS on it, the buffers, and what goes out together.
//!
//! Invariants: a connection whose requests wait for others of their round is among those to be flushed; nothing is left
//! to be flushed when the shard waits for the network; what a connection still had to send goes with it.

mod end;

use crate::net::{Completion, Net, NetError, RoundTrip, WaitMode};
use crate::vitals::VitalSigns;
pub(super) use end::LayerError;
use end::{End, OUTGOING_BYTES};
use plimsoll_core::clock::Clock;
use rustls::ClientConnection;
use std::net::SocketAddr;

/// Bytes taken from the kernel at once.
const RECEIVE_BYTES: usize = 64 * 1024;
/// Requests that share a reading of the clock at most. So few take about a microsecond together, which is what histograms
/// tell apart; and it is taken before them, so that no service time is too short.
const READING_SHARED_BY: u32 = 8;
/// Behind a longer request the clock is read again: to make it may have taken longer than a reading.
const SHARING_BYTES_MAX: usize = 256;

/// Reading of the clock for the requests that are sent together.
#[derive(Clone, Copy, Debug, Default)]
struct ClockReading {
    at_ns: u64,
    /// Number of further requests that it is good for.
    left: u32,
}

/// Buffer for the next request of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// By itself: it may have to go alone.
    Alone,
    /// Behind others that wait for the end of the round.
    Behind,
}

/// Bytes to and from all connections of a shard.
pub(super) struct Line<N: Net> {
    net: N,
    /// The near end of each connection.
    ends: Vec<End>,
    /// Connections with requests that are not handed to the network yet.
    unflushed: Vec<u32>,
    /// The time, for requests that go out together.
    reading: ClockReading,
    /// Bytes to send, before TLS.
    plain: Vec<u8>,
    /// Bytes to send, after TLS.
    cipher: Vec<u8>,
    /// Bytes received.
    received: Vec<u8>,
    /// The same after TLS.
    decrypted: Vec<u8>,
}

impl<N: Net> Line<N> {
    /// A line for this many connections.
    pub fn new(net: N, connections: u32) -> Self {
        Self {
            net,
            ends: (0..connections).map(|_| End::default()).collect(),
            unflushed: Vec::new(),
            reading: ClockReading::default(),
            plain: Vec::with_capacity(4096),
            cipher: Vec::new(),
            received: vec![0; RECEIVE_BYTES],
            decrypted: Vec::new(),
        }
    }

    #[inline]
    fn end(&self, key: u32) -> &End {
        &self.ends[key as usize]
    }

    /// Begins to connect.
    pub fn connect(&mut self, key: u32, address: SocketAddr) -> Result<(), NetError> {
        self.net.connect(key, address)
    }

    /// Closes a connection at once; what it still had to send is dropped.
    pub fn close(&mut self, key: u32) {
        self.net.close(key);
        self.ends[key as usize] = End::default();
    }

    /// Begins TLS on a connection.
    pub fn begin_tls(&mut self, key: u32, session: ClientConnection) -> Result<(), NetError> {
        self.ends[key as usize].tls = Some(Box::new(session));
        self.flush_tls(key)
    }

    /// The TLS session of a connection, if it has one.
    #[inline]
    pub fn tls(&self, key: u32) -> Option<&ClientConnection> {
        self.end(key).tls.as_deref()
    }

    /// Tells the peer that nothing more will come, where there is TLS to say it.
    pub fn say_goodbye(&mut self, key: u32) {
        if let Some(tls) = &mut self.ends[key as usize].tls {
            tls.send_close_notify();
            let _ = self.flush_tls(key);
        }
    }

    /// Notes that a codec answers its peer by itself, in this many bytes. Returns false if the peer has left too
    /// many of its answers unread.
    pub fn may_answer(&mut self, key: u32, bytes: usize) -> bool {
        self.ends[key as usize].may_answer(bytes)
    }

    /// Sends plain bytes, behind those that were kept, through TLS where there is TLS.
    #[inline]
    pub fn write(&mut self, key: u32, plain: &[u8]) -> Result<(), LayerError> {
        self.ends[key as usize].write(key, &mut self.net, plain, &mut self.cipher)
    }

    /// Sends what TLS has to say by itself (handshake, alerts, key updates).
    pub fn flush_tls(&mut self, key: u32) -> Result<(), NetError> {
        self.ends[key as usize].flush_tls(key, &mut self.net, &mut self.cipher)
    }

    /// The kernel takes bytes again.
    pub fn writable(&mut self, key: u32) -> Result<(), NetError> {
        self.ends[key as usize].writable(key, &mut self.net)
    }

    /// Feeds received bytes to TLS and appends what they decrypt to `plain`. True when the peer has closed
    /// its side of TLS in order.
    pub fn decrypt(
        &mut self,
        key: u32,
        bytes: &[u8],
        plain: &mut Vec<u8>,
    ) -> Result<bool, LayerError> {
        self.ends[key as usize].decrypt(bytes, plain)
    }

    /// The time for the next request. Requests that are only encoded one behind the other, to go out together, share a
    /// reading of the clock, which costs as much as encoding one of them. Everything that is handed to the network
    /// asks for another.
    #[inline]
    pub fn read_clock(&mut self, clock: &impl Clock) -> u64 {
        if self.reading.left == 0 {
            self.reading = ClockReading { at_ns: clock.now_ns(), left: READING_SHARED_BY };
        }
        self.reading.left -= 1;
        self.reading.at_ns
    }

    /// Returns true if the next reading of the clock is one that was taken before.
    #[inline]
    pub const fn shares_reading(&self) -> bool {
        self.reading.left > 0
    }

    /// The clock is to be read again.
    #[inline]
    pub fn forget_reading(&mut self) {
        self.reading.left = 0;
    }

    /// Returns the buffer for the next request of a connection.
    #[inline]
    pub fn draft(&mut self, key: u32) -> (Place, &mut Vec<u8>) {
        // Behind others that wait for the end of the round it is written where it stays; the first may have to go alone.
        let outgoing = &mut self.ends[key as usize].outgoing;
        if outgoing.is_empty() {
            self.plain.clear();
            (Place::Alone, &mut self.plain)
        } else {
            (Place::Behind, outgoing)
        }
    }

    /// Returns true if a request of this many bytes may wait for others of its round.
    #[inline]
    pub const fn may_wait(bytes: usize) -> bool {
        bytes < OUTGOING_BYTES
    }

    /// A request of this many bytes was encoded.
    #[inline]
    pub fn encoded(&mut self, bytes: usize) {
        if bytes > SHARING_BYTES_MAX {
            self.forget_reading();
        }
    }

    /// Lets the request that was encoded wait for the end of the round. Returns whether that must not be waited for.
    #[inline]
    pub fn keep(&mut self, key: u32, place: Place) -> bool {
        let outgoing = &mut self.ends[key as usize].outgoing;
        if place == Place::Alone {
            outgoing.extend_from_slice(&self.plain);
            self.unflushed.push(key);
        }
        outgoing.len() >= OUTGOING_BYTES
    }

    /// Hands the request that was encoded to the network, with those that were kept before it.
    #[inline]
    pub fn hand_over(&mut self, key: u32, place: Place) -> Result<(), LayerError> {
        self.forget_reading();
        let plain = if place == Place::Behind { &[] } else { self.plain.as_slice() };
        self.ends[key as usize].write(key, &mut self.net, plain, &mut self.cipher)
    }

    /// Hands the requests that waited on one more connection to the network; says which one it was, and whether it broke.
    #[inline]
    pub fn flush_next(&mut self) -> Option<(u32, Result<(), LayerError>)> {
        self.forget_reading();
        let key = self.unflushed.pop()?;
        if self.end(key).outgoing.is_empty() {
            return Some((key, Ok(())));
        }
        Some((key, self.write(key, &[])))
    }

    /// Waits for completions.
    ///
    /// # Panics
    /// When requests wait to be sent: they would wait as long.
    #[inline]
    pub fn wait(&mut self, until_ns: u64, mode: WaitMode) {
        assert!(self.unflushed.is_empty(), "requests are held back while the shard waits");
        self.net.wait(until_ns, mode);
    }

    /// Lends the buffer for [`Line::next`].
    pub fn take_buffer(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.received)
    }

    pub fn return_buffer(&mut self, buffer: Vec<u8>) {
        self.received = buffer;
    }

    /// Takes the next completion of the batch; received bytes are put into `buffer`.
    #[inline]
    pub fn next(&mut self, buffer: &mut [u8]) -> Option<(u32, Completion)> {
        self.net.next(buffer)
    }

    /// Takes bytes that came on a connection before it broke; how many, and 0 when none are left.
    pub fn unread(&mut self, key: u32, buffer: &mut [u8]) -> usize {
        self.net.unread(key, buffer)
    }

    /// Lends the buffer for what [`Line::decrypt`] decrypts, empty.
    pub fn take_decrypted(&mut self) -> Vec<u8> {
        let mut decrypted = std::mem::take(&mut self.decrypted);
        decrypted.clear();
        decrypted
    }

    pub fn return_decrypted(&mut self, decrypted: Vec<u8>) {
        self.decrypted = decrypted;
    }

    /// Lends the buffer for what a codec says by itself, empty.
    #[inline]
    pub fn take_plain(&mut self) -> Vec<u8> {
        let mut plain = std::mem::take(&mut self.plain);
        plain.clear();
        plain
    }

    #[inline]
    pub fn return_plain(&mut self, plain: Vec<u8>) {
        self.plain = plain;
    }

    /// The kernel's view of a connection's round trips, when there is one.
    pub fn round_trip(&self, key: u32) -> Option<RoundTrip> {
        self.net.round_trip(key)
    }

    /// Time that the network has been waited for, ns.
    #[inline]
    pub fn idle_ns(&self) -> u64 {
        self.net.idle_ns()
    }

    /// The earliest moment at which what the last wait found can have been there, ns.
    #[inline]
    pub fn arrived_after_ns(&self) -> u64 {
        self.net.arrived_after_ns()
    }

    /// Returns what has kept the calling thread from its work.
    pub fn vitals(&mut self) -> VitalSigns {
        self.net.vitals()
    }

    /// Checks what must hold of the requests that wait for others of their round.
    ///
    /// # Panics
    /// When it does not.
    pub fn audit(&self) {
        for (key, end) in self.ends.iter().enumerate() {
            let is_known = end.outgoing.is_empty() || self.unflushed.contains(&(key as u32));
            assert!(is_known, "the requests on connection {key} are forgotten");
        }
    }
}

#[cfg(test)]
mod tests;
