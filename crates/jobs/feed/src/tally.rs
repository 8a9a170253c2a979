//! Outcomes of requests and operations, counted by one worker thread.

use super::batch::Item;
use plimsoll_core::histogram::Histogram;
use plimsoll_core::outcome::Failure;
use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;

/// Times of the answers of one status.
#[derive(Clone, Debug)]
pub struct CodeTally {
    /// The status.
    pub status: u16,
    /// From sending to the last byte, every answer.
    pub server: Histogram,
    /// From the operation's turn on, of the answers that settled theirs.
    pub whole: Histogram,
}

/// Place of an operation that was left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Left {
    /// Its number in the whole input, from 1.
    pub number: u64,
    /// Index of its file.
    pub file: u32,
    /// Its line in that file, from 1.
    pub line: u64,
}

/// Counts and times of a feed, or of one shard of it.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Requests sent.
    pub requests: u64,
    /// Operations accepted.
    pub accepted: u64,
    /// Operations that came to another end.
    pub refused: u64,
    /// Operations that were done but for fields that the target does not know.
    pub ignored_fields: u64,
    /// Operations that the target answered and did not do, since no cluster takes the document.
    pub ignored_operations: u64,
    /// Operations that came to none.
    pub unsettled: u64,
    /// Operations that were read, and left alone because the feed's time was over.
    pub left: u64,
    /// The first of them.
    pub first_left: Option<Left>,
    /// Bytes of bodies sent.
    pub body_bytes: u64,
    /// Bytes of bodies received.
    pub reply_bytes: u64,
    /// Most requests in flight.
    pub most_under_way: u32,
    /// The window at the end.
    pub window: u32,
    /// Number of times that it was made smaller.
    pub shrinks: u64,
    /// Number of times that the circuit opened.
    pub pauses: u64,
    /// For how long the shard that waited longest had room for operations and none had been read, ns.
    pub starved_ns: u64,
    /// Time at which the first request was sent, ns; 0 when none was.
    pub first_ns: u64,
    /// Time at which the last operation was settled, ns.
    pub last_ns: u64,
    /// By status; a few.
    pub codes: Vec<CodeTally>,
    /// Requests without an answer, by what befell them.
    pub lost: [u64; Failure::COUNT],
    /// Repetitions by status; 0 to 8 stand for what befell the connection, in the ledger's order.
    pub retries: BTreeMap<u16, u64>,
}

impl Tally {
    /// Counts an operation that was read and is left alone.
    pub fn leave(&mut self, item: &Item) {
        self.left += 1;
        let place = Left { number: item.number, file: item.file, line: item.line };
        self.first_left = Some(self.first_left.map_or(place, |first| first.min(place)));
    }

    /// The times of a status.
    pub fn code(&mut self, status: u16) -> &mut CodeTally {
        let place = self.codes.iter().position(|code| code.status == status);
        let place = place.unwrap_or_else(|| {
            let (server, whole) = (Histogram::new(), Histogram::new());
            self.codes.push(CodeTally { status, server, whole });
            self.codes.len() - 1
        });
        &mut self.codes[place]
    }

    /// Repetitions by reason.
    #[must_use]
    pub fn retries(&self) -> BTreeMap<String, u64> {
        let name = |why: u16| match Failure::ALL.get(why as usize) {
            Some(failure) => failure.name().to_owned(),
            None => why.to_string(),
        };
        self.retries.iter().map(|(why, count)| (name(*why), *count)).collect()
    }

    /// Requests without an answer, by what befell them.
    #[must_use]
    pub fn lost(&self) -> BTreeMap<String, u64> {
        let some = Failure::ALL.iter().zip(&self.lost).filter(|(_, count)| **count > 0);
        some.map(|(failure, count)| (failure.name().to_owned(), *count)).collect()
    }

    /// Those of all shards that have ended, together.
    #[must_use]
    pub fn of_shards(counted: &Receiver<Tally>) -> Self {
        let mut all = Self::default();
        counted.try_iter().for_each(|own| all.merge(&own));
        all
    }

    /// Adds another shard's.
    pub fn merge(&mut self, other: &Tally) {
        self.requests += other.requests;
        self.accepted += other.accepted;
        self.refused += other.refused;
        self.ignored_fields += other.ignored_fields;
        self.ignored_operations += other.ignored_operations;
        self.unsettled += other.unsettled;
        self.left += other.left;
        self.first_left = [self.first_left, other.first_left].into_iter().flatten().min();
        self.body_bytes += other.body_bytes;
        self.reply_bytes += other.reply_bytes;
        self.most_under_way += other.most_under_way;
        self.window += other.window;
        self.shrinks += other.shrinks;
        self.pauses += other.pauses;
        self.starved_ns = self.starved_ns.max(other.starved_ns);
        self.first_ns = match (self.first_ns, other.first_ns) {
            (0, first_ns) | (first_ns, 0) => first_ns,
            (a, b) => a.min(b),
        };
        self.last_ns = self.last_ns.max(other.last_ns);
        for code in &other.codes {
            let own = self.code(code.status);
            own.server.merge(&code.server);
            own.whole.merge(&code.whole);
        }
        for (own, count) in self.lost.iter_mut().zip(&other.lost) {
            *own += count;
        }
        for (why, count) in &other.retries {
            *self.retries.entry(*why).or_default() += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Batch, Parameters, parse};

    fn item(number: u64) -> Item {
        let operation = parse(br#"{"put":"id:a:b::c","fields":{}}"#).expect("it is one");
        let mut batch = Batch::default();
        batch.push(&operation, (number, 0, number), &Parameters::default());
        batch.take().expect("an operation").0
    }

    #[test]
    fn the_first_operation_that_was_left_alone_is_known() {
        let (mut one, mut other) = (Tally::default(), Tally::default());
        one.leave(&item(9));
        one.leave(&item(7));
        other.leave(&item(8));
        other.merge(&one);
        assert_eq!((other.left, other.first_left.map(|left| left.number)), (3, Some(7)));
    }
}
