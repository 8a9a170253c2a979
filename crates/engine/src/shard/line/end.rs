//! The near end of one connection: its TLS, and bytes that have not gone out.

use crate::net::{Net, NetError};
use rustls::ClientConnection;
use std::io::{Read, Write};

/// Bytes of requests that wait for each other at most.
pub(in crate::shard) const OUTGOING_BYTES: usize = 16 << 10;

/// Bytes of answers, to questions of the peer's own, that wait because it does not read them.
pub(in crate::shard) const UNREAD_ANSWERS_MAX: usize = 1 << 20;

/// Reason why a layer above the socket failed.
#[derive(Debug)]
pub(in crate::shard) enum LayerError {
    Net(NetError),
    Tls(rustls::Error),
}

/// Buffers between a codec and the network.
#[derive(Default)]
pub(super) struct End {
    pub tls: Option<Box<ClientConnection>>,
    /// Requests encoded in this round and not handed to the network yet, before TLS. They go out together: one call of the
    /// network costs more than a small request.
    pub outgoing: Vec<u8>,
    /// Bytes that the kernel has not taken.
    unsent: Vec<u8>,
    /// Bytes that a codec has answered its peer with since the kernel took everything.
    unread_answers: usize,
}

impl End {
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

    /// Notes that a codec answers its peer, which asks for that without a request; whether it may.
    pub fn may_answer(&mut self, bytes: usize) -> bool {
        if self.unsent.is_empty() {
            self.unread_answers = 0;
        }
        self.unread_answers += bytes;
        self.unread_answers <= UNREAD_ANSWERS_MAX
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

    /// Feeds received bytes to TLS and appends what they decrypt to `plain`, also what stands before an error. True when the
    /// peer has closed its side of TLS in order.
    pub fn decrypt(&mut self, mut bytes: &[u8], plain: &mut Vec<u8>) -> Result<bool, LayerError> {
        let Some(tls) = &mut self.tls else { return Ok(false) };
        let mut closed = false;
        while !bytes.is_empty() {
            // Reading from a slice into rustls's own buffer fails only when that buffer is full.
            if tls.read_tls(&mut bytes).is_err() {
                return Err(LayerError::Tls(rustls::Error::General("buffer full".to_owned())));
            }
            let state = match tls.process_new_packets() {
                Ok(state) => state,
                Err(error) => {
                    // Ends with an error of its own, when nothing is left.
                    let _ = tls.reader().read_to_end(plain);
                    return Err(LayerError::Tls(error));
                }
            };
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
}
