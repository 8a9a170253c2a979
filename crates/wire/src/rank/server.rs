//! The server's side of one connection: requests out of bytes.

use super::{KIND_RANK, REQUEST_HEADER_BYTES, RequestHeader};
use thiserror::Error;

/// Reason why the bytes of a client cannot be followed any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    /// The kind is none that a server is asked.
    #[error("a rank request of kind {0}; the only kind is 0")]
    Kind(u32),
    /// The payload is longer than the server reads.
    #[error("a rank request with a payload of {bytes} bytes; at most {most} are read")]
    PayloadTooLong {
        /// The length in the header.
        bytes: u32,
        /// The most that is accepted.
        most: u32,
    },
}

/// One step of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incoming {
    /// Nothing complete yet; all input was consumed.
    More,
    /// A request is complete.
    Request {
        /// Its header.
        header: RequestHeader,
        /// Bytes used from the front of the input.
        consumed: usize,
    },
}

/// Reads the requests of one connection, however they are cut. Payloads are passed over by
/// arithmetic, as the original never looks at them: a reader takes 64 bytes whatever comes.
#[derive(Clone, Debug)]
pub struct RequestReader {
    payload_bytes_max: u32,
    header: [u8; REQUEST_HEADER_BYTES],
    filled: usize,
    /// Bytes of the payload still to come, once the header is whole.
    left: usize,
}

impl RequestReader {
    /// A reader at the start of a connection that accepts payloads of up to this many bytes.
    #[must_use]
    pub fn new(payload_bytes_max: u32) -> Self {
        Self { payload_bytes_max, header: [0; REQUEST_HEADER_BYTES], filled: 0, left: 0 }
    }

    /// Reads from the front of `input` up to the end of the next request. Called again with the
    /// rest until it returns [`Incoming::More`].
    ///
    /// # Errors
    /// When the bytes are no request. Where the next would begin is unknown then: close.
    pub fn receive(&mut self, input: &[u8]) -> Result<Incoming, FrameError> {
        let mut used = 0;
        if self.filled < REQUEST_HEADER_BYTES {
            used = (REQUEST_HEADER_BYTES - self.filled).min(input.len());
            self.header[self.filled..self.filled + used].copy_from_slice(&input[..used]);
            self.filled += used;
            // A wrong kind is reported at its last byte, without a wait for the rest of the frame.
            if self.filled >= 4 && self.header[..4] != KIND_RANK.to_be_bytes() {
                return Err(FrameError::Kind(RequestHeader::decode(&self.header).kind));
            }
            if self.filled < REQUEST_HEADER_BYTES {
                return Ok(Incoming::More);
            }
            let bytes = RequestHeader::decode(&self.header).payload_bytes;
            if bytes > self.payload_bytes_max {
                return Err(FrameError::PayloadTooLong { bytes, most: self.payload_bytes_max });
            }
            self.left = bytes as usize;
        }
        let taken = self.left.min(input.len() - used);
        self.left -= taken;
        if self.left > 0 {
            return Ok(Incoming::More);
        }
        self.filled = 0;
        let header = RequestHeader::decode(&self.header);
        Ok(Incoming::Request { header, consumed: used + taken })
    }

    /// Returns true if the connection may end here without cutting a request.
    #[must_use]
    pub fn is_between_requests(&self) -> bool {
        self.filled == 0
    }
}
