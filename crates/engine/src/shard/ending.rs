//! The end of a run: what is due no more, what is still waited for, and what is left to tell.

use super::opening::NOT_YET;
use super::{Shard, ShardEnd};
use crate::net::Net;
use plimsoll_core::clock::{Clock, SECOND_NS};
use plimsoll_core::interval::Interval;
use plimsoll_core::schedule::LoadModel;
use plimsoll_wire::Protocol;

/// Connections whose round trips are looked at.
pub(super) const ROUND_TRIPS_MAX: usize = 1000;

impl<P: Protocol, N: Net, C: Clock> Shard<P, N, C> {
    /// Until when requests that were due in time are sent, ns. In an open model those that waited for a
    /// connection at the end are the ones that a slow target delayed most: they are still asked, as long as
    /// a timeout lasts, so that their waiting is measured. Who stops a run does not want to wait for them.
    pub(super) fn backlog_until_ns(&self) -> u64 {
        if self.stopped_ns.is_some() || self.plan.part.drop_backlog || !self.plan.model.is_open() {
            return self.end_ns;
        }
        self.end_ns.saturating_add(self.plan.timeouts.request_ns)
    }

    /// When something that begins now is over time, ns. What begins after the end has no more than a second
    /// above the time of what began before it: the run must come to its end, and since all of it was due before
    /// the end, a timeout still counts at least its limit.
    pub(super) fn deadline_ns(&self, now_ns: u64, timeout_ns: u64) -> u64 {
        let deadline_ns = now_ns.saturating_add(timeout_ns);
        if now_ns < self.end_ns {
            return deadline_ns;
        }
        deadline_ns.min(self.end_ns.saturating_add(timeout_ns).saturating_add(SECOND_NS))
    }

    /// When requests that are still under way after the schedule's end are given up, ns: later than any
    /// timeout of theirs, unless connecting and answering both took their time.
    pub(super) fn drained_by_ns(&self) -> u64 {
        let timeouts = self.plan.timeouts;
        let longest_ns = timeouts.connect_ns.max(timeouts.request_ns);
        self.end_ns.saturating_add(longest_ns).saturating_add(SECOND_NS)
    }

    pub(super) fn finish(mut self) -> ShardEnd {
        let now_ns = self.clock.now_ns();
        self.write_off(now_ns);
        let from_ns = self.measured_from_ns().min(now_ns);
        // A schedule that is done early because nothing more falls into its time has run its time.
        let cut_short = self.interrupted
            || self.is_exhausted()
            || self.refused.is_some()
            || self.plan.limits.requests.is_some();
        // Users have run their time when the last one has left, but not before the last one could have come.
        let users_until_ns = match &self.plan.model {
            LoadModel::Users { .. } if self.schedule.somebody_is_there() => None,
            LoadModel::Users { .. } if cut_short => Some(0),
            LoadModel::Users { profile, .. } => {
                Some(self.start_ns.saturating_add(profile.own_duration_ns()))
            }
            _ => None,
        };
        let ran_out = (cut_short || users_until_ns.is_some()) && now_ns < self.end_ns;
        // All arrivals were made: the time behind the last one belongs to them.
        let is_whole = !self.interrupted && !self.exhausted && self.refused.is_none();
        let spans_until_ns = self.schedule.spans_until_ns().filter(|_| is_whole).unwrap_or(0);
        let to_ns = match users_until_ns {
            _ if !ran_out => self.end_ns,
            until_ns => {
                let until_ns = until_ns.unwrap_or(0).max(spans_until_ns);
                self.last_ended_ns.max(until_ns).min(self.end_ns)
            }
        };
        let to_ns = to_ns.max(from_ns);
        let relative_ns = now_ns.saturating_sub(from_ns) + self.plan.part.offset_ns;
        let mut round_trips: Vec<_> = (0..self.connections.len() as u32)
            .filter_map(|key| self.net.round_trip(key))
            .take(ROUND_TRIPS_MAX)
            .collect();
        self.round_trips.truncate(ROUND_TRIPS_MAX - round_trips.len());
        round_trips.append(&mut self.round_trips);
        let last = self.mark(now_ns);
        let marks = self.marks.until(last);
        let client_elapsed_ns = (0..self.client_from_ns.len())
            .map(|client| self.client_elapsed_ns(client, (!ran_out).then_some(to_ns)))
            .sum();
        let clients_measured =
            self.client_from_ns.iter().filter(|&&from_ns| from_ns != NOT_YET).count() as u32;
        let warmup = self.warmup.take().map(|mut w| w.swap(relative_ns, 0, Interval::new(0)));
        ShardEnd {
            rest: self.recorder.swap(relative_ns, 0, Interval::new(0)),
            warmup,
            round_trips,
            measured_ns: (from_ns, to_ns),
            client_elapsed_ns,
            clients_measured,
            health: marks.0.health_until(&marks.1),
            last_success: self.last_success,
            connections: self.growth.in_play,
            marks,
            interrupted: self.interrupted,
            drain_cut: self.drain_cut,
            refused: self.refused,
            slowest: self.slowest.into_places(),
        }
    }

    /// Returns the time for which a client was measured, ns: until it had nothing left to ask, or to the end of the schedule; where that was
    /// cut short (`None`), to its last answer.
    fn client_elapsed_ns(&self, client: usize, to_ns: Option<u64>) -> u64 {
        let from_ns = self.client_from_ns[client];
        let exhausted_ns = self.client_exhausted_ns[client];
        if exhausted_ns == 0 {
            let last_ns = self.client_to_ns[client].max(to_ns.unwrap_or(0));
            return last_ns.saturating_sub(from_ns);
        }
        let offset_ns = match &self.plan.model {
            // Its first cycle began later than the run: as many cycles as requests are its time.
            LoadModel::Closed { clients, cycle_ns, .. } if self.plan.ignore_first == 0 => {
                let number = u128::from(self.plan.slice.global(client as u64));
                (u128::from(*cycle_ns) * number / u128::from((*clients).max(1))) as u64
            }
            _ => 0,
        };
        exhausted_ns.saturating_sub(from_ns.saturating_add(offset_ns))
    }

    /// Whether the run ended because nothing was left to ask. Where clients have a cycle, it ends before its time also
    /// because their next ones begin after it: not so when all had nothing left.
    fn is_exhausted(&self) -> bool {
        self.exhausted && (self.plan.cycle_ns() == 0 || !self.client_exhausted_ns.contains(&0))
    }
}
