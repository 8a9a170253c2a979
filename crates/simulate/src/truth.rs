//! The truth of a run: requests that came to the peer, and its answers.

use crate::faults::{Counts, Fault};
use plimsoll_core::outcome::Failure;
use std::collections::BTreeMap;

/// Fate of a request at the peer, and so the outcomes that it can have for the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Answered as it should be.
    Right,
    /// Answered with a no of this kind.
    No(Failure),
    /// Answered with something that is no right answer.
    Wrong,
    /// Answered with bytes whose content decides, as the client checks it.
    Doubtful,
    /// Not answered, or only in part.
    Broken,
    /// Answered after its timeout.
    Late,
    /// Not looked at, as the peer itself vouches: it may be sent again.
    Unprocessed,
    /// It came on a connection that the peer had closed.
    DeadOnArrival,
}

/// One complete request as it came to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The number that the client gave it.
    pub serial: u64,
    /// Its connection.
    pub connection: u64,
    /// Requests that had begun on the connection before.
    pub prior: u32,
    /// Time at which the client sent its last byte, ns.
    pub sent_ns: u64,
    /// Time at which its last byte came, ns.
    pub came_ns: u64,
    /// Its fate.
    pub fate: Fate,
    /// Time at which the first byte of its answer left, ns.
    pub began_ns: Option<u64>,
    /// Time at which the last byte of its answer left, ns.
    pub said_ns: Option<u64>,
    /// The answer was cut: the client may see that it began, or not.
    pub is_cut: bool,
}

/// All that the peers of a run have seen and done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// True if answers come in the order of the requests: a client that gives one up must leave the connection.
    pub is_ordered: bool,
    /// Complete requests, in their order.
    pub attempts: Vec<Attempt>,
    /// Time from which nothing on a connection need be understood any more, ns.
    pub ruined: BTreeMap<u64, u64>,
    /// Time from which the client has perhaps not read the answers on a connection that it left, ns.
    pub left: BTreeMap<u64, u64>,
    /// Faults that were committed.
    pub faults: Counts,
    /// Breaches of the protocol by the client.
    pub offences: Vec<String>,
    /// Connections that came up.
    pub connections: u64,
}

impl Log {
    /// From now on nothing on this connection need be understood.
    pub fn ruin(&mut self, connection: u64, now_ns: u64) {
        self.ruined
            .entry(connection)
            .and_modify(|at_ns| *at_ns = now_ns.min(*at_ns))
            .or_insert(now_ns);
    }

    /// Returns the time from which a connection is ruined, or left by the client, ns.
    #[must_use]
    pub fn broken_ns(&self, connection: u64) -> u64 {
        let left_ns = self.left.get(&connection).copied().unwrap_or(u64::MAX);
        self.ruined_ns(connection).min(left_ns)
    }

    /// Counts a fault.
    pub fn commit(&mut self, fault: Fault) {
        self.faults.add(fault);
    }

    /// Notes an offence of the client; the first few are enough.
    pub fn offence(&mut self, what: impl FnOnce() -> String) {
        if self.offences.len() < 5 {
            self.offences.push(what());
        }
    }

    /// Returns the time from which a connection is ruined, ns.
    #[must_use]
    pub fn ruined_ns(&self, connection: u64) -> u64 {
        self.ruined.get(&connection).copied().unwrap_or(u64::MAX)
    }
}
