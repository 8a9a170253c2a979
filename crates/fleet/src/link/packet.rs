//! The form of a packet on the bus.

use thiserror::Error;

/// Longest body. With its head a packet is well below the least limit of a bus.
pub const BODY_MAX: usize = 128 << 10;
/// First byte of every packet: the version of the form.
const VERSION: u8 = 1;
const HEAD: usize = 1 + 8 + 8 + 8 + 1 + 16;

/// A packet that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not a packet of this version of plimsoll")]
pub struct PacketError;

/// Content of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A part of a message.
    Data { number: u64, has_more: bool },
    /// Nothing but the acknowledgement.
    Acknowledgement,
    /// A question for the other end's clock.
    Ping { sent_ns: u64 },
    /// The answer, with the time of the question.
    Pong { sent_ns: u64, peer_ns: u64 },
}

/// Unit that is sent over the bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) kind: Kind,
    /// All packets up to this number have arrived.
    pub(super) acknowledged: u64,
    pub(super) body: Vec<u8>,
}

impl Packet {
    /// Number of the end that sent it.
    #[must_use]
    pub const fn from(&self) -> u64 {
        self.from
    }

    /// The bytes of the packet.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let (kind, first, second) = match self.kind {
            Kind::Data { number, has_more } => (u8::from(has_more), number, 0),
            Kind::Acknowledgement => (2, 0, 0),
            Kind::Ping { sent_ns } => (3, sent_ns, 0),
            Kind::Pong { sent_ns, peer_ns } => (4, sent_ns, peer_ns),
        };
        let mut bytes = Vec::with_capacity(HEAD + self.body.len());
        bytes.push(VERSION);
        for number in [self.from, self.to, self.acknowledged] {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        bytes.push(kind);
        bytes.extend_from_slice(&first.to_be_bytes());
        bytes.extend_from_slice(&second.to_be_bytes());
        bytes.extend_from_slice(&self.body);
        bytes
    }

    /// Reads the bytes of a packet.
    ///
    /// # Errors
    /// When they are none.
    pub fn decode(bytes: &[u8]) -> Result<Self, PacketError> {
        let (head, body) = bytes.split_at_checked(HEAD).ok_or(PacketError)?;
        let number = |at: usize| {
            let bytes = head.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
            bytes.map(u64::from_be_bytes).ok_or(PacketError)
        };
        let (first, second) = (number(26)?, number(34)?);
        let kind = match head[25] {
            0 | 1 => Kind::Data { number: first, has_more: head[25] == 1 },
            2 => Kind::Acknowledgement,
            3 => Kind::Ping { sent_ns: first },
            4 => Kind::Pong { sent_ns: first, peer_ns: second },
            _ => return Err(PacketError),
        };
        if head[0] != VERSION || body.len() > BODY_MAX {
            return Err(PacketError);
        }
        Ok(Self {
            from: number(1)?,
            to: number(9)?,
            kind,
            acknowledged: number(17)?,
            body: body.to_vec(),
        })
    }
}
