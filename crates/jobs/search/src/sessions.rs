//! The users of a cell: who asks what next, and what is counted of the answers.

mod halves;
mod http;
mod sql;

use plimsoll_core::outcome::Failure;
use plimsoll_core::recorder::Times;
use plimsoll_core::rng::{Rng, derive_seed, splitmix64};
use plimsoll_core::schedule::{Slice, UserTurn};
use plimsoll_workloads::script::Script;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

pub use halves::Parts;
pub use http::{CellSessions, Filling, HttpAsking};
pub use sql::{SqlAsking, SqlCellSessions, SqlError, Statements};

pub(super) use http::plain;

/// In which order a user asks the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Each query as often as its `repeat` says, then the next: all users ask the same at the same time.
    Block,
    /// One query after the other, round and round; each user begins elsewhere in the list.
    #[default]
    Interleaved,
    /// All of the list in an order of each user's own, a new one each time.
    Shuffle,
}

impl Order {
    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Order::Block => "block",
            Order::Interleaved => "interleaved",
            Order::Shuffle => "shuffle",
        }
    }
}

/// The way of one user through the list.
#[derive(Clone, Debug)]
struct Walk {
    /// Queries by index, each as often as a pass has it.
    list: Vec<u16>,
    at: usize,
    passes: u32,
    /// Generator for an order per pass.
    rng: Option<Rng>,
}

impl Walk {
    fn new(order: Order, repeats: &[u32], user: u32, users: u32, seed: u64) -> Self {
        let mut list = Vec::new();
        match order {
            Order::Block | Order::Shuffle => {
                for (query, repeat) in (0u16..).zip(repeats) {
                    list.extend(std::iter::repeat_n(query, *repeat as usize));
                }
            }
            Order::Interleaved => {
                for round in 0..repeats.iter().copied().max().unwrap_or(0) {
                    let more = (0u16..).zip(repeats).filter(|(_, repeat)| **repeat > round);
                    list.extend(more.map(|(query, _)| query));
                }
                // Users are spread over the list, so that they do not all ask the same.
                let start = u64::from(user) * repeats.len() as u64 / u64::from(users.max(1));
                let turn = start as usize % list.len().max(1);
                list.rotate_left(turn);
            }
        }
        let own = splitmix64(derive_seed(seed, "order") ^ u64::from(user));
        let mut rng = (order == Order::Shuffle).then(|| Rng::new(own));
        if let Some(rng) = &mut rng {
            rng.shuffle(&mut list);
        }
        Self { list, at: 0, passes: 0, rng }
    }

    /// The next query; none after the last pass.
    fn next(&mut self, passes_max: Option<u32>) -> Option<u16> {
        if self.at == self.list.len() {
            self.at = 0;
            self.passes += 1;
            if let Some(rng) = &mut self.rng {
                rng.shuffle(&mut self.list);
            }
        }
        if passes_max.is_some_and(|most| self.passes >= most) {
            return None;
        }
        let query = *self.list.get(self.at)?;
        self.at += 1;
        Some(query)
    }

    /// Returns true if everything was asked.
    fn is_over(&self, passes_max: Option<u32>) -> bool {
        passes_max.is_some_and(|most| self.passes + 1 == most && self.at == self.list.len())
    }
}

/// Counts of a cell besides the engine's own histograms.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// Time at which the first request was due, ns; 0 before one has ended.
    pub start_ns: u64,
    /// Time at which the first user had asked everything, ns; 0 while none has.
    pub first_over_ns: u64,
    /// Time at which the last reply came, ns.
    pub last_ns: u64,
    /// Successful requests that ended in the steady window.
    pub window_ok: u64,
    /// Sum of their response times, ns.
    pub window_sum_ns: u128,
    /// Those of the window by parts of it; nothing where users come and go.
    pub parts: Parts,
    /// True if the rows that requests are filled with were used up.
    pub rows_used_up: bool,
    /// One a query of the list.
    pub queries: Vec<QueryTally>,
}

impl Tally {
    /// The same with times since the start of the load, 1 ns at the least, so that those of several machines can be compared.
    #[must_use]
    pub fn since(mut self, start_ns: u64) -> Self {
        for time_ns in [&mut self.start_ns, &mut self.first_over_ns, &mut self.last_ns] {
            // 0 is a time that is not known.
            *time_ns = if *time_ns == 0 { 0 } else { time_ns.saturating_sub(start_ns) + 1 };
        }
        self
    }

    /// Adds the counts of another part of the same users, with times since the same start.
    pub fn beside(&mut self, other: Self) {
        let first = |own: u64, other: u64| match (own, other) {
            (0, time_ns) | (time_ns, 0) => time_ns,
            (own, other) => own.min(other),
        };
        self.start_ns = first(self.start_ns, other.start_ns);
        self.first_over_ns = first(self.first_over_ns, other.first_over_ns);
        self.last_ns = self.last_ns.max(other.last_ns);
        self.window_ok += other.window_ok;
        self.window_sum_ns += other.window_sum_ns;
        self.parts.beside(other.parts);
        self.rows_used_up |= other.rows_used_up;
        for (own, more) in self.queries.iter_mut().zip(&other.queries) {
            own.beside(more);
        }
    }
}

/// Counts of one query in a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryTally {
    /// Requests that succeeded.
    pub ok: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Fewest hits reported.
    pub hits_min: Option<u64>,
    /// Most hits reported.
    pub hits_max: Option<u64>,
}

impl QueryTally {
    /// Adds other requests of the same query.
    pub fn beside(&mut self, other: &Self) {
        self.ok += other.ok;
        self.failed += other.failed;
        self.hits_min = self.hits_min.into_iter().chain(other.hits_min).min();
        self.hits_max = self.hits_max.into_iter().chain(other.hits_max).max();
    }
}

/// Answers that a cell's rate counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Window {
    /// Those that come in this stretch of time.
    Fixed {
        /// It begins this long after the first request was due, ns.
        warmup_ns: u64,
        /// Its length, ns.
        length_ns: u64,
    },
    /// Those that come before the first user has asked everything.
    #[default]
    FirstDone,
    /// All; it ends with the last of them, and lasts at least this long, ns.
    ToEnd(u64),
}

/// Length of a part of a window whose end is not known before, to begin with, ns.
const PART_NS: u64 = 1_000_000;

impl Window {
    /// Its parts, all empty.
    fn parts(self, queries: usize) -> Parts {
        match self {
            Window::Fixed { length_ns, .. } => Parts::new(length_ns.div_ceil(2), queries),
            Window::FirstDone => Parts::new(PART_NS, queries),
            // The number of users changes, and their rate with it.
            Window::ToEnd(_) => Parts::default(),
        }
    }
}

/// The way users find their next query.
#[derive(Clone, Debug)]
pub enum Course {
    /// This many users, each with a place in the list that stays its own.
    Walks {
        /// Number of times that each of them asks the list; without it, until the run's end.
        passes: Option<u32>,
    },
    /// Users who come and go, known by their number.
    Script(Script),
}

/// Plan of the users of a cell.
#[derive(Clone)]
pub struct CellPlan {
    /// Number of times that each request is in a pass.
    pub repeats: Vec<u32>,
    /// Number of queries that the list has, those that this engine is not asked included.
    pub queries: usize,
    /// In which order.
    pub order: Order,
    /// Number of users of the whole run.
    pub users: u32,
    /// The part of them that is here.
    pub slice: Slice,
    /// The way they find their next query.
    pub course: Course,
    /// Window that is counted.
    pub window: Window,
    /// Seed of the order.
    pub seed: u64,
}

/// Channel for what a cell's users count, and the flag that they set when nothing comes back any more.
#[derive(Clone)]
pub struct Outbox {
    /// Takes what they counted, at the end.
    pub tally: Sender<Tally>,
    /// Set when nothing comes back any more.
    pub give_up: Arc<AtomicBool>,
}

impl Outbox {
    /// An outbox, and where its tally arrives.
    #[must_use]
    pub fn new() -> (Self, Receiver<Tally>) {
        let (tally, counted) = channel();
        (Self { tally, give_up: Arc::default() }, counted)
    }
}

/// Requests lost in a row, without one success between them, after which a cell is given up: this many for each user.
const LOST_EACH: u64 = 3;

/// The users of a cell, all on one thread, whatever they speak.
struct Users {
    plan: CellPlan,
    walks: Vec<Walk>,
    turn: UserTurn,
    /// True for each place whose user has sent its last request, in models of users.
    last: Vec<bool>,
    tally: Tally,
    outbox: Outbox,
    lost_in_a_row: u64,
}

impl Users {
    fn new(plan: CellPlan, outbox: Outbox) -> Self {
        let own = plan.slice.share(plan.users.into());
        let walk = |own| {
            let user = plan.slice.global(own) as u32;
            Walk::new(plan.order, &plan.repeats, user, plan.users, plan.seed)
        };
        let walks = match plan.course {
            Course::Walks { .. } => (0..own).map(walk).collect(),
            Course::Script(_) => Vec::new(),
        };
        let queries = vec![QueryTally::default(); plan.queries];
        let parts = plan.window.parts(plan.queries);
        Self {
            walks,
            turn: UserTurn::default(),
            last: Vec::new(),
            tally: Tally { queries, parts, ..Tally::default() },
            plan,
            outbox,
            lost_in_a_row: 0,
        }
    }

    /// Request that a client asks next; none after its last one.
    fn next(&mut self, client: u32) -> Option<usize> {
        match &self.plan.course {
            Course::Walks { passes } => {
                let walk = self.walks.get_mut(client as usize)?;
                walk.next(*passes).map(usize::from)
            }
            Course::Script(script) => {
                let place = client as usize;
                if place >= self.last.len() {
                    self.last.resize(place + 1, false);
                }
                self.last[place] = self.turn.step + 1 == script.requests();
                let mut turn = self.turn;
                if self.plan.order == Order::Interleaved {
                    // Users are spread over the list, so that they do not all ask the same.
                    turn.step = turn.step.wrapping_add((turn.user % (1 << 16)) as u32);
                }
                Some(script.index(turn))
            }
        }
    }

    fn is_over(&self, client: u32) -> bool {
        match &self.plan.course {
            Course::Walks { passes } => {
                self.walks.get(client as usize).is_some_and(|walk| walk.is_over(*passes))
            }
            Course::Script(_) => self.last.get(client as usize).copied().unwrap_or(false),
        }
    }

    fn ended(&mut self, client: u32, query: u16, ok: bool, times: Times) {
        let over = self.is_over(client);
        let tally = &mut self.tally;
        tally.last_ns = tally.last_ns.max(times.done_ns);
        // All users are due at the start, so the earliest of the first requests is the run's own beginning.
        if tally.start_ns == 0 || times.intended_ns < tally.start_ns {
            tally.start_ns = times.intended_ns;
        }
        // How long after the window's beginning it ended, where that is inside.
        let since_ns = times.done_ns.saturating_sub(tally.start_ns);
        let after_ns = match self.plan.window {
            Window::Fixed { warmup_ns, length_ns } => {
                since_ns.checked_sub(warmup_ns).filter(|after_ns| *after_ns < length_ns)
            }
            Window::FirstDone => (tally.first_over_ns == 0).then_some(since_ns),
            Window::ToEnd(_) => Some(since_ns),
        };
        if let (true, Some(after_ns)) = (ok, after_ns) {
            let response_ns = times.done_ns.saturating_sub(times.intended_ns);
            tally.window_ok += 1;
            tally.window_sum_ns += u128::from(response_ns);
            tally.parts.add(query, after_ns, response_ns);
        }
        if over && tally.first_over_ns == 0 {
            tally.first_over_ns = times.done_ns;
        }
    }

    fn count(&mut self, query: u16, ok: bool, hits: Option<u64>) {
        let Some(own) = self.tally.queries.get_mut(usize::from(query)) else { return };
        if !ok {
            own.failed += 1;
            return;
        }
        own.ok += 1;
        if let Some(hits) = hits {
            own.hits_min = Some(own.hits_min.map_or(hits, |least| least.min(hits)));
            own.hits_max = Some(own.hits_max.map_or(hits, |most| most.max(hits)));
        }
    }

    fn answered(&mut self, client: u32, query: u16, ok: bool, hits: Option<u64>, times: Times) {
        self.lost_in_a_row = 0;
        self.count(query, ok, hits);
        self.ended(client, query, ok, times);
    }

    fn lost(&mut self, client: u32, query: u16, failure: Failure, times: Times) {
        self.count(query, false, None);
        self.ended(client, query, false, times);
        // A slow engine may yet answer; one that refuses connections will not.
        if failure != Failure::Timeout {
            self.lost_in_a_row += 1;
            if self.lost_in_a_row >= LOST_EACH * self.plan.slice.share(self.plan.users.into()) {
                self.outbox.give_up.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Hands over what was counted.
    fn finish(self) {
        // A cell that failed to start counts nothing.
        let _ = self.outbox.tally.send(self.tally);
    }
}

#[cfg(test)]
mod tests;
