//! Reason why a request is not answered as it was meant.

/// The largest request head in bytes; a larger one is refused with 431.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Reason why a request is answered with an error and its connection closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// 400: the head or a chunk is not HTTP/1, or its framing contradicts itself.
    Malformed,
    /// 431: more than [`HEAD_BYTES_MAX`] bytes or [`super::head::HEADER_COUNT_MAX`] fields.
    HeadTooLarge,
    /// 501: a transfer coding other than `chunked`.
    UnknownCoding,
}
