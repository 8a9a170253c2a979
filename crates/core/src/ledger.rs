//! The ledger of a run: it balances, or the run is void.

use crate::outcome::{Failure, Outcome};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Requests that admission rejected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Refused {
    /// The bounded queue was full when the request was due.
    pub queue_full: u64,
    /// The request waited in the queue longer than its limit.
    pub queue_timeout: u64,
}

/// Requests that were due but never sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unsent {
    /// The run ended while they waited for a connection, and a timeout after it they still did.
    pub stopped: u64,
}

/// Requests that were sent and failed, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Failed {
    /// No connection.
    pub connect: u64,
    /// TLS was not agreed on.
    pub tls: u64,
    /// No whole reply within the timeout.
    pub timeout: u64,
    /// The connection broke.
    pub reset: u64,
    /// The reply ended early.
    pub short: u64,
    /// The reply breaks the protocol.
    pub protocol: u64,
    /// A status that is no success.
    pub status: u64,
    /// A check of the reply failed.
    pub check: u64,
    /// The reply itself reports an error.
    pub app: u64,
}

impl Failed {
    /// The column of one kind.
    pub fn column(&mut self, kind: Failure) -> &mut u64 {
        match kind {
            Failure::Connect => &mut self.connect,
            Failure::Tls => &mut self.tls,
            Failure::Timeout => &mut self.timeout,
            Failure::Reset => &mut self.reset,
            Failure::Short => &mut self.short,
            Failure::Protocol => &mut self.protocol,
            Failure::Status => &mut self.status,
            Failure::Check => &mut self.check,
            Failure::App => &mut self.app,
        }
    }

    /// The count of one kind.
    #[must_use]
    pub fn get(&self, kind: Failure) -> u64 {
        let mut copy = *self;
        *copy.column(kind)
    }

    /// All failed requests.
    #[must_use]
    pub fn total(&self) -> u64 {
        Failure::ALL.iter().map(|&kind| self.get(kind)).sum()
    }
}

/// Every request that the schedule asked for, in exactly one place.
///
/// `scheduled = sent + refused + unsent` and `sent = ok + failed + unfinished`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ledger {
    /// Requests that the schedule made due.
    pub scheduled: u64,
    /// Requests handed to a connection, or that failed for want of one.
    pub sent: u64,
    /// Requests that succeeded.
    pub ok: u64,
    /// Requests that admission rejected.
    pub refused: Refused,
    /// Requests that were due but never sent.
    pub unsent: Unsent,
    /// Requests that failed.
    pub failed: Failed,
    /// Requests still in flight when the run was cut off.
    pub unfinished: u64,
}

/// A ledger that does not balance: a defect of plimsoll; the run's numbers must not be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "the ledger does not balance: {rule} ({left} against {right}); this is a defect in plimsoll, the run is void"
)]
pub struct Imbalance {
    /// The equation that failed.
    pub rule: &'static str,
    /// Its left side.
    pub left: u64,
    /// Its right side.
    pub right: u64,
}

/// Number of columns of a [`Ledger`].
pub(crate) const COLUMNS: usize = 7 + Failure::ALL.len();

impl Ledger {
    /// All columns, those of failures last.
    pub(crate) fn columns(mut self) -> [u64; COLUMNS] {
        let mut columns = [0; COLUMNS];
        self.each_column(|index, column| columns[index] = *column);
        columns
    }

    /// The ledger with these columns.
    pub(crate) fn of_columns(columns: [u64; COLUMNS]) -> Self {
        let mut own = Self::default();
        own.each_column(|index, column| *column = columns[index]);
        own
    }

    fn each_column(&mut self, mut see: impl FnMut(usize, &mut u64)) {
        let Self { scheduled, sent, ok, refused, unsent, failed, unfinished } = self;
        let Refused { queue_full, queue_timeout } = refused;
        let Unsent { stopped } = unsent;
        let first = [scheduled, sent, ok, queue_full, queue_timeout, stopped, unfinished];
        first.into_iter().enumerate().for_each(|(index, column)| see(index, column));
        for kind in Failure::ALL {
            see(7 + kind as usize, failed.column(kind));
        }
    }

    /// Counts the end of a request that was sent.
    pub fn settle(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Ok => self.ok += 1,
            Outcome::Failed(kind) => *self.failed.column(kind) += 1,
        }
    }

    /// Adds another ledger, column by column.
    pub fn merge(&mut self, other: &Ledger) {
        self.scheduled += other.scheduled;
        self.sent += other.sent;
        self.ok += other.ok;
        self.refused.queue_full += other.refused.queue_full;
        self.refused.queue_timeout += other.refused.queue_timeout;
        self.unsent.stopped += other.unsent.stopped;
        self.unfinished += other.unfinished;
        for kind in Failure::ALL {
            *self.failed.column(kind) += other.failed.get(kind);
        }
    }

    /// Requests that came to an end, good or bad.
    #[must_use]
    pub fn finished(&self) -> u64 {
        self.ok + self.failed.total()
    }

    /// Checks both equations.
    ///
    /// # Errors
    /// The equation that does not hold, with both sides.
    pub fn balance(&self) -> Result<(), Imbalance> {
        let due =
            self.sent + self.refused.queue_full + self.refused.queue_timeout + self.unsent.stopped;
        if self.scheduled != due {
            return Err(Imbalance {
                rule: "scheduled = sent + refused + unsent",
                left: self.scheduled,
                right: due,
            });
        }
        let ended = self.finished() + self.unfinished;
        if self.sent != ended {
            return Err(Imbalance {
                rule: "sent = ok + failed + unfinished",
                left: self.sent,
                right: ended,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn settled_requests_balance(outcomes in proptest::collection::vec(0usize..=9, 0..200)) {
            let mut ledger = Ledger::default();
            for &o in &outcomes {
                ledger.scheduled += 1;
                ledger.sent += 1;
                ledger.settle(if o == 9 { Outcome::Ok } else { Outcome::Failed(Failure::ALL[o]) });
            }
            prop_assert!(ledger.balance().is_ok());
            let mut twice = ledger;
            twice.merge(&ledger);
            prop_assert_eq!(twice.finished(), 2 * outcomes.len() as u64);
            prop_assert!(twice.balance().is_ok());
            twice.sent += 1;
            prop_assert!(twice.balance().is_err());
        }
    }
}
