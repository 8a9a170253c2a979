//! The query of a search, independent of the language that it was written in.
//!
//! A query language is a parser that ends in a [`Search`]; the planner and the executor know
//! nothing of languages. Field names are checked by the planner, so that every language has the
//! same rules.

use std::ops::Bound;

/// The largest edit distance that a fuzzy term may have.
pub const MAX_EDITS: u64 = 2;
/// The largest edit distance of [`Similar`] where words are found by an automaton.
pub(crate) const MAX_AUTOMATON_EDITS: u64 = 4;

/// Default distance of words in `near` and `onear`.
pub const DEFAULT_DISTANCE: u32 = 2;

/// One node of a boolean query.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// Matches every document.
    All,
    /// Matches no document.
    Nothing,
    /// Every document of the type of this name.
    Type(String),
    /// All of the children match. A [`Node::Not`] child takes documents away.
    And(Vec<Node>),
    /// At least one of the children matches.
    Or(Vec<Node>),
    /// The child does not match.
    Not(Box<Node>),
    /// The first child matches; the relevance of the others that match is added.
    Rank(Vec<Node>),
    /// Text without a word to look for: nothing was asked. Taken out before planning, see
    /// [`Node::asked`].
    Null,
    /// The text as it was written; several words of a text field are a phrase.
    Term {
        /// The field.
        field: String,
        /// The text.
        text: String,
    },
    /// The words follow one another.
    Phrase {
        /// The field.
        field: String,
        /// The words.
        words: Vec<String>,
    },
    /// A word (or keyword) that begins so.
    Prefix {
        /// The field.
        field: String,
        /// The text.
        text: String,
    },
    /// A word (or keyword) within this many single-character edits; the first `prefix_length`
    /// characters must be the same.
    Fuzzy {
        /// The field.
        field: String,
        /// The text.
        text: String,
        /// The largest edit distance.
        max_edits: u64,
        /// Characters at the beginning that must be the same.
        prefix_length: usize,
    },
    /// A number between two bounds.
    Range {
        /// The field.
        field: String,
        /// The lower bound.
        lower: Bound<Number>,
        /// The upper bound.
        upper: Bound<Number>,
    },
    /// The value is one of these.
    OneOf {
        /// The field.
        field: String,
        /// The values.
        values: Vec<Literal>,
    },
    /// All of the first, and at least this many of the others; each that matches adds to the relevance.
    AtLeast(Box<AtLeast>),
    /// The same documents with their relevance multiplied.
    Boost(Box<Node>, f32),
    /// The same documents, all with this relevance.
    Constant(Box<Node>, f32),
    /// One indexed term, which is not cut or folded. Scored, also in a keyword.
    Exact {
        /// The field.
        field: String,
        /// The term.
        term: String,
    },
    /// Words that follow one another within this many moves of a word.
    Near {
        /// The field.
        field: String,
        /// The words.
        words: Vec<String>,
        /// The most moves.
        slop: u32,
    },
    /// Words of one field within a window of positions.
    Within(Within),
    /// Words that resemble one. Like [`Node::Fuzzy`], with the choices that Lucene has.
    Similar(Similar),
    /// A term of the index that begins so; the text is not cut or folded.
    Beginning {
        /// The field.
        field: String,
        /// The text.
        text: String,
    },
    /// The field has a value.
    Exists(String),
    /// The relevance of the best child counts, and a share of those of the others.
    Best {
        /// The children.
        children: Vec<Node>,
        /// The share of the others.
        tie_breaker: f32,
    },
}

impl Node {
    /// The query without its parts that ask for nothing; nothing when no other part is left.
    pub fn asked(self) -> Option<Self> {
        let list = |children: Vec<Self>, make: fn(Vec<Self>) -> Self| {
            let empty = children.is_empty();
            let mut left: Vec<Self> = children.into_iter().filter_map(Self::asked).collect();
            match left.len() {
                0 if !empty => None,
                1 => left.pop(),
                _ => Some(make(left)),
            }
        };
        match self {
            Self::Null => None,
            Self::And(children) => list(children, Self::And),
            Self::Or(children) => list(children, Self::Or),
            Self::Rank(children) => list(children, Self::Rank),
            Self::Not(child) => child.asked().map(|child| Self::Not(Box::new(child))),
            Self::Constant(child, score) => {
                child.asked().map(|child| Self::Constant(Box::new(child), score))
            }
            other => Some(other),
        }
    }
}

/// One word of [`Within`]: any of these alternatives, each of words that follow one another.
pub type Place = Vec<Vec<String>>;

/// See [`Node::Within`].
#[derive(Clone, Debug, PartialEq)]
pub struct Within {
    /// The field.
    pub field: String,
    /// The words.
    pub places: Vec<Place>,
    /// The positions of all places are at most this far from each other.
    pub distance: u32,
    /// Each place comes after the one before it.
    pub ordered: bool,
}

/// See [`Node::AtLeast`].
#[derive(Clone, Debug, PartialEq)]
pub struct AtLeast {
    /// Children that must match.
    pub must: Vec<Node>,
    /// Children of which some must match.
    pub should: Vec<Node>,
    /// Smallest number of `should` clauses; 0 needs a `must`.
    pub at_least: usize,
}

/// A word and how far the words found may be from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Similar {
    /// The field.
    pub field: String,
    /// The term as it is looked up; for a scan the text as it was written.
    pub term: String,
    /// The largest edit distance.
    pub max_edits: u64,
    /// This many characters at the beginning must be the same.
    pub prefix_length: usize,
    /// Swapping two neighbours is one edit instead of two.
    pub transpositions: bool,
    /// Use of the words that were found.
    pub expansion: Expansion,
}

/// The use of the words found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expansion {
    /// As in Lucene: the words nearest to the term, at most this many in one index, scored as if all
    /// were as frequent as the most frequent of them.
    Nearest(usize),
    /// All words, with the same relevance.
    All,
    /// The text itself is read, not its words; what counts as an error.
    Scan(plimsoll_scan::Metric),
}

/// A number as it was written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A whole number of 64 bits.
    Whole(i64),
    /// With a fraction, or too large for a 64-bit integer.
    Real(f64),
}

/// A value in a list.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// A number.
    Number(Number),
    /// A text.
    Text(String),
}

/// One sort criterion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderBy {
    /// The field.
    pub field: String,
    /// True if the largest comes first.
    pub descending: bool,
}

/// The way hits are valued when no order is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ranking {
    /// BM25 over the text fields.
    Bm25,
    /// Relevance 0 and index order.
    Unranked,
}

/// The fields of a hit that the reply shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// Every field.
    All,
    /// These fields.
    Named(Vec<String>),
}

/// A statement of a query language, before request parameters have their say.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// The fields shown.
    pub selection: Selection,
    /// The document types searched; empty means every one.
    pub sources: Vec<String>,
    /// The documents wanted.
    pub filter: Node,
    /// The sort criteria; without any, relevance decides.
    pub order: Vec<OrderBy>,
    /// The most hits.
    pub limit: Option<u64>,
    /// Hits left out at the beginning.
    pub offset: Option<u64>,
    /// The longest time that the search may take.
    pub timeout_ms: Option<u64>,
}

/// A search that is ready to be planned.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// The documents wanted.
    pub filter: Node,
    /// Numbers of the document types searched; empty means every one.
    pub types: Vec<u16>,
    /// The sort criteria; without any, relevance decides.
    pub order: Vec<OrderBy>,
    /// Score of hits without an order.
    pub ranking: Ranking,
    /// The most hits.
    pub hits: usize,
    /// Hits left out at the beginning.
    pub offset: usize,
}
