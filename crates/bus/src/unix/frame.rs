//! Frames between a hub and its clients: a length, a kind, and what the kind has.

use crate::bus::{Message, PAYLOAD_MAX};
use crate::subject::SUBJECT_BYTES_MAX;
use bytes::Bytes;
use std::io::{self, Read};

/// Longest frame behind its length: kind, number, length of the subject, subject, payload.
const FRAME_MAX: usize = 1 + 8 + 2 + SUBJECT_BYTES_MAX + PAYLOAD_MAX;

const SUBSCRIBE: u8 = 1;
const UNSUBSCRIBE: u8 = 2;
const PUBLISH: u8 = 3;
const FLUSH: u8 = 4;
const DELIVER: u8 = 5;
const LOST: u8 = 6;
const FLUSHED: u8 = 7;

/// A frame. The first four go to the hub, the others come from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A subscription of the client, with its number.
    Subscribe { id: u64, subject: String },
    /// The end of a subscription.
    Unsubscribe { id: u64 },
    /// A message to all that subscribed to its subject.
    Publish(Message),
    /// A question for [`Frame::Flushed`] once everything before it is processed.
    Flush { number: u64 },
    /// A message for a subscription.
    Deliver { id: u64, message: Message },
    /// Messages of a subscription that the hub dropped because the client did not read.
    Lost { id: u64, messages: u64 },
    /// The answer to a question.
    Flushed { number: u64 },
}

fn encoded(kind: u8, numbers: &[u64], subject: &str, payload: &[u8]) -> Vec<u8> {
    let length = 1 + 8 * numbers.len() + 2 + subject.len() + payload.len();
    let mut bytes = Vec::with_capacity(4 + length);
    bytes.extend((length as u32).to_le_bytes());
    bytes.push(kind);
    numbers.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
    bytes.extend((subject.len() as u16).to_le_bytes());
    bytes.extend(subject.as_bytes());
    bytes.extend(payload);
    bytes
}

/// The frame that delivers a message to a subscription.
pub fn delivered(id: u64, message: &Message) -> Vec<u8> {
    encoded(DELIVER, &[id], &message.subject, &message.payload)
}

/// The frame that publishes a message.
pub fn published(subject: &str, payload: &[u8]) -> Vec<u8> {
    encoded(PUBLISH, &[], subject, payload)
}

impl Frame {
    /// The bytes of a frame, its length first. Subjects and payloads are within their limits.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Subscribe { id, subject } => encoded(SUBSCRIBE, &[*id], subject, b""),
            Self::Unsubscribe { id } => encoded(UNSUBSCRIBE, &[*id], "", b""),
            Self::Publish(message) => published(&message.subject, &message.payload),
            Self::Flush { number } => encoded(FLUSH, &[*number], "", b""),
            Self::Deliver { id, message } => delivered(*id, message),
            Self::Lost { id, messages } => encoded(LOST, &[*id, *messages], "", b""),
            Self::Flushed { number } => encoded(FLUSHED, &[*number], "", b""),
        }
    }

    /// Reads the next frame; `None` at the end of the stream.
    ///
    /// # Errors
    /// A stream that ends within a frame, and bytes that are no frame.
    pub fn read(stream: &mut impl Read) -> io::Result<Option<Self>> {
        let mut length = [0; 4];
        match stream.read(&mut length[..1])? {
            0 => return Ok(None),
            _ => stream.read_exact(&mut length[1..])?,
        }
        let length = u32::from_le_bytes(length) as usize;
        if length > FRAME_MAX {
            return Err(invalid());
        }
        let mut bytes = vec![0; length];
        stream.read_exact(&mut bytes)?;
        Self::decode(bytes.into()).map(Some).ok_or_else(invalid)
    }

    fn decode(bytes: Bytes) -> Option<Self> {
        let mut rest = Rest(bytes);
        let frame = match rest.take(1)?[0] {
            SUBSCRIBE => Self::Subscribe { id: rest.number()?, subject: rest.subject()? },
            UNSUBSCRIBE => Self::Unsubscribe { id: rest.last_numbers::<1>()?[0] },
            PUBLISH => Self::Publish(rest.message()?),
            FLUSH => Self::Flush { number: rest.last_numbers::<1>()?[0] },
            DELIVER => Self::Deliver { id: rest.number()?, message: rest.message()? },
            LOST => {
                let [id, messages] = rest.last_numbers()?;
                Self::Lost { id, messages }
            }
            FLUSHED => Self::Flushed { number: rest.last_numbers::<1>()?[0] },
            _ => return None,
        };
        rest.0.is_empty().then_some(frame)
    }
}

fn invalid() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "not a frame of the bus")
}

/// Bytes of a frame that were not read yet.
struct Rest(Bytes);

impl Rest {
    fn take(&mut self, length: usize) -> Option<Bytes> {
        (self.0.len() >= length).then(|| self.0.split_to(length))
    }

    fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.as_ref().try_into().ok()?))
    }

    fn subject(&mut self) -> Option<String> {
        let length = u16::from_le_bytes(self.take(2)?.as_ref().try_into().ok()?);
        String::from_utf8(self.take(usize::from(length))?.into()).ok()
    }

    fn message(&mut self) -> Option<Message> {
        let subject = self.subject()?;
        let payload = std::mem::take(&mut self.0);
        (payload.len() <= PAYLOAD_MAX).then_some(Message { subject, payload })
    }

    /// Numbers and nothing behind them.
    fn last_numbers<const N: usize>(&mut self) -> Option<[u64; N]> {
        let mut numbers = [0; N];
        for number in &mut numbers {
            *number = self.number()?;
        }
        self.subject()?.is_empty().then_some(numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Frame> {
        let message =
            |payload: Vec<u8>| Message { subject: "a.b".to_owned(), payload: Bytes::from(payload) };
        vec![
            Frame::Subscribe { id: 7, subject: "a.*".to_owned() },
            Frame::Unsubscribe { id: u64::MAX },
            Frame::Publish(message(vec![1; PAYLOAD_MAX])),
            Frame::Publish(message(Vec::new())),
            Frame::Flush { number: 1 },
            Frame::Deliver { id: 3, message: message(b"xyz".to_vec()) },
            Frame::Lost { id: 3, messages: 990 },
            Frame::Flushed { number: 1 },
        ]
    }

    #[test]
    fn frames_are_read_as_they_were_written() {
        let bytes: Vec<u8> = all().iter().flat_map(Frame::encode).collect();
        let mut stream = &bytes[..];
        for frame in all() {
            assert_eq!(Frame::read(&mut stream).unwrap(), Some(frame));
        }
        assert_eq!(Frame::read(&mut stream).unwrap(), None);
    }

    #[test]
    fn a_stream_that_ends_within_a_frame_is_an_error() {
        for frame in all() {
            let bytes = frame.encode();
            for end in [1, 3, 4, bytes.len() - 1] {
                assert!(Frame::read(&mut &bytes[..end]).is_err(), "{frame:?} {end}");
            }
        }
    }

    #[test]
    fn a_length_above_the_limit_is_rejected_before_anything_is_reserved() {
        for length in [FRAME_MAX as u32 + 1, u32::MAX] {
            assert!(Frame::read(&mut &length.to_le_bytes()[..]).is_err());
        }
    }

    #[test]
    fn any_other_bytes_are_rejected() {
        for body in [
            &b""[..],
            b"\0",
            &[9, 0, 0],
            &[FLUSH, 1, 2, 3],
            &[PUBLISH, 200, 0, b'a'],
            &[PUBLISH, 1, 0, 0xff],
            &[UNSUBSCRIBE, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        ] {
            let bytes = [&(body.len() as u32).to_le_bytes()[..], body].concat();
            assert!(Frame::read(&mut &bytes[..]).is_err(), "{body:?}");
        }
    }
}
