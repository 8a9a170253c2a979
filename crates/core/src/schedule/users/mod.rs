//! Virtual users: each comes, asks its requests one after the other, and leaves.
//!
//! Users come by themselves (open steps), or there is always the number of them that the profile says (closed steps). The
//! first request of a user is due when it comes; each later one when its answer before is there and its think time is
//! over, or with a pace, one period after the one before was due. All moments and all random draws follow from the seed
//! and the number of the user, so that slices of the users are the whole, on any number of threads.
//!
//! A user who has left takes no memory, nor does one who has not arrived: a user costs [`USER_BYTES`] while active.

mod coming;
mod pause;
mod profile;
mod seats;
#[cfg(test)]
mod tests;
mod text;

pub use pause::{Pause, PauseError};
pub use profile::{ProfileError, Stairs, UserProfile, UserStep};

use super::{Limits, Next, Slice};
use crate::rng::derive_seed;
use coming::{Arrival, Coming};
use seats::Seats;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Memory of an active user, bytes.
pub const USER_BYTES: usize = size_of::<Place>() + size_of::<(u64, u32)>() + size_of::<u32>();

/// A user, and the index of the request within the user's session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UserTurn {
    /// The number of the user in the whole run, from 0, in the order in which users come.
    pub user: u64,
    /// The number of its request, from 0.
    pub step: u32,
    /// Since when the user could ask it, ns; later than its intended start where a user with a pace waited for an
    /// answer.
    pub free_ns: u64,
}

/// A user who is there.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    user: u64,
    /// Since when it may ask, ns.
    free_ns: u64,
    asked: u32,
    /// Its request was taken back, and is asked again.
    postponed: bool,
}

#[derive(Clone, Debug)]
enum Source {
    Coming(Coming),
    Seats {
        seats: Seats,
        /// Number of users that have come to this slice.
        came: u64,
    },
}

/// The requests of each user, and the time between them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stay {
    /// Requests of each user; 0 counts as 1.
    pub requests: u32,
    /// Think time between an answer and its next request.
    pub think: Pause,
    /// Time from one intended start of a user to its next, ns; 0: none.
    pub pace_ns: u64,
}

/// Users who come, ask and leave.
#[derive(Clone, Debug)]
pub struct UserSchedule {
    requests: u32,
    think: Pause,
    pace_ns: u64,
    seed: u64,
    start_ns: u64,
    end_ns: u64,
    slice: Slice,
    /// Requests of this slice that may still be made.
    left: u64,
    source: Source,
    places: Vec<Place>,
    free: Vec<u32>,
    /// Time at which users ask next, soonest first.
    waiting: BinaryHeap<Reverse<(u64, u32)>>,
    /// Users whose request is in flight.
    away: u32,
}

impl UserSchedule {
    pub(super) fn new(
        profile: &UserProfile,
        stay: Stay,
        slice: Slice,
        limits: Limits,
        seed: u64,
        start_ns: u64,
    ) -> Self {
        let source = if profile.is_closed() {
            Source::Seats { seats: Seats::new(profile, slice, start_ns), came: 0 }
        } else {
            Source::Coming(Coming::new(profile, slice, seed, start_ns))
        };
        Self {
            requests: stay.requests.max(1),
            think: stay.think,
            pace_ns: stay.pace_ns,
            seed: derive_seed(seed, "think"),
            start_ns,
            end_ns: start_ns.saturating_add(limits.duration_ns),
            slice,
            left: limits.requests.map_or(u64::MAX, |r| slice.share(r)),
            source,
            places: Vec::new(),
            free: Vec::new(),
            waiting: BinaryHeap::new(),
            away: 0,
        }
    }

    /// Moves the start of the profile this far before the run: earlier users are active, at the request that they would have reached
    /// had each reply taken `answer_ns`. No effect on users whose number is held.
    pub(super) fn begin_before(&mut self, before_ns: u64, answer_ns: u64) {
        let Source::Coming(coming) = &mut self.source else { return };
        coming.begin_before(before_ns);
        let start_ns = self.start_ns;
        loop {
            let Source::Coming(coming) = &mut self.source else { return };
            if coming.upcoming().is_none_or(|arrival| arrival.at_ns >= start_ns) {
                return;
            }
            let Some(arrival) = coming.take() else { return };
            let (mut asked, mut due_ns) = (0, arrival.at_ns);
            while due_ns < start_ns && asked < self.requests {
                asked += 1;
                let done_ns = due_ns.saturating_add(answer_ns);
                due_ns = self.next_due_ns((arrival.user, asked), due_ns, done_ns);
            }
            if asked < self.requests {
                let client = self.come(arrival);
                self.places[client as usize].asked = asked;
                self.waiting.push(Reverse((due_ns, client)));
            }
        }
    }

    /// Time at which a user asks again that was answered at `done_ns`, ns.
    fn next_due_ns(&self, (user, asked): (u64, u32), intended_ns: u64, done_ns: u64) -> u64 {
        let think_ns = self.think.draw_ns(self.seed, user, asked);
        let rested_ns = done_ns.saturating_add(think_ns);
        match (self.pace_ns, think_ns) {
            (0, _) => rested_ns,
            (pace_ns, 0) => intended_ns.saturating_add(pace_ns),
            (pace_ns, _) => intended_ns.saturating_add(pace_ns).max(rested_ns),
        }
    }

    /// The user of this place, and the index of the request that was made due for it last.
    pub(super) fn turn(&self, client: u32) -> Option<UserTurn> {
        let place = self.places.get(client as usize)?;
        let step = place.asked.saturating_sub(1);
        Some(UserTurn { user: place.user, step, free_ns: place.free_ns })
    }

    /// Number of users that are there.
    #[must_use]
    pub fn present(&self) -> u64 {
        (self.places.len() - self.free.len()) as u64
    }

    fn come(&mut self, arrival: Arrival) -> u32 {
        let place =
            Place { user: arrival.user, free_ns: arrival.at_ns, asked: 0, postponed: false };
        if let Some(client) = self.free.pop() {
            self.places[client as usize] = place;
            return client;
        }
        self.places.push(place);
        (self.places.len() - 1) as u32
    }

    fn leave(&mut self, client: u32) {
        self.free.push(client);
    }

    /// Makes the changes of the number of users that have come by `now_ns`, and fills the free seats.
    fn fill_seats(&mut self, now_ns: u64) {
        loop {
            let Source::Seats { seats, .. } = &mut self.source else { return };
            match seats.upcoming() {
                Some(change) if change.at_ns <= now_ns => {
                    seats.take();
                    self.seat(change.at_ns);
                }
                _ => return,
            }
        }
    }

    /// Lets users come at `at_ns` until every seat is taken.
    fn seat(&mut self, at_ns: u64) {
        loop {
            let present = self.present();
            let Source::Seats { seats, came } = &mut self.source else { return };
            if present >= seats.seats() {
                return;
            }
            let user = self.slice.global(*came);
            *came += 1;
            let client = self.come(Arrival { user, at_ns });
            self.waiting.push(Reverse((at_ns, client)));
        }
    }

    #[inline]
    pub(super) fn next(&mut self, now_ns: u64) -> Next {
        if self.left == 0 {
            return Next::Done;
        }
        self.fill_seats(now_ns);
        let waiting = self.waiting.peek().map(|&Reverse((due_ns, _))| due_ns);
        let coming = match &self.source {
            Source::Coming(coming) => coming.upcoming().map(|arrival| arrival.at_ns),
            Source::Seats { .. } => None,
        };
        // Users who are there go before those who come at the same moment.
        let new = coming.is_some_and(|at_ns| waiting.is_none_or(|due_ns| at_ns < due_ns));
        let due_ns = if new { coming } else { waiting };
        match due_ns.filter(|&due_ns| due_ns < self.end_ns) {
            Some(due_ns) if due_ns <= now_ns => self.send(due_ns, new),
            Some(due_ns) => Next::Wait { until_ns: due_ns.min(self.next_change_ns()) },
            None => self.nobody_waits(now_ns),
        }
    }

    fn next_change_ns(&self) -> u64 {
        match &self.source {
            Source::Seats { seats, .. } => seats.upcoming().map_or(u64::MAX, |c| c.at_ns),
            Source::Coming(_) => u64::MAX,
        }
    }

    fn send(&mut self, intended_ns: u64, new: bool) -> Next {
        let client = if new {
            let Source::Coming(coming) = &mut self.source else { return Next::Done };
            let Some(arrival) = coming.take() else { return Next::Done };
            self.come(arrival)
        } else {
            let Some(Reverse((_, client))) = self.waiting.pop() else { return Next::Done };
            client
        };
        self.places[client as usize].asked += 1;
        self.left -= 1;
        self.away += 1;
        Next::Send { intended_ns, client }
    }

    /// Returns the next event at a moment at which no user waits to ask before the end.
    fn nobody_waits(&self, now_ns: u64) -> Next {
        if now_ns >= self.end_ns {
            return Next::Done;
        }
        let change_ns = self.next_change_ns();
        if change_ns < self.end_ns {
            return Next::Wait { until_ns: change_ns };
        }
        if self.away > 0 { Next::Blocked } else { Next::Done }
    }

    #[inline]
    pub(super) fn ended(&mut self, client: u32, intended_ns: u64, now_ns: u64) {
        self.away = self.away.saturating_sub(1);
        let Some(place) = self.places.get_mut(client as usize) else { return };
        place.free_ns = now_ns;
        if std::mem::take(&mut place.postponed) {
            self.waiting.push(Reverse((now_ns, client)));
            return;
        }
        if place.asked >= self.requests {
            // The seat is free from now on, not from before its number last changed.
            self.fill_seats(now_ns);
            self.leave(client);
            self.seat(now_ns);
            return;
        }
        let turn = (place.user, place.asked);
        let due_ns = self.next_due_ns(turn, intended_ns, now_ns);
        self.waiting.push(Reverse((due_ns, client)));
    }

    /// The user at this place has no more requests: it leaves, and no more users arrive. Other requests may have become due
    /// since its own.
    pub(super) fn withdraw(&mut self, client: u32) {
        self.left = self.left.saturating_add(1);
        self.away = self.away.saturating_sub(1);
        self.leave(client);
        match &mut self.source {
            Source::Coming(coming) => coming.stop(),
            Source::Seats { seats, .. } => seats.stop(),
        }
    }

    pub(super) fn postpone(&mut self, client: u32) {
        self.left = self.left.saturating_add(1);
        if let Some(place) = self.places.get_mut(client as usize) {
            place.asked = place.asked.saturating_sub(1);
            place.postponed = true;
        }
    }

    pub(super) fn stop(&mut self) {
        self.left = 0;
    }
}
