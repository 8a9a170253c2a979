//! A partition: the votes whose phone numbers hash to it, the views over them, and its greetings.

use super::{NumberMap, Replicated, State};
use crate::statistics::ProcedureCounts;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The results of `Vote`.
pub(crate) const ACCEPTED: i64 = 0;
const INVALID_CONTESTANT: i64 = 1;
const OVER_LIMIT: i64 = 2;

/// One row of the table of votes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Vote {
    pub(crate) phone: i64,
    pub(crate) state: State,
    pub(crate) contestant: i32,
}

/// Rows of votes, column by column. They have no key and no order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Votes {
    pub(crate) phones: Vec<i64>,
    pub(crate) states: Vec<State>,
    pub(crate) contestants: Vec<i32>,
}

impl Votes {
    pub(crate) fn len(&self) -> usize {
        self.phones.len()
    }

    #[inline]
    pub(crate) fn get(&self, row: usize) -> Vote {
        Vote { phone: self.phones[row], state: self.states[row], contestant: self.contestants[row] }
    }

    #[inline]
    pub(crate) fn push(&mut self, vote: Vote) {
        self.phones.push(vote.phone);
        self.states.push(vote.state);
        self.contestants.push(vote.contestant);
    }

    /// Bytes in memory, with the room they have left.
    pub(crate) fn bytes(&self) -> usize {
        self.phones.capacity() * 8 + self.states.capacity() * 8 + self.contestants.capacity() * 4
    }

    fn pop(&mut self) -> Option<Vote> {
        Some(Vote {
            phone: self.phones.pop()?,
            state: self.states.pop()?,
            contestant: self.contestants.pop()?,
        })
    }

    fn truncate(&mut self, rows: usize) {
        self.phones.truncate(rows);
        self.states.truncate(rows);
        self.contestants.truncate(rows);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Vote> + '_ {
        (0..self.len()).map(|row| self.get(row))
    }
}

/// A row of HELLOWORLD without its key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Greeting {
    pub(crate) hello: Option<String>,
    pub(crate) world: Option<String>,
}

/// The data that one thread owns.
#[derive(Debug, Default)]
pub(crate) struct Partition {
    votes: Votes,
    /// `v_votes_by_phone_number`.
    by_phone: NumberMap<i64, i64>,
    /// This partition's part of `v_votes_by_contestant_number_state`.
    by_state: NumberMap<(i32, State), i64>,
    greetings: Arc<Greetings>,
    pub(crate) replicated: Arc<Replicated>,
    pub(crate) counts: ProcedureCounts,
    /// The state before a transaction of several changes that has not ended.
    before: Option<Box<Before>>,
}

/// The rows of HELLOWORLD by their key.
pub(crate) type Greetings = BTreeMap<String, Greeting>;

/// The data that restores a partition.
#[derive(Debug)]
struct Before {
    /// Number of votes. Others may stand behind them.
    rows: usize,
    /// The votes, once other rows have taken their place.
    votes: Option<Votes>,
    greetings: Arc<Greetings>,
    replicated: Arc<Replicated>,
}

impl Partition {
    /// The procedure `Vote`: its return code, and the row that was inserted.
    #[inline]
    pub(crate) fn vote(&mut self, phone: i64, contestant: i32, most: i64) -> (i64, Option<Vote>) {
        if !self.replicated.is_contestant(contestant) {
            return (INVALID_CONTESTANT, None);
        }
        let count = self.by_phone.entry(phone).or_insert(0);
        // As in VoltDB's own procedure, the limit is only looked at where the view has a row.
        if *count > 0 && *count >= most {
            return (OVER_LIMIT, None);
        }
        *count += 1;
        let vote = Vote { phone, state: self.replicated.state_of(phone), contestant };
        *self.by_state.entry((contestant, vote.state)).or_insert(0) += 1;
        self.votes.push(vote);
        (ACCEPTED, Some(vote))
    }

    /// The code with which `Vote` rejects a vote, if it does. A phone number that is NULL has no votes.
    pub(crate) fn rejects(&self, phone: Option<i64>, contestant: i32, most: i64) -> Option<i64> {
        let count = phone.and_then(|phone| self.by_phone.get(&phone));
        if !self.replicated.is_contestant(contestant) {
            Some(INVALID_CONTESTANT)
        } else {
            count.is_some_and(|count| *count >= most).then_some(OVER_LIMIT)
        }
    }

    /// Inserts a row, whatever the rules of voting.
    pub(crate) fn insert(&mut self, vote: Vote) {
        *self.by_phone.entry(vote.phone).or_insert(0) += 1;
        *self.by_state.entry((vote.contestant, vote.state)).or_insert(0) += 1;
        self.votes.push(vote);
    }

    /// Puts other rows in the place of all.
    pub(crate) fn replace_votes(&mut self, rows: Votes) {
        let old = std::mem::replace(&mut self.votes, rows);
        if let Some(before) = &mut self.before {
            before.votes.get_or_insert(old);
        }
        self.by_phone = NumberMap::default();
        self.by_state = NumberMap::default();
        for vote in self.votes.iter() {
            *self.by_phone.entry(vote.phone).or_insert(0) += 1;
            *self.by_state.entry((vote.contestant, vote.state)).or_insert(0) += 1;
        }
    }

    /// Changes from here on can be taken back together.
    pub(crate) fn begin(&mut self) {
        self.before = Some(Box::new(Before {
            rows: self.votes.len(),
            votes: None,
            greetings: Arc::clone(&self.greetings),
            replicated: Arc::clone(&self.replicated),
        }));
    }

    /// Changes since [`begin`](Self::begin) stay.
    pub(crate) fn commit(&mut self) {
        self.before = None;
    }

    /// Everything is again as it was at [`begin`](Self::begin).
    pub(crate) fn roll_back(&mut self) {
        let Some(before) = self.before.take() else { return };
        (self.greetings, self.replicated) = (before.greetings, before.replicated);
        if let Some(mut votes) = before.votes {
            votes.truncate(before.rows);
            return self.replace_votes(votes);
        }
        while self.votes.len() > before.rows {
            let Some(vote) = self.votes.pop() else { return };
            one_less(&mut self.by_phone, vote.phone);
            one_less(&mut self.by_state, (vote.contestant, vote.state));
        }
    }

    pub(crate) fn greetings(&self) -> &Greetings {
        &self.greetings
    }

    /// The greetings, to be changed. They are copied once where a transaction may still take that back.
    pub(crate) fn greetings_mut(&mut self) -> &mut Greetings {
        Arc::make_mut(&mut self.greetings)
    }

    pub(crate) fn votes(&self) -> &Votes {
        &self.votes
    }

    pub(crate) fn by_phone(&self) -> &NumberMap<i64, i64> {
        &self.by_phone
    }

    pub(crate) fn by_state(&self) -> &NumberMap<(i32, State), i64> {
        &self.by_state
    }
}

/// Takes one row out of a view, whose own row goes with the last.
fn one_less<K: std::hash::Hash + Eq>(view: &mut NumberMap<K, i64>, key: K) {
    if let Some(count) = view.get_mut(&key) {
        *count -= 1;
        if *count == 0 {
            view.remove(&key);
        }
    }
}
