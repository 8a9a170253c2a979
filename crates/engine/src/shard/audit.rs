//! Invariants between the parts of a shard.
//!
//! - Every request that the schedule has given is in one place of the ledger, or in the managed queue.
//! - Every request that was sent has ended, was written off, or has a slot among the flights.
//! - Every flight is in one place: in flight on a connection, waiting for one, or waiting to be sent again.
//! - No connection is forgotten: one that could take a request is in a queue of idle ones, or a request waits for it.
//! - Nothing is held back while the shard waits.
//!
//! The sums cost next to nothing: they are checked every second and at the end, in release builds too. All else is checked
//! in debug builds, so that each simulated run is a test of it.

use super::Shard;
use crate::net::Net;
use plimsoll_core::clock::Clock;
use plimsoll_wire::Protocol;

/// More connections and slots than this are not looked at one by one: that would be felt in the times.
const AUDITED_MAX: usize = 1024;
/// Connections and slots that a round pays for, on average.
const A_ROUND: usize = 8;

/// The rounds until all parts are looked at again.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rounds(usize);

impl<P: Protocol, N: Net, C: Clock> Shard<P, N, C> {
    /// Checks, before the shard waits, what must hold between its parts: as much of it as is cheap now.
    ///
    /// # Panics
    /// When it does not hold: the figures would be wrong.
    #[inline]
    pub(super) fn audit(&mut self, is_second_over: bool) {
        if is_second_over || cfg!(debug_assertions) {
            self.check_books();
        }
        if cfg!(debug_assertions) {
            self.audit_parts();
        }
    }

    /// Checks that each request is counted once.
    ///
    /// # Panics
    /// When one is not.
    pub(super) fn check_books(&mut self) {
        let scheduled = self.books.check(self.flights.len());
        self.agenda.check(scheduled);
    }

    fn audit_parts(&mut self) {
        let Rounds(left) = &mut self.rounds;
        if *left > 0 {
            *left -= 1;
            return;
        }
        let parts = (self.connections.len() + self.flights.len()) as usize;
        *left = parts / A_ROUND;
        if parts <= AUDITED_MAX {
            self.flights.audit();
            self.connections.audit(&self.flights, &self.protocol);
            self.line.audit();
        }
    }
}
