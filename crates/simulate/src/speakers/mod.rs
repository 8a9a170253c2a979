//! The servers' side of each protocol: requests in, answers out, right or wrong.
//!
//! A speaker knows bytes and nothing of time; when something is said is up to the [`Station`](crate::station::Station).

pub mod application;
pub mod frames;
pub mod http1;
pub mod http2;
pub mod postgres;
pub mod volt;

use crate::faults::Fault;
use crate::truth::Fate;
use plimsoll_core::rng::Rng;

/// A request as a server has heard it.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The number that the client gave it.
    pub serial: u64,
    /// The stream or handle that its answer must have.
    pub handle: u64,
    /// Time at which the client sent its last byte, ns.
    pub sent_ns: u64,
    /// Its text, where the answer depends on it.
    pub text: Vec<u8>,
    /// False if only its beginning is there.
    pub is_whole: bool,
}

/// Result of some bytes.
#[derive(Debug, Default)]
pub struct Heard {
    /// Requests that have come, in their order.
    pub requests: Vec<Request>,
    /// Bytes that are said at once.
    pub at_once: Vec<u8>,
    /// Bytes that are said later, with their delay, ns.
    pub later: Vec<(u64, Vec<u8>)>,
    /// A breach of the protocol by the client.
    pub offence: Option<String>,
    /// Faults that were committed by what is said.
    pub faults: Vec<Fault>,
    /// The connection ends with what is said at once.
    pub ends: bool,
    /// Handles of requests that the client gives up.
    pub given_up: Vec<u64>,
}

/// An answer, ready to be sent.
#[derive(Debug)]
pub struct Answer {
    /// Its bytes, in pieces between which other things may be said.
    pub pieces: Vec<Vec<u8>>,
    /// Its meaning for the client.
    pub fate: Fate,
    /// Nothing that comes behind it on the connection need be understood.
    pub ruins: bool,
    /// The connection is closed behind it.
    pub closes: bool,
    /// Requests with a higher handle are not looked at any more.
    pub last_handle: Option<u64>,
    /// Bytes that follow at once and belong to no answer; the client may stumble over them only behind this answer.
    pub extra: Vec<u8>,
}

impl Answer {
    /// An answer that is as it should be.
    #[must_use]
    pub fn right(pieces: Vec<Vec<u8>>) -> Self {
        Self {
            pieces,
            fate: Fate::Right,
            ruins: false,
            closes: false,
            last_handle: None,
            extra: Vec::new(),
        }
    }

    /// The same with another fate.
    #[must_use]
    pub fn with(self, fate: Fate) -> Self {
        Self { fate, ..self }
    }

    /// The same; nothing behind it need be understood.
    #[must_use]
    pub fn ruining(self) -> Self {
        Self { ruins: true, ..self }
    }

    /// The same; the connection is closed behind it.
    #[must_use]
    pub fn closing(self) -> Self {
        Self { closes: true, ..self }
    }
}

impl Answer {
    /// The same, said twice.
    #[must_use]
    pub fn twice(mut self) -> Self {
        self.extra = self.pieces.concat();
        self
    }

    /// The same, and these bytes behind it.
    #[must_use]
    pub fn followed_by(self, extra: Vec<u8>) -> Self {
        Self { extra, ..self }
    }
}

/// The server's side of a protocol.
pub trait Speaker {
    /// State of one connection.
    type Line;

    /// True if answers come in the order of the requests.
    const ORDERED: bool;

    /// The faults that this protocol has, besides those of connections.
    const FAULTS: &'static [Fault];

    /// A connection has come up.
    fn open(&mut self, rng: &mut Rng) -> Self::Line;

    /// Bytes have come.
    fn hear(&mut self, line: &mut Self::Line, bytes: &[u8], heard: &mut Heard, rng: &mut Rng);

    /// A request has come and will be worked on.
    fn begun(&mut self, _request: &Request) {}

    /// A request is not answered rightly; whether it was done all the same is up to the server.
    fn forsaken(&mut self, _request: &Request, _rng: &mut Rng) {}

    /// The answer to a request, with a fault if there is one.
    fn answer(
        &mut self,
        line: &mut Self::Line,
        request: &Request,
        fault: Option<Fault>,
        rng: &mut Rng,
    ) -> Answer;
}

/// Cuts bytes into two pieces, or leaves them whole.
pub(crate) fn in_pieces(mut bytes: Vec<u8>, rng: &mut Rng) -> Vec<Vec<u8>> {
    if bytes.len() < 2 || rng.below(2) == 0 {
        return vec![bytes];
    }
    let rest = bytes.split_off(1 + rng.below(bytes.len() as u64 - 1) as usize);
    vec![bytes, rest]
}
