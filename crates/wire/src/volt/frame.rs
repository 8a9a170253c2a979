//! Framing of messages: four bytes in front of each, with the number of bytes that follow.

use thiserror::Error;

/// Bytes of the length in front of every message.
pub const FRAME_HEAD_BYTES: usize = 4;
/// Longest message, bytes, its length not counted: 50 MiB. VoltDB ends a connection on which a longer one comes.
pub const MESSAGE_BYTES_MAX: u32 = 50 << 20;

/// A length that no message can have; the connection is of no more use.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("a message of {0} bytes; from 1 to {most} are possible", most = MESSAGE_BYTES_MAX)]
pub struct FrameError(pub i32);

/// Returns the length of the first message of `input`, bytes, its length field included; `None` until it is whole. The
/// message itself begins behind [`FRAME_HEAD_BYTES`].
///
/// # Errors
/// A length below 1 or above [`MESSAGE_BYTES_MAX`].
#[inline]
pub fn frame_length(input: &[u8]) -> Result<Option<usize>, FrameError> {
    match declared_bytes(input, MESSAGE_BYTES_MAX)? {
        Some(bytes) if bytes <= input.len() => Ok(Some(bytes)),
        _ => Ok(None),
    }
}

/// Returns the length that the first message declares, bytes, its length field included; `None` until that field is there.
#[inline]
pub(super) fn declared_bytes(input: &[u8], most: u32) -> Result<Option<usize>, FrameError> {
    let Some(head) = input.first_chunk::<FRAME_HEAD_BYTES>() else { return Ok(None) };
    let length = i32::from_be_bytes(*head);
    if length < 1 || length as u32 > most {
        return Err(FrameError(length));
    }
    Ok(Some(length as usize + FRAME_HEAD_BYTES))
}
