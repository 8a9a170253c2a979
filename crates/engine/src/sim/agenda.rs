//! Events of a simulation, in order.

use crate::net::Completion;
use std::cmp::Ordering;

/// A thing that the client learns.
pub(super) enum Delivery {
    Plain(Completion),
    Bytes(Vec<u8>),
}

/// An event between client and peers.
pub(super) enum Happening {
    ToClient(u64, Delivery),
    ToPeer(u64, Vec<u8>),
    ClientClosed(u64),
    Wake(u64, u64),
    Hook(Box<dyn FnOnce()>),
}

/// An event with its time.
pub(super) struct Entry {
    pub at_ns: u64,
    /// Breaks ties, so that what was planned first happens first.
    pub number: u64,
    pub what: Happening,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at_ns, self.number).cmp(&(other.at_ns, other.number))
    }
}
