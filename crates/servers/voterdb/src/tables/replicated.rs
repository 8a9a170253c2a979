//! Contestants and area codes: small, seldom changed, and the same for all partitions.

use super::State;
use plimsoll_core::voter::areas::REGIONS;
use std::collections::BTreeMap;

/// Area codes up to here are found without a search.
const DENSE: usize = 1_000;
/// Phone numbers that share an area code.
const PHONES_A_CODE: i64 = 10_000_000;
/// Characters of a contestant's name, at most.
const NAME_CHARS_MAX: usize = 50;

/// The replicated tables. A change makes a new copy, which the partitions share until the next.
#[derive(Clone, Debug)]
pub(crate) struct Replicated {
    contestants: BTreeMap<i32, String>,
    area_codes: BTreeMap<i16, State>,
    /// `area_codes` from 0 to 999, with the unknown state where there is none.
    dense: Vec<State>,
}

impl Default for Replicated {
    fn default() -> Self {
        let dense = vec![State::UNKNOWN; DENSE];
        Self { contestants: BTreeMap::new(), area_codes: BTreeMap::new(), dense }
    }
}

/// Reason why contestants were not made.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InitializeError {
    #[error("{asked} contestants were asked for, but only {names} names given")]
    TooFewNames { asked: i32, names: usize },
    #[error("the contestant's name '{0}' has more than {NAME_CHARS_MAX} characters")]
    LongName(String),
}

impl Replicated {
    /// Makes the first `most` contestants of the list and all area codes, unless there are contestants already. Returns
    /// how many there are.
    pub(crate) fn initialize(&mut self, most: i32, names: &str) -> Result<i64, InitializeError> {
        if !self.contestants.is_empty() {
            return Ok(self.contestants.len() as i64);
        }
        let names: Vec<&str> = names.split(',').collect();
        let wanted = usize::try_from(most).unwrap_or(0);
        let Some(taken) = names.get(..wanted) else {
            return Err(InitializeError::TooFewNames { asked: most, names: names.len() });
        };
        if let Some(long) = taken.iter().find(|name| name.chars().count() > NAME_CHARS_MAX) {
            return Err(InitializeError::LongName((*long).to_owned()));
        }
        for (number, name) in (1..).zip(taken) {
            self.contestants.insert(number, (*name).to_owned());
        }
        for (state, codes) in REGIONS {
            // States are two letters.
            let state = State::new(state).unwrap_or(State::UNKNOWN);
            for code in codes {
                // A code has three digits.
                self.set_area_code(*code as i16, state);
            }
        }
        Ok(i64::from(most))
    }

    /// Returns true if the contestant may be voted for.
    #[inline]
    pub(crate) fn is_contestant(&self, number: i32) -> bool {
        self.contestants.contains_key(&number)
    }

    /// The state of a phone number. A number beyond those of a SMALLINT area code is cut, as Java's `(short)` does.
    #[inline]
    pub(crate) fn state_of(&self, phone: i64) -> State {
        let code = (phone / PHONES_A_CODE) as i16;
        match usize::try_from(code).ok().and_then(|code| self.dense.get(code)) {
            Some(state) => *state,
            None => self.area_codes.get(&code).copied().unwrap_or(State::UNKNOWN),
        }
    }

    pub(crate) fn contestants(&self) -> &BTreeMap<i32, String> {
        &self.contestants
    }

    pub(crate) fn area_codes(&self) -> &BTreeMap<i16, State> {
        &self.area_codes
    }

    /// Adds or renames a contestant.
    pub(crate) fn set_contestant(&mut self, number: i32, name: String) {
        self.contestants.insert(number, name);
    }

    /// Adds an area code or moves it to another state.
    pub(crate) fn set_area_code(&mut self, code: i16, state: State) {
        self.area_codes.insert(code, state);
        self.set_dense(code, state);
    }

    pub(crate) fn remove_contestant(&mut self, number: i32) {
        self.contestants.remove(&number);
    }

    pub(crate) fn remove_area_code(&mut self, code: i16) {
        self.area_codes.remove(&code);
        self.set_dense(code, State::UNKNOWN);
    }

    fn set_dense(&mut self, code: i16, state: State) {
        let place = usize::try_from(code).ok().and_then(|code| self.dense.get_mut(code));
        if let Some(place) = place {
            *place = state;
        }
    }
}
