//! Term automata for prefix and fuzzy matching, run against the term dictionary of a segment.

use levenshtein_automata::{DFA, Distance, LevenshteinAutomatonBuilder, SINK_STATE};
use std::fmt;
use std::sync::{Arc, LazyLock};
use tantivy::query::{AutomatonWeight, EnableScoring, Query, Weight};
use tantivy::schema::Field;
use tantivy_fst::Automaton;

use super::query::MAX_EDITS;

/// The tables from which automata are made, one for each distance. Swapping two neighbours costs
/// two edits, as in the definition by Levenshtein.
static BUILDERS: LazyLock<Vec<LevenshteinAutomatonBuilder>> = LazyLock::new(|| {
    (0..=MAX_EDITS as u8).map(|edits| LevenshteinAutomatonBuilder::new(edits, false)).collect()
});

/// Terms that begin with exactly these bytes and go on in a way that the tail accepts.
pub(crate) struct TermAutomaton {
    head: Vec<u8>,
    tail: Tail,
}

enum Tail {
    Anything,
    Near(Box<DFA>),
}

/// Where the automaton is: in the head, behind it, or nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Head(usize),
    Tail(u32),
    Dead,
}

impl TermAutomaton {
    /// Terms that begin so.
    pub(crate) fn prefix(text: &str) -> Self {
        Self { head: text.as_bytes().to_vec(), tail: Tail::Anything }
    }

    /// Terms whose first `prefix_length` characters are those of the text and whose rest is at most
    /// `max_edits` edits away from the rest of the text. `max_edits` above [`MAX_EDITS`] gives
    /// `None`.
    pub(crate) fn fuzzy(text: &str, max_edits: u64, prefix_length: usize) -> Option<Self> {
        let builder = BUILDERS.get(usize::try_from(max_edits).ok()?)?;
        let cut = text.char_indices().nth(prefix_length).map_or(text.len(), |(at, _)| at);
        let (head, rest) = text.split_at(cut);
        let tail = Tail::Near(Box::new(builder.build_dfa(rest)));
        Some(Self { head: head.as_bytes().to_vec(), tail })
    }

    fn enter_tail(&self) -> State {
        match &self.tail {
            Tail::Anything => State::Tail(0),
            Tail::Near(dfa) => State::Tail(dfa.initial_state()),
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
            (State::Tail(_), Tail::Anything) => true,
            (State::Tail(state), Tail::Near(dfa)) => {
                matches!(dfa.distance(*state), Distance::Exact(_))
            }
            _ => false,
        }
    }

    fn can_match(&self, state: &State) -> bool {
        match state {
            State::Head(_) => true,
            State::Tail(state) => matches!(self.tail, Tail::Anything) || *state != SINK_STATE,
            State::Dead => false,
        }
    }

    fn will_always_match(&self, state: &State) -> bool {
        matches!((state, &self.tail), (State::Tail(_), Tail::Anything))
    }

    fn accept(&self, state: &State, byte: u8) -> State {
        match (*state, &self.tail) {
            (State::Head(at), _) if self.head.get(at) == Some(&byte) => {
                if at + 1 == self.head.len() { self.enter_tail() } else { State::Head(at + 1) }
            }
            (State::Tail(state), Tail::Anything) => State::Tail(state),
            (State::Tail(state), Tail::Near(dfa)) => State::Tail(dfa.transition(state, byte)),
            _ => State::Dead,
        }
    }
}

/// Documents that hold a term which the automaton accepts.
#[derive(Clone)]
pub(crate) struct AutomatonQuery {
    pub(crate) field: Field,
    pub(crate) automaton: Arc<TermAutomaton>,
}

impl fmt::Debug for AutomatonQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AutomatonQuery").field("field", &self.field).finish_non_exhaustive()
    }
}

impl Query for AutomatonQuery {
    fn weight(&self, _: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(AutomatonWeight::<TermAutomaton>::new(self.field, Arc::clone(&self.automaton))))
    }
}
