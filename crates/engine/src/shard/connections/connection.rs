//! One connection: its state, its TLS, its codec, and bytes the kernel has not taken yet.

use crate::net::{Net, NetError};
use plimsoll_core::schedule::Slice;
use plimsoll_wire::Protocol;
use rustls::ClientConnection;
use std::io::{Read, Write};

/// Shortest pause after a connection could not be made, ns.
const BACKOFF_MIN_NS: u64 = 10_000_000;
/// Longest pause, ns.
const BACKOFF_MAX_NS: u64 = 200_000_000;
/// Bytes of requests that wait for each other at most.
pub(in crate::shard) const OUTGOING_BYTES: usize = 16 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::shard) enum State {
    /// Not connected; the next request connects.
    Closed,
    /// The socket is being connected.
    Connecting,
    /// The socket is up, TLS is being agreed; where it must be asked for first and is not granted yet, there is
    /// no session of it.
    Handshaking,
    /// Ready for requests.
    Open,
    /// It could not be made a moment ago; pausing.
    Resting,
}

pub(in crate::shard) struct Connection<P: Protocol> {
    pub state: State,
    pub target: u32,
    /// Index of the address in use, modulo the target's addresses.
    pub address: usize,
    /// Addresses tried since the connection was asked for.
    pub tried: usize,
    pub tls: Option<Box<ClientConnection>>,
    pub codec: Option<P::Conn>,
    /// Requests encoded in this round and not handed to the network yet, before TLS. They go out together: one call of the
    /// network costs more than a small request.
    pub outgoing: Vec<u8>,
    /// Bytes that the kernel has not taken.
    unsent: Vec<u8>,
    /// Requests submitted and not ended, by tag.
    pub under_way: Vec<u32>,
    /// The request that this connection is being opened for.
    pub opening_for: Option<u32>,
    /// Requests submitted since it was opened.
    pub carried: u64,
    /// Since when it could have taken a request, ns.
    pub free_since_ns: u64,
    backoff_ns: u64,
    /// Whether it stands in one of the queues of idle connections.
    pub queued: bool,
}

/// Why a layer above the socket failed.
#[derive(Debug)]
pub(in crate::shard) enum LayerError {
    Net(NetError),
    Tls(rustls::Error),
}

/// The target of a shard's `i`-th connection. Connections take turns over the whole run. Where a shard would then
/// only ever see some of the targets, as with two threads and two targets, its turns are shifted, so that its
/// requests have somewhere to go when a target does not answer; not so for clients who keep their connection.
pub(in crate::shard) fn target_of(slice: Slice, i: u64, targets: u64, dedicated: bool) -> u32 {
    let of = u64::from(slice.of);
    let common = greatest_common_divisor(of, targets);
    let period = targets / common;
    let shift = if dedicated { 0 } else { (i / period) % common };
    ((slice.global(i) + shift) % targets) as u32
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

impl<P: Protocol> Connection<P> {
    pub fn new(target: u32, address: usize) -> Self {
        Self {
            state: State::Closed,
            target,
            address,
            tried: 0,
            tls: None,
            codec: None,
            outgoing: Vec::new(),
            unsent: Vec::new(),
            under_way: Vec::new(),
            opening_for: None,
            carried: 0,
            free_since_ns: 0,
            backoff_ns: 0,
            queued: false,
        }
    }

    /// Back to the beginning, whatever the state was.
    pub fn reset(&mut self) {
        self.state = State::Closed;
        self.tls = None;
        self.codec = None;
        self.outgoing = Vec::new();
        self.unsent = Vec::new();
        self.carried = 0;
        self.tried = 0;
    }

    /// The pause after one more failure, ns; doubles up to its limit.
    pub fn next_backoff_ns(&mut self) -> u64 {
        self.backoff_ns = (self.backoff_ns * 2).clamp(BACKOFF_MIN_NS, BACKOFF_MAX_NS);
        self.backoff_ns
    }

    pub fn connected(&mut self) {
        self.backoff_ns = 0;
    }

    /// Sends plain bytes, behind those that were kept, through TLS where there is TLS. `cipher` is scratch space.
    pub fn write<N: Net>(
        &mut self,
        key: u32,
        net: &mut N,
        plain: &[u8],
        cipher: &mut Vec<u8>,
    ) -> Result<(), LayerError> {
        if !self.outgoing.is_empty() {
            let mut kept = std::mem::take(&mut self.outgoing);
            kept.extend_from_slice(plain);
            let written = self.write(key, net, &kept, cipher);
            kept.clear();
            if kept.capacity() <= 2 * OUTGOING_BYTES {
                self.outgoing = kept;
            }
            return written;
        }
        if self.tls.is_none() {
            return self.write_raw(key, net, plain).map_err(LayerError::Net);
        }
        if let Some(tls) = &mut self.tls
            && !plain.is_empty()
        {
            // The buffer has no limit of its own: a request body is bounded by its source.
            tls.writer().write_all(plain).map_err(|_| LayerError::Net(NetError::Reset))?;
        }
        self.flush_tls(key, net, cipher).map_err(LayerError::Net)
    }

    /// Sends what TLS has to say by itself (handshake, alerts, key updates).
    pub fn flush_tls<N: Net>(
        &mut self,
        key: u32,
        net: &mut N,
        cipher: &mut Vec<u8>,
    ) -> Result<(), NetError> {
        cipher.clear();
        if let Some(tls) = &mut self.tls {
            while tls.wants_write() {
                // Writing to memory does not fail.
                if tls.write_tls(cipher).is_err() {
                    break;
                }
            }
        }
        if cipher.is_empty() { Ok(()) } else { self.write_raw(key, net, cipher) }
    }

    #[inline]
    fn write_raw<N: Net>(&mut self, key: u32, net: &mut N, bytes: &[u8]) -> Result<(), NetError> {
        if !self.unsent.is_empty() {
            self.unsent.extend_from_slice(bytes);
            return Ok(());
        }
        let taken = net.send(key, bytes)?;
        if taken < bytes.len() {
            self.unsent.extend_from_slice(&bytes[taken..]);
        }
        Ok(())
    }

    /// The kernel takes bytes again.
    pub fn writable<N: Net>(&mut self, key: u32, net: &mut N) -> Result<(), NetError> {
        if self.unsent.is_empty() {
            return Ok(());
        }
        let taken = net.send(key, &self.unsent)?;
        self.unsent.drain(..taken);
        if self.unsent.is_empty() {
            // A big body must not stay in memory after it was sent.
            self.unsent = Vec::new();
        }
        Ok(())
    }

    /// Feeds received bytes to TLS and appends what they decrypt to `plain`. True when the peer has closed
    /// its side of TLS in order.
    pub fn decrypt(&mut self, mut bytes: &[u8], plain: &mut Vec<u8>) -> Result<bool, LayerError> {
        let Some(tls) = &mut self.tls else { return Ok(false) };
        let mut closed = false;
        while !bytes.is_empty() {
            // Reading from a slice into rustls's own buffer fails only when that buffer is full.
            if tls.read_tls(&mut bytes).is_err() {
                return Err(LayerError::Tls(rustls::Error::General("buffer full".to_owned())));
            }
            let state = tls.process_new_packets().map_err(LayerError::Tls)?;
            closed |= state.peer_has_closed();
            let ready = state.plaintext_bytes_to_read();
            if ready > 0 {
                let start = plain.len();
                plain.resize(start + ready, 0);
                let read = tls.reader().read(&mut plain[start..]).unwrap_or(0);
                plain.truncate(start + read);
            }
            if closed {
                break;
            }
        }
        Ok(closed)
    }

    /// Whether a TLS handshake is still under way.
    pub fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shard_sees_every_target() {
        for (of, targets) in [(1, 1), (1, 3), (2, 2), (2, 4), (4, 2), (6, 4), (3, 5), (4, 4)] {
            let mut count = vec![0; targets as usize];
            for index in 0..of {
                let slice = Slice { index, of };
                let mut own = vec![0; targets as usize];
                for i in 0..targets {
                    own[target_of(slice, i, targets, false) as usize] += 1;
                    count[target_of(slice, i, targets, false) as usize] += 1;
                }
                assert!(own.iter().all(|n| *n == 1), "{index} of {of}, {targets}: {own:?}");
            }
            assert!(count.iter().all(|n| *n == of), "{of}, {targets}: {count:?}");
            // One connection a shard: as even as can be, and the same for those who keep theirs.
            let first = |index| target_of(Slice { index, of }, 0, targets, false);
            assert!((0..of).all(|index| u64::from(first(index)) == u64::from(index) % targets));
            let kept = target_of(Slice { index: of - 1, of }, 5, targets, true);
            assert_eq!(u64::from(kept), (5 * u64::from(of) + u64::from(of) - 1) % targets);
        }
    }
}
