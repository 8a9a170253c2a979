//! A partition: the votes whose phone numbers hash to it, the views over them, and its greetings.

use super::{NumberMap, Replicated, State};
use crate::voter::statistics::ProcedureCounts;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What `Vote` returns.
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

/// What one thread owns.
#[derive(Debug, Default)]
pub(crate) struct Partition {
    votes: Votes,
    /// `v_votes_by_phone_number`.
    by_phone: NumberMap<i64, i64>,
    /// This partition's part of `v_votes_by_contestant_number_state`.
    by_state: NumberMap<(i32, State), i64>,
    pub(crate) greetings: BTreeMap<String, Greeting>,
    pub(crate) replicated: Arc<Replicated>,
    pub(crate) counts: ProcedureCounts,
}

impl Partition {
    /// The procedure `Vote`: its return code, and the row that was inserted.
    #[inline]
    pub(crate) fn vote(&mut self, phone: i64, contestant: i32, most: i64) -> (i64, Option<Vote>) {
        if !self.replicated.is_contestant(contestant) {
            return (INVALID_CONTESTANT, None);
        }
        let count = self.by_phone.entry(phone).or_insert(0);
        if *count >= most {
            if *count == 0 {
                self.by_phone.remove(&phone);
            }
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
        let count = phone.and_then(|phone| self.by_phone.get(&phone)).copied().unwrap_or(0);
        if !self.replicated.is_contestant(contestant) {
            Some(INVALID_CONTESTANT)
        } else {
            (count >= most).then_some(OVER_LIMIT)
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
        self.votes = rows;
        self.by_phone = NumberMap::default();
        self.by_state = NumberMap::default();
        for vote in self.votes.iter() {
            *self.by_phone.entry(vote.phone).or_insert(0) += 1;
            *self.by_state.entry((vote.contestant, vote.state)).or_insert(0) += 1;
        }
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
