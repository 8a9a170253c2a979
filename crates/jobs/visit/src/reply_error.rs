//! Replies that cannot be read.

use thiserror::Error;

/// Longest document or line, bytes. Vespa's own limit on a document is 100 MiB.
pub const ITEM_BYTES_MAX: usize = 128 << 20;

/// Reason why a reply cannot be read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ReplyError {
    /// The bytes are no reply to a visit.
    #[error("the reply is not that of a visit: {0}")]
    Form(String),
    /// One document or line is longer than [`ITEM_BYTES_MAX`].
    #[error("a document or line of the reply is longer than 128 MiB")]
    TooLong,
    /// The unfinished documents and lines of all slices take all the memory that there is for them.
    #[error(
        "the unfinished documents of all slices are longer than 512 MiB; use a lower --concurrency"
    )]
    NoRoom,
    /// The continuation token is longer than an address may be.
    #[error("the continuation token of the reply is longer than 32 KiB")]
    LongToken,
    /// It ends before its end.
    #[error("the reply ends in the middle")]
    Truncated,
}

/// Bytes of a reply that an error shows.
const SHOWN_BYTES: usize = 80;

/// The bytes at a place where the reply is not what it should be.
pub(super) fn form(what: &str, at: &[u8]) -> ReplyError {
    let shown = String::from_utf8_lossy(&at[..at.len().min(SHOWN_BYTES)]).into_owned();
    ReplyError::Form(format!("{what}: {shown:?}"))
}
