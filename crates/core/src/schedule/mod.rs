//! The load model as data, and the pure machine that turns it into intended times.
//!
//! A schedule reads no clock: [`Schedule::next`] is given the time and answers what is due. Arrivals are
//! computed, not stored: a schedule that the target cannot follow costs no memory, and an arrival that is
//! late keeps its intended time and is never dropped.
//!
//! [`Slice`] cuts a schedule into `of` parts whose union is exactly the whole: part `index` takes the
//! arrivals (or the clients) whose number leaves that remainder. A local run is slice 0 of 1.

mod arrivals;
mod closed;
mod model;
mod paced;
mod think;
mod users;

pub use arrivals::{ArrivalSchedule, Skipped};
pub use closed::ClosedSchedule;
pub(crate) use model::time_ns;
pub use model::{Arrivals, CLIENTS_MAX, LoadModel, ModelError, Step};
pub use paced::PacedSchedule;
pub use think::Think;
pub use users::{
    Pause, PauseError, ProfileError, Stairs, USER_BYTES, UserProfile, UserSchedule, UserStep,
    UserTurn,
};

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use users::Stay;

/// Next event of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A request whose intended start is `intended_ns`, at or before the time given.
    Send {
        /// Time at which it should have started.
        intended_ns: u64,
        /// Client that sends it (closed model), or place of the user, which another user takes after it has left; 0
        /// in other models.
        client: u32,
    },
    /// Nothing before this time.
    Wait {
        /// The next intended start.
        until_ns: u64,
    },
    /// Nothing until a request in flight has ended.
    Blocked,
    /// Nothing any more.
    Done,
}

/// One of `of` equal parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Parts")]
pub struct Slice {
    /// Index of the slice, `0..of`.
    pub index: u32,
    /// Number of parts, at least 1.
    pub of: u32,
}

/// A slice as it is read, before it is known to be one.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parts {
    index: u32,
    of: u32,
}

impl Default for Slice {
    fn default() -> Self {
        Self::WHOLE
    }
}

impl TryFrom<Parts> for Slice {
    type Error = String;

    fn try_from(Parts { index, of }: Parts) -> Result<Self, String> {
        if of == 0 || of > Slice::PARTS_MAX {
            return Err(format!("a run has 1 to {} parts, not {of}", Slice::PARTS_MAX));
        }
        if index >= of {
            return Err(format!(
                "the parts of {of} are numbered from 0 to {}, not {index}",
                of - 1
            ));
        }
        Ok(Self { index, of })
    }
}

/// A slice as flags name it: `I/N`, counted from 0.
impl FromStr for Slice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/');
        let parts = parts.and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
        let (index, of) = parts.ok_or_else(|| format!("'{text}': write I/N from 0/N"))?;
        Parts { index, of }.try_into()
    }
}

/// A slice in words, counted from 1: `2 of 5`.
impl fmt::Display for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.index + 1, self.of)
    }
}

impl Slice {
    /// The whole: slice 0 of 1.
    pub const WHOLE: Slice = Slice { index: 0, of: 1 };
    /// Most parts of a run. With 1024 threads in each, a slice of a slice still fits its numbers.
    pub const PARTS_MAX: u32 = 1 << 16;

    /// Returns true for the whole.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.of == 1
    }

    /// Part `index` of `of` of this slice; the parts together are this slice again.
    #[must_use]
    pub fn cut(self, index: u32, of: u32) -> Slice {
        Slice { index: self.index + self.of * index, of: self.of * of }
    }

    /// This slice's share of `total` numbered things.
    #[must_use]
    pub fn share(self, total: u64) -> u64 {
        let (index, of) = (u64::from(self.index), u64::from(self.of));
        total / of + u64::from(total % of > index)
    }

    /// The number in the whole of this slice's `n`-th thing.
    #[must_use]
    pub fn global(self, n: u64) -> u64 {
        n * u64::from(self.of) + u64::from(self.index)
    }
}

/// Limits of a phase: it ends at the one that is reached first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Length, ns; intended starts at or after it are not made.
    pub duration_ns: u64,
    /// Requests of the whole run (not of the slice).
    pub requests: Option<u64>,
}

impl Limits {
    /// Ends after `duration_ns` only.
    #[must_use]
    pub const fn after(duration_ns: u64) -> Self {
        Self { duration_ns, requests: None }
    }
}

/// A running schedule. All times are ns on the engine's clock.
#[derive(Clone, Debug)]
pub enum Schedule {
    /// A fixed number of clients, each waiting for its answer before it goes on.
    Closed(ClosedSchedule),
    /// Intended starts that do not depend on the answers.
    Arrivals(ArrivalSchedule),
    /// Bursts that wait for what is left of the one before.
    Paced(PacedSchedule),
    /// Users who come, ask a number of requests, and leave.
    Users(UserSchedule),
}

impl Schedule {
    /// Starts a slice of `model` at `start_ns`.
    ///
    /// # Errors
    /// When the model asks for something impossible: no clients, a rate that is not a positive number.
    pub fn start(
        model: &LoadModel,
        slice: Slice,
        limits: Limits,
        seed: u64,
        start_ns: u64,
    ) -> Result<Self, ModelError> {
        model.validate()?;
        Ok(match model {
            LoadModel::Closed { clients, think, cycle_ns } => Schedule::Closed(
                ClosedSchedule::new(*clients, *think, *cycle_ns, slice, limits, seed, start_ns),
            ),
            LoadModel::PacedBurst { size, delay_ns, limit } => Schedule::Paced(PacedSchedule::new(
                *size, *delay_ns, *limit, slice, limits, start_ns,
            )),
            LoadModel::Users { profile, requests, think, pace } => {
                let stay = Stay { requests: *requests, think: *think, pace_ns: pace.ns };
                Schedule::Users(UserSchedule::new(profile, stay, slice, limits, seed, start_ns))
            }
            _ => Schedule::Arrivals(ArrivalSchedule::new(model, slice, limits, seed, start_ns)),
        })
    }

    /// Moves the start of a profile of users `before_ns` before the run: users who came earlier are there at its start, as if
    /// each answer had taken `answer_ns`. Must be called before the first [`Schedule::next`]; no effect in other models.
    pub fn begin_before(&mut self, before_ns: u64, answer_ns: u64) {
        if let Schedule::Users(users) = self {
            users.begin_before(before_ns, answer_ns);
        }
    }

    /// Returns the next event at `now_ns`.
    #[inline]
    pub fn next(&mut self, now_ns: u64) -> Next {
        match self {
            Schedule::Closed(closed) => closed.next(now_ns),
            Schedule::Arrivals(arrivals) => arrivals.next(now_ns),
            Schedule::Paced(paced) => paced.next(now_ns),
            Schedule::Users(users) => users.next(now_ns),
        }
    }

    /// Learns how many requests are behind at `now_ns`: those that wait in the managed queue, or those in flight where
    /// admission is direct. Bursts that wait for each other go by it; it is reported before [`Schedule::next`] is asked and
    /// after what was due has been let in.
    #[inline]
    pub fn see_backlog(&mut self, backlog: u64, now_ns: u64) {
        if let Schedule::Paced(paced) = self {
            paced.see_backlog(backlog, now_ns);
        }
    }

    /// User that has the place `client`, and which of its requests was made due last; `None` in models without users.
    #[inline]
    #[must_use]
    pub fn user_turn(&self, client: u32) -> Option<UserTurn> {
        match self {
            Schedule::Users(users) => users.turn(client),
            Schedule::Closed(_) | Schedule::Arrivals(_) | Schedule::Paced(_) => None,
        }
    }

    /// Returns true if users are there who have not left; never so in models without users.
    #[must_use]
    pub fn somebody_is_there(&self) -> bool {
        matches!(self, Schedule::Users(users) if users.present() > 0)
    }

    /// A client's request has ended at `now_ns`; its next one may become due.
    #[inline]
    pub fn ended(&mut self, client: u32, intended_ns: u64, now_ns: u64) {
        match self {
            Schedule::Closed(closed) => closed.ended(client, intended_ns, now_ns),
            Schedule::Users(users) => users.ended(client, intended_ns, now_ns),
            Schedule::Arrivals(_) | Schedule::Paced(_) => {}
        }
    }

    /// Takes back a request of this client that was made due: its workload had nothing left to send. Others may have become
    /// due since.
    pub fn withdraw(&mut self, client: u32) {
        match self {
            Schedule::Closed(closed) => closed.withdraw(),
            Schedule::Arrivals(arrivals) => arrivals.stop(),
            Schedule::Paced(paced) => paced.stop(),
            Schedule::Users(users) => users.withdraw(client),
        }
    }

    /// Takes back a request of this client that was made due: the client has nothing to send yet. [`Schedule::ended`] lets it
    /// go on. An arrival of an open model that no one uses is gone.
    pub fn postpone(&mut self, client: u32) {
        match self {
            Schedule::Closed(closed) => closed.postpone(),
            Schedule::Users(users) => users.postpone(client),
            Schedule::Arrivals(_) | Schedule::Paced(_) => {}
        }
    }

    /// Makes at most `most` of the arrivals that are due by `until_ns`, all at once: no one will send them. `None` when none is,
    /// and in models whose requests depend on the answers.
    pub fn skip(&mut self, until_ns: u64, most: u64) -> Option<Skipped> {
        match self {
            Schedule::Arrivals(arrivals) => arrivals.skip(until_ns, most),
            Schedule::Closed(_) | Schedule::Paced(_) | Schedule::Users(_) => None,
        }
    }

    /// Returns true if arrivals are drawn one by one.
    #[must_use]
    pub fn is_random(&self) -> bool {
        matches!(self, Schedule::Arrivals(arrivals) if arrivals.is_random())
    }

    /// Number of arrivals that [`Schedule::skip`] would make in all, ones that are random up to chance.
    #[must_use]
    pub fn owed(&self, until_ns: u64) -> u64 {
        match self {
            Schedule::Arrivals(arrivals) => arrivals.owed(until_ns),
            Schedule::Closed(_) | Schedule::Paced(_) | Schedule::Users(_) => 0,
        }
    }

    /// Time at which a run that its number of requests ends has lasted as long as they stand for, ns: behind the last arrival where
    /// arrivals have a gap behind them. `None` where nothing but the last reply ends it.
    #[must_use]
    pub fn spans_until_ns(&self) -> Option<u64> {
        match self {
            Schedule::Arrivals(arrivals) => arrivals.spans_until_ns(),
            Schedule::Closed(_) | Schedule::Paced(_) | Schedule::Users(_) => None,
        }
    }

    /// Makes nothing due any more.
    pub fn stop(&mut self) {
        match self {
            Schedule::Closed(closed) => closed.stop(),
            Schedule::Arrivals(arrivals) => arrivals.stop(),
            Schedule::Paced(paced) => paced.stop(),
            Schedule::Users(users) => users.stop(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn cuts_of_a_slice_cover_it_exactly(index in 0u32..5, of in 5u32..9, parts in 1u32..6, total in 0u64..500) {
            let slice = Slice { index, of };
            let mut numbers: Vec<u64> = (0..parts)
                .flat_map(|p| {
                    let cut = slice.cut(p, parts);
                    (0..cut.share(total)).map(move |n| cut.global(n))
                })
                .collect();
            numbers.sort_unstable();
            let whole: Vec<u64> = (0..slice.share(total)).map(|n| slice.global(n)).collect();
            prop_assert_eq!(numbers, whole);
        }

        #[test]
        fn a_share_is_cut_into_the_shares_of_its_parts(n in 1u32..9, m in 1u32..9, total in 0u64..500) {
            for part in (0..n).map(|index| Slice { index, of: n }) {
                let own = part.share(total);
                for index in 0..m {
                    prop_assert_eq!(Slice { index, of: m }.share(own), part.cut(index, m).share(total));
                }
            }
        }
    }

    #[test]
    fn only_parts_that_there_are_can_be_read() {
        let read = |text: &str| serde_json::from_str::<Slice>(text).map_err(|e| e.to_string());
        let slice = Slice { index: 1, of: 5 };
        assert_eq!(read(&serde_json::to_string(&slice).unwrap()), Ok(slice));
        assert_eq!(slice.to_string(), "2 of 5");
        for (text, expected) in [
            (r#"{"index":0,"of":0}"#, "1 to 65536 parts"),
            (r#"{"index":5,"of":5}"#, "from 0 to 4, not 5"),
            (r#"{"index":0,"of":65537}"#, "not 65537"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        assert_eq!("1/5".parse(), Ok(slice));
        assert!("5/5".parse::<Slice>().is_err() && "1-5".parse::<Slice>().is_err());
    }
}
