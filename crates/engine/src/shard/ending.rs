//! The end of a run: what is due no more, what is still waited for, and what is left to tell.

use super::{Shard, ShardEnd};
use crate::net::Net;
use plimsoll_core::clock::Clock;
use plimsoll_core::schedule::LoadModel;
use plimsoll_wire::Protocol;

impl<P: Protocol, N: Net, C: Clock> Shard<P, N, C> {
    /// Returns true if everything has come to its end.
    pub(super) fn is_over(&mut self, now_ns: u64) -> bool {
        self.course.notice_stop(now_ns, || self.flights.is_empty() && self.agenda.is_done());
        if self.course.is_end_asked() {
            self.course.end_by(now_ns);
            self.end_schedule(self.course.end_ns());
        }
        if now_ns >= self.course.backlog_until_ns() {
            self.end_schedule(self.course.end_ns());
        }
        if now_ns >= self.course.drained_by_ns() {
            self.flights.all_overdue(now_ns);
            self.expire(now_ns);
        }
        if !self.agenda.is_done() {
            return false;
        }
        let is_drained = self.flights.is_empty() && self.agenda.queued() == 0;
        is_drained || self.course.has_stopped(now_ns)
    }

    /// Ends a shard whose schedule never began.
    pub fn abandon(self) {
        self.sessions.finish(self.clock.now_ns());
    }

    pub(super) fn finish(mut self) -> ShardEnd {
        let now_ns = self.clock.now_ns();
        self.write_off(now_ns);
        self.check_books();
        let from_ns = self.course.measured_from_ns().min(now_ns);
        let (start_ns, end_ns) = (self.course.start_ns(), self.course.end_ns());
        let (interrupted, refused) = (self.course.is_interrupted(), self.course.refusal());
        // A schedule that is done early because nothing more falls into its time has run its time.
        let cut_short = interrupted
            || self.books.is_exhausted()
            || refused.is_some()
            || self.plan.limits.requests.is_some();
        // Users have run their time when the last one has left, but not before the last one could have come.
        let users_until_ns = match &self.plan.model {
            LoadModel::Users { .. } if self.agenda.is_somebody_there() => None,
            LoadModel::Users { .. } if cut_short => Some(0),
            LoadModel::Users { profile, .. } => {
                Some(start_ns.saturating_add(profile.own_duration_ns()))
            }
            _ => None,
        };
        let ran_out = (cut_short || users_until_ns.is_some()) && now_ns < end_ns;
        // All arrivals were made: the time behind the last one belongs to them.
        let is_whole = !interrupted && !self.books.is_anybody_exhausted() && refused.is_none();
        let spans_until_ns = self.agenda.spans_until_ns().filter(|_| is_whole).unwrap_or(0);
        let to_ns = match users_until_ns {
            _ if !ran_out => end_ns,
            until_ns => {
                let until_ns = until_ns.unwrap_or(0).max(spans_until_ns);
                self.books.last_ended_ns().max(until_ns).min(end_ns)
            }
        };
        let to_ns = to_ns.max(from_ns);
        let relative_ns = now_ns.saturating_sub(from_ns) + self.plan.part.offset_ns;
        let open = (0..self.connections.len()).filter_map(|key| self.line.round_trip(key));
        let round_trips = self.books.round_trips(open);
        let last = self.mark(now_ns);
        let (marks, health) = self.books.marks(last);
        let (client_elapsed_ns, clients_measured) =
            self.books.clients_measured(&self.plan, (!ran_out).then_some(to_ns));
        let last_success = self.books.last_success();
        self.sessions.finish(now_ns);
        let (rest, warmup, slowest) = self.books.close(relative_ns);
        ShardEnd {
            rest,
            warmup,
            round_trips,
            measured_ns: (from_ns, to_ns),
            client_elapsed_ns,
            clients_measured,
            health,
            last_success,
            connections: self.connections.in_play(),
            marks,
            interrupted,
            drain_cut: self.course.is_drain_cut(),
            refused,
            slowest,
        }
    }
}
