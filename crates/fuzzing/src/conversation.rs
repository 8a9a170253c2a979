//! One connection of a codec of `plimsoll-wire`, driven as the engine does, with everything written down that it said.

use plimsoll_wire::{Event, Fault, Protocol};
use std::collections::BTreeMap;

/// The end of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its tag.
    pub tag: u32,
    /// Parts of the body that were given out before the end.
    pub parts: Vec<u8>,
    /// The reply as text, or the reason why it was given up.
    pub result: Result<String, Fault>,
    /// True if the connection can carry other requests.
    pub is_reusable: bool,
}

/// Everything that a connection said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// Requests in the order of their ends.
    pub ended: Vec<Ended>,
    /// The end of the connection.
    pub fault: Option<Fault>,
    /// Bytes that the codec answered.
    pub out: Vec<u8>,
}

/// A codec, its connection, and how a reply is written down.
pub struct Conversation<'c, P: Protocol> {
    /// The codec.
    pub codec: &'c P,
    /// The connection, with requests in flight.
    pub conn: P::Conn,
    /// Writes down a reply.
    pub shown: fn(&P::Reply<'_>) -> String,
    /// Called when a reply has come: what else is to be sent.
    pub next: fn(&P, &mut P::Conn, &mut Vec<u8>),
}

impl<P: Protocol> Conversation<'_, P> {
    /// Reads what the peer sends, then its close.
    ///
    /// # Panics
    /// When the codec uses more than it was given, or does not come on.
    pub fn read<'b>(mut self, pieces: impl Iterator<Item = &'b [u8]>) -> Log {
        let mut log = Log::default();
        let mut parts = BTreeMap::<u32, Vec<u8>>::new();
        for piece in pieces {
            let mut rest = piece;
            let mut idle = 0;
            loop {
                let (consumed, has_ended) =
                    match self.codec.receive(&mut self.conn, rest, &mut log.out) {
                        Err(fault) => {
                            log.fault = Some(fault);
                            return log;
                        }
                        Ok(Event::More) => break,
                        Ok(Event::Progress { consumed }) => (consumed, false),
                        Ok(Event::Part { tag, bytes, consumed }) => {
                            assert!(!bytes.is_empty(), "an empty part");
                            parts.entry(tag).or_default().extend_from_slice(bytes);
                            (consumed, false)
                        }
                        Ok(Event::Reply { tag, reply, consumed, reusable }) => {
                            let parts = parts.remove(&tag).unwrap_or_default();
                            let result = Ok((self.shown)(&reply));
                            log.ended.push(Ended { tag, parts, result, is_reusable: reusable });
                            (consumed, true)
                        }
                        Ok(Event::GivenUp { tag, fault, unprocessed, consumed }) => {
                            let parts = parts.remove(&tag).unwrap_or_default();
                            let result = Err(fault);
                            log.ended.push(Ended { tag, parts, result, is_reusable: unprocessed });
                            (consumed, true)
                        }
                    };
                assert!(consumed <= rest.len(), "{consumed} of {} bytes consumed", rest.len());
                idle = if consumed == 0 { idle + 1 } else { 0 };
                assert!(idle < 1000, "a thousand steps without a byte");
                rest = &rest[consumed..];
                if has_ended {
                    (self.next)(self.codec, &mut self.conn, &mut log.out);
                }
            }
        }
        match self.codec.end(&mut self.conn) {
            Ok(Event::Reply { tag, reply, reusable, .. }) => {
                let parts = parts.remove(&tag).unwrap_or_default();
                let result = Ok((self.shown)(&reply));
                log.ended.push(Ended { tag, parts, result, is_reusable: reusable });
            }
            Ok(_) => {}
            Err(fault) => log.fault = Some(fault),
        }
        log
    }
}

/// Parts of a log that need not be the same for pieces and for the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Differing {
    /// None.
    Nothing,
    /// The reason of a fault: bytes that end inside a line may be wrong already, or only be cut.
    Faults,
    /// Bytes that the codec answers: there are random numbers in them.
    Answers,
}

/// Reads an input in one piece and in pieces of `size` bytes; the same must come of both. Returns it.
///
/// # Panics
/// When they differ.
pub fn split_alike<'c, P: Protocol + 'c>(
    make: impl Fn() -> Conversation<'c, P>,
    bytes: &[u8],
    size: usize,
    differing: Differing,
) -> Log {
    let whole = make().read(std::iter::once(bytes));
    let mut cut = make().read(bytes.chunks(size.max(1)));
    match differing {
        Differing::Nothing => {}
        Differing::Faults => {
            assert_eq!(cut.fault.is_some(), whole.fault.is_some());
            cut.fault = whole.fault;
        }
        Differing::Answers => cut.out.clone_from(&whole.out),
    }
    assert_eq!(cut, whole, "in pieces of {size} bytes, and whole");
    whole
}
