//! Term automata for fuzzy matching, run against the words of a segment.

use levenshtein_automata::{DFA, Distance, LevenshteinAutomatonBuilder, SINK_STATE};
use std::sync::OnceLock;
use tantivy_fst::Automaton;

use super::near::{Lanes, Near, Place};
use super::query::{MAX_AUTOMATON_EDITS, MAX_EDITS};

/// The tables from which automata are made, one for each distance, twice: swapping two neighbours
/// costs two edits, as in the definition by Levenshtein, or one. Each is made when it is needed for
/// the first time; the largest take a tenth of a second and more.
static BUILDERS: [[OnceLock<LevenshteinAutomatonBuilder>; MAX_AUTOMATON_EDITS as usize + 1]; 2] =
    [const { [const { OnceLock::new() }; MAX_AUTOMATON_EDITS as usize + 1] }; 2];

/// The table for a distance, if there is one for so large a distance.
pub fn builder(
    max_edits: u64,
    transpositions: bool,
) -> Option<&'static LevenshteinAutomatonBuilder> {
    let edits = u8::try_from(max_edits).ok()?;
    let slot = BUILDERS[usize::from(transpositions)].get(usize::from(edits))?;
    Some(slot.get_or_init(|| LevenshteinAutomatonBuilder::new(edits, transpositions)))
}

/// Terms that begin with exactly these bytes and go on in a way that the tail accepts.
pub(crate) struct TermAutomaton {
    head: Vec<u8>,
    tail: Tail,
}

enum Tail {
    Near(Box<Near>),
    /// For words that are too long for that, while they have an end.
    Table(Box<DFA>),
    /// For any length: every term goes on, and is compared when it is whole.
    Long(Long),
}

/// A word of any length. A table of it would take kilobytes for each character.
struct Long {
    letters: Vec<char>,
    edits: usize,
    /// Swapping two neighbours is one edit.
    transpositions: bool,
}

impl Long {
    /// Returns the number of edits to another word, if it is near: the table of distances, as far as it is near its diagonal.
    fn edits(&self, other: &[u8]) -> Option<u8> {
        let other: Vec<char> = std::str::from_utf8(other).ok()?.chars().collect();
        let (own, most) = (&self.letters, self.edits);
        if own.len().abs_diff(other.len()) > most {
            return None;
        }
        let far = vec![most + 1; own.len() + 1];
        let (mut before, mut above, mut row) = (far.clone(), far.clone(), far);
        for (at, first) in above.iter_mut().enumerate().take(most + 1) {
            *first = at;
        }
        for (at, letter) in other.iter().enumerate() {
            let low = (at + 1).saturating_sub(most);
            if low > 0 {
                // This row was another one before.
                row[low - 1] = most + 1;
            } else {
                row[0] = at + 1;
            }
            for place in low.max(1)..=(at + 1 + most).min(own.len()) {
                let replaced = above[place - 1] + usize::from(own[place - 1] != *letter);
                let mut best = replaced.min(above[place] + 1).min(row[place - 1] + 1);
                let swapped = self.transpositions
                    && at > 0
                    && place > 1
                    && own[place - 1] == other[at - 1]
                    && own[place - 2] == *letter;
                if swapped {
                    best = best.min(before[place - 2] + 1);
                }
                row[place] = best;
            }
            (before, above, row) = (above, row, before);
        }
        let edits = above[own.len()];
        if edits <= most { u8::try_from(edits).ok() } else { None }
    }
}

/// Position of the automaton: in the head, behind it, or nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Head(usize),
    Tail(u32),
    Near(Place),
    Dead,
}

impl TermAutomaton {
    /// Terms whose first `prefix_length` characters are those of the text and whose rest is at most
    /// `max_edits` edits away from the rest of the text. `max_edits` above [`MAX_EDITS`] gives
    /// `None`.
    pub(crate) fn fuzzy(text: &str, max_edits: u64, prefix_length: usize) -> Option<Self> {
        if max_edits > MAX_EDITS {
            return None;
        }
        let table =
            |rest: &str| Some(Tail::Table(Box::new(builder(max_edits, false)?.build_dfa(rest))));
        Self::near(text, max_edits, prefix_length, false, table)
    }

    /// The same for distances up to [`MAX_AUTOMATON_EDITS`] and words of any length; swapping two neighbours may be
    /// one edit. Of a long word the automaton accepts more than is near: [`TermAutomaton::edits`] tells.
    pub(crate) fn similar(
        text: &str,
        max_edits: u64,
        prefix_length: usize,
        transpositions: bool,
    ) -> Option<Self> {
        if max_edits > MAX_AUTOMATON_EDITS {
            return None;
        }
        let long = |rest: &str| {
            let (letters, edits) = (rest.chars().collect(), max_edits as usize);
            Some(Tail::Long(Long { letters, edits, transpositions }))
        };
        Self::near(text, max_edits, prefix_length, transpositions, long)
    }

    fn near(
        text: &str,
        max_edits: u64,
        prefix_length: usize,
        transpositions: bool,
        too_long: impl Fn(&str) -> Option<Tail>,
    ) -> Option<Self> {
        let cut = text.char_indices().nth(prefix_length).map_or(text.len(), |(at, _)| at);
        let (head, rest) = text.split_at(cut);
        let tail = match Near::new(rest, max_edits, transpositions) {
            Some(near) => Tail::Near(Box::new(near)),
            None => too_long(rest)?,
        };
        Some(Self { head: head.as_bytes().to_vec(), tail })
    }

    /// Returns the number of edits to a term, if the automaton accepts it.
    pub(crate) fn edits(&self, term: &[u8]) -> Option<u8> {
        let rest = term.strip_prefix(self.head.as_slice())?;
        match &self.tail {
            Tail::Near(near) => {
                let mut place = near.start();
                for &byte in rest {
                    place = near.next(&place, byte);
                    if !near.can_match(&place) {
                        return None;
                    }
                }
                near.edits_at(&place)
            }
            Tail::Table(dfa) => match dfa.eval(rest) {
                Distance::Exact(edits) => Some(edits),
                Distance::AtLeast(_) => None,
            },
            Tail::Long(long) => long.edits(rest),
        }
    }

    /// The same for many terms at once, where that can be done.
    pub(crate) fn lanes(&self) -> Option<Lanes> {
        match &self.tail {
            Tail::Near(near) if self.head.is_empty() => near.lanes(),
            _ => None,
        }
    }

    /// Returns what every term that is accepted begins with.
    pub(crate) fn head(&self) -> &[u8] {
        &self.head
    }

    fn enter_tail(&self) -> State {
        match &self.tail {
            Tail::Long(_) => State::Tail(0),
            Tail::Near(near) => State::Near(near.start()),
            Tail::Table(dfa) => State::Tail(dfa.initial_state()),
        }
    }
}

impl Automaton for TermAutomaton {
    type State = State;

    fn start(&self) -> State {
        if self.head.is_empty() { self.enter_tail() } else { State::Head(0) }
    }

    fn is_match(&self, state: &State) -> bool {
        match (state, &self.tail) {
            (State::Tail(_), Tail::Long(_)) => true,
            (State::Near(place), Tail::Near(near)) => near.is_match(place),
            (State::Tail(state), Tail::Table(dfa)) => {
                matches!(dfa.distance(*state), Distance::Exact(_))
            }
            _ => false,
        }
    }

    fn can_match(&self, state: &State) -> bool {
        match state {
            State::Head(_) => true,
            State::Tail(state) => !matches!(self.tail, Tail::Table(_)) || *state != SINK_STATE,
            State::Near(place) => {
                matches!(&self.tail, Tail::Near(near) if near.can_match(place))
            }
            State::Dead => false,
        }
    }

    fn accept(&self, state: &State, byte: u8) -> State {
        match (*state, &self.tail) {
            (State::Head(at), _) if self.head.get(at) == Some(&byte) => {
                if at + 1 == self.head.len() { self.enter_tail() } else { State::Head(at + 1) }
            }
            (State::Tail(state), Tail::Long(_)) => State::Tail(state),
            (State::Near(place), Tail::Near(near)) => State::Near(near.next(&place, byte)),
            (State::Tail(state), Tail::Table(dfa)) => State::Tail(dfa.transition(state, byte)),
            _ => State::Dead,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Long words are compared as tables of them would.
        #[test]
        fn long_words_are_as_near_as_tables_say(
            head in "[ab]{64,70}",
            own in "[abé]{0,6}",
            other in "[abé]{0,6}",
            edits in 0..3_u64,
            transpositions: bool,
        ) {
            let (own, other) = (format!("{head}{own}"), format!("{head}{other}"));
            let automaton = TermAutomaton::similar(&own, edits, 0, transpositions).unwrap();
            prop_assert!(matches!(automaton.tail, Tail::Long(_)));
            let table = builder(edits, transpositions).unwrap().build_dfa(&own);
            let wanted = match table.eval(other.as_bytes()) {
                Distance::Exact(edits) => Some(edits),
                Distance::AtLeast(_) => None,
            };
            prop_assert_eq!(automaton.edits(other.as_bytes()), wanted);
        }
    }
}
